"""Boxes made in advance: each waits, verified, for one program, is verified again when that comes, and is used for no
other.

A session's own thread makes them while no cell of it runs; where cells come quickly one after another (*Run All*), from
the end of each one's program on, while its box is removed. They are of the kinds (image and policy) that were asked for
last; each waits in a place, of which all sessions of a user together have so many (``waiting_places``). How many are
wanted of a kind grows with such cells, and shrinks when none come, by half a minute, at last to none.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from pybox_kernel.boxes.shelf import Kept, Kind, Shelf
from pybox_kernel.boxes.waiting_box import WaitingBox
from pybox_kernel.boxes.waiting_places import Places
from pybox_kernel.errors import BoxEnded, EngineError, PyBoxError, Stopped
from pybox_kernel.receipt.timeline import Timeline
from pybox_kernel.seal.spec import WAITING_SECONDS
from pybox_kernel.stop import Stop

__all__ = ["Pool"]

MOST_OF_A_KIND: Final = 12
MOST_KINDS: Final = 2
SETTLE_SECONDS: Final = 0.03
"""After a cell, before a box is made: what is still to be said of the cell goes first."""
TOGETHER_SECONDS: Final = 2.0
"""A cell that begins within this of the last one's end is of one burst with it."""
FEWER_SECONDS: Final = 60.0
"""For each so long without a cell, half as many boxes of a kind are enough, down to one."""
NONE_SECONDS: Final = 300.0
"""And for so long, none."""
OLDEST_SECONDS: Final = 0.8 * WAITING_SECONDS
"""A box ends by itself when it has waited for ``WAITING_SECONDS``: it is replaced before."""
TICK_SECONDS: Final = 1.0
"""From one look at the waiting boxes to the next."""
FAILED_SECONDS: Final = 20.0
"""Before another of a kind that could not be made is tried, and before this goes on after a fault of its own."""


