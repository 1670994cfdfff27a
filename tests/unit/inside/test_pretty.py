"""The text of a value is what IPython shows of it, within bounds."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import fractions
import functools
import os
import re
import types
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.lib.pretty import pretty as ipythons

from pybox_kernel.inside.layout import ITEMS, LARGEST
from pybox_kernel.inside.pretty import pretty
from tests.timing import processor_time


@dataclasses.dataclass
class Point:
    x: int
    y: list[int]


class Pair(NamedTuple):
    first: int
    second: str


class Colour(enum.Enum):
    RED = 1


class Plain:
    pass


class Bag(list[int]):
    pass


class OwnText(dict[str, int]):
    def __repr__(self) -> str:
        return "own text\nof two lines"


class Tree:
    """As the documentation of ``IPython.lib.pretty`` has it."""

    def __init__(self, *leaves: object) -> None:
        self.leaves = leaves

    def _repr_pretty_(self, p: Any, cycle: bool) -> None:
        if cycle:
            p.text("Tree(...)")
            return
        with p.group(5, "Tree(", ")"):
            for number, leaf in enumerate(self.leaves):
                if number:
                    p.text(",")
                    p.breakable()
                p.pretty(leaf)


class Indented:
    def _repr_pretty_(self, p: Any, cycle: bool) -> None:
        p.text("begin")
        with p.indent(4):
            p.break_()
            p.text("x" * 60)
            p.breakable()
            p.text("y" * 60)
        p.break_()
        p.text("end")


def cyclic(kind: type) -> Any:
    value = kind()
    (value.append if hasattr(value, "append") else functools.partial(value.__setitem__, "own"))(value)
    return value


long = [f"word number {n}" for n in range(30)]
VALUES = {
    "numbers": [1, -2.5, 1j, True, None, ..., NotImplemented, 10**50],
    "a text": 'it\'s\n"quoted"\u2028é\ud800',
    "bytes": b"\x00abc" * 40,
    "empty": [[], (), {}, set(), frozenset(), "", b""],
    "a short list": [1, 2, 3],
    "a long list": list(range(60)),
    "long texts": long,
    "nested lists": [[[n, [n] * 30] for n in range(4)], long],
    "one in a tuple": (1,),
    "a long tuple": tuple(long),
    "a dict over 80 columns": {word: word for word in long},
    "a dict of lists": {"first": list(range(50)), "second": {"third": long}},
    "a dict of 79": {"a" * 36: "b" * 36},
    "a dict of 80": {"a" * 36: "b" * 37},
    "a set": set(range(50)),
    "a mixed set": {1, "a", (2, 3), None},
    "a frozenset": frozenset(long),
    "ordered": collections.OrderedDict((word, 1) for word in long),
    "ordered and empty": collections.OrderedDict(),
    "with a default": collections.defaultdict(list, {"a": [1] * 40, "b": [2] * 40}),
    "counted": collections.Counter("abracadabra" * 3),
    "counted and long": collections.Counter(long),
    "counted and empty": collections.Counter(),
    "deque": collections.deque(range(50)),
    "bounded deque": collections.deque([1, 2], maxlen=3),
    "user list": collections.UserList([1, 2]),
    "chain map": collections.ChainMap({"a": 1}, {"b": 2}),
    "a dataclass": Point(1, list(range(40))),
    "dataclasses": [Point(n, list(range(20))) for n in range(5)],
    "a named tuple": [Pair(n, "x" * 30) for n in range(4)],
    "an enum": [Colour.RED, {Colour.RED: Colour}],
    "classes": [int, Plain, collections.OrderedDict, type, Exception],
    "functions": [len, os.path.join, ipythons, Tree._repr_pretty_, [].append, functools.partial(int, base=2)],
    "exceptions": [ValueError("a", 1), KeyError(), re.error("bad")],
    "an object": Plain(),
    "a list's child": Bag(range(40)),
    "own text": [OwnText(a=1), OwnText()],
    "a namespace": types.SimpleNamespace(a=1, b=long),
    "a proxy": types.MappingProxyType(dict.fromkeys(long, 1)),
    "patterns": [re.compile(r"\d+\\x"), re.compile("a", re.IGNORECASE | re.MULTILINE)],
    "times": [datetime.datetime(2020, 1, 2), datetime.timedelta(3), datetime.date(2020, 1, 2)],
    "fractions": [fractions.Fraction(1, 3)] * 10,
    "ranges": [range(3), slice(1, 2)],
    "own layout": [Tree(1, Tree(*long), Tree()), Tree(*range(60))],
    "own layout by lines": [Indented(), Indented()],
    "a list in itself": cyclic(list),
    "a dict in itself": cyclic(dict),
    "an ordered dict in itself": cyclic(collections.OrderedDict),
    "1000 items": list(range(1000)),
    "1001 items": list(range(1001)),
    "1001 in a dict": {n: n for n in range(1001)},
    "1001 in a tuple": tuple(range(1001)),
    "environ": os.environ,
    "a view": [{"a": 1}.keys(), {"a": 1}.items()],
}


@pytest.mark.parametrize("name", VALUES)
def test_the_text_is_ipythons(name: str) -> None:
    assert pretty(VALUES[name]) == ipythons(VALUES[name])


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=50) | st.binary(max_size=20)
KEYS = st.text(max_size=30) | st.integers()


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner, max_size=30)
        | st.lists(inner, max_size=10).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=10)
        | st.dictionaries(KEYS, inner, max_size=5).map(collections.OrderedDict)
        | st.lists(inner, max_size=10).map(collections.deque)
        | st.lists(inner, max_size=5).map(lambda items: Tree(*items))
        | st.sets(st.integers() | st.text(max_size=5), max_size=20)
    )


@given(st.recursive(LEAVES, containers, max_leaves=60))
def test_the_text_of_any_nesting_is_ipythons(value: object) -> None:
    assert pretty(value) == ipythons(value)


def test_a_giant_list_takes_milliseconds() -> None:
    value = list(range(10**6))
    with processor_time(below=0.25):
        text = pretty(value)
    assert text.endswith(" 999,\n ...]")


def test_work_and_size_are_bounded_for_giant_nestings() -> None:
    row = list(range(ITEMS))
    with processor_time(below=2):
        text = pretty([row] * ITEMS)
    assert len(text) == LARGEST + 1


def test_a_long_text_on_one_line_is_bounded_as_well() -> None:
    assert len(pretty(["x" * (5 << 20)])) == LARGEST + 1


def test_what_a_repr_raises_is_raised() -> None:
    class Bad:
        def __repr__(self) -> str:
            raise LookupError("bad")

    with pytest.raises(LookupError):
        pretty([Bad()])
