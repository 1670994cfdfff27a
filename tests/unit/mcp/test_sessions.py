"""Sessions of an agent: bounded in number and in bytes; those not used for longest go first, and it is said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from pybox_kernel.carry.groups import TakenOut
from pybox_kernel.errors import OptionError
from pybox_kernel.mcp.answer import SessionFacts
from pybox_kernel.mcp.line import Line, Place
from pybox_kernel.mcp.sessions import CarriedSessions
from tests.carrying import group


async def call(sessions: CarriedSessions, name: str, kept: int = 1) -> SessionFacts:
    """One call in which ``kept`` bytes are left under a name."""
    async with sessions.call(name) as session:
        sent = session.carry.going_in("x = 1")
        session.carry.settle("x = 1", sent, TakenOut((group("x", data=b"x" * kept),)), session.calls)
        return session.facts()


def run(test: Callable[[], Awaitable[None]]) -> None:
    anyio.run(test)


def test_a_session_has_what_its_calls_left() -> None:
    async def test() -> None:
        sessions = CarriedSessions()
        assert await call(sessions, "a", 3) == SessionFacts(
            name="a", new=True, forgotten_before=False, names=1, bytes=3
        )
        assert not (await call(sessions, "a")).new
        assert (await call(sessions, "b")).new

    run(test)


def test_the_one_not_used_for_longest_is_forgotten_and_that_is_said() -> None:
    async def test() -> None:
        sessions = CarriedSessions(most=2)
        for name in ("a", "b", "a", "c"):
            await call(sessions, name)
        assert not (await call(sessions, "a")).new
        found = await call(sessions, "b")
        assert (found.new, found.forgotten_before) == (True, True)
        assert "forgotten" in found.in_words
        assert not (await call(sessions, "b")).forgotten_before or not (await call(sessions, "b")).new

    run(test)


def test_what_all_have_together_is_bounded() -> None:
    async def test() -> None:
        sessions = CarriedSessions(most=100, most_bytes=1000)
        for number in range(50):
            await call(sessions, f"s{number}", 300)
        assert [(await call(sessions, f"s{number}", 300)).new for number in (49, 48, 47)] == [False] * 3
        assert (await call(sessions, "s0", 300)).forgotten_before

    run(test)


def test_one_with_calls_is_never_forgotten() -> None:
    async def test() -> None:
        sessions = CarriedSessions(most=1)
        async with sessions.call("a"):
            with pytest.raises(OptionError, match="As many sessions"):
                await call(sessions, "b")
        assert (await call(sessions, "b")).new

    run(test)


def test_calls_of_one_session_have_it_in_the_order_in_which_they_came() -> None:
    async def test() -> None:
        sessions, order = CarriedSessions(), []

        async def one(number: int) -> None:
            async with sessions.call("a"):
                await anyio.sleep(0.001)
                order.append(number)

        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(one, number)
        assert order == list(range(10))

    run(test)


def test_a_line_lets_so_many_in_and_keeps_the_order_also_where_some_leave() -> None:
    async def test() -> None:
        line, go, order, inside = Line(2), anyio.Event(), [], set()

        async def one(number: int, scope: anyio.CancelScope) -> None:
            with scope:
                async with line.turn(Place()):
                    inside.add(number)
                    try:
                        await go.wait()
                    finally:
                        inside.remove(number)
                    order.append(number)

        scopes = [anyio.CancelScope() for _ in range(12)]
        async with anyio.create_task_group() as group:
            for number, scope in enumerate(scopes):
                group.start_soon(one, number, scope)
            await anyio.wait_all_tasks_blocked()
            assert inside == {0, 1}
            for number in (0, 5, 7, 11):
                scopes[number].cancel()
            await anyio.wait_all_tasks_blocked()
            assert inside == {1, 2}
            go.set()
        assert order == [1, 2, 3, 4, 6, 8, 9, 10]
        async with line.turn(Place()), line.turn(Place()):  # both turns were given back
            assert line.before(Place()) == 0

    run(test)