class Pool:
    """``make`` returns a box that is ready, or raises PyBoxError and leaves none; none is begun while ``busy``.
    ``refused`` is told how a box that waited was not as required any more, and ``failed`` what kept the thread that
    makes them from its work, at which it goes on after a while. Thread-safe; ``close`` ends all that wait.
    """

    def __init__(
        self,
        make: Callable[[Kind, Stop], WaitingBox],
        places: Places,
        busy: Callable[[], bool],
        refused: Callable[[PyBoxError], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._make = make
        self._busy = busy
        self._places = places
        self._refused = refused
        self._failed = failed
        self._changed = threading.Condition()
        self._shelves: list[Shelf] = []
        """The last asked for is the first."""
        self._gone: list[Kept] = []
        """To be ended and removed."""
        self._making: Shelf | None = None
        self._measured: dict[Kind, int] = {}
        """MiB that the last box of a kind took."""
        self._cells = 0
        self._programs = 0
        """Of the cells, those whose program is still to come, or runs."""
        self._quiet_since = time.monotonic()
        self._asked_back = places.asked_back()
        self._closing = Stop()
        self._thread: threading.Thread | None = None

    @contextmanager
    def cell(self) -> Iterator[Callable[[], None]]:
        """A cell, from before it takes a box until that is gone. What this gives is called when its program is over:
        until then no box is begun."""
        over = False

        def program_over() -> None:
            nonlocal over
            if not over:
                over = True
                with self._changed:
                    self._programs -= 1
                    self._changed.notify_all()

        with self._changed:
            self._cells += 1
            self._programs += 1
        try:
            yield program_over
        finally:
            program_over()
            with self._changed:
                self._cells -= 1
                self._quiet_since = time.monotonic()
                self._changed.notify_all()

    def has(self, kind: Kind) -> bool:
        """Whether one waits."""
        with self._changed:
            return any(shelf.kind == kind and shelf.boxes for shelf in self._shelves)

    def waiting(self) -> int:
        """How many boxes wait now."""
        with self._changed:
            return sum(len(shelf.boxes) for shelf in self._shelves)

    def expect(self, kind: Kind) -> None:
        """Has a box of this kind made, as if a cell had asked for one."""
        with self._changed:
            self._shelf(kind)
            self._start()

    def take(self, kind: Kind, stop: Stop, timeline: Timeline) -> WaitingBox | None:
        """A box that has waited and is as required now; it is the caller's from here on. None where there is none.
        Raises Stopped."""
        while (kept := self._next(kind, stop, timeline)) is not None:
            try:
                kept.place.release()
                with timeline.step("seal checked again"):
                    kept.waiting.look_again(stop)
                return kept.waiting
            except PyBoxError as error:
                self._discard(kept)
                if isinstance(error, Stopped):
                    raise
                if not isinstance(error, (BoxEnded, EngineError)):
                    self._refused(error)
            except BaseException:
                self._discard(kept)
                raise
        return None

    def close(self) -> None:
        """Idempotent. Returns when the boxes are confirmed gone, or given up; their journal has those."""
        self._closing.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        with self._changed:
            for shelf in self._shelves:
                self._empty(shelf)
            gone, self._gone = self._gone, []
        for kept in gone:  # all at once, and then each by itself
            kept.waiting.hang_up()
        for kept in gone:
            self._destroy(kept)

    # With the lock held

    def _shelf(self, kind: Kind) -> Shelf:
        """Moves it to the front. Another image of the same name takes the place of the one before."""
        shelf = next((shelf for shelf in self._shelves if shelf.kind == kind), None) or Shelf(kind)
        others = [other for other in self._shelves if other is not shelf]
        of_before = [
            other
            for other in others
            if other.kind.policy.image == kind.policy.image and other.kind.image_id != kind.image_id
        ]
        kept = [other for other in others if other not in of_before]
        for other in (*of_before, *kept[MOST_KINDS - 1 :]):
            self._empty(other)
        self._shelves = [shelf, *kept[: MOST_KINDS - 1]]
        return shelf

    def _empty(self, shelf: Shelf) -> None:
        shelf.wanted = 0
        self._gone += shelf.boxes
        shelf.boxes.clear()

    def _start(self) -> None:
        if self._thread is None and not self._closing.is_set():
            thread = threading.Thread(target=self._work, name="ready boxes", daemon=True)
            with suppress(RuntimeError):  # no room for another thread now: the next cell tries again
                thread.start()
                self._thread = thread
        self._changed.notify_all()

    # The thread of a cell

    def _next(self, kind: Kind, stop: Stop, timeline: Timeline) -> Kept | None:
        with self._changed:
            shelf = self._shelf(kind)
            together = time.monotonic() - self._quiet_since < TOGETHER_SECONDS
            shelf.burst = shelf.burst + 1 if together else 1
            shelf.wanted = min(MOST_OF_A_KIND, max(shelf.wanted, shelf.burst))
            self._start()
            if not shelf.boxes and self._making is shelf:
                with timeline.step("waited for a box"):
                    shelf.awaited += 1
                    try:
                        while not shelf.boxes and self._making is shelf and not stop.is_set():
                            self._changed.wait(0.02)
                    finally:
                        shelf.awaited -= 1
            if stop.is_set():
                raise Stopped("Stopped before the program started.", "Run the cell again.")
            return shelf.boxes.popleft() if shelf.boxes else None

    def _discard(self, kept: Kept) -> None:
        with self._changed:
            self._gone.append(kept)
            self._changed.notify_all()

    # The thread that makes them

    def _work(self) -> None:
        while not self._closing.is_set():
            try:
                while (job := self._next_job()) is not None:
                    job()
            except Exception as error:  # whatever it is, it is not to keep the cells that come later from their boxes
                with suppress(Exception):
                    self._failed(error)
                with self._changed:
                    self._changed.wait_for(self._closing.is_set, FAILED_SECONDS)

    def _next_job(self) -> Callable[[], None] | None:
        """Waits until there is something to do; None at the end."""
        with self._changed:
            while not self._closing.is_set():
                now = time.monotonic()
                self._let_go(now)
                settled = self._cells == 0 and now >= self._quiet_since + SETTLE_SECONDS
                if settled and self._gone:
                    gone = self._gone.pop()
                    return lambda: self._destroy(gone)
                for shelf in self._shelves:
                    if (
                        len(shelf.boxes) < shelf.wanted
                        and now >= shelf.not_before
                        and (settled or self._hurries(shelf))
                    ):
                        return lambda shelf=shelf: self._add_to(shelf)  # type: ignore[misc]
                self._changed.wait(self._idle_seconds(now))
            return None

    def _hurries(self, shelf: Shelf) -> bool:
        """Whether the next cell may be there before the end of this one has settled, and no program is slowed."""
        return self._programs == 0 and shelf.burst > 1

    def _idle_seconds(self, now: float) -> float | None:
        """Until there may be something to do without being told."""
        if self._cells:
            return None
        if now < self._quiet_since + SETTLE_SECONDS:
            return self._quiet_since + SETTLE_SECONDS - now
        return TICK_SECONDS if any(shelf.wanted for shelf in self._shelves) else None

    def _let_go(self, now: float) -> None:
        """Of what is no longer wanted, has become too old, or has ended."""
        idle = now - self._quiet_since if self._cells == 0 else 0.0
        most = 0 if idle >= NONE_SECONDS else max(1, MOST_OF_A_KIND >> int(idle / FEWER_SECONDS))
        if (asked_back := self._places.asked_back()) != self._asked_back:
            self._asked_back, most = asked_back, 0
        for shelf in self._shelves:
            shelf.wanted = min(shelf.wanted, most)
            over = len(shelf.boxes) - shelf.wanted
            for place, kept in enumerate(list(shelf.boxes)):  # the oldest first
                if place < over or now - kept.waiting.since > OLDEST_SECONDS or not kept.waiting.is_quiet():
                    shelf.boxes.remove(kept)
                    self._gone.append(kept)

    def _add_to(self, shelf: Shelf) -> None:
        busy, fits, place, kept = self._busy(), False, None, None
        with self._changed:
            self._making = shelf
        mib = self._measured.get(shelf.kind, shelf.kind.usual_mib)
        try:
            place = None if busy else self._places.take(mib, more=bool(shelf.boxes))
            if place is not None:
                kept = Kept(self._make(shelf.kind, self._closing), place)
                fits = self._measure(shelf.kind, kept, mib)
        except PyBoxError:
            pass  # a cell that asks for such a box meets the same, and says it
        finally:
            if place is not None and kept is None:
                place.release()
            with self._changed:
                self._making = None
                failed = kept is None and place is not None
                if not fits:
                    shelf.not_before = time.monotonic() + (FAILED_SECONDS if failed else TICK_SECONDS)
                if not (fits or failed or busy):
                    self._make_room(shelf)
                if kept is not None:
                    used = shelf in self._shelves and (shelf.awaited or (fits and shelf.wanted))
                    (shelf.boxes if used else self._gone).append(kept)
                self._changed.notify_all()

    def _measure(self, kind: Kind, kept: Kept, thought: int) -> bool:
        """What the box takes counts from here on, also for the next of its kind; whether there is room for so much."""
        took = kept.waiting.mib or thought
        self._measured[kind] = took
        return took == thought or self._places.count(kept.place, took)

    def _make_room(self, shelf: Shelf) -> None:
        """For the first box of the kind that was asked for last, one of another kind goes, where that may help."""
        others = [other for other in self._shelves if other is not shelf and other.boxes]
        least = self._measured.get(shelf.kind, shelf.kind.usual_mib)
        if others and shelf is self._shelves[0] and not shelf.boxes and self._places.have(least):
            self._gone.append(others[-1].boxes.popleft())
            others[-1].wanted = len(others[-1].boxes)

    def _destroy(self, kept: Kept) -> None:
        try:
            kept.waiting.end()
            kept.waiting.destroy()
        finally:
            kept.place.release()
