"""Values of every kind that is copied into a box and back, and how to tell that one is as it was."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import polars.testing

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")

PLAIN: dict[str, Any] = {
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
    "clock": datetime.time(23, 59, 59, 999_999, tzinfo=datetime.UTC, fold=1),
    "spans": (datetime.timedelta(days=-3, microseconds=1), datetime.timedelta.max),
}

GRID = np.arange(6).reshape(2, 3)
ARRAYS: dict[str, Any] = {
    **{
        f"array_{place}": GRID.astype(dtype)
        for place, dtype in enumerate(
            "? i1 u1 <i2 >i4 u8 f2 >f4 f8 c8 >c16 <U5 >U2 S3 M8[D] M8[ns] m8[s] >M8[fs]".split()  # noqa: SIM905
        )
    },
    "array_of_none": np.array(7.5),
    "array_empty": np.empty((0, 4), dtype="i4"),
    "array_turned": np.arange(12).reshape(3, 4).T[::-1],
    "array_texts": np.array(["é\ud800", "b"]),
    "array_nan": np.array([np.nan, -np.inf, -0.0]),
    "array_many": np.linspace(0, 1, 20_000),
    "scalar": np.float32(0.1),
    "scalar_truth": np.bool_(True),
    "scalar_text": np.str_("a"),
    "scalar_day": np.datetime64("2024-02-29"),
    "scalar_no_time": np.datetime64("NaT"),
    "arrays_in_a_dict": {"a": [np.arange(3)], "b": (np.int8(-1),)},
}

ROWS = 12
DAY = datetime.date(2020, 1, 1)
TABLE = pd.DataFrame(
    {
        "int": range(ROWS),
        "int8": np.arange(ROWS, dtype="i1"),
        "uint64": np.full(ROWS, 2**64 - 1, dtype="u8"),
        "float": [np.nan, 0.1, -0.0] * 4,
        "float32": np.arange(ROWS, dtype="f4"),
        "complex": np.arange(ROWS) * 1j,
        "truth": [True, False] * 6,
        "text": pd.Series(["a", "é\n", None] * 4, dtype="str"),
        "string": pd.array(["a", None] * 6, dtype="string"),
        "objects": pd.Series(
            [
                1,
                "a",
                None,
                2.5,
                True,
                [1, 2],
                {"a": {"b"}},
                (1,),
                datetime.date(2020, 1, 1),
                pd.NA,
                pd.NaT,
                pd.Timedelta(1),
            ],
            dtype=object,
        ),
        "Int64": pd.array([1, None] * 6, dtype="Int64"),
        "UInt8": pd.array([255, None] * 6, dtype="UInt8"),
        "Float32": pd.array([1.5, None] * 6, dtype="Float32"),
        "boolean": pd.array([True, None] * 6, dtype="boolean"),
        "day": pd.date_range("2020-01-01", periods=ROWS),
        "moment": np.array(["0001-01-01", "NaT", "9999-12-31T23:59:59"] * 4, dtype="M8[s]"),
        "nanoseconds": pd.date_range("2020-01-01", periods=ROWS, freq="ns").as_unit("ns"),
        "zoned": pd.date_range("2020-03-29", periods=ROWS, freq="h", tz="Europe/Berlin"),
        "utc": pd.to_datetime(["2020-03-29T00:00:00Z", None] * 6),
        "offset": pd.Series([pd.Timestamp("2020-01-01T00:00+02:00")] * ROWS),
        "span": pd.to_timedelta([1, None] * 6, unit="h"),
        "ordered": pd.Categorical(["x", "y", None] * 4, categories=["y", "x", "z"], ordered=True),
        "category": pd.Categorical([1.5, 2] * 6),
        "cut": pd.cut(np.arange(ROWS), 3),
        7: 1,
        ("a", 1): "b",
    }
)
TABLES: dict[str, Any] = {
    "table": TABLE,
    "table_by_day": TABLE.set_index("day"),
    "table_by_category": TABLE.set_index("ordered"),
    "table_by_levels": TABLE.set_index(["text", "int"]),
    "table_of_nothing": pd.DataFrame(),
    "table_without_columns": pd.DataFrame(index=[3, 1]),
    "table_without_rows": pd.DataFrame({"a": np.array([], dtype="f4"), "b": pd.Series([], dtype=object)}),
    "table_levels": pd.DataFrame(
        [[1.5, 2], [3, 4]],
        columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)], names=["p", None]),
        index=pd.date_range("2020-01-31", periods=2, freq="ME", name="end"),
    ),
    "table_same_rows": pd.DataFrame({"a": [1, 2]}, index=[0, 0]),
    "table_every_second": TABLE.iloc[::2],
    "table_by_span": pd.DataFrame({"a": [1, 2]}, index=pd.timedelta_range("1h", periods=2, freq="90min")),
    "table_by_hours": pd.DataFrame(
        {"a": 1}, index=pd.date_range("2020-03-01", periods=10_001, freq="h", tz="Asia/Tokyo")
    ),
    "table_by_interval": pd.DataFrame({"a": [1, 2]}, index=pd.interval_range(0, 2)),
    "table_gaps": pd.DataFrame({"a": [1, 2]}, index=pd.MultiIndex.from_tuples([("a", None), (None, 2.5)])),
    "table_wide": pd.DataFrame(np.arange(1200).reshape(2, 600)),
    "column": TABLE["zoned"],
    "column_of_texts": pd.Series(["a", "b"], index=["x", "y"], dtype=object, name=("n", 2)),
    "column_of_a_year": pd.DataFrame([[1, 2]], columns=[2020, 2021])[2020],
    "column_of_a_day": pd.DataFrame([[1, 2]], index=pd.date_range("2020-01-05", periods=1)).iloc[0],
    "table_of_days": pd.DataFrame([["a", 1]], columns=pd.Index(["n", pd.Timestamp("2020-01-05")], dtype=object)),
    "column_of_nothing": pd.Series(dtype="Int64"),
    "index": pd.RangeIndex(3, 9, 2, name="n"),
    "index_days": pd.date_range("2020-01-05", periods=3, freq="W-SUN", tz="US/Eastern"),
    "index_levels": TABLE.set_index(["ordered", "text"]).index,
    "stamp": pd.Timestamp("2020-01-01T01:02:03.000000001"),
    "stamp_zoned": pd.Timestamp("2020-03-29T01:30", tz="Europe/Berlin"),
    "stretch": pd.Timedelta("3h"),
    "tables_in_a_list": [{"a": pd.DataFrame({"x": [1]})}],
}

POLARS: dict[str, Any] = {
    "polars_table": pl.DataFrame(
        [
            pl.Series("int", range(10)),
            pl.Series("int8", [-128, None] * 5, dtype=pl.Int8),
            pl.Series("uint64", [2**64 - 1, None] * 5, dtype=pl.UInt64),
            pl.Series("float", [float("nan"), None] * 5),
            pl.Series("float32", [0.1] * 10, dtype=pl.Float32),
            pl.Series("truth", [True, None] * 5),
            pl.Series("text", ["é", None] * 5),
            pl.Series("day", [datetime.date(1, 1, 1), None] * 5),
            pl.Series("clock", [datetime.time(23, 59), None] * 5),
            pl.Series("moment", [datetime.datetime(9999, 12, 31), None] * 5, dtype=pl.Datetime("ms")),
            pl.Series("nanoseconds", [datetime.datetime(2020, 1, 1), None] * 5, dtype=pl.Datetime("ns")),
            pl.Series("zoned", [datetime.datetime(2020, 3, 29), None] * 5).dt.replace_time_zone("Europe/Berlin"),
            pl.Series("span", [datetime.timedelta(-1), None] * 5),
            pl.Series("category", ["a", None] * 5, dtype=pl.Categorical),
            pl.Series("choice", ["a", None] * 5, dtype=pl.Enum(["b", "a"])),
            pl.Series("nothing", [None] * 10),
        ]
    ),
    "polars_nothing": pl.DataFrame(),
    "polars_no_rows": pl.DataFrame({"a": [1]}).head(0),
    "polars_column": pl.Series("a", [1.5, None]),
}


def assert_same(found: Any, wanted: Any) -> None:
    """Of the same type, and the same to the last missing value, type of a column, name and step of an index."""
    assert type(found) is type(wanted)
    if isinstance(wanted, pd.DataFrame):
        pd.testing.assert_frame_equal(found, wanted, check_exact=True)
        assert list(map(str, found.dtypes)) == list(map(str, wanted.dtypes))
    elif isinstance(wanted, pd.Series):
        pd.testing.assert_series_equal(found, wanted, check_exact=True)
    elif isinstance(wanted, pd.Index):
        pd.testing.assert_index_equal(found, wanted, exact=True)
        assert getattr(found, "freq", None) == getattr(wanted, "freq", None)
    elif isinstance(wanted, (pd.Timestamp, pd.Timedelta)):
        assert (found, found.unit) == (wanted, wanted.unit)
        assert str(getattr(found, "tz", "")) == str(getattr(wanted, "tz", ""))
    elif isinstance(wanted, (np.ndarray, np.generic)):
        assert (found.dtype.str, found.shape) == (wanted.dtype.str, wanted.shape)
        np.testing.assert_array_equal(found, wanted)
    elif isinstance(wanted, pl.DataFrame):
        polars.testing.assert_frame_equal(found, wanted, check_exact=True)
    elif isinstance(wanted, pl.Series):
        polars.testing.assert_series_equal(found, wanted, check_exact=True)
    elif isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        for key in wanted:
            assert_same(found[key], wanted[key])
    else:
        assert found == wanted
        assert isinstance(wanted, set) or repr(found) == repr(wanted)
