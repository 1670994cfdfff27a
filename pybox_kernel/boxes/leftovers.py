"""Boxes whose session died: found by its journal, removed by exact identity, confirmed gone.

Only what a dead session's journal names is ever looked at, and it is touched only where id, name and every label agree.
A container that merely looks like ours is a stranger's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from pybox_kernel.boxes.journal import DeadSession, Entry, Journal, box_name, dead_sessions
from pybox_kernel.engine import ContainerRecord, Engine
from pybox_kernel.errors import EngineNotFound, PyBoxError

__all__ = ["Sweep", "find", "sweep"]

UNANSWERED_SECONDS: Final = 60.0
"""How long an engine may still make a box after its maker died without an answer. Until then, not finding it proves
nothing, and the entry stays."""
GONE_SECONDS: Final = 5.0


class Sweep(NamedTuple):
    """What a sweep found. ``removed`` and ``unconfirmed`` are run ids."""

    removed: tuple[str, ...]
    already_gone: tuple[str, ...]
    unconfirmed: tuple[str, ...]
    elsewhere: tuple[str, ...] = ()
    """Of the unconfirmed, those that are at other engines: the address of each."""


Outcome = Literal["removed", "gone", "unconfirmed"]
"""``gone``: it was not there any more."""


def nothing_ended(_: Entry) -> bool:
    return False


def sweep(engine: Engine, journal: Journal, ended: Callable[[Entry], bool] = nothing_ended) -> Sweep:
    """Removes what dead sessions of this installation left at ``engine``. What they left at another is gone where that
    ``ended`` with all that was in it. Raises nothing: what could not be confirmed is listed, and its entry stays for
    the next sweep."""
    outcomes: dict[Outcome, list[str]] = {"removed": [], "gone": [], "unconfirmed": []}
    elsewhere: list[str] = []
    for session in dead_sessions(journal.home):
        try:
            entries = session.entries()
            settled = [(entry.run, outcome_of(engine, session, entry, ended)) for entry in entries]
            of_others = {entry.run: entry.engine for entry in entries if entry.engine != engine.address}
            elsewhere += [of_others[run] for run, outcome in settled if outcome == "unconfirmed" and run in of_others]
            settled += [(run, outcome_of_damaged(engine, run)) for run in session.damaged()]
            for run, outcome in settled:
                outcomes[outcome].append(run)
                if outcome != "unconfirmed":
                    session.strike(run)
        finally:
            session.close()
    removed, gone, unconfirmed = map(tuple, outcomes.values())
    return Sweep(removed, gone, unconfirmed, tuple(sorted(elsewhere)))


def outcome_of(engine: Engine, session: DeadSession, entry: Entry, ended: Callable[[Entry], bool]) -> Outcome:
    if entry.engine != engine.address:
        return "gone" if ended(entry) else "unconfirmed"
    try:
        return settle(engine, session, entry)
    except PyBoxError:
        return "unconfirmed"


def outcome_of_damaged(engine: Engine, run: str) -> Outcome:
    """An entry that cannot be read no longer says which labels its box has, so a box of its name is not touched."""
    try:
        return "unconfirmed" if engine.containers(name=box_name(run)) else "gone"
    except PyBoxError:
        return "unconfirmed"


def settle(engine: Engine, session: DeadSession, entry: Entry) -> Outcome:
    found = find(engine, entry)
    if found is None:
        waited = time.time() - entry.written_at
        answered = entry.container_id is not None or not 0 <= waited < UNANSWERED_SECONDS
        return "gone" if answered else "unconfirmed"
    session.write(entry.model_copy(update={"container_id": found.id}))
    engine.remove(found.id)
    limit = time.monotonic() + GONE_SECONDS
    while time.monotonic() < limit:
        try:
            engine.inspect(found.id)
        except EngineNotFound:
            return "removed"
        time.sleep(0.05)
    return "unconfirmed"


def find(engine: Engine, entry: Entry) -> ContainerRecord | None:
    """The container that this entry names and nothing else: full id where known, exact name, every label."""
    for record in engine.containers(name=entry.name):
        same_id = entry.container_id in (None, record.id)
        same_labels = all(record.labels.get(key) == value for key, value in entry.labels.items())
        if same_id and record.name == entry.name and same_labels:
            return record
    return None
