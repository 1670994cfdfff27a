"""The attach stream of one container."""

from __future__ import annotations

import socket
from contextlib import suppress

from pybox_kernel.docker_engine.errors import DOCTOR
from pybox_kernel.errors import EngineError
from pybox_kernel.own_descriptors import given_up, keep_to_oneself

__all__ = ["DockerConnection"]


class DockerConnection:
    """The attach stream of one container, without a terminal: frames of (1 stdout | 2 stderr, bytes).

    Format: Engine API, "ContainerAttach": one byte of stream type, three zeros, four bytes of big-endian length.
    """

    HEADER = 8
    READ = 65536
    LONGEST = 1 << 20
    """Engines send what a box said in pieces of 32 KiB at the most; one that says otherwise is heard no more."""

    def __init__(self, address: str, raw: socket.socket, keep: object) -> None:
        self._address = address
        self._socket = raw
        self._keep = keep  # the SDK's response owns the connection; without it the socket would be closed under us
        self._buffer = bytearray()
        self._ended = False
        raw.setblocking(False)
        keep_to_oneself(raw.fileno())

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise EngineError("The connection to the box is closed.", DOCTOR) from error

    def receive(self) -> list[tuple[int, bytes]] | None:
        if self._ended:
            return None
        try:
            data = self._socket.recv(self.READ)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._ended = True
            return None
        self._buffer += data
        parts: list[tuple[int, bytes]] = []
        position = 0
        while len(self._buffer) - position >= self.HEADER:
            length = int.from_bytes(self._buffer[position + 4 : position + 8], "big")
            if length > self.LONGEST:
                self._ended = True
                return parts or None
            if len(self._buffer) - position - self.HEADER < length:
                break
            start = position + self.HEADER
            parts.append((self._buffer[position], bytes(self._buffer[start : start + length])))
            position = start + length
        del self._buffer[:position]
        return parts

    def close(self) -> None:
        self._ended = True
        given_up(self._socket.fileno())
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._socket.close()
        with suppress(Exception):  # the SDK's own close of what is closed already
            self._keep.close()  # type: ignore[attr-defined]
