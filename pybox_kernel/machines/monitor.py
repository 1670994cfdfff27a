"""QEMU's own control socket (QMP): whose process it is, ending it, and what the machine printed on its console."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
from pathlib import Path
from typing import Any, Final

__all__ = ["console", "end", "kill", "owner", "questions"]

ANSWER_SECONDS: Final = 3.0
LARGEST_ANSWER: Final = 1 << 20


def owner(path: Path) -> int | None:
    """The process that listens there, by the kernel's word; None where nobody does (a socket left by the dead)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as opened:
        opened.settimeout(ANSWER_SECONDS)
        try:
            opened.connect(os.fspath(path))
            pid, _, _ = struct.unpack("3i", opened.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        except OSError:
            return None
    return int(pid)


def questions(path: Path, *asked: tuple[str, dict[str, Any]]) -> list[Any]:
    """Asks QEMU one thing after another. Raises OSError or ValueError where it does not answer properly."""
    answers = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as opened:
        opened.settimeout(ANSWER_SECONDS)
        opened.connect(os.fspath(path))
        with opened.makefile("rwb") as talk:
            for name, arguments in (("qmp_capabilities", {}), *asked):
                talk.write(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")
                talk.flush()
                while True:
                    line = talk.readline(LARGEST_ANSWER)
                    if not line:
                        raise OSError("QEMU closed its control socket")
                    found = json.loads(line)
                    if "error" in found:
                        raise ValueError(str(found["error"]))
                    if "return" in found:
                        answers.append(found["return"])
                        break
    return answers[1:]


def console(path: Path) -> str:
    """What the machine printed last, as it is: not to be trusted. Empty where QEMU does not answer."""
    try:
        return str(questions(path, ("ringbuf-read", {"device": "console", "size": 65536}))[0])
    except (OSError, ValueError, IndexError):
        return ""


def end(path: Path) -> None:
    """Asks QEMU to end at once. It may not: ask whether it has."""
    try:
        questions(path, ("quit", {}))
    except (OSError, ValueError):
        return


def kill(path: Path) -> None:
    """Ends QEMU by force, one that is halted too."""
    pid = owner(path)
    if pid is not None:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
