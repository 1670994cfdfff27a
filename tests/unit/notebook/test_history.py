from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.notebook.history import MOST_BYTES, MOST_CELLS, History, Pattern
from tests.timing import processor_time


@pytest.fixture
def history() -> History:
    made = History()
    for line, source in enumerate(["a = 1", "b = 2", "a = 1", "print(a)"], 1):
        made.add(line, source)
    return made


def test_a_range_is_of_this_session(history: History) -> None:
    assert history.answer("range", session=0, start=2, stop=4) == [(0, 2, "b = 2"), (0, 3, "a = 1")]
    assert history.answer("range", start=4) == [(0, 4, "print(a)")]
    assert history.answer("range", session=-1, start=0) == []


def test_the_tail_is_the_newest_oldest_first(history: History) -> None:
    assert history.answer("tail", n=2) == [(0, 3, "a = 1"), (0, 4, "print(a)")]
    assert len(history.answer("tail", n=100)) == 4
    assert history.answer("tail", n=0) == history.answer("tail", n=-1) == []


def test_a_search_finds_whole_inputs(history: History) -> None:
    assert history.answer("search", pattern="a = ?") == [(0, 1, "a = 1"), (0, 3, "a = 1")]
    assert history.answer("search", pattern="a = ?", unique=True) == [(0, 3, "a = 1")]
    assert history.answer("search", pattern="*[!1]", n=1) == [(0, 4, "print(a)")]
    assert history.answer("search", pattern="a") == []
    assert len(history.answer("search")) == 4


def test_what_the_protocol_does_not_know_has_no_answer(history: History) -> None:
    assert history.answer("other") == []


def test_the_oldest_inputs_go() -> None:
    history = History()
    for line in range(MOST_CELLS + 5):
        history.add(line, "x")
    kept = history.answer("tail")
    assert (len(kept), kept[0][1]) == (MOST_CELLS, 5)
    history.add(2000, "é" * (MOST_BYTES // 2))
    assert [line for _, line, _ in history.answer("tail")] == [2000]
    history.add(2001, "x" * (MOST_BYTES + 1))
    assert [line for _, line, _ in history.answer("tail")] == [2000]
    history.add(2002, "\ud800")
    assert [line for _, line, _ in history.answer("tail")] == [2002]


@given(st.text(alphabet="ab*?[]!\n\\.", max_size=30), st.text(alphabet="ab[]!\n\\.", max_size=30))
def test_a_pattern_fits_as_for_file_names(pattern: str, text: str) -> None:
    assert Pattern(pattern)(text) == fnmatch.fnmatchcase(text, pattern)


def test_a_set_can_be_turned_round_in_both_ways() -> None:
    assert [Pattern(pattern)("b") for pattern in ("[^a]", "[!a]", "[^b]", "[!b]")] == [True, True, False, False]


@pytest.mark.parametrize(
    "pattern",
    [
        "*" + "a?" * 90 + "b*",
        "*a" * 99 + "b",
        "*" * 199 + "b",
        "*" + "[a-z]" * 36 + "b*",
        "*?" * 99 + "b",
        "?" * 10_000,
    ],
)
def test_no_pattern_takes_long(pattern: str) -> None:
    history = History()
    for line in range(20):
        history.add(line, "a" * (MOST_BYTES // 20 - 1))
    with processor_time(below=2):
        history.answer("search", pattern=pattern)
