"""``pybox-kernel run`` as a person and a script meet it: streams, exit statuses, interrupts, pipes, its own records.

The program, the engine and the box are real; only the surroundings are bad.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pybox_kernel.boxes.journal import Journal
from pybox_kernel.cli import main
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.images.store import ImageStore, RecordedImage
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.sessions.session import Session
from tests.boxes.altered import AlteredEngine
from tests.cases import case
from tests.conftest import Outside

pytestmark = pytest.mark.engine

COMMAND = [sys.executable, "-m", "pybox_kernel.cli"]
WAIT = "print('here', flush=True)\nimport time\ntime.sleep(25)\nprint('never')"


class Place:
    """A state folder of its own, and the command run there."""

    def __init__(self, home: Path, outside: Outside) -> None:
        self.home = home
        self.environment = {**os.environ, "PYBOX_HOME": str(home)}
        self._outside = outside

    def run(self, *arguments: str, source: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments],
            input=source,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            **options,
        )

    def begin(self, *arguments: str, source: str = WAIT, **options: Any) -> subprocess.Popen[str]:
        program = self.home / "program.py"
        program.write_text(source)
        return subprocess.Popen(
            [*COMMAND, *arguments, str(program)],
            env=self.environment,
            text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    def nothing_left(self) -> None:
        installation = self.home / "installation"
        if installation.exists():
            assert self._outside.boxes(installation=installation.read_text().strip()) == []
        assert list((self.home / "sessions").glob("*/*.json")) == []


@pytest.fixture
def place(tmp_path: Path, box_image: RecordedImage, outside: Outside) -> Iterator[Place]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    ImageStore(home).record(box_image)
    yield Place(home, outside)
    (tmp_path / "home").chmod(0o700)


# Streams and statuses


@pytest.mark.parametrize(
    ("source", "status", "out", "folded"),
    [
        ("print('hello')", 0, "hello\n", "✓ Ended normally"),
        ("", 0, "", "✓ Ended normally"),
        ("import sys; print('x', file=sys.stderr)", 0, "", "✓ Ended normally"),
        ("print('a'); 1/0", 1, "a\n", "✗ Ended with an error"),
        ("raise SystemExit(3)", 1, "", "✗"),
        ("print('a', flush=True); import os; os._exit(0)", 1, "a\n", "✗ Left early"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", 1, "", "✗ Crashed in native code"),
        ("print('a', flush=True)\nwhile True: pass", 124, "a\n", "◷ Stopped at its 0.5 s limit"),
    ],
)
def test_a_program_gives_its_output_a_receipt_and_its_status(
    source: str, status: int, out: str, folded: str, place: Place
) -> None:
    done = place.run("run", "-", "--timeout", "0.5", source=source)
    assert done.returncode == status, done.stderr
    assert done.stdout == out
    assert folded in done.stderr
    assert "sealed" in done.stderr
    place.nothing_left()


def test_what_the_program_writes_to_stderr_goes_there_before_the_receipt(place: Place) -> None:
    done = place.run("run", "-", source="import sys; print('oops', file=sys.stderr); 1/0")
    lines = done.stderr.splitlines()
    assert lines[0] == "oops"
    assert "ZeroDivisionError: division by zero" in lines
    assert lines.index("ZeroDivisionError: division by zero") < next(n for n, line in enumerate(lines) if "✗" in line)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["run"],
        ["run", "-", "--memory", "1g"],
        ["run", "-", "--network", "host"],
        ["run", "-", "--time", "3"],
        ["run", "-", "--timeout"],
        ["run", "a.py", "b.py"],
        ["explode"],
        ["install"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_told_with_the_usage_and_nothing_is_made(
    arguments: list[str], place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYBOX_HOME", str(place.home))
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert err.startswith("usage: pybox-kernel")
    assert out == ""
    assert not (place.home / "sessions").exists()


def test_bad_input_makes_nothing(place: Place) -> None:
    done = place.run("run", "-", source="x = '\0'")
    assert done.returncode == 2
    assert done.stderr == (
        "pybox-kernel: The program holds a NUL character at byte 5 (line 1).\n"
        "Delete that character, or write it as the escape '\\0'.\n"
    )
    place.nothing_left()


# Interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_the_program_at_once(number: signal.Signals, place: Place) -> None:
    with place.begin("run", "--timeout", "30") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "here\n"
        began = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert time.monotonic() - began < 2, "the stop, the box's removal and the end of Python"
    assert process.returncode == 130
    assert out == ""
    assert "◷ Stopped by you" in err
    assert "Traceback" not in err
    place.nothing_left()


@pytest.mark.alone
def test_the_receipt_of_an_interrupted_run_says_so_and_how_soon(place: Place, tmp_path: Path) -> None:
    with place.begin("run", "--json", "--timeout", "30") as process:
        deadline = time.monotonic() + 20
        while not place._outside.boxes(installation=installation_of(place)) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(1.2)
        sent = time.time()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, "")
    receipt = Receipt.from_json(out)
    assert receipt.observed.end.how == "stopped"
    assert receipt.observed.end.exit_code is None
    assert receipt.said.stdout.text == "here\n"
    assert receipt.observed.box.removed is True
    ran = next(step for step in receipt.observed.steps if step.name == "program ran")
    ended = started_at(receipt) + (ran.offset_ms + ran.duration_ms) / 1000
    assert -0.05 < ended - sent < 0.5
    place.nothing_left()


def installation_of(place: Place) -> str:
    path = place.home / "installation"
    return path.read_text().strip() if path.exists() else "none"


def started_at(receipt: Receipt) -> float:
    return datetime.fromisoformat(receipt.run.started_at).timestamp()


def test_an_interrupt_before_the_program_leaves_no_box(place: Place) -> None:
    with place.begin("run", "--json") as process:
        deadline = time.monotonic() + 20
        while not list((place.home / "sessions").glob("*/*.json")) and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, "")
    receipt = Receipt.from_json(out)
    assert receipt.observed.end.how == "not_started"
    assert receipt.observed.box.removed is True
    place.nothing_left()


# Pipes


def test_a_reader_that_leaves_ends_the_run_quietly(place: Place) -> None:
    source = "for number in range(10**6): print(number)"
    with place.begin("run", "--timeout", "20", source=source) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        err = process.stderr.read()
        process.wait(timeout=20)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    place.nothing_left()


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_an_output_that_cannot_be_written_is_told(arguments: tuple[str, ...], place: Place) -> None:
    with (
        Path("/dev/full").open("w") as full,
        place.begin("run", *arguments, source="print('x')", stdout=full, stderr=subprocess.PIPE) as process,
    ):
        assert process.stderr is not None
        err = process.stderr.read()
    assert process.returncode == 125
    assert "pybox-kernel: The output could not be written: No space left on device." in err
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    place.nothing_left()


# PyBox's own records


@pytest.mark.parametrize("where", ["under a file", "read-only"])
def test_a_state_folder_that_cannot_be_made_is_named(where: str, place: Place, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    place.environment["PYBOX_HOME"] = str(tmp_path / "file" / "home") if where == "under a file" else "/proc/pybox"
    done = place.run("run", "-", source="print(1)")
    assert done.returncode == 125
    assert done.stdout == ""
    assert f"pybox-kernel: PyBox cannot keep its records in {place.environment['PYBOX_HOME']}: " in done.stderr
    assert "set PYBOX_HOME to another folder" in done.stderr


AS_NOBODY = """
import os, sys
from pybox_kernel import cli
from pybox_kernel.sessions import session
home, address = os.environ["PYBOX_HOME"], os.environ.get("DOCKER_HOST", "")
os.environ.update(PYBOX_HOME=home + "-before", DOCKER_HOST="unix:///nonexistent")
session.run("1")  # loads what is only loaded at need: the user to be may not read this Python's own files
os.environ.update(PYBOX_HOME=home, DOCKER_HOST=address)
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(cli.main(sys.argv[1:]))
"""


def as_nobody(*arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs the command as a user without rights (or, where the tests have none themselves, as they are)."""
    command = [sys.executable, "-c", AS_NOBODY, *arguments]
    return subprocess.run(command, input="print(1)", env=dict(environment), capture_output=True, text=True, check=False)


