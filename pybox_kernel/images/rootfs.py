"""A small root file system with Python, made by ``mmdebstrap``, for engines that reach no registry.

Debian packages are unpacked, not installed: no script of theirs runs, and another machine's architecture is
no harder. What only installing needs is then left out, and so is whatever came from this machine. The same
packages give the same bytes.
"""

from __future__ import annotations

import fnmatch
import io
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from pybox_kernel.errors import SetupError
from pybox_kernel.images.long_command import TookTooLong, follow
from pybox_kernel.images.recipes import DebianBase

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "DEFAULT_MIRROR",
    "LEAST_FREE_BYTES",
    "WORK_BYTES",
    "apt_proxies",
    "debian_base",
    "disk_full",
    "make",
    "mirrors",
    "missing",
    "slim",
]

MERGED_USR: Final = "/usr/share/mmdebstrap/hooks/merged-usr"
KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
DEFAULT_MIRROR: Final = "http://deb.debian.org/debian"
LONGEST_SECONDS: Final = 900.0
WORK_BYTES: Final = 500_000_000
"""What ``make`` takes for a moment."""
LEAST_FREE_BYTES: Final = 8_000_000
"""On a full disk apt 2.6 was seen to wait for ever; so it is ended before."""

PACKAGES: Final = """
base-files base-passwd bash coreutils dash diffutils findutils grep gzip hostname libc-bin
libpython3.11-stdlib libstdc++6 mawk ncurses-base netbase python3-minimal sed tar tzdata
"""

LEFT_OUT: Final = """\
# What mmdebstrap took from this machine or left behind.
dev/* proc/* sys/* boot etc/hostname etc/machine-id etc/resolv.conf etc/apt tmp/*
var/cache/* var/lib/apt var/lib/dpkg/[!s]* var/lib/dpkg/status-old var/log/*
# Installing and configuring packages.
etc/debconf.conf etc/dpkg usr/bin/debconf* usr/bin/dpkg* usr/bin/perl* usr/bin/py3*
usr/bin/update-alternatives usr/lib/dpkg usr/lib/*/libdebconfclient* usr/lib/*/perl* usr/sbin/dpkg*
usr/sbin/update-passwd
usr/share/bash-completion usr/share/bug usr/share/debconf usr/share/dpkg usr/share/lintian usr/share/menu
usr/share/perl* usr/share/pixmaps usr/share/polkit-1 usr/share/python3
# A machine that boots.
etc/cron.* etc/fstab etc/logrotate.d etc/update-motd.d usr/lib/binfmt.d usr/lib/systemd usr/share/binfmts
usr/sbin/installkernel usr/sbin/start-stop-daemon
# Reading matter, translations, character sets that Python has itself, time zones with leap seconds.
usr/share/common-licenses usr/share/doc usr/share/doc-base usr/share/info usr/share/locale usr/share/man
usr/lib/*-linux-gnu/gconv usr/share/zoneinfo/right
# Parts of Python that have no place in a box.
etc/python3.11 usr/lib/python3.11/sitecustomize.py usr/lib/python3.11/ensurepip usr/lib/python3.11/idlelib
usr/lib/python3.11/lib2to3 usr/lib/python3.11/test
"""

# The packages' own files for what their installation scripts would have put in place.
COPIED: Final = {
    "etc/passwd": "usr/share/base-passwd/passwd.master",
    "etc/group": "usr/share/base-passwd/group.master",
    "etc/nsswitch.conf": "usr/share/libc-bin/nsswitch.conf",
}
LINKED: Final = {
    "usr/bin/awk": "mawk",
    "usr/bin/python": "python3",
    "usr/bin/which": "which.debianutils",
}

SAID: Final = {
    "running apt-get update": "Asking the Debian mirror what there is",
    "downloading packages": "Fetching packages",
    "extracting archives": "Unpacking packages",
    "creating tarball": "Packing the root file system",
}


def debian_base(architecture: str) -> DebianBase:
    """The Debian base of this version of PyBox, for one architecture by Debian's name for it (``amd64``)."""
    lines = LEFT_OUT.splitlines()
    return DebianBase(
        suite="bookworm",
        architecture=architecture,
        packages=tuple(PACKAGES.split()),
        left_out_packages=("debconf", "dpkg", "libdebconfclient0", "perl-base"),
        left_out=tuple(pattern for line in lines if not line.startswith("#") for pattern in line.split()),
        epoch=1735689600,
    )


def missing() -> list[str]:
    """The Debian or Ubuntu packages that this machine lacks for ``make``; empty if it can go."""
    found = {
        "mmdebstrap": shutil.which("mmdebstrap") is not None and Path(MERGED_USR).is_dir(),
        "debian-archive-keyring": Path(KEYRING).is_file(),
        # Without root, mmdebstrap unpacks under the subordinate uids that this package lets a user have.
        "uidmap": os.geteuid() == 0 or shutil.which("newuidmap") is not None,
    }
    return [name for name, is_there in found.items() if not is_there]


def mirrors(suite: str) -> list[str]:
    """This machine's own Debian mirrors as lines for apt, for ``suite`` even if its own is another; empty if none."""
    layout = "$(ORIGIN) $(RELEASE) $(COMPONENT) $(REPO_URI)"
    lines = _output("apt-get", "indextargets", "--format", layout, "Created-By: Packages").splitlines()
    found = [line.split() for line in lines]
    of_debian = [
        (*fields[1].partition("-")[::2], fields[3])
        for fields in found
        if len(fields) == 4
        and (fields[0], fields[2]) == ("Debian", "main")
        and fields[3].startswith(("http://", "https://"))
    ]
    of_suite = [line for line in of_debian if line[0] == suite] or of_debian
    wanted = dict.fromkeys((part, uri) for _, part, uri in of_suite if part in ("", "updates", "security"))
    return [f"deb [signed-by={KEYRING}] {uri} {suite}{'-' if part else ''}{part} main" for part, uri in wanted]


