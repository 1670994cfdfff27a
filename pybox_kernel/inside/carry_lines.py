"""Which cell a function of an earlier cell came from, and that cell's lines, for tracebacks."""

from __future__ import annotations

from pybox_kernel.inside.cell import CELL, source_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

FOLDER = CELL.rpartition("/")[0]
MOST_TEXT = 262_144
"""Characters of all cells whose lines are carried; of what is over, the oldest go."""

this_cell = CELL
"""The name of the file that functions of this cell are said to be of, once they are carried."""
texts: dict[str, str] = {}
"""By that name, the cells of whose functions some are carried: the oldest first."""
used = False
"""A function of this cell is carried."""


def begin(number: object) -> None:
    """``number`` is that of this cell, where it has one."""
    global this_cell  # noqa: PLW0603 - one process, one cell
    if type(number) is int:
        this_cell = "%s/cell-%d.py" % (FOLDER, number)
    else:
        import zlib

        this_cell = "%s/cell-of-%08x.py" % (FOLDER, zlib.crc32("".join(source_lines).encode("utf-8", "replace")))


def place_in(code: CodeType) -> str:
    """The name of the file that ``code`` is of, for other cells."""
    global used  # noqa: PLW0603
    if code.co_filename != CELL:
        return code.co_filename
    used = True
    return this_cell


def state() -> dict[str, str]:
    found = dict(texts)
    if used:
        found.pop(this_cell, None)
        found[this_cell] = "".join(source_lines)
    while sum(map(len, found.values())) > MOST_TEXT:
        del found[next(iter(found))]
    return found


def restore(carried: dict[str, Any]) -> None:
    import linecache

    texts.update(carried)
    for name, text in texts.items():
        lines = text.splitlines(keepends=True)
        linecache.cache[name] = (len(text), None, lines, name)


def name_of(path: str) -> str | None:
    """What a reader calls the cell that has this file name; None for any other file."""
    if not path.startswith(FOLDER + "/cell-") or not path.endswith(".py"):
        return None
    number = path[len(FOLDER) + 6 : -3]
    return "Cell " + number if number.isdecimal() else "An earlier cell"
