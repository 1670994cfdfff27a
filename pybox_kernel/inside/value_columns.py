"""What one column of a pandas table or index holds, as plainer values: by the kind of its type, missing values as such.

    ("array", array)                       numbers, truth, moments and spans without a zone
    ("objects", list)                      plain values of any kind
    ("text", how it is missing, texts, mask)
    ("masked", type, array, mask)          numbers and truth with a mask of what is missing
    ("zoned", zone, array)                 moments in a time zone, as those of UTC
    ("category", column, codes, ordered)   ("interval", column, column, closed)

pandas and numpy are those that the program, or its host, has loaded. Standard library only.
"""

from __future__ import annotations

import sys

from pybox_kernel.inside.value_dates import FIRST_SECOND, LAST_SECOND, UNITS, zone_name, zone_named
from pybox_kernel.inside.value_form import Cannot, Wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "MOST_HASHED",
    "MOST_ROWS",
    "UNLIKE_LABELS",
    "are_labels",
    "built_column",
    "check",
    "described_column",
    "is_label",
    "numpy_array",
]

MOST_ROWS = 8 << 20
MOST_HASHED = 20_000
"""Categories, and names of columns: of so many, chosen to be as alike as can be, a table is still made in a second."""
MOST_UNSALTED = 2_000
"""Of those, Python objects whose hashes can be foretold: numbers, tuples, spans. Text and dates have others in each
process, and the numbers of an array take less time to compare."""
UNLIKE_LABELS = "has labels that are not copied, or more than %d that are neither text nor dates" % MOST_UNSALTED
MASKED = {
    "boolean": "bool", "Float32": "float32", "Float64": "float64",
    **{sign + "Int" + size: sign.lower() + "int" + size for sign in ("", "U") for size in ("8", "16", "32", "64")},
}  # fmt: skip
"""pandas' types with a mask, and what lies below it."""
CLOSED = ("left", "right", "both", "neither")
DAY = 86_400
"""Seconds: further from UTC is no time zone."""
NOT_A_TIME = -(2**63)


def numpy() -> Any:
    return sys.modules["numpy"]


def pandas() -> Any:
    return sys.modules["pandas"]


def described_column(values: Any) -> tuple[Any, ...]:
    """The content of a Series or an Index. Raises Cannot."""
    dtype = values.dtype
    if isinstance(dtype, numpy().dtype):
        if dtype.kind == "O":
            return "objects", values.tolist()
        array = values.to_numpy()
        return "array", checked(array.astype(dtype.newbyteorder("="), copy=False))
    kind = type(dtype).__name__
    if kind == "StringDtype":
        texts = values.array.to_numpy(dtype=object, na_value="").tolist()
        return "text", "NA" if dtype.na_value is pandas().NA else "NaN", texts, mask_of(values)
    if dtype.name in MASKED:
        return "masked", dtype.name, values.array.to_numpy(MASKED[dtype.name], na_value=0), mask_of(values)
    if kind == "DatetimeTZDtype":
        return "zoned", zone_name(dtype.tz), checked(values.to_numpy("M8[%s]" % dtype.unit), DAY)
    if kind == "CategoricalDtype":
        content = values.array
        check(len(content.categories) <= MOST_HASHED, Cannot("has more than %d categories" % MOST_HASHED))
        column = described_column(content.categories)
        check(column[0] != "objects" or are_labels(column[1]), Cannot(UNLIKE_LABELS))
        return "category", column, numpy().asarray(content.codes), content.ordered
    if kind == "IntervalDtype":
        content = values.array
        return "interval", described_column(content.left), described_column(content.right), dtype.closed
    raise Cannot("is of the type %s, which is none of those that are copied" % str(dtype)[:60])


def mask_of(values: Any) -> Any:
    return numpy().asarray(values.isna(), dtype=bool)


def checked(array: Any, margin: int = 0) -> Any:
    """The array itself. Raises Cannot for one that is no column, or has moments that are in no calendar, or less than
    ``margin`` seconds from its ends."""
    dtype = array.dtype
    check(array.ndim == 1 and dtype.kind in "biufcmM" and dtype.isnative, Cannot("is no column"))
    if dtype.kind in "mM":
        unit, step = numpy().datetime_data(dtype)
        check(unit in UNITS and step == 1, Cannot("counts time in a unit that is not copied"))
        numbers = array.view("i8")
        known = numbers[numbers != NOT_A_TIME]
        if dtype.kind == "M" and len(known):
            first, last = (FIRST_SECOND + margin) * UNITS[unit], (LAST_SECOND + 1 - margin) * UNITS[unit]
            if unit == "ns":  # whose own ends come first
                first, last = NOT_A_TIME + margin * UNITS[unit], 2**63 - margin * UNITS[unit]
            inside = int(known.min()) >= first and int(known.max()) < last
            check(bool(inside), Cannot("has a moment that is not in the years 1 to 9999"))
    return array


