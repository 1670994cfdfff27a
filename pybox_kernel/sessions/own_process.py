"""What belongs to one process, and not to those that are forked from it."""

from __future__ import annotations

import os

from pybox_kernel.errors import InputError

__all__ = ["OwnProcess"]


class OwnProcess:
    """The one in which this value was made."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def is_this(self) -> bool:
        return os.getpid() == self._pid

    def require(self) -> None:
        """Raises InputError in any other."""
        if not self.is_this():
            raise InputError(
                "This session belongs to another process, from which this one was forked.",
                "Open a session in each process that runs programs.",
            )
