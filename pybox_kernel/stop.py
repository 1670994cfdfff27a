"""Asking a run to stop, from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pybox_kernel.errors import Stopped

__all__ = ["Stop"]


class Stop:
    """Asks one run to stop. ``set`` may be called from any thread, at any time, more than once."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # `set` may be called by a signal handler of the thread that holds it
        self._set = False
        self._wake: Callable[[], None] | None = None

    def set(self) -> None:
        with self._lock:
            self._set = True
            if self._wake is not None:
                self._wake()

    def is_set(self) -> bool:
        return self._set

    def check(self) -> None:
        """Before the program has started. Raises Stopped if it is not to start."""
        if self._set:
            raise Stopped("Stopped before the program started.", "Run the cell again.")

    def on_set(self, wake: Callable[[], None] | None) -> None:
        """What ``set`` calls to wake the run; None takes it back."""
        with self._lock:
            self._wake = wake
            if wake is not None and self._set:
                wake()
