"""Values that were copied into a program and back from it, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pybox_kernel.render.amounts import counted, finished, size
from pybox_kernel.safe_display.text import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybox_kernel.receipt.model import CopiedValue, Receipt

__all__ = ["allowed", "note", "said"]

MOST_LISTED: Final = 8


def allowed(receipt: Receipt) -> Iterator[str]:
    options = receipt.asked.options
    if options.values:
        yield f"Copies of your values: {listed(options.values)}."
    if options.values_wanted:
        names = [safe_name(name, 40) for name in options.values_wanted[:MOST_LISTED]]
        yield f"To come back from it: {', '.join([*names, *more(len(options.values_wanted))])}."


def said(receipt: Receipt) -> Iterator[str]:
    told = receipt.said
    if told.values:
        yield f"Brought back, as plain data: {listed(told.values)}."
    for item in told.values_not_brought[:MOST_LISTED]:
        yield f"Not brought back: {safe_name(item.name, 40)} {finished(item.why)}"
    if (rest := len(told.values_not_brought) - MOST_LISTED) > 0:
        yield f"Nor {counted(rest, 'more value')}."


def note(receipt: Receipt) -> Iterator[str]:
    """For the folded line."""
    told = receipt.said
    if told.values:
        yield f"{counted(len(told.values), 'value')} brought back"
    if told.values_not_brought:
        yield f"{counted(len(told.values_not_brought), 'value')} not brought back"


def listed(values: tuple[CopiedValue, ...]) -> str:
    return ", ".join([*map(described, values[:MOST_LISTED]), *more(len(values))])


def described(value: CopiedValue) -> str:
    """With what it holds: df (table of pandas, 10 x 3, 2 kB)."""
    shape = [" × ".join(f"{side:,}" for side in value.shape[:8])] if value.shape else []
    return f"{safe_name(value.name, 40)} ({', '.join([safe_name(value.kind, 60), *shape, size(value.bytes)])})"


def more(number: int) -> list[str]:
    return [f"and {number - MOST_LISTED} more"] if number > MOST_LISTED else []
