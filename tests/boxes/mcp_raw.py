"""An MCP client written by hand, for what the SDK's own never sends, and for looks at what the server really writes."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.boxes.conftest import Installation

__all__ = ["RawClient", "mcp_command"]

VERSION = "2025-11-25"


def mcp_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pybox_kernel.cli", "mcp", *arguments]


class RawClient:
    """A server of its own, and the lines that it writes. ``close`` fails unless it ended well."""

    def __init__(self, installation: Installation, log: Path, *arguments: str, **environment: str) -> None:
        self.log = log
        self._log = log.open("wb")
        self.process = subprocess.Popen(
            mcp_command(*arguments),
            env={**installation.environment, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self.lines: list[bytes] = []
        """All it has written."""
        self._arrived: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._kept: list[dict[str, Any]] = []
        self._last = 0
        self.going = False
        """The reader ends after the next line."""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            for line in self.process.stdout:
                self.lines.append(line)
                self._arrived.put(json.loads(line))
                if self.going:
                    return
        self._arrived.put(None)

    # Sending

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, **message: Any) -> None:
        self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, method: str, **params: Any) -> int:
        """Sends a request; its id."""
        self._last += 1
        self.send(id=self._last, method=method, params=params)
        return self._last

    def run(self, code: str, **arguments: Any) -> int:
        """Calls the tool, with a token for progress that is the request's id; the id."""
        number = self._last + 1
        call = {"name": "run_python", "arguments": {"code": code, "timeout": 20, **arguments}}
        return self.ask("tools/call", **call, _meta={"progressToken": number})

    def cancel(self, number: int) -> None:
        self.send(method="notifications/cancelled", params={"requestId": number})

    def open(self) -> dict[str, Any]:
        """The handshake; what the server says of itself."""
        about = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        answer = self.answer(self.ask("initialize", **about))
        self.send(method="notifications/initialized")
        result: dict[str, Any] = answer["result"]
        return result

    # What comes

    def next(self, wanted: Any, seconds: float = 30) -> dict[str, Any]:
        """The first message not taken yet that ``wanted`` is true of."""
        for place, message in enumerate(self._kept):
            if wanted(message):
                return self._kept.pop(place)
        limit = time.monotonic() + seconds
        while True:
            try:
                message = self._arrived.get(timeout=max(0.01, limit - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"nothing came for {seconds} s; log: {self.read_log()[-2000:]}") from None
            assert message is not None, f"the server has ended; log: {self.read_log()[-2000:]}"
            if wanted(message):
                return message
            self._kept.append(message)

    def answer(self, number: Any, seconds: float = 30) -> dict[str, Any]:
        return self.next(lambda message: "method" not in message and message.get("id") == number, seconds)

    def result(self, number: int, seconds: float = 30) -> dict[str, Any]:
        """Of a call of the tool."""
        result: dict[str, Any] = self.answer(number, seconds)["result"]
        return result

    def progress(self, number: int, word: str, seconds: float = 30) -> dict[str, Any]:
        """The next progress of a call whose message has ``word`` in it."""
        found = self.next(
            lambda message: (
                message.get("method") == "notifications/progress"
                and message["params"]["progressToken"] == number
                and word in message["params"]["message"]
            ),
            seconds,
        )
        params: dict[str, Any] = found["params"]
        return params

    def pending(self) -> list[dict[str, Any]]:
        """What has come, and was not taken."""
        while not self._arrived.empty():
            message = self._arrived.get()
            if message is not None:
                self._kept.append(message)
        return self._kept

    def read_log(self) -> str:
        return self.log.read_bytes().decode("utf-8", "surrogateescape")

    # The end

    def stop_reading(self) -> None:
        """Closes the other pipe: the one that it reads from."""
        assert self.process.stdout is not None
        self.going = True
        self.ask("ping")
        self._thread.join(10)
        self.process.stdout.close()

    def close(self, seconds: float = 20) -> int:
        """Closes its end and waits for the server's; the exit status."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            return self.process.wait(seconds)
        finally:
            self.end()

    def end(self) -> None:
        """However it stands."""
        self.process.kill()
        self.process.wait()
        self._thread.join(5)
        for stream in (self.process.stdin, self.process.stdout, self._log):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
