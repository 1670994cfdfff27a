"""No near miss of ``%%pybox`` runs outside of a box: each cell is looked at before anything of it runs.

``inspect_cell`` decides from the text alone. It is given the lines as IPython has cut and cleaned them up right before
it looks for magics, and so knows which line IPython will take for a magic. Where a person may see one and IPython will
not, the cell is refused. What stands in a text over several lines is not told from code: such a cell is refused too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from pybox_kernel.notebook.commands import CELL_MAGIC, MAGIC

__all__ = ["HOST", "NearMiss", "Verdict", "inspect_cell"]

HOST: Final = "%%host"
NAME: Final = "pybox"
WRAPPERS: Final = ("%%time", "%%capture")
"""Magics of IPython's own that give the lines below them back to IPython as a cell."""
EXPANDED: Final = "{$"
"""Where IPython sees these behind a magic, it puts in what the expression comes to."""

PERCENTS: Final = "%\u0609\u060a\u066a\u2030\u2031\u2052\ufe6a\uff05"
LETTERS: Final = (
    "p\u0440\u03c1",
    "y\u0443\u04af\u03b3\u03c5",
    "b\u0432\u044c\u03b2",
    "o\u043e\u03bf\u06f50",
    "x\u0445\u03c7\u00d7",
)
LOOK_ALIKES: Final = str.maketrans({other: letters[0] for letters in (PERCENTS, *LETTERS) for other in letters[1:]})
UNSEEN: Final = ("Cf", "Mn", "Me", "Cn", "Co", "Cs")
SPACES: Final = ("Zs", "Zl", "Zp", "Cc")
MARKED: Final = re.compile(r"[^\w%'\"]*(?P<percents>%[%\s]*)(?P<name>[\w.-]*)(?:\s+(?P<more>[\w.-]+))?")
BEHIND: Final = re.compile(r"(?:\s|(?<=[^%\s])(?=%%))(%%[%\s]*|%)([\w.-]+)")
ASSIGNED: Final = re.compile(r"[\w\s.,*()\[\]]+=\s*(%[%\s]*)([\w.-]+)")
WRITTEN: Final = re.compile(r"%+(\w+)")
LONGEST: Final = 400
"""Characters of a line that are looked at: what is near a magic stands at its beginning."""


class NearMiss(NamedTuple):
    """Why a cell is not run, and what to write instead."""

    message: str
    advice: str


class Verdict(NamedTuple):
    """What kind of a cell it is; for a sealed one also which of its lines has the ``%%pybox``.

    ``sealed``    its first line but for comments is ``%%pybox``: it goes into a box
    ``wrapped``   the same below a magic that gives it back to IPython
    ``host``      its first line is ``%%host``: it is to run on this computer
    ``command``   nothing but ``%pybox`` lines
    ``plain``     anything else
    """

    kind: Literal["sealed", "wrapped", "host", "command", "plain"]
    line: int = 0


def inspect_cell(lines: Sequence[str], known: Callable[[str], bool]) -> Verdict | NearMiss:
    """``known`` says of a name whether another magic has it: that is no near miss."""
    code = [number for number, line in enumerate(lines) if line.strip() and not is_comment(line)]
    first = lines[code[0]] if code else ""
    word = first.split(None, 1)[0] if first.startswith("%") else ""
    if word == CELL_MAGIC:
        return Verdict("sealed", code[0])
    if (seen := mark_behind(first)) and (seen != "%" or len(code) > 1):
        return refused(f"`{first.strip()[:40]}` is no `{CELL_MAGIC}`.")
    if word == HOST and code[0] == 0:
        return Verdict("host")
    if word in WRAPPERS and code[0] == 0:
        inner = inspect_cell(lines[1:], known)
        if isinstance(inner, NearMiss):
            return inner
        if inner.kind == "host":
            return refused(f"`{HOST}` stands below `{word}`.")
        if inner.kind != "plain" and any(sign in first for sign in EXPANDED):
            return refused(f"IPython would compute what stands behind `{word}` outside of a box.")
        return Verdict("wrapped") if inner.kind == "sealed" else inner
    for number, line in enumerate(lines):
        if (seen := mark_in(line, known)) and (why := fault(seen, line, number, code)):
            return refused(why)
    commands = [number for number in code if is_command(lines[number])]
    if commands and code[-1] > commands[-1]:
        return refused(f"There is a program below `{MAGIC}`, which is for commands.")
    return Verdict("command" if commands and len(commands) == len(code) else "plain")


