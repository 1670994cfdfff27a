"""Data frames of the real libraries become tables that the host's own model takes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from pybox_kernel.inside.tables import LARGEST, LONGEST, table_of
from pybox_kernel.wire.frames import TableEvent
from tests.cases import case


def table(value: object) -> TableEvent:
    """As the host reads it."""
    found = table_of(value)
    assert found is not None
    return TableEvent.model_validate_json(json.dumps(found))


class Hostile:
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


def test_values_are_written_as_pandas_writes_them() -> None:
    frame = pd.DataFrame(
        {
            "int": [1, 2, 3],
            "float": [1.0, 2.5, None],
            "text": ["a", "", None],
            "bool": [True, False, True],
            "object": [None, [1, 2], {"a": 1}],
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "category": pd.Categorical(["u", "v", "u"]),
            "time": pd.to_datetime(["2020-01-01", None, "2020-01-02"]),
            "span": pd.to_timedelta([1, None, 2], unit="D"),
            "complex": [1 + 2j, 0, 0],
        }
    )
    found = table(frame)
    columns = dict(zip(found.columns[0], zip(*found.rows, strict=True), strict=True))
    assert columns == {
        "int": ("1", "2", "3"),
        "float": ("1.0", "2.5", "NaN"),
        "text": ("a", "", "NaN"),
        "bool": ("True", "False", "True"),
        "object": ("None", "[1, 2]", "{'a': 1}"),
        "nullable": ("1", "<NA>", "3"),
        "category": ("u", "v", "u"),
        "time": ("2020-01-01", "NaT", "2020-01-02"),
        "span": ("1 days", "NaT", "2 days"),
        "complex": ("1.0+2.0j", "0.0+0.0j", "0.0+0.0j"),
    }
    assert dict(zip(columns, found.numeric, strict=True)) == {
        name: name in ("int", "float", "nullable", "complex") for name in columns
    }
    assert dict(zip(columns, found.dtypes, strict=True)) == {
        "int": "int64",
        "float": "float64",
        "text": "str",
        "bool": "bool",
        "object": "object",
        "nullable": "Int64",
        "category": "category",
        "time": "datetime64[us]",
        "span": "timedelta64[us]",
        "complex": "complex128",
    }
    assert (found.index, found.index_names) == ((("0",), ("1",), ("2",)), ("",))
    assert (found.shape, found.row_gap, found.column_gap) == ((3, 10), None, None)


def test_rows_and_columns_may_have_levels() -> None:
    rows = pd.MultiIndex.from_tuples([("a", 1), ("a", 2)], names=["letter", None])
    columns = pd.MultiIndex.from_product([["p", "q"], [True, 2.5]])
    found = table(pd.DataFrame([[1, 2, 3, 4], [5, 6, 7, 8]], index=rows, columns=columns))
    assert found.columns == (("p", "p", "q", "q"), ("True", "2.5", "True", "2.5"))
    assert found.index == (("a", "1"), ("a", "2"))
    assert found.index_names == ("letter", "")
    assert found.column_names == ()


def test_names_of_the_columns_are_there_also_of_a_styler() -> None:
    frame = pd.DataFrame({"a": [1], "b": [2]}).rename_axis(columns="kind").rename_axis("row")
    for value in (frame, frame.style):
        found = table(value)
        assert (found.column_names, found.index_names) == (("kind",), ("row",))
    assert table(frame.style.hide(names=True, axis=1)).column_names == ()
    counted = pd.crosstab([1, 2], ["x", "y"], rownames=["one"], colnames=["other"])
    assert table(counted).column_names == ("other",)
    columns = pd.MultiIndex.from_product([["p", "q"], [1]], names=["upper", None])
    assert table(pd.DataFrame([[1, 2]], columns=columns)).column_names == ("upper", "")


def test_columns_of_one_name_are_each_there() -> None:
    found = table(pd.DataFrame([[1, "x"], [2, "y"]], columns=["a", "a"]))
    assert (found.columns, found.rows, found.numeric) == ((("a", "a"),), (("1", "x"), ("2", "y")), (True, False))


@pytest.mark.parametrize(("rows", "shown", "gap"), [(60, 60, None), (61, 10, 5), (100_000, 10, 5)])
def test_of_many_rows_the_ends_are_kept(rows: int, shown: int, gap: int | None) -> None:
    found = table(pd.DataFrame({"n": range(rows)}))
    assert (len(found.rows), found.row_gap, found.shape) == (shown, gap, (rows, 1))
    assert found.rows[-1] == found.index[-1] == (str(rows - 1),)


@pytest.mark.parametrize(("columns", "shown", "gap"), [(20, 20, None), (21, 20, 10), (5000, 20, 10)])
def test_of_many_columns_the_ends_are_kept(columns: int, shown: int, gap: int | None) -> None:
    found = table(pd.DataFrame(np.arange(2 * columns).reshape(2, columns)))
    assert (len(found.columns[0]), found.column_gap, found.shape) == (shown, gap, (2, columns))
    assert found.columns[0][-1] == str(columns - 1)
    assert found.rows[1][-1] == str(2 * columns - 1)


@pytest.mark.parametrize(
    ("frame", "shape"),
    [(pd.DataFrame(), (0, 0)), (pd.DataFrame(columns=["a", "b"]), (0, 2)), (pd.DataFrame(index=[1, 2]), (2, 0))],
    ids=["of nothing", "of no rows", "of no columns"],
)
def test_an_empty_frame_is_a_table_of_its_shape(frame: pd.DataFrame, shape: tuple[int, int]) -> None:
    assert table(frame).shape == shape


def test_a_cell_without_a_text_takes_no_other_with_it() -> None:
    found = table(pd.DataFrame({"a": [Hostile(), 1], "b": [1, 2]}, index=[Hostile(), "x"]))
    assert found.rows == (("<Hostile: ValueError>", "1"), ("1", "2"))
    assert found.index == (("<Hostile: ValueError>",), ("x",))


@case("src-frame")
def test_an_index_that_cannot_be_hashed_is_shown_all_the_same() -> None:
    found = table(pd.DataFrame({"a": range(3)}, index=[pd.DataFrame(), [1], 5]))
    assert found.index == (("Empty DataFrame\\nColumns: []\\nIndex: []",), ("[1]",), ("5",))


def test_texts_are_short_and_on_one_line() -> None:
    found = table(pd.DataFrame({"a": ["x" * 1000, "line\nline\r\t\ud800"]}, index=["y" * 1000, "\n"]))
    texts = [*sum(found.rows, ()), *sum(found.index, ())]
    assert all(len(text) <= LONGEST and "\n" not in text for text in texts)


def test_a_table_over_its_bound_is_none() -> None:
    assert len(json.dumps({"n": "é" * 200}, ensure_ascii=False).encode()) * 60 * 20 > LARGEST
    frame = pl.DataFrame({str(n): ["é" * 200] * 60 for n in range(20)})
    assert table_of(frame) is None


@pytest.mark.parametrize(
    ("series", "rows"),
    [(pd.Series([1, 2.5], name="s"), (("1.0",), ("2.5",))), (pl.Series("s", [1.0, 2.5]), (("1.0",), ("2.5",)))],
    ids=["pandas", "polars"],
)
def test_a_series_is_a_table_of_one_column(series: Any, rows: object) -> None:
    found = table(series)
    assert (found.columns[0], found.rows, found.numeric) == (("s",), rows, (True,))


def test_a_frame_of_polars_says_what_its_columns_are() -> None:
    found = table(pl.DataFrame({"a": [1, None], "b": ["x", None], "c": [[1], []]}))
    assert (found.columns, found.dtypes) == ((("a", "b", "c"),), ("Int64", "String", "List(Int64)"))
    assert found.rows == (("1", "x", "[1]"), ("null", "null", "[]"))
    assert found.index_names == ()


def test_a_long_frame_of_polars_keeps_its_ends() -> None:
    found = table(pl.DataFrame({"a": range(1000)}))
    assert (found.rows[4], found.rows[5], found.row_gap) == (("4",), ("995",), 5)


def test_times_are_shown_in_their_zone() -> None:
    times = pd.to_datetime(["2030-01-01 12:00", "2030-07-01 12:00"]).tz_localize("Europe/Berlin")
    found = table(pd.DataFrame({"t": times}, index=times))
    assert found.rows == (("2030-01-01 12:00:00+01:00",), ("2030-07-01 12:00:00+02:00",))
    assert found.index == found.rows
    assert found.dtypes == ("datetime64[us, Europe/Berlin]",)


def test_of_columns_that_are_left_out_no_type_is_told() -> None:
    found = table(pd.DataFrame({n: [n if n % 2 else str(n)] for n in range(50)}))
    assert found.dtypes == ("str", "int64") * 10
    assert table(pl.DataFrame({str(n): [n] for n in range(50)})).dtypes == ("Int64",) * 20


def test_a_styler_is_a_table_of_the_texts_it_would_show() -> None:
    index = pd.MultiIndex.from_tuples([(1, "p"), (1, "q"), (2, "r")], names=["n", None])
    frame = pd.DataFrame({"a": [1, 2.25, None], "b": ["x", "<y>", "z"], "c": [1, 2, 3]}, index=index)
    found = table(frame.style.format(precision=1, na_rep="-").hide(["c"], axis=1).highlight_max())
    assert found.columns == (("a", "b"),)
    assert (found.index_names, found.index) == (("n", ""), (("1", "p"), ("1", "q"), ("2", "r")))
    assert found.rows == (("1.0", "x"), ("2.2", "<y>"), ("-", "z"))
    assert (found.numeric, found.shape, found.dtypes) == ((True, False), (3, 2), ())
    assert table(frame.style.hide(axis="index")).index == ((),) * 3
    rows_hidden = table(frame.reset_index(drop=True).style.hide([1]))
    assert (rows_hidden.index, rows_hidden.shape) == ((("0",), ("2",)), (2, 3))


@pytest.mark.parametrize("hidden", [False, True])
def test_of_a_large_styler_the_beginning_is_shown(hidden: bool) -> None:
    style = pd.DataFrame(np.arange(3000).reshape(100, 30)).style
    found = table(style.hide(axis="columns") if hidden else style)
    assert (found.shape, found.row_gap, found.column_gap) == ((100, 30), 60, 20)
    assert (len(found.rows), found.rows[0][-1], found.rows[-1][0]) == (60, "19", "1770")
    assert len(found.columns) == (not hidden)


def test_a_styler_of_nothing_and_one_that_cannot_be_read_are_no_trouble() -> None:
    assert table(pd.DataFrame().style).shape == (0, 0)
    assert table(pd.DataFrame(columns=["a"]).style).columns == (("a",),)
    style = pd.DataFrame({"a": [1]}).style
    assert table_of(style.concat(pd.DataFrame({"a": [2]}).style)) is None  # shown as HTML
    style.data = 5
    assert table_of(style) is None


def test_what_is_no_frame_is_no_table() -> None:
    grouped = pd.DataFrame({"a": [1]}).groupby("a")
    assert [table_of(value) for value in (1, "a", [1], None, grouped, pd.Index([1]), pl.DataFrame().lazy())] == [
        None
    ] * 7


def test_what_only_says_it_is_a_frame_is_none() -> None:
    fake = type("DataFrame", (), {"__module__": "pandas"})()
    assert table_of(fake) is None


def test_no_library_is_imported_for_it() -> None:
    program = (
        "import sys\nfrom pybox_kernel.inside.tables import table_of\nx = type('X', (), {'__module__': 'pandas'})()"
    )
    program += "\nprint(table_of(x), 'pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "None False\n"
