"""The engine itself ends, or hangs, while a program runs: an engine of the test's own, never the computer's."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pybox_kernel.boxes import box, pool
from pybox_kernel.boxes.journal import Journal
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.doctor import of_boxes_in_advance
from pybox_kernel.images.store import ImageStore, RecordedImage
from pybox_kernel.policy import STDLIB
from pybox_kernel.running.runner import RunResult
from pybox_kernel.seal import spec as seal
from pybox_kernel.sessions.session import Session
from tests.boxes.private_engine import PrivateEngine
from tests.cases import case
from tests.conftest import Outside
from tests.escapes.running import LATE

pytestmark = [pytest.mark.engine, pytest.mark.alone]


@pytest.fixture
def own_home(tmp_path: Path, box_image: RecordedImage) -> Path:
    ImageStore(tmp_path).record(box_image)
    return tmp_path


class AtFirstWord:
    """Does something as soon as the program has printed."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self.began = 0.0
        self.acted = 0.0

    def started(self, deadline_seconds: float) -> None:
        self.began = time.monotonic()

    def output(self, stream: str, text: str) -> None:
        if not self.acted:
            self.acted = time.monotonic()
            self._act()

    def display(self, display: object) -> None: ...


def assert_processes(most: int, outside: Outside, result: RunResult, limit: float) -> None:
    """Of the box, by the time ``limit``."""
    assert result.receipt.observed.box.id is not None
    while True:
        lists = [Path(f, "cgroup.procs").read_text().split() for f in outside.cgroups(result.receipt.observed.box.id)]
        if max(map(len, lists), default=0) <= most:
            return
        assert time.monotonic() < limit, f"the box still has {lists}"
        time.sleep(0.05)


BUSY = "print('up', flush=True)\nwhile True: pass"


@case("eng-restart")
def test_an_engine_killed_during_a_run_is_said_and_the_box_keeps_its_deadline(
    private_engine: PrivateEngine, own_home: Path, outside: Outside
) -> None:
    watcher = AtFirstWord(lambda: private_engine.send(signal.SIGKILL))
    with Session(Journal(own_home), DockerEngine(private_engine.address)) as session:
        result = session.run(BUSY, deadline_seconds=3, watcher=watcher)
        assert time.monotonic() - watcher.acted < 2
        receipt = result.receipt
        assert receipt.observed.end.how == "box_lost"
        assert receipt.observed.end.exit_code is None
        assert receipt.observed.box.removed is None
        assert not receipt.observed.meters.final
        assert "removed" in {item.what for item in receipt.unknown}
        assert not receipt.ok
        assert_processes(1, outside, result, watcher.began + 3 + LATE)  # the box's own part waits for its release
        assert_processes(0, outside, result, watcher.began + 3 + STDLIB.release_seconds + 2 * LATE)
        assert session.run("print(1)").receipt.observed.end.how == "not_started"
        private_engine.wait()
        private_engine.start()
        assert session.run("print(2)").stdout == "2\n"
        assert session.engine().containers() == [], "the engine removes at its start what it lost"
    with Session(Journal(own_home), DockerEngine(private_engine.address)) as session:
        assert session.sweep().already_gone == (receipt.run.id,)
    assert list((own_home / "sessions").iterdir()) == []


@case("eng-restart")
def test_an_engine_that_is_shut_down_during_a_run_does_not_put_off_its_deadline(
    private_engine: PrivateEngine, own_home: Path
) -> None:
    watcher = AtFirstWord(lambda: private_engine.send(signal.SIGTERM))
    with Session(Journal(own_home), DockerEngine(private_engine.address)) as session:
        receipt = session.run(BUSY, deadline_seconds=1.5, watcher=watcher).receipt
        assert time.monotonic() - watcher.began < 3
        assert receipt.observed.end.how == "deadline"
        assert receipt.observed.meters.final
        assert receipt.observed.meters.ran_seconds == pytest.approx(1.5, abs=LATE)
        assert (receipt.observed.box.removed is None) == ("removed" in {item.what for item in receipt.unknown})
        private_engine.wait()
        private_engine.start()
        assert session.run("print(2)").receipt.ok
        assert session.engine().containers() == []


