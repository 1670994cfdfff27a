"""What a cell's tree says of its names: what each is bound to, what follows a dot behind it, what it defines."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final, Literal, NamedTuple

from pybox_kernel.source.cell_names import MOST_NODES, targets
from pybox_kernel.source.cell_text import covered
from pybox_kernel.source.meanings import Meanings, Thing
from pybox_kernel.source.stdlib_index import StdlibIndex

__all__ = ["MOST_STARS", "CellReading", "Definition", "read_cell"]

LONGEST_NAME: Final = 100
LONGEST_HEADER: Final = 300
LONGEST_DOC: Final = 600
MOST_MEMBERS: Final = 200
MOST_HEADER_LINES: Final = 12
MOST_STARS: Final = 10

Scope = Literal["top", "inner", "class"]
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Definition(NamedTuple):
    """A function or a class of a cell: its ``def`` or ``class`` line, the docstring's beginning, what a class has."""

    kind: Literal["function", "class"]
    header: str
    doc: str
    members: tuple[str, ...] = ()
    bases: tuple[Thing, ...] = ()


class CellReading(NamedTuple):
    """``top`` are the names bound at the cell's top level, ``things`` says what each name is, one bound in a function
    too: None where that is not known, or not one thing throughout the cell. ``attributes`` are those seen behind a
    name, ``stars`` the modules that all names are imported from."""

    top: frozenset[str]
    things: dict[str, Thing | None]
    definitions: dict[str, Definition]
    attributes: dict[str, frozenset[str]]
    stars: tuple[str, ...]


def read_cell(
    tree: ast.Module,
    lines: list[str],
    index: StdlibIndex,
    earlier: Callable[[str], Thing | Literal["free"] | None],
) -> CellReading:
    """``lines`` are the cell's. ``earlier`` says what a name is that the cell does not bind."""
    return Reader(lines, index, earlier).read(tree)


