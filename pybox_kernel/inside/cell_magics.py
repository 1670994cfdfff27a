"""Magics without IPython: lines of a cell that are no Python, each put into Python on its own line.

Only a cell that is not Python comes here. Line numbers hold, and so do the columns of every other line. A line that
cannot work in a box refuses the whole cell: nothing of it runs, and one sentence says what to do instead.
"""

from __future__ import annotations

import re

from pybox_kernel.inside.magic_advice import advice_on_command, advice_on_magic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pybox_kernel.inside.cell import Cell, Namespace

SILENT = ("config", "autoreload", "autosave", "xmode", "colors", "nbagg")
HARMLESS_EXTENSIONS = ("autoreload", "nb_black", "lab_black", "jupyter_black", "google.colab.data_table")
HARMLESS_BACKENDS = ("", "inline", "notebook", "widget", "agg", "nbagg", "ipympl", "none")
WORKING = ("time", "timeit")
WORKING_CELLS = ("time", "timeit", "capture", "python", "python3", "writefile", "file", "pybox")

ASSIGNED = re.compile(r"([ \t]*[A-Za-z_][\w., \t\[\]'\"*]*?[ \t]*=[ \t]*)([%!])(.*)", re.DOTALL)
ASKED_BEFORE = re.compile(r"([ \t]*)\?{1,2}[ \t]*([^\W\d][\w.]*)[ \t]*;?\s*$")
ASKED_AFTER = re.compile(r"([ \t]*)([^\W\d][\w.]*)[ \t]*\?{1,2}[ \t]*;?\s*$")
AUTOMATIC = re.compile(r"[ \t]*(?:(?:pip|pip3|conda|mamba)[ \t]+install|python3?[ \t]+-m[ \t]+pip)\b")
MAGIC = re.compile(r"%{1,2}([\w.-]*)(.*)", re.DOTALL)


class UsageError(Exception):
    """A magic or a shell line that does not work in a box."""

    __module__ = "builtins"  # so that its name stands alone in a traceback
    pybox_magic = True

    def __init__(self, advice: str, line: str = "", lineno: int = 0) -> None:
        super().__init__(advice)
        self.line = line[:200]
        self.lineno = lineno


class CellMagic:
    """A ``%%name rest`` line; ``body`` is the text below it."""

    def __init__(self, name: str, rest: str, lineno: int, body: str) -> None:
        self.name = name
        self.rest = rest
        self.lineno = lineno
        self.body = body


class Translation:
    """``refusal`` where the cell is not to run."""

    def __init__(self, text: str, magics: tuple[CellMagic, ...], refusal: UsageError | None) -> None:
        self.text = text
        self.magics = magics
        self.refusal = refusal


class Reader:
    """Where a line stands: in a string, in brackets, after a backslash. A rough one, since what it reads is no Python;
    it decides only where a statement may begin."""

    def __init__(self) -> None:
        self.quote = ""
        self.depth = 0
        self.continued = False

    @property
    def at_start(self) -> bool:
        return not (self.quote or self.depth or self.continued)

    def read(self, line: str) -> str:
        """The line without its comment."""
        line = line.rstrip("\n")
        position, self.continued = 0, False
        while position < len(line):
            here = line[position]
            if self.quote:
                if here == "\\":
                    position += 1
                elif line.startswith(self.quote, position):
                    position += len(self.quote) - 1
                    self.quote = ""
            elif here == "#":
                return line[:position]
            elif here in "\"'":
                self.quote = here * 3 if line.startswith(here * 3, position) else here
                position += len(self.quote) - 1
            elif here in "([{":
                self.depth += 1
            elif here in ")]}":
                self.depth = max(0, self.depth - 1)
            elif here == "\\" and position == len(line) - 1:
                self.continued = True
            position += 1
        if len(self.quote) == 1 and not line.endswith("\\"):
            self.quote = ""
        return line


