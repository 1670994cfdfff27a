"""Values into a box and back out of it, on the real engine."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pytest

from pybox_kernel.session import RunResult, Session
from pybox_kernel.values import ValuesAsked, checked_wanted, taken

pytestmark = pytest.mark.engine


def run(session: Session, source: str, values: Mapping[str, Any], *wanted: str, **options: Any) -> RunResult:
    asked = ValuesAsked(taken(list(values), values), checked_wanted(wanted, {}, replace=False))
    return session.run(source, values=asked, **options)


def brought(result: RunResult) -> dict[str, Any]:
    assert result.receipt.ok, (result.stderr, result.error, result.receipt.problem)
    return {value.name: value.value for value in result.values.brought}


PLAIN = {
    "nothing": None,
    "truths": (True, False),
    "numbers": [0, -1, 2**63 - 1, -(2**63), 2**64, 10**300],
    "floats": [0.1, -0.0, 1e308, float("inf")],
    "many": list(range(10_000)),
    "complex_one": 1 - 2j,
    "text": "größte\n\t\0 \U0001f600 \ud800",
    "texts": ["", "a", "ü" * 5] * 100,
    "raw": bytes(range(256)),
    "nested": {"a": [{"b": ({1, 2}, {"c"})}], 5: [], "": {}},
    "day": datetime.date(2024, 2, 29),
    "moments": [
        datetime.datetime(1, 1, 1),
        datetime.datetime(2024, 3, 31, 1, 30, 0, 7, tzinfo=datetime.UTC),
        datetime.datetime(2024, 3, 31, 1, 30, tzinfo=datetime.timezone(datetime.timedelta(minutes=-90))),
    ],
    "clock": datetime.time(23, 59, 59, 999_999),
    "spans": (datetime.timedelta(days=-3, microseconds=1), datetime.timedelta.max),
}


def test_plain_values_come_back_as_they_were(session: Session) -> None:
    source = "; ".join(f"{name}_out = {name}" for name in PLAIN)
    found = brought(run(session, source, PLAIN, *(f"{name}_out" for name in PLAIN)))
    assert {name: (found[f"{name}_out"], type(found[f"{name}_out"])) for name in PLAIN} == {
        name: (value, type(value)) for name, value in PLAIN.items()
    }


def test_what_the_program_makes_of_them_comes_back_and_is_told(session: Session) -> None:
    source = "total = sum(numbers); parts = {'mean': total / len(numbers)}; fault = open"
    result = run(session, source, {"numbers": [1, 2, 3]}, "total", "parts", "fault", "never")
    assert brought(result) == {"total": 6, "parts": {"mean": 2.0}}
    (given,) = result.receipt.asked.options.values
    assert (given.name, given.kind, given.shape) == ("numbers", "list", (3,))
    assert result.receipt.asked.options.values_wanted == ("total", "parts", "fault", "never")
    assert [(value.name, value.kind, value.shape) for value in result.receipt.said.values] == [
        ("total", "whole number", ()),
        ("parts", "dict", (1,)),
    ]
    assert {lost.name: lost.why for lost in result.receipt.said.values_not_brought} == {
        "fault": "is of the type builtin_function_or_method",
        "never": "is not there: the cell did not define it",
    }


@pytest.mark.parametrize("end", ["1 / 0", "import os; os._exit(0)", "while True: pass", "raise SystemExit(3)"])
def test_nothing_comes_back_from_a_run_that_did_not_end_well(session: Session, end: str) -> None:
    result = run(session, f"a = 1\n{end}", {}, "a", deadline_seconds=0.5)
    assert not result.receipt.ok
    assert result.values.brought == result.receipt.said.values == ()
    (lost,) = result.receipt.said.values_not_brought
    assert (lost.name, lost.why) == ("a", "did not come: only a cell that ends well gives values back")
