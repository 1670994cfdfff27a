"""The receipts on the page: alive while they are fresh, and then still, for good."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple, Protocol
from uuid import uuid4

from pybox_kernel.notebook.cell_record import PanelShown
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render import widget

__all__ = ["FRESH_SECONDS", "MOST_ALIVE", "MOST_REOPENED", "Panels", "Show", "fresh_seconds"]

FRESH_SECONDS: Final = 60.0
MOST_ALIVE: Final = 8
MOST_REOPENED: Final = 100


class Show(Protocol):
    def __call__(
        self,
        data: Mapping[str, object],
        display_id: str | None = None,
        message: str = "display_data",
        metadata: Mapping[str, object] = ...,
    ) -> None: ...


class Stated(Protocol):
    """The metadata with the statement on a receipt: see ``CellRecord.statement``."""

    def __call__(
        self, data: Mapping[str, Any], receipt: Receipt | None = None, panel: PanelShown | None = None
    ) -> Mapping[str, object]: ...


class Later(Protocol):
    """Such as ``loop.call_later``."""

    def __call__(self, delay: float, callback: Callable[[], None], /) -> Any: ...


class Panel(NamedTuple):
    still: Mapping[str, object]
    """What takes its place."""
    widget: Any
    display_id: str
    metadata: Mapping[str, object]


class Panels:
    """Widgets live as long as this process, each costs the page as well, and a notebook that is opened again finds
    none of them. So a panel is alive for ``FRESH_SECONDS`` at most, and at most ``MOST_ALIVE`` are: then it is replaced
    on the page by the same receipt without widgets, and closed.

    A page that was saved in that time and is opened again while this process lives still asks for the widget, which it
    cannot be told to replace. For it, ``reopen`` brings back the last ``MOST_REOPENED``.
    """

    def __init__(self, show: Show, later: Later, stated: Stated) -> None:
        self._show = show
        self._stated = stated
        self._later = later
        self._alive: deque[Panel] = deque()
        self._closed: deque[tuple[str, str]] = deque(maxlen=MOST_REOPENED)
        self._reopened: dict[str, Any] = {}
        self._kept: set[str] = set()

    def show(self, receipt: Receipt, *, alive: bool, in_mid_line: bool = False) -> None:
        still = widget.bundle(receipt, in_mid_line=in_mid_line)
        if not alive:
            self._show(still, metadata=self._stated(still, receipt))
            return
        while len(self._alive) >= MOST_ALIVE:
            self._put_out()
        shown = widget.panel(receipt)
        metadata = self._stated(still, receipt, PanelShown(shown.model_id, shown.value))
        panel = Panel(still, shown, uuid4().hex, metadata)
        self._alive.append(panel)
        self._show(widget.with_panel(still, panel.widget), panel.display_id, metadata=metadata)
        self._later(fresh_seconds(), lambda: self._put_out_with(panel))

    def reopen(self) -> None:
        """Before a page is told which widgets there are: brings back those that its notebook may have been saved
        with, and sees that those that are alive stay: what takes their place goes to the page that showed them first,
        and not to this one. They stay until the end, or as long as they are among the last."""
        self._kept |= {panel.widget.model_id for panel in self._alive}
        self._close_reopened(but=dict(self._closed))
        for model_id, value in self._closed:
            if model_id not in self._reopened:
                self._reopened[model_id] = widget.panel_of(value, model_id)

    def close(self) -> None:
        while self._alive:
            self._put_out()
        self._close_reopened(but={})
        self._closed.clear()

    def _put_out_with(self, panel: Panel) -> None:
        """This panel and those before it."""
        while any(alive is panel for alive in self._alive):
            self._put_out()

    def _put_out(self) -> None:
        panel = self._alive.popleft()
        self._show(panel.still, panel.display_id, "update_display_data", panel.metadata)
        model_id = panel.widget.model_id
        self._closed.append((model_id, panel.widget.value))
        if model_id in self._kept:
            self._kept.discard(model_id)
            self._reopened[model_id] = panel.widget
        else:
            widget.close(panel.widget)

    def _close_reopened(self, but: Collection[str]) -> None:
        for model_id in [model_id for model_id in self._reopened if model_id not in but]:
            widget.close(self._reopened.pop(model_id))


def fresh_seconds() -> float:
    """``FRESH_SECONDS``, or fewer: those of the variable PYBOX_FRESH_SECONDS."""
    try:
        wish = float(os.environ["PYBOX_FRESH_SECONDS"])
    except (KeyError, ValueError):
        return FRESH_SECONDS
    return wish if 0 <= wish <= FRESH_SECONDS else FRESH_SECONDS
