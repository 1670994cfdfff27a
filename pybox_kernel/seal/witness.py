"""Who reads the Linux kernel's side of a box: this computer, or a trusted container on the engine's own.

A ``Sight`` is what was read at one moment, with the cgroup folders that later readings use. A reading that could not
be made is None, never a guess.
"""

from __future__ import annotations

import json
import os
import select
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol

from pybox_kernel.counters import Meters, read_meters
from pybox_kernel.engine import Connection
from pybox_kernel.errors import BoxError, PyBoxError
from pybox_kernel.inside import witness as reading
from pybox_kernel.policy import MIB
from pybox_kernel.seal import seccomp
from pybox_kernel.seal.spec import PROGRAMS, PYTHON

__all__ = ["ContainerWitness", "DirectWitness", "Host", "Sight", "Source", "Witness", "own_host"]

Source = Literal["this computer", "witness container", "the box's own reading"]

LONGEST_HINT: Final = 100
CGROUPS: Final = Path("/sys/fs/cgroup")


class Sight(NamedTuple):
    """What the kernel's files said of one box at one moment."""

    source: Source
    texts: Mapping[str, str | None]
    folders: Mapping[str, str]
    boot_id: str | None
    started: str | None = None
    """When the process started, in the kernel's own count (proc_pid_stat(5), field 22); with its boot id and its pid it
    is one process and no other."""

    def meters(self, texts: Mapping[str, str | None] | None = None) -> Meters:
        """The box's meters as they were then, or in ``texts`` that its folders gave since."""
        found = self.texts if texts is None else texts
        plain = {name.removeprefix("cgroup:"): text for name, text in found.items()}
        return read_meters(plain, 1 if not self.folders or "memory" in self.folders else 2)


class Host(NamedTuple):
    """What one kernel says of itself, and of the machine that it sees below it; None where it does not."""

    boot_id: str | None = None
    """Told apart from every other boot of any kernel (random(4))."""
    release: str | None = None
    vendor: str | None = None
    product: str | None = None
    hypervisor: str | None = None
    flag: str | None = None
    """Whether its processor says that it is a virtual machine's: "yes" or "no"."""


class Witness(Protocol):
    """Reads the kernel's files of boxes on one engine. Thread-safe; never raises."""

    def look(self, pid: int, container_id: str) -> Sight | None:
        """The box whose PID 1 the engine calls ``pid``; None if that process is not in that container's cgroup."""
        ...

    def meters(self, folders: Mapping[str, str]) -> Mapping[str, str | None] | None: ...

    def standing(self, folders: Mapping[str, str]) -> tuple[str, ...] | None:
        """Which of a box's cgroups still exist; () once all are gone, None if that could not be read."""
        ...

    def named_after(self, container_id: str) -> tuple[str, ...] | None:
        """The cgroups of a box that was never looked at; None if it is not known where they would be."""
        ...

    def host(self, boot_id: str) -> Host | None:
        """What is known of the kernel with this boot id; None if another was read, or nothing could be."""
        ...

    def close(self) -> None: ...


@cache
def own_host() -> Host:
    """This computer's own kernel, read once; all None outside Linux."""
    return host_in(reading.host())


def host_in(found: object) -> Host:
    texts = found if isinstance(found, dict) and is_texts(found) else {}
    return Host(*(line_in(texts.get(name)) for name in Host._fields))


def line_in(text: str | None) -> str | None:
    """The first line; None where it says nothing."""
    words = " ".join((text or "").split("\n", 1)[0].split())[:LONGEST_HINT]
    return words or None


class DirectWitness:
    """Reads this computer's own files: right only where the engine's processes are this kernel's, which each look
    establishes anew from the container's id in the process's cgroup."""

    def look(self, pid: int, container_id: str) -> Sight | None:
        found = reading.look(pid, container_id)
        return None if found is None else sight("this computer", found)

    def meters(self, folders: Mapping[str, str]) -> Mapping[str, str | None] | None:
        texts: Mapping[str, str | None] = reading.meters(dict(folders))
        return texts

    def standing(self, folders: Mapping[str, str]) -> tuple[str, ...] | None:
        return tuple(reading.standing(dict(folders)))

    def named_after(self, container_id: str) -> tuple[str, ...]:
        """() where this is not the engine's kernel, too."""
        return tuple(path for path, _, _ in os.walk(CGROUPS) if container_id in path)

    def host(self, boot_id: str) -> Host | None:
        found = own_host()
        return found if found.boot_id == boot_id else None

    def close(self) -> None:
        return None


