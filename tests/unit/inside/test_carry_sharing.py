"""Which names are carried together, and which names their functions may read."""

from __future__ import annotations

import time

import pytest

from pybox_kernel.carry import reach as carry_reach
from tests.unit.carrying_inside import Main, carry_sharing


def together(source: str) -> list[str]:
    return [" ".join(names) for names, _ in Main(source).groups()]


def needs(source: str) -> set[str]:
    """Of the last group."""
    return Main(source).groups()[-1][1]


@pytest.mark.parametrize(
    ("source", "groups"),
    [
        ("a = b = []; c = []", ["a b", "c"]),
        ("a = []; b = {'x': (a,)}; c = [b]; d = 1", ["a b c", "d"]),
        ("a = 1; b = a; c = 'text'; d = c; e = None; f = e", ["a", "b", "c", "d", "e", "f"]),
        ("a = [1]; b = list(a)", ["a", "b"]),
        ("a = []; a.append(a); b = 2", ["a", "b"]),
        ("import os; import os as o; from math import sqrt; from math import sqrt as s", ["os", "o", "sqrt", "s"]),
        ("from dataclasses import dataclass, field; from enum import Enum", ["dataclass", "field", "Enum"]),
        ("def f(): return g()\ndef g(): return f()\nh = f", ["f h", "g"]),
        ("class A: pass\na = A(); b = A(); c = A", ["A a b c"]),
        ("class A: pass\nclass B(A): pass\nb = B(); class_ = type(b)", ["A B b class_"]),
        ("class A: kept = []\nk = A.kept", ["A k"]),
        ("def make():\n n = []\n return (lambda: n), lambda: n\ni, g = make()", ["make", "i g"]),
        ("items = [1]; put = items.append; text = 'a'; up = text.upper", ["items put", "text", "up"]),
        ("import weakref\nclass A: pass\na = A(); b = A(); a.up = weakref.ref(b)", ["weakref", "A a b"]),
        ("from functools import cache\n@cache\ndef f(n): return n\n@cache\ndef g(n): return n", ["cache", "f", "g"]),
        ("def f(x=[]): return x\nd = f.__defaults__[0]", ["f d"]),
        ("from random import Random\na = Random(1); b = Random(1); r = a.random", ["Random", "a r", "b"]),
        ("import datetime as d\na = d.date(2024, 1, 1); b = a", ["d", "a", "b"]),
        ("e = ValueError([1]); f = e.args[0]", ["e f"]),
        ("class A: pass\ndef f(a: A): pass\ndef g(a: 'A'): pass", ["A f", "g"]),
    ],
)  # fmt: skip
def test_names_that_share_an_object_with_an_identity_are_together(source: str, groups: list[str]) -> None:
    assert together(source) == groups


def test_an_exceptions_frames_do_not_bring_everything_together() -> None:
    source = "a = []; b = []\ntry:\n  1 / 0\nexcept ZeroDivisionError as error:\n  e = error"
    assert together(source) == ["a", "b", "e"]


