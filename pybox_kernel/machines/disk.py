"""Making the private machine's disk, kernel and keys: Debian packages, put together by ``mmdebstrap``.

Nothing of this computer goes into it but a public key. It is made in a folder beside the one in use, and takes that
one's place when all of it is there.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pybox_kernel.errors import SetupError
from pybox_kernel.images import rootfs
from pybox_kernel.images.long_command import TookTooLong, follow
from pybox_kernel.machines.machine import Progress
from pybox_kernel.machines.packages import SYSTEM, install_line, may_unpack, missing_to_build

__all__ = ["DiskRecord", "check", "copy", "make", "read_record", "recipe_sha256", "write_record"]

SUITE: Final = "trixie"
PACKAGES: Final = ("busybox-static", "docker-cli", "docker.io", "kmod", "linux-image-cloud-amd64", "openssh-server")
GUEST: Final = Path(__file__).with_name("guest")
FILES: Final = ("init", "initrd", "sshd_config")
PARTS: Final = ("disk.img", "kernel", "initrd")
DISK_MIB: Final = 4096
"""The most that the packages (0.4 GB), box images and what is written in one start can take together."""
WORK_BYTES: Final = 2_500_000_000
LONGEST_SECONDS: Final = 1800.0

SAID: Final = {
    "running apt-get update": "Asking the Debian mirror what there is",
    "downloading packages": "Fetching packages, about 150 MB",
    "extracting archives": "Unpacking packages",
    "installing essential packages": "Installing them",
    "installing remaining packages": "Installing the kernel and the container engine",
    "running special hook: upload": "Making the disk",
}


class DiskRecord(BaseModel):
    """What a machine was made of, beside its disk."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["pybox.machine/1"] = "pybox.machine/1"
    recipe_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    made_at: datetime
    images: tuple[str, ...] = Field(max_length=100)
    """The ids of the box images on the disk."""


def recipe_sha256() -> str:
    """Of all that decides what a machine is, but for the versions of Debian's packages."""
    parts = [(GUEST / name).read_bytes() for name in (*FILES, "customize")]
    parts += [" ".join((SUITE, *PACKAGES)).encode(), str(DISK_MIB).encode()]
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def read_record(folder: Path) -> DiskRecord | None:
    """None where there is no machine, or none that this version understands."""
    try:
        return DiskRecord.model_validate_json((folder / "disk.json").read_bytes())
    except (OSError, ValidationError):
        return None


def write_record(folder: Path, record: DiskRecord) -> None:
    (folder / "disk.json").write_text(record.model_dump_json(indent=1) + "\n")


def check() -> None:
    """Raises SetupError, with what to do, where this computer cannot make one."""
    if platform.machine() not in ("x86_64", "AMD64"):
        raise SetupError(
            f"The private machine is for x86_64 computers, and this one is {platform.machine()}.",
            "Use the engine on this computer.",
        )
    if missing := missing_to_build():
        raise SetupError(
            f"Making the private machine needs what this computer lacks: {', '.join(missing)}.", install_line(missing)
        )
    if not may_unpack():
        raise SetupError(
            "This user has no subordinate user ids (/etc/subuid, /etc/subgid), which making the machine needs.",
            "Have some given: `sudo usermod --add-subuids 200000-265535 --add-subgids 200000-265535 $USER`.",
        )
    work = Path(tempfile.gettempdir())
    if shutil.disk_usage(work).free < WORK_BYTES:
        raise full(work)


def full(place: Path) -> SetupError:
    return SetupError(
        f"The disk is full: {place} has no room for making the machine.",
        f"Make {WORK_BYTES / 1e9:.1f} GB of room there, or name another place with TMPDIR; run it again.",
    )


