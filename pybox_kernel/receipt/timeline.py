"""What happened when, on one monotonic clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pybox_kernel.receipt.model import Step

__all__ = ["Timeline"]


class Timeline:
    """The clock starts with this value."""

    def __init__(self) -> None:
        self._zero = time.monotonic()
        self.steps: list[Step] = []

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.add(name, began, time.monotonic())

    def add(self, name: str, began: float, ended: float) -> None:
        offset, duration = (began - self._zero) * 1000, (ended - began) * 1000
        self.steps.append(Step(name=name, offset_ms=round(offset, 3), duration_ms=round(duration, 3)))
