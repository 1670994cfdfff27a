"""What a receipt costs once its run is over: written, as JSON, as a page shows it, and as text."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from benchmarks.timing import timed
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.html import render_html
from pybox_kernel.render.text import render_full
from pybox_kernel.sessions.session import Session


def receipts(rounds: int) -> dict[str, tuple[float, int]]:
    """Milliseconds (medians) and bytes."""
    with Session.open() as session:
        receipt = session.run("print(1)").receipt
    text = receipt.to_json()
    ways: dict[str, Callable[[], str]] = {
        "as JSON": receipt.to_json,
        "read back from JSON, every field checked": lambda: str(Receipt.model_validate_json(text)),
        "drawn for a page": lambda: render_html(receipt),
        "as text": lambda: render_full(receipt),
    }
    return {
        name: (1000 * statistics.median(timed(do) for _ in range(10 * rounds)), len(do().encode()))
        for name, do in ways.items()
    }


def report(rounds: int) -> list[str]:
    return [
        "## A receipt",
        "",
        "| receipt of `print(1)` | ms | bytes |",
        "|---|---|---|",
        *(f"| {name} | {ms:.2f} | {size} |" for name, (ms, size) in receipts(rounds).items()),
        "",
    ]
