"""One life of one box: made, verified, started, verified again, run, ended, removed, confirmed gone.

What must hold after ``destroy``, whatever happened before it: the engine was asked by the box's full id to remove it, a
fresh look at the engine and at the kernel's cgroups says whether it is gone, and the journal entry is struck only if
neither has it. ``destroy`` tries every step, gathers every error, never raises, and can be called again.
"""

from __future__ import annotations

import pwd
import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from pybox_kernel.boxes.journal import Entry, Journal, box_name, new_entry
from pybox_kernel.boxes.leftovers import find
from pybox_kernel.engine import Connection, Engine, Removal
from pybox_kernel.errors import BoxEnded, BoxError, EngineNotFound, EngineRefused, PyBoxError, SealError
from pybox_kernel.policy import UID_FIRST, UID_LAST, Policy
from pybox_kernel.seal.boundary import NOT_LOOKED_AT, boundary_look, observe
from pybox_kernel.seal.by_engine import engine_look, runtime_in
from pybox_kernel.seal.by_kernel import kernel_look
from pybox_kernel.seal.by_warden import inside_look
from pybox_kernel.seal.spec import LABEL, Identity, Look, container_config, part
from pybox_kernel.seal.witness import Sight, Witness

__all__ = ["Box", "fresh_identity"]

EXPIRY_MARGIN_SECONDS: Final = 120
UID_TRIES: Final = 8
REMOVED_SECONDS: Final = 10.0
REMOVAL_TRIES: Final = 3


T = TypeVar("T")


def fresh_identity(journal: Journal, run: str, image_id: str, seconds: float) -> Identity:
    """A name, a uid and labels that no other box has. ``seconds`` is how long the box may live at the most."""
    uid = fresh_uid()
    return Identity(
        name=box_name(run),
        uid=uid,
        image_id=image_id,
        labels={
            **journal.labels(run),
            f"{LABEL}uid": str(uid),
            f"{LABEL}expires": str(int(time.time() + seconds + EXPIRY_MARGIN_SECONDS)),
        },
    )


def fresh_uid() -> int:
    """A random uid of the boxes' range that is no account of this computer."""
    while True:
        uid = random.SystemRandom().randint(UID_FIRST, UID_LAST)
        try:
            pwd.getpwuid(uid)
        except KeyError:
            return uid


class Process(NamedTuple):
    """One process of one kernel, told apart from every other: see ``Sight``."""

    pid: int
    started: str | None
    boot_id: str | None


