"""The machine's clock: set when it starts, told on each receipt, and nothing is decided by it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from pybox_kernel.boxes.journal import Entry, Journal, new_token
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.engine_choice import Wish, ended_with
from pybox_kernel.machines import control
from pybox_kernel.machines.qemu import QemuMachine
from pybox_kernel.sessions import machine as session_machine
from pybox_kernel.sessions.session import Session
from tests.cases import case
from tests.machines.test_trouble import while_it_runs

pytestmark = pytest.mark.engine

HOURS = 7200
SLOW = 10.0
"""Seconds of a clock's error that an emulated machine on a busy computer may have."""


def shift(machine: QemuMachine, seconds: int) -> None:
    """Sets the machine's clock by itself, as a sleep or a wrong hand would."""
    command = f"date -u -s @$(( $(date +%s) + {seconds} ))"
    line = ["ssh", "-F", "none", "-S", "ctl", "pybox", command]
    subprocess.run(line, cwd=machine.run, env=control.environment(machine.run), check=True, capture_output=True)


def ahead(machine: QemuMachine) -> float:
    clock = machine.clock()
    assert clock is not None
    return clock.ahead_seconds


def test_its_clock_is_set_when_it_starts_and_when_it_is_started_again(machine: QemuMachine) -> None:
    clock = machine.status().clock
    assert clock is not None
    assert abs(clock.ahead_seconds) < SLOW
    shift(machine, -HOURS)
    assert ahead(machine) < -HOURS + SLOW
    session_machine.start_machine(print)
    assert abs(ahead(machine)) < SLOW


def dead(home: Path, address: str) -> tuple[str, dict[str, str]]:
    """A session that died after it had journalled one box: the box's name and labels."""
    journal = Journal(home)
    run = new_token()
    labels = {
        "org.pybox.installation": journal.installation,
        "org.pybox.session": journal.session,
        "org.pybox.run": run,
        "org.pybox.expires": "1",
    }
    known = {"engine": address, "container_id": None, "written_at": time.time()}
    journal.write(Entry.model_validate({"run": run, "name": f"pybox-{run}", "labels": labels, **known}))
    journal.release()
    return f"pybox-{run}", labels


@case("time-vm-clock-drift")
@pytest.mark.parametrize("by", [-HOURS, HOURS], ids=["hours behind", "hours ahead"])
def test_a_wrong_clock_neither_ends_a_box_that_lives_nor_keeps_one_of_the_dead_and_is_told(
    machine: QemuMachine, home: Path, by: int
) -> None:
    shift(machine, by)
    engine = DockerEngine(machine.endpoint)
    name, labels = dead(home, machine.endpoint)
    engine.create(name, {"Image": max(record.id for record in engine.images()), "Cmd": ["true"], "Labels": labels})

    def another_session_looks() -> None:
        with Session(Journal(home), wish=Wish("vm")) as other:
            other.sweep()

    receipt = while_it_runs(machine, home, another_session_looks, 8).receipt
    assert receipt.ok, receipt.observed.end
    assert receipt.observed.box.removed is True
    assert engine.containers(name=name) == []
    engine.close()
    (told,) = [fact for fact in receipt.observed.boundary.facts if fact.startswith("the machine's clock is ")]
    side = "ahead of" if by > 0 else "behind"
    assert f" s {side} this computer's, give or take " in told
    assert abs(float(told.split()[4]) - HOURS) < SLOW
    assert machine.status().started_at is not None
    assert not ended_with(machine, machine.endpoint, time.time()), "by this computer's clock, it runs since before"
    session_machine.start_machine(print)
    assert abs(ahead(machine)) < SLOW
