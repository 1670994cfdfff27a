"""Whatever a program sends as a value: it is refused, or is plain data, soon, and without harm."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.inside.value_form import LARGEST, NotLoaded, Wrong
from pybox_kernel.inside.value_reader import unpack
from pybox_kernel.inside.value_writer import pack
from tests.values import ARRAYS, PLAIN, POLARS, TABLES

SECONDS = 10.0
"""For what takes less than two here."""


def length(number: int) -> bytes:
    return struct.pack("<I", number)


def text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"s" + length(len(data)) + data


def made(kind: str, plainer: Any) -> bytes:
    """What stands for the thing of that kind."""
    return b"x" + text(kind)[1:] + pack(plainer)


BYTES: dict[str, bytes] = {
    "nothing": b"",
    "an unknown type": b"?",
    "more after its end": b"NN",
    "a number cut short": b"i123",
    "lists a million deep": (b"l" + length(1)) * 1_000_000 + b"N",
    "tuples a million deep": (b"t" + length(1)) * 1_000_000 + b"N",
    "dicts a million deep": (b"d" + length(2) + text("")) * 600_000 + b"N",
    "kinds a million deep": (b"x" + text("array")[1:]) * 600_000 + b"N",
    "lists without end": (b"l" + length(1)) * 1_000_000,
    "a list of 4 billion": b"l" + length(2**32 - 1) + b"N" * 100,
    "a list of 8 million": b"l" + length(8_000_000) + b"N" * 8_000_000,
    "lists of lists, 8 million in all": b"l" + length(1_600_000) + (b"l" + length(0)) * 1_600_000,
    "text longer than it is": b"s" + length(100) + b"short",
    "text of 4 GB": b"s" + length(2**32 - 1) + b"short",
    "text that is not UTF-8": b"s" + length(2) + b"\xff\xfe",
    "a whole number of 8 MB": b"I" + length(8_000_000) + b"\x7f" * 8_000_000,
    "an entry of a set twice": b"e" + length(2) + text("a") * 2,
    "a list in a set": b"e" + length(1) + b"l" + length(0),
    "a float in a set": b"e" + length(1) + pack(float("nan")),
    "a key twice": b"d" + length(4) + (text("a") + b"N") * 2,
    "a key of NaN": b"d" + length(2) + pack(float("nan")) + b"N",
    "a key that is a list": b"d" + length(2) + b"l" + length(0) + b"N",
    "a key that is a longer number": b"d" + length(2) + pack(2**61 - 1) + b"N",
    "a key without an entry": b"d" + length(1) + text("a"),
    "packed numbers that are not there": b"q" + length(1000) + bytes(1000),
    "2 million packed texts": b"u" + length(1_500_000) + bytes(6_000_000) + text(""),
    "packed texts longer than their text": b"u" + length(2) + length(2**32 - 1) * 2 + text("ab"),
    "packed texts shorter than their text": b"u" + length(2) + length(0) * 2 + text("ab"),
    "packed texts of bytes": b"u" + length(2) + length(1) * 2 + b"b" + length(2) + b"ab",
    "a kind that is code": made("__import__('os').system('touch /tmp/harm')", None),
    "a kind that is a module": made("os", "system"),
    "a kind of 8 MB": made("array" * 1_000_000, None),
    "a kind that is not UTF-8": b"x" + length(1) + b"\xff" + b"N",
}

DATES: dict[str, bytes] = {
    "a day that is none": made("date", 0),
    "a day of text": made("date", "2020-01-01"),
    "a time of texts of polars": made("time", (pl.Series(["a"]), 0, None)),
    "a moment of nothings of polars": made("moment", (1, pl.Series([None]), 0, None)),
    "a moment of texts of pandas": made("moment", (1, pd.Series(["a"]), 0, None)),
    "a span of an array": made("span", (np.arange(3), 0, 0)),
    "a day beyond all": made("date", 2**62),
    "a time before midnight": made("time", (-1, 0, None)),
    "a time of text": made("time", ("noon", 0, None)),
    "a time folded often": made("time", (0, 7, None)),
    "a moment of a list": made("moment", [1]),
    "a moment in too few parts": made("moment", (1, 0)),
    "a moment in a zone of ages": made("moment", (1, 0, 0, 10**9)),
    "a moment in a zone that is a number": made("moment", (1, 0, 0, 0.5)),
    "a moment in a zone of 1 MB": made("moment", (1, 0, 0, "a" * 1_000_000)),
    **{
        f"a moment in the zone {zone!r}": made("moment", (1, 0, 0, zone))
        for zone in (
            "../../etc/passwd", "/etc/localtime", "..", ".", "", "Europe", "Europe/../UTC", "Europe/Berlin\0",
            "no_such", "tzdata.zoneinfo", "Europe//Berlin", "a/b/c/d/e", "\ud800", "UTC\n",
        )
    },
    "a span beyond all": made("span", (10**12, 0, 0)),
    "a span of NaN": made("span", (float("nan"), 0, 0)),
    "a span of endless numbers": made("span", (float("inf"), 2**4000, 0)),
}  # fmt: skip


def array(dtype: Any = "<i4", shape: Any = (2,), data: Any = bytes(8)) -> bytes:
    return made("array", (dtype, shape, data))


NUMBERS: dict[str, bytes] = {
    **{
        f"an array of {dtype!r}": array(dtype)
        for dtype in (
            "O", "|O", "O4", "<O8", "V4", "|V4", "<f16", "<U0", "<U99999", "|S0", "<S4", "<M8[25s]", "<M8[x]",
            ">M8", "<m4[s]", "i4,f4", "(2,)i4", "i4", "int32", "float", "=i4", "<i4 ", "<i4\n", "<i3", "a4", "p",
            "|b1,<i4", "", "{'names': ['a'], 'formats': ['O']}", b"<i4", None, ["<i4"], 4,
        )
    },
    "an array of a type of 8 MB": array("<U" + "1" * 8_000_000),
    **{
        f"an array of shape {shape}": array(shape=shape)
        for shape in (
            (-1,), (-1, -2), (3,), (1,), (), (2, 2), [2], None, 2, (2.0,), ("2",), (True, 2), (2**31, 2**31),
            (2**62, 0), (0, -1), (2**40, 2**40, 0), (2, *[1] * 40), (2**64 + 2,),
        )
    },
    "an array of the sides of nothing": array(shape=(2**30,) * 20 + (0,), data=b""),
    "an array of fewer bytes": array(data=bytes(7)),
    "an array of more bytes": array(data=bytes(4000)),
    "an array of text": array(data="12345678"),
    "an array of a list": array(data=[1, 2]),
    "an array of an array": array(data=np.zeros(8, dtype="u1")),
    "an array in four parts": made("array", ("<i4", (2,), bytes(8), None)),
    "an array of nothing at all": made("array", None),
    "truth that is 7": array("|b1", (2,), b"\0\7"),
    "a character beyond all": array("<U2", (1,), b"a\0\0\0\0\0\x11\0"),
    "a character beyond all, the other way round": array(">U1", (2,), b"\0\0\0a\0\x11\0\0"),
    "a negative character": array("<U1", (2,), b"\xff" * 8),
    "a moment in no unit": array("<M8", (1,)),
    "a number of two": made("number", ("<i4", (2,), bytes(8))),
}  # fmt: skip

INTS, FLOATS = np.arange(3), np.linspace(0, 1, 3)
ROWS, NAMES = ("range", 0, 3, 1, None), ("labels", ("objects", ["a", "b"]), None, None)
COLUMN = ("array", INTS)


def table(index: Any = ROWS, names: Any = NAMES, columns: Any = (COLUMN, COLUMN)) -> bytes:
    return made("table", (index, names, list(columns)))


def column(*parts: Any) -> bytes:
    return made("column", (ROWS, parts, None))


def labels(*parts: Any, name: Any = None, step: Any = None) -> bytes:
    return made("index", ("labels", parts, name, step))


LAST = 253_402_300_799
"""The last second of the year 9999."""
NONE = np.zeros(3, dtype=bool)
LIST = ("objects", ["a", "b", "c"])
COLUMNS: dict[str, bytes] = {
    "a table of nothing": made("table", None),
    "a table of text": made("table", "abc"),
    "a table in two parts": made("table", (ROWS, NAMES)),
    "two columns of one name": table(names=("labels", ("objects", ["a", "a"]), None, None)),
    "two columns of the name NaN": table(names=("labels", ("objects", [float("nan")] * 2), None, None)),
    "columns named by a list": table(names=("labels", ("objects", [[], []]), None, None)),
    "columns named by a dict": table(names=("labels", ("objects", [{}, "a"]), None, None)),
    "columns named by deep tuples": table(names=("labels", ("objects", [((1,),), "a"]), None, None)),
    "more names than columns": table(names=("labels", ("objects", ["a", "b", "c"]), None, None)),
    "a million names": table(names=("range", 0, 1_000_000, 1, None)),
    "a million columns": table(names=("range", 0, 200_000, 1, None), columns=[("array", None)] * 150_000),
    "columns of other lengths": table(columns=[COLUMN, ("array", np.arange(4))]),
    "columns of no length": table(columns=[COLUMN, ("array", np.array(1))]),
    "more rows than there are": table(index=("range", 0, 2**60, 1, None)),
    "rows by a step of nothing": table(index=("range", 0, 3, 0, None)),
    "rows by text": table(index=("range", "0", "3", "1", None)),
    "rows by endless numbers": table(index=("range", 0, 2**200, 2**199, None)),
    "rows of a name that is a list": table(index=("range", 0, 3, 1, [])),
    "an index of an unknown kind": table(index=("pickle", b"cos\nsystem\n(S'touch /tmp/harm'\ntR.")),
    "an index of nothing": table(index=None),
    "a column of an unknown kind": column("pickle", b""),
    "a column of nothing": made("column", (ROWS, None, None)),
    "a column of a number": made("column", (ROWS, 3, None)),
    "a column of two sides": column("array", np.zeros((3, 1))),
    "a column of text as numbers": column("array", np.array(["a", "b", "c"])),
    "a column of bytes the wrong way round": column("array", np.arange(3, dtype=">i4")),
    "a column of days": column("array", np.zeros(3, dtype="M8[D]")),
    "a column of years": column("array", np.zeros(3, dtype="m8[Y]")),
    "a column of no unit": column("array", np.zeros(3, dtype="M8")),
    "a column of moments after all": column("array", np.array([0, 1, 2**62]).view("M8[s]")),
    "a column of moments before all": column("array", np.array([0, 1, -(2**62)]).view("M8[us]")),
    "a column that is no list": column("objects", ("a", "b", "c")),
    "a column of characters": column("objects", "abc"),
    "a name that is a list": made("column", (ROWS, COLUMN, [])),
    "texts that are numbers": column("text", "NaN", [1, 2, 3], NONE),
    "texts that are missing otherwise": column("text", "?", ["a"] * 3, NONE),
    "texts with a shorter mask": column("text", "NA", ["a"] * 3, NONE[:2]),
    "texts with a mask of numbers": column("text", "NA", ["a"] * 3, INTS),
    "texts with no mask": column("text", "NA", ["a"] * 3, None),
    "numbers of an unknown type": column("masked", "Int128", INTS, NONE),
    "numbers of a type that is a list": column("masked", [], INTS, NONE),
    "numbers of another type": column("masked", "Int8", INTS, NONE),
    "numbers with a longer mask": column("masked", "Int64", INTS, np.zeros(4, dtype=bool)),
    "truth that is numbers": column("masked", "boolean", INTS, NONE),
    "a zone outside": column("zoned", "../../etc/passwd", INTS.view("M8[s]")),
    "a zone of dateutil": column("zoned", "dateutil//etc/localtime", INTS.view("M8[s]")),
    "no zone": column("zoned", None, INTS.view("M8[s]")),
    "a zone for numbers": column("zoned", "UTC", INTS),
    "moments in a zone after all": column("zoned", "Asia/Tokyo", np.full(3, LAST).view("M8[s]")),
    "codes beyond the categories": column("category", LIST, np.array([0, 1, 3]), False),
    "codes before the categories": column("category", LIST, np.array([0, 1, -2]), False),
    "codes of floats": column("category", LIST, FLOATS, False),
    "codes of large numbers": column("category", LIST, np.full(3, 2**63, dtype="u8"), False),
    "codes in a list": column("category", LIST, [0, 1, 2], False),
    "one category twice": column("category", ("objects", ["a", "a"]), INTS % 2, False),
    "a category that is missing": column("category", ("objects", ["a", None]), INTS % 2, False),
    "a category that is a list": column("category", ("objects", ["a", []]), INTS % 2, False),
    "categories of categories": column(
        "category", ("category", ("category", None, None, None), None, None), INTS, False
    ),
    "more categories than there may be": column("category", ("array", np.arange(20_001)), INTS, False),
    "an order that is text": column("category", LIST, INTS, "yes"),
    "intervals closed somehow": column("interval", COLUMN, COLUMN, "maybe"),
    "intervals that end before they begin": column("interval", COLUMN, ("array", INTS[::-1].copy()), "left"),
    "intervals of texts": column("interval", LIST, LIST, "left"),
    "intervals of other lengths": column("interval", COLUMN, ("array", np.arange(9)), "left"),
    "an index of intervals of intervals": labels("interval", ("interval", COLUMN, COLUMN, "left"), COLUMN, "left"),
    "levels of nothing": made("index", ("levels", [], [], ())),
    "levels with codes beyond": made("index", ("levels", [LIST], [np.array([0, 3])], (None,))),
    "levels with codes of floats": made("index", ("levels", [LIST], [FLOATS], (None,))),
    "levels of other lengths": made("index", ("levels", [LIST, LIST], [INTS, np.arange(2)], (None, None))),
    "levels with fewer names": made("index", ("levels", [LIST, LIST], [INTS, INTS], (None,))),
    "levels with one label twice": made("index", ("levels", [("objects", ["a", "a"])], [INTS % 2], (None,))),
    "levels without number": made("index", ("levels", [LIST] * 1000, [INTS] * 1000, (None,) * 1000)),
    "an index of halves": labels("array", FLOATS.astype("f2")),
    "a step that is code": labels("array", INTS.view("M8[s]"), step="__import__('os')"),
    "a step that is not there": labels("array", np.array([0, 1, 5]).view("M8[s]"), step="D"),
    "a step of numbers": labels("array", INTS, step="D"),
    "a step of many years": labels("array", INTS.view("M8[ns]"), step="9999YE-DEC"),
    "a step of a month that is none": labels("array", INTS.view("M8[ns]"), step="YE-XXX"),
    "something else missing": made("missing", "all"),
    "a list missing": made("missing", []),
    "a stamp of text": made("stamp", ("2020-01-01", None)),
    "a stamp of NaT": made("stamp", (np.datetime64("NaT"), None)),
    "a stamp after all": made("stamp", (np.datetime64(2**62, "s"), None)),
    "a stamp in a zone outside": made("stamp", (np.datetime64(0, "s"), "../x")),
    "a stretch of a moment": made("stretch", np.datetime64(0, "s")),
    "a stretch of years": made("stretch", np.timedelta64(1, "Y")),
}


def polars_column(name: Any, more: Any, values: Any, missing: Any = b"\0\0\0", label: Any = "a") -> bytes:
    return made("polars column", (label, name, more, values, missing))


OF_POLARS: dict[str, bytes] = {
    "polars: a type that is not sent": polars_column("Object", None, [1, 2, 3]),
    "polars: a type that is a list": polars_column([], None, [1, 2, 3]),
    "polars: a name that is a number": polars_column("Int8", None, [1, 2, 3], label=1),
    "polars: numbers that do not fit": polars_column("Int8", None, [1, 2, 300]),
    "polars: numbers beyond all": polars_column("Int64", None, [1, 2, 2**100]),
    "polars: floats as numbers": polars_column("Int64", None, [1.0, 2.0, 3.0]),
    "polars: truth that is 7": polars_column("Boolean", None, [0, 1, 7]),
    "polars: lists": polars_column("String", None, [["a"], ["b"], ["c"]]),
    "polars: missing more than there are": polars_column("Int8", None, [1], b"\0\0\0"),
    "polars: missing in a third way": polars_column("Int8", None, [1, 2, 3], b"\0\1\2"),
    "polars: nothing that is something": polars_column("Null", None, [], b"\0\0\0"),
    "polars: a day after all": polars_column("Date", None, [1, 2, 2**31 - 1]),
    "polars: a time after midnight": polars_column("Time", None, [1, 2, 2**62]),
    "polars: a moment after all": polars_column("Datetime", ("ms", None), [1, 2, 2**62]),
    "polars: a moment without a unit": polars_column("Datetime", None, [1, 2, 3]),
    "polars: a moment in ages": polars_column("Datetime", ("ages", None), [1, 2, 3]),
    "polars: a moment in a zone outside": polars_column("Datetime", ("us", "../../etc/passwd"), [1, 2, 3]),
    "polars: a moment in a zone that is none": polars_column("Datetime", ("us", "Nowhere/None"), [1, 2, 3]),
    "polars: a span in a zone": polars_column("Duration", ("us", "UTC"), [1, 2, 3]),
    "polars: a moment in a zone after all": polars_column(
        "Datetime", ("us", "Asia/Tokyo"), [1, 2, 253402300799 * 10**6]
    ),
    "polars: a span beyond all": polars_column("Duration", ("ms", None), [1, 2, -(2**63)]),
    "polars: a choice that is none": polars_column("Enum", ["a"], ["a", "a", "b"]),
    "polars: a choice among numbers": polars_column("Enum", [1], ["a", "a", "a"]),
    "polars: one choice twice": polars_column("Enum", ["a", "a"], ["a", "a", "a"]),
    "polars: two columns of one name": made("polars table", [("a", "Int8", None, [1], b"\0")] * 2),
    "polars: columns of other lengths": made(
        "polars table", [("a", "Int8", None, [1], b"\0"), ("b", "Int8", None, [], b"")]
    ),
    "polars: a table of a tuple": made("polars table", ()),
    "polars: 5,000 columns": made("polars table", [("a", "Null", None, [], b"")] * 5000),
}

HOSTILE = {**BYTES, **DATES, **NUMBERS, **COLUMNS, **OF_POLARS}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_no_value_looks_like_is_refused(name: str) -> None:
    began = time.monotonic()
    with pytest.raises(Wrong):
        unpack(HOSTILE[name])
    assert time.monotonic() - began < SECONDS


def test_the_samples_are_made_as_real_ones_are() -> None:
    """So that each is refused for what is wrong with it alone."""
    assert isinstance(unpack(table()), pd.DataFrame)
    assert isinstance(unpack(array()), np.ndarray)
    assert isinstance(unpack(labels("array", INTS.view("M8[ns]"), step="ns")), pd.DatetimeIndex)
    assert isinstance(unpack(made("index", ("levels", [LIST], [INTS], (None,)))), pd.MultiIndex)
    for parts in (
        LIST,
        ("text", "NaN", ["a"] * 3, NONE),
        ("text", "NA", ["a"] * 3, NONE),
        ("masked", "Int64", INTS, NONE),
        ("zoned", "Asia/Tokyo", INTS.view("M8[s]")),
        ("category", LIST, INTS, False),
        ("interval", COLUMN, COLUMN, "left"),
    ):
        assert isinstance(unpack(column(*parts)), pd.Series)
    assert isinstance(unpack(polars_column("Datetime", ("us", "Asia/Tokyo"), [1, 2, 3])), pl.Series)
    assert isinstance(unpack(made("polars table", [("a", "Int8", None, [1], b"\0")])), pl.DataFrame)
    assert unpack(made("moment", (1, 0, 0, "Europe/Berlin"))) is not None


KEYS: dict[str, Callable[[int], int]] = {
    "low bits": lambda number: number << 40,
    "high bits": lambda number: number,
    "both": lambda number: number * (2**32 + 1),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_that_are_alike_in_a_table_of_hashes_do_not_hold_up(kind: str) -> None:
    alike = [KEYS[kind](number) for number in range(100_000)]
    began = time.monotonic()
    unpack(pack(dict.fromkeys(alike)))
    few = alike[1:20_000:2] + alike[:20_000:2]  # were they in order, pandas would not hash them
    unpack(column("category", ("array", np.array(few)), INTS, False))
    unpack(column("category", ("objects", few[:2_000]), INTS, False))
    assert time.monotonic() - began < SECONDS


def test_as_many_labels_that_are_alike_as_can_come_do_not_hold_up() -> None:
    """All in one table. Python objects were compared for 90 s here."""
    alike = [number * (2**32 + 1) for number in (*range(1, 20_000, 2), *range(2, 20_000, 2))]
    with pytest.raises(Wrong):
        unpack(column("category", ("objects", alike), INTS, False))
    labels = ("objects", alike[:2_000])
    count = 1_000_000 // 2_000 - 1
    columns = [("category", labels, INTS, False)] * count
    began = time.process_time()
    assert (
        unpack(table(index=("range", 0, 3, 1, None), names=("range", 0, count, 1, None), columns=columns)) is not None
    )
    assert time.process_time() - began < 3 * SECONDS


def test_as_much_as_can_come_is_read_in_a_bounded_time() -> None:
    largest = [
        b"l" + length(490_000) + (b"d" + length(0)) * 490_000,
        b"u" + length(1_000_000) + bytes(4_000_000) + text(""),
        b"q" + length(1_000_000) + os.urandom(8_000_000),
        b"l" + length(80_000) + made("moment", (1, 0, 0, "UTC")) * 80_000,
        table(index=("range", 0, 0, 1, None), names=("range", 0, 2000, 1, None), columns=[("array", INTS[:0])] * 2000),
        column("objects", [1.5] * 3),
    ]
    for data in largest:
        began = time.monotonic()
        unpack(data[:LARGEST])
        assert time.monotonic() - began < SECONDS


SAMPLES = [pack(value) for value in {**PLAIN, **ARRAYS, **TABLES, **POLARS}.values()]
SMALL = [data for data in SAMPLES if len(data) < 20_000]


@given(st.sampled_from(SMALL), st.data())
def test_real_ones_with_a_part_changed_are_refused_or_are_plain_data(sample: bytes, data: st.DataObject) -> None:
    changed = bytearray(sample)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(changed)))
        size = data.draw(st.integers(0, 9))
        changed[place : place + size] = data.draw(st.binary(max_size=9))
    read_or_refused(bytes(changed))


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_are_plain_data(data: bytes) -> None:
    read_or_refused(data)


def read_or_refused(data: bytes) -> None:
    try:
        value = unpack(data)
    except (Wrong, NotLoaded):
        return
    assert (type(value).__module__ or "").partition(".")[0] in ("builtins", "datetime", "numpy", "pandas", "polars")
    repr(value)
