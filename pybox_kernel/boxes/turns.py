"""Whose turn it is to run, over all sessions of a user that share a state folder: so many at once, the others in the
order in which they came.

    HOME/turns/lock      held for the moment in which turns are counted, taken or given back
    HOME/turns/NUMBER    one turn: held (flock) from when it is asked for until it is given back; its text is until
                         when it counts, in seconds of the computer's monotonic clock

Whoever is killed gives its turn back with its lock. Whoever is halted stands in the way of the others only for a while:
who waits says again and again that it does, and no program runs for longer than ``RUNNING_SECONDS``.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Final

from pybox_kernel.boxes.number_settings import number_setting
from pybox_kernel.errors import BoxError, Stopped
from pybox_kernel.file_lock import file_lock, file_lock_now
from pybox_kernel.own_descriptors import given_up, keep_to_oneself
from pybox_kernel.stop import Stop

__all__ = ["Turns", "at_once"]

LEAST_AT_ONCE: Final = 4
AT_ONCE_A_CORE: Final = 3
LONGEST_SECONDS: Final = 600.0
"""Who has no turn by then is told so, and not run."""
LOCK_SECONDS: Final = 5.0
"""Whoever holds the lock for so long has been halted: then nobody waits for a turn."""
WAITING_SECONDS: Final = 10.0
"""For so long after its last look one that waits counts as before the others."""
RUNNING_SECONDS: Final = 150.0
"""And one that has its turn: more than a box takes to be made, to run and to be removed."""
LOOK_SECONDS: Final = 0.04
"""From one look to the next, for each who is before; at most ``SELDOM_SECONDS``."""
SELDOM_SECONDS: Final = 0.3


def at_once() -> int:
    """How many programs of a user may run at once: ``PYBOX_AT_ONCE`` where that is a whole number (0 for any number),
    else as many as leave each a fair part of this computer's processors."""
    return number_setting("PYBOX_AT_ONCE", max(LEAST_AT_ONCE, AT_ONCE_A_CORE * (os.cpu_count() or 1)))


class Turns:
    """``most`` at once; 0 for any number. What the system refuses in the folder means that nobody waits."""

    def __init__(self, home: Path, most: int) -> None:
        self._folder = home / "turns"
        self._most = most

    @contextmanager
    def turn(self, stop: Stop, told: Callable[[int], None] | None = None) -> Iterator[None]:
        """Waits for a turn, and has it until the end of the block. ``told`` is how many are before, whenever that has
        changed, and at last 0. Raises Stopped, or BoxError after ``LONGEST_SECONDS``."""
        ticket = self._ticket() if self._most else None
        if ticket is None:
            yield
            return
        number, lock = ticket
        try:
            self._wait(number, lock, stop, told)
            count_for(lock, RUNNING_SECONDS)
            yield
        finally:
            self._give_back(number, lock)

    def all_taken(self) -> bool:
        """Whether who asked now would have to wait."""
        if self._most:
            with suppress(OSError), self._locked():
                return len(self._held()) >= self._most
        return False

    def _wait(self, number: int, lock: int, stop: Stop, told: Callable[[int], None] | None) -> None:
        limit, last = time.monotonic() + LONGEST_SECONDS, 0
        while (before := self._before(number)) > 0:
            if before != last and told is not None:
                told(before)
            last = before
            count_for(lock, WAITING_SECONDS)
            if stop.is_set():
                raise Stopped("Stopped before the program started.", "Run the cell again.")
            if time.monotonic() > limit:
                raise BoxError(
                    "Too many other programs of this user run at the same time.", "Try again when less is running."
                )
            time.sleep(min(SELDOM_SECONDS, LOOK_SECONDS * before))
        if last and told is not None:
            told(0)

    def _before(self, number: int) -> int:
        """How many have to end before this one's turn comes."""
        with suppress(OSError), self._locked():
            return max(0, sum(held < number for held in self._held()) - self._most + 1)
        return 0

    def _ticket(self) -> tuple[int, int] | None:
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with self._locked():
                number = max(self._turns(), default=0) + 1
                lock = os.open(self._folder / str(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                keep_to_oneself(lock)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                count_for(lock, WAITING_SECONDS)
                return number, lock
        return None

    def _give_back(self, number: int, lock: int) -> None:
        with suppress(OSError), self._locked():
            (self._folder / str(number)).unlink()
        given_up(lock)
        os.close(lock)

    def _held(self) -> list[int]:
        """The numbers that count."""
        now = time.monotonic()
        return [number for number, until in self._turns().items() if until >= now]

    def _turns(self) -> dict[int, float]:
        """The numbers that someone holds, and until when each counts. What the dead have left is removed."""
        held: dict[int, float] = {}
        for path in self._folder.iterdir():
            if not (path.name.isascii() and path.name.isdigit()):
                continue
            with file_lock_now(path) as was_free:
                if was_free:
                    path.unlink()
                else:
                    held[int(path.name)] = until_in(path)
        return held

    def _locked(self) -> AbstractContextManager[None]:
        return file_lock(self._folder / "lock", LOCK_SECONDS)


def count_for(lock: int, seconds: float) -> None:
    """A turn that cannot say it counts as long as it is held."""
    with suppress(OSError):
        os.pwrite(lock, b"%020.3f" % (time.monotonic() + seconds), 0)


def until_in(path: Path) -> float:
    try:
        return float(path.read_bytes())
    except (OSError, ValueError):
        return inf
