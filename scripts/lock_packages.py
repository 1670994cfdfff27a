"""Makes the locks that PyBox ships, ``pybox_kernel/images/locks/*.txt``, from what the package index has today.

`python scripts/lock_packages.py [NAME...]`. One version of each package for every Python and machine that boxes are
for, with the hashes of all their wheels. Look at the changes before they are committed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from pybox_kernel.images.offers import BUILT_IN
from pybox_kernel.images.package_locks import LockedPackage, lock_of
from pybox_kernel.images.wheels import Target, make_lock

LOCKS: Final = Path(__file__).parent.parent / "pybox_kernel" / "images" / "locks"
WANTED: Final = {
    "data": ("numpy", "pandas", "matplotlib", "jinja2"),
    "class": ("numpy", "pandas", "matplotlib", "jinja2", "scipy", "scikit-learn", "seaborn"),
}
TARGETS: Final = [
    Target(python, machine, glibc=(2, 36))
    for python in ((3, 11), (3, 12), (3, 13))
    for machine in ("x86_64", "aarch64")
]


def locked(wanted: tuple[str, ...]) -> str:
    versions: dict[str, str] = {}
    hashes: dict[str, set[str]] = {}
    for number, target in enumerate(TARGETS):
        # What the oldest Python gets is right for the others too.
        pinned = [f"{name}=={version}" for name, version in versions.items()] if number else wanted
        for package in make_lock(pinned, target, print).packages:
            if versions.setdefault(package.name, package.version) != package.version:
                sys.exit(f"{package.name} has no version that is for all targets")
            hashes.setdefault(package.name, set()).update(package.hashes)
    return lock_of(LockedPackage(name, versions[name], tuple(sorted(hashes[name]))) for name in versions).text


def main() -> None:
    for name in sys.argv[1:] or BUILT_IN:
        heading = f"# {', '.join(WANTED[name])}: Python 3.11 to 3.13 on Linux, x86-64 and arm64.\n"
        heading += "# Made by scripts/lock_packages.py.\n"
        (LOCKS / f"{name}.txt").write_text(heading + locked(WANTED[name]))


if __name__ == "__main__":
    main()
