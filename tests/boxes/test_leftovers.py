"""What a dead session left is removed and said; what is anything else is not touched.

The containers are real. Most were never started, as a supervisor leaves them that was killed before it did.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pybox_kernel.boxes import leftovers
from pybox_kernel.boxes.journal import Entry, Journal, new_token
from pybox_kernel.boxes.leftovers import Sweep, sweep
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.engine_choice import DEFAULT_ADDRESS
from pybox_kernel.images.store import RecordedImage
from pybox_kernel.sessions.session import Session
from tests.boxes.conftest import Installation
from tests.conftest import Outside

pytestmark = pytest.mark.engine

Make = Callable[..., str]
SWEEP = """
from pybox_kernel.sessions.session import Session
with Session.open() as session:
    found = session.sweep()
"""


@pytest.fixture
def make(outside: Outside, box_image: RecordedImage) -> Iterator[Make]:
    """Makes a container; returns its full id. All are gone after the test, whoever they belong to."""
    made: list[str] = []

    def make(name: str, labels: dict[str, str], command: str = "true", start: bool = False) -> str:
        config: dict[str, Any] = {
            "Image": box_image.id,
            "Cmd": ["/bin/sh", "-c", command],
            "Labels": labels,
            "HostConfig": {"NetworkMode": "none"},
        }
        made.append(outside.api.create_container_from_config(config, name)["Id"])
        if start:
            outside.api.start(made[-1])
        return made[-1]

    yield make
    for container in made:
        if outside.api.containers(all=True, filters={"id": container}):
            outside.api.remove_container(container, force=True)


class Dead:
    """A session that died after it had journalled one box."""

    def __init__(self, own: Installation, **changes: Any) -> None:
        journal = Journal(own.home)
        self.folder = journal.folder
        self.run = new_token()
        self.name = f"pybox-{self.run}"
        self.labels = {
            "org.pybox.installation": journal.installation,
            "org.pybox.session": journal.session,
            "org.pybox.run": self.run,
            "org.pybox.uid": "12345",
            "org.pybox.expires": "1",
        }
        known = {"engine": DEFAULT_ADDRESS, "container_id": None, "written_at": 0.0, **changes}
        journal.write(Entry.model_validate({"run": self.run, "name": self.name, "labels": self.labels, **known}))
        journal.release()

    @property
    def entry(self) -> Path:
        return self.folder / f"{self.run}.json"

    def knows(self, container: str) -> None:
        """The session had the engine's answer, too."""
        entry = json.loads(self.entry.read_bytes())
        self.entry.write_text(json.dumps({**entry, "container_id": container}))


def swept(own: Installation, engine: DockerEngine) -> Sweep:
    journal = Journal(own.home)
    try:
        return sweep(engine, journal)
    finally:
        journal.close()


def states(outside: Outside, containers: list[str]) -> list[str]:
    return [outside.api.inspect_container(container)["State"]["Status"] for container in containers]


# What is removed


@pytest.mark.parametrize("answered", [True, False], ids=["its id is known", "its id is not known"])
def test_a_box_of_a_dead_session_is_removed(
    answered: bool, own: Installation, make: Make, engine: DockerEngine, outside: Outside
) -> None:
    dead = Dead(own)
    box = make(dead.name, dead.labels)
    if answered:
        dead.knows(box)
    assert swept(own, engine) == Sweep(removed=(dead.run,), already_gone=(), unconfirmed=())
    outside.wait_gone(box, 0.1)
    assert own.sessions() == []


def test_one_that_still_runs_is_ended_with_all_its_processes(
    own: Installation, make: Make, engine: DockerEngine, outside: Outside
) -> None:
    dead = Dead(own)
    box = make(dead.name, dead.labels, "sleep 60 & sleep 60", start=True)
    assert outside.cgroups(box)
    assert swept(own, engine).removed == (dead.run,)
    outside.wait_gone(box, 0.5)


def test_one_that_is_gone_already_is_only_struck(own: Installation, engine: DockerEngine) -> None:
    dead = Dead(own, container_id="f" * 64)
    assert swept(own, engine) == Sweep(removed=(), already_gone=(dead.run,), unconfirmed=())
    assert own.sessions() == []


