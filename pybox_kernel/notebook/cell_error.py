"""How a sealed cell fails in IPython: by an exception, so that "run all" stops, and without the frames of PyBox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pybox_kernel.safe_display.text import safe_name, safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybox_kernel.receipt.model import Receipt

__all__ = ["PyBoxCellError"]


class PyBoxCellError(Exception):
    """A cell did not run to its end, or not at all. ``receipt`` is that of its run, None where there was none."""

    def __init__(self, message: str, lines: Sequence[str] = (), receipt: Receipt | None = None) -> None:
        super().__init__(safe_name(message, 300))
        self.receipt = receipt
        self._lines = list(lines) or [f"{type(self).__name__}: {self}"]

    @classmethod
    def refusal(cls, message: str, advice: str) -> Self:
        """For a cell of which nothing was run."""
        return cls(message, [safe_text(f"{cls.__name__}: {message}\n{advice}")])

    @classmethod
    def of(cls, name: str, value: str, lines: Sequence[str] = (), receipt: Receipt | None = None) -> Self:
        """For the error with this name and value."""
        return cls(f"{name}: {value}", lines, receipt)

    def as_output(self) -> dict[str, Any]:
        """As it stands in a notebook's file."""
        return {"output_type": "error", "ename": type(self).__name__, "evalue": str(self), "traceback": self._lines}

    def _render_traceback_(self) -> list[str]:
        """What IPython shows of it."""
        return self._lines
