"""A box's files onto this computer: all at once, into a folder that is new or empty, and never over anything.

They are written below one directory descriptor, into a folder beside the one they are for, which takes its place in one
step when all of them are there. They are the files of a program that is not trusted: never executable, never opened.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

from pybox_kernel.errors import OptionError, PyBoxError
from pybox_kernel.files.box_files import OutputFile, Spellings, fault, reserved
from pybox_kernel.files.named_paths import FOLDER, opened, placed, refuse, told
from pybox_kernel.files.work_folder import FILES, work_folder
from pybox_kernel.policy import Policy
from pybox_kernel.safe_display.text import safe_name

__all__ = ["check", "write"]

NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
ELSEWHERE: Final = (
    "Give a folder that does not exist yet, or an empty one; in a notebook, `%pybox use --output DIR` gives each cell"
    " one of its own."
)
ROOM: Final = "Make room on that disk, or name a folder on another, and run it again."
FULL: Final = (errno.ENOSPC, errno.EDQUOT)
TAKEN: Final = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EBUSY, errno.EPERM, errno.EACCES)
"""By others' files, a disk that is mounted there, or a user whose folder it is."""
MOST_FOLDERS: Final = 1000
"""Of one name, each with a number behind it."""


def check(folder: str, base: Path, cell: int | None = None) -> None:
    """Raises OptionError where ``write`` could not write, or not under that very name, as far as that can be seen
    before."""
    parent, name = target(folder, base, cell)
    try:
        if cell is not None:
            return
        shown = safe_name(folder, 100)
        with told(folder):
            mode = mode_of(parent, name)
        if mode is not None and not stat.S_ISDIR(mode):
            refuse(folder, mode)
        with told(folder):
            full = mode is not None and not is_empty(parent, name)
            disk = mode is not None and os.stat(name, dir_fd=parent).st_dev != os.fstat(parent).st_dev
        if disk:
            raise OptionError(f"{shown} is where another disk is mounted.", "Name a new folder in it.")
        if full:
            raise OptionError(f"{shown} is not empty, and files from a box never go over others.", ELSEWHERE)
    finally:
        os.close(parent)


def share(folder: str, base: Path) -> None:
    """Makes the folder that the cells of a notebook share for their files, each with one of its own in it; there may
    be one already. Raises OptionError."""
    place = placed(folder, base)
    if not place.way:
        raise OptionError(f"{safe_name(folder, 100)} is not a new folder.", ELSEWHERE)
    parent, name = opened(folder, place), place.way[-1]
    try:
        with told(folder):
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=parent)
            mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        if not stat.S_ISDIR(mode):
            refuse(folder, mode)
    finally:
        os.close(parent)


def target(folder: str, base: Path, cell: int | None) -> tuple[int, str]:
    """A descriptor of the folder that it is or will be in, and its first name there; for a ``cell``, of ``folder``
    itself and the cell's own in it. Raises OptionError."""
    place = placed(folder, base)
    if not place.way:
        raise OptionError(f"{safe_name(folder, 100)} is not a new folder.", ELSEWHERE)
    if cell is not None:
        place = place._replace(way=(*place.way, f"cell-{cell}"))
    parent = opened(folder, place)
    try:
        with told(folder):
            if not os.access(".", os.W_OK | os.X_OK, dir_fd=parent):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except BaseException:
        os.close(parent)
        raise
    return parent, place.way[-1]


