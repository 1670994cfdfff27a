"""The program's output and events, bounded: what is kept of them, and what is counted and dropped."""

from __future__ import annotations

import struct

HEADER = struct.Struct(">cI")
BOUNDS = {
    b"d": (1_500_000, 6_000_000),
    b"x": (60_000, 262_144),
    b"k": (65_536, 34 << 20),
    b"w": (65_536, 9 << 20),
}
"""Of displays, of exceptions, of the parts of what is carried to later cells and of the values that were asked for, in
bytes: the largest, and all together. No flood of one takes the other's room."""
OTHER_BOUNDS = (0, 262_144)
PARCELS = (b"k", b"w")
"""Parts of one stream each: after the first that is dropped none means anything."""
MOST_DISPLAYS = 30


class Kept:
    """The first and the last part of one stream; the middle is counted and dropped, on character boundaries."""

    def __init__(self, descriptor: int, kept: int) -> None:
        self.descriptor = descriptor
        self.kept = kept
        self.head_room = kept // 2
        self.tail = bytearray()
        self.total = 0
        self.sent = 0
        self.head_full = False

    def take(self, data: bytes) -> bytes:
        """The part that belongs to the head and can be sent on now: whole characters. The beginning of one waits in
        the tail for its end, since the head may be full before that comes."""
        self.total += len(data)
        head = b""
        if not self.head_full:
            data = bytes(self.tail) + data
            self.tail.clear()
            room = self.head_room - self.sent
            head = data[:room]
            head = head[: len(head) - partial_character(head)]
            self.head_full = len(data) >= room
            self.sent += len(head)
            data = data[len(head) :]
        self.tail += data
        del self.tail[: max(0, len(self.tail) - (self.kept - self.sent))]
        return head

    def rest(self) -> bytes:
        """The last part; where something before it was dropped it begins with a whole character."""
        start = 0
        if self.total > self.sent + len(self.tail):
            while start < min(3, len(self.tail)) and self.tail[start] & 0xC0 == 0x80:
                start += 1
        return bytes(self.tail[start:])


def partial_character(data: bytes) -> int:
    """How many bytes at the end of ``data`` begin a UTF-8 character without finishing it: 0 to 3."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needs = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4 if byte & 0xF8 == 0xF0 else 1
        return back if needs > back else 0
    return 0


class Events:
    """The program's third pipe: frames like the warden's own. Its word only; what breaks the form is dropped."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.buffer = bytearray()
        self.skip = 0
        self.skipped_kind = b""
        self.garbled = False
        self.totals: dict[bytes, int] = {}
        self.displays = 0
        self.dropped = 0
        self.dropped_bytes = 0
        self.cut = dict.fromkeys(PARCELS, 0)
        self.completed = False

    @property
    def broken(self) -> bool:
        """Something that came is no event, or the end of a display or an exception never came."""
        begun = self.skipped_kind if self.skip else bytes(self.buffer[:1])
        return self.garbled or (begun != b"" and begun not in PARCELS)

    def take(self, data: bytes) -> list[bytes]:
        """Whole events within bounds, ready to send on."""
        if self.garbled:
            return []
        self.buffer += data
        ready: list[bytes] = []
        while True:
            if self.skip:
                self.pass_over()
                if self.skip:
                    return ready
            if len(self.buffer) < HEADER.size:
                return ready
            kind, length = HEADER.unpack_from(self.buffer)
            if kind not in (b"r", b"c", *BOUNDS):
                self.garbled = True
                self.buffer.clear()
                return ready
            size = HEADER.size + length  # the header counts too: events of no length must come to an end as well
            if not self.has_room(kind, length, size):
                del self.buffer[: HEADER.size]
                self.skip, self.skipped_kind = length, kind
                if kind in PARCELS:
                    self.cut[kind] += HEADER.size
                else:
                    self.dropped += 1
                continue
            if len(self.buffer) < size:
                return ready
            payload = bytes(self.buffer[HEADER.size : size])
            del self.buffer[:size]
            if kind == b"c":
                self.completed = True
            else:
                self.totals[kind] = self.totals.get(kind, 0) + size
                self.displays += kind == b"d"
                ready.append(kind + payload)

    def pass_over(self) -> None:
        gone = min(self.skip, len(self.buffer))
        del self.buffer[:gone]
        self.skip -= gone
        if self.skipped_kind in PARCELS:
            self.cut[self.skipped_kind] += gone
        else:
            self.dropped_bytes += gone

    def has_room(self, kind: bytes, length: int, size: int) -> bool:
        if kind == b"d" and self.displays >= MOST_DISPLAYS:
            return False
        if self.cut.get(kind):
            return False
        largest, most = BOUNDS.get(kind, OTHER_BOUNDS)
        return length <= largest and self.totals.get(kind, 0) + size <= most
