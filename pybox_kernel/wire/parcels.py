"""Values that go into a box before the source, and come out of it: records of one byte stream each way, bounded.

A record is one type byte, an eight-byte big-endian length, the payload; ``inside/parcels.py`` lists the types. What
comes out is the program's word and stays bytes here: it is joined and measured, never read as values.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pybox_kernel.wire.frames import LARGEST_FRAME

__all__ = [
    "CARRIED_BYTES",
    "LARGEST_MANIFEST",
    "MOST_RECORDS",
    "VALUES_BYTES",
    "CarryIn",
    "Parcel",
    "ParcelReader",
    "ValuesIn",
    "records_in",
]

RECORD: Final = struct.Struct(">cQ")
LARGEST_MANIFEST: Final = 1 << 20
CARRIED_BYTES: Final = 34 << 20
VALUES_BYTES: Final = 9 << 20
"""Of all frames of one stream that can come: the warden's own bounds (``inside/streams.py``)."""
MOST_RECORDS: Final = 20_000


class CarryIn(NamedTuple):
    """What earlier cells left for this one. An empty one carries nothing in, and asks for what the cell leaves."""

    manifest: Mapping[str, Any]
    """The part ``carry`` of the manifest, as JSON has it."""
    groups: Sequence[bytes] = ()
    """In the manifest's order."""


class ValuesIn(NamedTuple):
    """Values put in, and the names of those asked for."""

    manifest: Sequence[Mapping[str, Any]] = ()
    """The part ``values`` of the manifest, as JSON has it."""
    data: Sequence[bytes] = ()
    """In the manifest's order."""
    wanted: Sequence[str] = ()


class Parcel(NamedTuple):
    """What came out of a program, unread."""

    manifest: bytes
    payloads: tuple[bytes, ...]


def records_in(carry: CarryIn | None, values: ValuesIn | None) -> Iterator[bytes]:
    """What goes in before the source, in pieces of at most a frame. Raises ValueError for too long a manifest."""
    manifest = {
        "carry": carry.manifest if carry is not None else None,
        "values": list(values.manifest) if values is not None else [],
        "wanted": list(values.wanted) if values is not None else [],
    }
    text = json.dumps(manifest).encode()
    if len(text) > LARGEST_MANIFEST:
        raise ValueError(f"a manifest of {len(text):,} bytes")
    yield from pieces(b"m", text)
    for group in carry.groups if carry is not None else ():
        yield from pieces(b"g", group)
    for value in values.data if values is not None else ():
        yield from pieces(b"v", value)


def pieces(kind: bytes, payload: bytes) -> Iterator[bytes]:
    room = LARGEST_FRAME - RECORD.size
    yield RECORD.pack(kind, len(payload)) + payload[:room]
    for start in range(room, len(payload), LARGEST_FRAME):
        yield payload[start : start + LARGEST_FRAME]


class ParcelReader:
    """Joins the parts of one stream from a box. Whatever is wrong with it ends it with a reason, and costs the run
    nothing else: it keeps at most CARRIED_BYTES, and nothing once it is broken."""

    def __init__(self, kind: bytes, most: int = CARRIED_BYTES) -> None:
        self._kind = kind
        self._most = most
        self._total = 0
        self._header = bytearray()
        self._payload: bytearray | None = None
        self._missing = 0
        self._manifest: bytes | None = None
        self._payloads: list[bytes] = []
        self._broken: str | None = None
        self._ended = False

    def take(self, part: bytes) -> None:
        self._total += len(part)
        if self._total > self._most:
            self._break(f"there is more of it than {self._most:,} bytes")
        rest = memoryview(part)
        while rest and self._broken is None:
            if self._payload is None:
                room = RECORD.size - len(self._header)
                self._header += rest[:room]
                rest = rest[room:]
                if len(self._header) == RECORD.size:
                    self._begin()
            else:
                self._payload += rest[: self._missing]
                taken = min(self._missing, len(rest))
                self._missing -= taken
                rest = rest[taken:]
            if self._payload is not None and not self._missing:
                self._close()

    def end(self, *, dropped: int) -> None:
        """The box is done, and dropped so many bytes of this stream."""
        self._ended = True
        if dropped:
            self._break(f"there is more of it than {self._most:,} bytes")

    def outcome(self) -> Parcel | str:
        """All of it, or in a few words why there is nothing."""
        if self._broken is not None:
            return self._broken
        if self._manifest is None and not self._header:
            return "nothing came"
        if self._manifest is None or self._header or self._payload is not None or not self._ended:
            return "it did not come whole"
        return Parcel(self._manifest, tuple(self._payloads))

    def _begin(self) -> None:
        kind, size = RECORD.unpack(self._header)
        if kind != (b"m" if self._manifest is None else self._kind):
            self._break("what came has not the form it must have")
        elif size > (LARGEST_MANIFEST if kind == b"m" else self._most):
            self._break("what came says it is larger than it may be")
        elif len(self._payloads) >= MOST_RECORDS:
            self._break(f"it has more than {MOST_RECORDS:,} parts")
        else:
            self._payload, self._missing = bytearray(), size

    def _close(self) -> None:
        assert self._payload is not None
        payload, self._payload = bytes(self._payload), None
        self._header.clear()
        if self._manifest is None:
            self._manifest = payload
        else:
            self._payloads.append(payload)

    def _break(self, why: str) -> None:
        self._broken = self._broken or why
        self._header.clear()
        self._payload = None
        self._payloads.clear()
        self._manifest = None
