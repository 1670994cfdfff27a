"""What is pickled in one ``__main__`` is the same in the next one."""

from __future__ import annotations

import pickle
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.carrying_inside import Main, carry_lines, carry_pickle

CASES = """
def f(y): return x + y
? f.__globals__ is globals()

def f(n): return 1 if n < 2 else n * f(n - 1)
? f(5) == 120

def f(a, b=[1], *c, d=2, **e): 'doc'; return a, b, c, d, e
? f(0, k=1) == (0, [1], (), 2, {'k': 1}) and f.__doc__ == 'doc'

def f(x: int) -> str: ...
? f.__annotations__ == {'x': int, 'return': str} and f.__qualname__ == 'f'

def f(): pass
f.calls = [1]
? f.calls == [1]

def f():
    yield from range(3)
? list(f()) == [0, 1, 2]

async def f(): return 1
? f.__code__.co_flags & 0x80 == 0x80

d = {'a': 1}
k, v, i = d.keys(), d.values(), d.items()
d['b'] = 2
? d.update(c=3) is None and list(k) == ['a', 'b', 'c'] and list(v) == [1, 2, 3] and len(i) == 3

def make():
    n = 0
    def inc():
        nonlocal n
        n += 1
        return n
    return inc, lambda: n
i, g = make(); i()
? (i(), g()) == (2, 2)

def make():
    def fact(n): return 1 if n < 2 else n * fact(n - 1)
    return fact
f = make()
? f(5) == 120

def make():
    if 0: x = 1
    return lambda: x
f = make()
? f.__closure__[0] is not None and len(f.__closure__) == 1

import functools
@functools.lru_cache(maxsize=7)
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
f(5)
? f(60) == 1548008755920 and f.cache_parameters()['maxsize'] == 7

import functools
def deco(f):
    @functools.wraps(f)
    def g(*a): return f(*a) + 1
    return g
@deco
def h(x): return x
? h(1) == 2 and h.__wrapped__(1) == 1

import functools
@functools.singledispatch
def f(x): return 'other'
@f.register
def _(x: int): return 'int'
? (f(1), f('')) == ('int', 'other')

from functools import partial
p = partial(lambda a, b: a - b, 5)
? p(3) == 2

class A:
    n = 0
    def __init__(self): A.n += 1
a = A()
b = A()
? (A.n, type(a) is A, type(b) is A) == (2, True, True)

class A:
    def m(self): return 'A'
class B(A):
    def m(self): return super().m() + 'B'
b = B()
? b.m() == 'AB' and isinstance(b, A)

class A:
    '''doc'''
    __slots__ = ('x', 'y')
a = A(); a.x = 1
? a.x == 1 and not hasattr(a, 'y') and A.__doc__ == 'doc'

class A:
    @property
    def p(self): return self._p
    @p.setter
    def p(self, v): self._p = v * 2
    @classmethod
    def c(cls): return cls
    @staticmethod
    def s(): return 's'
a = A(); a.p = 2
? (a.p, a.c() is A, A.s()) == (4, True, 's')

import functools
class A:
    @functools.cached_property
    def p(self): return []
a = A(); q = a.p
? a.p is q

from abc import ABC, abstractmethod
class A(ABC):
    @abstractmethod
    def m(self): ...
class B(A):
    def m(self): return 1
A.register(list)
? B().m() == 1 and issubclass(list, A) and A.__abstractmethods__ == {'m'}

class Meta(type):
    def __call__(cls, *a): return super().__call__(*a), 'meta'
class A(metaclass=Meta): pass
? A()[1] == 'meta' and type(A) is Meta

class A:
    def __init__(self, n): self.n, self.me = n, self
a = A(3)
? a.me is a and a.n == 3

class D(dict):
    def __init__(self): self.extra = 1
d = D(); d['k'] = d
? d['k'] is d and d.extra == 1 and type(d) is D

from dataclasses import dataclass, field, asdict
@dataclass(order=True, frozen=True)
class P:
    x: int
    y: list = field(default_factory=list)
p = P(1)
? (p, p < P(2), asdict(p)) == (P(1), True, {'x': 1, 'y': []})

from enum import Enum, IntFlag, auto
class C(Enum):
    R = 1
    G = auto()
class F(IntFlag):
    A = 1
    B = 2
c, f = C.R, F.A | F.B
? c is C.R and C(2) is C.G and f == 3 and F.A in f

from collections import namedtuple
P = namedtuple('P', 'x y', defaults=[5])
p = P(1)
? p == (1, 5) and type(p) is P and p._replace(x=2).x == 2

from typing import NamedTuple, NewType, TypeVar, Generic, TypedDict
class P(NamedTuple):
    x: int = 0
Id = NewType('Id', int)
T = TypeVar('T')
class G(Generic[T]): pass
class D(TypedDict):
    k: int
? P().x == 0 and Id(3) == 3 and Id.__supertype__ is int and G[int]().__class__ is G and D(k=1) == {'k': 1}

class E(Exception):
    pass
e = E('a', 1); e.note = 'n'
? type(e) is E and e.args == ('a', 1) and e.note == 'n'

import weakref
class N: pass
a = N(); b = N(); a.up = weakref.ref(b); k = weakref.WeakKeyDictionary({a: 1})
? a.up() is b and k[a] == 1

from random import randint, Random
r = Random(1); r.random(); m = r.random
? __import__('random').randint == randint and m.__self__ is r

import os.path as op, xml.dom
env = __import__('os').environ
? op.join('a', 'b') == 'a/b' and env is __import__('os').environ

import sys; mod = sys.modules[__name__]
? mod.__dict__ is globals()

import io
s = io.StringIO('one two'); s.read(4)
? s.read() == 'two'

d = {'a': 1}; keys = d.keys()
? list(keys) == ['a']

import array, collections, datetime, decimal, fractions, pathlib, re, uuid
v = [
    re.compile("a+"), decimal.Decimal("1.1"), fractions.Fraction(1, 3), uuid.UUID(int=5), pathlib.Path("a/b"),
    datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc), collections.Counter("aab"), range(3), slice(1, 2),
    collections.deque([1], 3), collections.OrderedDict(b=1, a=2), collections.defaultdict(list, a=[1]), frozenset("a"),
    collections.ChainMap({}, {"a": 1}), array.array("d", [1, 2]), bytearray(b"ab"), 10**400, ..., NotImplemented, 1j,
]
w = list(v)
? v == w
"""
"""Cells, each with what must hold in the cell after it."""

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner) | st.sets(st.text()),
    max_leaves=20,
)


