"""The two pipes between an MCP client and this server: a message a line, each bounded, and as many at once as can be
answered. Used in place of the SDK's own, which reads lines of any length and says nothing of those it cannot read.

Reading and writing are done by two threads of their own, which nobody waits for: a client that does not read, or does
not close its end, holds nothing up.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, NamedTuple

import anyio
import mcp_types
import pydantic_core
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import ValidationError

from pybox_kernel.policy import KIB, MIB

__all__ = ["LONGEST_LINE", "MOST_UNANSWERED", "Wire", "lines", "open_wire"]

LONGEST_LINE: Final = 16 * MIB
"""Bytes of one message. The files of a call take most of it: 8 MiB, a third more in base64."""
MOST_UNANSWERED: Final = 256
"""Requests; until one of them is answered no other message is read."""
READ_BYTES: Final = 64 * KIB

ID = int | str


class Wire(NamedTuple):
    incoming: MemoryObjectReceiveStream[SessionMessage | Exception]
    outgoing: MemoryObjectSendStream[SessionMessage]


def lines(descriptor: int) -> Iterator[bytes | None]:
    """Whole lines without their ends, and None for one that is longer than ``LONGEST_LINE``, of which nothing is kept.
    Ends with the input; what stands there without an end is no line."""
    kept, length = bytearray(), 0
    while data := os.read(descriptor, READ_BYTES):
        *ends, rest = data.split(b"\n")
        for end in ends:
            length += len(end)
            yield bytes(kept + end) if length <= LONGEST_LINE else None
            kept, length = bytearray(), 0
        length += len(rest)
        if length <= LONGEST_LINE:
            kept += rest
        else:
            kept.clear()


@asynccontextmanager
async def open_wire(input_descriptor: int, output_descriptor: int) -> AsyncIterator[Wire]:
    """The descriptors are this wire's alone until the end of the process. When the client no longer reads, the incoming
    stream ends, as when it no longer writes."""
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    reader, writer = Reader(input_descriptor), Writer(output_descriptor)
    places = anyio.Semaphore(MOST_UNANSWERED)

    async def answered() -> None:
        places.release()

    async def read() -> None:
        async with to_server:
            while (line := await reader.next()) is not END:
                message = message_of(line)
                if isinstance(message, Complaint):
                    await writer.write(message.answer)
                elif isinstance(message, mcp_types.JSONRPCRequest):
                    await places.acquire()
                    hook = ServerMessageMetadata(on_request_unanswered=answered)
                    await to_server.send(SessionMessage(message, hook))
                elif message is not None:
                    await to_server.send(SessionMessage(message))

    async def write() -> None:
        async with from_server:
            async for sent in from_server:
                if isinstance(sent.message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
                    places.release()
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


class Complaint(NamedTuple):
    """What the client is told of a line that is no message."""

    answer: mcp_types.JSONRPCError


def message_of(line: bytes | None) -> mcp_types.JSONRPCMessage | Complaint | None:
    """None for what is to be passed over."""
    if line is None:
        return complaint(mcp_types.INVALID_REQUEST, f"A message may have {LONGEST_LINE >> 20} MB.")
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
        return complaint(mcp_types.PARSE_ERROR, "This line is not JSON.")
    fields = found if isinstance(found, dict) else {}
    if message is not None and "id" not in fields:  # with one, it is a request with an id that none may have
        return message
    if "method" not in fields and ("result" in fields or "error" in fields):
        return None  # nobody answers an answer
    number = fields.get("id")
    known = number if message is None and isinstance(number, ID) and not isinstance(number, bool) else None
    return complaint(mcp_types.INVALID_REQUEST, "This is no message of JSON-RPC 2.0.", known)


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
        threading.Thread(target=self._read, name="reads requests", daemon=True).start()

    async def next(self) -> Any:
        return await self._lines.get()

    def _read(self) -> None:
        with suppress(RuntimeError, asyncio.CancelledError):  # the loop has ended
            with suppress(OSError):
                for line in lines(self._descriptor):
                    self._put(line)
            self._put(END)

    def _put(self, line: object) -> None:
        asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()


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
