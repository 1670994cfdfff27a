"""A lock that the processes of a user share: a file that one at a time holds (flock), and that is left there."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["file_lock", "file_lock_now"]


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Waits until nobody else holds it; whoever is killed gives it back. Raises OSError where it cannot be made."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


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
