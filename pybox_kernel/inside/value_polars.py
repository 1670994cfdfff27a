"""Tables and columns of polars as plainer values: each column its name, its type, a list, and which of it is missing.

Nothing of polars but itself is needed for it, numpy neither. It is the one that the program, or its host, has loaded.
"""

from __future__ import annotations

import re
import sys

from pybox_kernel.inside.value_dates import FIRST_SECOND, LAST_SECOND, UNITS, zone_named
from pybox_kernel.inside.value_form import Cannot, Wrong, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["built", "described", "place_in"]

MOST_COLUMNS = 2000
MOST_ROWS = 8 << 20
NUMBERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "Float32", "Float64")
STORED = {
    **{name: name for name in NUMBERS}, "UInt64": "Int64", "Boolean": "UInt8", "String": "String", "Null": "Null",
    "Categorical": "String", "Enum": "String", "Date": "Int32", "Time": "Int64", "Datetime": "Int64",
    "Duration": "Int64",
}  # fmt: skip
"""What a column of each type is sent as."""
DAY = 86_400
LONGEST_SPAN = 999_999_999 * DAY
"""Seconds: as Python's own spans have it."""
WITHIN = re.compile(r"\[(\d+)\].*")


def polars() -> Any:
    return sys.modules["polars"]


def described(value: Any) -> tuple[str, Any]:
    """A plainer value, and the kind that makes this one of it again. Raises Cannot."""
    if type(value) is polars().Series:
        return "polars column", described_column(value)
    if type(value) is not polars().DataFrame:
        raise Cannot("is " + name_of(type(value)))
    if value.width > MOST_COLUMNS:
        raise Cannot("has more than %d columns" % MOST_COLUMNS)
    columns = []
    for column in value.get_columns():
        try:
            columns.append(described_column(column))
        except Cannot as error:
            raise error.within("[%.60s]" % repr(column.name)) from None
    return "polars table", columns


def place_in(value: Any, place: str) -> str:
    found = WITHIN.fullmatch(place)
    return "[%.60s]" % repr(value.columns[int(found[1])]) if found and hasattr(value, "columns") else ""


def described_column(series: Any) -> tuple[Any, ...]:
    dtype = series.dtype
    name = dtype.base_type().__name__
    if name not in STORED:
        raise Cannot("is of the type %s, which is none of those that are copied" % str(dtype)[:60])
    more: Any = None
    if name in ("Datetime", "Duration"):
        more = dtype.time_unit, getattr(dtype, "time_zone", None)
    elif name == "Enum":
        more = dtype.categories.to_list()
    missing = series.is_null().cast(polars().UInt8).to_list()
    if name == "Null":
        return series.name, name, more, [], bytes(missing)
    if name == "UInt64":
        stored = series.reinterpret(signed=True)
    elif name in ("Categorical", "Enum", "Boolean"):
        stored = series.cast(getattr(polars(), STORED[name]))
    else:
        stored = series.to_physical()
    values = stored.fill_null("" if STORED[name] == "String" else 0).to_list()
    try:
        fits = within(values, name, more)
    except Wrong:
        raise Cannot("is in a time zone that is not known here") from None
    if not fits:
        raise Cannot("has a moment that is not in the years 1 to 9999, or a span that Python's dates do not have")
    return series.name, name, more, values, bytes(missing)


def built(kind: str, plainer: Any) -> Any:
    """Raises Wrong for what ``described`` does not make."""
    try:
        if kind == "polars column":
            return built_column(*plainer)
        check(type(plainer) is list and len(plainer) <= MOST_COLUMNS)
        return polars().DataFrame([built_column(*column) for column in plainer])
    except (Wrong, MemoryError):
        raise
    except Exception as error:  # whatever polars has against what is no such thing
        raise Wrong("no %s" % kind) from error


def built_column(label: Any, name: Any, more: Any, values: Any, missing: Any) -> Any:
    library = polars()
    check(type(label) is str and name in STORED and type(values) is list and type(missing) is bytes)
    check(len(missing) <= MOST_ROWS and set(missing) <= {0, 1})
    if name == "Null":
        check(not values and 0 not in missing)
        return library.Series(label, [None] * len(missing), dtype=library.Null)
    kind = str if STORED[name] == "String" else float if name.startswith("Float") else int
    check(len(values) == len(missing) and set(map(type, values)) <= {kind})
    check(within(values, name, more))
    entries = [None if absent else value for value, absent in zip(values, missing, strict=True)]
    series = library.Series(label, entries, dtype=getattr(library, STORED[name]))
    if name == "UInt64":
        return series.reinterpret(signed=False)
    if name == "Datetime":
        return series.cast(library.Datetime(*more))
    if name == "Duration":
        return series.cast(library.Duration(more[0]))
    if name == "Enum":
        check(type(more) is list and all(type(category) is str for category in more))
        return series.cast(library.Enum(more))
    return series if name == STORED[name] else series.cast(getattr(library, name))


def within(values: Any, name: str, more: Any) -> bool:
    """Whether these numbers are a column of this type: what else there is, no calendar has."""
    limits = None
    if name == "Boolean":
        limits = 0, 1
    elif name == "Date":
        limits = FIRST_SECOND // DAY, LAST_SECOND // DAY
    elif name == "Time":
        limits = 0, DAY * UNITS["ns"] - 1
    elif name in ("Datetime", "Duration"):
        unit, zone = more
        check(unit in ("ms", "us", "ns") and (zone is None or (type(zone) is str and name == "Datetime")))
        zone_named(zone)
        first, last = -LONGEST_SPAN * UNITS[unit], LONGEST_SPAN * UNITS[unit]
        if name == "Datetime":
            margin = DAY if zone is not None else 0  # further from UTC is no time zone
            first, last = (FIRST_SECOND + margin) * UNITS[unit], (LAST_SECOND + 1 - margin) * UNITS[unit] - 1
        limits = first, last
    return limits is None or not values or (min(values) >= limits[0] and max(values) <= limits[1])


def check(holds: bool) -> None:
    if not holds:
        raise Wrong("no column")
