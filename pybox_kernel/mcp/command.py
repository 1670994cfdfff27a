"""``pybox-kernel mcp``: runs Python for AI agents, over the Model Context Protocol on standard input and output."""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import logging
import os
import select
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pybox_kernel.boxes.turns import at_once
from pybox_kernel.engine_options import add_engine_options, wished
from pybox_kernel.errors import ExitStatus, OptionError, PyBoxError, SetupError
from pybox_kernel.policy import STDLIB
from pybox_kernel.safe_display.text import safe_text, without_colour
from pybox_kernel.sessions.images import known_images
from pybox_kernel.sessions.session import Session

if TYPE_CHECKING:
    from pybox_kernel.mcp.asks import Ceilings

__all__ = ["add_mcp_parser", "mcp"]

MOST_AT_ONCE: Final = 64
LONGEST_RECORD: Final = 4000
"""Characters of one in the log."""


def add_mcp_parser(commands: Any) -> None:
    command = commands.add_parser(
        "mcp", help="run Python for AI agents, as an MCP server on standard input and output", allow_abbrev=False
    )
    command.add_argument(
        "--images",
        default=STDLIB.image,
        metavar="NAMES",
        help="the images an agent may use, as in stdlib,data (stdlib)",
    )
    command.add_argument(
        "--max-timeout",
        metavar="S",
        help=f"the longest time limit an agent may ask for, in seconds ({STDLIB.longest_deadline_seconds:g})",
    )
    command.add_argument("--files", action="store_true", help="calls may bring files and get some back")
    command.add_argument("--carry", action="store_true", help="calls may leave values to later ones")
    command.add_argument(
        "--at-once", metavar="N", help=f"calls that run at the same time, the others wait (here {usual_at_once()})"
    )
    add_engine_options(command)


def usual_at_once() -> int:
    return min(MOST_AT_ONCE, at_once() or MOST_AT_ONCE)


def mcp(options: argparse.Namespace) -> int:
    """Serves one client until it goes; the exit status. Raises PyBoxError where it cannot begin."""
    number, wish = checked_number(options.at_once), wished(options)
    try:
        from pybox_kernel.mcp import asks as mcp_asks
        from pybox_kernel.mcp import server as mcp_server
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise SetupError(
            "The MCP server needs the package mcp, of version 2, which is not installed.",
            f"Run `{sys.executable} -m pip install 'pybox-kernel[mcp]'`.",
        ) from None
    ceilings = mcp_asks.Ceilings.read(options.images, options.max_timeout, files=options.files, carry=options.carry)
    log_to_stderr()
    if sys.stdin is not None and sys.stdin.isatty():
        print("An MCP client starts this command and talks to it; see the README. Ctrl-D ends it.", file=sys.stderr)
    requests, answers = take_pipes()
    with Session.open(in_advance=True, wish=wish) as session:
        prepare(session, ceilings)
        asyncio.run(mcp_server.serve(session, ceilings, number, requests, answers))
    return ExitStatus.OK


def checked_number(text: str | None) -> int:
    if text is None:
        return usual_at_once()
    if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_AT_ONCE:
        return int(text)
    raise OptionError(f"--at-once takes a whole number from 1 to {MOST_AT_ONCE}.", "Give one of them, or leave it out.")


def take_pipes() -> tuple[int, int]:
    """Descriptors of the client's two pipes that nothing else has. From here on whatever reads standard input finds
    its end, and whatever is written to standard output, by any part of this process or a child of it, goes to the log.
    Raises SetupError where one of them is closed."""
    try:
        requests, answers = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3) for number in (0, 1))
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
    except OSError as error:
        raise SetupError(
            f"Standard input, output and error are not all there: {error.strerror}.", "Let an MCP client start this."
        ) from error
    return requests, answers


class SafeFormatter(logging.Formatter):
    """Where a record has a word of a program, or of a client, it cannot act on the terminal that shows it."""

    def format(self, record: logging.LogRecord) -> str:
        return without_colour(safe_text(f"pybox-kernel: {super().format(record)}", LONGEST_RECORD))


class PatientLog(logging.Handler):
    """Writes to a descriptor as much of a record as there is room for: a client that does not read its server's log
    does not hold the server up."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self.setFormatter(SafeFormatter())
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def emit(self, record: logging.LogRecord) -> None:
        data = f"{self.format(record)}\n".encode()
        with suppress(OSError):
            while data and self._poll.poll(0) == [(self._descriptor, select.POLLOUT)]:
                data = data[os.write(self._descriptor, data[: select.PIPE_BUF]) :]


def log_to_stderr() -> None:
    logging.basicConfig(level=logging.WARNING, handlers=[PatientLog(2)], force=True)
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # it warns of each connection that it does not keep


def prepare(opened: Session, ceilings: Ceilings) -> None:
    """Has a box made for the first call. What is wrong is said in the log, and to each call."""
    log = logging.getLogger(__name__)
    try:
        made = known_images()
        for name in ceilings.images:
            if name not in made:
                log.warning("There is no image %s yet: calls that ask for it are not run.", name)
        opened.expect(ceilings.images[0])
    except PyBoxError as error:
        log.warning("%s", error)
