"""So many calls at once, the others in the order in which they came. Used on one event loop."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

__all__ = ["Line", "Place"]


class Place:
    """Of one call."""

    def __init__(self) -> None:
        self.called = anyio.Event()


class Line:
    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: deque[Place] = deque()

    def before(self, place: Place) -> int:
        """How many have to end before its turn comes; 0 for one that has it."""
        return self._waiting.index(place) + 1 if place in self._waiting else 0

    @asynccontextmanager
    async def turn(self, place: Place) -> AsyncIterator[None]:
        if self._free:
            self._free -= 1
        else:
            await self._wait(place)
        try:
            yield
        finally:
            self._give_back()

    async def _wait(self, place: Place) -> None:
        self._waiting.append(place)
        try:
            await place.called.wait()
        except BaseException:
            if place.called.is_set():
                self._give_back()
            else:
                self._waiting.remove(place)
            raise

    def _give_back(self) -> None:
        """Whoever is next has the turn from now on."""
        if self._waiting:
            self._waiting.popleft().called.set()
        else:
            self._free += 1
