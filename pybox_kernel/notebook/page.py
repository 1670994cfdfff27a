"""What stands under the cells of one notebook: output, errors, receipts, and the panel while a cell runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from pybox_kernel.notebook.cell_record import CellRecord
from pybox_kernel.notebook.failures import Failure
from pybox_kernel.notebook.outbox import Outbox, Text
from pybox_kernel.notebook.panels import Panels
from pybox_kernel.notebook.running_panel import RunningPanel
from pybox_kernel.notebook.session_receipts import SessionReceipts
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.display import bundle
from pybox_kernel.render.html import notice_html
from pybox_kernel.safe_display.displays import Display
from pybox_kernel.safe_display.text import SafeText, safe_text

__all__ = ["Page", "Publish", "notice_bundle"]

log = logging.getLogger(__name__)

NONE: Final[Mapping[str, object]] = {}


class Publish(Protocol):
    """Sends one message to everyone who listens, as the answer to the request that is under way."""

    def __call__(self, message: str, content: Mapping[str, object]) -> None: ...


class Page:
    """``look`` says what a receipt looks like: "panel" where the page has widgets, and else the same without them;
    "static" is always the latter, "running" too, but with the panel while a cell runs; "none" is nothing. All methods
    are called on the event loop; panels of receipts need one that goes on when the cell is over."""

    def __init__(
        self, publish: Publish, look: Callable[[], str], stop: Callable[[], None], record: CellRecord | None = None
    ) -> None:
        self.has_widgets = False
        self._publish = publish
        self._look = look
        self.record = record or CellRecord()
        """Of what is shown under the cell that runs."""
        self._told_unsigned = False
        self._panels = Panels(
            self.show,
            lambda delay, put_out: asyncio.get_running_loop().call_later(delay, put_out),
            self.record.statement,
        )
        self._running = RunningPanel(self.show, stop)
        self.receipts = SessionReceipts()
        self._in_mid_line = False
        """The last of what the program printed did not end its line."""

    @asynccontextmanager
    async def running(self, outbox: Outbox) -> AsyncIterator[None]:
        """While a cell runs: the panel with its time and the button that stops it."""
        moving = self.has_widgets and self._look() in ("panel", "running")
        panel = asyncio.ensure_future(self._running.follow(outbox)) if moving else None
        try:
            yield
        finally:
            if panel is not None:
                panel.cancel()
                await asyncio.wait([panel])
                if not panel.cancelled() and (error := panel.exception()) is not None:
                    log.warning("The panel of a running cell failed", exc_info=error)

    def output(self, item: Text) -> None:
        self._in_mid_line = not item.text.endswith("\n")
        self._put("stream", {"name": item.stream, "text": item.text})

    def display(self, display: Display, execution_count: int) -> None:
        data = bundle(display)
        self._in_mid_line = False
        if display.result:
            content = {"data": data, "metadata": {}, "execution_count": execution_count}
            self._put("execute_result", content)
        else:
            self._put("display_data", {"data": data, "metadata": {}, "transient": {}})

    def notice(self, text: SafeText) -> None:
        """A word of PyBox's own, which a program's display cannot look like."""
        self._put("display_data", {"data": notice_bundle(text), "metadata": {}, "transient": {}})

    def answer(self, data: Mapping[str, Any]) -> None:
        """All that comes of a cell that is a word to PyBox."""
        self.show(data, metadata=self.record.statement(data))

    def refused(self, failure: Failure) -> None:
        """For a cell of which nothing was run, and which has no receipt: why, and a line on it that can be checked."""
        if self._look() == "none":
            self.error(failure)
            return
        self.record.add("error", failure._asdict())
        data = notice_bundle(safe_text("Nothing was run."))
        metadata = self.record.statement(data, refused=failure.evalue)
        if self.record.raises:
            self.show(data, metadata=metadata)
        self._publish("error", failure._asdict())
        if not self.record.raises:
            self.show(data, metadata=metadata)

    def error(self, failure: Failure) -> None:
        self._in_mid_line = False
        self._put("error", failure._asdict())

    def error_as_text(self, failure: Failure) -> None:
        """Where it is to be no error of the notebook."""
        self.output(Text("stderr", "\n".join([*[""] * self._in_mid_line, *failure.traceback, ""])))

    def receipt(self, receipt: Receipt, execution_count: int, *, shown: bool = True) -> None:
        self.receipts.add(execution_count, receipt)
        if shown and self._look() != "none":
            self._tell_of_the_key()
            self._panels.show(receipt, alive=self._alive, in_mid_line=self._in_mid_line)
        self._in_mid_line = False

    def reopened(self) -> None:
        """A page asks which widgets there are."""
        self.has_widgets = True
        self._panels.reopen()

    def close(self) -> None:
        self._running.close()
        self._panels.close()

    def _put(self, message: str, content: Mapping[str, Any]) -> None:
        """Shows something under the cell that is not its receipt."""
        self.record.add(message, content)
        self._publish(message, content)

    def _tell_of_the_key(self) -> None:
        """Once, where receipts cannot be signed."""
        self.record.keys.prepare()
        problem = self.record.keys.problem
        if problem is not None and not self._told_unsigned:
            self._told_unsigned = True
            self.notice(safe_text(f"Receipts are not signed, so nobody can check them later. {problem}"))

    def show(
        self,
        data: Mapping[str, Any],
        display_id: str | None = None,
        message: str = "display_data",
        metadata: Mapping[str, object] = NONE,
    ) -> None:
        transient = {} if display_id is None else {"display_id": display_id}
        self._publish(message, {"data": data, "metadata": metadata, "transient": transient})

    @property
    def _alive(self) -> bool:
        return self.has_widgets and self._look() == "panel"


def notice_bundle(text: SafeText) -> dict[str, str]:
    return {"text/plain": f"PyBox: {text}", "text/html": notice_html(text)}
