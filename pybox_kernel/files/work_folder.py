"""A folder where files are made before they are shown, and what is left of such where someone was killed at it."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Final

from pybox_kernel.files.named_paths import FOLDER

__all__ = ["FILES", "work_folder"]

FILES: Final = "files"
"""What stands in a work folder, and nothing else does."""

NAME: Final = re.compile(r"\.pybox-[0-9a-f]{16}")
NEW_SECONDS: Final = 60.0
MOST_LOOKED_AT: Final = 10_000
MOST_CLEARED: Final = 10


@contextmanager
def work_folder(parent: int) -> Iterator[str]:
    """The name of a new folder in the one that ``parent`` is a descriptor of. Nobody else looks in; it is locked for as
    long as someone is at work there, and gone afterwards. Before, it removes such folders of the dead."""
    clear_dead(parent)
    name = f".pybox-{secrets.token_hex(8)}"
    lock = -1
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
        lock = os.open(name, FOLDER, dir_fd=parent)
        with suppress(OSError):  # not every disk has locks
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield name
    finally:
        with suppress(OSError):
            shutil.rmtree(name, dir_fd=parent)
        if lock >= 0:
            os.close(lock)


def clear_dead(parent: int) -> None:
    """Removes the work folders of those who were killed: of this user, by their name and what is in them, not locked,
    and not so new that their owner may just be about to lock them."""
    with suppress(OSError), os.scandir(parent) as entries:
        found = [entry.name for entry in islice(entries, MOST_LOOKED_AT) if NAME.fullmatch(entry.name)]
        for name in found[:MOST_CLEARED]:
            with suppress(OSError):
                clear(parent, name)


def clear(parent: int, name: str) -> None:
    lock = os.open(name, FOLDER, dir_fd=parent)
    try:
        facts = os.fstat(lock)
        if facts.st_uid != os.geteuid() or time.time() - facts.st_mtime < NEW_SECONDS:
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with os.scandir(lock) as entries:
            only_ours = all(entry.name == FILES for entry in entries)
        if only_ours:
            shutil.rmtree(name, dir_fd=parent)
    finally:
        os.close(lock)
