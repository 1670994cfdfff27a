"""Tables, columns and indexes of pandas as plainer values, column by column.

    table   (index, names of columns, columns)     column  (index, column, name)     index  an index
    an index: ("range", start, stop, step, name), ("labels", column, name, regular step),
              ("levels", columns, codes, names)
    stamp   (number, zone): one moment             stretch (number): one span        missing (NA or NaT)

pandas and numpy are those that the program, or its host, has loaded. Standard library only.
"""

from __future__ import annotations

import re
import sys

from pybox_kernel.inside.value_columns import (
    MOST_HASHED,
    MOST_ROWS,
    UNLIKE_LABELS,
    are_labels,
    built_column,
    check,
    checked,
    described_column,
    index_of,
    is_label,
    named_for_pandas,
    numpy_array,
)
from pybox_kernel.inside.value_dates import zone_name
from pybox_kernel.inside.value_form import Cannot, Wrong, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["built", "described", "place_in"]

MOST_COLUMNS = 2000
MOST_LEVELS = 16
REGULAR = re.compile(
    r"-?[1-9]?[0-9]{0,4}(D|h|min|s|ms|us|ns|B|W(-(SUN|MON|TUE|WED|THU|FRI|SAT))?|[MQY][SE](-[A-Z]{3})?)"
)
WITHIN = re.compile(r"(?:\[2\]\[(\d+)\]|\[1\])\[1\]\[(\d+)\](.*)", re.DOTALL)
MOST_REGULAR = 10_000
"""Rows of an index that is known to have a regular step, where pandas looks at each of them."""
EVEN = ("h", "min", "s", "ms", "us", "ns")
"""Units of steps that are all of one length, which pandas computes at once."""


def pandas() -> Any:
    return sys.modules["pandas"]


def described(value: Any) -> tuple[str, Any]:
    """A plainer value, and the kind that makes this one of it again. Raises Cannot."""
    library = pandas()
    kind = type(value)
    if kind is library.DataFrame:
        return "table", described_table(value)
    if kind is library.Series:
        check(is_label(value.name), Cannot("has a name that is not copied"))
        return "column", (described_index(value.index), described_column(value), value.name)
    if kind is library.Timestamp:
        return "stamp", (value.asm8, zone_name(value.tz))
    if kind is library.Timedelta:
        return "stretch", value.asm8
    if value is library.NA or value is library.NaT:
        return "missing", "NA" if value is library.NA else "NaT"
    if isinstance(value, library.Index):
        return "index", described_index(value)
    raise Cannot("is " + name_of(kind))


def place_in(value: Any, place: str) -> str:
    """The place inside ``value`` that a place inside its plainer value stands for."""
    found = WITHIN.fullmatch(place)
    if found is None:
        return ""
    column = "[%.60s]" % repr(value.columns[int(found[1])]) if found[1] else ""
    return "%s.iloc[%s]%s" % (column, found[2], found[3])


def described_table(frame: Any) -> tuple[Any, ...]:
    count = frame.shape[1]
    check(count <= MOST_COLUMNS, Cannot("has more than %d columns" % MOST_COLUMNS))
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise Cannot("has two columns of the name %.60s" % (twice,))
    columns = []
    for place in range(count):
        try:
            columns.append(described_column(frame.iloc[:, place]))
        except Cannot as error:
            raise error.within("[%.60s]" % repr(frame.columns[place])) from None
    return described_index(frame.index), described_index(frame.columns), columns


