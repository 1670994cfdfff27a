"""Bad input and a bad engine: a clear message with the next step, in time, and nothing runs."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pybox_kernel.cli import main
from pybox_kernel.images.store import RecordedImage
from pybox_kernel.policy import STDLIB
from pybox_kernel.receipt.model import Receipt
from tests.cases import case

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("box_image")]


def pybox(*arguments: str, source: bytes = b"print(1)", **env: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "pybox_kernel.cli", "run", *arguments]
    return subprocess.run(command, input=source, env={**os.environ, **env}, capture_output=True, check=False)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What the command says, in this process, of a program that it must refuse."""

    def run(*arguments: str, source: bytes = b"print(1)") -> str:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(source)))
        assert main(["run", "-", *arguments]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        return err

    return run


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (b"#" * (STDLIB.source_bytes + 1), f"{STDLIB.source_bytes + 1:,} bytes; the most a box takes is"),
        (b"print('a')\n# \0\n", "NUL character at byte 13 (line 2)"),
        (b"print('\xff')", "not UTF-8: byte 7 (line 1) is 0xff"),
        (b"print('\xed\xa0\x80')", "not UTF-8"),
    ],
    ids=["too large", "NUL", "not UTF-8", "half a character"],
)
def test_a_program_that_cannot_be_taken_is_refused_with_the_place(
    source: bytes, says: str, refused: Callable[..., str]
) -> None:
    assert says in refused(source=source)


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "0", "30.01", "1e999", "abc", ""])
def test_a_time_limit_that_is_none_is_refused_with_its_bounds(seconds: str, refused: Callable[..., str]) -> None:
    assert "above 0 and at most 30" in refused(f"--timeout={seconds}")


@pytest.mark.parametrize("source", [b"", b"# nothing", b"\xef\xbb\xbfprint(1)", b"#" * STDLIB.source_bytes])
def test_a_program_at_the_edge_of_what_is_taken_runs(source: bytes) -> None:
    assert pybox("-", source=source).returncode == 0


def test_a_file_that_is_not_there_or_a_folder_is_named(tmp_path: Path) -> None:
    for name in (str(tmp_path / "none.py"), str(tmp_path)):
        done = pybox(name)
        assert done.returncode == 2
        assert name in done.stderr.decode()


@pytest.mark.parametrize(("source", "status"), [(b"print(7)", 0), (b"1/0", 1), (b"while True: pass", 124)])
def test_json_is_the_receipt_alone_with_the_output_inside(source: bytes, status: int) -> None:
    done = pybox("-", "--json", "--timeout=0.5", source=source)
    receipt = Receipt.from_json(done.stdout)
    assert (done.returncode, done.stderr) == (status, b"")
    assert receipt.said.stdout.text == ("7\n" if status == 0 else "")


def run_with_engine(address: str) -> tuple[Receipt, int, float]:
    began = time.monotonic()
    done = pybox("-", "--json", DOCKER_HOST=address)
    return Receipt.from_json(done.stdout), done.returncode, time.monotonic() - began


@case("eng-stale-socket", "eng-remote")
@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("absent", "engine_missing"),
        ("stale", "engine_missing"),
        ("silent", "engine_timeout"),
        ("far", "engine_elsewhere"),
    ],
)
def test_an_engine_that_is_of_no_use_is_said_in_time_and_nothing_runs(kind: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / "engine.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        if kind in ("stale", "silent"):
            listener.bind(str(path))
        if kind == "silent":
            listener.listen()
        address = "tcp://192.0.2.1:2375" if kind == "far" else f"unix://{path}"
        receipt, status, seconds = run_with_engine(address)
    assert status == 125
    assert receipt.observed.end.how == "not_started"
    assert receipt.observed.box.id is None
    assert receipt.problem is not None
    assert receipt.problem.code == code
    assert receipt.problem.advice
    assert seconds < 4, "with the start of Python and its imports"


def test_a_user_who_may_not_use_the_engine_is_told_so(tmp_path: Path, box_image: RecordedImage) -> None:
    path = tmp_path / "engine.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        path.chmod(0o600)
        for folder in (tmp_path, *tmp_path.parents[:3]):
            folder.chmod(folder.stat().st_mode | 0o011)
        code = (
            "import os, sys\nfrom pybox_kernel.docker_engine.engine import DockerEngine\n"
            "from pybox_kernel.errors import EngineError\nos.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
            f"try: DockerEngine('unix://{path}').facts()\nexcept EngineError as error: print(error.code, error.advice)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("engine_denied ")
    assert "usermod -aG docker" in done.stdout


@pytest.mark.parametrize("damage", ["", "{}", "[1]", "not json", '{"format": "pybox.images/1", "images": [{}]}'])
def test_a_damaged_record_of_images_stops_every_run(damage: str, home: Path, tmp_path: Path) -> None:
    (tmp_path / "images.json").write_text(damage)
    done = pybox("-", "--json", PYBOX_HOME=str(tmp_path))
    receipt = json.loads(done.stdout)
    assert done.returncode == 125
    assert receipt["problem"]["code"] == "setup"
    assert "setup --yes" in receipt["problem"]["advice"]


def test_an_image_that_is_not_the_recorded_one_is_not_run(home: Path, tmp_path: Path) -> None:
    shutil.copy(home / "images.json", tmp_path / "images.json")
    text = (tmp_path / "images.json").read_text()
    [known] = [image["id"] for image in json.loads(text)["images"] if image["name"] == "stdlib"]
    (tmp_path / "images.json").write_text(text.replace(known, "sha256:" + "0" * 64))
    receipt = json.loads(pybox("-", "--json", PYBOX_HOME=str(tmp_path)).stdout)
    assert receipt["observed"]["end"]["how"] == "not_started"
    assert "no longer in the container engine" in receipt["problem"]["message"]
