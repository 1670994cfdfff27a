"""The receipts on the page: a few of them alive, the others still."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol
from uuid import uuid4

from pybox_kernel.receipt import Receipt
from pybox_kernel.render import widget

__all__ = ["MOST_ALIVE", "Panels"]

MOST_ALIVE: Final = 8


class Show(Protocol):
    def __call__(
        self, data: Mapping[str, object], display_id: str | None = None, message: str = "display_data"
    ) -> None: ...


class Panel(NamedTuple):
    receipt: Receipt
    widget: Any
    display_id: str


class Panels:
    """Widgets live as long as this process, and each is kept by the page too. So the oldest are put out: each is
    replaced on the page by the same receipt without widgets, and closed."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._alive: deque[Panel] = deque()

    def show(self, receipt: Receipt, *, alive: bool) -> None:
        if not alive:
            self._show(widget.bundle(receipt))
            return
        while len(self._alive) >= MOST_ALIVE:
            self._put_out()
        panel = Panel(receipt, widget.panel(receipt), uuid4().hex)
        self._alive.append(panel)
        self._show(widget.bundle(receipt, panel.widget), panel.display_id)

    def close(self) -> None:
        while self._alive:
            self._put_out()

    def _put_out(self) -> None:
        panel = self._alive.popleft()
        self._show(widget.bundle(panel.receipt), panel.display_id, "update_display_data")
        widget.close(panel.widget)
