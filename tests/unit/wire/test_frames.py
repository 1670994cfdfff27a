"""What a box sends, in whatever pieces and however broken: frames, events, or BoxError; bounded memory always."""

from __future__ import annotations

import json
import struct
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybox_kernel.errors import BoxError
from pybox_kernel.receipt.model import WallKind
from pybox_kernel.wire.frames import (
    LARGEST_EVENT,
    LARGEST_FRAME,
    MOST_BYTES,
    DisplayEvent,
    Ended,
    ErrorEvent,
    EventParts,
    Frame,
    FrameReader,
    encode,
    read_ended,
    read_event,
    read_ready,
)

FRAMES = st.lists(
    st.tuples(st.sampled_from([b"R", b"O", b"E", b"v", b"V", b"o", b"e", b"X", b"F"]), st.binary(max_size=200)),
    max_size=8,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=15), inner, max_size=4),
    max_leaves=12,
)
ENDED = {
    "how": "exited",
    "code": 0,
    "signal": None,
    "ran_ms": 12.5,
    "completed": True,
    "streams": {name: {"bytes": 3, "kept": 3, "head": 3} for name in ("stdout", "stderr")},
    "events_dropped": 0,
    "events_dropped_bytes": 0,
    "events_garbled": False,
    "carried_dropped": 0,
    "values_dropped": 0,
    "all_reaped": True,
}


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


# Frames


