"""What a build gets to see: its instructions, the in-box programs and the packages, as one tar file.

The same parts give the same bytes: in order of name, with fixed times and modes, without links.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from pybox_kernel.errors import SetupError
from pybox_kernel.images.recipes import ProgramFile

__all__ = ["write_context"]

MOST_BYTES: Final = 2_000_000_000
MOST_FILES: Final = 100_000
EPOCH: Final = 1735689600

SLIMMED: Final = frozenset(
    {"fontTools", "matplotlib", "mpl_toolkits", "numpy", "pandas", "scipy", "seaborn", "sklearn"}
)
"""Packages known to run without their own tests and without what is for compilers and editors; of no other is it known,
so others stay whole."""
STARTERS: Final = ("sitecustomize", "usercustomize")
"""Modules that every Python of the image would run as it starts, as it would the lines of a ``.pth`` file."""
KINDS_LEFT_OUT: Final = (".a", ".c", ".cpp", ".h", ".pxd", ".pxi", ".pyi", ".pyx")


def write_context(
    file: IO[bytes], dockerfile: str, programs: tuple[ProgramFile, ...], preload: tuple[str, ...], stage: Path | None
) -> None:
    """Writes the tar. ``stage`` has the packages as pip unpacked them. Raises SetupError for what no image takes."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        _add(tar, "Dockerfile", dockerfile.encode())
        for program in programs:
            _add(tar, f"pybox/{program.name}", program.content)
        if stage is None:
            return
        _add(tar, "offer/preload", "".join(f"{name}\n" for name in preload).encode())
        total = 0
        for number, path in enumerate(_files(stage), start=1):
            total += path.stat().st_size
            if number > MOST_FILES or total > MOST_BYTES:
                raise SetupError(
                    f"The packages have over {MOST_FILES:,} files or {MOST_BYTES // 10**9} GB.",
                    "Lock fewer packages, or smaller ones.",
                )
            _add(tar, f"offer/packages/{path.relative_to(stage).as_posix()}", path.read_bytes())


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(content), 0o444, EPOCH
    tar.addfile(member, io.BytesIO(content))


def _files(stage: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(stage):
        here = Path(root)
        top = here == stage
        package = "" if top else here.relative_to(stage).parts[0]
        folders[:] = sorted(name for name in folders if not _folder_left_out(name, package, top))
        for name in folders:
            _require(stat.S_ISDIR((here / name).lstat().st_mode), here / name, stage)
        for name in sorted(names):
            if (package in SLIMMED and name.endswith(KINDS_LEFT_OUT)) or (top and _starts(name)):
                continue
            _require(stat.S_ISREG((here / name).lstat().st_mode), here / name, stage)
            yield here / name


def _folder_left_out(name: str, package: str, top: bool) -> bool:
    if top:
        return name in ("bin", "include", "__pycache__") or _starts(name)
    return name == "__pycache__" or (name == "tests" and package in SLIMMED)


def _starts(name: str) -> bool:
    return name.endswith(".pth") or name.partition(".")[0] in STARTERS


def _require(sound: bool, path: Path, stage: Path) -> None:
    if not sound:
        raise SetupError(
            f"A package holds what is neither file nor folder: {path.relative_to(stage)}.", "Leave that package out."
        )
