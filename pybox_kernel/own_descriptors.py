"""Descriptors that a process which is forked must not keep: locks and connections, whose end says that their owner has
gone. In the child each becomes /dev/null; a program that is started (exec) never has them."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

__all__ = ["given_up", "keep_to_oneself"]

OWN: Final[set[int]] = set()


def keep_to_oneself(descriptor: int) -> None:
    """From here until ``given_up``, which comes before it is closed."""
    OWN.add(descriptor)


def given_up(descriptor: int) -> None:
    """Idempotent."""
    OWN.discard(descriptor)


def let_go_in_child() -> None:
    own = sorted(OWN)
    OWN.clear()
    with suppress(OSError):
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            for descriptor in own:
                os.dup2(null, descriptor, inheritable=False)
        finally:
            os.close(null)


os.register_at_fork(after_in_child=let_go_in_child)