@given(FRAMES, st.lists(st.integers(0, 5000), max_size=20))
def test_frames_come_out_as_they_went_in_whatever_the_pieces(sent: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    reader = FrameReader()
    data = b"".join(encode(kind, payload) for kind, payload in sent)
    found = [frame for piece in pieces(data, cuts) for frame in reader.feed(piece)]
    assert found == [Frame(kind, payload) for kind, payload in sent]
    assert reader.total == len(data)


@given(FRAMES, st.integers(0, 10000))
def test_an_unfinished_frame_is_kept_back(sent: list[tuple[bytes, bytes]], cut: int) -> None:
    data = b"".join(encode(kind, payload) for kind, payload in sent)
    cut %= len(data) + 1
    reader = FrameReader()
    first = reader.feed(data[:cut])
    assert first + reader.feed(data[cut:]) == [Frame(kind, payload) for kind, payload in sent]


@settings(max_examples=300)
@given(st.lists(st.binary(max_size=300), max_size=20))
def test_any_bytes_in_any_pieces_raise_nothing_but_box_error(parts: list[bytes]) -> None:
    reader = FrameReader()
    for part in parts:
        try:
            frames = reader.feed(part)
        except BoxError:
            return
        assert all(len(frame.payload) <= LARGEST_FRAME for frame in frames)
        assert len(reader._buffer) <= LARGEST_FRAME + 5


@pytest.mark.parametrize("kind", [byte for byte in range(256) if byte not in b"ROEvVoePXkwDdTF"])
def test_a_type_that_is_not_the_wardens_ends_it(kind: int) -> None:
    with pytest.raises(BoxError, match="no frame of its warden's"):
        FrameReader().feed(bytes([kind]) + struct.pack(">I", 0))


@pytest.mark.parametrize("length", [LARGEST_FRAME + 1, 1 << 20, 2**31, 2**32 - 1])
def test_a_size_out_of_bounds_ends_it_before_any_memory_is_taken(length: int) -> None:
    with pytest.raises(BoxError, match="no frame of its warden's"):
        FrameReader().feed(b"O" + struct.pack(">I", length))


def test_the_largest_frame_passes() -> None:
    reader = FrameReader()
    assert reader.feed(encode(b"O", b"x" * LARGEST_FRAME)) == [Frame(b"O", b"x" * LARGEST_FRAME)]


def test_a_box_that_never_stops_sending_is_cut_off() -> None:
    reader = FrameReader()
    frame = encode(b"O", b"x" * 60000)
    for _ in range(MOST_BYTES // len(frame)):
        assert len(reader.feed(frame)) == 1
    with pytest.raises(BoxError, match=f"more than {MOST_BYTES:,} bytes"):
        reader.feed(frame)


def test_a_frame_fed_byte_by_byte_holds_no_more_than_itself() -> None:
    reader = FrameReader()
    data = encode(b"O", b"x" * 2000)
    for at in range(len(data) - 1):
        assert reader.feed(data[at : at + 1]) == []
        assert len(reader._buffer) == at + 1
    assert reader.feed(data[-1:]) == [Frame(b"O", b"x" * 2000)]
    assert len(reader._buffer) == 0


# The warden's own JSON


def test_the_account_of_an_end_is_read() -> None:
    ended = read_ended(json.dumps(ENDED).encode())
    assert isinstance(ended, Ended)
    assert (ended.how, ended.code, ended.streams.stdout.kept, ended.all_reaped) == ("exited", 0, 3, True)


@pytest.mark.parametrize(
    "change",
    [
        {"how": "finished"},
        {"how": "signal"},
        {"code": 256},
        {"code": -1},
        {"code": "0"},
        {"code": 0.0},
        {"code": True},
        {"signal": 0},
        {"signal": 65},
        {"ran_ms": -1.0},
        {"ran_ms": 1e9},
        {"ran_ms": "1"},
        {"ran_ms": float("nan")},
        {"ran_ms": float("inf")},
        {"completed": 1},
        {"completed": None},
        {"streams": {}},
        {"streams": {**ENDED["streams"], "more": {}}},  # type: ignore[dict-item]
        {"streams": {name: {"bytes": -1, "kept": 0, "head": 0} for name in ("stdout", "stderr")}},
        {"streams": {name: {"bytes": 2**63, "kept": 0, "head": 0} for name in ("stdout", "stderr")}},
        {"events_dropped": -1},
        {"all_reaped": "yes"},
        {"one_more": 1},
    ],
)
def test_an_account_that_is_wrong_in_any_field_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(BoxError, match="account of its end"):
        read_ended(json.dumps({**ENDED, **change}).encode())


@pytest.mark.parametrize("name", sorted(ENDED))
def test_an_account_without_a_field_is_refused(name: str) -> None:
    with pytest.raises(BoxError, match="account of its end"):
        read_ended(json.dumps({key: value for key, value in ENDED.items() if key != name}).encode())


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b"null", b"1", b"{", b"\xff", b'{"a":}', b"[" * 20000, b'{"a":' * 9000]
)
def test_a_report_that_is_no_object_is_refused(payload: bytes) -> None:
    with pytest.raises(BoxError):
        read_ready(payload)
    with pytest.raises(BoxError):
        read_ended(payload)


@given(JSON | st.dictionaries(st.sampled_from(sorted(ENDED)), JSON))
def test_any_json_is_an_account_or_box_error(value: object) -> None:
    for read in (read_ready, read_ended):
        try:
            assert read(json.dumps(value).encode()) is not None
        except BoxError:
            continue


# The program's events


@pytest.mark.parametrize("kind", [b"", b"x", b"d", b"r", b"c", b"q", b"\xff"])
@settings(max_examples=100)
@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_event_of_the_program_is_an_event_or_nothing(kind: bytes, body: bytes) -> None:
    event = read_event(kind + body)
    assert event is None or isinstance(event, (ErrorEvent, DisplayEvent))
    assert event is None or kind in (b"x", b"d") or body[:1] in (b"x", b"d")


TABLE = {
    "columns": [["a", "b"]],
    "index_names": [""],
    "index": [["0"], ["1"], ["2"]],
    "rows": [["1", "x"], ["2", "y"], ["3", "z"]],
    "numeric": [True, False],
    "shape": [1000, 2],
    "row_gap": 2,
    "column_gap": None,
}
DISPLAY = {"result": True, "data": {"text/plain": "six"}, "table": None, "withheld": {"image/svg+xml": 9}}


def shown(**changes: object) -> bytes:
    return b"d" + json.dumps({**DISPLAY, **changes}).encode()


