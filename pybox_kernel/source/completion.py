"""Completion from text alone: what could be written at the cursor, without running or importing anything.

It knows Python's keywords, the standard library's index, the names in the cell, and those that earlier cells have
bound: a cell does not see these when it runs, and they are offered because cells are written from one another.
"""

from __future__ import annotations

import ast
import keyword
import re
from itertools import chain
from typing import Final, Literal, NamedTuple

from pybox_kernel.source.cell_names import LONGEST, parsed
from pybox_kernel.source.cell_reading import CellReading, Definition, read_cell
from pybox_kernel.source.cell_text import Before, before, covered, enclosing_class, end_of_name, import_at
from pybox_kernel.source.known_names import KnownNames
from pybox_kernel.source.meanings import Meanings, Thing
from pybox_kernel.source.stdlib_index import StdlibIndex, stdlib_index

__all__ = ["Completer", "Completions", "View"]

MOST_MATCHES: Final = 500
LONGEST_PARSED: Final = 6 * 1024
"""Characters of the cell that is being written: it is looked into at every key, so in at most some 20 ms."""

MOST_LINES: Final = 200
LONGEST_LINE: Final = 200
MOST_BASES: Final = 10

IN_EVERY_BOX: Final = {"display": Thing("function", "display", own=True)}
BINDING: Final = re.compile(
    r"(?<![.\w])([^\W\d]\w*)[ \t]*(?:[-+*/%&|^@:]|//|\*\*|<<|>>)?=(?!=)"
    r"|(?<![.\w])(?:def|class|as|for|import)[ \t]+([^\W\d]\w*)"
)
STATEMENT: Final = re.compile(
    r"[ \t]*(?:(?:async|def|class|import|from|with|for)[ \t]|[^\W\d][\w.]*[ \t]*(?::[^=]*)?=)"
)

Offered = dict[str, str]
"""Names, and what each is called in JupyterLab."""


class Completions(NamedTuple):
    """``matches`` could stand for the characters ``start`` to ``end`` of the cell, counted in code points as Jupyter
    does. ``types`` says of each in turn what it is: function, class, module, instance, property, keyword, or ""."""

    matches: tuple[str, ...]
    start: int
    end: int
    types: tuple[str, ...]

    def metadata(self) -> dict[str, object]:
        """What JupyterLab shows beside the matches."""
        told = zip(self.matches, self.types, strict=True)
        place = {"start": self.start, "end": self.end}
        return {"_jupyter_types_experimental": [{"text": text, "type": kind, **place} for text, kind in told]}


class Completer:
    """One session's completion. ``add_cell`` tells it of a cell that has been run."""

    def __init__(self, index: StdlibIndex | None = None) -> None:
        self._index = index
        self._known = KnownNames()

    @property
    def index(self) -> StdlibIndex:
        if self._index is None:
            self._index = stdlib_index()
        return self._index

    @property
    def known(self) -> KnownNames:
        return self._known

    def add_cell(self, source: str) -> None:
        tree = parsed(source)
        if tree is not None:
            self._known.add(read_cell(tree, source.split("\n"), self.index, self._known.thing))

    def complete(self, code: str, cursor_pos: int) -> Completions:
        """Never raises, and never looks for long: in a cell too long to be run there are no matches."""
        end = max(0, min(cursor_pos, len(code)))
        if len(code) > LONGEST:
            return Completions((), end, end, ())
        place = before(code[:end])
        if place.where == "quiet":
            return Completions((), end, end, ())
        found = ranked(self._offered(code, place), place.stem)
        return Completions(tuple(found), place.start, end, tuple(found.values()))

    def view(self, code: str, place: Before) -> View:
        """What is known at that place: the cell as it is, without what is being written there."""
        return View(self.index, self._known, read_unfinished(code, place, self.index, self._known))

    def _offered(self, code: str, place: Before) -> Offered:
        statement = import_at(place.covered)
        if statement is not None and statement.module.startswith("."):
            return {}  # a cell is in no package
        if statement is not None and statement.name is not None:
            return self._importable(statement.module)
        if statement is not None:
            package = statement.module.rpartition(".")[0]
            return dict.fromkeys(self.index.submodules(package), "module")
        view = self.view(code, place)
        if place.dot is None:
            return view.names()
        if place.operand is None:
            return {}
        return view.members(place.code[place.operand : place.dot], enclosing_class(place.covered))

    def _importable(self, module: str) -> Offered:
        return {
            **dict.fromkeys(self.index.submodules(module), "module"),
            **View(self.index, self._known, None).members_of(Thing("module", module)),
        }


