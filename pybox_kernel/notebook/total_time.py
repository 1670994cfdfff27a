"""The time that the programs of one notebook have together, where it is graded.

Each cell has its own limit. But a file may have any number of cells, and without a limit of the whole a single one
could hold up a class for hours.
"""

from __future__ import annotations

import math
from typing import Final

from pybox_kernel.errors import OptionError, TimeIsUp
from pybox_kernel.receipt.model import Receipt

__all__ = ["DEFAULT_SECONDS", "TotalTime", "checked_total"]

DEFAULT_SECONDS: Final = 300.0
LEAST_SECONDS: Final = 0.25
"""What each cell counts for at least: about what its box takes of the computer. So their number is bounded as well."""


def checked_total(seconds: object) -> float:
    """Raises OptionError for what is no number of seconds above 0."""
    try:
        value = float(seconds)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not value > 0:
        raise OptionError(
            f"The time of a whole notebook, {str(seconds)[:40]!r}, is not a number of seconds above 0.",
            "Give a number, like 300.",
        )
    return value


class TotalTime:
    """``seconds`` may be infinite. A cell that began in time has all of its own limit."""

    def __init__(self, seconds: float = math.inf) -> None:
        self._seconds = seconds
        self._spent = 0.0

    def refusal(self) -> TimeIsUp | None:
        """Why no other cell is run; None while there is time left."""
        if self._spent < self._seconds:
            return None
        return TimeIsUp(
            f"The cells of this notebook have had {self._seconds:g} s together, which is all they get.",
            "Whoever grades can give more: see docs/classroom.md.",
        )

    def spend(self, seconds: float) -> None:
        self._spent += max(seconds, LEAST_SECONDS)

    def spend_on(self, receipt: Receipt) -> None:
        """What a program took; its whole limit, where that is not known. Nothing where none was started."""
        if receipt.observed.end.how == "not_started":
            return
        ran = receipt.observed.meters.ran_seconds
        self.spend(ran if ran is not None else receipt.asked.options.deadline_seconds)