def open_to_all(path: Path) -> None:
    """The folders that pytest has made for this user alone."""
    for folder in (path, *list(path.parents)[:3]):
        if folder.stat().st_uid == os.getuid():
            folder.chmod(folder.stat().st_mode | 0o011)


def test_a_state_folder_of_another_user_is_named(place: Place, tmp_path: Path) -> None:
    open_to_all(tmp_path)
    place.home.chmod(0o555)
    done = as_nobody("run", "-", environment=place.environment)
    assert done.returncode == 125
    if os.getuid() == 0:
        assert f"not this user's alone: {place.home} belongs to another user." in done.stderr
    else:
        assert f"PyBox cannot keep its records in {place.home}: Permission denied." in done.stderr


def test_a_socket_without_permission_is_told_with_the_next_step(
    place: Place, tmp_path: Path, box_image: RecordedImage
) -> None:
    open_to_all(tmp_path)
    home, path = tmp_path / "nobodys", tmp_path / "engine.sock"
    home.mkdir(mode=0o700)
    ImageStore(home).record(box_image)
    if os.getuid() == 0:
        for each in (home, *home.iterdir()):
            os.chown(each, 65534, 65534)
    environment = {**place.environment, "PYBOX_HOME": str(home), "DOCKER_HOST": f"unix://{path}", "HOME": str(home)}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        path.chmod(0o600 if os.getuid() == 0 else 0)
        began = time.monotonic()
        done = as_nobody("run", "--json", "-", environment=environment)
        seconds = time.monotonic() - began
    assert (done.returncode, done.stderr) == (125, "")
    receipt = Receipt.from_json(done.stdout)
    assert receipt.observed.end.how == "not_started"
    assert receipt.problem is not None
    assert receipt.problem.code == "engine_denied"
    assert receipt.problem.message == f"This user may not use the container engine at unix://{path}."
    assert "sudo usermod -aG docker $USER" in receipt.problem.advice
    assert seconds < 4