class View:
    """The names at one place: the cell's own, those of earlier cells behind them, the builtins behind those."""

    def __init__(self, index: StdlibIndex, known: KnownNames, cell: CellReading | None) -> None:
        self.index = index
        self._known = known
        self._cell = cell
        self.meanings = Meanings(index, self.thing)

    def thing(self, name: str) -> Thing | Literal["free"] | None:
        if self._cell is not None and name in self._cell.things:
            return self._cell.things[name]
        found = self._known.thing(name)
        if found == "free":
            for module in (*(self._cell.stars if self._cell else ()), *self._known.stars):
                if self.index.member(module, name) is not None:
                    return self.meanings.of_attribute(Thing("module", module), name)
        return IN_EVERY_BOX.get(name, found) if found == "free" else found

    def definition(self, name: str) -> Definition | None:
        if self._cell is not None and name in self._cell.things:
            return self._cell.definitions.get(name)
        return self._known.get(name).definition

    def names(self) -> Offered:
        stars = (*self._known.stars, *(self._cell.stars if self._cell else ()))
        things = {**IN_EVERY_BOX, **self._known.bound(), **(self._cell.things if self._cell else {})}
        return {
            **self.members_of(Thing("module", "builtins")),
            **dict.fromkeys([*keyword.kwlist, *keyword.softkwlist], "keyword"),
            **dict(chain.from_iterable(self.members_of(Thing("module", module)).items() for module in stars)),
            **{name: type_of(thing) for name, thing in things.items()},
        }

    def members(self, expression: str, inside: str | None) -> Offered:
        """What could follow the dot behind an expression. ``inside`` is the class whose body it stands in."""
        name = expression.strip()
        if inside is not None and name in ("self", "cls"):
            return self.members_of(Thing("instance", inside, own=True)) | self._seen(name)
        thing = self.meanings.of_text(expression)
        found = {} if thing is None else self.members_of(thing)
        return found or self._seen(name)

    def members_of(self, thing: Thing, depth: int = 0) -> Offered:
        if thing.own:
            own = self.definition(thing.path) if thing.kind != "function" else None
            found: Offered = {}
            for base in reversed(() if own is None or depth > MOST_BASES else own.bases[:MOST_BASES]):
                # A class that names itself, or a chain of many: the depth ends it.
                found.update(self.members_of(base, depth + 4))
            return found | dict.fromkeys(() if own is None else own.members, "")
        if thing.kind == "module":
            module = self.index.module(thing.path)
            members = {} if module is None else module.members
            offered: Offered = dict.fromkeys(self.index.submodules(thing.path), "module")
        else:
            members = self.index.class_members(thing.path)
            offered = {}
        return offered | {name: TYPES[member.kind] for name, member in members.items()}

    def _seen(self, name: str) -> Offered:
        """The names that stood behind the dot before, in this cell or an earlier one."""
        here = self._cell.attributes.get(name, frozenset()) if self._cell is not None else frozenset()
        return dict.fromkeys(here | self._known.get(name).attributes, "")


TYPES: Final = {
    "function": "function",
    "class": "class",
    "module": "module",
    "constant": "instance",
    "property": "property",
}


def type_of(thing: Thing | None) -> str:
    return "" if thing is None else thing.kind


def ranked(offered: Offered, stem: str) -> Offered:
    """Those that begin with the stem; capitals that differ come later, underscores last unless they are asked for."""
    lower = stem.lower()
    found = [name for name in offered if name.lower().startswith(lower) and name != stem]

    def rank(name: str) -> tuple[bool, int, str, str]:
        private = 0 if stem.startswith("_") else name.startswith("_") + name.startswith("__")
        return not name.startswith(stem), private, name.lower(), name

    return {name: offered[name] for name in sorted(found, key=rank)[:MOST_MATCHES]}


def read_unfinished(code: str, place: Before, index: StdlibIndex, known: KnownNames) -> CellReading:
    """What a cell says that is being written: the whole cell without the name at the cursor or, if that is no Python,
    without the line; else what can be found line by line."""
    if len(code) <= LONGEST_PARSED:
        end = end_of_name(code, len(place.code))
        written = f"{code[: place.start]}None" if place.dot is None else code[: place.dot]
        start = code.rfind("\n", 0, place.start) + 1
        line, newline, rest = code[start:].partition("\n")
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        for attempt in (written + code[end:], f"{code[:start]}{indent}pass{newline}{rest}"):
            tree = parsed(attempt)
            if tree is not None:
                return read_cell(tree, attempt.split("\n"), index, known.thing)
        return read_lines(code, covered(code), index, known)
    return read_lines(place.code, place.covered, index, known)


def read_lines(code: str, text: str, index: StdlibIndex, known: KnownNames) -> CellReading:
    """What can be found in code that is no Python: statements that are such by themselves, and names before "="."""
    body: list[ast.stmt] = []
    lines: list[str] = []
    at = 0
    for line in text.split("\n"):
        whole = code[at : at + len(line)].strip()
        at += len(line) + 1
        if len(lines) < MOST_LINES and len(whole) <= LONGEST_LINE and STATEMENT.match(line):
            tree = parsed(f"{whole} pass" if whole.endswith(":") else whole)
            for statement in () if tree is None else tree.body:
                ast.increment_lineno(statement, len(lines))
                body.append(statement)
            lines.append(whole.replace("\n", " "))
    reading = read_cell(ast.Module(body, []), lines, index, known.thing)
    bound = dict.fromkeys((found[1] or found[2] for found in BINDING.finditer(text)), None)
    return reading._replace(things={**bound, **reading.things})
