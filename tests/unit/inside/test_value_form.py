"""Values become bytes and are the same again, for each kind of value that is copied."""

from __future__ import annotations

import datetime
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.inside.value_form import Cannot
from pybox_kernel.inside.value_reader import unpack
from pybox_kernel.inside.value_writer import pack
from tests.values import ARRAYS, BERLIN, PLAIN, POLARS, TABLES, assert_same


class Named(datetime.tzinfo):
    """A zone of somebody's own, under a name that is known."""

    key = "Europe/Berlin"

    def utcoffset(self, _: datetime.datetime | None) -> datetime.timedelta:
        return datetime.timedelta(hours=9)


ALL = {**PLAIN, **ARRAYS, **TABLES, **POLARS}


@pytest.mark.parametrize("name", ALL)
def test_a_value_is_the_same_again(name: str) -> None:
    assert_same(unpack(pack(ALL[name])), ALL[name])


def test_a_column_of_each_kind_is_the_same_again() -> None:
    for name, column in TABLES["table"].items():
        assert_same(unpack(pack(column)), column.rename(name))


def test_a_zone_stays_the_same_zone() -> None:
    moment = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1)
    found: Any = unpack(pack(moment))
    assert (found.tzinfo.key, found.fold, found.utcoffset()) == ("Europe/Berlin", 1, datetime.timedelta(hours=1))


def test_an_array_that_came_can_be_changed_and_is_no_view() -> None:
    data = pack(np.zeros(3))
    found: Any = unpack(data)
    found[0] = 1
    assert_same(unpack(data), np.zeros(3))


@pytest.mark.parametrize(
    ("value", "place", "why"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "", "has two columns of the name a"),
        (pd.DataFrame({"p": pd.period_range("2020", periods=2)}), "['p']", "is of the type period[D]"),
        (pd.DataFrame({"a": [1], "o": [object()]}), "['o'].iloc[0]", "is of the type object"),
        (pd.DataFrame({"o": [{}, {"x": [open]}]}), "['o'].iloc[1]['x'][0]", "is of the type builtin_function"),
        (pd.Series([1, object()]), ".iloc[1]", "is of the type object"),
        (pd.DataFrame({"s": pd.arrays.SparseArray([0, 1])}), "['s']", "is of the type Sparse"),
        (pd.DataFrame({"s": np.array(["20000-01-01"], "M8[s]")}), "['s']", "has a moment that is not in the years"),
        (pd.DataFrame({"a": [1]}, index=pd.period_range("2020", periods=1)), "'s index", "is of the type period[D]"),
        (pd.DataFrame(columns=range(2001)), "", "has more than 2000 columns"),
        (pd.Categorical(range(3)), "", "is of the type pandas.Categorical"),
        (pd.Series(pd.Categorical(range(20_001))), "", "has more than 20000 categories"),
        (
            pd.Series(pd.Categorical([(number,) for number in range(2_001)])),
            "",
            "has labels that are not copied, or more",
        ),
        (
            pd.DataFrame({"a": range(2_001)}, index=pd.MultiIndex.from_tuples([(1, (n,)) for n in range(2_001)])),
            "'s index",
            "has labels that are not copied, or more",
        ),
        (pd.Series([pd.Timestamp.max.tz_localize("UTC")]), "", "has a moment that is not in the years"),
        (datetime.datetime(2020, 1, 1, tzinfo=Named()), "", "is in a time zone without a name"),
        (pd.DataFrame({"a": [1]}).groupby("a"), "", "is of the type pandas.DataFrameGroupBy"),
        (pl.DataFrame({"l": [[1]]}), "['l']", "is of the type List(Int64)"),
        (pl.DataFrame({"a": [1]}).lazy(), "", "is of the type polars.LazyFrame"),
        (pl.Series([object()]), "", "is of the type Object"),
        (
            pl.DataFrame({"a": pl.Series([2**62]).cast(pl.Datetime("ms"))}),
            "['a']",
            "has a moment that is not in the years",
        ),
    ],
)
def test_what_cannot_be_copied_is_named_by_its_place(value: Any, place: str, why: str) -> None:
    with pytest.raises(Cannot) as caught:
        pack(value)
    assert (caught.value.place, caught.value.why[: len(why)]) == (place, why)


def test_a_type_that_only_looks_like_a_plain_one_is_refused() -> None:
    class List(list[int]):
        pass

    for value in (List([1]), type("DataFrame", (), {"__module__": "pandas"})(), type("Int", (int,), {})(1)):
        with pytest.raises(Cannot):
            pack(value)


PLAIN_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.dates()
    | st.times()
    | st.datetimes(timezones=st.none() | st.timezones())
    | st.timedeltas(),
    lambda inner: (
        st.lists(inner, max_size=12)
        | st.lists(inner, max_size=3).map(tuple)
        | st.sets(st.text(max_size=3) | st.integers(-99, 99), max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers(-99, 99), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(PLAIN_VALUES)
def test_any_plain_value_is_the_same_again(value: Any) -> None:
    assert_same(unpack(pack(value)), value)


def test_plain_values_need_no_library() -> None:
    program = (
        "import sys\n"
        "from pybox_kernel.inside.value_reader import unpack\n"
        "from pybox_kernel.inside.value_writer import pack\n"
        "assert unpack(pack([{'a': 1}])) == [{'a': 1}]\n"
        "assert not {'numpy', 'pandas', 'polars', 'datetime'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
