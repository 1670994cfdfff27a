"""The guard in IPython: stands between a cell and its run, refuses near misses and, when it is on, seals the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from pybox_kernel.notebook.cell_error import PyBoxCellError
from pybox_kernel.notebook.commands import CELL_MAGIC
from pybox_kernel.notebook.guard import HOST, NearMiss, inspect_cell

__all__ = ["GUARDED", "InputGuard"]

GUARDED: Final = "pybox_guarded"
"""The cell magic that cells are given which have none of their own."""


class Running(threading.local):
    """What runs in this thread: IPython's cells run one inside the other, and a kernel may have threads for more."""

    depth = 0
    on_host = False
    """The outermost cell begins with ``%%host``, so that what it has IPython run is not sealed either."""


class InputGuard:
    """An input transformer: takes the lines of a cell, and returns those that IPython is to run.

    ``known`` says whether there is a magic of that name; ``tell`` shows the person a sentence. ``begun`` and ``ended``
    are to be called around every cell.
    """

    has_side_effects = True
    """So IPython does not ask it about cells that are still being typed."""

    def __init__(self, known: Callable[[str], bool], tell: Callable[[str], None]) -> None:
        self.on = False
        self._known = known
        self._tell = tell
        self._running = Running()

    def __call__(self, lines: list[str]) -> list[str]:
        """Raises PyBoxCellError for a cell that is not run."""
        running, verdict = self._running, inspect_cell(lines, self._known)
        if isinstance(verdict, NearMiss):
            raise PyBoxCellError.refusal(verdict.message, verdict.advice)
        if running.depth == 0:
            running.on_host = verdict.kind == "host"
        if verdict.kind == "host":
            if not running.on_host:
                raise PyBoxCellError.refusal(
                    f"Nothing was run. `{HOST}` stands inside of another cell.", "Take it out."
                )
            return without_empty(lines[1:])
        if verdict.kind == "sealed":
            options = lines[verdict.line].removeprefix(CELL_MAGIC).strip()
            program = [*lines[: verdict.line], *lines[verdict.line + 1 :]]
            return [f"{CELL_MAGIC} {options}\n", *(program or ["\n"])]  # with no line at all, IPython does not ask us
        if verdict.kind == "plain" and self.on and not running.on_host and any(map(str.strip, lines)):
            return [f"%%{GUARDED}\n", *lines]
        return lines

    def begun(self) -> None:
        self._running.depth += 1
        if self.on and self._running.on_host and self._running.depth == 1:
            self._tell(f"Not sealed: this cell begins with `{HOST}`, and runs on this computer.")

    def ended(self) -> None:
        self._running.depth = max(0, self._running.depth - 1)  # it may have been set up by the cell that ends


def without_empty(lines: list[str]) -> list[str]:
    while lines and not lines[0].strip():
        lines = lines[1:]
    return lines
