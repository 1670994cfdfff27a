"""Long work as it goes on: one line a step, and on a terminal the step that is going on with the time it has taken."""

from __future__ import annotations

import os
import sys
import threading
from typing import Final, Self, TextIO

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from pybox_kernel.safe_display.text import safe_text

__all__ = ["CellSteps", "Steps", "Waiting", "in_colour", "no_steps"]


SOON_SECONDS: Final = 1.0
"""What takes no longer is not worth a line that comes and goes."""


def in_colour(stream: TextIO) -> bool:
    """On a terminal, unless its user wants none (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


class Steps:
    """Called with each step as it begins. The lines of the steps stay when the block has ended."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(
            file=sys.stdout,
            force_terminal=sys.stdout.isatty(),  # in a notebook FORCE_COLOR says that anything is one
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
        columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
        self._live = Progress(*columns, console=self._console, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __call__(self, step: str) -> None:
        line = safe_text(step)
        if not self._console.is_terminal:
            self._console.print(line)
            self._console.file.flush()
            return
        self._finish("✓")
        self._live.add_task(line)

    def _finish(self, mark: str) -> None:
        for task in self._live.tasks:
            self._console.print(f"{mark} {task.elapsed or 0.0:5.1f} s  {task.description}")
            self._live.remove_task(task.id)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._console.is_terminal:
            self._finish("✓" if kind is None else "■")
            self._live.stop()


class CellSteps(Steps):
    """The same for steps that each end with a line of their own: only that one stays."""

    def __call__(self, step: str) -> None:
        if self._console.is_terminal:
            self._live.add_task(safe_text(step))

    def ended(self, line: str) -> None:
        for task in self._live.tasks:
            self._live.remove_task(task.id)
        self._console.print(safe_text(line))
        self._console.file.flush()


def no_steps() -> CellSteps:
    """Of which nothing is shown."""
    return CellSteps(Console(quiet=True, force_terminal=False))


class Waiting:
    """What a program waits for before it starts, with the time so far: on a terminal alone, once it takes a while, and
    gone as soon as that is over. Nothing of the program may be written before."""

    def __init__(self, what: str, console: Console | None = None, after: float = SOON_SECONDS) -> None:
        self._console = console or Console(
            file=sys.stderr,
            force_terminal=sys.stderr is not None and sys.stderr.isatty(),
            highlight=False,
            markup=False,
        )
        columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
        self._live = Progress(
            *columns, console=self._console, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._what = what
        self._task = self._live.add_task(safe_text(what))
        self._lock = threading.Lock()
        self._is_over = self._shows = False
        self._timer = threading.Timer(after, self._show)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if self._console.is_interactive:
            self._timer.start()
        return self

    def before(self, others: int) -> None:
        """That many programs come first; 0 where its turn has come."""
        self._live.update(self._task, description=safe_text(self._what if others == 0 else f"{others} before it"))

    def _show(self) -> None:
        with self._lock:
            if not self._is_over:
                self._shows = True
                self._live.start()

    def over(self) -> None:
        """May be called more than once."""
        self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._shows:
                self._shows = False
                self._live.stop()

    def __exit__(self, *_: object) -> None:
        self.over()
