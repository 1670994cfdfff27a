"""From a box's first trace to its last: nothing is lost, and nothing of another's is touched."""

from __future__ import annotations

import gc
import os
import random
import resource
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pybox_kernel.boxes.journal import Journal
from pybox_kernel.boxes.leftovers import sweep
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.errors import EngineRefused, EngineTimeout
from pybox_kernel.images.store import ImageStore, RecordedImage
from pybox_kernel.policy import STDLIB
from pybox_kernel.running.runner import RunResult, Stop
from pybox_kernel.sessions.session import Session
from tests.boxes.altered import AlteredEngine
from tests.boxes.conftest import Installation
from tests.cases import case
from tests.conftest import Outside

pytestmark = pytest.mark.engine

SUPERVISOR = """
import os, signal, sys
from pybox_kernel.docker_engine import engine as docker_engine
from pybox_kernel.inside import witness
from pybox_kernel.boxes.journal import Journal, home_folder
from pybox_kernel.sessions.session import Session

# What began in the background of a shell would not hear of it.
signal.signal(signal.SIGINT, signal.default_int_handler)

def reached(moment):
    if sys.argv[1] == moment:
        sys.argv[1] = ""
        os.kill(os.getpid(), getattr(signal, sys.argv[2]))

class Watched(docker_engine.DockerEngine):
    def create(self, name, config):
        reached("before create")
        box = super().create(name, config)
        reached("before the answer of create")
        return box
    def attach(self, box):
        reached("after create")
        connection = super().attach(box)
        reached("after attach")
        return connection
    def start(self, box):
        super().start(box)
        reached("before the answer of start")
    def expect_removal(self, box):
        removal = super().expect_removal(box)
        class Watched:
            def status(self, seconds):
                reached("when the box is released")
                return removal.status(seconds)
        return Watched()

class Watcher:
    def started(self, deadline_seconds): ...
    def output(self, stream, text): reached("while the program runs")
    def display(self, display): ...

def meters(folders, read=witness.meters):
    reached("when the program has ended")
    return read(folders)

witness.meters = meters
with Session(Journal(home_folder()), Watched()) as session:
    source = "print('up', flush=True)"
    if sys.argv[1] == "while the program runs":
        source += "; import time; time.sleep(20)"
    try:
        session.run(source, deadline_seconds=20, watcher=Watcher())
    except KeyboardInterrupt:
        print("interrupted", session.run("print('later')").stdout, end="")
"""
NOTHING_MADE = ("before create",)
NEVER_STARTED = ("before the answer of create", "after create", "after attach")
ENDS_BY_ITSELF = (
    "before the answer of start",
    "while the program runs",
    "when the program has ended",
    "when the box is released",
)
MOMENTS = (*NOTHING_MADE, *NEVER_STARTED, *ENDS_BY_ITSELF)


@case("krn-restart-orphans", "krn-interrupt-create", "krn-create-failed-started")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_supervisor_killed_at_any_moment_leaves_nothing_after_the_next_start(
    moment: str, own: Installation, outside: Outside
) -> None:
    killed = own.python(SUPERVISOR, moment, "SIGKILL")
    assert killed.communicate(timeout=30) == ("", "")
    assert killed.returncode == -signal.SIGKILL
    (entry,) = own.entries()
    left = own.boxes()
    if moment in ENDS_BY_ITSELF:
        for box in left:
            outside.wait_gone(box, 2.0)
    else:
        assert len(left) == (0 if moment in NOTHING_MADE else 1)
    found = own.cleanup()
    outcome = {**dict.fromkeys(ENDS_BY_ITSELF, "already_gone"), **dict.fromkeys(NEVER_STARTED, "removed")}
    assert found[outcome.get(moment, "unconfirmed")] == [entry.stem], "a box that may still be made is not called gone"
    for box in left:
        outside.wait_gone(box, 0.5)
    if moment not in NOTHING_MADE:
        assert own.sessions() == []


@case("krn-interrupt-create", "krn-interrupt-run")
@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupt_at_any_moment_leaves_no_box_and_a_session_that_goes_on(
    moment: str, own: Installation, outside: Outside
) -> None:
    interrupted = own.python(SUPERVISOR, moment, "SIGINT")
    assert interrupted.communicate(timeout=30) == ("interrupted later\n", "")
    assert interrupted.returncode == 0
    assert own.boxes() == []
    if moment in NOTHING_MADE:
        assert own.cleanup()["unconfirmed"], "the engine was asked, and may still make it"
    else:
        assert own.sessions() == []


