"""What the server makes of a line that is no message it can take: whoever waits for an answer gets one."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from pybox_kernel.mcp import wire as mcp_wire
from pybox_kernel.mcp.wire import Complaint, TooLong, Unanswered, message_of

MESSAGE = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"id": 8, "a": [{"id": 9}]}}


def told(line: bytes | TooLong) -> tuple[Any, int]:
    found = message_of(line)
    assert isinstance(found, Complaint)
    return found.answer.id, found.answer.error.code


@pytest.mark.parametrize("number", [7, -7, 0, "7", "a-b", "x" * 200])
@pytest.mark.parametrize(
    "names", ["jsonrpc id method params", "method params jsonrpc id", "params id jsonrpc method", "id params"]
)
@pytest.mark.parametrize("separators", [(",", ":"), (" , ", " : ")])
def test_a_message_that_is_too_long_is_answered_under_its_id(
    number: Any, names: str, separators: tuple[str, str]
) -> None:
    message = {name: {**MESSAGE, "id": number}[name] for name in names.split()}
    message["params"] = {"id": 8, "text": '{"id":5}' * 1000, "last": [{"id": 9}]}
    line = json.dumps(message, separators=separators).encode()
    assert told(TooLong(line[:1024], line[-1024:])) == (number, -32600)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"x" * 1024,
        b'{"id":007,',
        b'{"id":1.5,',
        b'{"id":true,',
        b'{"id":"\\u202e",',
        b'{"id":"\xff",',
        b'{"id":' + b"9" * 900 + b",",
        b'{"params":{"id":1,',
        b'[{"id":1,',
        b'"id":1}}',
        b'\\",\\"id\\":1}',
    ],
)
def test_where_the_id_of_a_long_line_cannot_be_known_none_is_named(line: bytes) -> None:
    assert told(TooLong(line, line)) == (None, -32600)


@pytest.mark.parametrize("code", ['"\\ud800"', "[" * 400 + "]" * 400])
def test_a_call_that_cannot_be_read_is_answered_under_its_id(code: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{{"code":{code}}}}}'.encode()
    assert told(line) == ("a", -32600)
    assert told(line.replace(b'"a"', b'"\\ud800"')) == (None, -32700)
    assert told(line.replace(b'"a"', b"NaN")) == (None, -32700)


def test_requests_without_an_answer_are_bounded_in_number_and_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_wire, "MOST_UNANSWERED", 3)
    monkeypatch.setattr(mcp_wire, "MOST_UNANSWERED_BYTES", 100)

    async def waits(unanswered: Unanswered, number: int, size: int) -> bool:
        with anyio.move_on_after(0.02) as limit:
            await unanswered.add(number, size)
        return limit.cancelled_caught

    async def check() -> None:
        unanswered = Unanswered()
        assert not await waits(unanswered, 1, 1000)  # one alone may be as long as a line can be
        assert await waits(unanswered, 2, 1)
        unanswered.answered(1)
        unanswered.answered(1)
        unanswered.answered(None)
        for _ in range(3):  # of one id
            assert not await waits(unanswered, 2, 1)
        assert await waits(unanswered, 3, 1)
        await unanswered.never(2)
        assert not await waits(unanswered, 3, 98)
        async with anyio.create_task_group() as group:
            unanswered.answered(2)
            group.start_soon(unanswered.add, 4, 50)
            await anyio.wait_all_tasks_blocked()
            unanswered.answered(3)
        assert await waits(unanswered, 5, 50)

    anyio.run(check)
