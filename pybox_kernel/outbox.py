"""A cell's output on its way to the page: bounded messages at a bounded rate.

The Jupyter server drops whole messages above its rate limits. So what waits for its turn is put together, and nothing
is left out: how much a run may print at all is bounded before.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final, Literal

from pybox_kernel.safe_display import SafeText

__all__ = ["MESSAGE_CHARACTERS", "MESSAGE_SECONDS", "Kind", "Outbox"]

Kind = Literal["stdout", "stderr", "display"]

MESSAGE_SECONDS: Final = 0.1
"""From one message to the next at least: ten a second."""

MESSAGE_CHARACTERS: Final = 16 * 1024
"""At most 64 KiB, since UTF-8 takes at most four bytes a character."""


class Outbox:
    """The messages of one run. Made on the event loop; filled from the thread that runs the cell.

    ``send`` is called on the event loop. What is of one kind is sent in order; of several kinds that wait at the same
    time, the one that began to wait first is sent first.
    """

    def __init__(self, send: Callable[[Kind, str], None]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._filled = asyncio.Event()
        self._lock = threading.Lock()
        self._waiting: dict[Kind, str] = {}
        self._next = 0.0

    # The runner's Watcher

    def started(self, deadline_seconds: float) -> None:
        """Nothing is shown of this yet."""

    def output(self, stream: Literal["stdout", "stderr"], text: SafeText) -> None:
        self._put(stream, text)

    def display(self, text: SafeText) -> None:
        self._put("display", text)

    # The kernel's side

    async def deliver(self, run: asyncio.Future[Any]) -> None:
        """Sends what comes, until ``run`` is over and everything is sent."""
        run.add_done_callback(lambda _: self._filled.set())
        while self._waiting or not run.done():
            await self._filled.wait()
            self._filled.clear()
            while self._waiting:
                await asyncio.sleep(self._next - self._loop.time())
                kind, text = self._take()
                self._send(kind, text)
                self._next = self._loop.time() + MESSAGE_SECONDS

    def _put(self, kind: Kind, text: SafeText) -> None:
        if not text:
            return
        with self._lock:
            before = self._waiting.get(kind, "")
            joint = "\n" if kind == "display" and before else ""
            self._waiting[kind] = before + joint + text
        self._loop.call_soon_threadsafe(self._filled.set)

    def _take(self) -> tuple[Kind, str]:
        with self._lock:
            kind = next(iter(self._waiting))
            text = self._waiting.pop(kind)
            if rest := text[MESSAGE_CHARACTERS:]:
                self._waiting = {kind: rest, **self._waiting}
            return kind, text[:MESSAGE_CHARACTERS]
