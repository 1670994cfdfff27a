"""What the private machine needs of this computer, by the names of Debian's and Ubuntu's packages."""

from __future__ import annotations

import getpass
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["install_line", "may_unpack", "missing_to_build", "missing_to_run"]

TO_RUN: Final = {
    "qemu-system-x86_64": "qemu-system-x86",
    "setpriv": "util-linux",
    "setsid": "util-linux",
    "socat": "socat",
    "ssh": "openssh-client",
}
TO_BUILD: Final = {"mmdebstrap": "mmdebstrap", "ssh-keygen": "openssh-client", "mke2fs": "e2fsprogs"}
KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
SYSTEM: Final = "/usr/sbin:/sbin"
"""Where a plain user's PATH may not look."""


def missing_to_run() -> list[str]:
    return sorted({package for program, package in TO_RUN.items() if not there(program)})


def missing_to_build() -> list[str]:
    """All that is missing: a machine is started as it is made, too."""
    found = {package for program, package in (TO_RUN | TO_BUILD).items() if not there(program)}
    if not Path(KEYRING).is_file():
        found.add("debian-archive-keyring")
    if os.geteuid() != 0 and not there("newuidmap"):
        found.add("uidmap")
    return sorted(found)


def there(program: str) -> bool:
    return shutil.which(program, path=os.environ.get("PATH", "/usr/bin:/bin") + ":" + SYSTEM) is not None


def install_line(packages: list[str]) -> str:
    return f"Install it: `sudo apt-get install --no-install-recommends {' '.join(packages)}`."


def may_unpack() -> bool:
    """Whether this user has a range of subordinate user ids (subuid(5)), which unpacking without root needs."""
    if os.geteuid() == 0:
        return True
    names = {str(os.getuid())}
    with suppress(KeyError, OSError):  # a user id without an account
        names.add(getpass.getuser())
    return all(any(line.partition(":")[0] in names for line in lines(f"/etc/{kind}")) for kind in ("subuid", "subgid"))


def lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return []
