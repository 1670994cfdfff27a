"""QEMU's own control socket (QMP): whose process it is, what it gave its machine, ending it."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
from pathlib import Path
from typing import Any, Final

from pybox_kernel.engine import MachineSettings

__all__ = ["end", "kill", "owner", "questions", "settings"]

ANSWER_SECONDS: Final = 3.0
LARGEST_ANSWER: Final = 1 << 20
DEVICES: Final = ("/machine/peripheral", "/machine/peripheral-anon", "/machine/unattached")
"""Where QEMU lists what was asked for by name, without one, and what comes with the board."""
A_NETWORK: Final = "netdev"
A_FOLDER: Final = frozenset({"mount_tag", "rootdir", "tag"})
"""By which of its properties a device is known: of 9p, of MTP and of virtiofs."""


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


def settings(path: Path) -> MachineSettings:
    """What QEMU says that its machine has: nothing of it is the machine's own word, nor can it hide a device. All of it
    None where QEMU does not answer."""
    asked = ("query-kvm", "query-memory-size-summary", "query-cpus-fast")
    try:
        kvm, memory, processors = questions(path, *((name, {}) for name in asked))
        devices = properties(path)
        return MachineSettings(
            "kvm" if kvm["enabled"] else "tcg",
            memory["base-memory"] >> 20,
            len(processors),
            sum(A_NETWORK in names for names in devices),
            sum(bool(A_FOLDER & names) for names in devices),
        )
    except (OSError, ValueError, LookupError, TypeError):
        return MachineSettings()


def properties(path: Path) -> list[frozenset[str]]:
    """Of each device the names of its properties. Raises as ``questions`` does, and for an answer of another form."""
    listed = questions(path, *(("qom-list", {"path": place}) for place in DEVICES))
    devices = [
        f"{place}/{child['name']}"
        for place, children in zip(DEVICES, listed, strict=True)
        for child in children
        if child["type"].startswith("child<")
    ]
    each = questions(path, *(("qom-list", {"path": device}) for device in devices))
    return [frozenset(found["name"] for found in of_one) for of_one in each]


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
