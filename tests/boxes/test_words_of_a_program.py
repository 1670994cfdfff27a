"""What a program says of its end arrives, whatever characters it says it in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pybox_kernel.boxes.box import Box, fresh_identity
from pybox_kernel.boxes.journal import Journal, new_token
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.images.store import RecordedImage
from pybox_kernel.notebook.failures import failure
from pybox_kernel.policy import STDLIB
from pybox_kernel.render.text import render_short
from pybox_kernel.sessions.session import Session
from tests.escapes.running import without_colour

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    "message",
    ["'ж' * 20000", "'\\ud800'", "'\\0' * 20000", "'m' * (5 << 20)", "'\\U0001f600' * 50000", "'\"' * 40000"],
    ids=["two bytes", "half a character", "NULs", "5 MB", "four bytes", "quotation marks"],
)
def test_an_error_arrives_whatever_its_text(session: Session, message: str) -> None:
    result = session.run(f"raise ValueError({message})", deadline_seconds=5)
    assert result.error is not None
    assert result.error.name == "ValueError"
    assert "raise ValueError" in result.error.traceback
    assert result.receipt.said.withheld == ()
    shown = session.run(f"display({message})", deadline_seconds=5).receipt
    assert (shown.said.displays, shown.said.withheld, shown.ok) == (1, (), True)


def test_a_form_feed_does_not_shift_the_lines_of_a_traceback(session: Session) -> None:
    result = session.run("x = 1\n\x0c\ndef f():\n    raise KeyError(x)\nf()")
    assert result.error is not None
    assert "Your code, line 4, in f\n    raise KeyError(x)" in without_colour(result.error.traceback)


def test_a_syntax_error_shows_the_cell_alone(session: Session) -> None:
    result = session.run("x = 1\nif x\n  y")
    assert result.error is not None
    assert result.error.name == "SyntaxError"
    assert "line 2" in result.error.traceback
    assert "/usr/" not in result.error.traceback


def test_an_end_by_signal_is_not_called_an_end_by_itself(session: Session) -> None:
    evidence = session.run("import os; os.abort()").receipt.observed.end.evidence
    assert evidence[0] == "the box's own part saw the program ended by a signal"


def test_a_closed_standard_input_is_said() -> None:
    command = f"{sys.executable} -m pybox_kernel.cli run - <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no standard input" in done.stderr


def test_an_exception_of_a_forked_process_is_not_called_a_normal_end(session: Session) -> None:
    result = session.run("import os\nif os.fork() == 0:\n    1 / 0\nos.wait()\nprint('done')")
    assert result.receipt.observed.end.exit_code == 0
    assert result.receipt.said.completed
    assert result.receipt.said.error == "ZeroDivisionError"
    assert not result.receipt.ok
    assert "but reports an error" in render_short(result.receipt)
    told = failure(result)
    assert told is not None
    assert told.ename == "ZeroDivisionError"


def test_leftovers_are_removed_also_where_there_is_no_image_to_run_in(
    box_image: RecordedImage, engine: DockerEngine, tmp_path: Path
) -> None:
    dead = Journal(tmp_path)
    run = new_token()
    identity = fresh_identity(dead, run, box_image.id, 2.0)
    Box(engine, dead, None, STDLIB, identity, run).create()
    dead.release()
    with Session(Journal(tmp_path), engine) as session:
        result = session.run("print(1)")
    assert result.receipt.problem is not None
    assert result.receipt.problem.code == "setup"
    assert result.notices == ("Removed 1 box that an earlier session left behind.",)
