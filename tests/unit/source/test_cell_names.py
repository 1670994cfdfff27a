from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.source.cell_names import DEEPEST, LONGEST, defined_names, parsed, python_of
from tests.timing import processor_time


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("a = b = 1", "a b"),
        ("(a, [b, *c]), d.e, f[0] = x", "a b c"),
        ("a += 1\nb: int = 2\nc: int", "a b"),
        ("print(a := 1)", "a"),
        ("for a, b in x:\n    c = 1\nelse:\n    d = 1", "a b c d"),
        ("with x as a, y as (b, c): pass", "a b c"),
        ("try:\n    a = 1\nexcept E as b:\n    c = 1\nfinally:\n    d = 1", "a b c d"),
        ("import a, b.c, d.e as f\nfrom g import h, i as j\nfrom k import *", "a b f h j"),
        ("def a(b, c=(d := 1)):\n    e = 1\n    def f(): pass", "a d"),
        ("async def a():\n    b = 1\nc = await a()", "a c"),
        ("@(a := d)\nclass b(c := object):\n    e = 1", "a b c"),
        ("def a():\n    if x:\n        global b\n    b = 1", "a b"),
        ("match x:\n    case [a, *b] | {'k': a, **b}: pass\n    case C(d=c) as e: pass\n    case _: pass", "a b c e"),
        ("[a for a in x if (b := a)]\nlambda c: (d := c)", "b"),
        ("a = b = 1\ndel a", "b"),
        ("del a\na = 1", "a"),
        ("type = 1\nprint = 2", "type print"),
        ("é = 1", "é"),
        ("", ""),
    ],
)
def test_names_bound_at_the_top_are_found(source: str, names: str) -> None:
    assert defined_names(source) == frozenset(names.split())


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("%matplotlib inline\n!pip install x\na = 1\na?", "a"),
        ("if x:\n    !ls\na = 1", "a"),
        ("%time a = load()\nb = !ls\nc = %who", "a b c"),
        ("%%time\na = 1", "a"),
        ("%%capture out\na = 1", "a"),
        ("%%timeit\na = 1", ""),
        ("%%bash\na=1", ""),
        ("a = '''\n%d\n'''", "a"),
    ],
)
def test_magics_are_passed_over(source: str, names: str) -> None:
    assert defined_names(source) == frozenset(names.split())


def test_a_line_of_a_magic_keeps_its_place_and_its_end() -> None:
    assert python_of("a\r\n  %x\r\n!y") == "a\r\n  pass\r\npass"


@pytest.mark.parametrize("source", ["a = ", "a = 1\x00", "\ud800 = 1", "a = '\ud800", "a = 1\n  b = 2", "import = 7q"])
def test_what_is_no_python_binds_nothing(source: str) -> None:
    assert defined_names(source) == frozenset()


HOSTILE = {
    "long": "a = 1\n" * LONGEST,
    "brackets": "[" * LONGEST,
    "deep": "a = " + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1),
    "unary": "a = " + "-" * 65_000 + "1",
    "sum": "a = 1" + "+1" * 32_000,
    "attributes": "a = b" + ".c" * 32_000,
    "lambda": "lambda: " * 8_000,
    "statements": "a;" * 32_000,
    "f-string": 'f"' + "{a}" * 21_000 + '"',
    "names": "\n".join(f"n{i} = 1" for i in range(6_000)),
    "giant": "a" * 65_000,
    "indented": "".join(" " * i + "if a:\n" for i in range(99)),
    "magics": "%a\n" * 21_000,
    "globals": "def f():\n" + " global a\n" * 6_000,
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_no_text_takes_long(source: str) -> None:
    with processor_time(below=3):
        defined_names(source)


def test_what_is_too_long_or_too_deep_is_not_parsed() -> None:
    assert parsed(HOSTILE["long"]) is None
    assert parsed(HOSTILE["deep"]) is None


@given(st.text(alphabet="a=1:,.()[]{}\n \t%!?'\"\\\ud800\x00é*", max_size=200))
def test_any_text_is_looked_into_without_an_error(source: str) -> None:
    assert all(isinstance(name, str) for name in defined_names(source))
