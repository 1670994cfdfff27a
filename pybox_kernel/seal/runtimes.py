"""The container runtimes that an engine may be set to: which can hold a box's seal, and what is known against them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from pybox_kernel.engine import EngineVersions

__all__ = ["Runtime", "known_weakness", "runtime_in_words", "runtime_of", "usable"]

RUNC: Final = frozenset({"runc", "io.containerd.runc.v2"})
OTHERS: Final = (
    ("runsc", "gVisor has a kernel of its own, and Linux's files beside the box do not show its limits"),
    ("gvisor", "gVisor has a kernel of its own, and Linux's files beside the box do not show its limits"),
    ("kata", "Kata has a virtual machine for each box, and does not pass on what its kernel counts or refuses"),
    ("sysbox", "Sysbox gives a box more than it is asked for: a user namespace, and files of its own under /proc"),
    ("youki", "PyBox has not been tried with youki"),
    ("nvidia", "it puts devices and folders of this computer into boxes"),
)
"""What a name holds, and why a box of that runtime is not sealed as required."""


class Runtime(NamedTuple):
    """That of one box."""

    name: str | None
    version: str | None
    """With the package's revision, where that is known; of runc alone, since engines tell of no other."""
    warning: str | None


def usable(name: object) -> bool:
    return isinstance(name, str) and (name in RUNC or name == "crun")


def runtime_in_words(name: object) -> str:
    """With the reason, where it is known and is not to be used."""
    if not isinstance(name, str) or not name:
        return "nothing"
    reason = next((why for part, why in OTHERS if part in name.lower()), None)
    return name if reason is None or usable(name) else f"{name}: {reason}"


def runtime_of(name: str | None, versions: EngineVersions | None) -> Runtime:
    """``name`` as the engine's record of a box has it, ``versions`` as the engine gave them."""
    if name not in RUNC or versions is None or not versions.runc:
        return Runtime(name, None, None)
    return Runtime(name, versions.runc_revision or versions.runc, known_weakness(versions.runc, versions.runc_revision))


FIRST_FIXED: Final = {2: 8, 3: 3}
"""Of runc 1: the first release of each line without the ways out of November 2025."""
OF_2024: Final = "the way out of a container of January 2024 (CVE-2024-21626)"
OF_2025: Final = "those of November 2025 (CVE-2025-31133, CVE-2025-52565, CVE-2025-52881)"
MENDED_BY_DEBIAN: Final = {"1.1.5+ds1-1+deb12u1": "of these, Debian has mended that of 2024 in it"}
"""By its changelog."""


def known_weakness(version: str, revision: str = "") -> str | None:
    """What is known against this version of runc; None where nothing is. Raises nothing: a version in another form is
    said to be unknown.

    Sources: runc's security advisories of 2024-01-31 and 2025-11-05.
    """
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)(?:-rc\.?(\d+))?", version)
    if found is None:
        return "its version is not known"
    major, minor, patch = (int(part) for part in found.groups()[:3])
    candidate = int(found[4]) if found[4] else None
    if (major, minor) > (1, 4) or ((major, minor) == (1, 4) and (patch > 0 or candidate is None or candidate >= 3)):
        return None
    if (major, minor) < (1, 4) and major == 1 and minor in FIRST_FIXED and patch >= FIRST_FIXED[minor]:
        return None
    old = (major, minor) < (1, 1) or ((major, minor) == (1, 1) and patch < 12)
    weak = f"{OF_2024} and {OF_2025}" if old else f"the ways out {OF_2025.removeprefix('those ')}"
    if revision in MENDED_BY_DEBIAN:
        return f"it is of a version that has {weak}; {MENDED_BY_DEBIAN[revision]}"
    return f"it is of a version that has {weak}, unless its maker has mended them in place"
