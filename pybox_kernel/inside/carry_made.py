"""How a program's own classes, and what is made of them, are made again: as they were, and without what made them.

A pickle makes a thing by calling its class, and fills it by its methods. Those of a program's own class would do once
more what they did: double a number, register a class, miss an argument. Here the class of Python's that it is derived
from does it alone. What has methods of its own for that, such as ``__reduce__`` and ``__getnewargs__``, keeps them.
"""

from __future__ import annotations

import copyreg
import sys
import types
from collections import OrderedDict, defaultdict

from pybox_kernel.inside import cloudpickle  # type: ignore[attr-defined]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Reducer = Callable[[Any], Any]

line_of = type.__dict__["__mro__"].__get__
"""Not ``__mro__``: a metaclass may say anything of that."""
names_in = type.__dict__["__dict__"].__get__

VALUES = (int, float, complex, str, bytes, tuple)
FOR_PICKLES = {"__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__"}
ATTRIBUTES = {"__getattr__", "__getattribute__", "__setattr__"}
FILLING = {"__init__", "__setitem__", "append", "extend", "add", "update"}
IS_HEAP_TYPE = 1 << 9
OF_ANY_MEMBER = {"_value_", "_name_", "__objclass__", "_sort_order_", "_inverted_", "__dict__", "__weakref__"}
"""Attributes that each member of an enumeration has."""


def is_own(kind: type) -> bool:
    """It is the program's: carried itself."""
    return bool(kind.__flags__ & IS_HEAP_TYPE) and not cloudpickle._should_pickle_by_reference(kind)


# What is made of classes


def reducer_of(kind: type) -> Reducer | None:
    """For all that is of this class; None where it can be made the usual way."""
    if not is_own(kind) or kind in copyreg.dispatch_table:
        return None
    line = line_of(kind)
    own = [one for one in line if is_own(one)]
    others = [one for one in line if one not in own]
    defined: set[str] = set().union(*map(names_in, own))
    owner = first_with("__new__", others)
    if owner is tuple and "_fields" in defined:
        if "_fields" in names_in(first_with("__new__", line)):
            return None  # a named tuple, which is made of its fields
    elif not defined.isdisjoint(FOR_PICKLES):
        return None
    reduces = first_with("__reduce__", others)
    if first_with("__reduce_ex__", others) is not object or reduces.__module__ not in ("builtins", "collections"):
        return None
    news, odd = "__new__" in defined, not defined.isdisjoint(ATTRIBUTES)
    if owner in VALUES:
        return (lambda value: reduce_value(value, owner)) if news else None
    if issubclass(owner, BaseException):
        return (lambda value: reduce_exception(value, owner)) if news or odd or "__init__" in defined else None
    if owner is object:
        return (lambda value: reduce_filled(value, owner, None)) if news or odd else None
    if owner in (list, set, dict) and (news or odd or not defined.isdisjoint(FILLING)):
        return lambda value: reduce_filled(value, owner, items_of(value, owner))
    return None


def first_with(name: str, line: list[type]) -> Any:
    return next(one for one in line if name in names_in(one))


def reduce_value(value: Any, owner: Any) -> Any:
    return (
        make,
        (owner, type(value), *owner.__getnewargs__(value)),
        (value.__getstate__(), None, None),
        None,
        None,
        fill,
    )


def reduce_filled(value: Any, owner: Any, items: Any) -> Any:
    factory = value.default_factory if issubclass(type(value), defaultdict) else None
    return make, (owner, type(value)), (value.__getstate__(), items, factory), None, None, fill


def reduce_exception(error: Any, owner: Any) -> Any:
    reduced = BaseException.__reduce_ex__(error, 4)
    state = (reduced[2] if len(reduced) > 2 else None, None, None)
    return make_exception, (owner, type(error), *reduced[1]), state, None, None, fill


def items_of(value: Any, owner: Any) -> list[Any]:
    if owner in (list, set):
        return list(owner.__iter__(value))
    return list((OrderedDict if issubclass(type(value), OrderedDict) else dict).items(value))


def make(owner: Any, kind: type, *arguments: Any) -> Any:
    return owner.__new__(kind, *arguments)