def mark_in(line: str, known: Callable[[str], bool]) -> str:
    """The percent signs that a line begins with, if it looks like ``%pybox`` or ``%%pybox``; else nothing."""
    start = line[:LONGEST]
    if not any(percent in start for percent in PERCENTS):
        return ""
    found = MARKED.match(plain(start))
    if found is None:
        return ""
    written = WRITTEN.match(start.strip())
    if written is not None and written[1] != NAME and known(written[1]):
        return ""
    name, more = found["name"], found["more"] or ""
    return "%" * found["percents"].count("%") if name.startswith(NAME) or is_near(name) or is_near(name + more) else ""


def mark_behind(line: str) -> str:
    """The same of what stands behind another magic in its line, or behind an equals sign."""
    if is_command(line) or "%" not in (start := plain(line[:LONGEST])):
        return ""
    marks = BEHIND.finditer(start) if line.startswith("%") else ASSIGNED.finditer(start)
    return next((mark[1].strip() for mark in marks if mark[2].startswith(NAME) or is_near(mark[2])), "")


def fault(seen: str, line: str, number: int, code: Sequence[int]) -> str:
    """What is wrong with such a line in a cell whose lines ``code`` are none of comments; nothing if all is well."""
    shown, alone = line.strip()[:40], len(code) == 1
    first = not code or number <= code[0]
    if is_comment(line):
        return f"`{CELL_MAGIC}` stands in a comment, where it does nothing." if first and seen != "%" else ""
    if seen == "%":
        return "" if alone or not first or is_command(line) else f"`{shown}` is no `{CELL_MAGIC}`."
    if "?" in (shown[0], shown[-1]):
        return "" if alone else f"`{shown}` asks for help, and there are lines below it."
    return f"`{shown}` is no `{CELL_MAGIC}`." if first else f"`{shown}` stands in line {number + 1} of the cell."


def refused(why: str) -> NearMiss:
    return NearMiss(
        f"Nothing was run. {why}",
        f"Put `{CELL_MAGIC}`, just so, into the first line; or `{HOST}`, to run the cell on this computer.",
    )


def is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def is_command(line: str) -> bool:
    return line.split(None, 1)[:1] == [MAGIC]


def plain(text: str) -> str:
    """As it looks: without what cannot be seen, and with plain characters for those that look like them."""
    spread = unicodedata.normalize("NFKD", text.translate(LOOK_ALIKES))
    kinds = ((character, unicodedata.category(character)) for character in spread)
    seen = "".join(" " if kind in SPACES else character for character, kind in kinds if kind not in UNSEEN)
    return seen.casefold().translate(LOOK_ALIKES)


def is_near(name: str) -> bool:
    """It is ``pybox``, or one slip away: a letter more, one less, another one, or two that changed places."""
    name = re.sub(r"[\W_]", "", name)
    if abs(len(name) - len(NAME)) > 1:
        return False
    if len(name) == len(NAME):
        others = [at for at in range(len(NAME)) if name[at] != NAME[at]]
        return len(others) < 2 or (len(others) == 2 and sorted(name) == sorted(NAME) and others[1] - others[0] == 1)
    longer, shorter = sorted((name, NAME), key=len, reverse=True)
    return any(longer[:at] + longer[at + 1 :] == shorter for at in range(len(longer)))
