"""Paths that a person names, for files into a box and out of it: where they begin, and no links on the way.

A folder that came with a stranger's notebook may hold links to anywhere. So below the folder that a path counts from
each step is taken by a directory descriptor and follows no link. What lies outside is reached only where the path
itself says so: it is absolute, or begins with ``..``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple, NoReturn

from pybox_kernel.errors import OptionError
from pybox_kernel.files.box_files import reserved
from pybox_kernel.safe_display.text import safe_name

__all__ = ["FOLDER", "Place", "check_beside", "facts_of", "opened", "placed", "refuse", "told"]

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
KINDS: Final = {
    stat.S_IFLNK: "a link, and links are not followed",
    stat.S_IFIFO: "a pipe, and no file",
    stat.S_IFSOCK: "a socket, and no file",
    stat.S_IFCHR: "a device, and no file",
    stat.S_IFBLK: "a device, and no file",
    stat.S_IFREG: "a file, and no folder",
}


class Place(NamedTuple):
    start: Path
    """A folder that is opened as it is named."""
    way: tuple[str, ...]
    """From there, step by step; empty for the folder itself."""
    name: str
    """What it is called in a box: its path where that lies below the base, else its last part."""


def placed(path: str, base: Path) -> Place:
    """Where ``path`` leads, which counts from ``base``, an absolute path. Raises OptionError."""
    pure = PurePosixPath(path)
    parts = [part for part in pure.parts if part != "."]
    if not path or "\0" in path:
        raise OptionError("A file name is empty or holds a NUL.", "Give the path of a file or a folder.")
    if parts and parts[0].startswith("~"):
        raise OptionError(f"{safe_name(path, 100)} begins with ~, which means nothing here.", "Write the whole path.")
    if pure.is_absolute() and ".." in parts:
        raise OptionError(f"{safe_name(path, 100)} goes down and up again.", "Write the path without '..' in it.")
    if pure.is_absolute() and pure.is_relative_to(base):
        parts = list(pure.relative_to(base).parts)
    elif pure.is_absolute():
        if parts[-1] in ("/", "//"):
            raise no_name(path)
        return Place(Path(pure.parent), (parts[-1],), parts[-1])
    up = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
    way = tuple(parts[up:])
    if ".." in way:
        raise OptionError(
            f"{safe_name(path, 100)} goes down and up again.", "Write the path without '..' in its middle."
        )
    if up and not way:
        raise no_name(path)
    return Place(base.joinpath(*parts[:up]), way, way[-1] if up else "/".join(way))


def check_beside(path: str, base: Path) -> None:
    """For a path that a notebook names, which may be a stranger's: settings, keys and programs lie elsewhere. Raises
    OptionError unless it lies below ``base``, and by no name that is hidden or that a computer keeps for itself."""
    place, shown = placed(path, base), safe_name(path, 100)
    if place.start != base:
        raise OptionError(
            f"{shown} is not below the notebook's folder, where a notebook's files come from and go to.",
            "Put a copy beside the notebook, or use `pybox-kernel run` at a shell.",
        )
    for part in place.way:
        wrong = reserved(part) or ("has a character that cannot be shown" if safe_name(part, 1000) != part else None)
        if wrong:
            raise OptionError(f"{shown}: the name {safe_name(part, 100)} {wrong}.", "Name a plain file or folder.")


def no_name(path: str) -> OptionError:
    return OptionError(f"{safe_name(path, 100)} ends in no name of its own.", "Name a folder or a file in it.")


def opened(path: str, place: Place) -> int:
    """A descriptor of the folder that the last part of the way is in. Raises OptionError."""
    with told(path):
        folder = os.open(place.start, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for number, part in enumerate(place.way[:-1], 1):
            shown = "/".join(place.way[:number])
            mode = facts_of(folder, part, shown).st_mode
            if not stat.S_ISDIR(mode):
                refuse(shown, mode)
            with told(shown):
                above, folder = folder, os.open(part, FOLDER, dir_fd=folder)
            os.close(above)
    except BaseException:
        os.close(folder)
        raise
    return folder


def facts_of(folder: int, part: str, path: str) -> os.stat_result:
    with told(path):
        return os.stat(part, dir_fd=folder, follow_symlinks=False)


def refuse(path: str, mode: int) -> NoReturn:
    kind = KINDS.get(stat.S_IFMT(mode), "of a kind of its own")
    raise OptionError(f"{safe_name(path, 100)} is {kind}.", "Name the file or folder itself.")


@contextmanager
def told(path: str) -> Iterator[None]:
    """The system's trouble with a path, as an OptionError."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a character that no path can have
        why = error.strerror if isinstance(error, OSError) else "no name that this computer could have"
        raise OptionError(f"{safe_name(path, 100)}: {why}.", "Name a file or a folder that you may use.") from error
