"""The boxes of one session: of which image, seen by whom, made in advance, and whose turn it is."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pybox_kernel.boxes.box import Box, fresh_identity
from pybox_kernel.boxes.journal import Journal, new_token
from pybox_kernel.boxes.pool import Pool
from pybox_kernel.boxes.refused_boxes import note_failed, note_refused
from pybox_kernel.boxes.shelf import Kind
from pybox_kernel.boxes.turns import Turns, at_once
from pybox_kernel.boxes.waiting_box import WaitingBox
from pybox_kernel.boxes.waiting_places import Places, bounds_of_user
from pybox_kernel.engine import Engine
from pybox_kernel.errors import BoxError
from pybox_kernel.images.store import ImageStore, RecordedImage, require
from pybox_kernel.policy import Policy, policy_for
from pybox_kernel.receipt.timeline import Timeline
from pybox_kernel.seal.spec import WAITING_SECONDS
from pybox_kernel.seal.witness import Witness
from pybox_kernel.sessions.own_process import OwnProcess
from pybox_kernel.sessions.witness import SessionWitness
from pybox_kernel.stop import Stop

__all__ = ["SessionBoxes"]


class SessionBoxes:
    """``engine`` gives the session's. With ``in_advance`` boxes are made before they are asked for, as far as
    ``PYBOX_POOL`` allows, and no more run at once over all such sessions of the user than ``PYBOX_AT_ONCE``."""

    def __init__(self, journal: Journal, engine: Callable[[], Engine], *, in_advance: bool) -> None:
        self.own_process = OwnProcess()
        self._journal = journal
        self._engine = engine
        self._store = ImageStore(journal.home)
        self._witness: SessionWitness | None = None
        self._lock = threading.Lock()
        self._known: dict[str, tuple[object, RecordedImage]] = {}
        """The image that was required last under each name, and the version of the record then."""
        self.turns = Turns(journal.home, at_once() if in_advance else 0)
        self.pool: Pool | None = None
        bounds = bounds_of_user()
        if in_advance and bounds.boxes:
            places = Places(journal.home, bounds)
            self.pool = Pool(
                self._make_waiting,
                places,
                self.turns.all_taken,
                lambda error: note_refused(journal.home, error),
                lambda error: note_failed(journal.home, error),
            )

    def recorded(self, engine: Engine, policy: Policy) -> RecordedImage:
        """The image to make a box from. Where a box of it waits, and the record is as it was when the image was
        required last, it is not required anew. Raises PyBoxError."""
        version = self._store.version()
        known, recorded = self._known.get(policy.image, (None, None))
        waits = recorded is not None and self.pool is not None and self.pool.has(Kind(recorded.id, policy))
        if recorded is not None and known == version and waits:
            return recorded
        recorded = require(engine, self._store, policy.image)
        self._known[policy.image] = (version, recorded)
        return recorded

    def witness_for(self, engine: Engine, image_id: str) -> Witness:
        with self._lock:
            if self._witness is None:
                self._witness = SessionWitness(engine, self._journal, image_id)
            return self._witness

    def expect(self, image: str) -> None:
        """Has a box of ``image`` made for the first cell, if boxes are made in advance and there is such an image.
        Raises PyBoxError."""
        self.own_process.require()
        policy = policy_for(image)
        recorded = self._store.load().get(image) if self.pool is not None else None
        if self.pool is not None and recorded is not None:
            self.pool.expect(Kind(recorded.id, policy))

    def waiting(self) -> int:
        """How many are ready for the next cells."""
        self.own_process.require()
        return self.pool.waiting() if self.pool is not None else 0

    def close(self) -> None:
        """Idempotent. Runs must have ended."""
        if self.pool is not None:
            self.pool.close()
        if self._witness is not None:
            self._witness.close()

    def _make_waiting(self, kind: Kind, stop: Stop) -> WaitingBox:
        engine, policy = self._engine(), kind.policy
        if require(engine, self._store, policy.image).id != kind.image_id:
            raise BoxError("The image is another by now.", "Run the cell again.")
        witness, run = self.witness_for(engine, kind.image_id), new_token()
        seconds = WAITING_SECONDS + policy.longest_deadline_seconds
        identity = fresh_identity(self._journal, run, kind.image_id, seconds)
        waiting = WaitingBox(Box(engine, self._journal, witness, policy, identity, run))
        try:
            waiting.make_ready(stop, Timeline())
            if not waiting.can_be_seen:
                raise BoxError("Nothing outside the box could look at it a second time.", "Run the cell again.")
        except BaseException:
            waiting.destroy()
            raise
        return waiting
