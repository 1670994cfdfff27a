"""Values that calls of an agent leave to later ones: under names that the agent chose, as many as there is room for.

What is kept is bytes that only a box ever unpickles (``carry.store``). Used on one event loop.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio

from pybox_kernel.carry.groups import names_of, size_of
from pybox_kernel.errors import OptionError
from pybox_kernel.mcp.answer import SessionFacts
from pybox_kernel.mcp.asks import MOST_SESSION_BYTES, MOST_SESSIONS
from pybox_kernel.sessions.session import Carry

__all__ = ["CarriedSession", "CarriedSessions"]

MOST_FORGOTTEN: Final = 1000
"""Names of forgotten sessions that are remembered, to say so."""


@dataclass
class CarriedSession:
    name: str
    forgotten_before: bool
    """There was one of this name, which was forgotten to make room."""
    carry: Carry = field(default_factory=lambda: Carry(most_back=0))
    calls: int = 0
    users: int = 0
    """Calls that run or wait in it."""
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    def facts(self) -> SessionFacts:
        """Any thread may ask."""
        groups = self.carry.listing().groups
        return SessionFacts(
            name=self.name,
            new=self.calls == 1,
            forgotten_before=self.forgotten_before,
            names=len(names_of(groups)),
            bytes=size_of(groups),
        )

    @property
    def bytes(self) -> int:
        return size_of(self.carry.listing().groups)


class CarriedSessions:
    def __init__(self, most: int = MOST_SESSIONS, most_bytes: int = MOST_SESSION_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._sessions: OrderedDict[str, CarriedSession] = OrderedDict()
        """The last used is the last."""
        self._forgotten: OrderedDict[str, None] = OrderedDict()

    def has_others(self, name: str) -> bool:
        """Whether more than one call runs or waits in the session."""
        return name in self._sessions and self._sessions[name].users > 1

    @asynccontextmanager
    async def call(self, name: str) -> AsyncIterator[CarriedSession]:
        """For one call, which has the session alone; those that came before it in the same session come first. Raises
        OptionError where as many sessions as there may be have calls that run."""
        session = self._find(name)
        session.users += 1
        try:
            async with session.lock:
                session.calls += 1
                yield session
        finally:
            session.users -= 1
            self._make_room(self._most)

    def _find(self, name: str) -> CarriedSession:
        session = self._sessions.get(name)
        if session is None:
            self._make_room(self._most - 1)
            if len(self._sessions) >= self._most:
                raise OptionError(
                    f"As many sessions as this server keeps ({self._most}) have calls that run.",
                    "Wait for one of them, or use one of them.",
                )
            session = self._sessions[name] = CarriedSession(name, name in self._forgotten)
            self._forgotten.pop(name, None)
        self._sessions.move_to_end(name)
        return session

    def _make_room(self, most: int) -> None:
        """Forgets those that were not used for longest, until there are ``most`` and they have room."""
        for session in list(self._sessions.values()):
            total = sum(kept.bytes for kept in self._sessions.values())
            if len(self._sessions) <= most and total <= self._most_bytes:
                return
            if session.users == 0:
                del self._sessions[session.name]
                self._forgotten[session.name] = None
                while len(self._forgotten) > MOST_FORGOTTEN:
                    self._forgotten.popitem(last=False)
