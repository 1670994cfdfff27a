"""What is known of the standard library without importing it: its modules, their members, the classes' methods.

It is read from ``stdlib_index.jsonl.gz``, which ``scripts/index_stdlib.py`` makes. The first line of that file is
``{"format": 1, "python": "3.11.7", "made_by": "scripts/index_stdlib.py"}``, each other one ``name TAB json`` with

    {"doc": str, "members": {name: MEMBER}, "classes": {name: {"signature", "doc", "bases": [key], "members"}}}

A MEMBER is ``[kind, signature, doc, target]``, shorter where the end is empty. Its kind is f (function), c (class),
m (module), k (constant) or p (property); its target a module's name, or the key of the class that it is or is of: the
name of the module that the class is at home in, a dot, its own name. A line is looked into when it is asked for.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

__all__ = ["EMPTY", "IndexedClass", "Kind", "Member", "StdlibIndex", "read_index", "stdlib_index"]

FILE: Final = "stdlib_index.jsonl.gz"
FORMAT: Final = 1
LONGEST: Final = 8 << 20
"""Characters; the index has about a million."""

Kind = Literal["function", "class", "module", "constant", "property"]
KINDS: Final[dict[str, Kind]] = {"f": "function", "c": "class", "m": "module", "k": "constant", "p": "property"}


class Member(NamedTuple):
    """A name in a module or a class. ``signature`` has a line for each way to call it; each text may be empty."""

    kind: Kind
    signature: str = ""
    doc: str = ""
    target: str = ""


class IndexedClass(NamedTuple):
    """``bases`` are the keys of all the classes that it inherits from, nearest first; ``members`` only its own."""

    signature: str
    doc: str
    bases: tuple[str, ...]
    members: dict[str, Member]


class IndexedModule(NamedTuple):
    doc: str
    members: dict[str, Member]
    classes: dict[str, IndexedClass]


class StdlibIndex:
    """``python`` is the version that it was made from, "" for an empty index."""

    def __init__(self, python: str, lines: dict[str, str]) -> None:
        self.python = python
        self.modules = tuple(name for name in lines if not any(part.startswith("_") for part in name.split(".")))
        self._lines = lines
        self._read: dict[str, IndexedModule] = {}

    def module(self, name: str) -> IndexedModule | None:
        """Raises ValueError if the line of that module is not as it must be."""
        found = self._read.get(name)
        if found is None and name in self._lines:
            found = self._read[name] = read_module(self._lines[name])
        return found

    def submodules(self, name: str) -> tuple[str, ...]:
        """The last part of each name, of the modules right in a package; of those in none for ""."""
        start = f"{name}." if name else ""
        rest = (module[len(start) :] for module in self.modules if module.startswith(start))
        return tuple(part for part in rest if "." not in part)

    def member(self, module: str, name: str) -> Member | None:
        found = self.module(module)
        member = None if found is None else found.members.get(name)
        if member is None and f"{module}.{name}" in self._lines:
            return Member("module", target=f"{module}.{name}")
        return member

    def class_(self, key: str) -> IndexedClass | None:
        module, _, name = key.rpartition(".")
        found = self.module(module)
        return None if found is None else found.classes.get(name)

    def class_members(self, key: str) -> dict[str, Member]:
        """All public members of a class, the inherited ones too; none of a class that is not known."""
        own = self.class_(key)
        members: dict[str, Member] = {}
        for base in reversed(() if own is None else own.bases):
            inherited = self.class_(base)
            members.update({} if inherited is None else inherited.members)
        return members if own is None else members | own.members


EMPTY: Final = StdlibIndex("", {})


@cache
def stdlib_index() -> StdlibIndex:
    """The index that comes with PyBox, read when it is first asked for. Where the file is missing or damaged, it is
    empty: fewer names are offered then, and nothing else depends on it."""
    try:
        return read_index(Path(__file__).with_name(FILE).read_bytes())
    except (OSError, ValueError):
        return EMPTY


def read_index(data: bytes) -> StdlibIndex:
    """Raises ValueError if the data is not such a file. The lines of modules are not looked into yet."""
    try:
        text = gzip.decompress(data).decode("utf-8")
    except (OSError, EOFError) as error:
        raise ValueError("the index is no gzip file") from error
    header, *lines = text[:LONGEST].split("\n")
    match json.loads(header):
        case {"format": int(number), "python": str(python), "made_by": str(), **rest} if number == FORMAT and not rest:
            pass
        case _:
            raise ValueError("the index has another format")
    if len(text) > LONGEST or lines[-1:] != [""]:
        raise ValueError("the index is cut, or too long")
    found: dict[str, str] = {}
    for line in lines[:-1]:
        name, tab, value = line.partition("\t")
        if not tab or name in found or not all(part.isidentifier() for part in name.split(".")):
            raise ValueError(f"the index has a line that is no module's: {name[:40]}")
        found[name] = value
    return StdlibIndex(python, found)


def read_module(text: str) -> IndexedModule:
    match json.loads(text):
        case {"doc": str(doc), "members": dict(members), "classes": dict(classes), **rest} if not rest:
            return IndexedModule(doc, read_members(members), {name: read_class(classes[name]) for name in classes})
    raise ValueError("a module in the index has another shape")


def read_class(value: object) -> IndexedClass:
    match value:
        case {"signature": str(signature), "doc": str(doc), "bases": list(bases), "members": dict(members), **rest}:
            if not rest and all(isinstance(base, str) for base in bases):
                return IndexedClass(signature, doc, tuple(bases), read_members(members))
    raise ValueError("a class in the index has another shape")


def read_members(values: dict[str, object]) -> dict[str, Member]:
    members = {}
    for name, value in values.items():
        match value:
            case [str(kind), *texts] if kind in KINDS and len(texts) < 4 and name.isidentifier():
                known = [text for text in texts if isinstance(text, str)]
                if len(known) == len(texts):
                    members[name] = Member(KINDS[kind], *known)
                    continue
        raise ValueError("a member in the index has another shape")
    return members
