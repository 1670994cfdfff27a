"""From a box's first trace to its last: nothing is lost, and nothing of another's is touched."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pybox_kernel.docker_engine import DockerEngine
from pybox_kernel.errors import EngineTimeout
from pybox_kernel.image_store import ImageStore, RecordedImage
from pybox_kernel.journal import Entry, Journal, new_token
from pybox_kernel.leftovers import sweep
from pybox_kernel.policy import STDLIB
from pybox_kernel.runner import Stop
from pybox_kernel.session import Session
from tests.boxes.altered import AlteredEngine
from tests.cases import case
from tests.conftest import Outside

pytestmark = pytest.mark.engine

SUPERVISOR = """
import os, signal, sys
from pybox_kernel import docker_engine
from pybox_kernel.session import Session

class Dies(docker_engine.DockerEngine):
    def create(self, name, config):
        box = super().create(name, config)
        if sys.argv[1] == "before the answer of create": os.kill(os.getpid(), signal.SIGKILL)
        return box
    def attach(self, box):
        if sys.argv[1] == "after create": os.kill(os.getpid(), signal.SIGKILL)
        return super().attach(box)
    def start(self, box):
        if sys.argv[1] == "before start": os.kill(os.getpid(), signal.SIGKILL)
        super().start(box)
        if sys.argv[1] == "after start": os.kill(os.getpid(), signal.SIGKILL)
    def expect_removal(self, box):
        if sys.argv[1] == "while the program runs":
            import threading, time
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return super().expect_removal(box)

from pybox_kernel.journal import Journal, home_folder
with Session(Journal(home_folder()), Dies()) as session:
    session.run("import time; time.sleep(20)", deadline_seconds=20)
"""
MOMENTS = (
    "before the answer of create",
    "after create",
    "before start",
    "after start",
    "while the program runs",
)


@pytest.fixture
def own_home(tmp_path: Path, box_image: RecordedImage) -> Path:
    """A state folder, and so an installation, of this test's own."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    ImageStore(folder).record(box_image)
    return folder


def installation(folder: Path) -> str:
    return (folder / "installation").read_text().strip()


def cleanup(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pybox_kernel.cli", "cleanup"],
        env={**os.environ, "PYBOX_HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@case("krn-restart-orphans", "krn-interrupt-create", "krn-create-failed-started")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_supervisor_killed_at_any_moment_leaves_nothing_after_the_next_start(
    moment: str, own_home: Path, outside: Outside
) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", SUPERVISOR, moment], env={**os.environ, "PYBOX_HOME": str(own_home)}, check=False
    )
    assert killed.returncode == -9
    left = outside.boxes(installation=installation(own_home))
    if moment in ("after start", "while the program runs"):
        for box in left:
            outside.wait_gone(box, 2.0)
    else:
        assert len(left) == 1, "a box that was made and never started"
    found = cleanup(own_home)
    assert found.returncode == 0, found.stderr
    if moment in ("after start", "while the program runs"):
        assert "Removed 0" in found.stdout
    else:
        assert "Removed 1" in found.stdout
        outside.wait_gone(left[0], 1.0)
    assert not outside.boxes(installation=installation(own_home))
    assert not list((own_home / "sessions").iterdir())


