"""The names that a cell binds at its top level, found without running it.

Looking costs a bounded time whatever the text is: what is too long or too deep for Python's parser to be given is not
looked into, and of a tree of nodes only a beginning is.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

__all__ = [
    "CELL_MAGIC",
    "DEEPEST",
    "LONGEST",
    "MOST_NODES",
    "deepest",
    "defined_names",
    "own_nodes",
    "parsed",
    "python_of",
    "targets",
]

LONGEST: Final = 64 * 1024
"""Characters; a cell cannot be longer and run."""

DEEPEST: Final = 100
MOST_NODES: Final = 20_000
BRACKETS: Final = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}

MAGIC_LINE: Final = re.compile(r"([ \t]*)(?:[%!?][^\n]*|[^#\n]*\?[ \t]*)")
TIMED: Final = re.compile(r"([ \t]*)%time[ \t]+(?=[^ \t%])(.*)")
MAGIC_VALUE: Final = re.compile(r"([ \t]*[^\W\d][\w, \t]*=[ \t]*)[%!].*")
CELL_MAGIC: Final = re.compile(r"\s*%%(?!%)(\w*)")
PYTHON_CELLS: Final = frozenset({"capture", "prun", "pybox", "python", "python3", "time", "timeit"})
"""Cell magics whose body is Python."""

Statement = ast.FunctionDef | ast.AsyncFunctionDef


def defined_names(source: str) -> frozenset[str]:
    """The names that the cell would leave bound: what it assigns, imports, defines, catches, captures; none for a cell
    that cannot be parsed. Magics are passed over, but for what ``%time`` stands before."""
    magic = CELL_MAGIC.match(source)
    tree = None if magic is not None and magic[1] == "timeit" else parsed(source)
    if tree is None:
        return frozenset()
    names: set[str] = set()
    for node in own_nodes(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
            names.discard(node.id)
        else:
            names.update(targets(node))
    return frozenset(names)


def targets(node: ast.AST) -> tuple[str, ...]:
    """The names that this one node binds, not what is in it."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            return (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Import(names=aliases):
            return tuple(alias.asname or alias.name.partition(".")[0] for alias in aliases)
        case ast.ImportFrom(names=aliases):
            return tuple(alias.asname or alias.name for alias in aliases if alias.name != "*")
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            return (name,)
        case ast.Global(names=names):
            return tuple(names)
    return ()


def own_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that run in the cell's own namespace, in the order of the text, and the ``global`` statements of its
    functions. Not: the bodies of functions and classes, what comprehensions bind, annotations without a value."""
    todo: list[ast.AST] = [tree]
    for _ in range(MOST_NODES):
        if not todo:
            return
        node = todo.pop()
        yield node
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                inner = [*node.decorator_list, *defaults(node.args), *globals_of(node)]
            case ast.Lambda():
                inner = defaults(node.args)
            case ast.ClassDef():
                inner = [*node.decorator_list, *node.bases, *node.keywords]
            case ast.comprehension():
                inner = [node.iter, *node.ifs]
            case ast.AnnAssign(value=None):
                inner = []
            case ast.Name() | ast.Constant() | ast.expr_context():
                continue
            case _:
                inner = list(ast.iter_child_nodes(node))
        todo.extend(reversed(inner))


def defaults(arguments: ast.arguments) -> list[ast.AST]:
    return [*arguments.defaults, *(value for value in arguments.kw_defaults if value is not None)]


def globals_of(function: Statement) -> Iterator[ast.Global]:
    todo: list[ast.AST] = [function]
    for _ in range(MOST_NODES // 10):
        if not todo:
            return
        node = todo.pop()
        if isinstance(node, ast.Global):
            yield node
        todo.extend(inner for inner in ast.iter_child_nodes(node) if not isinstance(inner, ast.expr))


def parsed(source: str, longest: int = LONGEST) -> ast.Module | None:
    """The cell as a tree, without its magics; None if it is not Python, or not looked into."""
    if len(source) > longest:
        return None
    tree = parsed_python(source)
    if tree is None and any(mark in source for mark in "%!?"):
        tree = parsed_python(python_of(source))
    return tree


def parsed_python(source: str) -> ast.Module | None:
    if deepest(source) > DEEPEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source, filename="")  # where there is an error, Python looks for a file of that name
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def python_of(source: str, timed: bool = True) -> str:
    """The cell with as many lines and ``pass`` for those of magics, of the shell and of help; what ``%time`` stands
    before is kept where ``timed``. Empty for a cell magic whose body is no Python."""
    magic = CELL_MAGIC.match(source)
    if magic is not None and magic[1] not in PYTHON_CELLS:
        return ""
    return "".join(python_of_line(line, timed) for line in source.splitlines(keepends=True))


def python_of_line(line: str, timed: bool) -> str:
    text = line.rstrip("\r\n")
    end = line[len(text) :]
    kept = TIMED.fullmatch(text) if timed else None
    if kept is not None:
        return kept[1] + kept[2] + end
    magic = MAGIC_LINE.fullmatch(text)
    if magic is not None:
        return f"{magic[1]}pass{end}"
    valued = MAGIC_VALUE.fullmatch(text)
    return line if valued is None else f"{valued[1]}None{end}"


def deepest(code: str) -> int:
    """The deepest nesting of brackets, those in texts and comments included."""
    return max(accumulate((BRACKETS.get(character, 0) for character in code), initial=0))
