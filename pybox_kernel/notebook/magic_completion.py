"""What could be written at the cursor in a line with ``%pybox`` or ``%%pybox``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pybox_kernel.errors import PyBoxError
from pybox_kernel.notebook.commands import CELL_MAGIC, COMMANDS, MAGIC, OPTIONS
from pybox_kernel.sessions.images import known_images

__all__ = ["offered", "offered_in_a_box"]


OF_VALUES: Final = ("values_in", "values_out", "replace")
LONGEST: Final = 1000
"""Characters of a line."""


def offered_in_a_box(code: str, cursor: int) -> tuple[list[str], int] | None:
    """The same for a whole cell of a sealed notebook, where there are no values to be copied, and for the magics' own
    names; and where the word begins that is being written. None where the cursor is in no such line."""
    start = code.rfind("\n", 0, cursor) + 1
    line = code[start:cursor]
    if cursor - start > LONGEST or not line.startswith("%") or code[:start].strip():
        return None
    first, *others = re.split(r"\s+", line)
    if not others:
        found = [magic for magic in (MAGIC, CELL_MAGIC) if magic.startswith(first)]
        return (found, start) if found else None
    return (offered(line, None), cursor - len(others[-1])) if first in (MAGIC, CELL_MAGIC) else None


def offered(text: str, names: Iterable[str] | None) -> list[str]:
    """``text`` is the line up to the cursor; ``names`` are those of values that could be copied into a box, None where
    there are never any."""
    magic, *words = re.split(r"\s+", text.lstrip())
    if not words or magic not in (MAGIC, CELL_MAGIC):
        return []
    begun, before = words[-1], words[:-1]
    if magic == MAGIC and before[:1] != ["use"]:
        found = of_commands(before)
    else:
        found = of_options([word for word in before if word != "use"], magic == CELL_MAGIC, names)
    return [word for word in found if word.startswith(begun)]


def of_commands(before: list[str]) -> Iterable[str]:
    if not before:
        return COMMANDS
    word = COMMANDS.get(before[0])
    if word is None or len(before) != 1 or "|" not in word.takes:
        return ()
    return [form.strip("[]").split()[0] for form in word.takes.split("|")]


def of_options(before: list[str], of_one_cell: bool, names: Iterable[str] | None) -> list[str]:
    """Values first, where the last option takes some, and then the options that are not there yet."""
    there = [word for word in before if word in OPTIONS]
    option = OPTIONS[there[-1]] if there else None
    values: list[str] = []
    if option is not None and option.value and (option.many or before[-1] == there[-1]):
        if option.field == "image":
            values = images()
        elif option.field == "values_in":
            values = sorted(name for name in names or () if not name.startswith("_"))
        elif "|" in option.value:
            values = option.value.split("|")
        if before[-1] == there[-1] and not option.alone:
            return values  # an option comes after a value
    return values + [
        name
        for name, other in OPTIONS.items()
        if (name not in there or other.many)
        and (of_one_cell or not other.of_one_cell)
        and (names is not None or other.field not in OF_VALUES)
    ]


def images() -> list[str]:
    try:
        return sorted(known_images())
    except PyBoxError:
        return []
