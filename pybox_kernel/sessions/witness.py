"""The witness of one session: this computer where it can see the engine's processes, else a container there."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from typing import Final, TypeVar

from pybox_kernel.boxes.journal import Entry, Journal, new_entry, new_token
from pybox_kernel.boxes.leftovers import find
from pybox_kernel.engine import Engine
from pybox_kernel.errors import EngineError, EngineRefused, PyBoxError
from pybox_kernel.seal.spec import LABEL
from pybox_kernel.seal.witness import ContainerWitness, DirectWitness, Host, Sight, witness_config

__all__ = ["SessionWitness"]

T = TypeVar("T")

AGAIN_SECONDS: Final = 10.0
"""After an engine did not make a witness container, before it is asked for one again: it may have had no time, or no
room."""


class SessionWitness:
    """This computer's own files where they are the engine's too; else a witness container, started once.

    ``PYBOX_WITNESS=container`` or ``box`` leaves out the stronger ways, so that each can be tried anywhere.
    """

    def __init__(self, engine: Engine, journal: Journal, image_id: str) -> None:
        self._engine = engine
        self._journal = journal
        self._image_id = image_id
        self._choice = os.environ.get("PYBOX_WITNESS", "")
        self._direct = DirectWitness()
        self._direct_sees = False
        self._container: ContainerWitness | None = None
        self._host: Host | None = None
        self._entry: Entry | None = None
        self._not_before = inf if self._choice == "box" else 0.0
        """When a container may be asked for."""
        self._lock = threading.Lock()

    def look(self, pid: int, container_id: str) -> Sight | None:
        sight = None if self._choice in ("container", "box") else self._direct.look(pid, container_id)
        if sight is not None:
            self._direct_sees = True
            return sight
        return self._asked(lambda container: container.look(pid, container_id))

    def meters(self, folders: Mapping[str, str]) -> Mapping[str, str | None] | None:
        if self._direct_sees:
            return self._direct.meters(folders)
        return self._asked(lambda container: container.meters(folders))

    def standing(self, folders: Mapping[str, str]) -> tuple[str, ...] | None:
        if self._direct_sees:
            return self._direct.standing(folders)
        return self._asked(lambda container: container.standing(folders))

    def named_after(self, container_id: str) -> tuple[str, ...] | None:
        """Nothing found is an answer only where this computer has been seen to be the engine's."""
        found = () if self._choice in ("container", "box") else self._direct.named_after(container_id)
        return found if found or self._direct_sees else None

    def host(self, boot_id: str) -> Host | None:
        """Read once for each kernel."""
        known = self._host
        if known is None or known.boot_id != boot_id:
            if self._direct_sees:
                known = self._direct.host(boot_id)
            else:
                known = self._asked(lambda container: container.host(boot_id))
            self._host = known
        return known

    def _asked(self, question: Callable[[ContainerWitness], T | None]) -> T | None:
        """The witness container's answer. One that has gone since it was last asked is started once more."""
        for _ in range(2):
            container = self._started()
            if container is None:
                return None
            answer = question(container)
            if answer is not None or container.usable:
                return answer
        return None

    def _started(self) -> ContainerWitness | None:
        with self._lock:
            if self._container is not None and not self._container.usable:
                self._remove()
            if self._container is None and time.monotonic() >= self._not_before:
                try:
                    self._container = self._start()
                except PyBoxError:
                    self._not_before = time.monotonic() + AGAIN_SECONDS
                    self._remove()
            return self._container

    def _start(self) -> ContainerWitness:
        run = new_token()
        labels = {**self._journal.labels(run), f"{LABEL}role": "witness"}
        entry = new_entry(run, self._engine.address, labels, None)
        self._journal.write(entry)
        self._entry = entry
        try:
            container_id = self._engine.create(entry.name, witness_config(self._image_id, labels))
        except EngineRefused:
            self._journal.strike(run)
            self._entry = None
            raise
        self._entry = entry.model_copy(update={"container_id": container_id})
        self._journal.write(self._entry)
        connection = self._engine.attach(container_id)
        self._engine.start(container_id)
        return ContainerWitness(connection, self._engine.place.patience)

    def _remove(self) -> None:
        if self._container is not None:
            self._container.close()
            self._container = None
        entry, self._entry = self._entry, None
        if entry is None:
            return
        with suppress(EngineError):
            container_id = entry.container_id
            if container_id is None and (made := find(self._engine, entry)) is not None:  # its answer was lost
                container_id = made.id
            if container_id is not None:
                self._engine.remove(container_id)
                self._engine.wait_removed(container_id, 5.0)
                self._journal.strike(entry.run)

    def close(self) -> None:
        with self._lock:
            self._remove()
            self._not_before = inf
