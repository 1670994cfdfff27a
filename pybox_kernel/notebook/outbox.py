"""A cell's output on its way to the page: in order, as bounded messages at a bounded rate.

The Jupyter server drops whole messages above its rate limits: 1,000 messages a second, and 1 MB of text, each over
three seconds (``iopub_msg_rate_limit``, ``iopub_data_rate_limit``, ``rate_limit_window``). So text that waits for its
turn is put together, and nothing is left out: how much a run may show at all is bounded before.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from pybox_kernel.running.transcript import StreamName
from pybox_kernel.safe_display.displays import Display
from pybox_kernel.safe_display.text import SafeText

__all__ = ["BURST_MESSAGES", "MESSAGE_CHARACTERS", "MESSAGE_SECONDS", "MOST_TEXTS", "Outbox", "Text"]

MESSAGE_SECONDS: Final = 0.1
"""From one message to the next on average: ten a second. Text that goes on coming is sent no more often."""

BURST_MESSAGES: Final = 100
"""How many messages may be sent at once after a pause, so that pictures between lines do not wait."""

MOST_TEXTS: Final = 12
"""Outputs of text while a cell runs. With its displays, its error and its receipt, a cell has fewer than the 50 outputs
after which JupyterLab folds away the rest."""

MESSAGE_CHARACTERS: Final = 16 * 1024
"""Of text: at most 64 KiB, since UTF-8 takes at most four bytes a character."""


@dataclass(frozen=True)
class Text:
    """A part of one of the two streams."""

    stream: StreamName
    text: str


class Outbox:
    """The messages of one run. Made on the event loop; filled from the thread that runs the cell.

    ``send`` is called on the event loop. Between two displays, what is of one stream is sent in order; of the two
    streams, the one that began to wait first is sent first.
    """

    def __init__(self, send: Callable[[Text | Display], None]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._filled = asyncio.Event()
        self._lock = threading.RLock()
        self._waiting: deque[Text | Display] = deque()
        self._next_text = 0.0
        self._messages_until = 0.0
        self._texts = 0
        """Outputs of text so far: a page begins one anew where the stream changes, or something else comes between."""
        self._last: StreamName | None = None
        self._over = False
        self.deadline_seconds: float | None = None
        self.started_at: float | None = None
        """When the program's clock started, on the event loop's; None before."""
        self.before = 0
        """How many runs of other notebooks come before this one."""

    # The runner's Watcher

    def started(self, deadline_seconds: float) -> None:
        self.deadline_seconds, self.started_at = deadline_seconds, self._loop.time()

    def queued(self, before: int) -> None:
        self.before = before

    def output(self, stream: StreamName, text: SafeText) -> None:
        with self._lock:
            for place in range(len(self._waiting) - 1, -1, -1):
                before = self._waiting[place]
                if isinstance(before, Display):
                    break
                if before.stream == stream:
                    self._waiting[place] = replace(before, text=before.text + text)
                    return
            self._waiting.append(Text(stream, text))
        self._loop.call_soon_threadsafe(self._filled.set)

    def display(self, display: Display) -> None:
        with self._lock:
            self._waiting.append(display)
        self._loop.call_soon_threadsafe(self._filled.set)

    # The kernel's side

    async def deliver(self, run: asyncio.Future[Any]) -> None:
        """Sends what comes, until ``run`` is over and everything is sent."""
        run.add_done_callback(lambda _: self._filled.set())
        while self._waiting or not run.done():
            await self._filled.wait()
            self._filled.clear()
            if run.done():
                self._let_go()
            while self._next() is not None:
                await asyncio.sleep(self._soonest() - self._loop.time())
                item = self._take()
                if item is None:
                    break
                self._send(item)
                self._next_text = self._loop.time() + MESSAGE_SECONDS
                self._messages_until = max(self._loop.time(), self._messages_until) + MESSAGE_SECONDS

    def _soonest(self) -> float:
        """When the next message may be sent. Text that may still grow waits for its own turn."""
        soonest = self._messages_until - BURST_MESSAGES * MESSAGE_SECONDS
        with self._lock:
            growing = all(isinstance(item, Text) for item in self._waiting)
        return max(soonest, self._next_text) if growing else soonest

    def _next(self) -> int | None:
        """Where in the queue the next item is that may be sent; None where nothing is. Once there are as many outputs
        of text as a cell may have, the rest of each stream waits for the end of the run."""
        held = self._texts >= MOST_TEXTS and not self._over
        with self._lock:
            for place, item in enumerate(self._waiting):
                if isinstance(item, Display) or not held or item.stream == self._last:
                    return place
        return None

    def _take(self) -> Text | Display | None:
        with self._lock:
            place = self._next()
            if place is None:
                return None
            item = self._waiting[place]
            del self._waiting[place]
            if isinstance(item, Display):
                self._last = None
                return item
            if item.stream != self._last:
                self._texts += 1
                self._last = item.stream
            if rest := item.text[MESSAGE_CHARACTERS:]:
                self._waiting.insert(place, replace(item, text=rest))
            return replace(item, text=item.text[:MESSAGE_CHARACTERS])

    def _let_go(self) -> None:
        """The run is over, and nothing is held any more. Where what waits would be too many outputs of text, what is
        left of each stream is one."""
        with self._lock:
            self._over = True
            texts = [item for item in self._waiting if isinstance(item, Text)]
            if self._texts + len(texts) <= MOST_TEXTS:
                return
            displays = [item for item in self._waiting if isinstance(item, Display)]
            streams: dict[StreamName, str] = {}
            for item in texts:
                streams[item.stream] = streams.get(item.stream, "") + item.text
            self._waiting = deque([*displays, *(Text(stream, text) for stream, text in streams.items())])
