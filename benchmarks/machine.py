"""The private machine: from its start to the first sealed cell, runs in it beside runs on this computer, its memory.

It is a copy of the one that ``pybox-kernel vm build`` made, in a state folder of its own; without that there is nothing
to time. Where it is emulated all of it is some ten times slower, so that rounds are few.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from benchmarks.in_advance import home, until
from benchmarks.memory import resident_mib
from benchmarks.timing import Spread, in_turn, table, timed
from pybox_kernel.engine_choice import Wish
from pybox_kernel.errors import PyBoxError
from pybox_kernel.machines import disk, monitor
from pybox_kernel.machines.machine import MachineFacts, kind_in_words, silent
from pybox_kernel.machines.qemu import QemuMachine
from pybox_kernel.policy import STDLIB
from pybox_kernel.sessions import machine as session_machine
from pybox_kernel.sessions.session import Session

SOURCE: Final = "print(1)"
DEADLINE_SECONDS: Final = 10.0
STARTS: Final = 3
MOST_ROUNDS: Final = {"kvm": 20, "tcg": 5}
WARM_UP: Final = 1
WAIT_SECONDS: Final = 120.0

START = "`pybox-kernel vm start`, until its engine answers"
FIRST = "and then its first cell, with the receipt"
HERE = "a run on this computer's engine"
INSIDE = "a run in the machine"
HERE_WAITED = "on this computer's engine, its box made in advance"
INSIDE_WAITED = "in the machine, its box made in advance"


class Found(NamedTuple):
    facts: MachineFacts
    starts: dict[str, list[float]]
    """Seconds."""
    spreads: dict[str, Spread]
    mib: tuple[float, float]
    """Resident: as it has started, and after the runs."""


def cell(session: Session, *, waited: bool) -> None:
    receipt = session.run(SOURCE, deadline_seconds=DEADLINE_SECONDS).receipt
    if not receipt.ok or (receipt.observed.box.waited is not None) != waited:
        raise RuntimeError(receipt.to_json())


@contextmanager
def copied(own: QemuMachine) -> Iterator[QemuMachine]:
    with home() as folder:
        before = os.environ.get("PYBOX_HOME")
        os.environ["PYBOX_HOME"] = str(folder)
        machine = session_machine.qemu_machine()
        try:
            disk.copy(own.folder, machine.folder)
            yield machine
        finally:
            machine.stop()
            if before is None:
                del os.environ["PYBOX_HOME"]
            else:
                os.environ["PYBOX_HOME"] = before


def machine_times(own: QemuMachine, rounds: int) -> Found:
    starts: dict[str, list[float]] = {START: [], FIRST: []}
    with copied(own) as machine:
        session_machine.start_machine(silent)  # tries the accelerator and brings the images that it lacks
        for _ in range(STARTS):
            machine.stop()
            starts[START].append(timed(lambda: session_machine.start_machine(silent)))
            with Session.open(wish=Wish("vm")) as session:
                starts[FIRST].append(timed(lambda session=session: cell(session, waited=False)))  # type: ignore[misc]
        facts, first = machine.status(), resident(machine)
        fewer = min(rounds, MOST_ROUNDS[facts.accelerator or "tcg"])
        spreads = in_both(fewer)
        return Found(facts, starts, spreads, (first, resident(machine)))


def in_both(rounds: int) -> dict[str, Spread]:
    wishes = {HERE: Wish("local"), INSIDE: Wish("vm"), HERE_WAITED: Wish("local"), INSIDE_WAITED: Wish("vm")}
    waited = (HERE_WAITED, INSIDE_WAITED)
    with ExitStack() as during:
        os.environ["PYBOX_POOL"] = "4"  # places for all sessions together, of which each of the two takes some
        during.callback(os.environ.pop, "PYBOX_POOL")
        sessions = {
            name: during.enter_context(Session.open(in_advance=name in waited, wish=wish))
            for name, wish in wishes.items()
        }

        def a_box_waits(session: Session) -> None:
            session.expect(STDLIB.image)
            until(lambda: session.waiting() > 0, WAIT_SECONDS)

        spreads, _ = in_turn(
            {name: lambda name=name: cell(sessions[name], waited=name in waited) for name in wishes},  # type: ignore[misc]
            rounds,
            WARM_UP,
            {name: lambda name=name: a_box_waits(sessions[name]) for name in waited},  # type: ignore[misc]
        )
    return spreads


def resident(machine: QemuMachine) -> float:
    pid = monitor.owner(machine.run / "qmp.sock")
    if pid is None:
        raise RuntimeError("the machine has ended")
    return resident_mib(pid)


def lines(found: Found) -> list[str]:
    medians = {name: spread.median for name, spread in found.spreads.items()}
    both = [statistics.median(times) for times in found.starts.values()]
    remark = f" ({found.facts.remark})" if found.facts.remark else ""
    return [
        f"A {kind_in_words(found.facts)}{remark}, {found.facts.processors} processors, {found.facts.memory_mib} MB.",
        "",
        f"| seconds, of {STARTS} starts | least | median | most |",
        "|---|---|---|---|",
        *(
            f"| {name} | {min(times):.1f} | {statistics.median(times):.1f} | {max(times):.1f} |"
            for name, times in found.starts.items()
        ),
        "",
        f"From its start to the end of the first sealed cell: **{sum(both):.1f} s**.",
        "",
        *table(found.spreads),
        "",
        f"In the machine a run takes **{medians[INSIDE] / medians[HERE]:.1f} times** as long as on this computer's "
        f"engine, and **{medians[INSIDE_WAITED] / medians[HERE_WAITED]:.1f} times** where its box was made in advance "
        f"(medians). Made in advance it takes {medians[INSIDE_WAITED] / medians[INSIDE]:.2f} of the time of one that "
        "is made when it is asked for.",
        "",
        f"Memory of QEMU, resident: {found.mib[0]:.0f} MiB as the machine has started, {found.mib[1]:.0f} MiB after "
        "the runs.",
        "",
    ]


def report(rounds: int) -> list[str]:
    head = ["## In the private machine", ""]
    try:
        own = session_machine.qemu_machine()
    except PyBoxError as error:
        return [*head, f"Not measured: {error.message}", ""]
    record = disk.read_record(own.folder)
    if record is None or record.recipe_sha256 != disk.recipe_sha256():
        return [*head, "Not measured: there is none of this version. To make it: `pybox-kernel vm build --yes`.", ""]
    return head + lines(machine_times(own, rounds))
