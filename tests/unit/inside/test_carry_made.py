"""What is made of a program's own classes, and those classes: the same in the next cell, whatever made them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.carrying_inside import Main, carry_pickle

MADE = """class I(int):
    def __new__(cls, v): return super().__new__(cls, v * 2)
i = I(4)
? i == 8 and type(i) is I

class Pair(str):
    def __new__(cls, a, b):
        made = super().__new__(cls, a + b); made.b = b
        return made
p = Pair('x', 'y')
? p == 'xy' and p.b == 'y'

from collections import namedtuple
class Point(namedtuple('Point', 'x y')):
    def __new__(cls, x): return super().__new__(cls, x, -x)
p = Point(3)
? p == (3, -3) and p.y == -3 and type(p) is Point

class Needs:
    def __new__(cls, x):
        made = super().__new__(cls); made.x = x
        return made
n = Needs([1]); m = Needs(n); n.x.append(m)
? n.x[1] is m and m.x is n

class Only:
    one = None
    def __new__(cls):
        if cls.one is None: cls.one = super().__new__(cls)
        return cls.one
a = Only(); a.v = 1
? Only() is a and a.v == 1

class D(dict):
    def __setitem__(self, key, value): super().__setitem__(key, value * 2)
d = D(); d['a'] = 1; d.self = d
? d == {'a': 2} and d.self is d and type(d) is D

class Log(dict):
    def __init__(self, log): super().__init__(); self.log = log
    def __setitem__(self, key, value): self.log.append(key); super().__setitem__(key, value)
log = Log([]); log['a'] = 1
? log == {'a': 1} and log.log == ['a']

from collections import OrderedDict
class O(OrderedDict):
    def __setitem__(self, key, value): super().__setitem__(key, value + 1)
o = O(); o['b'] = 1; o['a'] = 2; o.move_to_end('b')
? list(o.items()) == [('a', 3), ('b', 2)]

from collections import Counter
class Bag(Counter):
    def __init__(self): super().__init__()
    def add(self, one): self[one] += 1
bag = Bag(); bag.add('x'); bag.add('x'); bag.v = 1
? bag['x'] == 2 and bag['y'] == 0 and type(bag) is Bag and bag.v == 1

from collections import defaultdict
class Tree(defaultdict):
    def __init__(self): super().__init__(Tree)
t = Tree(); t['a']['b'] = 1; t.v = 2
? t['a']['b'] == 1 and t.v == 2 and type(t['c']) is Tree

class L(list):
    def __init__(self, size): super().__init__([0] * size); self.size = size
    def extend(self, more): raise ValueError
    def append(self, one): super().append(one + 1)
l = L(2); l.append(1)
? l == [0, 0, 2] and l.size == 2

class S(set):
    def __init__(self, a, b): super().__init__((a, b)); self.a = a
    def add(self, one): raise ValueError
s = S(1, 2)
? s == {1, 2} and s.a == 1

class Code(Exception):
    def __init__(self, code): super().__init__(f'code {code}'); self.code = code
e = Code(5)
? str(e) == 'code 5' and e.code == 5 and e.args == ('code 5',)

class Two(ValueError):
    def __init__(self, a, b): super().__init__(a); self.b = b
e = Two(1, 2)
? e.args == (1,) and e.b == 2

class Missing(FileNotFoundError):
    def __init__(self, path, why): super().__init__(2, 'gone', path); self.why = why
e = Missing('a.txt', 'x')
? (e.errno, e.filename, e.why, str(e)) == (2, 'a.txt', 'x', "[Errno 2] gone: 'a.txt'")

from enum import Enum
class Planet(Enum):
    EARTH = (5.9, 6.3)
    WORLD = (5.9, 6.3)
    def __init__(self, mass, radius): self.mass = mass; self.more = []
e = Planet.EARTH; e.more.append(1)
? e.mass == 5.9 and e.more == [1] and Planet.WORLD is e is Planet((5.9, 6.3)) and list(Planet) == [e]

from enum import Enum
class Level(Enum):
    LOW = 1, 'low'
    def __new__(cls, value, label):
        made = object.__new__(cls); made._value_ = value; made.label = label
        return made
? Level(1).label == 'low' and Level.LOW.value == 1 and len(Level.__members__) == 1

