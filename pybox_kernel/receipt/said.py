"""What a program said, as a receipt has it. Nothing of it was checked; all of it was made safe to show."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from pybox_kernel.policy import Count
from pybox_kernel.receipt.carried import LostValue, Model, NotRestoredValue, WhyMissing

__all__ = [
    "BoxFile",
    "CopiedValue",
    "FileNotBrought",
    "NotBroughtValue",
    "Said",
    "Sha256",
    "Stream",
    "Wall",
    "WallKind",
    "Withheld",
]

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]

WallKind = Literal[
    "module",
    "name",
    "file",
    "read_only",
    "full",
    "network",
    "input",
    "memory",
    "tasks",
    "files_open",
    "forbidden",
    "magic",
]
"""What a program wanted that a box does not give, as its exception shows (``inside/diagnosis.py``).

``module`` one that is not in the image; ``name`` one that an earlier cell defined; ``file`` one that is not there;
``read_only`` a place that cannot be written to; ``full`` no room; ``input`` a keyboard; ``tasks`` one more process or
thread; ``files_open`` one more open file; ``forbidden`` a system call; ``magic`` a magic or a shell command.
"""


class BoxFile(Model):
    """A file that went into the box, or came out of it. The hash is of the bytes as this computer had them."""

    name: str
    bytes: Count
    sha256: Sha256


class CopiedValue(Model):
    """A value that was copied into the program, or came back from it. The hash is of its bytes as they were sent."""

    name: str
    kind: str
    """In a few words: a list, a table of pandas."""
    shape: tuple[Count, ...]
    """How many entries; rows and columns; empty for what has none."""
    bytes: Count
    sha256: Sha256


class NotBroughtValue(Model):
    """A value that was asked for and did not come back."""

    name: str
    why: str
    """In words that stand after the name, made safe to show."""


class Stream(Model):
    """One of the program's two output streams."""

    bytes: Count
    kept: Count
    """Bytes kept: the beginning and the end; ``bytes - kept`` were dropped from the middle."""
    bad_bytes: Count
    """Bytes of the kept part that are not UTF-8, shown as replacement marks."""
    text: str | None = None
    """What was kept, made safe to show; null where the receipt stands beside its output."""


class Withheld(Model):
    """Something the program offered to show that PyBox did not let out."""

    what: str
    bytes: Count
    number: Count
    """How many such things; ``bytes`` is what they have together."""


class FileNotBrought(Model):
    """Something in the working directory that was not taken out."""

    name: str
    """Made safe to show."""
    bytes: Count | None
    """Null for what is no file."""
    why: str


class Wall(Model):
    """What an exception met, where it met one of the box's walls."""

    kind: WallKind
    what: str
    """The name of what was wanted: a module, a file, a host; made safe to show."""
    cell: Count | None
    """Of a name, the number of the earlier cell that defined it."""
    why_missing: WhyMissing | None = None
    """Of a name, why it was not carried from there; null where that cell knew of no carrying."""
    detail: str | None = None
    """What the program said of that, made safe to show."""


class Said(Model):
    """The program's word. Nothing here was checked."""

    completed: bool
    """That it reached its last statement."""
    stdout: Stream
    stderr: Stream
    displays: Count
    """Things it displayed; of them ``pictures``, ``tables`` and ``html`` are shown as such, the rest as plain text."""
    pictures: Count
    tables: Count
    html: Count
    withheld: tuple[Withheld, ...]
    error: str | None
    """The name of the exception it reported, made safe to show."""
    wall: Wall | None
    """What that exception met, if it met a wall of the box."""
    traceback: str | None = None
    """Its traceback, made safe to show; null where the receipt stands beside its output."""
    files: tuple[BoxFile, ...]
    """What it made or changed in its working directory, and was taken out: its word too."""
    not_brought: tuple[FileNotBrought, ...]
    """What was not; empty where no files were asked for."""
    not_brought_unlisted: Count
    """How many more were not."""
    files_left: Count
    """Files it made or changed that stayed in the box since none were asked for."""
    values: tuple[CopiedValue, ...] = ()
    """What it left under the names that were asked for, and was made again here: its word too."""
    values_not_brought: tuple[NotBroughtValue, ...] = ()
    lost: tuple[LostValue, ...] = ()
    """What it could not leave to later cells."""
    lost_more: Count = 0
    not_restored: tuple[NotRestoredValue, ...] = ()
    """What earlier cells left and it could not have."""
    not_restored_more: Count = 0