def write(policy: Policy, files: Sequence[OutputFile], folder: str, base: Path, cell: int | None = None) -> str | None:
    """Makes a folder with ``files`` in it, or nothing where there are none: ``folder``, or with a ``cell`` one for it
    alone in there. Where another took that name meanwhile, the next free one is taken, with a number behind it.

    Returns the path it has in the end. Raises PyBoxError, with nothing left of it; of it InputError where the folder
    or a name cannot be taken."""
    check_names(policy, files)
    try:
        parent, name = target(folder, base, cell)
    except OptionError as error:
        raise OptionError(f"No file was written: {error.message}", ELSEWHERE) from error
    try:
        if not files:
            return None
        with work_folder(parent) as work:
            made = f"{work}/{FILES}"
            os.mkdir(made, 0o755, dir_fd=parent)
            make(parent, made, files)
            taken = put(parent, made, name, new=cell is not None)
    except OSError as error:
        advice = ROOM if error.errno in FULL else ELSEWHERE
        raise PyBoxError(f"No file was written to {safe_name(folder, 100)}: {error.strerror}.", advice) from error
    finally:
        os.close(parent)
    path = PurePosixPath(folder)
    return str(path / taken if cell is not None else path.with_name(taken))


def put(parent: int, made: str, name: str, *, new: bool) -> str:
    """Moves the folder ``made`` to ``name``, or to the first name after it that is free; that name. An empty folder
    which is there already is taken over and keeps its mode, unless it has to be a ``new`` one."""
    for free in (name, *(f"{name}-{number}" for number in range(2, MOST_FOLDERS))):
        own = True
        try:
            os.mkdir(free, dir_fd=parent)  # whoever makes it has it
        except FileExistsError:
            if new or free != name:
                continue
            own = False
            mode = mode_of(parent, name)
            if mode is not None and stat.S_ISDIR(mode):
                os.chmod(made, stat.S_IMODE(mode) | stat.S_IRWXU, dir_fd=parent)
        try:
            os.rename(made, free, src_dir_fd=parent, dst_dir_fd=parent)  # over an empty folder, and nothing else
        except OSError as error:
            if (own and removed(parent, free)) or error.errno not in TAKEN:
                raise
        else:
            return free
    raise FileExistsError(errno.EEXIST, f"there are {MOST_FOLDERS:,} of that name already")


def removed(parent: int, name: str) -> bool:
    """Whether a folder was empty still, and is gone now."""
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError:
        return False
    return True


def check_names(policy: Policy, files: Sequence[OutputFile]) -> None:
    spellings = Spellings()
    for file in files:
        shown = safe_name(file.name, 100)
        if wrong := fault(policy, file.name) or reserved(file.name):
            raise OptionError(f"The file {shown} is not written: its name {wrong}.", "Rename it in the program.")
        if met := spellings.meets(file.name):
            raise OptionError(
                f"The files {safe_name(met, 100)} and {shown} are not written: "
                "some computers take their names for the same.",
                "Rename one of them in the program.",
            )


def mode_of(parent: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def is_empty(parent: int, name: str) -> bool:
    folder = os.open(name, FOLDER, dir_fd=parent)
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    finally:
        os.close(folder)


def make(parent: int, made: str, files: Sequence[OutputFile]) -> None:
    top = os.open(made, FOLDER, dir_fd=parent)
    try:
        for file in files:
            make_one(top, file)
    finally:
        os.close(top)


def make_one(top: int, file: OutputFile) -> None:
    *folders, last = file.name.split("/")
    folder = os.dup(top)
    try:
        for part in folders:
            with suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=folder)
            above, folder = folder, os.open(part, FOLDER, dir_fd=folder)
            os.close(above)
        descriptor = os.open(last, NEW_FILE, 0o644, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(descriptor, "wb") as written:
        written.write(file.data)
        written.flush()
        mark(descriptor)


def mark(descriptor: int) -> None:
    """As downloaded, where the system has a mark that its programs heed: macOS. Elsewhere the origin alone."""
    with suppress(OSError):  # not every disk has room for marks
        if sys.platform == "darwin":
            value = f"0083;{int(time.time()):08x};PyBox;".encode()
            libc = ctypes.CDLL(None, use_errno=True)
            libc.fsetxattr(descriptor, b"com.apple.quarantine", value, ctypes.c_size_t(len(value)), 0, 0)
        else:
            os.setxattr(descriptor, "user.xdg.origin.url", b"pybox:box")
