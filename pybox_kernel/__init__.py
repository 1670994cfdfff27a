"""PyBox in Jupyter: each cell in a fresh sealed container, with a receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybox_kernel.session import RunResult

__all__ = ["__version__", "run"]

__version__ = "0.1.0"


def run(source: str | bytes, *, deadline_seconds: float | None = None) -> RunResult:
    """Runs one program in a fresh sealed box and returns its output and receipt.

    Raises errors.InputError if the program or the deadline (seconds, above 0, at most 30) cannot be taken; all other
    trouble is on ``result.receipt``.
    """
    from pybox_kernel import (
        session,  # importing the package alone must stay cheap: the kernelspec does it too
    )

    return session.run(source, deadline_seconds=deadline_seconds)