def described_index(index: Any) -> tuple[Any, ...]:
    library = pandas()
    check(all(map(is_label, index.names)), Cannot("has an index with a name that is not copied"))
    if type(index) is library.RangeIndex:
        return "range", index.start, index.stop, index.step, index.name
    try:
        if isinstance(index, library.MultiIndex):
            used = index.remove_unused_levels()
            too_many = any(len(level) > MOST_HASHED for level in used.levels) or used.nlevels > MOST_LEVELS
            check(not too_many, Cannot("has more than %d different labels in a level" % MOST_HASHED))
            columns = [described_column(level) for level in used.levels]
            objects = [column[1] for column in columns if column[0] == "objects"]
            check(all(map(are_labels, objects)), Cannot(UNLIKE_LABELS))
            codes = [library.Series(level).to_numpy("i8") for level in used.codes]
            return "levels", columns, codes, tuple(index.names)
        step = getattr(index, "freqstr", None)
        return "labels", described_column(index), index.name, step if is_regular(step, len(index)) else None
    except Cannot as error:
        raise error.within("'s index") from None


def is_regular(step: Any, count: int) -> bool:
    """Whether it is the step of an index with so many rows, and one that is copied with it."""
    if type(step) is not str or REGULAR.fullmatch(step) is None:
        return False
    return count <= MOST_REGULAR or step.lstrip("-0123456789") in EVEN


def built(kind: str, plainer: Any) -> Any:
    """Raises Wrong for what ``described`` does not make."""
    try:
        if kind == "table":
            return built_table(*plainer)
        if kind == "column":
            index, column, name = plainer
            check(is_label(name))
            return built_series(column, built_index(index), name)
        if kind == "index":
            return built_index(plainer)
        if kind == "missing":
            return {"NA": pandas().NA, "NaT": pandas().NaT}[plainer]
        if kind == "stretch":
            return pandas().Timedelta(number_of(plainer, "m"))
        number, zone = plainer
        stamp = pandas().Timestamp(number_of(number, "M"))
        return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(named_for_pandas(zone))
    except (Wrong, MemoryError):
        raise
    except Exception as error:  # whatever pandas has against what is no such thing
        raise Wrong("no %s" % kind) from error


def number_of(number: Any, kind: str) -> Any:
    numpy: Any = sys.modules["numpy"]
    check(isinstance(number, numpy.generic) and number.dtype.kind == kind and not numpy.isnat(number))
    return checked(numpy.array([number]))[0]


def built_table(index: Any, names: Any, columns: Any) -> Any:
    check(type(columns) is list and len(columns) <= MOST_COLUMNS)
    rows, header = built_index(index), built_index(names, hashed=True)
    check(len(header) == len(columns) and header.is_unique)
    series = {place: built_series(column, rows, None) for place, column in enumerate(columns)}
    frame = pandas().DataFrame(series, index=rows)
    frame.columns = header
    return frame


def built_series(column: Any, index: Any, name: Any) -> Any:
    array = built_column(column)
    check(len(array) == len(index))
    return pandas().Series(array, index=index, dtype=array.dtype, name=name)


def built_index(plainer: Any, hashed: bool = False) -> Any:
    library = pandas()
    kind, *parts = plainer
    if kind == "range":
        *numbers, name = parts
        check(all(type(number) is int and abs(number) < 2**62 for number in numbers) and numbers[2] != 0)
        check(len(range(*numbers)) <= MOST_ROWS and is_label(name))
        return library.RangeIndex(*numbers, name=name)
    if kind == "levels":
        columns, codes, names = parts
        check(type(columns) is list and 0 < len(columns) <= MOST_LEVELS and len(columns) == len(codes) == len(names))
        check(all(map(is_label, names)))
        levels = [index_of(built_column(column, hashed=True)) for column in columns]
        for level, numbers in zip(levels, codes, strict=True):
            check(len(numpy_array(numbers, "i")) == len(codes[0]) <= MOST_ROWS and level.is_unique)
            check(not len(numbers) or (numbers.min() >= -1 and numbers.max() < len(level)))
        return library.MultiIndex(levels=levels, codes=codes, names=list(names))
    check(kind == "labels")
    column, name, step = parts
    check(is_label(name))
    index = index_of(built_column(column, hashed), name)
    if step is not None:
        check(hasattr(index, "freqstr") and is_regular(step, len(index)))
        index.freq = step
    return index
