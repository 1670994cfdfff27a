"""HTML from boxes, reduced to text, lists and tables: cleaned by a worker process that is killed if it takes too long.

No links, pictures, styles, classes, ids, scripts or forms are left; ``html_worker`` has the list of what is.
"""

from __future__ import annotations

import re
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from pybox_kernel.safe_display.displays import CleanHtml, Refused
from pybox_kernel.safe_display.text import safe_name

__all__ = ["MOST_BYTES", "CleanedHtml", "HtmlCleaner"]

WORKER: Final = Path(__file__).with_name("html_worker.py")
LENGTH: Final = struct.Struct(">I")
ANSWER: Final = struct.Struct(">cI")

MOST_BYTES: Final = 64 << 10
"""Of UTF-8, both before and after cleaning."""
SECONDS: Final = 0.3
"""For one text, after which the worker is killed. 64 kB of a table take about 10 ms; and a stop waits for it."""
START_SECONDS: Final = 3.0
END_SECONDS: Final = 1.0
LARGEST_ANSWER: Final = 16 * MOST_BYTES
"""Escaping makes five bytes of an ampersand."""


class CleanedHtml(NamedTuple):
    html: CleanHtml
    left_out: bool
    """Something was left out that a reader could miss."""


class Worker:
    """One worker process and the socket to it. Raises OSError where it has gone, TimeoutError where it is late."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    # -I: neither the notebook's folder nor the user's own packages are looked into.
                    [sys.executable, "-I", str(WORKER)],
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env={},
                    start_new_session=True,  # a Ctrl-C in the terminal is not for it
                )
        except OSError:
            self._channel.close()
            raise
        try:
            self._receive(time.monotonic() + START_SECONDS)
        except OSError:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, source: bytes) -> tuple[bytes, bytes]:
        limit = time.monotonic() + SECONDS
        self._wait_until(limit)
        self._channel.sendall(LENGTH.pack(len(source)) + source)
        return self._receive(limit)

    def kill(self) -> None:
        self._channel.close()
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """It ends by itself when its input does."""
        self._channel.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def _receive(self, limit: float) -> tuple[bytes, bytes]:
        kind, size = ANSWER.unpack(self._exactly(ANSWER.size, limit))
        if size > LARGEST_ANSWER:
            raise OSError("an answer out of bounds")
        return kind, self._exactly(size, limit)

    def _exactly(self, size: int, limit: float) -> bytes:
        found = bytearray()
        while len(found) < size:
            self._wait_until(limit)
            part = self._channel.recv(size - len(found))
            if not part:
                raise ConnectionError("the worker has ended")
            found += part
        return bytes(found)

    def _wait_until(self, limit: float) -> None:
        left = limit - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._channel.settimeout(left)


class HtmlCleaner:
    """Thread-safe. Its worker is started when it is first needed, and again after it had to be killed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._closed = False

    def clean(self, source: str) -> CleanedHtml:
        """Raises Refused, saying why it cannot be shown."""
        data = source.encode("utf-8", "replace")
        if len(data) > MOST_BYTES:
            raise Refused(f"larger than {MOST_BYTES >> 10} kB")
        with self._lock:
            kind, answer = self._ask(data)
        text = answer.decode("utf-8", "replace")
        if kind not in (b"C", b"P"):
            raise Refused(safe_name(text))
        if not re.sub("<[^>]*>", "", text).strip():
            raise Refused("nothing of it can be shown")
        safe = safe_markup(text)
        if len(safe.encode()) > MOST_BYTES:
            raise Refused(f"larger than {MOST_BYTES >> 10} kB once it is clean")
        return CleanedHtml(CleanHtml(safe), left_out=kind == b"P")

    def _ask(self, data: bytes) -> tuple[bytes, bytes]:
        if self._closed:
            raise Refused("the session is over")
        try:
            if self._worker is None:
                self._worker = Worker()
            return self._worker.ask(data)
        except OSError as error:
            if self._worker is not None:
                self._worker.kill()
                self._worker = None
            if isinstance(error, TimeoutError):
                raise Refused(f"cleaning it took longer than {SECONDS:g} s") from None
            raise Refused("it could not be cleaned") from None

    def close(self) -> None:
        """Ends the worker. Idempotent; nothing is cleaned afterwards."""
        with self._lock:
            self._closed = True
            if self._worker is not None:
                with suppress(OSError):
                    self._worker.end()
                self._worker = None


def safe_markup(cleaned: str) -> str:
    """The text in it made safe like all text of a program's, and kept from a page's MathJax, which does not look for
    mathematics across elements. In the tags themselves, which are the worker's, there is nothing that this changes."""
    shown = re.sub("[^\n\t]+", lambda line: safe_name(line[0], 12 * len(line[0])), cleaned)
    return re.sub(r"[$\\]", lambda found: f"<span>{found[0]}</span>", shown)
