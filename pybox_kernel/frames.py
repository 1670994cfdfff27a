"""Bounded decoding of what a box sends: frames of its warden, and in them the program's events.

A frame is one type byte, a four-byte big-endian length, the payload; ``inside/warden.py`` lists the types. The warden
is trusted, the bytes are not: every size is checked before memory is taken, every JSON goes through a strict model, and
whatever does not fit raises BoxError.
"""

from __future__ import annotations

import struct
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pybox_kernel.errors import BoxError

__all__ = [
    "ACKNOWLEDGE_EVERY",
    "DisplayEvent",
    "Ended",
    "ErrorEvent",
    "Frame",
    "FrameReader",
    "StreamCount",
    "encode",
    "read_ended",
    "read_event",
    "read_ready",
]

HEADER: Final = struct.Struct(">cI")
LARGEST_FRAME: Final = 65536
MOST_BYTES: Final = 2 << 20
"""Of one run, all frames together: above the warden's own bounds, so that only a broken box reaches it."""
TYPES: Final = frozenset(b"ROEVoeXF")
ACKNOWLEDGE_EVERY: Final = 16384
"""The warden keeps at most 64 KiB under way; answering each quarter keeps it from waiting."""

AGAIN: Final = "Run the cell again; if it happens again, run `pybox-kernel doctor`."


class Frame(NamedTuple):
    kind: bytes
    payload: bytes


def encode(kind: bytes, payload: bytes) -> bytes:
    return HEADER.pack(kind, len(payload)) + payload


class FrameReader:
    """Turns a byte stream, in whatever pieces it comes, into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.total = 0

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are now whole. Raises BoxError for an unknown type or a size out of bounds."""
        self.total += len(data)
        if self.total > MOST_BYTES:
            raise BoxError(f"The box sent more than {MOST_BYTES:,} bytes.", AGAIN)
        self._buffer += data
        frames = []
        while len(self._buffer) >= HEADER.size:
            kind, length = HEADER.unpack_from(self._buffer)
            if kind[0] not in TYPES or length > LARGEST_FRAME:
                raise BoxError("The box sent something that is no frame of its warden's.", AGAIN)
            end = HEADER.size + length
            if len(self._buffer) < end:
                break
            frames.append(Frame(kind, bytes(self._buffer[HEADER.size : end])))
            del self._buffer[:end]
        return frames


Count = Annotated[int, Field(ge=0, le=1 << 62)]


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class StreamCount(Strict):
    bytes: Count
    kept: Count
    head: Count


class Streams(Strict):
    stdout: StreamCount
    stderr: StreamCount


class Ended(Strict):
    """The warden's account of a run's end; every process of the program is dead by then if ``all_reaped``."""

    how: Literal["exited", "deadline", "stopped"]
    code: Annotated[int, Field(ge=0, le=255)] | None
    signal: Annotated[int, Field(ge=1, le=64)] | None
    ran_ms: Annotated[float, Field(ge=0, le=1e8)]
    completed: bool
    streams: Streams
    events_dropped: Count
    events_dropped_bytes: Count
    events_garbled: bool
    all_reaped: bool


class ErrorEvent(Strict):
    """The exception the program reported: its word."""

    name: Annotated[str, Field(max_length=70000)]
    value: Annotated[str, Field(max_length=70000)]
    traceback: Annotated[str, Field(max_length=70000)]


class DisplayEvent(NamedTuple):
    """What a program asked to show: its plain text, and for each other form its MIME type and size."""

    text: str
    others: tuple[tuple[str, int], ...]


def read_ready(payload: bytes) -> dict[str, Any]:
    """What the warden found in the box. ``inside_look`` checks each value; this checks only that it is JSON."""
    try:
        report = TypeAdapter(dict[str, Any]).validate_json(payload)
    except ValidationError as error:
        raise BoxError("The box's own report cannot be read.", AGAIN) from error
    return report


def read_ended(payload: bytes) -> Ended:
    try:
        return Ended.model_validate_json(payload)
    except ValidationError as error:
        raise BoxError("The box's account of its end cannot be read.", AGAIN) from error


DISPLAY: Final = TypeAdapter(
    dict[Annotated[str, Field(max_length=200)], Annotated[str, Field(max_length=70000)] | Count]
)


def read_event(payload: bytes) -> ErrorEvent | DisplayEvent | None:
    """One event of the program; None for whatever does not have the form of one."""
    kind, body = payload[:1], payload[1:]
    try:
        if kind == b"x":
            return ErrorEvent.model_validate_json(body)
        if kind == b"d":
            bundle = DISPLAY.validate_json(body)
            text = bundle.pop("text/plain", "")
            others = tuple(
                (mime, size if isinstance(size, int) else len(size.encode("utf-8", "replace")))
                for mime, size in sorted(bundle.items())[:32]
            )
            return DisplayEvent(text if isinstance(text, str) else "", others)
    except ValidationError:
        return None
    return None
