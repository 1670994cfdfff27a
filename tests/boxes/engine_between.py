"""A socket in front of the real engine that can fail it at a chosen call.

The engine behind it is real, and so is what it makes; only the way there and back is not to be relied on.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, Self

from pybox_kernel.engine_choice import DEFAULT_ADDRESS

__all__ = ["EngineBetween", "Fault"]

REQUEST = re.compile(rb"(GET|HEAD|POST|PUT|DELETE) (?:/v[0-9.]+)?(/\S*) HTTP/1\.1\r\n")


class Fault(NamedTuple):
    """What happens to calls whose ``METHOD /path`` (without the version) matches ``call`` from its beginning.

    ``stall``   never reaches the engine, and never gets an answer
    ``cut``     never reaches the engine; the connection is closed
    ``lose``    reaches the engine, which does it; instead of its answer the connection is closed
    ``keep``    reaches the engine, which does it; its answer is kept back
    ``answer``  never reaches the engine; is answered with ``status`` and ``body``
    ``flood``   never reaches the engine; its answer has no end
    ``trickle`` never reaches the engine; its answer has none either, and comes byte by byte
    """

    call: str
    what: Literal["stall", "cut", "lose", "keep", "answer", "flood", "trickle"]
    skip: int = 0
    """How many such calls pass before."""
    times: int = 1
    body: object = None
    status: str = "200 OK"


class EngineBetween:
    """A context manager; ``address`` is that of its socket."""

    def __init__(self, path: Path, *faults: Fault) -> None:
        self.path = path
        self.address = f"unix://{path}"
        self.calls: list[str] = []
        self.faults = list(faults)
        self._counts = [0] * len(faults)
        self._lock = threading.Lock()
        self._sockets: list[tuple[str, socket.socket]] = []
        self._listener: socket.socket | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.gone()

    def open(self) -> None:
        """Listens (again), with no fault any more if it had been gone."""
        self.path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def mend(self) -> None:
        self.faults, self._counts = [], []

    def gone(self) -> None:
        """Nobody listens any more, and every connection is closed."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.hang_up("")

    def hang_up(self, call: str) -> None:
        """Closes every connection whose last call matches ``call`` from its beginning."""
        with self._lock:
            ended = [held for last, held in self._sockets if re.match(call, last)]
            self._sockets = [(last, held) for last, held in self._sockets if not re.match(call, last)]
        for held in ended:
            close(held)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        far = socket.socket(socket.AF_UNIX)
        far.connect(DEFAULT_ADDRESS.removeprefix("unix://"))
        silence: list[str] = []
        self._hold("", near, far)
        threading.Thread(target=self._back, args=(near, far, silence), daemon=True).start()
        with suppress(OSError):
            while data := near.recv(65536):
                found = REQUEST.match(data)
                fault = None
                if found is not None:
                    call = f"{found[1].decode()} {found[2].decode()}"
                    fault = self._fault_of(call)
                    self._hold(call, near, far)
                if fault is None:
                    far.sendall(data)
                elif fault.what == "stall":
                    return
                elif fault.what == "cut":
                    break
                elif fault.what == "answer":
                    read_rest(near, data)
                    near.sendall(answer(fault))
                elif fault.what in ("flood", "trickle"):
                    say_without_end(near, trickling=fault.what == "trickle")
                else:
                    silence.append(fault.what)
                    far.sendall(data)
        close(near)
        close(far)

    def _back(self, near: socket.socket, far: socket.socket, silence: list[str]) -> None:
        with suppress(OSError):
            while data := far.recv(65536):
                if "keep" in silence:
                    return
                if "lose" in silence:
                    break
                near.sendall(data)
        close(near)
        close(far)

    def _fault_of(self, call: str) -> Fault | None:
        with self._lock:
            self.calls.append(call)
            for number, fault in enumerate(self.faults):
                if re.match(fault.call, call):
                    self._counts[number] += 1
                    if fault.skip < self._counts[number] <= fault.skip + fault.times:
                        return fault
        return None

    def _hold(self, call: str, *sockets: socket.socket) -> None:
        with self._lock:
            self._sockets = [(last, held) for last, held in self._sockets if held not in sockets]
            self._sockets += [(call, held) for held in sockets]


def read_rest(near: socket.socket, data: bytes) -> None:
    """The rest of a request's body, so that it is not taken for the next request."""
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    left = (int(length[1]) if length else 0) - len(body)
    while left > 0 and (more := near.recv(left)):
        left -= len(more)


def say_without_end(near: socket.socket, *, trickling: bool) -> None:
    """Until the other side has heard enough."""
    near.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n["')
    while True:
        near.sendall(b"x" * (1 if trickling else 65536))
        if trickling:
            time.sleep(0.1)


def answer(fault: Fault) -> bytes:
    body = fault.body if isinstance(fault.body, bytes) else json.dumps(fault.body).encode()
    head = f"HTTP/1.1 {fault.status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def close(held: socket.socket) -> None:
    with suppress(OSError):
        held.shutdown(socket.SHUT_RDWR)
    held.close()
