"""What goes into a program with its source, and out of it with its end: records of one byte stream each way.

A record is one type byte, an eight-byte big-endian length, the payload:
    m manifest (JSON, at most LARGEST_MANIFEST): always the first     g the bytes of one carried group, in its order
    s the source: the last of what goes in                            v the bytes of one value, in its order

In: the supervisor sends them as N frames, which the warden passes on as they are; it adds the source itself. Out: two
streams, of ``k`` events (carried groups) and of ``w`` events (values), each cut into parts of at most PART bytes.
"""

from __future__ import annotations

import json
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

RECORD = struct.Struct(">cQ")
MANIFEST, GROUP, VALUE, SOURCE = b"m", b"g", b"v", b"s"
PART = 65_536
LARGEST_MANIFEST = 1 << 20


class Delivery:
    """All that came in: the manifest, the carried groups and the values in its order, and the source."""

    def __init__(self) -> None:
        self.manifest: dict[str, Any] = {"carry": None, "values": [], "wanted": []}
        self.groups: list[bytearray] = []
        self.digests: list[bytes] = []
        """Of each group as it came: once its values are restored they share its memory."""
        self.values: list[bytearray] = []
        self.source = ""


def receive(descriptor: int, on_manifest: Callable[[dict[str, Any]], object] | None = None) -> Delivery:
    """Reads to the end of file, and closes. ``on_manifest`` is called as soon as the manifest is in."""
    came = Delivery()
    while (header := read(descriptor, RECORD.size)) is not None:
        kind, size = RECORD.unpack(header)
        payload = read(descriptor, size)
        if payload is None:
            break
        if kind == MANIFEST:
            came.manifest = json.loads(payload)
            if on_manifest is not None:
                on_manifest(came.manifest)
        elif kind == GROUP:
            came.groups.append(payload)
            came.digests.append(digest([payload]))
        elif kind == VALUE:
            came.values.append(payload)
        elif kind == SOURCE:
            came.source = payload.decode("utf-8")
    os.close(descriptor)
    return came


def read(descriptor: int, size: int) -> bytearray | None:
    """Exactly so many bytes, in memory that is taken once; None at the end of file."""
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = os.readv(descriptor, [view])
        if not count:
            return None
        view = view[count:]
    return data


def digest(parts: Iterable[Any]) -> bytes:
    """Tells whether bytes are the same; of bytes or views of them."""
    from _blake2 import blake2b

    made = blake2b(digest_size=16)
    for part in parts:
        made.update(part)
    return made.digest()


def send(kind: bytes, manifest: dict[str, Any], payloads: Iterable[tuple[bytes, list[Any]]]) -> None:
    """Says one whole stream as events of this kind. Each payload is its record's type and its parts, which are bytes
    or views of them; what is large is not copied. Raises OSError where the pipe is gone."""
    from pybox_kernel.inside.events import as_json, say

    small = bytearray()

    def say_all(data: bytearray | memoryview) -> None:
        for start in range(0, len(data), PART):
            say(kind, data[start : start + PART])

    for type_, parts in ((MANIFEST, [as_json(manifest)]), *payloads):
        views = [memoryview(part).cast("B") for part in parts]
        small += RECORD.pack(type_, sum(len(view) for view in views))
        for view in views:
            if len(small) + len(view) > PART:
                say_all(small)
                small.clear()
            if len(view) > PART:
                say_all(view)
            else:
                small += view
    say_all(small)
