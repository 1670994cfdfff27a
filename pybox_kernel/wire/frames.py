"""Bounded decoding of what a box sends: frames of its warden, and in them the program's events.

A frame is one type byte, a four-byte big-endian length, the payload; ``inside/warden.py`` lists the types. The warden
is trusted, the bytes are not: every size is checked before memory is taken, every JSON goes through a strict model, and
whatever does not fit raises BoxError.
"""

from __future__ import annotations

import struct
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from pybox_kernel.errors import BoxError
from pybox_kernel.receipt.model import WallKind

__all__ = [
    "ACKNOWLEDGE_EVERY",
    "AGAIN",
    "LARGEST_FRAME",
    "MOST_BYTES",
    "About",
    "Count",
    "DisplayData",
    "DisplayEvent",
    "Ended",
    "ErrorEvent",
    "EventParts",
    "Frame",
    "FrameReader",
    "StreamCount",
    "Strict",
    "TableEvent",
    "encode",
    "read_ended",
    "read_event",
    "read_ready",
]

HEADER: Final = struct.Struct(">cI")
LARGEST_FRAME: Final = 65536
MOST_BYTES: Final = 8 << 20
"""Of one run, but for its files and parcels: above the warden's own bounds, so that only a broken box reaches it."""
TYPES: Final = frozenset(b"ROEvVoePXkwDdTF")
LARGEST_EVENT: Final = 1_500_064
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

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._buffer = bytearray()
        self.most = most
        self.total = 0

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are now whole. Raises BoxError for an unknown type or a size out of bounds."""
        self.total += len(data)
        if self.total > self.most:
            raise BoxError(f"The box sent more than {self.most:,} bytes.", AGAIN)
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


class EventParts:
    """Puts the program's events together from their frames: ``v`` a part, ``V`` the last."""

    def __init__(self) -> None:
        self._parts = bytearray()

    @property
    def open(self) -> bool:
        """An event has begun whose last part has not come."""
        return bool(self._parts)

    def take(self, frame: Frame) -> bytes | None:
        """The event that is now whole. Raises BoxError for one that is larger than a warden sends."""
        if len(self._parts) + len(frame.payload) > LARGEST_EVENT:
            raise BoxError(f"The box sent an event of more than {LARGEST_EVENT:,} bytes.", AGAIN)
        self._parts += frame.payload
        if frame.kind != b"V":
            return None
        event = bytes(self._parts)
        self._parts.clear()
        return event


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
    carried_dropped: Count
    """Bytes of what it would have carried to later cells that were over their bound."""
    values_dropped: Count
    """The same of the values that were asked for."""
    all_reaped: bool


class About(Strict):
    kind: WallKind
    what: Annotated[str, Field(max_length=70000)]
    """The name of what was not there: a module, a file, a host."""


class ErrorEvent(Strict):
    """The exception the program reported: its word."""

    name: Annotated[str, Field(max_length=70000)]
    value: Annotated[str, Field(max_length=70000)]
    traceback: Annotated[str, Field(max_length=70000)]
    about: About | None = None

    @field_validator("about", mode="wrap")
    @classmethod
    def none_where_it_cannot_be_read(cls, value: object, read: ValidatorFunctionWrapHandler) -> About | None:
        try:
            about: About | None = read(value)
        except ValidationError:
            return None
        return about


Cell = Annotated[str, Field(max_length=200)]
Cells = Annotated[tuple[Cell, ...], Field(max_length=20)]
Levels = Annotated[tuple[Cell, ...], Field(max_length=8)]


class TableEvent(Strict):
    """A table as data. Rows and columns that were left out are counted in ``shape``."""

    columns: Annotated[tuple[Cells, ...], Field(max_length=8)]
    index_names: Levels
    index: Annotated[tuple[Levels, ...], Field(max_length=60)]
    rows: Annotated[tuple[Cells, ...], Field(max_length=60)]
    numeric: Annotated[tuple[bool, ...], Field(max_length=20)]
    column_names: Levels = ()
    """What each level of ``columns`` is called; empty where none is."""
    dtypes: Cells = ()
    """What each column holds, in its library's words; empty where it does not say."""
    shape: tuple[Count, Count]
    row_gap: Annotated[int, Field(ge=0, le=60)] | None
    column_gap: Annotated[int, Field(ge=0, le=20)] | None

    @model_validator(mode="after")
    def every_list_has_its_length(self) -> Self:
        rows, columns = len(self.rows), len(self.numeric)
        levels = len(self.index_names)
        if (
            len(self.index) != rows
            or any(len(names) != levels for names in self.index)
            or any(len(cells) != columns for cells in (*self.columns, *self.rows))
            or len(self.column_names) not in (0, len(self.columns))
            or len(self.dtypes) not in (0, columns)
            or self.shape[0] < rows
            or self.shape[1] < columns
            or (self.row_gap or 0) > rows
            or (self.column_gap or 0) > columns
        ):
            raise ValueError("not a table")
        return self


class DisplayData(Strict):
    """The forms of one thing shown, by their MIME types."""

    text: str = Field(alias="text/plain", max_length=14000)
    html: str | None = Field(alias="text/html", max_length=65536, default=None)
    png: str | None = Field(alias="image/png", max_length=1_400_000, default=None)
    """As base64."""
    jpeg: str | None = Field(alias="image/jpeg", max_length=1_400_000, default=None)


class DisplayEvent(Strict):
    """What a program asked to show: its word."""

    result: bool
    data: DisplayData
    table: TableEvent | None
    withheld: Annotated[dict[Annotated[str, Field(max_length=200)], Count], Field(max_length=100)]
    """What else it offered and the runner held back: MIME type and size."""


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


def read_event(payload: bytes) -> ErrorEvent | DisplayEvent | None:
    """One event of the program; None for whatever does not have the form of one."""
    kind, body = payload[:1], payload[1:]
    try:
        if kind == b"x":
            return ErrorEvent.model_validate_json(body)
        if kind == b"d":
            return DisplayEvent.model_validate_json(body)
    except ValidationError:
        return None
    return None