def test_a_display_has_its_forms_and_lists_what_else_was_offered() -> None:
    data = {"text/plain": "six", "text/html": "<b>6</b>", "image/png": "iVBO", "image/jpeg": "/9j/"}
    event = read_event(shown(data=data, table=TABLE))
    assert isinstance(event, DisplayEvent)
    assert (event.result, event.data.text, event.data.html) == (True, "six", "<b>6</b>")
    assert (event.data.png, event.data.jpeg) == ("iVBO", "/9j/")
    assert event.withheld == {"image/svg+xml": 9}
    assert event.table is not None
    assert event.table.rows == (("1", "x"), ("2", "y"), ("3", "z"))
    assert event.table.shape == (1000, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"result": None},
        {"result": 1},
        {"data": {}},
        {"data": {"text/plain": None}},
        {"data": {"text/plain": ["a"]}},
        {"data": {"text/html": "a"}},
        {"data": {"text/plain": "a", "image/svg+xml": "<svg/>"}},
        {"data": {"text/plain": "a", "text/html": 5}},
        {"data": {"text/plain": "a", "text/html": "x" * 65537}},
        {"data": {"text/plain": "x" * 70001}},
        {"data": {"text/plain": "a", "image/png": "x" * 1_400_001}},
        {"withheld": None},
        {"withheld": {"text/html": -1}},
        {"withheld": {"text/html": 1.5}},
        {"withheld": {"text/html": 2**70}},
        {"withheld": {"text/html": float("nan")}},
        {"withheld": {"x" * 201: 1}},
        {"withheld": {f"x/{n}": n for n in range(101)}},
        {"table": []},
        {"metadata": {}},
        {"transient": {"display_id": "x"}},
    ],
)
def test_a_display_out_of_its_form_is_dropped(change: dict[str, object]) -> None:
    assert read_event(shown(**change)) is None


@pytest.mark.parametrize(
    "change",
    [
        {"columns": [["a"]]},
        {"columns": [["a", "b"], ["a"]]},
        {"columns": [["a", "b"]] * 9},
        {"columns": None},
        {"index_names": ["", ""]},
        {"column_names": ["", "", ""]},
        {"column_names": ["x" * 201]},
        {"index_names": ["x"] * 9, "index": [["x"] * 9] * 3},
        {"index": [["0"], ["1"]]},
        {"index": [["0"], ["1"], [2]]},
        {"rows": [["1", "x"], ["2", "y"], ["3"]]},
        {"rows": [["1", "x"]] * 61, "index": [["0"]] * 61},
        {"rows": [["1", "x" * 201]] * 3},
        {"rows": [["1", None]] * 3},
        {"numeric": [True]},
        {"dtypes": ["int64"]},
        {"dtypes": ["int64", 5]},
        {"dtypes": ["int64", "x" * 201]},
        {"dtypes": None},
        {"numeric": [1, 0]},
        {"numeric": [True] * 21, "rows": [["1"] * 21] * 3, "columns": [["1"] * 21], "shape": [3, 21]},
        {"shape": [2, 2]},
        {"shape": [3, 1]},
        {"shape": [-1, 2]},
        {"shape": [3, 2, 1]},
        {"shape": [3, 2**70]},
        {"row_gap": 4},
        {"row_gap": -1},
        {"column_gap": 3},
        {"column_gap": "1"},
        {"style": "x"},
    ],
)
def test_a_table_out_of_its_form_is_dropped(change: dict[str, object]) -> None:
    assert read_event(shown(table=TABLE)) is not None
    assert read_event(shown(table={**TABLE, **change})) is None


def test_a_table_may_say_what_its_columns_hold() -> None:
    for dtypes in ([], ["int64", "str"]):
        event = read_event(shown(table={**TABLE, "dtypes": dtypes}))
        assert isinstance(event, DisplayEvent)
        assert event.table is not None
        assert event.table.dtypes == tuple(dtypes)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_table_without_a_field_is_dropped(name: str) -> None:
    assert read_event(shown(table={key: value for key, value in TABLE.items() if key != name})) is None


