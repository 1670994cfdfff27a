"""The line to one box's warden: frames in both directions, and never a wait for a write."""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress
from typing import Final, NoReturn

from pybox_kernel.engine import Connection
from pybox_kernel.errors import BoxError, EngineError
from pybox_kernel.safe_display.text import safe_name
from pybox_kernel.wire.frames import ACKNOWLEDGE_EVERY, MOST_BYTES, Frame, FrameReader, encode

__all__ = ["Line"]

WARDEN_TEXT: Final = 2000


class Line:
    """From the box's start to its end. ``wake`` may be called from any thread; all else from one at a time."""

    def __init__(self, connection: Connection) -> None:
        self.closed = False
        """The box's end is."""
        self.said = ""
        """What the warden wrote as it failed, made safe to show."""
        self._connection = connection
        self._reader = FrameReader(MOST_BYTES)
        self._outgoing = bytearray()
        self._answered = 0
        try:
            self._wake_reader, self._wake_writer = socket.socketpair()
        except OSError as error:
            raise BoxError(
                f"This computer has no room for another connection: {error.strerror}.",
                "Close files or notebooks that are not needed, then run the cell again.",
            ) from error
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)

    def close(self) -> None:
        """Of this side what is not the connection's. Idempotent."""
        self._wake_reader.close()
        self._wake_writer.close()

    def wake(self) -> None:
        with suppress(OSError):
            self._wake_writer.send(b"!")

    def allow(self, more: int) -> None:
        """So many bytes more may come."""
        self._reader.most += more

    @property
    def waiting(self) -> int:
        """Bytes that were sent, and are not taken yet."""
        return len(self._outgoing)

    def put(self, data: bytes) -> None:
        """Whole frames that are sent as ``frames`` waits."""
        self._outgoing += data

    def send(self, kind: bytes, payload: bytes) -> None:
        self._outgoing += encode(kind, payload)
        self._push()

    def _push(self) -> None:
        with suppress(EngineError):  # a closed connection shows as the end of what comes
            while self._outgoing and (sent := self._connection.send(bytes(self._outgoing[:65536]))):
                del self._outgoing[:sent]

    def frames(self, until: float) -> list[Frame]:
        """Waits for something from the box, a ``wake``, or ``until``; what came, as frames. Raises BoxError for what
        are none."""
        poll = select.poll()
        poll.register(self._connection.fileno(), select.POLLIN | (select.POLLOUT if self._outgoing else 0))
        poll.register(self._wake_reader, select.POLLIN)
        poll.poll(max(0.0, until - time.monotonic()) * 1000)
        with suppress(BlockingIOError):
            self._wake_reader.recv(64)
        if self._outgoing:
            self._push()
        parts = self._connection.receive()
        if parts is None:
            self.closed = True
            return []
        frames: list[Frame] = []
        for stream, data in parts:
            if stream == 1:
                frames += self._reader.feed(data)
            elif len(self.said) < WARDEN_TEXT:
                self.said += safe_name(data.decode("utf-8", "replace"), WARDEN_TEXT)
        if self._reader.total - self._answered >= ACKNOWLEDGE_EVERY:
            self._answered = self._reader.total
            self.send(b"A", b"%d" % self._answered)
        return frames

    def misplaced(self, frame: Frame) -> NoReturn:
        if frame.kind == b"F":
            self.said = safe_name(frame.payload.decode("utf-8", "replace"), WARDEN_TEXT)
            raise BoxError(f"PyBox's own part in the box failed{self.last_words()}.", "Run `pybox-kernel doctor`.")
        raise BoxError("The box's parts came in the wrong order.", "Run `pybox-kernel doctor`.")

    def last_words(self) -> str:
        return f" ({self.said})" if self.said else ""
