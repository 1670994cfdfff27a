"""What a cell can reach of what is carried: never less than it can, and not a large value that it does not name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.carry.reach import reached


class Group(NamedTuple):
    names: Sequence[str]
    needs: Sequence[str] = ()


GROUPS = [
    Group(["big"]),
    Group(["x", "y"]),
    Group(["mean"], ["x", "np", "print"]),
    Group(["np"]),
    Group(["Point"], ["Base"]),
    Group(["Base"]),
    Group(["anything"], ["*"]),
    Group(["café"]),
    Group(["search"], ["globals"]),
]
ALL = {name for group in GROUPS for name in group.names}


def names(source: str, groups: Sequence[Group] = GROUPS) -> set[str]:
    found = reached(source, groups)
    return {name for group, there in zip(groups, found, strict=True) if there for name in group.names}


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("", set()),
        ("1 + 1", set()),
        ("z = 3\nprint(z)", set()),
        ("x", {"x", "y"}),
        ("y += 1", {"x", "y"}),
        ("mean([1, 2])", {"mean", "x", "y", "np"}),
        ("class P3(Point): pass", {"Point", "Base"}),
        ("del big", {"big"}),
        ("def f():\n    global big\n    big = 1", {"big"}),
        ("[x for x in range(3)]", {"x", "y"}),
        ("# big is not used", {"big"}),
        ("'{np}'.format(np=1)", {"np"}),
        ("f'{np}'", {"np"}),
        ("profiler('mean(3)')", {"mean", "x", "y", "np"}),
        ("%time mean(3)", {"mean", "x", "y", "np"}),
        ("%%timeit\nnp.sum()", {"np"}),
        ("np?", {"np"}),
        ("ｎｐ.sum()", {"np"}),
        ("cafe\u0301", {"café"}),
        ("this is no Python, but np is in it", {"np"}),
        ("bigger + xx + _np", set()),
    ],
)
def test_a_cell_reaches_what_stands_in_it_and_what_that_reads(source: str, wanted: set[str]) -> None:
    assert names(source) == wanted


@pytest.mark.parametrize(
    "source",
    [
        "globals()['b' + 'ig']",
        "eval(text)",
        "exec(text)",
        "vars()",
        "print(locals())",
        "dir()",
        "from math import *",
        "from math import(*)",
        "import __main__",
        "sys.modules[__name__].big",
        "sys._getframe().f_globals",
        "__import__('__main__')",
        "importlib.import_module('__main__')",
        "inspect.stack()",
        "gc.get_objects()",
        "pickle.loads(blob)",
        "pd.read_pickle('x')",
        "df.query(condition)",
        "unittest.main(argv=[''], exit=False)",
        "cProfile.run(text)",
        "timeit.timeit(text, setup=other_text)",
        "doctest.testmod()",
        "get_ipython().user_ns",
        "%run other.py",
        "x = 1\n  %who",
        "%%unknown\n1",
        "anything()",
        "search()",
    ],
)
def test_what_finds_names_at_run_time_reaches_all(source: str) -> None:
    assert names(source) == ALL


def test_a_chain_of_needs_is_followed_to_its_end() -> None:
    chain = [Group([f"f{n}"], [f"f{n + 1}"]) for n in range(2000)]
    assert len(names("f0()", chain)) == 2000
    assert len(names("f1990()", chain)) == 10
    ring = [Group(["a"], ["b"]), Group(["b"], ["a"]), Group(["c"], ["a"])]
    assert names("a", ring) == {"a", "b"}


@given(st.text(alphabet=st.sampled_from("xy \n.()=#'\"%!npbig*é\\"), max_size=60))
def test_any_text_has_an_answer_that_holds_each_name_of_the_program(source: str) -> None:
    found = names(source)
    try:
        code = compile(source, "cell", "exec")
    except (SyntaxError, ValueError):
        return
    assert found >= ALL.intersection(code.co_names)


def test_the_largest_cell_among_the_most_names_takes_a_moment_only() -> None:
    groups = [Group([f"n{n}"], [f"n{(n * 7 + k) % 10_000}" for k in range(5)]) for n in range(10_000)]
    source = " ".join(f"n{n}" for n in range(0, 10_000, 2))[:65536]
    began = time.perf_counter()
    assert len(names(source, groups)) == 10_000
    assert time.perf_counter() - began < 1.0  # 0.03 s
