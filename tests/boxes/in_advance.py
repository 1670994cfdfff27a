"""Sessions for which boxes wait: cells of theirs, and waiting until so many do."""

from __future__ import annotations

import time
from collections.abc import Callable

from pybox_kernel.receipt.model import Receipt
from pybox_kernel.sessions.session import Session

WAIT = 30.0

OWNER = """
import os, signal, time
from pybox_kernel.boxes.journal import Journal, home_folder
from pybox_kernel.sessions.session import Session
session = Session(Journal(home_folder()), in_advance=True)
for _ in range(2):
    assert session.run("print(1)").receipt.ok
while session.waiting() < 2:
    time.sleep(0.02)
print("waiting", flush=True)
time.sleep(60)
"""
"""A process for whose session two boxes wait."""


def until(holds: Callable[[], bool], seconds: float = WAIT) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit, f"not within {seconds} s"
        time.sleep(0.02)


def run(session: Session, source: str = "print(1)", **asks: object) -> Receipt:
    """The receipt of a cell that ended well, and whose box is gone."""
    receipt = session.run(source, **asks).receipt  # type: ignore[arg-type]
    assert receipt.ok, receipt.to_json(indent=1)
    assert receipt.observed.box.removed is True
    return receipt


def waited(session: Session, number: int = 1) -> None:
    until(lambda: session.waiting() >= number)
