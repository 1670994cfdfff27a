"""Builds of images that are at work, each with a mark: a file that its process holds a lock on while it builds.

A mark that nobody holds is of a build that was killed, and names what it may have left in the engine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pybox_kernel.file_lock import file_lock, file_lock_now

__all__ = ["at_work", "killed_ones"]

BUILD: Final = re.compile(r"[a-z][a-z0-9-]{0,31}-[0-9a-f]{12}")
LONGEST_ADDRESS: Final = 1000


@contextmanager
def at_work(home: Path, build: str, engine: str) -> Iterator[None]:
    """Holds the mark of a build in the engine at this address. Raises OSError where none can be made."""
    mark = home / "builds" / build
    mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file_lock(mark):
        mark.write_text(engine, encoding="utf-8")
        try:
            yield
        finally:
            mark.unlink(missing_ok=True)


def killed_ones(home: Path, engine: str) -> Iterator[str]:
    """Builds in the engine at this address that nobody works at any more. Each is struck when the next is asked for, so
    that one whose rest could not be removed comes again. Raises OSError."""
    try:
        marks = sorted(path for path in (home / "builds").iterdir() if BUILD.fullmatch(path.name))
    except FileNotFoundError:
        return
    for mark in marks:
        with file_lock_now(mark) as held:
            if held and words(mark) == engine:  # one with nothing in it may be about to be held
                yield mark.name
                mark.unlink(missing_ok=True)


def words(mark: Path) -> str:
    """The address of its engine; empty where it is not written yet."""
    with os.fdopen(os.open(mark, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read(LONGEST_ADDRESS).decode("utf-8", "replace")
