"""Values into a box and back out of it, on the real engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from pybox_kernel.errors import OptionError
from pybox_kernel.policy import policy_for
from pybox_kernel.sessions.session import RunResult, Session
from pybox_kernel.wire.values import ValuesAsked, checked_wanted, taken
from tests.values import ARRAYS, PLAIN, POLARS, TABLES, assert_same

pytestmark = pytest.mark.engine


def run(session: Session, source: str, values: Mapping[str, Any], *wanted: str, **options: Any) -> RunResult:
    asked = ValuesAsked(taken(list(values), values), checked_wanted(wanted, {}, replace=False))
    return session.run(source, values=asked, **options)


def brought(result: RunResult) -> dict[str, Any]:
    assert result.receipt.ok, (result.stderr, result.error, result.receipt.problem)
    assert result.values.not_brought == ()
    return {value.name: value.value for value in result.values.brought}


def test_plain_values_come_back_as_they_were(session: Session) -> None:
    found = brought(run(session, "", PLAIN, *PLAIN))
    assert list(found) == list(PLAIN)
    for name, value in PLAIN.items():
        assert_same(found[name], value)


@pytest.mark.usefixtures("data_image")
def test_arrays_and_tables_come_back_as_they_were(session: Session) -> None:
    values = {**ARRAYS, **TABLES}
    source = """
import numpy as np, pandas as pd
assert type(array_0) is np.ndarray and type(table) is pd.DataFrame
table_made = table.assign(more=table["int8"].astype("float") * 2)
"""
    result = run(session, source, values, *values, "table_made", policy=policy_for("data"), deadline_seconds=10)
    assert len(values) < 64, "one box takes them all"
    found = brought(result)
    made = found.pop("table_made")
    assert_same(made, TABLES["table"].assign(more=np.arange(12.0) * 2))
    assert list(found) == list(values)
    for name, value in values.items():
        assert_same(found[name], value)


def test_what_a_box_has_no_library_for_is_refused_before_the_run(session: Session) -> None:
    for value in (ARRAYS["array_0"], TABLES["table"], TABLES["tables_in_a_list"], POLARS["polars_table"]):
        with pytest.raises(
            OptionError, match=r"x needs (numpy|polars|numpy and pandas), which the box 'stdlib' does not have"
        ):
            run(session, "print(x)", {"x": value})


def test_what_the_program_makes_of_them_comes_back_and_is_told(session: Session) -> None:
    source = "total = sum(numbers); parts = {'mean': total / len(numbers)}; fault = [open]; long = bytes(9 << 20)"
    result = run(session, source, {"numbers": [1, 2, 3]}, "total", "parts", "fault", "never", "long")
    assert result.receipt.ok
    assert [(value.name, value.value) for value in result.values.brought] == [("total", 6), ("parts", {"mean": 2.0})]
    (given,) = result.receipt.asked.options.values
    assert (given.name, given.kind, given.shape) == ("numbers", "list", (3,))
    assert result.receipt.asked.options.values_wanted == ("total", "parts", "fault", "never", "long")
    assert [(value.name, value.kind, value.shape) for value in result.receipt.said.values] == [
        ("total", "whole number", ()),
        ("parts", "dict", (1,)),
    ]
    assert {lost.name: lost.why for lost in result.receipt.said.values_not_brought} == {
        "fault": "holds what cannot be brought back: fault[0] is of the type builtin_function_or_method",
        "never": "is not there: the cell did not define it",
        "long": "is too large: all values together may have 8 MB",
    }


def test_eight_megabytes_go_each_way_in_a_box_of_128(session: Session) -> None:
    data = bytes(range(256)) * (1 << 15)
    result = run(session, "back = data[::-1]", {"data": data[:-100]}, "back")
    assert brought(result)["back"] == data[:-100][::-1]
    peak = result.receipt.observed.meters.memory_peak_bytes
    assert peak is not None
    assert peak < 100 << 20


@pytest.mark.parametrize("end", ["1 / 0", "import os; os._exit(0)", "while True: pass", "raise SystemExit(3)"])
def test_nothing_comes_back_from_a_run_that_did_not_end_well(session: Session, end: str) -> None:
    result = run(session, f"a = 1\n{end}", {}, "a", deadline_seconds=0.5)
    assert not result.receipt.ok
    assert result.values.brought == result.receipt.said.values == ()
    (lost,) = result.receipt.said.values_not_brought
    assert (lost.name, lost.why) == ("a", "did not come: only a cell that ends well gives values back")


FORGED = """
import os
def say(kind, payload=b""):
    data = memoryview(kind + len(payload).to_bytes(4, "big") + payload)
    while data:
        data = data[os.write(3, data):]
def record(kind, payload):
    return kind + len(payload).to_bytes(8, "big") + payload
def manifest(values, missing=b""):
    return record(b"m", b'{"values": [%s], "missing": [%s]}' % (values, missing))
ONE = b'{"name": "a"}'
"""


@pytest.mark.parametrize(
    ("forged", "why"),
    [
        ("record(b'm', b'{}')", "did not come: what the program says of it cannot be read"),
        ("record(b'm', b'[' * 60000)", "did not come: what the program says of it cannot be read"),
        ("manifest(ONE)", "did not come: what the program sent is not what it says"),
        ("manifest(ONE) + record(b'v', b'l' + bytes(4))[:-1]", "did not come: it did not come whole"),
        ("manifest(ONE) + record(b'v', b'l\\1\\0\\0\\0' * 9000)", "did not come in a form that can be read"),
        ('manifest(b\'\', b\'{"name": "a", "why": "is \\\\u001b[2J"}\')', "is \\x1b[2J"),
        ("b'v'", "did not come: it did not come whole"),
    ],
)
def test_a_program_that_speaks_for_its_runner_gives_nothing(session: Session, forged: str, why: str) -> None:
    """It says that it reached its last statement too, so that all looks well."""
    source = f"{FORGED}say(b'w', {forged})\nsay(b'c')\nos._exit(0)"
    result = run(session, source, {}, "a")
    assert result.receipt.ok
    assert result.values.brought == ()
    (lost,) = result.receipt.said.values_not_brought
    assert (lost.name, lost.why[: len(why)]) == ("a", why)


def test_a_value_that_ends_the_program_as_it_is_read_ends_nothing_else(session: Session) -> None:
    source = """
class Odd(dict):
    def __contains__(self, name): raise SystemExit(3)
    def items(self): raise KeyboardInterrupt
odd, good = Odd(), [1]
class Meta(type):
    def __getattribute__(self, name): raise SystemExit(4)
odder = Meta("M", (), {})()
"""
    result = run(session, source, {}, "odd", "odder", "good")
    assert result.receipt.ok
    assert [(value.name, value.value) for value in result.values.brought] == [("good", [1])]
    assert [lost.name for lost in result.values.not_brought] == ["odd", "odder"]