def translate(source: str) -> Translation | None:
    """The cell as Python, as far as its magics go; None where there are none. Newlines in it are ``\\n`` alone."""
    lines = source.split("\n")
    kept = list(lines)
    magics: list[CellMagic] = []
    reader = Reader()
    begun = False
    number = 0
    while number < len(lines):
        line, first = lines[number], number
        stripped = line.lstrip(" \t\f")
        number += 1
        if not reader.at_start:
            reader.read(line)
            continue
        if stripped.startswith("%%") and not begun:
            magic = cell_magic(stripped, number, lines)
            if isinstance(magic, UsageError):
                return Translation(source, (), magic)
            magics.append(magic)
            kept[first] = ""
            if magic.name in ("writefile", "file"):
                kept = [""] * len(lines)
                break
            continue
        code = reader.read(line) if stripped[:1] not in ("%", "!", "?") else ""
        assigned = ASSIGNED.match(line)
        if stripped[:1] in ("%", "!") or assigned or AUTOMATIC.match(line):
            if code:
                reader = Reader()
            while line.endswith("\\") and number < len(lines):
                line = line[:-1] + lines[number]
                kept[number] = ""
                number += 1
            found = in_python(line, assigned is not None)
        else:
            asked = ASKED_BEFORE.match(line) or (ASKED_AFTER.match(code) if reader.at_start else None)
            if asked is None:
                if stripped[:1] == "?":
                    reader.read(line)
                begun = begun or bool(code.strip())
                continue
            found = "%sget_ipython().run_line_magic('pinfo', %r)" % (asked[1], asked[2])
        begun = True
        if isinstance(found, UsageError):
            found.line, found.lineno = line.strip()[:200], first + 1
            return Translation(source, (), found)
        kept[first] = found
    text = "\n".join(kept)
    return Translation(text, tuple(magics), None) if magics or text != source else None


def in_python(line: str, assigned: bool) -> str | UsageError:
    """One line that begins with a magic or a command, or assigns its result."""
    before, rest = line[: len(line) - len(line.lstrip(" \t\f"))], line.lstrip(" \t\f")
    if assigned and rest[0] not in "%!":
        match = ASSIGNED.match(line)
        assert match is not None
        before, rest = match[1], match[2] + match[3]
    else:
        assigned = False
    if rest[0] != "%":
        return UsageError(advice_on_command(rest.lstrip("!")))
    match = MAGIC.match(rest)
    assert match is not None
    name, argument = match[1], match[2].strip()
    if rest.startswith("%%"):
        return UsageError("%%%%%s has to stand in the first line of its cell." % name)
    if name in WORKING:
        return "%sget_ipython().run_line_magic(%r, %r)" % (before, name, argument)
    if is_silent(name, argument):
        return before + ("None" if assigned else "pass")
    return UsageError(advice_on_magic(name, argument))


def is_silent(name: str, argument: str) -> bool:
    if name == "matplotlib":
        return argument.lower() in HARMLESS_BACKENDS
    if name in ("load_ext", "reload_ext"):
        return argument in HARMLESS_EXTENSIONS
    return name in SILENT


def cell_magic(line: str, number: int, lines: list[str]) -> CellMagic | UsageError:
    match = MAGIC.match(line)
    assert match is not None
    name, rest = match[1], match[2].strip()
    if name not in WORKING_CELLS:
        return UsageError(advice_on_magic(name, rest, whole_cell=True), line.strip(), number)
    if name == "pybox" and rest:
        return UsageError(advice_on_magic(name, rest, whole_cell=True), line.strip(), number)
    return CellMagic(name, rest, number, "\n".join(lines[number:]))


def wrapped(cell: Cell, namespace: Namespace, inner: Callable[[], object]) -> Callable[[], object]:
    """The cell's own run inside its ``%%`` magics, the first of them outermost."""
    for magic in reversed(cell.magics):
        inner = around(magic, cell, namespace, inner)
    return inner


def around(magic: CellMagic, cell: Any, namespace: Namespace, inner: Callable[[], object]) -> Callable[[], object]:
    if magic.name == "time":
        from pybox_kernel.inside.timing import timed

        return lambda: timed(inner)
    if magic.name == "timeit":
        from pybox_kernel.inside.timing import timeit

        return lambda: timeit(magic.rest, cell.tree.body, namespace, magic.lineno)
    if magic.name == "capture":
        from pybox_kernel.inside.capture import capture

        return lambda: capture(magic.rest, namespace, inner)
    if magic.name in ("writefile", "file"):
        return lambda: write_file(magic.rest, magic.body)
    return inner


def write_file(rest: str, body: str) -> None:
    append = rest.startswith("-a ")
    name = rest.removeprefix("-a ").strip().strip("\"'")
    if not name:
        raise UsageError("%%writefile needs the name of a file: %%writefile notes.txt")
    with open(name, "a" if append else "w", encoding="utf-8") as file:
        file.write(body if body.endswith("\n") else body + "\n")
    print(("Appending to %s" if append else "Writing %s") % name)
