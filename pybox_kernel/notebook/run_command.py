"""``pybox-kernel run NOTEBOOK.ipynb``: a whole notebook, cell by cell, each in a box of its own, into a new file."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from pybox_kernel.carry.groups import Mode
from pybox_kernel.engine_options import wished
from pybox_kernel.errors import ExitStatus, OptionError
from pybox_kernel.notebook.cell_executor import CellExecutor, Executed
from pybox_kernel.notebook.commands import Options
from pybox_kernel.notebook.failures import Failure
from pybox_kernel.notebook.file import CodeCell, NotebookFile, check_target, output_of, write
from pybox_kernel.notebook.grading import permitted
from pybox_kernel.notebook.total_time import DEFAULT_SECONDS, TotalTime, checked_total
from pybox_kernel.policy import checked_deadline, policy_for
from pybox_kernel.progress import CellSteps, in_colour, no_steps
from pybox_kernel.render.amounts import counted
from pybox_kernel.render.summary import Line, line_of, summary_text
from pybox_kernel.render.words import words
from pybox_kernel.safe_display.text import safe_name, safe_text, without_colour
from pybox_kernel.sessions import session

__all__ = ["NotebookRun", "Ran", "is_notebook", "run_notebook"]

ENDS_IT: Final = (ExitStatus.PYBOX_FAILED, ExitStatus.INTERRUPTED)
"""Where a cell ends so, no other is run: no program failed, and the next cell would end the same way."""

MOST_OUTPUT: Final = 256 << 20
"""Characters of all outputs: whoever opens the notebook has to hold them all."""


class Ran(NamedTuple):
    """How a notebook was run."""

    status: int
    """That of the first cell that did not end normally; of one in ``ENDS_IT`` where there was one. No success where
    cells are not run."""
    table: Sequence[Line]
    not_run: int
    """Cells that are not run."""
    why_not: str
    """As half a sentence."""
    failure: Failure | None
    """How the cell failed that ended it."""


class NotebookRun:
    """One notebook, run once. What comes of each cell is put into ``notebook``. Used on an event loop."""

    def __init__(
        self,
        notebook: NotebookFile,
        standing: Options,
        progress: CellSteps,
        *,
        carry: Mode,
        allow_errors: bool,
        engine: session.Wish | None = None,
        graded: bool = False,
        total_time: TotalTime | None = None,
    ) -> None:
        """``graded``: what its cells ask for beyond ``standing`` is not heard: see ``grading.permitted``. They have
        ``total_time`` together."""
        self._cells = [cell for cell in notebook.code_cells if cell.source.strip()]
        self._progress = progress
        self._allow_errors = allow_errors
        self._cell: CodeCell
        self._executor = CellExecutor(
            self._publish,
            lambda: "static",
            lambda: standing,
            carry=carry,
            engine=lambda: engine or session.wish_of(),
            permitted=(lambda asked: permitted(in_full(asked), standing)) if graded else None,
            total_time=total_time,
        )
        self._stopped = False

    def stop(self) -> None:
        """Stops the cell that runs, and the notebook with it."""
        self._stopped = True
        self._executor.end()

    async def run(self) -> Ran:
        try:
            return await self._run()
        finally:
            self._executor.page.close()
            self._executor.close()

    async def _run(self) -> Ran:
        status, failure, why_not = int(ExitStatus.OK), None, "one before failed"
        table: list[Line] = []
        done = 0
        for number, cell in enumerate(self._cells, 1):
            self._cell = cell
            self._progress(f"Cell [{number}] of {len(self._cells)}")
            executed = await self._executor.execute(cell.source, number)
            if executed is None:
                break
            done = number
            cell.number(number)
            self._executor.cells.add(number, cell.source)
            table += line(number, executed)
            self._progress.ended(f"[{number}] {in_short(executed)}")
            if executed.status != ExitStatus.OK and (status == ExitStatus.OK or executed.status in ENDS_IT):
                status = executed.status
            if executed.status in ENDS_IT or (executed.failure is not None and not self._allow_errors):
                failure = executed.failure
                break
            if sum(cell.characters for cell in self._cells) > MOST_OUTPUT:
                why_not = f"the outputs of those before have over {MOST_OUTPUT >> 20} MB"
                break
        left = len(self._cells) - done
        if left and self._stopped:
            status, why_not = ExitStatus.INTERRUPTED, "you stopped it"
        elif left and status == ExitStatus.OK:
            status = ExitStatus.PYBOX_FAILED
        return Ran(status, table, left, why_not, failure)

    def _publish(self, message: str, content: Mapping[str, object]) -> None:
        self._cell.add(message, content)


def in_full(asked: Options) -> Options:
    """With its paths as those of ``standing`` are written."""
    return replace(asked, input=tuple(map(os.path.abspath, asked.input)))


def line(number: int, executed: Executed) -> Sequence[Line]:
    """Of the table; none for a word to PyBox."""
    if executed.result is not None:
        return [line_of(number, executed.result.receipt)]
    if executed.failure is not None:
        return [Line(number, "bad", "■ Not run", "-", "-", "")]
    return []


def in_short(executed: Executed) -> str:
    if executed.result is not None:
        return words(executed.result.receipt).folded
    if executed.failure is not None:
        return f"■ {safe_name(executed.failure.evalue, 300)}"
    return "✓ Done; no box was needed"


# At a shell


def is_notebook(name: str) -> bool:
    return name.lower().endswith(".ipynb")


def run_notebook(options: argparse.Namespace) -> int:
    """Runs the notebook that ``options`` name and writes what came of it, also where it failed or was stopped; the
    exit status. Raises PyBoxError where it cannot be begun, or not be written."""
    if options.json:
        raise OptionError("--json is for a program.", "The receipts of a notebook stand in the one that is written.")
    source = Path(options.file).absolute()
    target = Path(options.to).absolute() if options.to else output_of(source)
    notebook = NotebookFile.read(source)
    check_target(target, source)
    checked_deadline(policy_for(options.image), options.timeout)
    total_time = total_time_of(options)
    engine = wished(options)
    standing = Options(
        image=options.image,
        timeout=options.timeout,
        input=tuple(os.path.abspath(path) for path in options.input),  # noqa: PTH100  # of ".." by its letters, too
        output=options.output and os.path.abspath(options.output),  # noqa: PTH100
    )
    with contextlib.chdir(source.parent):  # from where its cells' paths count, as in Jupyter
        if standing.output is not None:
            session.share_folder(standing.output, of_a_notebook=False)
        with no_steps() if options.quiet else CellSteps() as progress:
            carry = session.checked_mode(options.carry or "on")
            run = NotebookRun(
                notebook,
                standing,
                progress,
                carry=carry,
                allow_errors=options.allow_errors,
                engine=engine,
                graded=options.graded,
                total_time=total_time,
            )
            ran = asyncio.run(stoppable(run))
    table = summary_text(ran.table)
    if options.quiet:
        print(f"{safe_name(str(options.file), 300)}: {table.partition(chr(10))[0]}")
    elif ran.failure is not None:
        told = safe_text("\n".join(ran.failure.traceback))
        print(told if in_colour(sys.stdout) else without_colour(told))
    if not options.quiet:
        print(f"\n{table}")
    if ran.not_run:
        print(f"{counted(ran.not_run, 'cell')} not run, since {ran.why_not}.")
    write(target, notebook.to_bytes())
    if not options.quiet:
        print(f"Written to {safe_name(str(target), 1000)}.")
    return ran.status


def total_time_of(options: argparse.Namespace) -> TotalTime:
    """Raises OptionError."""
    if options.total_time is not None:
        return TotalTime(checked_total(options.total_time))
    return TotalTime(DEFAULT_SECONDS) if options.graded else TotalTime()


async def stoppable(run: NotebookRun) -> Ran:
    """``run``, which Ctrl-C and SIGTERM stop."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, run.stop)
    return await run.run()