def make(base: DebianBase, folder: Path, progress: Callable[[str], None]) -> Path:
    """A tar file of the root file system, in ``folder``, whose other contents the caller removes.

    Raises SetupError. Stopped in any way, it leaves no process, mount or file outside ``folder``.
    """
    unpacked, finished = folder / "unpacked.tar", folder / "rootfs.tar"
    proxies = folder / "apt.conf"
    proxies.write_text(apt_proxies())
    names = "|".join(f"{name}_*" for name in base.left_out_packages)
    list_packages = (
        f'for file in "$1"/var/cache/apt/archives/*.deb; do case "${{file##*/}}" in {names}) ;; '
        '*) dpkg-deb --field "$file"; printf "Status: install ok installed\\n\\n" ;; esac; done '
        '> "$1/var/lib/dpkg/status"'
    )
    command = [
        *("mmdebstrap", "--variant=extract", "--format=tar", f"--architectures={base.architecture}"),
        *(f"--include={','.join(base.packages)}", f"--hook-dir={MERGED_USR}"),
        *(f"--extract-hook={list_packages}", f"--aptopt={proxies}"),
        *(base.suite, str(unpacked), *mirrors(base.suite)),
    ]
    _run(command, folder, base.epoch, progress)
    slim(unpacked, finished, base)
    unpacked.unlink()
    return finished


def _output(*command: str) -> str:
    try:
        return subprocess.run(
            command, capture_output=True, check=True, text=True, timeout=30, stdin=subprocess.DEVNULL
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def apt_proxies() -> str:
    """The machine's proxy settings for apt, which mmdebstrap does not look at by itself."""
    lines = _output("apt-config", "dump").splitlines(keepends=True)
    return "".join(line for line in lines if re.match(r"Acquire::https?::Proxy\b", line))


def _run(command: list[str], folder: Path, epoch: int, progress: Callable[[str], None]) -> None:
    environment = {**os.environ, "LC_ALL": "C", "SOURCE_DATE_EPOCH": str(epoch), "TMPDIR": str(folder)}
    environment["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    log = folder / "mmdebstrap.log"

    def say(line: str) -> None:
        for start, said in SAID.items():
            if line.startswith(f"I: {start}"):
                progress(said)

    def look() -> None:
        if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
            raise disk_full(folder.parent)

    try:
        status = follow(command, log, environment, LONGEST_SECONDS, say, look=look)
    except TookTooLong:
        raise SetupError(
            f"Fetching Debian packages took longer than {LONGEST_SECONDS / 60:.0f} minutes.",
            "Look at this machine's network and run setup again; packages are fetched anew.",
        ) from None
    if status != 0:
        raise _failure(log.read_text(errors="replace"), folder)


def disk_full(place: Path) -> SetupError:
    return SetupError(
        f"The disk is full: {place} has no room for making the image.",
        f"Make {WORK_BYTES / 1e6:.0f} MB of room there, or name another place with TMPDIR; run setup again.",
    )


def _failure(log: str, folder: Path) -> SetupError:
    if "No space left on device" in log:
        return disk_full(folder.parent)
    errors = [line[2:].strip() for line in log.splitlines() if line.startswith("E:")]
    if unfetched := [error for error in errors if "Failed to fetch" in error]:
        return SetupError(
            f"The Debian mirror does not give what is needed: {unfetched[0]}.",
            "Look at this machine's network and apt's proxy settings, and run setup again.",
        )
    return SetupError(
        f"mmdebstrap could not make the root file system: {' / '.join(errors[:3]) or log[-300:].strip()}",
        "Mend that and run setup again, or build on a registry's image: `pybox-kernel setup --base python`.",
    )


def slim(unpacked: Path, finished: Path, base: DebianBase) -> None:
    """Copies a root file system without what is left out, without set-user-id bits, and with fixed times."""
    left_out = re.compile("|".join(f"(?:{fnmatch.translate(pattern)})" for pattern in base.left_out))
    with tarfile.open(unpacked) as source, tarfile.open(finished, "w", format=tarfile.GNU_FORMAT) as target:

        def add(member: tarfile.TarInfo, content: IO[bytes] | None = None) -> None:
            member.mtime = base.epoch
            member.uname = member.gname = ""
            member.pax_headers = {}
            member.mode &= 0o1777
            target.addfile(member, content)

        kept: dict[str, bytes] = {}
        for member in source:
            member.name = member.name.removeprefix("./").strip("/") or "."
            parts = member.name.split("/")
            content = source.extractfile(member) if member.isreg() else None
            if member.name in COPIED.values() and content is not None:
                kept[member.name] = content.read()
                content.seek(0)
            if not any(left_out.match("/".join(parts[: end + 1])) for end in range(len(parts))):
                add(member, content)
        for name, original in COPIED.items():
            member = tarfile.TarInfo(name)
            member.mode, member.size = 0o644, len(kept[original])
            add(member, io.BytesIO(kept[original]))
        for name, goal in LINKED.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.mode = tarfile.SYMTYPE, goal, 0o777
            add(member)
