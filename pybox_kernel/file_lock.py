"""A lock that the processes of a user share: a file that one at a time holds (flock), and that is left there."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["file_lock", "file_lock_now", "take_within"]

LOOK_SECONDS: Final = 0.005


@contextmanager
def file_lock(path: Path, seconds: float | None = None) -> Iterator[None]:
    """Waits until nobody else holds it; whoever is killed gives it back. Raises OSError where it cannot be made, and
    TimeoutError where it is still held after ``seconds``: whoever is halted does not give it back."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if seconds is None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        else:
            take_within(lock, seconds)
        yield
    finally:
        os.close(lock)


def take_within(lock: int, seconds: float) -> None:
    """Holds the open file ``lock``. Raises TimeoutError where another still does after ``seconds``."""
    limit = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > limit:
                raise TimeoutError from None
        time.sleep(LOOK_SECONDS)


@contextmanager
def file_lock_now(path: Path) -> Iterator[bool]:
    """The same without waiting, of a file that is there: whether it is held now, or somebody else holds it. Raises
    OSError where it cannot be opened."""
    lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(lock)
