"""The cells of one notebook, executed one after the other: each a run of its own, or a word to PyBox itself.

Every door that executes a whole notebook's cells does it here, so that a cell means the same behind each of them.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NamedTuple

from pybox_kernel.carry.groups import Mode
from pybox_kernel.errors import ExitStatus, OptionError, PyBoxError
from pybox_kernel.notebook.answers import Standing, answer, help_on_options
from pybox_kernel.notebook.carry_commands import carried, in_short, obey
from pybox_kernel.notebook.cell_record import CellRecord
from pybox_kernel.notebook.commands import Command, Options, command_of, options_of
from pybox_kernel.notebook.failures import Failure, exit_status, failure, failure_of_pybox
from pybox_kernel.notebook.outbox import Outbox, Text
from pybox_kernel.notebook.page import Page, Publish, notice_bundle
from pybox_kernel.notebook.session_cells import SessionCells
from pybox_kernel.notebook.total_time import TotalTime
from pybox_kernel.policy import STDLIB, checked_deadline, checked_source, policy_for
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.words import words
from pybox_kernel.running.runner import RunResult, Stop
from pybox_kernel.safe_display.displays import Display
from pybox_kernel.safe_display.text import SafeText, safe_name, safe_text
from pybox_kernel.sessions.session import Asks, Carry, Session, Wish, share_folder, wish_of
from pybox_kernel.wire.values import ValuesAsked, checked_wanted, taken

__all__ = ["CellExecutor", "Executed"]

log = logging.getLogger(__name__)

EVERY_CELL: Final = "Every cell is sealed: nothing runs outside of a box here."


class Executed(NamedTuple):
    """What came of a cell, all of which is on the page by now."""

    failure: Failure | None
    """Null where it ran to its end, or was a word to PyBox that was obeyed; and where its failure is to be no error."""
    result: RunResult | None
    """Null where nothing was run."""
    status: int
    """The exit status that it would have had at a shell."""


class CellExecutor:
    """What comes of a cell goes to its page: its output, an ``error`` if it did not run to its end, its receipt.

    ``publish`` and ``look`` are the page's. ``standing`` is what cells ask for where neither they nor a ``%pybox use``
    above them do, ``sealed`` which cells are sealed, in words, and ``names`` those of the Python outside of boxes,
    where there is one; ``carry`` whether cells leave values to one another before anybody says; ``engine`` what was
    said of the engine, asked for when the first box is to be made. ``permitted`` is for cells that are graded: what is
    heard of their wishes; it may raise OptionError. ``total_time`` is what they have together. Used on one event loop,
    but for ``stop``, ``end``, ``wait`` and ``close``, which any thread may call.
    """

    def __init__(
        self,
        publish: Publish,
        look: Callable[[], str],
        standing: Callable[[], Options],
        sealed: Callable[[], str] = lambda: EVERY_CELL,
        names: MutableMapping[str, Any] | None = None,
        carry: Mode = "off",
        engine: Callable[[], Wish] = wish_of,
        permitted: Callable[[Options], Options] | None = None,
        total_time: TotalTime | None = None,
    ) -> None:
        self.page = Page(publish, look, self.stop, CellRecord(raises=names is not None))
        self.cells = SessionCells()
        """Those that were executed. Whoever has a cell executed adds it, once nobody waits for an answer."""
        self._standing = standing
        self._sealed = sealed
        self._names = names
        self._engine = engine
        self._permitted = permitted
        self._total_time = total_time or TotalTime()
        self.carry = Carry(carry)
        """What they leave to one another."""
        self._used = Options()
        """What cells ask for since the last ``%pybox use``."""
        self._boxes: Session | None = None
        self._opening = threading.Lock()
        self._stop: Stop | None = None
        self._idle = threading.Event()
        self._idle.set()
        self._ended = False

    async def execute(self, code: str, number: int) -> Executed | None:
        """Executes the cell with this number. Nothing it does is raised here, nor is what goes wrong with it. None
        after ``end``: nothing is run any more."""
        if self._names is None:  # else whoever knows the whole cell has said that it begins
            self.page.record.begin(number, code)
        try:
            checked_source(STDLIB, code)  # before anything is looked for in a text of any size
            command = command_of(code)
            if command is None:
                program, asked = options_of(code)
                asked = self._heard(asked)
                if not asked.help:
                    return await self._execute(program, asked, self._values(asked), number)
                self.page.answer(help_on_options())
            elif command.name == "use":
                self._use(self._heard(command.options))
            elif command.name == "carry":
                self._steer(command.words)
            elif command.name == "guard":
                self._answered(safe_text(self._sealed()))
            else:
                await self._say(command)
        except Exception as error:
            if not isinstance(error, PyBoxError):
                log.exception("A cell could not be executed")
            told = failure_of_pybox(error)
            self.page.refused(told)
            status = error.exit_status if isinstance(error, PyBoxError) else ExitStatus.PYBOX_FAILED
            return Executed(told, None, status)
        return Executed(None, None, ExitStatus.OK)

    async def _execute(self, program: str, asked: Options, values: ValuesAsked, number: int) -> Executed | None:
        self._idle.clear()
        try:
            self._stop = stop = Stop()
            if self._ended:
                return None

            results: list[Display] = []

            def send(item: Text | Display) -> None:
                if isinstance(item, Text):
                    self.page.output(item)
                elif item.result and self._permitted is not None:
                    results.append(item)
                else:
                    self.page.display(item, number)

            outbox = Outbox(send)
            async with self.page.running(outbox):
                run = asyncio.ensure_future(asyncio.to_thread(self._run, program, asked, values, number, outbox, stop))
                try:
                    await outbox.deliver(run)
                finally:  # whatever happens here, no run goes on without someone who waits for it
                    if not run.done():
                        stop.set()
                        await asyncio.wait([run])
            result = await run
            self._total_time.spend_on(result.receipt)
            for item in results:  # nbgrader takes one for a score, also where an error stands below it
                self.page.display(item if failure(result) is None else replace(item, result=False), number)
            return self._conclude(result, asked, number)
        finally:
            self._stop = None
            self._idle.set()

    def _run(
        self, program: str, asked: Options, values: ValuesAsked, number: int, outbox: Outbox, stop: Stop
    ) -> RunResult:
        options, of_the_notebook = self._options(asked), asked.over(self._used)
        refusal = self._total_time.refusal()
        cell = number if asked.output is None else None
        own = [name for name in ("input", "output") if not getattr(of_the_notebook, name)]
        image = options.image or STDLIB.image
        asks = Asks(
            image, options.timeout, options.input, options.output, cell, options.carry, of_a_notebook=True, own=own
        )
        return self._session().run_asked(
            program,
            asks,
            watcher=outbox,
            stop=stop,
            earlier=self.cells.defined,
            carry=self.carry,
            cell=number,
            values=values,
            queued=outbox.queued,
            refusal=refusal,
        )

    def _session(self) -> Session:
        with self._opening:
            if self._boxes is None:
                self._boxes = Session.open(in_advance=True, wish=self._engine())
            return self._boxes

    @property
    def wish(self) -> Wish | None:
        """What was said of the engine when the first box was to be made, which stays; None before."""
        return self._boxes.wish if self._boxes is not None else None

    def prepare(self) -> None:
        """Has a box made for the first cell. What goes wrong with that, the first cell says."""
        image = self._standing().image or STDLIB.image
        with suppress(PyBoxError):
            if not self._ended:
                self._session().expect(image)
        self.page.record.keys.prepare()

    def _heard(self, asked: Options) -> Options:
        return asked if self._permitted is None else self._permitted(asked)

    def _options(self, asked: Options) -> Options:
        return asked.over(self._used).over(self._standing())

    def _conclude(self, result: RunResult, asked: Options, number: int) -> Executed:
        options = self._options(asked)
        told = failure(result)
        ran_and_failed = told is not None and result.receipt.observed.end.how not in ("not_started", "stopped")
        let_go = options.no_raise and ran_and_failed
        if told is not None:
            (self.page.error_as_text if let_go else self.page.error)(told)
        for notice in result.notices:
            self.page.notice(safe_text(notice))
        self._bind(options, result)
        clean = words(result.receipt).tone == "ok" and not result.values.not_brought
        self.page.receipt(result.receipt, number, shown=not (options.quiet and clean))
        return Executed(None if let_go else told, result, exit_status(result.receipt))

    def _values(self, asked: Options) -> ValuesAsked:
        """Copies of what the cell is to get. Raises OptionError before anything is run."""
        if self._names is not None:
            if asked.receipt is not None:
                again = isinstance(self._names.get(asked.receipt), Receipt)
                checked_wanted([asked.receipt], self._names, replace=asked.replace or again)
            wanted = checked_wanted(asked.values_out, self._names, replace=asked.replace)
            if asked.receipt in wanted:
                raise OptionError(f"{asked.receipt} is a value and the receipt.", "Give them two names.")
            return ValuesAsked(taken(asked.values_in, self._names), wanted)
        if asked.receipt is not None:
            self.page.notice(safe_name(f"Nothing runs outside of a box here, so nothing is bound to {asked.receipt}."))
        carries = (self._options(asked).carry or self.carry.mode) != "off"
        if (asked.values_in or asked.values_out) and not carries:
            raise OptionError(
                "-i and -o copy values between a box and the cells around it, and here each cell is on its own.",
                "`%pybox carry on` lets cells have what those above them made; or leave -i and -o out.",
            )
        return ValuesAsked()

    def _bind(self, options: Options, result: RunResult) -> None:
        """Gives the values that came back their names, and the receipt the one that was asked for. Says how a name that
        the cell missed could have been there."""
        if self._names is None:
            return
        about = result.error.about if result.error is not None else None
        if about is not None and about.kind == "name" and about.what in self._names and about.what.isidentifier():
            self.page.notice(
                safe_text(f"This notebook has a {about.what}; `%%pybox -i {about.what}` copies it into the box.")
            )
        for value in result.values.brought:
            self._names[value.name] = value.value
        if options.receipt is not None:
            self._names[options.receipt] = result.receipt

    def _use(self, options: Options) -> None:
        image = options.over(self._standing()).image or STDLIB.image
        checked_deadline(policy_for(image), options.timeout)
        if options.output is not None:
            share_folder(options.output)
        self._used = options
        asked = f"Cells below ask for {self._used}." if str(self._used) else "Cells below ask for nothing special."
        self._answered(safe_name(f"{asked} What each gets stands on its receipt."))

    def _steer(self, words: Sequence[str]) -> None:
        done = obey(self.carry, words)
        if done is None:
            self.page.answer(carried(self.carry))
        else:
            self._answered(safe_text(done))

    async def _say(self, command: Command) -> None:
        """Answers it. Raises TimeIsUp: to look at the engine takes a while, too."""
        if (refusal := self._total_time.refusal()) is not None:
            raise refusal
        began = time.monotonic()
        self.page.answer(await asyncio.to_thread(self._answer, command))
        self._total_time.spend(time.monotonic() - began)

    def _answered(self, sentence: SafeText) -> None:
        self.page.answer(notice_bundle(sentence))

    def _answer(self, command: Command) -> Mapping[str, str]:
        image = self._used.over(self._standing()).image or STDLIB.image
        return answer(
            command,
            self.page.receipts,
            Standing(image, self._used, self._sealed(), in_short(self.carry), self._engine()),
        )

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
        with self._opening:
            if self._boxes is not None:
                self._boxes.close()