def built_column(plainer: Any, hashed: bool = False) -> Any:
    """An array of numpy or pandas. What is ``hashed`` has at most MOST_HASHED entries, and those can be. Raises Wrong,
    or whatever pandas raises for what it does not take."""
    kind, *parts = plainer
    if kind == "array":
        (array,) = parts
        found = checked(numpy_array(array))
    elif kind == "objects":
        found = object_array(*parts)
        check(not hashed or are_labels(parts[0]))
    elif kind == "text":
        found = text_array(*parts)
    elif kind == "masked":
        found = masked_array(*parts)
    elif kind == "zoned":
        zone, array = parts
        moments = checked(numpy_array(array), DAY)
        check(moments.dtype.kind == "M")
        found = pandas().Series(moments).dt.tz_localize("UTC").dt.tz_convert(named_for_pandas(zone)).array
    elif kind == "category":
        found = categorical(*parts)
    elif kind == "interval":
        left, right, closed = parts
        check(closed in CLOSED)
        ends = [pandas().Index(built_column(end)) for end in (left, right)]
        check(all(end.dtype.kind in "iufmM" for end in ends))
        found = pandas().arrays.IntervalArray.from_arrays(*ends, closed=closed)
    else:
        raise Wrong("an unknown kind of column")
    check(len(found) <= (MOST_HASHED if hashed else MOST_ROWS))
    return found


def numpy_array(value: Any, kinds: str = "biufcmM") -> Any:
    check(type(value) is numpy().ndarray and value.ndim == 1 and value.dtype.kind in kinds)
    return value


def object_array(values: Any) -> Any:
    check(type(values) is list)
    array = numpy().empty(len(values), dtype=object)
    array[:] = values
    return array


def text_array(missing: Any, texts: Any, mask: Any) -> Any:
    check(type(texts) is list and all(type(text) is str for text in texts) and missing in ("NA", "NaN"))
    array = object_array(texts)
    check(len(numpy_array(mask, "b")) == len(texts))
    array[mask] = pandas().NA if missing == "NA" else numpy().nan
    if missing == "NA":
        return pandas().array(array, dtype="string")
    try:
        dtype = pandas().StringDtype(na_value=numpy().nan)
    except TypeError:  # before pandas 2.3 text was an object like any other
        return array
    return pandas().array(array, dtype=dtype)


def masked_array(name: Any, array: Any, mask: Any) -> Any:
    check(name in MASKED and numpy_array(array).dtype == MASKED[name] and len(numpy_array(mask, "b")) == len(array))
    arrays = pandas().arrays
    if name == "boolean":
        return arrays.BooleanArray(array, mask)
    return (arrays.FloatingArray if name.startswith("Float") else arrays.IntegerArray)(array, mask)


def categorical(column: Any, codes: Any, ordered: Any) -> Any:
    categories = index_of(built_column(column, hashed=True))
    check(type(ordered) is bool and categories.is_unique and not categories.hasnans)
    numbers = numpy_array(codes, "i")
    check(not len(numbers) or (numbers.min() >= -1 and numbers.max() < len(categories)))
    dtype = pandas().CategoricalDtype(categories, ordered=ordered)
    return pandas().Categorical.from_codes(numbers, dtype=dtype)


def index_of(array: Any, name: Any = None) -> Any:
    """Of exactly the type of ``array``: no other is inferred."""
    return pandas().Index(array, dtype=array.dtype, name=name)


def named_for_pandas(zone: Any) -> Any:
    """By its name where it has one, which pandas 2 makes another object of than pandas 3."""
    found = zone_named(zone)
    check(found is not None)
    return zone if type(zone) is str else found


def is_label(value: object) -> bool:
    """What can name a row or a column, and be looked up."""
    if type(value) is tuple:
        return len(value) <= 8 and all(type(part) is not tuple and is_label(part) for part in value)
    kind = type(value)
    if value is None or kind in (str, int, float, bool) or kind.__module__ == "datetime":
        return True
    if isinstance(value, numpy().generic):
        return bool(value.dtype.kind in "biufmM")
    return kind in (pandas().Timestamp, pandas().Timedelta)


def are_labels(values: Any) -> bool:
    """The same of many that are hashed."""
    unsalted = sum(value is not None and type(value).__name__ not in ("str", "date") for value in values)
    return unsalted <= MOST_UNSALTED and all(map(is_label, values))


def check(holds: bool, error: Exception | None = None) -> None:
    if not holds:
        raise error or Wrong("no column")