@pytest.mark.parametrize("kind", [b"d", b"x"])
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_000_000,
        b'{"result":' * 140_000,
        b'{"result":true,"data":{"text/plain":"a"},"table":null,"withheld":{"a/b":' + b"9" * 100_000 + b"}}",
        b'{"result":true,"data":{"text/plain":"a"},"table":null,"withheld":{"a/b":NaN}}',
        b'{"result":true,"data":{"text/plain":"a"},"table":null,"withheld":{"a/b":Infinity}}',
        b'{"result":true,"data":{"text/plain":"\xff"},"table":null,"withheld":{}}',
        b'{"result":true,"data":{"text/plain":"\\ud800"},"table":null,"withheld":{}}',
        b'{"result":true}' * 90_000,
    ],
    ids=["brackets", "objects", "a long number", "NaN", "Infinity", "no UTF-8", "half a character", "objects in a row"],
)
def test_json_at_its_worst_is_dropped(kind: bytes, body: bytes) -> None:
    assert read_event(kind + body) is None


def test_of_a_key_given_twice_the_last_is_taken_and_checked() -> None:
    twice = b'd{"result":true,"data":{"text/plain":"a"},"table":null,"withheld":{},"result":%s}'
    event = read_event(twice % b"false")
    assert isinstance(event, DisplayEvent)
    assert event.result is False
    assert read_event(twice % b"5") is None


# An exception's word on what it met


@pytest.mark.parametrize("kind", get_args(WallKind))
def test_an_exception_says_which_wall_it_met(kind: str) -> None:
    told = {"name": "E", "value": "v", "traceback": "t", "about": {"kind": kind, "what": "numpy"}}
    event = read_event(b"x" + json.dumps(told).encode())
    assert isinstance(event, ErrorEvent)
    assert event.about is not None
    assert (event.about.kind, event.about.what) == (kind, "numpy")


@pytest.mark.parametrize(
    "about",
    [
        None,
        {},
        [],
        "module",
        5,
        {"kind": "weather", "what": ""},
        {"kind": "name", "what": 5},
        {"kind": "name"},
        {"kind": "name", "what": "x" * 70001},
        {"kind": "name", "what": "x", "more": 1},
    ],
)
def test_a_wall_that_is_not_known_loses_no_exception(about: object) -> None:
    event = read_event(b"x" + json.dumps({"name": "E", "value": "v", "traceback": "t", "about": about}).encode())
    assert event == ErrorEvent(name="E", value="v", traceback="t", about=None)


# Parts


@given(st.lists(st.tuples(st.lists(st.binary(max_size=50), max_size=4), st.binary(max_size=50)), max_size=5))
def test_an_event_comes_out_of_its_parts_whole(events: list[tuple[list[bytes], bytes]]) -> None:
    parts = EventParts()
    found = []
    for before, last in events:
        assert [parts.take(Frame(b"v", part)) for part in before] == [None] * len(before)
        found.append(parts.take(Frame(b"V", last)))
        assert not parts.open
    assert found == [b"".join([*before, last]) for before, last in events]


def test_an_event_without_an_end_is_cut_off() -> None:
    parts = EventParts()
    for _ in range(LARGEST_EVENT // 32768):
        parts.take(Frame(b"v", b"x" * 32768))
    assert parts.open
    with pytest.raises(BoxError, match="an event of more than"):
        parts.take(Frame(b"V", b"x" * 32768))


@pytest.mark.parametrize(
    "told",
    [
        {"name": "E", "value": "v"},
        {"name": "E", "value": "v", "traceback": None},
        {"name": "E", "value": "v", "traceback": "t", "more": 1},
        {"name": 1, "value": "v", "traceback": "t"},
        {"name": "E", "value": "v" * 70001, "traceback": "t"},
    ],
)
def test_an_exception_out_of_its_form_is_dropped(told: dict[str, object]) -> None:
    assert read_event(b"x" + json.dumps(told).encode()) is None