def after(source: str, check: str) -> Any:
    """What ``check`` gives in the cell after ``source``."""
    later = Main(source).carried()
    later.run(f"result = {check}")
    return later.names["result"]


@given(PLAIN)
def test_plain_values_are_the_same(value: object) -> None:
    main = Main()
    main.names["value"] = value
    assert main.carried().names["value"] == value


@pytest.mark.parametrize("case", CASES.strip().split("\n\n"))
def test_it_is_in_the_next_cell_what_it_was(case: str) -> None:
    source, _, check = case.partition("\n? ")
    assert after(source, check) is True


def test_a_function_reads_what_a_later_cell_assigns() -> None:
    later = Main("x = 1\ndef f(): return x\ndef change():\n global x\n x = 10").carried()
    later.run("x = 2; a = f(); change(); b = f()")
    assert (later.names["a"], later.names["b"]) == (2, 10)
    assert type(later.names["__builtins__"]) in (dict, types.ModuleType)


def test_what_was_carried_twice_is_what_was_carried_once() -> None:
    source = (
        "class A:\n def m(self): return [n for n in self.v if n]\na = A(); a.v = [0, 1]\ndef f(x='d'): return x, a.m()"
    )
    once = Main(source).carried()
    twice = once.carried().carried()
    twice.run("result = f()")
    assert twice.names["result"] == ("d", [1])


def payloads(main: Main, *names: str) -> bytes:
    written = carry_pickle.dump({name: main.names[name] for name in names}, 1 << 25, main.names, {})
    return b"".join(map(bytes, written.payload()))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("v = {'word': [1, 'two', b'three'], 'word2': ('word', 2.5)}", "v"),
        ("def value(data): return data.value + value(other)", "value"),
        ("class Value:\n def value(self, data=1): return self.data", "Value"),
        ("import math", "math"),
    ],
)
def test_what_a_cell_does_not_change_has_the_same_bytes_again(source: str, name: str) -> None:
    first = Main(source)
    first.names["own"] = first.names[name]
    second = Main()
    second.names.update(carry_pickle.load(bytearray(payloads(first, name))))
    third = Main()
    third.names.update(carry_pickle.load(bytearray(payloads(second, name))))
    assert payloads(second, name) == payloads(third, name)


# Arrays


def carried(value: object, shared: dict[int, int] | None = None) -> Any:
    written = carry_pickle.dump(value, 1 << 28, {}, shared or {})
    return carry_pickle.load(bytearray(b"".join(map(bytes, written.payload()))))


@pytest.mark.parametrize("dtype", ["f8", "i1", "?", "c16", "U5", "S3", "M8[s]", "O", "i4,f8", ">i2"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (20000, 10)])
def test_arrays_of_every_kind_and_size_are_the_same(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, dtype)
    for value in (array, array.T, array[..., ::2] if array.ndim else array):
        found = carried(value)
        assert (found.dtype, found.shape) == (value.dtype, value.shape)
        assert (found == value).all()


