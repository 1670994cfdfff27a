"""Values on their way into a box and out of it: joined whatever the pieces, bounded, and broken without harm."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pybox_kernel.inside import events, parcels
from pybox_kernel.inside.streams import BOUNDS, HEADER, Events
from pybox_kernel.wire.frames import LARGEST_FRAME
from pybox_kernel.wire.parcels import (
    CARRIED_BYTES,
    LARGEST_MANIFEST,
    MOST_RECORDS,
    RECORD,
    VALUES_BYTES,
    CarryIn,
    Parcel,
    ParcelReader,
    ValuesIn,
    records_in,
)

PAYLOADS = st.lists(st.binary(max_size=300), max_size=6)
CUTS = st.lists(st.integers(1, 200), min_size=1, max_size=30)


def stream(*records: tuple[bytes, bytes]) -> bytes:
    return b"".join(RECORD.pack(kind, len(payload)) + payload for kind, payload in records)


def read(data: bytes, cuts: list[int] | None = None, dropped: int = 0) -> Parcel | str:
    reader = ParcelReader(b"g")
    start = turn = 0
    while start < len(data):
        size = cuts[turn % len(cuts)] if cuts else 65536
        reader.take(data[start : start + size])
        start, turn = start + size, turn + 1
    reader.end(dropped=dropped)
    return reader.outcome()


def through_a_pipe(write: Callable[[int], None], take: Callable[[int], Any]) -> Any:
    """What ``take`` makes of what ``write`` writes into a pipe, in another thread."""
    reading, writing = os.pipe()

    def write_and_close() -> None:
        write(writing)
        os.close(writing)

    thread = threading.Thread(target=write_and_close)
    thread.start()
    try:
        return take(reading)
    finally:
        thread.join()


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


# Out


@given(PAYLOADS, CUTS)
def test_a_parcel_comes_out_as_it_was_sent_whatever_the_pieces(payloads: list[bytes], cuts: list[int]) -> None:
    sent = stream((b"m", b"{}"), *((b"g", payload) for payload in payloads))
    assert read(sent, cuts) == Parcel(b"{}", tuple(payloads))


@given(PAYLOADS, st.integers(1, 2000))
def test_what_does_not_come_whole_is_nothing(payloads: list[bytes], missing: int) -> None:
    sent = stream((b"m", b"{}"), *((b"g", payload) for payload in payloads), (b"g", b"last"))
    cut = sent[: max(0, len(sent) - missing)]
    found = read(cut)
    # Between two records nobody can see here that there should be more: the manifest says that.
    assert isinstance(found, Parcel) or found == ("it did not come whole" if cut else "nothing came")
    if isinstance(found, Parcel):
        assert found.payloads == tuple(payloads)[: len(found.payloads)]


@given(st.binary(max_size=400), CUTS)
def test_any_bytes_are_a_parcel_or_a_reason(data: bytes, cuts: list[int]) -> None:
    found = read(data, cuts)
    assert isinstance(found, str) or stream((b"m", found.manifest), *((b"g", one) for one in found.payloads)) == data


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (stream((b"g", b"x")), "form"),
        (stream((b"m", b"{}"), (b"v", b"x")), "form"),
        (stream((b"m", b"{}"), (b"m", b"{}")), "form"),
        (stream((b"m", b"{}"), (b"s", b"print()")), "form"),
        (RECORD.pack(b"m", LARGEST_MANIFEST + 1), "larger"),
        (stream((b"m", b"{}")) + RECORD.pack(b"g", 1 << 63), "larger"),
        (stream((b"m", b"{}")) + RECORD.pack(b"g", 0) * (MOST_RECORDS + 1), "parts"),
        (stream((b"m", b"{}")) + RECORD.pack(b"g", CARRIED_BYTES), "whole"),
    ],
)
def test_each_way_to_break_it_has_its_reason(data: bytes, why: str) -> None:
    found = read(data)
    assert isinstance(found, str)
    assert why in found


def test_what_is_broken_keeps_nothing_of_what_still_comes() -> None:
    reader = ParcelReader(b"g")
    reader.take(stream((b"m", b"{}"), (b"g", b"kept" * 1000), (b"x", b"")))
    for _ in range(100):
        reader.take(b"more" * 16384)
    assert reader._payloads == []
    assert reader._payload is None
    assert len(reader._header) == 0


def test_more_than_its_bound_is_nothing() -> None:
    reader = ParcelReader(b"g", 100_000)
    reader.take(stream((b"m", b"{}"), (b"g", b"a" * 60_000)))
    assert isinstance(reader.outcome(), str)  # the box has not said that this is all
    reader.take(stream((b"g", b"a" * 60_000)))
    reader.end(dropped=0)
    assert reader.outcome() == "there is more of it than 100,000 bytes"


def test_what_the_warden_dropped_of_it_makes_it_nothing() -> None:
    assert read(stream((b"m", b"{}")), dropped=1) == f"there is more of it than {CARRIED_BYTES:,} bytes"


# In


@given(PAYLOADS, PAYLOADS, st.text(max_size=100))
def test_the_runner_gets_what_was_put_in(groups: list[bytes], data: list[bytes], source: str) -> None:
    carry = CarryIn({"keep": False, "groups": [{"names": ["a"], "size": len(one)} for one in groups]}, groups)
    values = ValuesIn([{"name": "x", "size": len(one)} for one in data], data, ["y"])
    text = source.encode("utf-8", "replace")

    def write(descriptor: int) -> None:
        for piece in records_in(carry, values):
            assert len(piece) <= LARGEST_FRAME
            write_all(descriptor, piece)
        write_all(descriptor, RECORD.pack(b"s", len(text)) + text)

    came = through_a_pipe(write, parcels.receive)
    assert came.manifest == {"carry": carry.manifest, "values": values.manifest, "wanted": ["y"]}
    assert (came.groups, came.values, came.source.encode()) == (groups, data, text)


def test_a_manifest_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="manifest"):
        list(records_in(CarryIn({"groups": ["x" * LARGEST_MANIFEST]}), None))


def test_the_largest_records_are_cut_into_frames() -> None:
    pieces = list(records_in(CarryIn({"groups": []}, [b"g" * 200_000]), None))
    assert max(map(len, pieces)) == LARGEST_FRAME
    assert read(b"".join(pieces)) == Parcel(b'{"carry": {"groups": []}, "values": [], "wanted": []}', (b"g" * 200_000,))


# Between runner and host


def test_bounds_are_the_same_at_both_ends() -> None:
    assert (BOUNDS[b"k"][1], BOUNDS[b"w"][1]) == (CARRIED_BYTES, VALUES_BYTES)
    assert (parcels.RECORD.format, parcels.LARGEST_MANIFEST) == (RECORD.format, LARGEST_MANIFEST)


@given(st.lists(st.lists(st.binary(max_size=100_000), max_size=3), max_size=4))
@example([[b"x" * size] for size in range(1000)])
@example([[b"x" * 65_527], [b"x" * 65_536], [b"", b"x" * 65_537]])
def test_what_the_runner_sends_is_what_the_host_joins(payloads: list[list[bytes]]) -> None:
    warden, reader = Events(-1), ParcelReader(b"g")

    def send(descriptor: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(events, "EVENTS", descriptor)
            patch.setitem(__import__("sys").modules, "pybox_kernel.inside.events", events)
            parcels.send(b"k", {"a": "é"}, [(b"g", list(parts)) for parts in payloads])

    def take(descriptor: int) -> None:
        while data := os.read(descriptor, 65536):
            for event in warden.take(data):
                assert event[:1] == b"k"
                reader.take(event[1:])
        os.close(descriptor)

    through_a_pipe(send, take)
    reader.end(dropped=warden.cut[b"k"])
    assert reader.outcome() == Parcel('{"a": "é"}'.encode(), tuple(b"".join(parts) for parts in payloads))


def test_a_flood_of_parts_is_cut_once_and_for_all_and_takes_nobody_elses_room() -> None:
    warden = Events(-1)
    part = HEADER.pack(b"k", 65536) + bytes(65536)
    sent = [one for _ in range(600) for one in warden.take(part)]
    assert sum(map(len, sent)) <= CARRIED_BYTES
    assert len(sent) + warden.cut[b"k"] // len(part) == 600
    assert warden.take(HEADER.pack(b"k", 0)) == []
    assert warden.take(HEADER.pack(b"w", 3) + b"abc" + HEADER.pack(b"d", 1) + b"x") == [b"wabc", b"dx"]
    assert (warden.dropped, warden.broken) == (0, False)


@pytest.mark.parametrize(("kind", "broken"), [(b"k", False), (b"w", False), (b"d", True)])
def test_a_part_whose_end_never_came_is_no_broken_display(kind: bytes, broken: bool) -> None:
    warden = Events(-1)
    assert warden.take(HEADER.pack(kind, 1000) + b"x" * 500) == []
    assert warden.broken is broken