@pytest.mark.parametrize(
    "address", ["ssh://user@192.0.2.1", "tcp://192.0.2.1:2375", "http://localhost", "unix://docker.sock", "fd://"]
)
def test_an_engine_address_that_is_no_socket_here_is_not_used(address: str, place: Place) -> None:
    place.environment["DOCKER_HOST"] = address
    done = place.run("run", "-", source="print(1)")
    assert done.returncode == 125
    assert done.stdout == ""
    assert f"DOCKER_HOST is {address!r}, which names no socket on this computer." in done.stderr
    assert "unix:///var/run/docker.sock" in done.stderr


FILES = resource.RLIMIT_FSIZE


def test_a_full_disk_at_the_start_is_named(place: Place) -> None:
    """A limit on files stands for the disk: what is written fails in the same place."""
    done = place.run("run", "-", source="print(1)", preexec_fn=lambda: resource.setrlimit(FILES, (0, 0)))
    assert done.returncode == 125
    assert f"PyBox cannot keep its records in {place.home}" in done.stderr
    place.nothing_left()


class FullDisk:
    """From ``begin`` to ``end`` nothing can be written to a file by this process."""

    def __init__(self) -> None:
        self._before = resource.getrlimit(FILES)

    def begin(self, *_: object) -> None:
        resource.setrlimit(FILES, (0, self._before[1]))

    def end(self) -> None:
        resource.setrlimit(FILES, self._before)


