"""What stands above a cell's output while it runs: the time against the limit, and a button to stop it."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

from pybox_kernel.notebook.outbox import Outbox
from pybox_kernel.notebook.panels import Show
from pybox_kernel.render.amounts import counted
from pybox_kernel.render.widget import VIEW

__all__ = ["TICK_SECONDS", "RunningPanel"]

TICK_SECONDS: Final = 0.2
"""From one step of the bar to the next."""

NOTHING: Final = {"text/plain": ""}
"""Not a bundle without any form, of which nbconvert complains."""
MAKING: Final = "Making a fresh box"
WAITING: Final = "Waiting for its turn"
RUNNING: Final = "Running in a sealed box"


class RunningPanel:
    """One panel for all cells of a kernel, shown anew for each, since every widget costs the page and this process.

    ``show`` puts it on the page, ``tick`` moves it, ``hide`` takes it off. What is left of it in the notebook is an
    empty text, of no height. Its models live until ``close``; hidden, they draw nothing, also where a page that was
    saved during a run is opened again.
    """

    def __init__(self, show: Show, stop: Callable[[], None]) -> None:
        self._show = show
        self._stop = stop
        self._box: Any = None
        self._bar: Any = None
        self._button: Any = None
        self._display_id = ""

    async def follow(self, outbox: Outbox) -> None:
        """Is on the page until it is cancelled, and moves with the cell that fills ``outbox``."""
        clock = asyncio.get_running_loop().time
        self.show()
        try:
            while True:
                await asyncio.sleep(TICK_SECONDS)
                if outbox.started_at is not None and outbox.deadline_seconds is not None:
                    self.tick(clock() - outbox.started_at, outbox.deadline_seconds)
                else:
                    self.wait(outbox.before)
        finally:
            self.hide()

    def show(self) -> None:
        if self._box is None:
            self._make()
        self._bar.value = drawn(MAKING)
        self._button.disabled = False
        self._button.description = "Stop"
        self._box.layout.display = "flex"
        self._display_id = uuid4().hex
        data = {"text/plain": RUNNING, VIEW: self._box._repr_mimebundle_()[VIEW]}
        self._show(data, self._display_id)

    def tick(self, elapsed: float, limit: float) -> None:
        """``elapsed`` and ``limit`` in seconds, by this computer's clock: the box's own is the one that counts."""
        self._bar.value = drawn(RUNNING, f"{min(elapsed, limit):.1f} of {limit:g} s", min(1.0, elapsed / limit))

    def wait(self, before: int) -> None:
        """``before`` runs of other notebooks come first; 0 where this one's box is being made."""
        self._bar.value = drawn(MAKING) if before == 0 else drawn(WAITING, f"{counted(before, 'cell')} before it")

    def hide(self) -> None:
        if self._display_id:
            self._show(NOTHING, self._display_id, "update_display_data")
            self._box.layout.display = "none"
            self._display_id = ""

    def close(self) -> None:
        self.hide()
        if self._box is not None:
            for model in (self._button, self._bar):
                model.style.close()
            for model in (self._button, self._bar, self._box):
                model.layout.close()
                model.close()
            self._box = None

    def _make(self) -> None:
        import ipywidgets

        self._bar = ipywidgets.HTML()
        self._button = ipywidgets.Button(
            description="Stop", tooltip="Stop this cell and remove its box", icon="stop", layout={"width": "auto"}
        )
        self._button.on_click(self._pressed)
        # Pages send clicks to a thread beside the cell's where a kernel has one; ipykernel turns them back to the cell,
        # for whose end they would wait (``BaseComm._reply_subshell_for``).
        self._button.comm._reply_subshell_for = lambda _data, asked: asked
        self._box = ipywidgets.HBox([self._bar, self._button], layout={"align_items": "center"})

    def _pressed(self, _: object) -> None:
        self._button.disabled = True
        self._button.description = "Stopping …"
        self._stop()


def drawn(doing: str, time: str = "", fraction: float | None = None) -> str:
    """A bar between its words; without ``fraction``, one that shows only that something goes on."""
    value = "" if fraction is None else f" value='{fraction:.3f}'"
    name = html.escape(f"{doing}: {time}" if time else doing)
    return (
        f"{html.escape(doing)}&ensp;<progress max='1'{value} aria-label='{name}' style='width:14em'></progress>"
        f"&ensp;<span style='font-variant-numeric:tabular-nums'>{html.escape(time)}</span>&ensp;"
    )
