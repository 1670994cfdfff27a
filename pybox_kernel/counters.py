"""cgroup text (v1 and v2) into numbers, or "unreadable, because".

Sources: Documentation/admin-guide/cgroup-v1/{memory,pids,cpuacct}.rst and cgroup-v2.rst of the Linux kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["METER_FILES", "V1_UNLIMITED", "Meters", "Unread", "field", "number", "read_meters"]

Texts = Mapping[str, str | None]
"""File name to its text; None where it could not be read."""

V1_UNLIMITED = 1 << 62
"""v1 shows "no limit" as the largest multiple of the page size in 63 bits; no machine has half of that."""

METER_FILES = (
    "memory/memory.max_usage_in_bytes",
    "memory/memory.oom_control",
    "pids/pids.peak",
    "pids/pids.events",
    "cpuacct/cpuacct.usage",
    "cpu/cpu.stat",
    "memory.peak",
    "memory.events",
    "pids.peak",
    "pids.events",
    "cpu.stat",
)
"""Every file a meter is read from, v1 (with its controller's folder) and v2."""


class Unread(NamedTuple):
    """A number that could not be read, and why: plain text."""

    why: str


class Meters(NamedTuple):
    """Cumulative since the box was made, except the two peaks. Each a number or the reason there is none."""

    memory_peak_bytes: int | Unread
    oom_kills: int | Unread
    tasks_peak: int | Unread
    task_limit_hits: int | Unread
    cpu_microseconds: int | Unread
    cpu_throttled_periods: int | Unread


def number(texts: Texts, name: str) -> int | Unread:
    """The one whole number that file ``name`` holds."""
    text = texts.get(name)
    if text is None:
        return Unread(f"this kernel offers no {name.rpartition('/')[2]}")
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        return Unread(f"{name.rpartition('/')[2]} is not a number")
    return int(text)


def field(texts: Texts, name: str, key: str) -> int | Unread:
    """The number after ``key`` in a file of lines ``key number``."""
    text = texts.get(name)
    file = name.rpartition("/")[2]
    if text is None:
        return Unread(f"this kernel offers no {file}")
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == key and words[1].isascii() and words[1].isdigit() and len(words[1]) <= 20:
            return int(words[1])
    return Unread(f"{file} has no {key}")


def read_meters(texts: Texts, version: int) -> Meters:
    """The meters out of the texts of ``METER_FILES``; ``version`` is 1 or 2."""
    if version == 2:
        return Meters(
            memory_peak_bytes=number(texts, "memory.peak"),
            oom_kills=field(texts, "memory.events", "oom_kill"),
            tasks_peak=number(texts, "pids.peak"),
            task_limit_hits=field(texts, "pids.events", "max"),
            cpu_microseconds=field(texts, "cpu.stat", "usage_usec"),
            cpu_throttled_periods=field(texts, "cpu.stat", "nr_throttled"),
        )
    nanoseconds = number(texts, "cpuacct/cpuacct.usage")
    return Meters(
        memory_peak_bytes=number(texts, "memory/memory.max_usage_in_bytes"),
        oom_kills=field(texts, "memory/memory.oom_control", "oom_kill"),
        tasks_peak=number(texts, "pids/pids.peak"),
        task_limit_hits=field(texts, "pids/pids.events", "max"),
        cpu_microseconds=nanoseconds if isinstance(nanoseconds, Unread) else nanoseconds // 1000,
        cpu_throttled_periods=field(texts, "cpu/cpu.stat", "nr_throttled"),
    )