def test_a_disk_that_is_full_before_a_run_keeps_a_box_from_being_made(place: Place, engine: DockerEngine) -> None:
    altered, full = AlteredEngine(engine), FullDisk()
    with Session(Journal(place.home), altered) as session:
        full.begin()
        try:
            receipt = session.run("print(1)").receipt
        finally:
            full.end()
    assert altered.box == ""
    assert receipt.observed.end.how == "not_started"
    assert receipt.problem is not None
    assert receipt.problem.code == "setup"
    assert f"PyBox cannot keep its records in {place.home}" in receipt.problem.message
    place.nothing_left()


class FullAfterCreate(AlteredEngine):
    def __init__(self, real: DockerEngine, full: FullDisk) -> None:
        super().__init__(real)
        self._full = full

    def create(self, name: str, config: Mapping[str, Any]) -> str:
        made = super().create(name, config)
        self._full.begin()
        return made


def test_a_disk_that_is_full_once_the_box_is_made_removes_it(place: Place, engine: DockerEngine) -> None:
    full = FullDisk()
    altered = FullAfterCreate(engine, full)
    with Session(Journal(place.home), altered) as session:
        try:
            receipt = session.run("print(1)").receipt
        finally:
            full.end()
    assert altered.box != ""
    assert altered.sent == b""
    assert receipt.observed.end.how == "not_started"
    assert receipt.problem is not None
    assert receipt.problem.code == "setup"
    assert receipt.observed.box.removed is True
    place.nothing_left()


# The image


@case("eng-image-missing")
def test_an_image_that_was_removed_is_named_with_the_next_step(
    place: Place, box_image: RecordedImage, outside: Outside
) -> None:
    """One of this test's own: the same content under another id."""
    made = outside.api.create_container_from_config(
        {"Image": box_image.id, "Cmd": ["x"]}, f"pybox-test-removed-{os.getpid()}"
    )["Id"]
    try:
        own = outside.api.commit(made, repository=f"pybox-test-removed-{os.getpid()}", tag="x")["Id"]
    finally:
        outside.api.remove_container(made)
    ImageStore(place.home).record(box_image.model_copy(update={"id": own}))
    assert place.run("run", "-", source="print(1)").returncode == 0
    outside.api.remove_image(own, force=True)
    done = place.run("run", "-", "--json", source="print(1)")
    problem = json.loads(done.stdout)["problem"]
    assert done.returncode == 125
    assert problem["code"] == "setup"
    assert problem["message"] == f"The box image 'stdlib' is no longer in the container engine (its id was {own})."
    assert problem["advice"] == "Run `pybox-kernel setup --yes`."
    place.nothing_left()


@case("eng-tag-moved")
def test_a_tag_that_points_elsewhere_changes_nothing(place: Place, box_image: RecordedImage, outside: Outside) -> None:
    """A run is made from the recorded id, whatever has the recorded name by now."""
    name = f"pybox-test-moved-{os.getpid()}"
    outside.api.tag(box_image.base_image.id, name, "x")
    try:
        ImageStore(place.home).record(box_image.model_copy(update={"reference": f"{name}:x"}))
        done = place.run("run", "-", "--json", source="print(1)")
    finally:
        outside.api.remove_image(f"{name}:x")
    receipt = Receipt.from_json(done.stdout)
    assert receipt.ok
    assert receipt.run.image is not None
    assert receipt.run.image.id == box_image.id


def test_no_image_set_up_is_told_with_the_next_step(place: Place) -> None:
    (place.home / "images.json").unlink()
    done = place.run("run", "-", source="print(1)")
    assert done.returncode == 125
    assert "has not been made yet" in done.stderr
    assert "pybox-kernel setup --yes" in done.stderr
    place.nothing_left()


def test_displays_come_as_text_and_the_last_value_does_not(place: Place) -> None:
    done = place.run("run", "-", source="print('a')\ndisplay({'b': 1})\n6 * 7")
    assert done.stdout == "a\n{'b': 1}\n"