def sight(source: Source, found: Mapping[str, Any]) -> Sight:
    boot_id, started = found.get("boot_id"), found.get("started")
    return Sight(
        source,
        found["texts"],
        found["folders"],
        boot_id.strip() if isinstance(boot_id, str) else None,
        started if isinstance(started, str) else None,
    )


UID: Final = 9999
"""Below the range of boxes, so that no box shares the witness's limits."""
MEMORY: Final = 64 * MIB
ANSWER_SECONDS: Final = 5.0
START_SECONDS: Final = 15.0
"""For its first answer, for which it has to start."""
LARGEST_ANSWER: Final = 1 << 20
DOCTOR: Final = "Run `pybox-kernel doctor`."


def witness_config(image_id: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """A trusted container that only reads: no capabilities, own uid, read-only, no network, ends with its stdin."""
    return {
        "Cmd": [PYTHON, "-I", "-S", f"{PROGRAMS}/witness.py", "/host-cgroup"],
        "Image": image_id,
        "Labels": dict(labels),
        "OpenStdin": True,
        "StdinOnce": True,
        "Tty": False,
        "User": f"{UID}:{UID}",
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "AutoRemove": True,
            "Binds": ["/sys/fs/cgroup:/host-cgroup:ro"],
            "CapDrop": ["ALL"],
            "CgroupnsMode": "host",
            "IpcMode": "private",
            "LogConfig": {"Type": "none", "Config": {}},
            "Memory": MEMORY,
            "MemorySwap": MEMORY,
            "NetworkMode": "none",
            "PidMode": "host",
            "PidsLimit": 8,
            "ReadonlyRootfs": True,
            "SecurityOpt": ["no-new-privileges", f"seccomp={seccomp.PROFILE_JSON}"],
            "ShmSize": MIB,
        },
    }


class ContainerWitness:
    """The same reading, by a container on the engine's own computer, which is given ``patience`` times the usual
    seconds. Started by whoever makes this value."""

    def __init__(self, connection: Connection, patience: float = 1.0) -> None:
        self._connection = connection
        self._patience = patience
        self._lock = threading.Lock()
        self._buffer = bytearray()
        self._broken = False
        self._answered = False

    def look(self, pid: int, container_id: str) -> Sight | None:
        found = self._ask({"do": "look", "pid": pid, "id": container_id})
        if not isinstance(found, dict) or not is_texts(found.get("texts")) or not is_texts(found.get("folders")):
            return None
        return sight("witness container", found)

    def meters(self, folders: Mapping[str, str]) -> Mapping[str, str | None] | None:
        texts = self._ask({"do": "meters", "folders": dict(folders)})
        return texts if is_texts(texts) else None

    def standing(self, folders: Mapping[str, str]) -> tuple[str, ...] | None:
        found = self._ask({"do": "standing", "folders": dict(folders)})
        return tuple(map(str, found)) if isinstance(found, list) else None

    def host(self, boot_id: str) -> Host | None:
        found = host_in(self._ask({"do": "host"}))
        return found if found.boot_id == boot_id else None

    def close(self) -> None:
        self._connection.close()

    @property
    def usable(self) -> bool:
        return not self._broken

    def _ask(self, request: Mapping[str, Any]) -> Any:
        with self._lock:
            if self._broken:
                return None
            try:
                return json.loads(self._exchange(json.dumps(request).encode() + b"\n"))
            except (PyBoxError, ValueError, RecursionError):
                self._broken = True
                self._connection.close()
                return None

    def _exchange(self, line: bytes) -> bytes:
        """One line for one line: a witness that says anything else is used no more."""
        limit = time.monotonic() + self._patience * (ANSWER_SECONDS if self._answered else START_SECONDS)
        if self._connection.receive() != []:
            raise BoxError("The witness container ended, or spoke unasked.", DOCTOR)
        while line := line[self._connection.send(line) :]:
            self._wait(select.POLLOUT, limit)
        answer = bytearray()
        while not answer.endswith(b"\n"):
            self._wait(select.POLLIN, limit)
            parts = self._connection.receive()
            if parts is None:
                raise BoxError("The witness container ended.", DOCTOR)
            answer += b"".join(data for stream, data in parts if stream == 1)
            if len(answer) > LARGEST_ANSWER or b"\n" in answer[:-1]:
                raise BoxError("The witness container said more than it was asked.", DOCTOR)
        self._answered = True
        return bytes(answer)

    def _wait(self, event: int, limit: float) -> None:
        left = limit - time.monotonic()
        poll = select.poll()
        poll.register(self._connection.fileno(), event)
        if left <= 0 or not poll.poll(left * 1000):
            raise BoxError("The witness container did not answer.", DOCTOR)


def is_texts(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(key, str) and (text is None or isinstance(text, str)) for key, text in value.items()
    )
