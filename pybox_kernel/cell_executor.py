"""The cells of one notebook, executed one after the other: each a run of its own, or a word to PyBox itself.

Every door that executes a whole notebook's cells does it here, so that a cell means the same behind each of them.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import NamedTuple

from pybox_kernel.commands import Command, Options, command_of, free_folder, options_of
from pybox_kernel.displays import Display
from pybox_kernel.errors import ExitStatus, PyBoxError
from pybox_kernel.failures import Failure, exit_status, failure, failure_of_pybox
from pybox_kernel.outbox import Outbox, Text
from pybox_kernel.page import Page, Publish
from pybox_kernel.policy import STDLIB, checked_deadline, checked_source, policy_for
from pybox_kernel.runner import RunResult, Stop
from pybox_kernel.safe_display import safe_name, safe_text
from pybox_kernel.session import Asks, Session, share_folder
from pybox_kernel.session_cells import SessionCells

__all__ = ["CellExecutor", "Executed"]

log = logging.getLogger(__name__)


class Executed(NamedTuple):
    """What came of a cell, all of which is on the page by now."""

    failure: Failure | None
    """Null where it ran to its end, or was a word to PyBox that was obeyed."""
    result: RunResult | None
    """Null where nothing was run."""
    status: int
    """The exit status that it would have had at a shell."""


class CellExecutor:
    """What comes of a cell goes to its page: its output, an ``error`` if it did not run to its end, its receipt.

    ``publish`` and ``look`` are the page's. ``standing`` is what cells ask for where neither they nor a ``%pybox use``
    above them do. Used on one event loop, but for ``stop``, ``end``, ``wait`` and ``close``, which any thread may call.
    """

    def __init__(self, publish: Publish, look: Callable[[], str], standing: Callable[[], Options]) -> None:
        self.page = Page(publish, look, self.stop)
        self.cells = SessionCells()
        """Those that were executed. Whoever has a cell executed adds it, once nobody waits for an answer."""
        self._standing = standing
        self._used = Options()
        """What cells ask for since the last ``%pybox use``."""
        self._boxes: Session | None = None
        self._stop: Stop | None = None
        self._idle = threading.Event()
        self._idle.set()
        self._ended = False

    async def execute(self, code: str, number: int) -> Executed | None:
        """Executes the cell with this number. Nothing it does is raised here, nor is what goes wrong with it. None
        after ``end``: nothing is run any more."""
        try:
            checked_source(STDLIB, code)  # before anything is looked for in a text of any size
            command = command_of(code)
            if command is None:
                return await self._execute(code, number)
            self._obey(command)
        except Exception as error:
            if not isinstance(error, PyBoxError):
                log.exception("A cell could not be executed")
            told = failure_of_pybox(error)
            self.page.error(told)
            status = error.exit_status if isinstance(error, PyBoxError) else ExitStatus.PYBOX_FAILED
            return Executed(told, None, status)
        return Executed(None, None, ExitStatus.OK)

    async def _execute(self, code: str, number: int) -> Executed | None:
        self._idle.clear()
        try:
            self._stop = stop = Stop()
            if self._ended:
                return None

            def send(item: Text | Display) -> None:
                if isinstance(item, Text):
                    self.page.output(item)
                else:
                    self.page.display(item, number)

            outbox = Outbox(send)
            async with self.page.running(outbox):
                run = asyncio.ensure_future(asyncio.to_thread(self._run, code, number, outbox, stop))
                try:
                    await outbox.deliver(run)
                finally:  # whatever happens here, no run goes on without someone who waits for it
                    if not run.done():
                        stop.set()
                        await asyncio.wait([run])
            return self._conclude(await run, number)
        finally:
            self._stop = None
            self._idle.set()

    def _run(self, code: str, number: int, outbox: Outbox, stop: Stop) -> RunResult:
        if self._boxes is None:
            self._boxes = Session.open()
        program, asked = options_of(code)
        of_the_notebook = asked.over(self._used)
        options = of_the_notebook.over(self._standing())
        output = options.output
        if output is not None and asked.output is None:
            output = free_folder(output, number)
        asks = Asks(options.image or STDLIB.image, options.timeout, options.input, output, of_a_notebook=True)
        return self._boxes.run_asked(program, asks, watcher=outbox, stop=stop, earlier=self.cells.defined)

    def _conclude(self, result: RunResult, number: int) -> Executed:
        told = failure(result)
        if told is not None:
            self.page.error(told)
        for notice in result.notices:
            self.page.notice(safe_text(notice))
        self.page.receipt(result.receipt, number)
        return Executed(told, result, exit_status(result.receipt))

    def _obey(self, command: Command) -> None:
        if command.name == "summary":
            self.page.summary()
            return
        image = command.options.over(self._standing()).image or STDLIB.image
        checked_deadline(policy_for(image), command.options.timeout)
        if command.options.output is not None:
            share_folder(command.options.output)
        self._used = command.options
        asked = f"Cells below ask for {self._used}." if str(self._used) else "Cells below ask for nothing special."
        self.page.notice(safe_name(f"{asked} What each gets stands on its receipt."))

    # The end

    def stop(self) -> None:
        """Stops the cell that runs, if one does."""
        stop = self._stop
        if stop is not None:
            stop.set()

    def end(self) -> None:
        """Stops the cell that runs, and runs no other."""
        self._ended = True
        self.stop()

    def wait(self, seconds: float) -> None:
        """Waits as long for the cell that runs."""
        self._idle.wait(seconds)

    def close(self) -> None:
        """Ends what it started, after the last cell."""
        if self._boxes is not None:
            self._boxes.close()
