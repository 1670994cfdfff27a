"""An engine that does not do as it is asked: the real one, with one thing changed on the way to it or back.

What it makes are real containers. Only a box's ``create`` is altered; all else goes to the real engine as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.engine import Connection

__all__ = ["AlteredEngine", "Change"]

Change = Callable[[dict[str, Any]], None]
"""Changes the body of a ``create`` in place."""
Act = Callable[[str], None]
"""Does something to the box whose full id it is given."""


def nothing(_: object) -> None:
    return None


class AlteredEngine:
    """``change`` alters what is made. With ``lies`` the engine's own record is that of a box made as asked, so that
    only the kernel or the inside of the box can show the difference. Each act happens at its moment of the run."""

    def __init__(
        self,
        real: DockerEngine,
        change: Change = nothing,
        *,
        lies: bool = False,
        before_start: Act = nothing,
        after_start: Act = nothing,
        after_record: Act = nothing,
    ) -> None:
        self.real = real
        self.change = change
        self.lies = lies
        self.before_start = before_start
        self.after_start = after_start
        self.after_record = after_record
        """Between the engine's record of the running box and the look at the kernel's files."""
        self.box = ""
        self.sent = bytearray()
        """All that went into the box."""
        self._record: Mapping[str, Any] = {}
        self._started = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def create(self, name: str, config: Mapping[str, Any]) -> str:
        if config["Labels"].get("org.pybox.role") == "witness":
            return self.real.create(name, config)
        if self.lies:
            twin = self.real.create(name, config)
            self._record = self.real.inspect(twin)
            self.real.remove(twin)
        altered = copy.deepcopy(dict(config))
        self.change(altered)
        self.box = self.real.create(name, altered)
        self._started = False
        return self.box

    def attach(self, container_id: str) -> Connection:
        connection = self.real.attach(container_id)
        return Recorded(connection, self.sent) if container_id == self.box else connection

    def start(self, container_id: str) -> None:
        if container_id != self.box:
            self.real.start(container_id)
            return
        self.before_start(container_id)
        self.real.start(container_id)
        self._started = True
        self.after_start(container_id)

    def inspect(self, container_id: str) -> Mapping[str, Any]:
        record = self.real.inspect(container_id)
        if container_id != self.box:
            return record
        if self._started:
            self._started = False
            self.after_record(container_id)
        return {**self._record, "Id": record["Id"], "State": record["State"]} if self.lies else record


class Recorded:
    """A connection that keeps what is sent over it."""

    def __init__(self, real: Connection, sent: bytearray) -> None:
        self._real = real
        self._sent = sent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def fileno(self) -> int:
        return self._real.fileno()

    def send(self, data: bytes) -> int:
        taken = self._real.send(data)
        self._sent += data[:taken]
        return taken

    def receive(self) -> list[tuple[int, bytes]] | None:
        return self._real.receive()

    def close(self) -> None:
        self._real.close()
