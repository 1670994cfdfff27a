"""The two pipes between an MCP client and this server: a message a line, each bounded, and as many at once as can be
answered. Used in place of the SDK's own, which reads lines of any length and says nothing of those it cannot read.

Reading and writing are done by two threads of their own, which nobody waits for: a client that does not read, or does
not close its end, holds nothing up.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import re
import select
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent import futures
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, NamedTuple

import anyio
import mcp_types
import pydantic_core
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import ValidationError

from pybox_kernel.policy import KIB, MIB

__all__ = ["LONGEST_LINE", "TooLong", "Wire", "lines", "open_wire"]

LONGEST_LINE: Final = 16 * MIB
"""Bytes of one message. The files of a call take most of it: 8 MiB, a third more in base64."""
MOST_UNANSWERED: Final = 256
MOST_UNANSWERED_BYTES: Final = 128 * MIB
"""Of the lines of these requests. More than calls may hold: a client that reads what it is told comes to neither."""
READ_BYTES: Final = 64 * KIB
KEPT_END: Final = KIB
"""Bytes of the beginning and of the end of a line that is too long."""
LOOK_SECONDS: Final = 1.0
"""From one look whether the client is still there to the next, while no line of it can be taken."""

ID = int | str


class Wire(NamedTuple):
    incoming: MemoryObjectReceiveStream[SessionMessage | Exception]
    outgoing: MemoryObjectSendStream[SessionMessage]


class TooLong(NamedTuple):
    """Both ends of a line that is longer than ``LONGEST_LINE``: its request's id stands in one of them."""

    head: bytes
    tail: bytes


def lines(descriptor: int) -> Iterator[bytes | TooLong]:
    """Whole lines without their ends. Ends with the input; what stands there without an end is no line."""
    kept, long = bytearray(), None
    while data := os.read(descriptor, READ_BYTES):
        *ends, rest = data.split(b"\n")
        for end in ends:
            kept += end
            long = shortened(long, kept)
            yield bytes(kept) if long is None else long
            kept, long = bytearray(), None
        kept += rest
        long = shortened(long, kept)


def shortened(long: TooLong | None, kept: bytearray) -> TooLong | None:
    """None while ``kept`` is all there is of a line, and not too long; else its ends, and less of it is kept."""
    if long is None and len(kept) <= LONGEST_LINE:
        return None
    head = bytes(kept[:KEPT_END]) if long is None else long.head
    del kept[:-KEPT_END]
    return TooLong(head, bytes(kept))


@asynccontextmanager
async def open_wire(input_descriptor: int, output_descriptor: int) -> AsyncIterator[Wire]:
    """The descriptors are this wire's alone until the end of the process. When the client no longer reads, the incoming
    stream ends, as when it no longer writes."""
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    reader, writer = Reader(input_descriptor), Writer(output_descriptor)
    unanswered = Unanswered()
    reader.watch(to_server.close)

    async def read() -> None:
        async with to_server:
            while (line := await reader.next()) is not END:
                message = message_of(line)
                size = len(line)
                del line  # its message may wait for long
                if isinstance(message, Complaint):
                    await writer.write(message.answer)
                elif isinstance(message, mcp_types.JSONRPCRequest):
                    await unanswered.add(message.id, size)
                    hook = ServerMessageMetadata(on_request_unanswered=partial(unanswered.never, message.id))
                    await to_server.send(SessionMessage(message, hook))
                elif message is not None:
                    await to_server.send(SessionMessage(message))

    async def write() -> None:
        async with from_server:
            async for sent in from_server:
                if isinstance(sent.message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
                    unanswered.answered(sent.message.id)
                await writer.write(sent.message)

    async def until_gone(do: Callable[[], Awaitable[None]]) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, BrokenPipeError):
            await do()
        to_server.close()

    async with anyio.create_task_group() as group:
        group.start_soon(until_gone, read)
        group.start_soon(until_gone, write)
        yield Wire(incoming, outgoing)
        group.cancel_scope.cancel()


class Unanswered:
    """Requests that have no answer yet: so many, of so many bytes, that a client that does not read costs no more."""

    def __init__(self) -> None:
        self._sizes: dict[ID, list[int]] = {}
        """A client may use one id for many."""
        self._changed = anyio.Event()

    async def add(self, number: ID, size: int) -> None:
        """Waits until there is room. For one reader."""
        while not self._has_room(size):
            self._changed = anyio.Event()
            await self._changed.wait()
        self._sizes.setdefault(number, []).append(size)

    def _has_room(self, size: int) -> bool:
        sizes = [size for same in self._sizes.values() for size in same]
        return not sizes or (len(sizes) < MOST_UNANSWERED and sum(sizes) + size <= MOST_UNANSWERED_BYTES)

    def answered(self, number: ID | None) -> None:
        sizes = self._sizes.get(number, []) if number is not None else []
        if len(sizes) > 1:
            sizes.pop()
        elif number is not None:
            self._sizes.pop(number, None)
        self._changed.set()

    async def never(self, number: ID) -> None:
        """Nobody waits for its answer any more."""
        self.answered(number)


