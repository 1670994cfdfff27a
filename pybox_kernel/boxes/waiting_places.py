"""How many boxes may wait for a program, over all sessions of a user.

    HOME/waiting/lock        held for the moment in which places are counted or taken
    HOME/waiting/NUMBER      one place: held (flock) while a box waits in it; its text is the box's MiB
    HOME/waiting/wanted      touched when the boxes that wait are to be given back

A session that is killed gives its places back with its locks.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from pybox_kernel.boxes.number_settings import number_setting
from pybox_kernel.file_lock import file_lock
from pybox_kernel.own_descriptors import given_up, keep_to_oneself

__all__ = ["Bounds", "Place", "Places", "bounds_of_user"]

MOST_BOXES: Final = 16
MOST_MIB: Final = 512
LOCK_SECONDS: Final = 5.0
"""Whoever holds the lock for so long has been halted: then there is no place."""
HIGHEST: Final = 256
"""More places than this are never looked at, whatever the bounds are set to."""


class Bounds(NamedTuple):
    boxes: int
    mib: int


def bounds_of_user() -> Bounds:
    """``PYBOX_POOL`` boxes (0 for none) of ``PYBOX_POOL_MB`` MiB together, where these are set to whole numbers."""
    boxes = number_setting("PYBOX_POOL", MOST_BOXES)
    return Bounds(min(HIGHEST, boxes), number_setting("PYBOX_POOL_MB", MOST_MIB))


class Place:
    """Held until ``release``, which is idempotent, or the end of this process."""

    def __init__(self, lock: int) -> None:
        self._lock = lock
        keep_to_oneself(lock)

    def count(self, mib: int) -> None:
        """The box takes so much. Raises OSError."""
        text = b"%d" % mib
        os.ftruncate(self._lock, os.pwrite(self._lock, text, 0))

    def release(self) -> None:
        lock, self._lock = self._lock, -1
        if lock >= 0:
            given_up(lock)
            os.close(lock)


class Places:
    """Those in one state folder. What the system refuses there means that there is no place, and is no error."""

    def __init__(self, home: Path, bounds: Bounds) -> None:
        self._folder = home / "waiting"
        self._bounds = bounds

    def take(self, mib: int, *, more: bool = False) -> Place | None:
        """A place for one box of ``mib`` MiB; None where that would be one too many, or too much. Whoever has a box of
        that kind and wants ``more`` leaves a quarter of all to those who have none."""
        most = Bounds(*(bound - bound // 4 for bound in self._bounds)) if more else self._bounds
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with self._locked():
                found = self._scan()
                if found.held.boxes < most.boxes and found.held.mib + mib <= most.mib:
                    return self._hold(found.free, mib)
        return None

    def have(self, mib: int) -> bool:
        """Whether there is a place for one box of ``mib`` MiB where no other waits."""
        return self._bounds.boxes > 0 and mib <= self._bounds.mib

    def count(self, place: Place, mib: int) -> bool:
        """The box in ``place`` takes ``mib`` MiB, whatever was thought before; whether that is not too much with all
        others. Where it is, the place is to be released."""
        with suppress(OSError), self._locked():
            place.count(mib)
            return self._scan().held.mib <= self._bounds.mib
        return False

    def held(self) -> Bounds:
        """How many boxes wait now, and their MiB together."""
        with suppress(OSError), self._locked():
            return self._scan().held
        return Bounds(0, 0)

    def ask_back(self) -> None:
        """Has all sessions give their waiting boxes back, soon."""
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            (self._folder / "wanted").touch()

    def asked_back(self) -> int:
        """A number that changes with each ``ask_back``."""
        try:
            return (self._folder / "wanted").stat().st_mtime_ns
        except OSError:
            return 0

    def _scan(self) -> Scan:
        boxes, mib, free = 0, 0, None
        for number in range(HIGHEST):
            try:
                lock = os.open(self._folder / str(number), os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError:
                return Scan(Bounds(boxes, mib), number if free is None else free)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                free = number if free is None else free
            except BlockingIOError:
                text = os.read(lock, 16)
                boxes, mib = boxes + 1, mib + (int(text) if text.isdigit() else 0)
            finally:
                os.close(lock)
        return Scan(Bounds(boxes, mib), free)

    def _hold(self, number: int | None, mib: int) -> Place | None:
        if number is None:
            return None
        lock = os.open(self._folder / str(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        place = Place(lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            place.count(mib)
        except OSError:
            place.release()
            raise
        return place

    def _locked(self) -> AbstractContextManager[None]:
        return file_lock(self._folder / "lock", LOCK_SECONDS)


class Scan(NamedTuple):
    held: Bounds
    free: int | None
    """A place that nobody holds; None where there is none, nor may be one more."""