def make(folder: Path, progress: Progress) -> None:
    """A whole machine in ``folder``, which is made. Raises SetupError; the caller removes ``folder`` then."""
    check()
    folder.mkdir(mode=0o700)
    new_key(folder / "key")
    with (
        tempfile.TemporaryDirectory(prefix="pybox-vm-", ignore_cleanup_errors=True) as name,
        # Of a new name each time: an mmdebstrap that outlived its PyBox finds nowhere to put another machine's parts.
        tempfile.TemporaryDirectory(prefix="parts-", dir=folder) as parts_folder,
    ):
        work, tar = Path(name), Path(parts_folder) / "machine.tar"
        work.chmod(0o711)  # without root, mmdebstrap works under other uids
        (work / "apt.conf").write_text(rootfs.apt_proxies())
        new_key(folder / "host_key")
        public = (folder / "host_key.pub").read_text().split()
        (folder / "known_hosts").write_text(f"pybox {public[0]} {public[1]}\n")
        run(command(folder, work, tar), work, progress)
        with tarfile.open(tar) as parts:
            # Python 3.11 has it from 3.11.4 on, and takes no argument of that name before.
            parts.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
            for part in PARTS:
                parts.extract(part, folder)
                (folder / part).chmod(0o600)
    for name in ("host_key", "host_key.pub"):
        (folder / name).unlink()
    write_record(folder, DiskRecord(recipe_sha256=recipe_sha256(), made_at=datetime.now(UTC), images=()))


def new_key(path: Path) -> None:
    line = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "pybox", "-f", str(path)]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise SetupError(f"A key could not be made: {done.stderr.strip()[:300]}", "Mend that and run it again.")


def command(folder: Path, work: Path, tar: Path) -> list[str]:
    customize = (GUEST / "customize").read_text()
    uploads = [(GUEST / name, f"/usr/lib/pybox/{name}") for name in FILES]
    for name, goal in (("host_key", "host_key"), ("key.pub", "authorized_keys")):
        uploads.append((folder / name, f"/usr/lib/pybox/{goal}"))
    without = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
    return [
        *("mmdebstrap", "--variant=essential", "--format=null", "--architectures=amd64"),
        *(f"--include={','.join(PACKAGES)}", f"--aptopt={work / 'apt.conf'}"),
        '--aptopt=Apt::Install-Recommends "false"',
        *("--dpkgopt=force-unsafe-io", *(f"--dpkgopt=path-exclude={pattern}" for pattern in without)),
        # The disk holds the machine's own key, and others may look into the folder of the root.
        '--customize-hook=mkdir -p "$1/usr/lib/pybox" && mkdir -m 700 "$1/out"',
        *(f"--customize-hook=upload {shlex.quote(str(source))} {goal}" for source, goal in uploads),
        f"--customize-hook=mib={DISK_MIB}\n{customize}",
        f"--customize-hook=download /out/machine.tar {shlex.quote(str(tar))}",
        *(SUITE, "-", *rootfs.mirrors(SUITE)),
    ]


def run(line: list[str], work: Path, progress: Progress) -> None:
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(work)}
    environment["PATH"] = f"{os.environ.get('PATH', '/usr/bin:/bin')}:{SYSTEM}"
    log = work / "mmdebstrap.log"
    said: set[str] = set()

    def say(text: str) -> None:
        for start, step in SAID.items():
            if text.startswith(f"I: {start}") and step not in said:
                said.add(step)
                progress(step)

    def look() -> None:
        if shutil.disk_usage(work).free < rootfs.LEAST_FREE_BYTES:
            raise full(work.parent)

    try:
        status = follow(line, log, environment, LONGEST_SECONDS, say, look=look)
    except TookTooLong:
        raise SetupError(
            f"Making the machine took longer than {LONGEST_SECONDS / 60:.0f} minutes.",
            "Look at this computer's network and run it again; packages are fetched anew.",
        ) from None
    if status != 0:
        raise failure(log.read_text(errors="replace"), work)


def failure(log: str, work: Path) -> SetupError:
    if "No space left on device" in log:
        return full(work.parent)
    errors = [line[2:].strip() for line in log.splitlines() if line.startswith("E:")]
    if unfetched := [error for error in errors if "Failed to fetch" in error]:
        return SetupError(
            f"The Debian mirror does not give what is needed: {unfetched[0][:300]}.",
            "Look at this computer's network and apt's proxy settings, and run it again.",
        )
    return SetupError(
        f"mmdebstrap could not make the machine: {' / '.join(errors[:3])[:600] or log[-300:].strip()}",
        "Mend that and run it again.",
    )


def copy(folder: Path, goal: Path) -> None:
    """The machine in ``folder`` once more, in ``goal``, which is made. Raises SetupError."""
    goal.mkdir(mode=0o700)
    for name in (*PARTS, "key", "known_hosts", "disk.json"):
        line = ["cp", "--sparse=always", "--reflink=auto", "--preserve=mode", str(folder / name), str(goal / name)]
        done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SetupError(
                f"The machine could not be copied: {done.stderr.strip()[:300]}", "Make room there and run it again."
            )
