"""Long work as it goes on: one line a step, and on a terminal the step that is going on with the time it has taken."""

from __future__ import annotations

import sys
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from pybox_kernel.safe_display import safe_text

__all__ = ["Steps"]


class Steps:
    """Called with each step as it begins. The lines of the steps stay when the block has ended."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stdout, highlight=False, markup=False, soft_wrap=True)
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