class Box:
    """Call in this order: ``create``, ``start``, then talk over ``connection``; ``destroy`` always."""

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        witness: Witness | None,
        policy: Policy,
        identity: Identity,
        run: str,
    ) -> None:
        self.engine = engine
        self.journal = journal
        self.witness = witness
        self.policy = policy
        if engine.place.runs_cgroup is not None:
            identity = identity._replace(cgroup_parent=f"{engine.place.runs_cgroup}/{run}")
        self.identity = identity
        self.run = run
        self.id: str | None = None
        self.connection: Connection | None = None
        self.engine_look = Look(0, ())
        self.kernel_look = Look(0, ())
        self.inside_look = Look(0, ())
        self.sight: Sight | None = None
        self.boundary = NOT_LOOKED_AT
        self.runtime: str | None = None
        """By the engine's record."""
        self.process: Process | None = None
        """The box's own part, as the first look found it."""
        self.exit_status: int | None = None
        self.removed: bool | None = None
        self.why_not_confirmed = ""
        self.cgroups_looked_at = False
        self._entry: Entry | None = None
        self._create_unanswered = False
        self._create_refused = False
        self._removal: Removal | None = None

    def create(self) -> None:
        """Makes the box and reads it back from the engine. Raises SealError if anything differs, EngineError."""
        for _ in range(UID_TRIES):
            self._write_entry(None)
            self._create_unanswered = True
            try:
                self.id = self.engine.create(self.identity.name, container_config(self.policy, self.identity))
            except EngineRefused:
                self._create_refused = True
                raise
            self._create_unanswered = False
            self._write_entry(self.id)
            if not self._uid_is_shared():
                break
            self._give_up_uid()
        else:
            raise BoxError("No free user id was found for the box.", "Run `pybox-kernel cleanup`, then try again.")
        record = self.engine.inspect(self.id)
        self.runtime = runtime_in(record)
        self.engine_look = engine_look(self.policy, self.identity, record)
        self._require(self.engine_look)

    def _write_entry(self, container_id: str | None) -> None:
        entry = new_entry(self.run, self.engine.address, self.identity.labels, container_id)
        self.journal.write(entry)
        self._entry = entry

    def _uid_is_shared(self) -> bool:
        """Both of two makers may see each other and both yield, which is safe; never neither: each made its box
        before it looked."""
        label = f"{LABEL}uid={self.identity.uid}"
        return any(other.id != self.id for other in self.engine.containers(labels=[label]))

    def _give_up_uid(self) -> None:
        self.destroy()
        if not self.removed:
            raise BoxError(f"A box could not be removed: {self.why_not_confirmed}.", "Run `pybox-kernel cleanup`.")
        self.id, self.removed = None, None
        uid = fresh_uid()
        labels = {**self.identity.labels, f"{LABEL}uid": str(uid)}
        self.identity = self.identity._replace(uid=uid, labels=labels)

    def start(self) -> None:
        """Connects, then starts: nothing the box says can be missed. Raises EngineError."""
        assert self.id is not None
        self.connection = self.engine.attach(self.id)
        self.engine.start(self.id)

    def verify(self, report: Mapping[str, Any], again: Callable[[], Mapping[str, Any]] | None = None) -> None:
        """The kernel's view of the living box, and the warden's. Raises SealError if anything differs or is unread,
        BoxError if it does not run, or no longer as the very process of the look before this one. ``again`` gives what
        the warden finds now in a box that has waited; a box that is halted is not asked."""
        assert self.id is not None
        at_the_same_time = self._begin_to_look()
        record = self.engine.inspect(self.id)
        running = engine_look(self.policy, self.identity, record)
        self.engine_look = Look(max(running.checked, self.engine_look.checked), running.differences)
        state = part(record, "State")
        pid = state.get("Pid")
        if state.get("Running") is not True or not isinstance(pid, int) or pid <= 0:
            raise BoxEnded("The box ended before the program came.", "Run the cell again.")
        if any(state.get(halt) for halt in ("Paused", "Restarting", "Dead")):
            raise BoxError("Something else has halted the box before the program came.", "Run the cell again.")
        self.sight = at_the_same_time(pid)
        nested: str | None = self.id
        if self.sight is None:
            self.sight, nested = own_reading(report), None
        self.boundary = observe(self.engine.place, self.sight, self.witness)
        seen, around = (
            kernel_look(self.policy, self.identity, self.sight.texts, nested),
            boundary_look(self.engine.place, self.boundary),
        )
        self.kernel_look = Look(seen.checked + around.checked, (*around.differences, *seen.differences))
        if again is not None:
            self._require(self.engine_look, self.kernel_look)
            report = {**report, "again": again()}
        self.inside_look = inside_look(self.policy, report)
        self._require(self.engine_look, self.kernel_look, self.inside_look)
        process = Process(pid, self.sight.started, self.sight.boot_id)
        if self.process is not None and process != self.process:
            raise BoxError("The box is not the one that it was.", "Run the cell again.")
        self.process = process

    def _begin_to_look(self) -> Callable[[int], Sight | None]:
        """The witness's look, for the pid that the engine says. A container that has seen the box before looks while
        the engine still answers (if its pid is another, that look does not count). This computer's own files are read
        in the same time as it takes to have them read at the same time."""
        witness, box_id, before = self.witness, self.id, self.process
        if witness is None or box_id is None:
            return lambda _: None
        if before is None or self.sight is None or self.sight.source != "witness container":
            return lambda pid: witness.look(pid, box_id)
        seen: list[Sight | None] = []
        thread = threading.Thread(target=lambda: seen.append(witness.look(before.pid, box_id)), daemon=True)
        thread.start()

        def join(pid: int) -> Sight | None:
            thread.join()
            return seen[0] if pid == before.pid and seen else witness.look(pid, box_id)

        return join

    def _require(self, *looks: Look) -> None:
        differences = [difference for look in looks for difference in look.differences]
        if differences:
            first = differences[0]
            more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
            found = f"{first.setting}: wanted {first.wanted}, found {first.found}{more}"
            raise SealError(
                f"The box was not sealed as required: {found}.",
                "Run `pybox-kernel doctor`. Do not switch kernels to get round this.",
                differences,
            )

    def expect_removal(self) -> None:
        """Asks the engine to tell when it has removed the box, and with which exit status. Call it before the box
        may end, so that the status is not missed."""
        assert self.id is not None
        self._removal = self.engine.expect_removal(self.id)

    def kill(self) -> bool:
        """False if it had ended before."""
        assert self.id is not None
        return self.engine.kill(self.id)

    def destroy(self) -> None:
        """See the module. Afterwards ``removed`` is True (confirmed gone), False (still there), None (no box, or not
        confirmed: ``why_not_confirmed``), ``cgroups_looked_at`` says whether the kernel's side is part of that, and
        ``exit_status`` holds what the engine recorded, if it did."""
        errors: list[str] = []
        if self.connection is not None:
            self.connection.close()
        if self.id is None and self._create_unanswered:
            self.id = attempt(errors, self._find_unanswered)
        if self.id is None:
            self._settle_unmade(errors)
            return
        box_id = self.id
        limit = time.monotonic() + REMOVED_SECONDS
        if self._removal is not None:
            attempt(errors, self._collect_status)
        for _ in range(REMOVAL_TRIES):
            found = attempt(errors, lambda: self._exists(box_id))
            if found is False:
                break
            attempt(errors, lambda: self.engine.remove(box_id))
            if found is None and time.monotonic() > limit:
                break
            if found is None:
                continue
            time.sleep(0.02)
            attempt(errors, lambda: self.engine.wait_removed(box_id, REMOVED_SECONDS))
        else:
            found = attempt(errors, lambda: self._exists(box_id))
        standing = self._standing_cgroups()
        if found is None:
            self._unconfirmed(errors[-1] if errors else "the engine did not answer")
        elif found:
            self.removed = False
            self.why_not_confirmed = "the engine still has it"
        elif standing:
            self.removed = False
            self.why_not_confirmed = "the engine removed it, but its cgroup still exists"
        elif standing is None and self._was_seen():
            self._unconfirmed("its cgroups could not be looked at again")
        else:
            self.removed, self.cgroups_looked_at = True, standing is not None
            self.journal.strike(self.run)

    def _collect_status(self) -> None:
        removal, self._removal = self._removal, None
        if removal is not None:
            self.exit_status = removal.status(REMOVED_SECONDS)

    def _exists(self, box_id: str) -> bool:
        try:
            self.engine.inspect(box_id)
        except EngineNotFound:
            return False
        return True

    def _find_unanswered(self) -> str | None:
        """The box of a create whose answer never came; by its name, which holds the run's own 128 bits."""
        assert self._entry is not None
        record = find(self.engine, self._entry)
        if record is None:
            return None
        self._write_entry(record.id)
        return record.id

    def _settle_unmade(self, errors: list[str]) -> None:
        """No box is known. If the engine may still be making one, the entry stays for a later sweep."""
        if self._create_unanswered and (errors or not self._create_refused):
            self._unconfirmed(errors[-1] if errors else "the engine never answered whether it made the box")
        elif self._entry is not None:
            self.journal.strike(self.run)

    def _unconfirmed(self, why: str) -> None:
        self.removed = None
        self.why_not_confirmed = why

    def kept_counters(self) -> Mapping[str, str | None] | None:
        """The texts of the counters (v2) of the run's own cgroup, which stands for a minute after its box. None where
        there is none, or it cannot be read."""
        parent, seen = self.identity.cgroup_parent, self.sight.folders if self.sight is not None else {}
        if self.witness is None or not parent or not seen.get("", "").startswith(parent + "/"):
            return None
        return self.witness.meters({"": parent})

    def _was_seen(self) -> bool:
        return self.sight is not None and bool(self.sight.folders)

    def _standing_cgroups(self) -> tuple[str, ...] | None:
        """A box whose start failed was never seen in its cgroups, and may have left them, with processes in them."""
        if self.witness is None or self.id is None:
            return None
        limit = time.monotonic() + 1.0
        while True:
            if self.sight is not None and self.sight.folders:
                standing = self.witness.standing(self.sight.folders)
            else:
                standing = self.witness.named_after(self.id)
            if not standing or time.monotonic() > limit:
                return standing
            time.sleep(0.01)


def attempt(errors: list[str], step: Callable[[], T]) -> T | None:
    """The step's value; None if it failed, with the reason in ``errors``."""
    try:
        return step()
    except PyBoxError as error:
        errors.append(error.message.rstrip("."))
        return None


def own_reading(report: Mapping[str, Any]) -> Sight:
    """The warden's own reading, taken before the program arrived: the weaker source, used where no other can be."""
    files = report.get("files")
    texts: dict[str, str | None] = {}
    if isinstance(files, dict):
        texts = {str(name): text if isinstance(text, str) else None for name, text in files.items()}
    boot_id = report.get("boot_id")
    return Sight("the box's own reading", texts, {}, boot_id.strip() if isinstance(boot_id, str) else None)
