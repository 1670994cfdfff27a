"""What is known of the name at the cursor, as plain text, without running or importing anything."""

from __future__ import annotations

from typing import Final, NamedTuple

from pybox_kernel.source.cell_names import LONGEST
from pybox_kernel.source.cell_text import before, calls_around, end_of_name, operand_before
from pybox_kernel.source.completion import Completer, View
from pybox_kernel.source.meanings import Thing
from pybox_kernel.source.stdlib_index import Member, StdlibIndex

__all__ = ["inspect"]

MOST_MEMBERS_TOLD: Final = 40
"""Of a class or a module, where more is asked for."""


class Told(NamedTuple):
    title: str
    doc: str
    source: str
    members: tuple[str, ...] = ()


def inspect(code: str, cursor_pos: int, detail_level: int, completer: Completer) -> str | None:
    """The signature and the docstring's beginning of what the cursor stands at or, where nothing is known of that, of
    the function whose brackets it stands in; None if nothing is known. It comes from the standard library's index or
    from the text of a cell. ``detail_level`` 1 adds the names in a class or a module.
    """
    if len(code) > LONGEST:
        return None
    cursor = max(0, min(cursor_pos, len(code)))
    place = before(code[: end_of_name(code, cursor)])
    view = completer.view(code, place)
    name = [len(place.code)] if place.where == "code" and place.stem else []
    for end in (*name, *calls_around(place.covered)):
        start = operand_before(place.covered, end)
        told = None if start is None else tell(view, code[start:end])
        if told is not None:
            members = ", ".join(told.members[:MOST_MEMBERS_TOLD]) if detail_level else ""
            left_out = ", …" if members and len(told.members) > MOST_MEMBERS_TOLD else ""
            return "\n\n".join(filter(None, (told.title, told.doc, members + left_out, told.source)))
    return None


def tell(view: View, expression: str) -> Told | None:
    name = expression.strip()
    definition = view.definition(name)
    if definition is not None:
        return Told(definition.header, definition.doc, "from a cell of this notebook", definition.members)
    thing = view.meanings.of_text(expression)
    if thing is None:
        return None
    if thing.own:
        definition = view.definition(thing.path)
        return (
            None
            if definition is None
            else Told(f"{name}: {thing.path}", definition.doc, "from a cell of this notebook")
        )
    return tell_indexed(view.index, name, thing)


def tell_indexed(index: StdlibIndex, name: str, thing: Thing) -> Told | None:
    source = f"from the standard library's index (Python {'.'.join(index.python.split('.')[:2])})"
    match thing.kind:
        case "module":
            module = index.module(thing.path)
            return None if module is None else Told(f"module {thing.path}", module.doc, source, tuple(module.members))
        case "function":
            owner, _, own = thing.path.rpartition(".")
            member = function_of(index, owner, own)
            return None if member is None else Told(signatures(thing.path, member.signature), member.doc, source)
    class_ = index.class_(thing.path)
    if class_ is None:
        return None
    members = tuple(index.class_members(thing.path))
    if thing.kind == "class":
        return Told(f"class {signatures(thing.path, class_.signature)}", class_.doc, source, members)
    return Told(f"{name}: {shown(thing.path)}", class_.doc, source, members)


def function_of(index: StdlibIndex, owner: str, name: str) -> Member | None:
    module = index.module(owner)
    return index.class_members(owner).get(name) if module is None else module.members.get(name)


def shown(path: str) -> str:
    """A path as people write it: builtins by their own name, a module that is written in C without its underscore."""
    return path.removeprefix("builtins.").removeprefix("_")


def signatures(path: str, text: str) -> str:
    return "\n".join(f"{shown(path)}{line}" for line in (text or "(…)").split("\n"))