from enum import Flag, IntEnum
class Right(Flag):
    R = 4; W = 2; RW = 6; NONE = 0
r = Right.R | Right.W
class Size(IntEnum): A = 1; B = 1
? Right.RW is r and Right.NONE.value == 0 and Size.B is Size.A and Size.A < 2

class Lazy:
    def __init__(self): self.d = {'x': 1}
    def __getattr__(self, name): return self.d[name]
a = Lazy()
? a.x == 1

class Counted:
    __slots__ = ('v', '__dict__')
    def __setattr__(self, name, value): object.__setattr__(self, name, value + 1)
a = Counted(); a.v = 1; a.w = 1
? (a.v, a.w) == (2, 2)

from dataclasses import dataclass
@dataclass(frozen=True, slots=True)
class Frozen: x: int
f = Frozen(1)
? f == Frozen(1) and f.x == 1

class State:
    def __new__(cls, v): return super().__new__(cls)
    def __init__(self, v): self.v = v
    def __getstate__(self): return {'w': self.v}
    def __setstate__(self, state): self.v = state['w'] + 1
s = State(1)
? s.v == 2

class Own(int):
    def __new__(cls, v): return super().__new__(cls, v * 2)
    def __getnewargs__(self): return (int(self) // 2,)
o = Own(4)
? o == 8

from typing import Generic, TypeVar
T = TypeVar('T')
class Box(Generic[T]):
    def __new__(cls, v): return super().__new__(cls)
    def __init__(self, v): self.v = v
b = Box(1)
? b.v == 1 and type(b) is Box
"""


def later(source: str) -> Main:
    """The next cell, in a process that has not seen the classes of this one."""
    main = Main(source)
    payload = main.payload()
    for tracker in ("_DYNAMIC_CLASS_TRACKER_BY_ID", "_DYNAMIC_CLASS_TRACKER_BY_CLASS"):
        getattr(carry_pickle.cloudpickle, tracker).clear()
    return Main.of(payload)


def after(source: str, check: str) -> Any:
    found = later(source)
    found.run(f"result = {check}")
    return found.names["result"]


@pytest.mark.parametrize("case", MADE.strip().split("\n\n"))
def test_an_instance_is_what_it_was_whatever_its_class_does_when_one_is_made(case: str) -> None:
    source, _, check = case.partition("\n? ")
    assert after(source, check) is True


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (
            "seen = []\nclass Base:\n def __init_subclass__(cls, tag, **more): seen.append(tag)\n"
            "class A(Base, tag='a'): x = 1",
            "(seen, A.x) == (['a'], 1)",
        ),
        (
            "seen = []\nclass Meta(type):\n"
            " def __new__(kind, name, bases, names, tag): return super().__new__(kind, name, bases, names)\n"
            " def __init__(cls, *a, tag): super().__init__(*a); seen.append(tag)\n"
            "class A(metaclass=Meta, tag=1): x = 1\nclass B(A, tag=2): pass",
            "(seen, B.x, type(B), A in B.__mro__) == ([1, 2], 1, Meta, True)",
        ),
        (
            "import abc\nclass Meta(abc.ABCMeta):\n def __call__(cls): return super().__call__() if cls.may else None\n"
            "class A(metaclass=Meta):\n may = 0\n @abc.abstractmethod\n def f(self): ...",
            "(A(), A.__abstractmethods__) == (None, frozenset({'f'}))",
        ),
        (
            "from typing import Generic, TypeVar\nT = TypeVar('T')\nclass Base(Generic[T]):\n"
            " def __init_subclass__(cls): super().__init_subclass__(); cls.made = True\nclass A(Base[int]): pass",
            "A.made and A.__orig_bases__ == (Base[int],) and Base.__parameters__ == (T,)",
        ),
    ],
)
def test_a_class_is_made_again_without_what_looks_at_its_making(source: str, found: str) -> None:
    assert after(source, found) is True


def test_what_looks_at_classes_does_so_again_for_new_ones() -> None:
    found = later("seen = []\nclass Base:\n def __init_subclass__(cls): seen.append(cls.__name__)\nclass A(Base): pass")
    found.run("class B(Base): pass")
    assert found.names["seen"] == ["A", "B"]
