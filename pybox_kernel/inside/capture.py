"""``%%capture``: what a cell prints and shows, kept in the box instead of sent."""

from __future__ import annotations

import io
import sys

from pybox_kernel.inside import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Captured:
    """What a ``%%capture NAME`` cell keeps under its name."""

    def __init__(self, out: io.StringIO | None, err: io.StringIO | None, outputs: list[shown.Shown]) -> None:
        self._out = out
        self._err = err
        self.outputs = outputs

    @property
    def stdout(self) -> str:
        return "" if self._out is None else self._out.getvalue()

    @property
    def stderr(self) -> str:
        return "" if self._err is None else self._err.getvalue()

    def __str__(self) -> str:
        return self.stdout

    def show(self) -> None:
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)
        for output in self.outputs:
            output.display()

    __call__ = show


def capture(rest: str, namespace: dict[str, Any], inner: Callable[[], object]) -> None:
    words = rest.split()
    left_out = [word for word in words if word.startswith("--no-")]
    out = None if "--no-stdout" in left_out else io.StringIO()
    err = None if "--no-stderr" in left_out else io.StringIO()
    before = sys.stdout, sys.stderr
    kept = Captured(out, err, [])
    for word in words:
        if not word.startswith("-"):
            namespace[word] = kept
    shows = "--no-display" not in left_out
    if shows:
        shown.captured.append(kept.outputs)
    sys.stdout, sys.stderr = out or before[0], err or before[1]
    try:
        inner()
    finally:
        if shows and "matplotlib.pyplot" in sys.modules:
            from pybox_kernel.inside.figures import show_open

            show_open()
        sys.stdout, sys.stderr = before
        if shows:
            shown.captured.pop()
