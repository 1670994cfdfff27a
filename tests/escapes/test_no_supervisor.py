"""A program's deadline holds without its supervisor: stopped, it reads nothing; dead, the box goes with it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pybox_kernel.boxes import leftovers
from pybox_kernel.boxes.journal import Journal
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.images.store import RecordedImage
from pybox_kernel.policy import STDLIB
from tests.cases import case
from tests.conftest import Outside
from tests.escapes.floods import EVERYTHING_AT_ONCE, IN_VAIN
from tests.escapes.supervisor import Supervisor

pytestmark = pytest.mark.engine

SHORT = 1.0

WITHOUT_SUPERVISOR = {
    "sleeps": "print('up', flush=True); import time; time.sleep(60)",
    "prints without end": "import os; print('up', flush=True)\nwhile True: os.write(1, b'x' * 65536)",
    "displays without end": "print('up', flush=True)\nwhile True: display('x' * 20000)",
    "forks to the limit, each computing": IN_VAIN
    + "print('up', flush=True)\nfor _ in range(5): in_vain(os.fork)\nwhile True: pass",
    "all attacks at once": EVERYTHING_AT_ONCE,
}

Supervise = Callable[[str, float], Supervisor]


@pytest.fixture
def supervise(box_image: RecordedImage, home: Path, tmp_path: Path, outside: Outside) -> Supervise:
    return lambda source, seconds: Supervisor(source, seconds, home, tmp_path / "home", outside)


@case("time-ptrace-timer", "time-ignore-term")
@pytest.mark.parametrize("name", WITHOUT_SUPERVISOR)
def test_with_its_supervisor_stopped_a_program_is_dead_at_its_deadline_and_its_box_gone_soon_after(
    name: str, supervise: Supervise, outside: Outside
) -> None:
    with supervise(WITHOUT_SUPERVISOR[name], SHORT) as supervisor:
        assert supervisor.wait_for_line() == "up\n"
        supervisor.signal(signal.SIGSTOP)
        assert len(supervisor.processes()) > 1
        asked = time.monotonic()
        assert outside.api.inspect_container(supervisor.box)["State"]["Running"] is True
        assert time.monotonic() - asked < 1
        dead = supervisor.wait_for_processes(1, SHORT + 0.7)
        assert dead > SHORT / 2  # it was its deadline, and not the stop, that ended it
        asked = time.monotonic()
        outside.api.inspect_container(supervisor.box)
        assert time.monotonic() - asked < 1
        outside.wait_gone(supervisor.box, STDLIB.release_seconds + 1.5)
        finished = supervisor.finish()
    # Where what it printed filled the way out, the warden's last report did not fit: then no cause is named.
    assert finished.status in (124, 125), finished.receipt
    if finished.status == 124:
        assert "The box's own timer ended it at 1 s." in finished.receipt
    else:
        assert "cause not established" in finished.receipt
    assert "from outside" not in finished.receipt
    assert list((supervisor.home / "sessions").iterdir()) == []


def test_a_box_that_floods_a_stopped_supervisor_can_be_removed_at_any_time(
    supervise: Supervise, outside: Outside
) -> None:
    with supervise(EVERYTHING_AT_ONCE, 20) as supervisor:
        supervisor.wait_for_line()
        supervisor.signal(signal.SIGSTOP)
        asked = time.monotonic()
        outside.api.remove_container(supervisor.box, force=True, v=True)
        outside.wait_gone(supervisor.box, 3)
        assert time.monotonic() - asked < 3
        finished = supervisor.finish()
    assert finished.status == 125
    assert "cause not established" in finished.receipt
    assert list((supervisor.home / "sessions").iterdir()) == []


@case("time-supervisor-dead", "time-ptrace-timer", "time-ignore-term")
@pytest.mark.parametrize("name", WITHOUT_SUPERVISOR)
def test_with_its_supervisor_dead_a_program_is_dead_at_once_and_its_box_gone(
    name: str, supervise: Supervise, outside: Outside, engine: DockerEngine
) -> None:
    with supervise(WITHOUT_SUPERVISOR[name], 20) as supervisor:
        supervisor.wait_for_line()
        assert len(supervisor.processes()) > 1
        supervisor.signal(signal.SIGKILL)
        killed = time.monotonic() - supervisor.began
        supervisor.wait_for_processes(0, killed + 1.0)
        outside.wait_gone(supervisor.box, 1.0)
        swept = sweep(engine, supervisor.home)
    assert (swept.removed, swept.unconfirmed) == ((), ())
    assert swept.already_gone
    assert list((supervisor.home / "sessions").iterdir()) == []


def sweep(engine: DockerEngine, home: Path) -> leftovers.Sweep:
    journal = Journal(home)
    try:
        return leftovers.sweep(engine, journal)
    finally:
        journal.close()


def test_a_stopped_supervisor_that_dies_leaves_nothing(supervise: Supervise, outside: Outside) -> None:
    with supervise(EVERYTHING_AT_ONCE, 20) as supervisor:
        supervisor.wait_for_line()
        supervisor.signal(signal.SIGSTOP)
        supervisor.signal(signal.SIGKILL)
        killed = time.monotonic() - supervisor.began
        supervisor.wait_for_processes(0, killed + 1.0)
        outside.wait_gone(supervisor.box, 1.0)
