"""The engine itself ends, or hangs, while a program runs: an engine of the test's own, never the computer's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from pybox_kernel import box
from pybox_kernel.docker_engine import DockerEngine
from pybox_kernel.errors import EngineError
from pybox_kernel.image_store import ImageStore, RecordedImage
from pybox_kernel.journal import Journal
from pybox_kernel.policy import STDLIB
from pybox_kernel.runner import RunResult
from pybox_kernel.session import Session
from tests.conftest import Outside

pytestmark = pytest.mark.engine

START_SECONDS = 20.0


class PrivateEngine:
    """A dockerd with all of its files in a folder of its own, and no network; it starts a containerd of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"unix://{folder}/engine.sock"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = ["dockerd", f"--host={self.address}", f"--pidfile={self.folder}/pid"]
        command += [f"--data-root={self.folder}/data", f"--exec-root={self.folder}/exec"]
        command += ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-masq=false", "--ip-forward=false"]
        (self.folder / "pid").unlink(missing_ok=True)
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PATH": path})
        limit = time.monotonic() + START_SECONDS
        while not self.answers():
            assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            assert time.monotonic() < limit, "the engine did not start"
            time.sleep(0.05)

    def answers(self) -> bool:
        engine = DockerEngine(self.address)
        try:
            return bool(engine.facts().version)
        except EngineError:
            return False
        finally:
            engine.close()

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self) -> None:
        assert self.process is not None
        self.process.wait(30)

    def end(self) -> None:
        """In order: an engine that was killed is started again first, to end what it had started."""
        assert self.process is not None
        self.send(signal.SIGCONT)
        if self.process.poll() is not None:
            self.start()
        self.send(signal.SIGTERM)
        self.wait()
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            if line.split()[1].startswith(f"{self.folder}/"):
                subprocess.run(["umount", line.split()[1]], check=True)


@pytest.fixture(scope="module")
def private_engine(box_image: RecordedImage, outside: Outside) -> Iterator[PrivateEngine]:
    """With the box image in it."""
    folder = Path(tempfile.mkdtemp(prefix="pybox-engine-"))  # a short path: sockets stand in it
    engine = PrivateEngine(folder)
    engine.start()
    try:
        api = docker.APIClient(base_url=engine.address, version="1.41")
        for _ in api.load_image(outside.api.get_image(box_image.id)):
            pass
        api.close()
        yield engine
    finally:
        engine.end()
        shutil.rmtree(folder)


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
        assert_processes(1, outside, result, watcher.began + 3 + 0.3)  # the box's own part, which waits for its release
        assert_processes(0, outside, result, watcher.began + 3 + STDLIB.release_seconds + 0.7)
        assert session.run("print(1)").receipt.observed.end.how == "not_started"
        private_engine.wait()
        private_engine.start()
        assert session.run("print(2)").stdout == "2\n"
        assert session.engine().containers() == [], "the engine removes at its start what it lost"
    with Session(Journal(own_home), DockerEngine(private_engine.address)) as session:
        assert session.sweep().already_gone == (receipt.run.id,)
    assert list((own_home / "sessions").iterdir()) == []


def test_an_engine_that_is_shut_down_during_a_run_does_not_put_off_its_deadline(
    private_engine: PrivateEngine, own_home: Path
) -> None:
    watcher = AtFirstWord(lambda: private_engine.send(signal.SIGTERM))
    with Session(Journal(own_home), DockerEngine(private_engine.address)) as session:
        receipt = session.run(BUSY, deadline_seconds=1.5, watcher=watcher).receipt
        assert time.monotonic() - watcher.began < 3
        assert receipt.observed.end.how == "deadline"
        assert receipt.observed.meters.final
        assert receipt.observed.meters.ran_seconds == pytest.approx(1.5, abs=0.1)
        assert (receipt.observed.box.removed is None) == ("removed" in {item.what for item in receipt.unknown})
        private_engine.wait()
        private_engine.start()
        assert session.run("print(2)").receipt.ok
        assert session.engine().containers() == []


def test_an_engine_that_hangs_during_a_run_is_not_waited_for_without_end(
    private_engine: PrivateEngine, own_home: Path, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call's own time limit is a second here; their sum is what is looked at."""
    monkeypatch.setattr("pybox_kernel.docker_engine.ANSWER_SECONDS", 1.0)
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