class Reader:
    def __init__(
        self, lines: list[str], index: StdlibIndex, earlier: Callable[[str], Thing | Literal["free"] | None]
    ) -> None:
        self._lines = lines
        self._earlier = earlier
        self._meanings = Meanings(index, self._named)
        self._top: set[str] = set()
        self._things: dict[str, Thing | None] = {}
        self._definitions: dict[str, Definition] = {}
        self._attributes: defaultdict[str, set[str]] = defaultdict(set)
        self._stars: dict[str, None] = {}

    def read(self, tree: ast.Module) -> CellReading:
        todo: list[tuple[ast.AST, Scope]] = [(tree, "top")]
        for _ in range(MOST_NODES):
            if not todo:
                break
            node, scope = todo.pop()
            inner = list(self._read(node, scope))
            todo.extend(reversed(inner))
        attributes = {name: frozenset(seen) for name, seen in self._attributes.items()}
        return CellReading(frozenset(self._top), self._things, self._definitions, attributes, tuple(self._stars))

    def _read(self, node: ast.AST, scope: Scope) -> Iterable[tuple[ast.AST, Scope]]:
        """Takes in what one node says; gives what is in it and has to be read yet."""
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                self._bind(name, None, scope)
                return ()
            case ast.Name(id=name, ctx=ast.Del()) if scope == "top":
                self._top.discard(name)
                return ()
            case ast.Name() | ast.Constant() | ast.expr_context():
                return ()
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._bind(node.name, Thing("function", node.name, own=True), scope, self._function(node))
                return within(ast.iter_child_nodes(node), "inner")
            case ast.ClassDef():
                self._bind(node.name, Thing("class", node.name, own=True), scope, self._class(node))
                return within(ast.iter_child_nodes(node), "class")
            case ast.Lambda() | ast.comprehension():
                return within(ast.iter_child_nodes(node), "inner")
            case ast.arg(arg=name, annotation=annotation):
                self._bind(name, self._instance(annotation), "inner")
                return ()
            case ast.Assign(targets=named, value=value):
                return [*within([value], scope), *self._assigned(named, self._meanings.of(value), scope)]
            case ast.AnnAssign(value=None):
                return ()
            case ast.AnnAssign(target=target, annotation=annotation, value=ast.expr() as value):
                thing = self._meanings.of(value) or self._instance(annotation)
                return [*within([value], scope), *self._assigned([target], thing, scope)]
            case ast.NamedExpr(target=target, value=value):
                return [*within([value], scope), *self._assigned([target], self._meanings.of(value), scope)]
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self._bind(name, self._things.get(name), scope)
                return within([value], scope)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                thing = self._meanings.of(value)
                entered = thing if thing is not None and thing.path.startswith("_io.") else None
                return [*within([value], scope), *self._assigned([target], entered, scope)]
            case ast.Import(names=aliases):
                for alias in aliases:
                    name = alias.name if alias.asname else alias.name.partition(".")[0]
                    self._bind(alias.asname or name, self._meanings.of_module(name), scope)
                return ()
            case ast.ImportFrom():
                self._from(node, scope)
                return ()
            case ast.ExceptHandler(name=str(name), type=caught):
                self._bind(name, self._instance(caught), scope)
            case ast.Global(names=names):
                for name in names:
                    self._bind(name, self._things.get(name), "top")
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                seen = self._attributes[name]
                if len(seen) < MOST_MEMBERS and len(attribute) <= LONGEST_NAME >= len(name):
                    seen.add(attribute)
                return ()
            case _:
                for name in targets(node):
                    self._bind(name, None, scope)
        return within(ast.iter_child_nodes(node), scope)

    def _named(self, name: str) -> Thing | Literal["free"] | None:
        return self._things[name] if name in self._things else self._earlier(name)

    def _bind(self, name: str, thing: Thing | None, scope: Scope, definition: Definition | None = None) -> None:
        if scope == "class" or len(name) > LONGEST_NAME:
            return
        self._things[name] = thing if self._things.get(name, thing) == thing else None
        if scope == "top":
            self._top.add(name)
        if definition is not None:
            self._definitions[name] = definition

    def _assigned(self, named: list[ast.expr], thing: Thing | None, scope: Scope) -> Iterable[tuple[ast.AST, Scope]]:
        for target in named:
            if isinstance(target, ast.Name):
                self._bind(target.id, thing, scope)
            else:
                yield target, scope

    def _instance(self, annotation: ast.expr | None) -> Thing | None:
        thing = None if annotation is None else self._meanings.of(annotation)
        return Thing("instance", thing.path, thing.own) if thing is not None and thing.kind == "class" else None

    def _from(self, node: ast.ImportFrom, scope: Scope) -> None:
        module = self._meanings.of_module(node.module) if node.module and not node.level else None
        for alias in node.names:
            if alias.name == "*":
                if module is not None and len(self._stars) < MOST_STARS:
                    self._stars[module.path] = None
            else:
                self._bind(alias.asname or alias.name, self._meanings.of_attribute(module, alias.name), scope)

    def _function(self, node: Function) -> Definition:
        return Definition("function", self._header(node), docstring(node))

    def _class(self, node: ast.ClassDef) -> Definition:
        members: dict[str, None] = {}
        for statement in node.body[:MOST_MEMBERS]:
            if isinstance(statement, Function):
                members.update(dict.fromkeys(own_attributes(statement)))
            for target in [statement, *getattr(statement, "targets", ()), getattr(statement, "target", None)]:
                members.update(dict.fromkeys(targets(target)) if isinstance(target, ast.AST) else {})
        constructor = next((item for item in node.body if isinstance(item, Function) and item.name == "__init__"), None)
        header = self._header(node) if constructor is None else f"{self._header(node)}\n{self._header(constructor)}"
        kept = [name for name in members if len(name) <= LONGEST_NAME]
        bases = [thing for thing in map(self._meanings.of, node.bases[:10]) if thing and thing.kind == "class"]
        return Definition("class", header, docstring(node), tuple(kept[:MOST_MEMBERS]), tuple(bases))

    def _header(self, node: Function | ast.ClassDef) -> str:
        """The lines from ``def`` to the colon, without comments; the whole line where the body stands in it too."""
        last = min(max(node.lineno, node.body[0].lineno - 1), node.lineno - 1 + MOST_HEADER_LINES)
        taken: list[str] = []
        for line in self._lines[node.lineno - 1 : last]:
            beginning = line[:LONGEST_HEADER]
            taken.append(beginning[: len(covered(beginning).rstrip())].strip())
            if taken[-1].endswith(":"):
                break
        return shortened(" ".join(taken).removesuffix(":"), LONGEST_HEADER)


def within(nodes: Iterable[ast.AST], scope: Scope) -> list[tuple[ast.AST, Scope]]:
    return [(node, scope) for node in nodes]


def docstring(node: Function | ast.ClassDef) -> str:
    match node.body[0]:
        case ast.Expr(value=ast.Constant(value=str(text))):
            lines = [line.strip() for line in text[: LONGEST_DOC * 4].strip().split("\n")]
            return shortened("\n".join(lines), LONGEST_DOC)
    return ""


def own_attributes(method: Function) -> Iterable[str]:
    """What a method assigns to its object: ``self.x = ...``, statement by statement, those in blocks too."""
    arguments = [*method.args.posonlyargs, *method.args.args]
    if not arguments:
        return
    todo: list[ast.AST] = [*reversed(method.body)]
    for _ in range(MOST_MEMBERS * 10):
        if not todo:
            return
        node = todo.pop()
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute, ctx=ast.Store()) if name == arguments[0].arg:
                yield attribute
            case ast.Assign(targets=assigned):
                todo.extend(reversed(assigned))
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                todo.append(target)
            case ast.Tuple() | ast.List() | ast.stmt() | ast.ExceptHandler() | ast.match_case() | ast.withitem():
                todo.extend(reversed(list(ast.iter_child_nodes(node))))


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