class Complaint(NamedTuple):
    """What the client is told of a line that is no message."""

    answer: mcp_types.JSONRPCError


def message_of(line: bytes | TooLong) -> mcp_types.JSONRPCMessage | Complaint | None:
    """None for what is to be passed over."""
    if isinstance(line, TooLong):
        return complaint(mcp_types.INVALID_REQUEST, f"A message may have {LONGEST_LINE >> 20} MB.", id_of_long(line))
    if not line.strip():
        return None
    try:
        message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        message = None
    if message is not None and not isinstance(message, mcp_types.JSONRPCNotification):
        return message
    try:
        found = pydantic_core.from_json(line, allow_inf_nan=False)
    except ValueError:
        return unreadable(line)
    fields = found if isinstance(found, dict) else {}
    if message is not None and "id" not in fields:  # with one, it is a request with an id that none may have
        return message
    if "method" not in fields and ("result" in fields or "error" in fields):
        return None  # nobody answers an answer
    number = fields.get("id")
    known = number if message is None and isinstance(number, ID) and not isinstance(number, bool) else None
    return complaint(mcp_types.INVALID_REQUEST, "This is no message of JSON-RPC 2.0.", known)


def unreadable(line: bytes) -> Complaint:
    """For what pydantic does not take for JSON, and Python may: then whoever waits for an answer is to have it."""
    try:
        found = json.loads(line.decode())
    except (ValueError, RecursionError):
        found = None
    number = found.get("id") if isinstance(found, dict) else None
    if not isinstance(number, ID) or isinstance(number, bool) or not str(number).isascii():
        return complaint(mcp_types.PARSE_ERROR, "This line is not JSON.")
    told = "This message cannot be read: it has half of a character in it (a lone surrogate), or nests too deeply."
    return complaint(mcp_types.INVALID_REQUEST, told, number)


NUMBER: Final = rb'"id"\s*:\s*(0|-?[1-9][0-9]{0,17}|"[^"\\\x00-\x1f\x7f-\xff]{1,200}")\s*'
OTHER: Final = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,100}"\s*'
AT_HEAD: Final = re.compile(rb"\s*\{\s*(?:" + OTHER + rb",\s*){0,2}" + NUMBER + rb",")
AT_TAIL: Final = re.compile(rb",\s*" + NUMBER + rb"(?:,\s*" + OTHER + rb"){0,2}\}\s*\Z")
"""What stands before the last brace, whatever else is in the line, is of the message and not of its parameters."""


def id_of_long(line: TooLong) -> ID | None:
    found = AT_HEAD.match(line.head) or AT_TAIL.search(line.tail)
    number: ID | None = json.loads(found[1]) if found is not None else None
    return number


def complaint(code: int, message: str, number: ID | None = None) -> Complaint:
    error = mcp_types.ErrorData(code=code, message=message)
    return Complaint(mcp_types.JSONRPCError(jsonrpc="2.0", id=number, error=error))


END: Final = object()


class Reader:
    """Reads ahead by one line at most."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[Any] = asyncio.Queue(1)
        self._gone: Callable[[], object] = int
        threading.Thread(target=self._read, name="reads requests", daemon=True).start()

    def watch(self, gone: Callable[[], object]) -> None:
        """``gone`` is called when the client has closed its end while no line of it could be taken."""
        self._gone = gone

    async def next(self) -> Any:
        return await self._lines.get()

    def _read(self) -> None:
        with suppress(RuntimeError, futures.CancelledError):  # the loop has ended
            with suppress(OSError):
                for line in lines(self._descriptor):
                    self._put(line)
            self._put(END)

    def _put(self, line: object) -> None:
        handed_on = asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop)
        while not futures.wait([handed_on], LOOK_SECONDS).done:
            if hung_up(self._descriptor):
                self._loop.call_soon_threadsafe(self._gone)
        handed_on.result()


def hung_up(descriptor: int) -> bool:
    """Whether nobody can write to the other end any more, though there may be more to read."""
    poll = select.poll()
    poll.register(descriptor, getattr(select, "POLLRDHUP", 0))
    return bool(poll.poll(0))


class Writer:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._waiting: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="writes answers", daemon=True).start()

    async def write(self, message: mcp_types.JSONRPCMessage) -> None:
        """Returns when it is written. Raises BrokenPipeError when nobody reads any more."""
        data = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        written: asyncio.Future[None] = self._loop.create_future()
        self._waiting.put((data, written))
        await written

    def _write(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            while True:
                data, written = self._waiting.get()
                failed = None
                try:
                    while data:
                        data = data[os.write(self._descriptor, data) :]
                except OSError as error:
                    failed = BrokenPipeError(error.errno, error.strerror)
                self._loop.call_soon_threadsafe(settle, written, failed)


def settle(written: asyncio.Future[None], failed: BrokenPipeError | None) -> None:
    if written.cancelled():
        return
    if failed is None:
        written.set_result(None)
    else:
        written.set_exception(failed)