def test_large_arrays_stand_outside_the_pickle_and_in_the_memory_that_they_came_in() -> None:
    array = np.arange(100_000)
    written = carry_pickle.dump(array, 1 << 25, {}, {})
    assert sum(map(len, written.parts)) < 1000
    assert written.size < array.nbytes + 1000
    payload = bytearray(b"".join(map(bytes, written.payload())))
    found = carry_pickle.load(payload)
    assert (found == array).all()
    assert found.flags.writeable
    assert np.shares_memory(found, np.frombuffer(payload, "u1"))
    assert found.ctypes.data % carry_pickle.ALIGN == np.frombuffer(payload, "u1").ctypes.data % carry_pickle.ALIGN
    array.flags.writeable = False
    assert not carried(array).flags.writeable


def test_a_small_array_owns_its_memory_as_before() -> None:
    found = carried(np.arange(10))
    found.resize(20, refcheck=False)
    assert found.sum() == 45


def test_a_view_of_a_carried_array_stays_a_view_of_it() -> None:
    array = np.arange(24).reshape(4, 6)
    for view in (array[1:3, ::2], array.T, array[::-1]):
        base = carry_pickle.root_of(array)
        found, seen = carried((base, view), {id(base): 0})
        assert (seen == view).all()
        assert np.shares_memory(found, seen)
        found[...] = 7
        assert (seen == 7).all()
    assert not np.shares_memory(*carried((array, array[1:])))  # of one that is not carried as such


# What is refused


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("v = (n for n in 'a')", "generator"),
        ("v = open('/dev/null')", "TextIOWrapper"),
        ("v = open('/dev/null', 'rb')", "BufferedReader"),
        ("import threading; v = threading.Lock()", "_thread.lock"),
        ("import threading; v = threading.Thread()", "_thread"),
        ("import socket; v = socket.socket()", "socket"),
        ("import sqlite3; v = sqlite3.connect(':memory:')", "sqlite3.Connection"),
        ("v = memoryview(b'a')", "memoryview"),
        ("import sys; v = sys._getframe()", "frame"),
    ],
)
def test_what_stands_for_something_outside_is_refused(source: str, kind: str) -> None:
    main = Main(source)
    with pytest.raises((TypeError, pickle.PicklingError), match=kind):
        carry_pickle.dump({"v": main.names["v"]}, 1 << 20, main.names, {})
    getattr(main.names["v"], "close", lambda: None)()


@pytest.mark.parametrize("mode", ["w", "a", "r", "r+", "wb", "rb", "r+b"])
def test_a_file_that_was_closed_is_still_a_closed_file(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "n.txt"
    path.write_text("kept")
    with path.open(mode) as file:
        pass
    path.unlink()
    found = carried(file)
    assert (type(found), found.closed, found.name, found.mode) == (type(file), True, str(path), file.mode)
    assert getattr(found, "encoding", None) == getattr(file, "encoding", None)
    assert not path.exists()


def test_more_than_may_be_carried_is_refused_before_it_is_there() -> None:
    for value in (b"x" * 2_000_000, list(range(1_000_000)), np.zeros(1_000_000)):
        with pytest.raises(carry_pickle.TooLarge):
            carry_pickle.dump(value, 1_000_000, {}, {})


def test_deep_lists_are_carried_and_too_deep_ones_refused() -> None:
    deep: list[Any] = []
    for _ in range(1500):
        deep = [deep]
    found, depth = carried(deep), 0
    while found:
        found, depth = found[0], depth + 1
    assert depth == 1500
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises((RecursionError, pickle.PicklingError)):
        carry_pickle.dump(deep, 1 << 25, {}, {})


@given(st.binary(max_size=300))
def test_a_payload_that_is_none_is_an_error(data: bytes) -> None:
    # Only its frame is varied: what a pickle may do, it does in a box.
    with pytest.raises(Exception):  # noqa: B017
        carry_pickle.load(bytearray(data[:4].ljust(4, b"\xff") + b"\xff" * 8 + data))


# Lines


def test_a_function_of_an_earlier_cell_is_known_by_that_cells_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carry_lines, "source_lines", ["def f():\n", "    1 / 0\n"])
    monkeypatch.setattr(carry_lines, "texts", {})
    monkeypatch.setattr(carry_lines, "used", False)
    monkeypatch.setattr(carry_lines, "this_cell", "")
    carry_lines.begin(3)
    later = Main("def f():\n    1 / 0\n").carried()
    assert later.names["f"].__code__.co_filename == "/tmp/cell-3.py"
    assert carry_lines.state() == {"/tmp/cell-3.py": "def f():\n    1 / 0\n"}
    assert later.carried().names["f"].__code__.co_filename == "/tmp/cell-3.py"
    assert carry_lines.name_of("/tmp/cell-3.py") == "Cell 3"
    assert carry_lines.name_of("/tmp/cell-of-1a2b.py") == "An earlier cell"
    assert carry_lines.name_of("/tmp/cell.py") is carry_lines.name_of("/box/cell-3.py") is None