def test_the_namespace_itself_is_no_shared_object() -> None:
    assert together("a = []; g = globals(); b = []") == ["a", "g", "b"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(): return x + y.z", {"x", "y"}),
        ("def f(): return [x for _ in range(3)]", {"x", "range"}),
        ("def f():\n def g(): return x\n return g", {"x"}),
        ("def f():\n class A:\n  a = x\n return A", {"x", "a"}),
        ("def f():\n global x, y\n x = 1\n del y", {"x", "y"}),
        ("class A:\n @property\n def p(self): return y\n @staticmethod\n def s(): z", {"y", "z"}),
        ("class A:\n def m(self): return x\nclass B(A):\n def n(self): return y", {"x", "y"}),
        ("def f(): return g()", {"g"}),
        ("f = [lambda: x, {'k': lambda: y}]", {"x", "y"}),
        ("def f(): return globals()['x']", {"*"}),
        ("def f(): return eval('x')", {"*"}),
        ("def f():\n import __main__\n return __main__.x", {"*"}),
        ("def f(d): return d.query('a > @x')", {"*"}),
        ("def f(): import sys; return sys._getframe(1).f_globals", {"*"}),
        ("x = [1]", set()),
        ("def f(a: 'list[x]') -> 'y': pass", {"x", "y"}),
        ("def f(b):\n import pickle\n return pickle.loads(b)", {"*"}),
        ("def f(p): return pd.read_pickle(p)", {"*"}),
        ("def f():\n import doctest\n doctest.testmod()", {"*"}),
        ("e = eval", {"*"}),
        ("d = {'run': exec}", {"*"}),
        ("p = print", set()),
    ],
)  # fmt: skip
def test_the_names_that_code_may_read_are_told(source: str, names: set[str]) -> None:
    found = needs(source)
    assert names <= found
    assert ("*" in found) is ("*" in names)
    assert "z" not in found or "z" in names


def test_a_word_that_reaches_everything_in_a_cell_does_so_in_a_function_of_an_earlier_one() -> None:
    assert carry_reach.FINDERS <= carry_sharing.EVERYTHING
    assert carry_reach.PICKLED == carry_sharing.PICKLED


def test_names_beyond_the_first_256_are_found() -> None:
    body = "\n".join(f" n{number}" for number in range(600))
    assert "*" in needs(f"def f():\n{body}")  # more than are told one by one
    body = "\n".join(f" n{number}" for number in range(400))
    assert needs(f"def f():\n{body}") == {f"n{number}" for number in range(400)}


def test_what_is_too_much_to_look_through_is_one_group_that_may_need_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carry_sharing, "MOST_OBJECTS", 1000)
    found = Main("a = []; b = [[] for _ in range(2000)]; c = []; d = 1; e = 'x'").groups()
    assert [names for names, _ in found] == [["a", "b", "c"], ["d"], ["e"]]
    assert found[0][1] == {"*"}


def test_a_hundred_thousand_values_and_a_million_numbers_are_looked_through_quickly() -> None:
    main = Main("many = [[n] for n in range(100_000)]; numbers = list(range(1_000_000)); d = dict.fromkeys(numbers)")
    began = time.process_time()
    assert [names for names, _ in main.groups()] == [["many"], ["numbers"], ["d"]]
    assert time.process_time() - began < 3


def test_what_lies_about_its_class_is_taken_as_what_it_is() -> None:
    source = """
class Liar:
    __class__ = property(lambda self: 1 / 0)
    def __getattr__(self, name): raise SystemExit(name)
    def __eq__(self, other): raise SystemExit
    __hash__ = None
a = Liar(); b = [a]
class Meta(type):
    def __getattribute__(cls, name): raise RuntimeError(name)
class Odd(metaclass=Meta): pass
c = 1
"""
    assert together(source) == ["Liar a b", "Meta Odd", "c"]


@pytest.mark.parametrize(
    ("arrays", "groups"),
    [
        ("a = np.arange(6); b = a[1:]; c = np.arange(6)", ["a b", "c"]),
        ("a = np.arange(6).reshape(2, 3); b = a.T; c = a.ravel()", ["a b c"]),
        ("a = np.arange(6).reshape(2, 3); b = 2 * a", ["a", "b"]),
        ("t = np.arange(2000).reshape(100, 20); a = t[0]; b = t[1]; t = 0", ["t", "a", "b"]),
    ],
)
def test_arrays_that_share_memory_are_together_and_still_share_it(arrays: str, groups: list[str]) -> None:
    source = f"import numpy as np; {arrays}"
    assert together(source) == ["np", *groups]
    names = Main(source).carried().names
    if groups[0].startswith("a b"):
        names["b"][...] = -1
        assert names["a"][-1 if names["a"].ndim == 1 else (1, 2)] == -1