def test_the_next_session_says_what_an_earlier_one_left(own: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    own.python(SUPERVISOR, "after create", "SIGKILL").communicate(timeout=30)
    monkeypatch.setenv("PYBOX_HOME", str(own.home))
    with Session.open() as session:
        assert session.run("print(1)").notices == ("Removed 1 box that an earlier session left behind.",)
        assert session.run("print(1)").notices == ()


@pytest.fixture
def empty_image(engine: DockerEngine, box_image: RecordedImage, tmp_path: Path) -> Iterator[RecordedImage]:
    """An image without the program that a box starts: the container runtime refuses to start it."""
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    reference = f"pybox-test-empty:{os.getpid()}"
    image_id = engine.import_rootfs(str(tmp_path / "empty.tar"), reference)
    yield box_image.model_copy(update={"id": image_id})
    engine.remove_image(reference)


@case("krn-create-failed-started", "krn-failed-start-leftover")
def test_a_box_that_the_runtime_cannot_start_is_removed_and_the_receipt_says_so(
    own: Installation,
    outside: Outside,
    box_image: RecordedImage,
    empty_image: RecordedImage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYBOX_HOME", str(own.home))
    store = ImageStore(own.home)
    store.record(empty_image)
    with Session.open() as session:
        first = session.run("print(1)").receipt
        store.record(box_image)
        assert session.run("print(1)").receipt.ok
        store.record(empty_image)
        second = session.run("print(1)").receipt
        assert own.entries() == []
    for receipt in (first, second):
        assert receipt.observed.end.how == "not_started"
        assert receipt.problem is not None
        assert receipt.problem.code.startswith("engine")
        assert "start a box" in receipt.problem.message
        assert "pybox-python" in receipt.problem.message
        assert receipt.observed.box.removed is True
        assert receipt.observed.box.id is not None
        outside.wait_gone(receipt.observed.box.id, 0.1)
    # Whether the engine's cgroups are this computer's is known only after a box was seen in one.
    assert [item.what for item in first.unknown] == ["cgroups"]
    assert second.unknown == ()


@case("krn-failed-start-leftover")
def test_a_box_whose_cgroup_lives_on_after_a_failed_start_is_not_called_gone(
    own: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a runtime leaves it that fails half-way: the engine has forgotten the box, a process of it lives on."""
    left: list[Path] = []

    class FailsHalfWay(AlteredEngine):
        def start(self, container_id: str) -> None:
            left.append(next(Path("/sys/fs/cgroup").glob("pids/docker")) / container_id)
            left[0].mkdir()
            (left[0] / "cgroup.procs").write_text(str(process.pid))
            raise EngineRefused("The engine refused to start a box.", "Try again.")

    engine = DockerEngine()
    with (
        subprocess.Popen(["sleep", "60"]) as process,
        Session(Journal(own.home), FailsHalfWay(engine)) as session,  # type: ignore[arg-type]
    ):
        receipt = session.run("print(1)").receipt
        assert receipt.observed.box.removed is False
        assert "cgroup still exists" in {item.what: item.why for item in receipt.unknown}["cleaning up"]
        assert len(own.entries()) == 1
        process.kill()
        process.wait()
        left[0].rmdir()
    engine.close()
    assert own.cleanup()["already_gone"] == [receipt.run.id]


def test_a_create_that_the_engine_refuses_leaves_nothing_to_be_settled(own: Installation, engine: DockerEngine) -> None:
    def unknown_image(body: dict[str, Any]) -> None:
        body["Image"] = "sha256:" + "0" * 64

    with Session(Journal(own.home), AlteredEngine(engine, unknown_image)) as session:  # type: ignore[arg-type]
        receipt = session.run("print(1)").receipt
        assert receipt.problem is not None
        assert receipt.problem.code == "engine_not_found"
        assert (receipt.observed.box.id, receipt.observed.box.removed) == (None, None)
        assert receipt.unknown == ()
        assert own.entries() == []


@case("krn-remove-not-proof")
def test_a_removal_that_the_engine_only_claims_is_not_called_confirmed(home: Path, outside: Outside) -> None:
    class Forgets(AlteredEngine):
        """Says the box is gone while it is not."""

        def remove(self, container_id: str) -> None:
            return None

        def start(self, container_id: str) -> None:
            raise EngineTimeout("The engine did not start the box.", "Try again.")

        def wait_removed(self, container_id: str, seconds: float) -> int | None:
            return 0

    engine = DockerEngine()
    with Session(Journal(home), Forgets(engine)) as session:
        receipt = session.run("print(1)").receipt
    assert receipt.observed.box.removed is False
    assert any(item.what == "cleaning up" for item in receipt.unknown)
    assert receipt.observed.box.id is not None
    journal = Journal(home)
    assert receipt.run.id in sweep(engine, journal).removed, "the next start finds it by its journal"
    journal.close()
    engine.close()
    outside.wait_gone(receipt.observed.box.id, 1.0)


@pytest.mark.alone
@case("krn-interrupt-run")
def test_a_stop_ends_the_box_within_half_a_second_and_the_session_goes_on(session: Session, outside: Outside) -> None:
    stop = Stop()
    asked: list[float] = []

    class Stopper:
        def started(self, deadline_seconds: float) -> None:
            def ask() -> None:
                asked.append(time.monotonic())
                stop.set()

            threading.Timer(0.2, ask).start()

        def output(self, stream: str, text: str) -> None: ...

        def display(self, display: object) -> None: ...

    receipt = session.run("import time; time.sleep(30)", deadline_seconds=30, watcher=Stopper(), stop=stop).receipt
    assert time.monotonic() - asked[0] < 0.5
    assert receipt.observed.end.how == "stopped"
    assert receipt.observed.box.removed is True
    assert session.run("print(1)").receipt.ok


@case("krn-weak-fallback")
def test_without_an_engine_nothing_runs_anywhere(own: Installation, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    done = subprocess.run(
        [sys.executable, "-m", "pybox_kernel.cli", "run", "-"],
        input=f"open({str(mark)!r}, 'w')",
        env={**own.environment, "DOCKER_HOST": f"unix://{tmp_path}/none.sock"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 125
    assert "Not run" in done.stderr
    assert "No container engine was found" in done.stderr
    assert not mark.exists()


@case("krn-policy-not-applied")
def test_the_kernels_own_files_hold_every_limit_that_the_receipt_claims(session: Session, outside: Outside) -> None:
    found: dict[str, str] = {}

    class Looks:
        def started(self, deadline_seconds: float) -> None:
            box = outside.wait_running()
            (memory,) = [f for f in outside.cgroups(box) if "/memory/" in f]
            for file in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):
                found[file] = Path(memory, file).read_text().strip()
            (pids,) = [f for f in outside.cgroups(box) if "/pids/" in f]
            found["pids.max"] = Path(pids, "pids.max").read_text().strip()

        def output(self, stream: str, text: str) -> None: ...

        def display(self, display: object) -> None: ...

    if not Path("/sys/fs/cgroup/memory").exists():
        pytest.fail("this test reads cgroup v1 files; on a cgroup v2 computer it needs the names of v2")
    receipt = session.run("import time; time.sleep(0.5)", watcher=Looks()).receipt
    assert receipt.asked.policy == STDLIB
    assert found["memory.limit_in_bytes"] == found["memory.memsw.limit_in_bytes"] == str(STDLIB.memory_bytes)
    assert found["pids.max"] == str(STDLIB.tasks)


AT_ONCE = """
import sys, threading
from pybox_kernel.sessions.session import Session, Stop

stop, ready = Stop(), []
class Watcher:
    def started(self, deadline_seconds): ...
    def output(self, stream, text): print("up", flush=True)
    def display(self, display): ...

threading.Thread(target=lambda: (sys.stdin.read(1), stop.set()), daemon=True).start()
source = f"import os, time; print({sys.argv[1]!r}, os.getuid(), flush=True); time.sleep(25)"
with Session.open() as session:
    result = session.run(source, deadline_seconds=25, watcher=Watcher(), stop=stop)
receipt = result.receipt
print(result.stdout.strip(), receipt.asked.uid, receipt.observed.end.how, receipt.observed.box.removed)
"""


def test_runs_at_once_of_threads_and_processes_have_a_user_each_and_none_is_mixed_up(
    own: Installation, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight of one session and four of others, which know nothing of one another, all alive at one moment."""
    monkeypatch.setenv("PYBOX_HOME", str(own.home))
    processes = [own.python(AT_ONCE, f"process-{number}") for number in range(4)]
    up = threading.Semaphore(0)
    stops = [Stop() for _ in range(8)]

    class Watcher:
        def started(self, deadline_seconds: float) -> None: ...

        def output(self, stream: str, text: str) -> None:
            up.release()

        def display(self, display: object) -> None: ...

    with Session.open() as session, ThreadPoolExecutor(8) as threads:

        def one(number: int) -> RunResult:
            source = f"import os, time; print('thread-{number}', os.getuid(), flush=True); time.sleep(25)"
            return session.run(source, deadline_seconds=25, watcher=Watcher(), stop=stops[number])

        running = [threads.submit(one, number) for number in range(8)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
        for _ in stops:
            assert up.acquire(timeout=30)
        records = [outside.api.inspect_container(box) for box in own.boxes()]
        assert [record["State"]["Status"] for record in records] == ["running"] * 12
        users = {record["Config"]["User"].partition(":")[0] for record in records}
        assert len(users) == 12
        for stop in stops:
            stop.set()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("!")
        printed = {process.communicate(timeout=20) for process in processes}
        results = [run.result() for run in running]
    uids = {result.stdout.split()[1] for result in results}
    assert [result.stdout for result in results] == [
        f"thread-{number} {result.receipt.asked.uid}\n" for number, result in enumerate(results)
    ]
    assert {(result.receipt.observed.end.how, result.receipt.observed.box.removed) for result in results} == {
        ("stopped", True)
    }
    for number in range(4):
        (uid,) = {line.split()[1] for line, _ in printed if line.startswith(f"process-{number} ")}
        assert (f"process-{number} {uid} {uid} stopped True\n", "") in printed
        uids.add(uid)
    assert uids == users


def test_a_user_id_that_another_container_has_is_not_used(
    own: Installation, outside: Outside, box_image: RecordedImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBOX_HOME", str(own.home))
    taken, free = 43210, 43211
    chosen = iter([taken, taken, free])

    class Chooses(random.SystemRandom):
        def randint(self, a: int, b: int) -> int:
            return next(chosen)

    monkeypatch.setattr("pybox_kernel.boxes.box.random.SystemRandom", Chooses)
    config = {"Image": box_image.id, "Cmd": ["/bin/true"], "Labels": {"org.pybox.uid": str(taken)}}
    other = outside.api.create_container_from_config(config, f"someone-else-{os.getpid()}")["Id"]
    try:
        with Session.open() as session:
            result = session.run("import os; print(os.getuid())")
            assert result.receipt.ok, result.receipt.problem
            assert (result.stdout, result.receipt.asked.uid) == (f"{free}\n", free)
            assert own.entries() == []
        assert outside.api.inspect_container(other)["State"]["Status"] == "created"
    finally:
        outside.api.remove_container(other, force=True)
    assert own.boxes() == []


def test_the_connections_of_a_thread_end_with_it(session: Session) -> None:
    def held() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    def one() -> None:
        assert session.run("print(1)").receipt.ok

    def in_a_thread_of_its_own() -> None:
        thread = threading.Thread(target=one)
        thread.start()
        thread.join()

    in_a_thread_of_its_own()
    gc.collect()
    before = held()
    for _ in range(6):
        in_a_thread_of_its_own()
    gc.collect()
    assert held() <= before


def test_a_process_with_very_many_open_files_learns_how_its_box_ended(session: Session) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, before[1]))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        receipt = session.run("print(1)").receipt
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert receipt.ok
    assert "the engine recorded exit status 0" in receipt.observed.end.evidence


@pytest.mark.timeout(240)
@pytest.mark.parametrize("runs", [25, pytest.param(200, marks=pytest.mark.soak)])
def test_many_runs_leave_nothing_behind(session: Session, outside: Outside, runs: int) -> None:
    def held() -> tuple[int, int, int]:
        """Descriptors, threads, and resident memory in MB."""
        gc.collect()
        (resident,) = [line for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line]
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), int(resident.split()[1]) // 1024

    for _ in range(10):
        session.run("print(0)")
    before = held()
    ids = []
    for number in range(runs):
        result = session.run(f"print({number})")
        assert result.stdout == f"{number}\n", result.receipt.problem
        ids.append(result.receipt.observed.box.id)
    descriptors, threads, megabytes = held()
    assert descriptors <= before[0] + 1
    assert threads <= before[1]
    assert megabytes <= before[2] + 10
    everywhere = subprocess.run(
        ["find", "/sys/fs/cgroup", "-maxdepth", "4", "-type", "d"], capture_output=True, text=True
    )
    known = {line["Id"] for line in outside.api.containers(all=True)}
    assert not [box for box in ids if box is None or box in known or box in everywhere.stdout]