def make_exception(owner: Any, kind: type, *arguments: Any) -> Any:
    made = owner.__new__(kind, *arguments)
    owner.__init__(made, *arguments)
    return made


def fill(value: Any, state: tuple[Any, Any, Any]) -> None:
    attributes, items, factory = state
    if any("__setstate__" in names_in(one) for one in line_of(type(value)) if one is not BaseException):
        if attributes is not None:
            value.__setstate__(attributes)
    else:
        own, slots = attributes if type(attributes) is tuple and len(attributes) == 2 else (attributes, None)
        if own:
            object.__getattribute__(value, "__dict__").update({interned(name): one for name, one in own.items()})
        for name, one in (slots or {}).items():
            object.__setattr__(value, name, one)
    if factory is not None:
        names_in(defaultdict)["default_factory"].__set__(value, factory)
    if not items:
        return
    kind = type(value)
    if issubclass(kind, list):
        list.extend(value, items)
    elif issubclass(kind, set):
        set.update(value, items)
    elif issubclass(kind, OrderedDict):
        for name, one in items:
            OrderedDict.__setitem__(value, name, one)
    else:
        dict.update(value, items)


def interned(name: Any) -> Any:
    return sys.intern(name) if type(name) is str else name


# Classes


def reduced_class(kind: Any, reduced: Any) -> Any:
    """What cloudpickle has for a class, made so."""
    if type(reduced) is not tuple:
        return reduced
    if reduced[0] is cloudpickle._make_skeleton_class:
        return (make_class, *reduced[1:])
    if reduced[0] is cloudpickle._make_skeleton_enum:
        return reduced_enum(kind, reduced)
    return reduced


def reduced_enum(kind: Any, reduced: Any) -> Any:
    """With names that are one for another's member, and with what members have of their own."""
    make, (bases, name, full_name, _, *rest), (names, slots), *_ = reduced
    members = kind._member_map_
    values = {known: member._value_ for known, member in members.items()}
    names = {known: value for known, value in names.items() if known not in members}
    attributes = {known: own for known, member in members.items() if (own := own_of(member))}
    return make, (bases, name, full_name, values, *rest), ((names, slots), attributes), None, None, fill_enum


def own_of(member: Any) -> dict[str, Any]:
    return {name: value for name, value in member.__dict__.items() if name not in OF_ANY_MEMBER}


def fill_enum(kind: Any, state: Any) -> None:
    known, attributes = state
    cloudpickle._class_setstate(kind, known)
    for name, own in attributes.items():
        kind._member_map_[name].__dict__.update(own)


def make_class(kind: Any, name: str, bases: Any, attributes: dict[str, Any], known: Any, more: Any) -> Any:
    """As cloudpickle makes one, without what the program's metaclass and bases do when one is made."""
    with QuietBases(bases):
        if not is_own(kind):
            return cloudpickle._make_skeleton_class(kind, name, bases, attributes, known, more)
        resolved = types.resolve_bases(bases)
        attributes = {sys.intern(key): value for key, value in attributes.items()}
        if resolved is not bases:
            attributes["__orig_bases__"] = bases
        maker = next(one for one in line_of(kind) if not is_own(one) and "__new__" in names_in(one))
        made = maker.__new__(kind, name, resolved, attributes)
    return cloudpickle._lookup_class_or_track(known, made)


class QuietBases:
    """Meanwhile these classes, as far as they are the program's, do not look at what is derived from them."""

    def __init__(self, bases: Any) -> None:
        every = {one for base in bases if isinstance(base, type) for one in line_of(base)}
        self.found = [
            (one, names_in(one)["__init_subclass__"]) for one in every if "__init_subclass__" in names_in(one)
        ]
        self.found = [(one, hook) for one, hook in self.found if is_own(one)]

    def __enter__(self) -> None:
        for base, _ in self.found:
            type.__setattr__(base, "__init_subclass__", classmethod(look_away))

    def __exit__(self, *_: object) -> None:
        for base, hook in self.found:
            type.__setattr__(base, "__init_subclass__", hook)


def look_away(_cls: type, /, **_: object) -> None:
    pass
