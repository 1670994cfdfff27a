"""The text of a value, laid out as IPython's pretty printer does it, so that a cell shows what it shows elsewhere.

Bounded: at most ITEMS items of each collection, and LARGEST characters in all.
"""

from __future__ import annotations

import re
import sys
import types
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Printer = Callable[[Any, "PrettyPrinter", bool], None]

WIDTH = 79
ITEMS = 1000
LARGEST = 100_000
SIMPLE = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), range)


class Enough(Exception):
    """The text has reached LARGEST."""


def pretty(value: object) -> str:
    """Raises what the value's own methods raise."""
    if isinstance(value, (str, bytes)) and type(value) in SIMPLE and len(value) > LARGEST:
        return repr(value[:LARGEST]) + "…"
    if type(value) in SIMPLE:
        return repr(value)
    printer = PrettyPrinter()
    try:
        printer.pretty(value)
        printer.flush()
    except Enough:
        return "".join(printer.written)[:LARGEST] + "…"
    return "".join(printer.written)


class Group:
    """What is broken over lines together: all its breakables or none."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.breakables: deque[Breakable] = deque()
        self.broken = False


class Breakable:
    def __init__(self, separator: str, indentation: int, group: Group) -> None:
        self.separator = separator
        self.indentation = indentation
        self.group = group
        group.breakables.append(self)


class GroupContext:
    def __init__(self, leave: Callable[[], None]) -> None:
        self.leave = leave

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self.leave()


class PrettyPrinter:
    """What ``_repr_pretty_(self, p, cycle)`` gets as ``p``. Oppen's algorithm: text is held back until it is known
    whether it fits on its line; where it does not, the outermost group that still can be is broken."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.size = 0
        self.column = 0
        self.held: deque[str | Breakable] = deque()
        self.held_width = 0
        self.indentation = 0
        self.groups = [Group(0)]
        self.breakable_groups: list[list[Group]] = [[self.groups[0]]]
        self.stack: list[int] = []
        self.verbose = False
        self.max_width = WIDTH
        self.max_seq_length = ITEMS

    # Output

    def write(self, text: str) -> None:
        self.written.append(text)
        self.size += len(text)
        if self.size > LARGEST:
            raise Enough

    def put(self, item: str | Breakable) -> None:
        """Writes one thing that was held back."""
        if isinstance(item, str):
            self.write(item)
            self.column += len(item)
            self.held_width -= len(item)
            return
        item.group.breakables.popleft()
        self.held_width -= len(item.separator)
        if item.group.broken:
            self.write("\n" + " " * item.indentation)
            self.column = item.indentation
        else:
            if not item.group.breakables:
                self.forget(item.group)
            self.write(item.separator)
            self.column += len(item.separator)

    def flush(self) -> None:
        while self.held:
            self.put(self.held.popleft())
        self.held_width = 0

    def new_line(self) -> None:
        self.flush()
        self.write("\n" + " " * self.indentation)
        self.column = self.indentation

    def forget(self, group: Group) -> None:
        if group in self.breakable_groups[group.depth]:
            self.breakable_groups[group.depth].remove(group)

    def outermost(self) -> Group | None:
        """The outermost group that can be broken, from now on broken."""
        for groups in self.breakable_groups:
            for group in reversed(groups):
                if group.breakables:
                    groups.remove(group)
                    group.broken = True
                    return group
            for group in groups:
                group.broken = True
            groups.clear()
        return None

    def break_group(self, group: Group) -> None:
        while group.breakables:
            self.put(self.held.popleft())
        while self.held and isinstance(self.held[0], str):
            self.put(self.held.popleft())

    def fit(self) -> None:
        while self.column + self.held_width > self.max_width:
            group = self.outermost()
            if group is None:
                return
            self.break_group(group)

    # What a ``_repr_pretty_`` may call

    def text(self, text: str) -> None:
        if not self.held:
            self.write(text)
            self.column += len(text)
            return
        self.held.append(text)
        self.held_width += len(text)
        if self.held_width > LARGEST:
            self.flush()
        self.fit()

    def breakable(self, separator: str = " ") -> None:
        group = self.groups[-1]
        if group.broken:
            self.new_line()
            return
        self.held.append(Breakable(separator, self.indentation, group))
        self.held_width += len(separator)
        self.fit()

    def break_(self) -> None:
        group = self.outermost()
        if group is not None:
            self.break_group(group)
        self.new_line()

    def begin_group(self, indent: int = 0, opening: str = "") -> None:
        if opening:
            self.text(opening)
        group = Group(self.groups[-1].depth + 1)
        self.groups.append(group)
        while len(self.breakable_groups) <= group.depth:
            self.breakable_groups.append([])
        self.breakable_groups[group.depth].append(group)
        self.indentation += indent

    def end_group(self, dedent: int = 0, close: str = "") -> None:
        self.indentation -= dedent
        group = self.groups.pop()
        if not group.breakables:
            self.forget(group)
        if close:
            self.text(close)

    def group(self, indent: int = 0, open: str = "", close: str = "") -> GroupContext:  # noqa: A002 - IPython's name
        self.begin_group(indent, open)
        return GroupContext(lambda: self.end_group(indent, close))

    def indent(self, indent: int) -> GroupContext:
        def leave() -> None:
            self.indentation -= indent

        self.indentation += indent
        return GroupContext(leave)

    def pretty(self, value: object) -> None:
        cycle = id(value) in self.stack
        self.stack.append(id(value))
        self.begin_group()
        try:
            printer_of(value)(value, self, cycle)
        finally:
            self.end_group()
            self.stack.pop()

    def _enumerate(self, items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        for number, item in enumerate(items):
            if number >= self.max_seq_length:
                self.text(",")
                self.breakable()
                self.text("...")
                return
            yield number, item


def safely(value: object, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def printer_of(value: object) -> Printer:
    """By the class that comes first in the order of inheritance: a printer of PyBox's, or the class's own method."""
    cls = safely(value, "__class__") or type(value)
    for base in getattr(cls, "__mro__", type(value).__mro__):
        printer = PRINTERS.get(base) or NAMED_PRINTERS.get((safely(base, "__module__"), safely(base, "__name__")))
        if printer is not None:
            return printer
        own: Any = safely(base, "_repr_pretty_") if "_repr_pretty_" in base.__dict__ else None
        if callable(own):
            method: Printer = own
            return method
        if base is not object and "__repr__" in base.__dict__ and callable(safely(base, "__repr__")):
            return print_repr
    return print_default


def print_repr(value: object, p: PrettyPrinter, _cycle: bool) -> None:
    with p.group():
        for number, line in enumerate(repr(value).splitlines()):
            if number:
                p.break_()
            p.text(line)


def print_default(value: object, p: PrettyPrinter, cycle: bool) -> None:
    cls = safely(value, "__class__") or type(value)
    if safely(cls, "__repr__") is not object.__repr__:
        print_repr(value, p, cycle)
        return
    p.begin_group(1, "<")
    p.pretty(cls)
    p.text(" at 0x%x" % id(value))
    if cycle:
        p.text(" ...")
    p.end_group(1, ">")


def sequence_printer(start: str, end: str) -> Printer:
    def print_sequence(value: Any, p: PrettyPrinter, cycle: bool) -> None:
        if cycle:
            p.text(start + "..." + end)
            return
        p.begin_group(len(start), start)
        for number, item in p._enumerate(value):
            if number:
                p.text(",")
                p.breakable()
            p.pretty(item)
        if len(value) == 1 and isinstance(value, tuple):
            p.text(",")
        p.end_group(len(start), end)

    return print_sequence


def set_printer(start: str, end: str) -> Printer:
    def print_set(value: Any, p: PrettyPrinter, cycle: bool) -> None:
        if cycle:
            p.text(start + "..." + end)
            return
        if len(value) == 0:
            p.text(type(value).__name__ + "()")
            return
        items = value
        if len(value) < ITEMS:
            try:
                items = sorted(value)
            except Exception:  # not all of one kind
                try:
                    items = sorted(value, key=str)
                except Exception:
                    items = value
        p.begin_group(len(start), start)
        for number, item in p._enumerate(items):
            if number:
                p.text(",")
                p.breakable()
            p.pretty(item)
        p.end_group(len(start), end)

    return print_set


def mapping_printer(start: str, end: str) -> Printer:
    def print_mapping(value: Any, p: PrettyPrinter, cycle: bool) -> None:
        if cycle:
            p.text("{...}")
            return
        p.begin_group(len(start), start)
        for number, key in p._enumerate(value.keys()):
            if number:
                p.text(",")
                p.breakable()
            p.pretty(key)
            p.text(": ")
            p.pretty(value[key])
        p.end_group(len(start), end)

    return print_mapping


class Raw:
    """Text that stands as it is where a value is expected."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_pretty_(self, p: PrettyPrinter, _cycle: bool) -> None:
        p.text(self.text)


def print_call(p: PrettyPrinter, name: str, arguments: Iterable[object], named: dict[str, object]) -> None:
    """In a group of its own, as IPython has it."""
    p.begin_group()
    p.begin_group(len(name) + 1, name + "(")
    started = False
    for label, value in [*(("", value) for value in arguments), *((key + "=", value) for key, value in named.items())]:
        if started:
            p.text(",")
            p.breakable()
        started = True
        if label:
            p.begin_group(len(label), label)
        p.pretty(value)
        if label:
            p.end_group(len(label))
    p.end_group(len(name) + 1, ")")
    p.end_group()


def call_printer(arguments: Callable[[Any], tuple[list[object], dict[str, object]]], name: str = "") -> Printer:
    def print_as_call(value: Any, p: PrettyPrinter, cycle: bool) -> None:
        shown = ([Raw("...")], {}) if cycle else arguments(value)
        print_call(p, name or value.__class__.__name__, *shown)

    return print_as_call


def print_pattern(value: Any, p: PrettyPrinter, _cycle: bool) -> None:
    quoted = repr(value.pattern)
    arguments: list[object] = [Raw("r" + quoted.replace("\\\\", "\\"))]
    if value.flags:
        names = ("IGNORECASE", "LOCALE", "MULTILINE", "DOTALL", "UNICODE", "VERBOSE", "DEBUG")
        arguments.append(Raw("|".join("re." + name for name in names if value.flags & getattr(re, name))))
    print_call(p, "re.compile", arguments, {})


def print_type(value: Any, p: PrettyPrinter, cycle: bool) -> None:
    if next((base for base in type(value).__mro__ if "__repr__" in vars(base)), None) is not type:
        print_repr(value, p, cycle)
        return
    module, name = safely(value, "__module__"), safely(value, "__qualname__")
    name = name if isinstance(name, str) else "<unknown type>"
    p.text(name if module in (None, "builtins") else "%s.%s" % (module, name))


def print_function(value: Any, p: PrettyPrinter, _cycle: bool) -> None:
    from inspect import signature

    name = safely(value, "__qualname__") or value.__name__
    if value.__module__ and value.__module__ != "builtins":
        name = "%s.%s" % (value.__module__, name)
    try:
        name += str(signature(value))
    except ValueError:
        pass
    p.text("<function %s>" % name)


def print_exception(value: Any, p: PrettyPrinter, _cycle: bool) -> None:
    cls = value.__class__
    name = cls.__qualname__ if cls.__module__ == "builtins" else "%s.%s" % (cls.__module__, cls.__qualname__)
    print_call(p, name, getattr(value, "args", ()), {})


def print_super(value: Any, p: PrettyPrinter, _cycle: bool) -> None:
    p.begin_group(8, "<super: ")
    p.pretty(value.__thisclass__)
    p.text(",")
    p.breakable()
    p.pretty(value.__self__)
    p.end_group(8, ">")


PRINTERS: dict[type, Printer] = {
    **dict.fromkeys((int, float, str, bytes, range, slice, types.MethodType), print_repr),
    tuple: sequence_printer("(", ")"),
    list: sequence_printer("[", "]"),
    dict: mapping_printer("{", "}"),
    set: set_printer("{", "}"),
    frozenset: set_printer("frozenset({", "})"),
    types.MappingProxyType: mapping_printer("mappingproxy({", "})"),
    type(sys.modules["os"].environ): mapping_printer("environ{", "}"),
    types.SimpleNamespace: call_printer(lambda value: ([], value.__dict__), "namespace"),
    types.FunctionType: print_function,
    types.BuiltinFunctionType: print_function,
    re.Pattern: print_pattern,
    type: print_type,
    super: print_super,
    BaseException: print_exception,
}
NAMED_PRINTERS: dict[tuple[object, object], Printer] = {
    ("collections", "defaultdict"): call_printer(lambda value: ([value.default_factory, dict(value)], {})),
    ("collections", "OrderedDict"): call_printer(lambda value: ([list(value.items())] if value else [], {})),
    ("collections", "Counter"): call_printer(lambda value: ([dict(value.most_common())] if value else [], {})),
    ("collections", "UserList"): call_printer(lambda value: ([value.data], {})),
    ("collections", "deque"): call_printer(
        lambda value: ([list(value)], {} if value.maxlen is None else {"maxlen": value.maxlen})
    ),
    ("datetime", "datetime"): print_repr,
    ("datetime", "timedelta"): print_repr,
}
