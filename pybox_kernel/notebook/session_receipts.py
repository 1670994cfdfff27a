"""The receipts of a session, to look at again: a line of each, and the last ones whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from pybox_kernel.errors import OptionError
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.summary import Line, line_of, summary_html, summary_text
from pybox_kernel.safe_display.text import safe_name

__all__ = ["MOST_KEPT", "MOST_LINES", "SessionReceipts"]

MOST_LINES: Final = 1000
"""Receipts that a summary remembers; of earlier ones only their number."""

MOST_KEPT: Final = 100
"""Receipts that are kept whole."""

FEWEST_OF_ID: Final = 4


class SessionReceipts:
    def __init__(self) -> None:
        self._lines: deque[Line] = deque(maxlen=MOST_LINES)
        self._number = 0
        self._kept: deque[tuple[int, Receipt]] = deque(maxlen=MOST_KEPT)

    def add(self, cell: int, receipt: Receipt) -> None:
        self._lines.append(line_of(cell, receipt))
        self._kept.append((cell, receipt))
        self._number += 1

    @property
    def last(self) -> Receipt | None:
        return self._kept[-1][1] if self._kept else None

    def find(self, word: str) -> Receipt:
        """The last of the cell with this number, or of the run whose id begins so. Raises OptionError."""
        number = word.strip("[]")
        for cell, receipt in reversed(self._kept):
            if number == str(cell) or (len(word) >= FEWEST_OF_ID and receipt.run.id.startswith(word)):
                return receipt
        raise OptionError(
            f"There is no receipt {safe_name(word, 40)!r} among the last {MOST_KEPT}.",
            "`%pybox receipts` lists those of this session.",
        )

    @property
    def table(self) -> Mapping[str, str]:
        """The data of a display message."""
        lines, left_out = tuple(self._lines), self._number - len(self._lines)
        return {"text/plain": summary_text(lines, left_out), "text/html": summary_html(lines, left_out)}

    @property
    def total(self) -> str:
        """In one sentence."""
        return summary_text(tuple(self._lines), self._number - len(self._lines)).split("\n", 1)[0]

    def newest(self, number: int) -> Sequence[Line]:
        return tuple(self._lines)[-number:]
