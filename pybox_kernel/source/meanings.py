"""What an expression is, as far as its text tells: a module or a class of the standard library, an object of such a
class, something that a cell defines. What is not plain is not known: a wrong guess would be worse than none."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from pybox_kernel.source.cell_names import parsed
from pybox_kernel.source.stdlib_index import Member, StdlibIndex

__all__ = ["Meanings", "Thing"]

LONGEST_CHAIN: Final = 30

LITERALS: Final = {
    ast.JoinedStr: "str",
    ast.List: "list",
    ast.ListComp: "list",
    ast.Dict: "dict",
    ast.DictComp: "dict",
    ast.Set: "set",
    ast.SetComp: "set",
    ast.Tuple: "tuple",
}
RETURNS: Final = {
    f"{owner}.{name}": result
    for owner, names, result in (
        ("builtins", "sorted dir", "builtins.list"),
        ("builtins", "input repr format chr hex oct bin ascii", "builtins.str"),
        ("builtins", "len ord hash id", "builtins.int"),
        ("builtins.str", "split rsplit splitlines", "builtins.list"),
        ("builtins.str", "upper lower title strip lstrip rstrip replace join format capitalize", "builtins.str"),
        ("builtins.str", "encode", "builtins.bytes"),
        ("builtins.bytes", "decode", "builtins.str"),
        ("datetime.datetime", "now today utcnow strptime fromtimestamp fromisoformat combine", "datetime.datetime"),
        ("datetime.date", "today fromtimestamp fromisoformat", "datetime.date"),
        ("json", "dumps", "builtins.str"),
        ("os", "getcwd", "builtins.str"),
        ("os", "listdir", "builtins.list"),
        ("pathlib.Path", "cwd home absolute resolve expanduser joinpath with_name with_suffix", "pathlib.Path"),
        ("pathlib.Path", "read_text", "builtins.str"),
        ("pathlib.Path", "read_bytes", "builtins.bytes"),
        ("re", "compile", "re.Pattern"),
        ("re", "match search fullmatch", "re.Match"),
    )
    for name in names.split()
}
"""What some functions give, by the keys of their classes. Only what they always give, or else None."""

OPEN: Final = ("builtins.open", "io.open", "pathlib.Path.open")
TEXT_FILE: Final = "_io.TextIOWrapper"


class Thing(NamedTuple):
    """``path`` is a module's name, a class's key, or that of a function behind its module or class; with ``own``, the
    name of a class or a function that a cell defines. For an instance it is its class's."""

    kind: Literal["module", "class", "instance", "function"]
    path: str
    own: bool = False


class Meanings:
    """``named`` says what a name is: None if that is not known, "free" for one that at most a builtin has."""

    def __init__(self, index: StdlibIndex, named: Callable[[str], Thing | Literal["free"] | None]) -> None:
        self._index = index
        self._named = named

    def of_text(self, expression: str) -> Thing | None:
        tree = parsed(f"(\n{expression}\n)")
        match tree:
            case ast.Module(body=[ast.Expr(value=value)]):
                return self.of(value)
        return None

    def of(self, node: ast.expr, depth: int = 0) -> Thing | None:
        if depth > LONGEST_CHAIN:
            return None
        match node:
            case ast.Constant(value=str() | bytes() | int() | float() | complex() as value):
                return Thing("instance", f"builtins.{type(value).__name__}")
            case ast.Name(id=name):
                return self.of_name(name)
            case ast.Attribute(value=value, attr=name):
                return self.of_attribute(self.of(value, depth + 1), name)
            case ast.Call(func=function):
                return self.of_call(self.of(function, depth + 1), node)
            case ast.BinOp(left=left, op=ast.Div()) if self.of(left, depth + 1) == Thing("instance", "pathlib.Path"):
                return Thing("instance", "pathlib.Path")
        literal = LITERALS.get(type(node))
        return None if literal is None else Thing("instance", f"builtins.{literal}")

    def of_name(self, name: str) -> Thing | None:
        found = self._named(name)
        return self.of_attribute(Thing("module", "builtins"), name) if found == "free" else found

    def of_attribute(self, owner: Thing | None, name: str) -> Thing | None:
        member = None if owner is None else self.member(owner, name)
        match member:
            case None | Member(kind="property"):
                return None
            case Member(kind="function"):
                return Thing("function", f"{self.home(owner, name)}.{name}")
            case Member(kind="constant", target=target):
                return Thing("instance", target) if target else None
            case Member(kind="class" | "module" as kind, target=target):
                return Thing(kind, target)
        return None

    def home(self, owner: Thing | None, name: str) -> str:
        """The module or class that a function is to be looked for in: for an inherited one, the class that has it."""
        assert owner is not None
        if owner.kind == "module":
            return owner.path
        found = self._index.class_(owner.path)
        classes = () if found is None else (owner.path, *found.bases)
        for key in classes:
            known = self._index.class_(key)
            if known is not None and name in known.members:
                return key
        return owner.path

    def of_call(self, function: Thing | None, call: ast.Call) -> Thing | None:
        match function:
            case Thing(kind="class", path=path, own=own) if own or path != "builtins.type":
                return Thing("instance", path, own)
            case Thing(kind="function", path=path, own=False):
                if path in OPEN:
                    return Thing("instance", TEXT_FILE) if opens_text(call, path) else None
                return Thing("instance", RETURNS[path]) if path in RETURNS else None
        return None

    def member(self, owner: Thing, name: str) -> Member | None:
        """What the index has of that name in a module, a class or an object."""
        if owner.own or owner.kind == "function":
            return None
        if owner.kind == "module":
            return self._index.member(owner.path, name)
        return self._index.class_members(owner.path).get(name)

    def of_module(self, name: str) -> Thing | None:
        return None if self._index.module(name) is None else Thing("module", name)


def opens_text(call: ast.Call, path: str) -> bool:
    place = 0 if path.startswith("pathlib") else 1
    modes = [*call.args[place : place + 1], *(word.value for word in call.keywords if word.arg in ("mode", None))]
    return all(isinstance(mode, ast.Constant) and "b" not in str(mode.value) for mode in modes)
