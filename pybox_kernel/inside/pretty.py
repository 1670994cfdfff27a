"""The text of a value, laid out as IPython's pretty printer does it, so that a cell shows what it shows elsewhere."""

from __future__ import annotations

import re
import sys
import types

from pybox_kernel.inside.layout import ITEMS, LARGEST, Enough, PrettyPrinter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pybox_kernel.inside.layout import Printer

SIMPLE = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), range)


def pretty(value: object) -> str:
    """Raises what the value's own methods raise."""
    if isinstance(value, (str, bytes)) and type(value) in SIMPLE and len(value) > LARGEST:
        return repr(value[:LARGEST]) + "…"
    if type(value) in SIMPLE:
        return repr(value)
    printer = PrettyPrinter(printer_of)
    try:
        printer.pretty(value)
        printer.flush()
    except Enough:
        return "".join(printer.written)[:LARGEST] + "…"
    return "".join(printer.written)


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
