"""Times are written as IPython writes them; loops and options are those of its ``%timeit``."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.magics.execution import _format_time

from pybox_kernel.inside.timing import ALL_SECONDS, in_words, timeit


@given(st.floats(1e-9, 1e6), st.integers(1, 9))
def test_a_time_is_written_as_ipython_writes_it(seconds: float, precision: int) -> None:
    assert in_words(seconds, precision) == _format_time(seconds, precision)


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 999e-9, 1e-6, 0.999, 1.0, 59.999, 60.0, 3600.0, 86400.0, 90061.0])
def test_the_ends_of_each_unit_are_ipythons(seconds: float) -> None:
    assert in_words(seconds) == _format_time(seconds)


@pytest.mark.parametrize(
    ("line", "loops", "runs"),
    [("-n 5 -r 2 1+1", 5, 2), ("-n5 -r3 1+1", 5, 3), ("-r1 -n1 -q -o 1+1", 1, 1), ("-qo -n2 -r2 -p 5 1+1", 2, 2)],
)
def test_options_are_read_as_they_are_written(line: str, loops: int, runs: int) -> None:
    result = timeit("-o " + line, None, {}, 1)
    assert result is not None
    assert (result.loops, result.repeat) == (loops, runs)


def test_without_o_there_is_no_value_and_with_q_nothing_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert timeit("-n1 -r1 -q 1+1", None, {}, 1) is None
    assert capsys.readouterr().out == ""
    assert timeit("-n1 -r1 1+1", None, {}, 1) is None
    assert " per loop (mean ± std. dev. of 1 run, 1 loop each)\n" in capsys.readouterr().out


def test_a_name_gets_the_result() -> None:
    names: dict[str, object] = {"x": 3}
    timeit("-n1 -r1 -q -v kept x - -1", None, names, 1)
    assert "TimeitResult" in repr(names["kept"])


@pytest.mark.parametrize("statement", ["pass", "time.sleep(0.02)", "time.sleep(0.3)", "time.sleep(1.1)"])
def test_all_runs_together_take_about_a_second(statement: str) -> None:
    began = time.perf_counter()
    timeit("-q " + statement, None, {"time": time}, 1)
    assert time.perf_counter() - began < 2.5 * ALL_SECONDS
