"""``jupyter console`` in a terminal of its own, with every byte that reaches the terminal."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import pexpect

__all__ = ["Console", "console", "plain"]

SECONDS: Final = 20.0
COLOUR: Final = rb"(?:\x1b\[[0-9;]*m)*"
PASTE, PASTED, TAKE_IT = "\x1b[200~", "\x1b[201~", "\x1b\r"
TYPING, TYPED = b"\x1b[?2004h", b"\x1b[?2004l"
"""What the console itself writes when it begins and ends to take a cell: from the one to the other it does not type."""


class Console:
    def __init__(self, terminal: pexpect.spawn[bytes]) -> None:
        self.terminal = terminal
        self.number = 1
        self._wait_for_prompt()

    def _wait_for_prompt(self) -> bytes:
        """What came before it."""
        prompt = rb"In " + COLOUR + rb"\[" + COLOUR + str(self.number).encode() + COLOUR + rb"\]: "
        self.terminal.expect(prompt)
        return bytes(self.terminal.before)

    def start(self, source: str) -> None:
        """A cell, pasted as a whole. It must fit what a terminal takes at once."""
        typed = f"{PASTE}{source}{PASTED}{TAKE_IT}"
        assert len(typed.encode()) < 4000, "too long to be pasted"
        self.terminal.send(typed)

    def finish(self) -> bytes:
        """Waits until the next cell can be typed; what was written to the terminal meanwhile."""
        self.number += 1
        _, _, written = self._wait_for_prompt().partition(TYPED)
        return written.rpartition(TYPING)[0]

    def run(self, source: str) -> bytes:
        self.start(source)
        return self.finish()

    def wait_for(self, text: str) -> None:
        self.terminal.expect_exact(text.encode())

    def interrupt(self) -> tuple[float, bytes]:
        """Ctrl-C; the seconds until the next cell can be typed, and what was written since the key."""
        began = time.monotonic()
        self.terminal.send("\x03")
        self.number += 1
        written = self._wait_for_prompt()
        return time.monotonic() - began, written.rpartition(TYPING)[0]

    def end(self) -> None:
        self.terminal.send("\x04")
        self.terminal.expect_exact(b"Do you really want to exit")
        self.terminal.send("y\r")
        self.terminal.expect(pexpect.EOF)


def console(kernel: str, folder: Path | None = None) -> AbstractContextManager[Console]:
    return terminal_of(["-m", "jupyter_console", f"--kernel={kernel}"], folder)


@contextmanager
def terminal_of(arguments: list[str], folder: Path | None = None, **environment: str) -> Iterator[Console]:
    """What this Python runs with these arguments, in a terminal of its own."""
    # The terminal here answers no questions; the console is told so, or it waits for the answers.
    known = {**os.environ, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", **environment}
    terminal = pexpect.spawn(
        sys.executable,
        arguments,
        env=known,
        dimensions=(60, 200),
        timeout=SECONDS,
        cwd=None if folder is None else str(folder),
    )
    try:
        opened = Console(terminal)
        yield opened
        opened.end()
    finally:
        terminal.close(force=True)


def plain(written: bytes) -> str:
    """The text without its colours."""
    return re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", written).decode("utf-8", "replace")
