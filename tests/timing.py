"""How long something takes, measured in a process that also holds everything of a test run."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["processor_time"]


@contextmanager
def processor_time(below: float) -> Iterator[None]:
    """Fails if the block takes this process as many seconds of a processor or more.

    What was there before the block is kept from the garbage collector meanwhile: to go through all that a test run
    holds takes it longer than most of what is measured.
    """
    gc.freeze()
    began = time.process_time()
    try:
        yield
        took = time.process_time() - began
    finally:
        gc.unfreeze()
    assert took < below, f"{took:.3f} s"