def test_the_next_session_says_what_an_earlier_one_left(
    own_home: Path, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBOX_HOME", str(own_home))
    subprocess.run([sys.executable, "-c", SUPERVISOR, "after create"], check=False)
    with Session.open() as session:
        assert session.run("print(1)").notices == ("Removed 1 box(es) that an earlier session left behind.",)
        assert session.run("print(1)").notices == ()


def test_a_running_box_of_a_live_session_is_not_touched(own_home: Path, outside: Outside) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "pybox_kernel.cli", "run", "-", "--timeout", "10"],
        env={**os.environ, "PYBOX_HOME": str(own_home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as live:
        assert live.stdin is not None
        assert live.stdout is not None
        live.stdin.write("import time\nprint('up', flush=True)\ntime.sleep(1.5)\nprint('still here')")
        live.stdin.close()
        assert live.stdout.readline() == "up\n"
        found = cleanup(own_home)
        assert (found.returncode, found.stdout) == (0, "Removed 0, already gone 0.\n")
        assert live.stdout.read() == "still here\n"
        assert live.wait(10) == 0


@pytest.fixture
def strangers(outside: Outside, box_image: RecordedImage, own_home: Path) -> Iterator[list[str]]:
    """Containers that look like a dead session's box, each in all but one thing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYBOX_HOME", str(own_home))
        journal = Journal(own_home)
    run = new_token()
    labels = {
        "org.pybox.installation": journal.installation,
        "org.pybox.session": journal.session,
        "org.pybox.run": run,
        "org.pybox.uid": "12345",
        "org.pybox.expires": "1",
    }
    made = []

    def make(name: str, has: dict[str, str]) -> None:
        config = {"Image": box_image.id, "Cmd": ["/bin/true"], "Labels": has, "HostConfig": {"NetworkMode": "none"}}
        made.append(outside.api.create_container_from_config(config, name)["Id"])

    make(f"pybox-{run}", {key: value for key, value in labels.items() if key != "org.pybox.expires"})
    make(f"pybox-{run}0", labels)
    make(f"x-pybox-{run}", labels)
    make(f"pybox-{new_token()}", {**labels, "org.pybox.session": new_token()})
    journal.write(
        Entry(
            run=run,
            name=f"pybox-{run}",
            engine="unix:///var/run/docker.sock",
            labels=labels,
            container_id=None,
            written_at=0.0,
        )
    )
    journal.release()  # as if the process had died
    yield made
    for box in made:
        outside.api.remove_container(box, force=True)


def test_a_strangers_container_that_looks_like_ours_is_not_touched(
    strangers: list[str], own_home: Path, engine: DockerEngine, outside: Outside
) -> None:
    journal = Journal(own_home)
    found = sweep(engine, journal)
    journal.close()
    assert found.removed == ()
    assert [outside.api.inspect_container(box)["State"]["Status"] for box in strangers] == ["created"] * 4


@case("krn-failed-start-leftover", "krn-remove-not-proof")
def test_a_box_whose_start_fails_is_removed_and_the_receipt_says_so(home: Path, outside: Outside) -> None:
    class Unstartable(AlteredEngine):
        def start(self, container_id: str) -> None:
            outside.api.update_container(container_id, cpuset_cpus="0")
            raise EngineTimeout("The engine did not start the box.", "Try again.")

    engine = DockerEngine()
    with Session(Journal(home), Unstartable(engine)) as session:
        receipt = session.run("print(1)").receipt
    engine.close()
    assert receipt.observed.end.how == "not_started"
    assert receipt.problem is not None
    assert receipt.problem.code == "engine_timeout"
    assert receipt.observed.box.removed is True
    assert receipt.observed.box.id is not None
    outside.wait_gone(receipt.observed.box.id, 0.5)


@case("krn-remove-not-proof")
def test_a_removal_that_the_engine_only_claims_is_not_called_confirmed(home: Path, outside: Outside) -> None:
    class Forgets(AlteredEngine):
        """Says the box is gone while it is not."""

        def remove(self, container_id: str) -> None:
            return None

        def create(self, name: str, config: Any) -> str:
            return super().create(name, config)

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

        def display(self, text: str) -> None: ...

    receipt = session.run("import time; time.sleep(30)", deadline_seconds=30, watcher=Stopper(), stop=stop).receipt
    assert time.monotonic() - asked[0] < 0.5
    assert receipt.observed.end.how == "stopped"
    assert receipt.observed.box.removed is True
    assert session.run("print(1)").receipt.ok


@case("krn-weak-fallback")
def test_without_an_engine_nothing_runs_anywhere(own_home: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    done = subprocess.run(
        [sys.executable, "-m", "pybox_kernel.cli", "run", "-"],
        input=f"open({str(mark)!r}, 'w')",
        env={**os.environ, "PYBOX_HOME": str(own_home), "DOCKER_HOST": f"unix://{tmp_path}/none.sock"},
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

        def display(self, text: str) -> None: ...

    if not Path("/sys/fs/cgroup/memory").exists():
        pytest.fail("this test reads cgroup v1 files; on a cgroup v2 computer it needs the names of v2")
    receipt = session.run("import time; time.sleep(0.5)", watcher=Looks()).receipt
    assert receipt.asked.policy == STDLIB
    assert found["memory.limit_in_bytes"] == found["memory.memsw.limit_in_bytes"] == str(STDLIB.memory_bytes)
    assert found["pids.max"] == str(STDLIB.tasks)


def test_runs_at_once_have_a_user_each_and_none_is_mixed_up(session: Session) -> None:
    def one(number: int) -> tuple[int, str, int | None, bool]:
        result = session.run(f"import time; time.sleep(0.3); print({number})", deadline_seconds=10)
        receipt = result.receipt
        return number, result.stdout, receipt.asked.uid, receipt.ok

    with ThreadPoolExecutor(6) as threads:
        results = list(threads.map(one, range(6)))
    assert [(number, printed, ok) for number, printed, _, ok in results] == [(n, f"{n}\n", True) for n in range(6)]
    assert len({uid for _, _, uid, _ in results}) == 6


@pytest.mark.parametrize("way", ["container", "box"])
def test_each_weaker_witness_verifies_the_seal_and_says_who_it_was(
    way: str, own_home: Path, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBOX_HOME", str(own_home))
    monkeypatch.setenv("PYBOX_WITNESS", way)
    with Session.open() as session:
        receipt = session.run("print(1)").receipt
        helpers = outside.boxes(installation=installation(own_home), role="witness")
        assert len(helpers) == (1 if way == "container" else 0)
        for helper in helpers:
            record = outside.api.inspect_container(helper)
            assert record["HostConfig"]["CapDrop"] == ["ALL"]
            assert record["HostConfig"]["ReadonlyRootfs"] is True
            assert record["HostConfig"]["NetworkMode"] == "none"
    seal = receipt.observed.seal
    assert seal.before_start
    assert seal.kernel.source == ("witness container" if way == "container" else "the box's own reading")
    unknown = {item.what for item in receipt.unknown}
    assert receipt.observed.meters.final is (way == "container")
    assert ("memory_peak_bytes" in unknown) is (way == "box")
    for helper in helpers:
        outside.wait_gone(helper, 2.0)


@pytest.mark.timeout(240)
def test_two_hundred_runs_leave_nothing_behind(session: Session, outside: Outside) -> None:
    def held() -> tuple[int, int]:
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    for _ in range(3):
        session.run("print(0)")
    before = held()
    ids = []
    for number in range(200):
        result = session.run(f"print({number})")
        assert result.stdout == f"{number}\n", result.receipt.problem
        ids.append(result.receipt.observed.box.id)
    descriptors, threads = held()
    assert descriptors <= before[0] + 4
    assert threads <= before[1]
    everywhere = subprocess.run(
        ["find", "/sys/fs/cgroup", "-maxdepth", "4", "-type", "d"], capture_output=True, text=True
    )
    known = {line["Id"] for line in outside.api.containers(all=True)}
    assert not [box for box in ids if box is None or box in known or box in everywhere.stdout]
