"""The working directory and the files in it, as they are carried from one cell to the next.

Regular files and folders below ``/box`` with their modes and times, at most MOST_BYTES of them together; what has not
changed since it came in is told from its size, times and number alone. No links: they are told as lost.
"""

from __future__ import annotations

import os
import stat

from pybox_kernel.inside import parcels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Print = tuple[int, int, int, int, int]

ROOT = "/box"
MOST_BYTES = 8 << 20
MOST_FILES = 1000


class Found:
    """What there is: the folders, the files by what tells that they changed, and what is no file."""

    def __init__(self) -> None:
        self.folders: dict[str, int] = {}
        self.files: dict[str, Print] = {}
        self.others: list[tuple[str, str]] = []


def look() -> Found:
    found = Found()
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(os.scandir(os.path.join(ROOT, folder)), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            path = os.path.join(folder, entry.name)
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode):
                found.folders[path] = stat.S_IMODE(status.st_mode)
                waiting.append(path)
            elif stat.S_ISREG(status.st_mode):
                mode = stat.S_IMODE(status.st_mode)
                found.files[path] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, mode)
            else:
                found.others.append((path, "link" if stat.S_ISLNK(status.st_mode) else "special file"))
    return found


def digests(folder: dict[str, Any]) -> list[list[str]]:
    """Of the files that ``state`` found, but for those whose names are no text."""
    return [[path, parcels.digest([content]).hex()] for path, _, _, content in folder.get("files", ()) if is_text(path)]


def is_text(path: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in path)


def kept(found: Found, restored: Found) -> list[str]:
    """The files that are as ``restore`` made them, but for those whose names are no text."""
    same = [path for path, print_ in found.files.items() if restored.files.get(path) == print_ and is_text(path)]
    return same[:MOST_FILES]


def here() -> str:
    """The working directory; empty where it is ROOT, as in a fresh box, or is gone."""
    try:
        path = os.getcwd()
    except OSError:
        return ""
    return path if path != ROOT else ""


def state(found: Found, put_in: Found) -> tuple[dict[str, Any], list[tuple[str, str, str]]]:
    """What is carried, and what is not: path, what it is, why. ``put_in`` is how the box was before the cell: copies of
    the person's files stay out, changed or not, as the next cell gets them anew. Raises nothing for a file that cannot
    be read."""
    files: list[tuple[str, int, int, bytes]] = []
    lost = [(path, kind, "links and special files are not carried") for path, kind in found.others]
    size = 0
    for path, print_ in found.files.items():
        if path in put_in.files:
            if put_in.files[path] != print_:
                lost.append((path, "file", "it is a copy of yours from --input, and changes to those are discarded"))
            continue
        size += print_[0]
        if size > MOST_BYTES or len(files) >= MOST_FILES:
            size -= print_[0]
            lost.append((path, "file", "the files that are carried have at most 8 MB together"))
            continue
        try:
            with open(os.path.join(ROOT, path), "rb") as file:
                content = file.read(MOST_BYTES + 1)
        except OSError:
            lost.append((path, "file", "it cannot be read"))
            continue
        files.append((path, print_[4], print_[1], content))
    folders = {path: mode for path, mode in found.folders.items() if path not in put_in.folders}
    where = here()
    return ({"here": where, "folders": folders, "files": files} if where or folders or files else {}), lost


def restore(carried: dict[str, Any]) -> None:
    """Nothing that is there already is replaced. Raises OSError where a file finds no room."""
    for path in sorted(carried["folders"]):
        os.makedirs(os.path.join(ROOT, path), exist_ok=True)
    for path, mode, modified, content in carried["files"]:
        place = os.path.join(ROOT, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if os.path.lexists(place):  # a copy of the person's own file, which this cell asked for
            continue
        with open(place, "wb") as file:
            file.write(content)
        os.chmod(place, mode)
        os.utime(place, ns=(modified, modified))
    for path in sorted(carried["folders"], reverse=True):
        os.chmod(os.path.join(ROOT, path), carried["folders"][path])
    if carried["here"]:
        os.chdir(carried["here"])