def test_the_command_says_what_it_removed_in_words(own: Installation, make: Make) -> None:
    dead = Dead(own)
    make(dead.name, dead.labels)
    Dead(own, container_id="f" * 64)
    command = [sys.executable, "-m", "pybox_kernel.cli", "cleanup"]
    done = subprocess.run(command, env=own.environment, capture_output=True, text=True, check=True)
    assert done.stdout == "Removed 1, already gone 1.\n"


def test_sweeps_of_several_processes_at_once_remove_each_box_once(
    own: Installation, make: Make, outside: Outside
) -> None:
    dead = [Dead(own) for _ in range(6)]
    boxes = [make(session.name, session.labels) for session in dead]
    program = f"import sys; sys.stdin.read(1)\n{SWEEP}\nprint(*found.removed)"
    processes = [own.python(program) for _ in range(4)]
    removed = [run for process in processes for run in process.communicate("!", timeout=30)[0].split()]
    assert [process.returncode for process in processes] == [0] * 4
    assert sorted(removed) == sorted(session.run for session in dead)
    for box in boxes:
        outside.wait_gone(box, 0.5)
    assert own.sessions() == []


# What is not known


def test_a_box_the_engine_may_still_be_making_is_not_called_gone_before_a_minute(
    own: Installation, engine: DockerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = Dead(own, written_at=time.time())
    assert swept(own, engine) == Sweep(removed=(), already_gone=(), unconfirmed=(dead.run,))
    assert own.cleanup()["unconfirmed"] == [dead.run]
    monkeypatch.setenv("PYBOX_HOME", str(own.home))
    with Session.open() as session:
        (notice,) = session.run("print(1)").notices
    assert notice == "1 box of an earlier session could not be confirmed gone: run `pybox-kernel cleanup`."
    monkeypatch.setattr(leftovers, "UNANSWERED_SECONDS", 0.0)
    assert swept(own, engine).already_gone == (dead.run,)


def test_a_box_that_appears_late_is_removed_by_a_later_sweep(
    own: Installation, make: Make, engine: DockerEngine, outside: Outside
) -> None:
    dead = Dead(own, written_at=time.time())
    assert swept(own, engine).unconfirmed == (dead.run,)
    box = make(dead.name, dead.labels)
    assert swept(own, engine).removed == (dead.run,)
    outside.wait_gone(box, 0.1)


def test_a_box_at_another_engine_is_left_to_it_and_said(
    own: Installation, make: Make, engine: DockerEngine, outside: Outside, tmp_path: Path
) -> None:
    (tmp_path / "other.sock").symlink_to("/var/run/docker.sock")
    other = DockerEngine(f"unix://{tmp_path}/other.sock")
    dead = Dead(own, engine=other.address)
    box = make(dead.name, dead.labels)
    found = Sweep(removed=(), already_gone=(), unconfirmed=(dead.run,), elsewhere=(other.address,))
    assert swept(own, engine) == found
    assert states(outside, [box]) == ["created"]
    with Session(Journal(own.home)) as session:
        assert session.run("print(1)").notices == (), "nobody can do anything about it here"
    command = [sys.executable, "-m", "pybox_kernel.cli", "cleanup"]
    done = subprocess.run(command, env=own.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 125
    assert f"1 at another engine. Run `pybox-kernel cleanup --engine {other.address}`." in done.stdout
    assert swept(own, other).removed == (dead.run,)
    other.close()


def test_what_was_at_an_engine_that_ended_with_all_in_it_is_gone_and_only_that(own: Installation) -> None:
    ended, other = Dead(own, engine="unix:///vm.sock"), Dead(own, engine="unix:///other.sock")
    journal, engine = Journal(own.home), DockerEngine()
    found = leftovers.sweep(engine, journal, lambda entry: entry.engine == "unix:///vm.sock")
    journal.close()
    engine.close()
    assert (found.already_gone, found.unconfirmed) == ((ended.run,), (other.run,))


def test_without_an_engine_nothing_is_struck(own: Installation, make: Make, tmp_path: Path) -> None:
    (tmp_path / "other.sock").symlink_to("/var/run/docker.sock")
    own.environment["DOCKER_HOST"] = f"unix://{tmp_path}/other.sock"
    dead = Dead(own, engine=own.environment["DOCKER_HOST"])
    make(dead.name, dead.labels)
    (tmp_path / "other.sock").unlink()
    printed, said = own.python(f"{SWEEP}\nprint(found)").communicate(timeout=20)
    assert printed == f"Sweep(removed=(), already_gone=(), unconfirmed=('{dead.run}',), elsewhere=())\n", said
    command = [sys.executable, "-m", "pybox_kernel.cli", "cleanup"]
    done = subprocess.run(command, env=own.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 125
    assert "No container engine was found" in done.stderr
    (tmp_path / "other.sock").symlink_to("/var/run/docker.sock")
    assert own.cleanup()["removed"] == [dead.run]


# What is not touched


def test_a_strangers_container_that_looks_like_ours_is_not_touched(
    own: Installation, make: Make, engine: DockerEngine, outside: Outside
) -> None:
    dead = Dead(own)
    labels = dead.labels
    some = {key: labels[key] for key in ("org.pybox.installation", "org.pybox.session")}
    strangers = [
        make(dead.name, {key: value for key, value in labels.items() if key != "org.pybox.expires"}),
        make(f"{dead.name}0", labels),
        make(f"x-{dead.name}", labels),
        make(f"pybox-{new_token()}", labels),
        make(f"pybox-{new_token()}", some),
        make(f"pybox-{new_token()}", {}, "sleep 60", start=True),
    ]
    assert swept(own, engine) == Sweep(removed=(), already_gone=(dead.run,), unconfirmed=())
    assert states(outside, strangers) == ["created"] * 5 + ["running"]


@pytest.mark.parametrize("key", ["installation", "session", "run", "uid", "expires"])
def test_each_label_must_agree(key: str, own: Installation, make: Make, engine: DockerEngine, outside: Outside) -> None:
    dead = Dead(own)
    stranger = make(dead.name, {**dead.labels, f"org.pybox.{key}": "7" * 32})
    assert swept(own, engine).removed == ()
    assert states(outside, [stranger]) == ["created"]


def test_the_id_must_agree_where_it_is_known(
    own: Installation, make: Make, engine: DockerEngine, outside: Outside
) -> None:
    dead = Dead(own, container_id="f" * 64)
    stranger = make(dead.name, dead.labels)
    assert swept(own, engine) == Sweep(removed=(), already_gone=(dead.run,), unconfirmed=())
    assert states(outside, [stranger]) == ["created"]


@pytest.mark.parametrize("damage", ["empty", "cut", "garbage", "another's name and no labels"])
def test_the_box_of_a_damaged_entry_is_not_touched_and_said_until_it_is_gone(
    damage: str, own: Installation, make: Make, engine: DockerEngine, outside: Outside
) -> None:
    dead = Dead(own)
    text = dead.entry.read_text()
    box = make(dead.name, dead.labels)
    bystander = make(f"bystander-{dead.run}", {})
    foreign = {**json.loads(text), "name": f"bystander-{dead.run}", "labels": {}}
    damaged = {"empty": "", "cut": text[:100], "garbage": "\0\1\2", "another's name and no labels": json.dumps(foreign)}
    dead.entry.write_text(damaged[damage])
    sound = Dead(own)
    other = make(sound.name, sound.labels)
    assert swept(own, engine) == Sweep(removed=(sound.run,), already_gone=(), unconfirmed=(dead.run,))
    assert states(outside, [box, bystander]) == ["created", "created"]
    outside.wait_gone(other, 0.1)
    outside.api.remove_container(box)
    assert swept(own, engine) == Sweep(removed=(), already_gone=(dead.run,), unconfirmed=())
    assert own.sessions() == []


def test_a_running_box_of_a_live_session_of_another_process_is_not_touched(own: Installation, outside: Outside) -> None:
    program = """
from pybox_kernel.sessions.session import Session
with Session.open() as session:
    result = session.run("import time; time.sleep(2.5); print('still here')", deadline_seconds=9)
    print(result.stdout, result.receipt.ok)
"""
    live = own.python(program)
    box = outside.wait_running(installation=own.id)
    assert own.cleanup() == {"removed": [], "already_gone": [], "unconfirmed": [], "elsewhere": []}
    assert states(outside, [box]) == ["running"]
    printed, said = live.communicate(timeout=20)
    assert (printed, said) == ("still here\n True\n", "")
