"""Notes whatever a page does that it must not: requests to elsewhere, dialogs, script of a program's, other windows.

Two witnesses of requests: the browser's own, which also stops them, and a listener that the host of
``LEAK`` leads to, for what the browser does not count as a page's request (a connection made in advance, say).
"""

from __future__ import annotations

import re
import socket
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.browser.hostile import BITTEN

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page, Route

__all__ = ["Found", "Guard", "Trap"]

CONSOLE: Final = re.compile(BITTEN)


class Found(NamedTuple):
    what: str
    detail: str


class Trap:
    """Takes connections, and closes them. Chromium is told that the host of ``LEAK`` is at its address."""

    def __init__(self) -> None:
        self.caught: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(0.3)
                try:
                    said = connection.recv(300)
                except OSError:
                    said = b""
            self.caught.append(repr(said))

    def close(self) -> None:
        # A shutdown, since accept() is not woken by close() alone.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)


class Guard:
    """Of one browser context, whose own server is at ``url``. Made before its first page is opened."""

    def __init__(self, context: BrowserContext, trap: Trap, url: str) -> None:
        self.found: list[Found] = []
        self._trap, self._before = trap, len(trap.caught)
        own = re.escape(url)
        self._socket = re.compile(f"{own.replace('http', 'ws', 1)}/")
        context.route(re.compile(f"^(?!{own}(/|$)|data:|blob:)"), self._stop)
        context.on("page", self._page)
        context.on("dialog", lambda dialog: (self._note("dialog", dialog.message), dialog.dismiss()))
        context.on("console", lambda said: CONSOLE.search(said.text) and self._note("script", said.text))

    def _note(self, what: str, detail: str) -> None:
        self.found.append(Found(what, detail[:300]))

    def _stop(self, route: Route) -> None:
        self._note("request", route.request.url)
        route.abort()

    def _page(self, page: Page) -> None:
        if len(page.context.pages) > 1:
            self._note("window", page.url)
        page.on("websocket", lambda opened: self._socket.match(opened.url) or self._note("socket", opened.url))
        page.on("download", lambda download: self._note("download", download.url))
        page.on("frameattached", lambda frame: self._note("frame", frame.url))

    def all(self) -> list[Found]:
        """What was found until now."""
        return [*self.found, *(Found("connection", said) for said in self._trap.caught[self._before :])]
