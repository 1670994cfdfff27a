"""Files on their way into a box and out of it: copies, under names that mean the same on every computer.

A name is relative, its parts are joined by ``/``, and it stays below the folder it is put into. Names from a box are as
untrusted as its bytes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final, NamedTuple

from pybox_kernel.errors import OptionError
from pybox_kernel.policy import KIB, MIB, Policy
from pybox_kernel.safe_display.text import safe_name

__all__ = ["LONGEST_PART", "InputFile", "NotBrought", "OutputFile", "Spellings", "amount", "checked_inputs", "fault",
           "reserved"]  # fmt: skip

LONGEST_PART: Final = 255
"""Bytes of one part of a name: as long as Linux has them."""
DEVICES: Final = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9¹²³]|conin\$|conout\$) *(\..*)?", re.IGNORECASE)
OBEYED: Final = re.compile(
    r"(desktop\.ini|autorun\.inf|.*\.(desktop|library-ms|lnk|scf|searchconnector-ms|theme|url|website)) *",
    re.IGNORECASE,
)
"""What makes Windows ask some other computer for an icon, with the user's name, as soon as a folder is looked at, and
had an older KDE run what it names an icon by."""
UNUSABLE: Final = re.compile(r'[<>:"|?*\\]')


class InputFile(NamedTuple):
    """A copy to be put into a box's working directory."""

    name: str
    data: bytes
    source: str | None = None
    """The path by which a person named it, where that leads out of the folder that paths count from."""


class OutputFile(NamedTuple):
    """A copy of a file that a program made or changed in its working directory."""

    name: str
    data: bytes


class NotBrought(NamedTuple):
    """A file, or something that is none, which stayed in the box."""

    name: str
    """Made safe to show."""
    bytes: int | None
    why: str


def fault(policy: Policy, name: str) -> str | None:
    """What is wrong with a name anywhere, after "its name"; None if nothing is."""
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "leads somewhere else"
    if len(parts) - 1 > policy.file_depth:
        return f"has more than {policy.file_depth} folders in it"
    if safe_name(name, len(name) * 10) != name:
        return "has a character that cannot be shown"
    if any(len(part.encode()) > LONGEST_PART for part in parts):
        return f"has a part of more than {LONGEST_PART} bytes"
    return None


def reserved(name: str) -> str | None:
    """What is wrong with a name where it is to be written on any computer, after "its name"; None if nothing is."""
    parts = name.split("/")
    if parts[-1].casefold() == "head":
        return "would make its folder one whose settings git obeys when it looks at it"
    for part in parts:
        if part.startswith("."):
            return "begins with a dot: it would be hidden"
        if part.startswith("-"):
            return "begins with a hyphen: many programs would take it for an option"
        if part.casefold().startswith("__init__."):
            return "would make its folder one that Python programs import"
        if part != part.strip(" ") or part.endswith("."):
            return "begins or ends with a space, or ends with a dot"
        if UNUSABLE.search(part):
            return 'has one of < > : " | ? * \\ in it'
        if DEVICES.fullmatch(part):
            return "is one that Windows keeps for devices"
        if OBEYED.fullmatch(part):
            return "is one that some computers obey when its folder is looked at"
    return None


def folded(name: str) -> str:
    """The same for names that some disk takes for the same: by case, or by how accents are written (Unicode D145)."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


class Spellings:
    """The names so far, folders too, so that none meets another on a disk that does not tell them apart."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, bool]] = {}

    def meets(self, name: str) -> str | None:
        """The name before it that it cannot stand beside; None if there is none, and then it is one of them."""
        parts = name.split("/")
        wanted = [("/".join(parts[:count]), count == len(parts)) for count in range(1, len(parts) + 1)]
        for path, is_file in wanted:
            known = self._known.get(folded(path))
            if known is not None and (known != (path, is_file) or is_file):
                return known[0]
        self._known.update({folded(path): (path, is_file) for path, is_file in wanted})
        return None


def checked_inputs(policy: Policy, files: Iterable[InputFile]) -> tuple[InputFile, ...]:
    """The same files. Raises OptionError for a name or an amount that a box does not take."""
    taken = tuple(files)
    if len(taken) > policy.files:
        raise too_many(policy)
    spellings = Spellings()
    total = 0
    for file in taken:
        shown = safe_name(file.name, 100)
        if wrong := fault(policy, file.name):
            raise OptionError(f"The file {shown} cannot be put into a box: its name {wrong}.", "Rename it.")
        if met := spellings.meets(file.name):
            raise OptionError(
                f"The files {safe_name(met, 100)} and {shown} cannot both be put into a box: "
                "some computers take their names for the same.",
                "Rename one of them.",
            )
        total += len(file.data)
        if total > policy.file_bytes:
            raise too_big(policy, file.name, total)
    return taken


def too_many(policy: Policy) -> OptionError:
    if policy.files == 0:
        return OptionError(f"The box '{policy.image}' takes no files.", "Use one that does, or put the data in a cell.")
    return OptionError(f"There are more than {policy.files} files: a box takes no more.", "Name only those it needs.")


def too_big(policy: Policy, name: str, total: int) -> OptionError:
    return OptionError(
        f"With {safe_name(name, 100)} the files have {total:,} bytes; a box takes {policy.file_bytes:,} in all.",
        "Name only those it needs, or make them smaller.",
    )


def amount(number: int) -> str:
    """A limit in a sentence."""
    return f"{number // MIB} MB" if number >= MIB else f"{number // KIB} kB"
