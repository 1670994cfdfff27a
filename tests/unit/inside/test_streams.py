"""The warden's bounds on what a program says over its third pipe."""

from __future__ import annotations

import importlib
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pybox_kernel.inside.streams import BOUNDS, HEADER, MOST_DISPLAYS, Events, Kept
from pybox_kernel.wire.frames import EventParts, FrameReader
from tests.timing import processor_time

CHUNK = 16384
"""What the warden reads at once."""
LARGEST, ALL = BOUNDS[b"d"]


def event(kind: bytes, length: int) -> bytes:
    return HEADER.pack(kind, length) + b"x" * length


def taken(events: Events, data: bytes) -> list[bytes]:
    """As the warden reads it: in pieces."""
    return [one for start in range(0, len(data), CHUNK) for one in events.take(data[start : start + CHUNK])]


def test_the_largest_display_passes_and_one_byte_more_is_dropped() -> None:
    events = Events(-1)
    found = taken(events, event(b"d", LARGEST) + event(b"d", LARGEST + 1) + event(b"d", 1))
    assert [len(one) for one in found] == [LARGEST + 1, 2]
    assert (events.dropped, events.dropped_bytes, events.broken) == (1, LARGEST + 1, False)


def test_displays_are_bounded_together_and_an_error_still_passes() -> None:
    events = Events(-1)
    found = taken(events, event(b"d", 1_000_000) * 10 + event(b"x", 50_000) + event(b"c", 0))
    assert [one[:1] for one in found] == [b"d"] * 5 + [b"x"]
    assert (events.dropped, events.dropped_bytes, events.completed) == (5, 5_000_000, True)


def test_displays_are_bounded_in_number() -> None:
    events = Events(-1)
    found = taken(events, event(b"d", 1) * (MOST_DISPLAYS + 50) + event(b"x", 10) + event(b"c", 0))
    assert len(found) == MOST_DISPLAYS + 1
    assert (events.dropped, events.completed) == (50, True)


def test_what_is_held_back_is_no_more_than_one_event() -> None:
    events = Events(-1)
    for start in range(0, 40 * LARGEST, CHUNK):
        events.take((event(b"d", LARGEST) if start == 0 else b"d\0\x7f\xff\xff")[:CHUNK].ljust(CHUNK, b"d"))
        assert len(events.buffer) <= LARGEST + HEADER.size + CHUNK


def test_an_event_travels_in_parts_that_the_host_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))  # which the warden changes, since it runs alone in a box
    importlib.import_module("pybox_kernel.inside.warden")
    channel = importlib.import_module("pybox_kernel.inside.channel").Channel()
    sent = [b"d", b"x" + b"a" * 32767, b"d" + b"b" * 32768, b"d" + b"c" * LARGEST]
    for one in sent:
        channel.send_event(one)
    frames = FrameReader().feed(bytes(channel.outgoing))
    assert max(len(frame.payload) for frame in frames) <= 32768
    parts = EventParts()
    assert [whole for frame in frames if (whole := parts.take(frame)) is not None] == sent


def test_no_turn_takes_long_for_a_large_event() -> None:
    events = Events(-1)
    data = event(b"d", LARGEST)
    for start in range(0, len(data), CHUNK):
        with processor_time(below=0.05):
            events.take(data[start : start + CHUNK])


@given(st.lists(st.tuples(st.sampled_from([b"d", b"x", b"c", b"r"]), st.integers(0, 80_000)), max_size=12), st.data())
def test_whatever_the_pieces_the_events_are_the_same(sent: list[tuple[bytes, int]], data: st.DataObject) -> None:
    stream = b"".join(event(kind, length) for kind, length in sent)
    whole, pieces = Events(-1), Events(-1)
    expected = whole.take(stream)
    found, start = [], 0
    while start < len(stream):
        size = data.draw(st.integers(1, 100_000))
        found += pieces.take(stream[start : start + size])
        start += size
    assert found == expected
    assert (pieces.dropped, pieces.dropped_bytes) == (whole.dropped, whole.dropped_bytes)


@given(st.binary(max_size=200))
def test_any_bytes_are_taken_without_an_error(data: bytes) -> None:
    events = Events(-1)
    for one in events.take(data):
        assert one[:1] in (b"d", b"x", b"r")


PIECES = st.lists(st.integers(1, 40), min_size=1, max_size=30)
CHARACTERS = st.text(st.sampled_from("aé€👩\n"), max_size=300)


@given(CHARACTERS, PIECES, st.integers(8, 120))
@example("€€aa", [40], 8)
def test_both_parts_of_a_text_are_whole_characters_however_it_comes(text: str, pieces: list[int], room: int) -> None:
    data, kept, head, at = text.encode(), Kept(-1, room), b"", 0
    while at < len(data):
        for piece in pieces:
            head += kept.take(data[at : at + piece])
            head.decode()
            at += piece
    tail = kept.rest()
    tail.decode()
    assert (kept.total, kept.sent) == (len(data), len(head))
    assert data.startswith(head)
    assert data.endswith(tail)
    if len(data) <= room:
        assert head + tail == data
    else:
        assert room - 6 <= len(head) + len(tail) <= room


@given(st.lists(st.binary(max_size=50), max_size=30), st.integers(8, 120))
def test_what_is_no_text_is_bounded_and_counted_as_well(parts: list[bytes], room: int) -> None:
    kept = Kept(-1, room)
    head = b"".join(map(kept.take, parts))
    data = b"".join(parts)
    assert kept.total == len(data)
    assert len(head) + len(kept.rest()) <= room
    assert len(kept.tail) <= room
    if len(data) <= room:
        assert head + kept.rest() == data
