from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.source.cell_text import Import, before, calls_around, covered, enclosing_class, import_at


@pytest.mark.parametrize(
    ("code", "stem", "operand"),
    [
        ("pri", "pri", None),
        ("a.b", "b", "a"),
        ("a . b.c", "c", "a . b"),
        ("x = f(1, [2]).up", "up", "f(1, [2])"),
        ("f(a, b(1).c", "c", "b(1)"),
        ("a[0](1)[2].", "", "a[0](1)[2]"),
        ("'a(b'.", "", "'a(b'"),
        ("rb'''x\n'''.", "", "rb'''x\n'''"),
        ("return [1].", "", "[1]"),
        ("x = {'a': 1}.", "", "{'a': 1}"),
        ("f(')').a", "a", "f(')')"),
        ("'# no comment'; a", "a", None),
        ("# a comment's quote\nb", "b", None),
        ("a\n.b", "b", None),
        (").a", "a", None),
        ("(]).a", "a", None),
    ],
)
def test_what_is_being_written_is_found(code: str, stem: str, operand: str | None) -> None:
    place = before(code)
    assert (place.where, place.stem) == ("code", stem)
    assert operand == (None if place.operand is None else code[place.operand : place.dot].rstrip())


@pytest.mark.parametrize(
    "code",
    [
        *("'a", '"a', "f'{a", "'''a\n'b", '"""a', "'a\\'", "'a\\", "rb'a", "x = 'it\\'s a"),
        *("# a", "a # b", "#"),
        *("!ls a", "  !a", "%a", "%%a", "?a"),
        *("def a", "class a", "import b as a", "with a as b", "global a"),
        *("12a", "x = 'a'", "f()", "a[0]"),
    ],
)
def test_where_no_name_can_be_completed_it_is_quiet(code: str) -> None:
    assert before(code).where == "quiet"


@pytest.mark.parametrize("code", ["'a\nb", "'a' b", "a %b", "x = a %b", "%time a", "as_", "x.def_", "'a';b"])
def test_what_looks_like_it_is_not(code: str) -> None:
    assert before(code).where == "code"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import ", Import("", None)),
        ("import os.pa", Import("os.pa", None)),
        ("import os as o, js", Import("js", None)),
        ("x = 1; import o", Import("o", None)),
        ("if x: import o", Import("o", None)),
        ("    from o", Import("o", None)),
        ("from os import ", Import("os", "")),
        ("from os.path import a as b, jo", Import("os.path", "jo")),
        ("from os import (path,\n    ge", Import("os", "ge")),
        ("from os import path\nge", None),
        ("from os import (path)\nge", None),
        ("important", None),
        ("x.import a", None),
        ("yield from o", None),
        ("from . import a", Import(".", "a")),
        ("from .a", Import(".a", None)),
    ],
)
def test_an_import_statement_is_known(code: str, found: Import | None) -> None:
    assert import_at(covered(code)) == found


def test_calls_that_are_open_are_found_from_the_inside() -> None:
    code = "f(1, g.h('(', [x(2), ("
    assert [code[:end] for end in calls_around(covered(code))] == ["f(1, g.h", "f"]


def test_the_class_around_is_told_by_indentation() -> None:
    code = "class A:\n    x = 1\n    def f(self):\n        if x:\n            '''\nclass B:\n'''\n\n            self."
    assert enclosing_class(covered(code)) == "A"
    assert enclosing_class(covered("class A:\n    x = 1\ndef f(self):\n    self.")) is None
    assert enclosing_class("") is None


@given(st.text(alphabet="ab1.,()[]{}'\"#\\\n \t=;:%!rbf\x00\ud800é", max_size=100))
def test_covering_keeps_every_place(code: str) -> None:
    text = covered(code)
    assert len(text) == len(code)
    assert all(new in (old, '"', " ") for new, old in zip(text, code, strict=True))
    place = before(code)
    assert code.endswith(place.stem)
    assert place.operand is None or (place.dot is not None and place.operand <= place.dot < len(code))
