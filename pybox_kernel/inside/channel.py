"""The warden's end of the talk with its supervisor: frames in both directions, and never a wait for a write."""

from __future__ import annotations

import os

from streams import HEADER  # type: ignore[import-not-found]

WINDOW = 65536
LARGEST_FRAME = 65536
CHUNK = 16384
PART = 32768
MOST_WAITING = 262_144
"""Bytes that wait to be sent, or to be taken by the runner, before what would add to them is left where it is."""


class SupervisorLost(Exception):
    """The supervisor's end of stdin is closed."""


class Channel:
    """At most WINDOW bytes are under way unanswered: a supervisor that has stopped reading leaves nothing stuck."""

    def __init__(self) -> None:
        self.outgoing = bytearray()
        self.offered = 0
        self.acknowledged = 0
        self.incoming = bytearray()
        self.parcels_until = 0

    def send(self, kind: bytes, payload: bytes) -> None:
        self.outgoing += HEADER.pack(kind, len(payload)) + payload

    def send_parcel(self, event: bytes) -> None:
        self.send(event[:1], event[1:])
        self.parcels_until = self.offered + len(self.outgoing)

    @property
    def is_full(self) -> bool:
        """Parts of a parcel wait here, and enough of them: what is still in the program's pipe stays there."""
        return len(self.outgoing) > MOST_WAITING and self.offered < self.parcels_until

    def send_event(self, event: bytes) -> None:
        last = (len(event) - 1) // PART * PART
        for start in range(0, last, PART):
            self.send(b"v", event[start : start + PART])
        self.send(b"V", event[last:])

    def window(self) -> int:
        return WINDOW - (self.offered - self.acknowledged)

    @property
    def can_write(self) -> bool:
        return bool(self.outgoing) and self.window() > 0

    def flush(self) -> None:
        while self.can_write:
            try:
                sent = os.write(1, bytes(self.outgoing[: min(CHUNK, self.window())]))
            except BlockingIOError:
                return
            except BrokenPipeError:
                raise SupervisorLost from None
            self.offered += sent
            del self.outgoing[:sent]

    def receive(self) -> list[tuple[bytes, bytes]]:
        """The frames that are now whole, of one bounded read; what it answers to is seen to here."""
        try:
            data = os.read(0, LARGEST_FRAME)
        except BlockingIOError:
            return []
        if not data:
            raise SupervisorLost
        self.incoming += data
        frames = []
        while len(self.incoming) >= HEADER.size:
            kind, length = HEADER.unpack_from(self.incoming)
            if length > LARGEST_FRAME:
                raise ValueError("a frame of %d bytes from the supervisor" % length)
            if len(self.incoming) < HEADER.size + length:
                break
            payload = bytes(self.incoming[HEADER.size : HEADER.size + length])
            del self.incoming[: HEADER.size + length]
            if kind == b"A":
                self.acknowledged = min(self.offered, int(payload))
            else:
                frames.append((kind, payload))
        return frames