@case("eng-restart")
def test_an_engine_that_hangs_during_a_run_is_not_waited_for_without_end(
    private_engine: PrivateEngine, own_home: Path, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call's own time limit is a second here; their sum is what is looked at."""
    monkeypatch.setattr("pybox_kernel.docker_engine.engine.ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(DockerEngine._client, "__defaults__", (1.0,))
    monkeypatch.setattr(box, "REMOVED_SECONDS", 1.0)
    watcher = AtFirstWord(lambda: private_engine.send(signal.SIGSTOP))
    with Session(Journal(own_home), DockerEngine(private_engine.address)) as session:
        result = session.run(BUSY, deadline_seconds=1, watcher=watcher)
        took = time.monotonic() - watcher.began
        receipt = result.receipt
        assert took < 1 + 1 + 5 * 1.0 + 1, "deadline, backstop, and five calls: to end it, and to have it removed"
        assert receipt.observed.end.how == "box_lost"
        assert receipt.problem is not None
        assert receipt.problem.code == "engine_timeout"
        assert receipt.observed.box.removed is None
        assert_processes(0, outside, result, time.monotonic())
        private_engine.send(signal.SIGCONT)
        limit = time.monotonic() + 10
        while session.engine().containers():
            assert time.monotonic() < limit
            time.sleep(0.05)
        assert session.run("print(2)").receipt.ok
    with Session(Journal(own_home), DockerEngine(private_engine.address)) as session:
        assert session.sweep().already_gone == (receipt.run.id,)
    assert list((own_home / "sessions").iterdir()) == []


def test_a_box_that_waits_as_its_engine_is_killed_ends_by_itself_and_the_next_cell_gets_another(
    private_engine: PrivateEngine, own_home: Path, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The box's stdin does not end with an engine that is killed: its wait has a bound of its own."""
    monkeypatch.setattr(seal, "WAITING_SECONDS", 4.0)
    monkeypatch.setenv("PYBOX_POOL", "1")
    with Session(Journal(own_home), DockerEngine(private_engine.address), in_advance=True) as session:
        session.expect("stdlib")
        wait_for_a_box(session)
        made = time.monotonic()
        (box,) = (found.id for found in session.engine().containers())
        assert outside.cgroups(box)
        private_engine.send(signal.SIGKILL)
        private_engine.wait()
        while any(Path(folder, "cgroup.procs").read_text() for folder in outside.cgroups(box)):
            assert time.monotonic() < made + 4 + 3
            time.sleep(0.05)
        assert session.run("print(1)").receipt.observed.end.how == "not_started"
        private_engine.start()
        receipt = session.run("print(2)").receipt
        assert receipt.ok
        assert receipt.observed.box.id != box
    assert outside.cgroups(box) == []


def test_an_engine_that_is_started_anew_while_a_box_waits_gives_the_next_cell_another_and_doctor_has_nothing_to_say(
    private_engine: PrivateEngine, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBOX_POOL", "1")
    monkeypatch.setattr(pool, "FAILED_SECONDS", 1.0)
    with Session(Journal(own_home), DockerEngine(private_engine.address), in_advance=True) as session:
        session.expect("stdlib")
        wait_for_a_box(session)
        (box,) = (found.id for found in session.engine().containers())
        private_engine.send(signal.SIGTERM)
        private_engine.wait()
        private_engine.start()
        receipt = session.run("print(1)").receipt
        assert receipt.ok, receipt.to_json(indent=1)
        assert receipt.observed.box.id != box
        wait_for_a_box(session)
        assert session.run("print(2)").receipt.observed.box.waited is not None
    assert of_boxes_in_advance(own_home).state == "ok"


def wait_for_a_box(session: Session) -> None:
    # An engine that has just been started refuses now and then what it takes later: the pool asks again after a while.
    limit = time.monotonic() + 40
    while not session.waiting():
        assert time.monotonic() < limit
        time.sleep(0.02)
