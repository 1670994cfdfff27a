"""Dates, times of day, moments and spans of time, as plainer values. Time zones go by name. Standard library only."""

from __future__ import annotations

import datetime
import re

from pybox_kernel.inside.value_form import Cannot, Wrong, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["built", "described", "place_in", "zone_name", "zone_named"]

DAY = 86_400_000_000
"""Microseconds."""
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""In which libraries count time, in a second."""
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""Of the years 1 to 9999, which Python's own dates have."""
ZONE = re.compile(r"[A-Za-z0-9_+-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,3}")


def described(value: Any) -> tuple[str, Any]:
    """A plainer value, and the kind that makes this one of it again. Raises Cannot."""
    kind = type(value)
    if kind is datetime.datetime:
        return "moment", (value.toordinal(), microseconds(value), value.fold, zone_name(value.tzinfo))
    if kind is datetime.date:
        return "date", value.toordinal()
    if kind is datetime.timedelta:
        return "span", (value.days, value.seconds, value.microseconds)
    if kind is datetime.time:
        return "time", (microseconds(value), value.fold, zone_name(value.tzinfo))
    raise Cannot("is " + name_of(kind))


def built(kind: str, plainer: Any) -> Any:
    """Raises Wrong for what ``described`` does not make."""
    try:
        if kind == "date":
            return datetime.date.fromordinal(*whole(plainer))
        if kind == "span":
            days, seconds, micros = plainer
            return datetime.timedelta(*whole(days, seconds, micros))
        day, micros, fold, zone = plainer if kind == "moment" else (1, *plainer)
        whole(day, micros, fold)
        if not 0 <= micros < DAY:
            raise Wrong("no time of day")
        moment = datetime.datetime.fromordinal(day) + datetime.timedelta(microseconds=micros)
        moment = moment.replace(fold=fold, tzinfo=zone_named(zone))
    except (TypeError, ValueError, OverflowError) as error:
        raise Wrong("no %s" % kind) from error
    return moment if kind == "moment" else moment.timetz()


def whole(*numbers: Any) -> tuple[int, ...]:
    """The same. Before anything is computed: what else comes here may be of a library, and computes as it likes."""
    if not all(type(number) is int for number in numbers):
        raise Wrong("no whole number")
    return numbers


def place_in(_value: Any, _place: str) -> str:
    return ""


def microseconds(value: datetime.time | datetime.datetime) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def zone_name(zone: Any) -> str | int | None:
    """A time zone by its name, or by its seconds from UTC. Raises Cannot for one that has neither."""
    if zone is None:
        return None
    if type(zone) is datetime.timezone:
        offset = zone.utcoffset(None)
        if offset.microseconds == 0:
            return offset.days * 86_400 + offset.seconds
    known = type(zone).__module__.partition(".")[0] in ("zoneinfo", "pytz")  # another's name may mean anything
    name = (getattr(zone, "key", None) or getattr(zone, "zone", None)) if known else None
    if type(name) is not str or ZONE.fullmatch(name) is None:
        raise Cannot("is in a time zone without a name")
    return name


def zone_named(zone: object) -> datetime.tzinfo | None:
    """Raises Wrong for what is no time zone of this computer; looks for none outside their folders."""
    if zone is None:
        return None
    try:
        if type(zone) is int:
            return datetime.timezone(datetime.timedelta(seconds=zone))
        if type(zone) is str and ZONE.fullmatch(zone):
            import zoneinfo

            return zoneinfo.ZoneInfo(zone)
    except (ValueError, OverflowError, OSError, LookupError, ImportError) as error:
        raise Wrong("an unknown time zone") from error
    raise Wrong("an unknown time zone")
