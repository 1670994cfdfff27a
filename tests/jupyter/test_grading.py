"""``nbgrader autograde`` through the sealed kernel, on submissions of every kind."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest

from pybox_kernel.classroom.report import find, read, why_not_graded
from pybox_kernel.render.class_table import Submission
from pybox_kernel.signing.keys import SigningKeys
from tests.jupyter.conftest import Boxes, gone
from tests.jupyter.course import ORDINARY, SEALED, SECONDS, TESTS, Course

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("kernelspec"), pytest.mark.timeout(600)]

HONEST: dict[str, dict[str, str]] = {
    "right": {},
    "wrong": {
        "first": "import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\n1 / 0",
        "squares": "def squares(n):\n    return [i**2 for i in range(n)]",
        "mean": "def mean(file):\n    return 2",
    },
}
FORGED = """
import os, threading, time
class Score(list):
    def __eq__(self, other):
        return Score()
    def __bool__(self):
        return True
def squares(n):
    threading.Thread(target=lambda: (time.sleep(0.3), os._exit(3))).start()
    return Score()
"""
ESCAPES = "import os\nopen('/tmp/pybox-was-here', 'w').close()\nos.system('id')\ndef sum_of_squares(n): os._exit(0)"
OTHERS: dict[str, dict[str, str]] = {
    "forging": {
        "first": "%pybox use --no-raise --quiet",
        "squares": FORGED,
        "sum_of_squares": ESCAPES,
        "mean": "%%pybox --timeout 30\ndef mean(file): return 2.25",
    },
    "hungry": {
        "squares": "def squares(n):\n    return bytearray(1 << 30)",
        "sum_of_squares": "def sum_of_squares(n):\n    raise SystemExit",
        "mean": "def mean(file):\n    while True: pass",
    },
    "killed": {},
    "leaving": {
        "first": "while True: pass",
        "squares": "import os\ndef squares(n):\n    os._exit(0)",
        "sum_of_squares": "import os\nos._exit(0)",
        "mean": "def mean(file)\n    return 2.25",
    },
}
"""Each does several things that are none of an honest student; ``killed`` is right, and nbgrader is killed in it."""


@pytest.fixture(scope="module")
def course(kernelspec: str, tmp_path_factory: pytest.TempPathFactory) -> Course:
    made = Course(tmp_path_factory.mktemp("grading") / "course", SEALED)
    made.release()
    for student, cells in {**HONEST, **OTHERS}.items():
        python = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        tags = ["skip-execution"] if student in OTHERS else ()  # nbgrader gives a test that was skipped full marks
        made.submit(student, metadata=python, tags=tags, **cells)
    return made


@pytest.fixture(scope="module")
def ordinary(course: Course) -> Course:
    """The same before anything was graded, graded in an ordinary kernel; the honest alone."""
    other = course.copy(course.folder.with_name("ordinary"), ORDINARY)
    for student in OTHERS:
        shutil.rmtree(other.folder / "submitted" / student)
    done = other.autograde()
    assert done.returncode == 0, done.stdout
    return other


class Refused(NamedTuple):
    """What came of a call of nbgrader while no container engine answered."""

    status: int
    written: str
    scores: set[float | None]
    is_graded: bool
    reported: str
    """Why there is no score."""


@pytest.fixture(scope="module")
def refused(course: Course, ordinary: Course) -> Refused:
    done = course.autograde("--student", "right", DOCKER_HOST="unix:///nowhere/docker.sock")
    scores = set(course.scores("right").values())
    [reported] = [why_not_graded(place) for place in find(course.folder).not_graded if place.student == "right"]
    return Refused(done.returncode, done.stdout, scores, course.graded("right").exists(), reported)


@pytest.fixture(scope="module")
def graded(course: Course, refused: Refused) -> Course:
    """By two calls more, of which the first was killed in the middle of a submission."""
    with course.start("autograde", "ps1") as process:
        wait_for(course.graded("killed"))
        time.sleep(0.5)
        process.kill()
    assert (done := to_the_end(course)).returncode == 0, done.stdout
    return course


def to_the_end(course: Course, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
    """As a teacher does: where the engine of a busy computer did not answer in time, nbgrader is called again."""
    for _ in range(3):
        done = course.run("autograde", "ps1", seconds=seconds)
        if done.returncode == 0 or "does not answer in time" not in done.stdout:
            break
    return done


def wait_for(path: Path) -> None:
    end = time.monotonic() + 200
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.05)


def outputs(cell: nbformat.NotebookNode, kind: str) -> list[nbformat.NotebookNode]:
    return [output for output in cell.outputs if output.output_type == kind]


@pytest.mark.parametrize("student", HONEST)
def test_who_is_honest_has_the_same_scores_as_in_an_ordinary_kernel(
    graded: Course, ordinary: Course, student: str
) -> None:
    assert graded.scores(student) == ordinary.scores(student)
    assert set(graded.scores(student)) == set(TESTS)


def test_right_answers_have_full_marks_also_for_hidden_tests_files_and_parts_of_a_mark(graded: Course) -> None:
    assert graded.scores("right") == TESTS
    released = graded.folder / "release" / "ps1" / "problem1.ipynb"
    assert "2.25" not in released.read_text()
    assert "2.25" in graded.cells("right")["mean_of_a_file"].source


def test_a_batch_that_was_killed_goes_on_and_the_submission_it_was_killed_in_is_graded_when_forced(
    graded: Course,
) -> None:
    """nbgrader takes that one for graded: no cell of it has run, and it has no score."""
    assert all(graded.graded(student).exists() for student in [*HONEST, *OTHERS])
    assert set(graded.scores("killed").values()) == {None}
    assert not any(cell.outputs for cell in graded.cells("killed").values())
    assert reported(graded, "killed").in_short == "no cell of it was run"
    if (done := graded.autograde("--student", "killed", "--force")).returncode:
        done = to_the_end(graded)
    assert done.returncode == 0, done.stdout
    assert graded.scores("killed") == TESTS
    assert not reported(graded, "killed").never_ran


def reported(course: Course, student: str) -> Submission:
    found = find(course.folder)
    assert not found.left_out
    assert not found.not_graded
    [place] = [place for place in found.notebooks if place.student == student]
    assert (place.assignment, place.path) == ("ps1", course.graded(student))
    return read(place, SigningKeys().ring())


def test_the_report_has_every_cell_as_made_here_after_all_that_nbgrader_did_to_the_notebook(graded: Course) -> None:
    right = reported(graded, "right")
    assert {cell.receipt for cell in right.cells} == {"as made here"}
    assert right.in_short == "11 ended normally, 1 did not end normally"
    [not_well] = [cell for cell in right.cells if cell.kind == "not well"]
    assert not_well.begins == "# YOUR CODE HERE"
    hungry = {cell.ended for cell in reported(graded, "hungry").cells}
    assert {"Stopped at its 2 s limit", "Killed for memory"} <= hungry


def test_the_report_says_that_a_cell_was_refused_and_why(graded: Course) -> None:
    [refused] = [cell for cell in reported(graded, "forging").cells if cell.begins.startswith("%%pybox --timeout 30")]
    assert (refused.ended, refused.receipt) == ("Not run: refused", "as made here")
    assert refused.notes.startswith("Where it is graded, a cell gets 2 s at most.")


def test_feedback_has_no_receipts_where_its_configuration_says_so(graded: Course) -> None:
    graded.configure(
        SEALED + "c.GenerateFeedback.preprocessors.insert(0, 'pybox_kernel.classroom.feedback.WithoutReceipts')\n"
    )
    done = graded.run("generate_feedback", "ps1", "--student", "right")
    assert done.returncode == 0, done.stdout
    page = (graded.folder / "feedback" / "right" / "ps1" / "problem1.html").read_text(encoding="utf-8")
    assert "Ended normally" not in page
    assert "NotImplementedError" in page


@pytest.mark.parametrize(
    ("student", "test", "name"),
    [
        ("hungry", "correct_squares", "PyBoxKilled"),
        ("hungry", "correct_sum_of_squares", "PyBoxLeftEarly"),
        ("hungry", "mean_of_a_file", "PyBoxDeadline"),
        ("leaving", "correct_squares", "PyBoxLeftEarly"),
        ("leaving", "correct_sum_of_squares", "NameError"),
        ("leaving", "mean_of_a_file", "NameError"),
        ("forging", "correct_squares", "PyBoxExitCode"),
        ("forging", "correct_sum_of_squares", "PyBoxLeftEarly"),
        ("forging", "mean_of_a_file", "NameError"),
    ],
)
def test_a_test_that_did_not_run_to_its_end_is_an_error_and_gives_no_points(
    graded: Course, student: str, test: str, name: str
) -> None:
    assert graded.scores(student)[test] == 0
    [error] = outputs(graded.cells(student)[test], "error")
    assert error.ename == name


def test_a_score_that_a_program_shows_before_it_fails_is_none(graded: Course) -> None:
    """nbgrader takes the first of a cell's result and its error."""
    assert graded.scores("forging")["partly"] == 0
    cell = graded.cells("forging")["partly"]
    assert not outputs(cell, "execute_result")
    assert [output.data["text/plain"] for output in outputs(cell, "display_data")[:-1]] == ["0.5"]
    assert outputs(cell, "error")


def test_what_a_submission_asks_for_widens_nothing_and_hides_nothing(graded: Course) -> None:
    cells = graded.cells("forging")
    [error] = outputs(cells["mean"], "error")
    assert "Where it is graded, a cell gets 2 s at most" in error.evalue
    assert not any(output.name == "stderr" for output in outputs(cells["correct_squares"], "stream"))
    assert "Ended normally" in outputs(cells["squares"], "display_data")[-1].data["text/plain"]


def test_the_kernel_that_a_submission_names_is_not_started(graded: Course) -> None:
    [*_, receipt] = outputs(graded.cells("forging")["sum_of_squares"], "display_data")
    assert "Ended normally" in receipt.data["text/plain"]
    assert not Path("/tmp/pybox-was-here").exists()  # where an ordinary kernel would have made it


def test_every_test_has_a_receipt_which_is_no_result_and_what_is_on_stderr_is_the_students(graded: Course) -> None:
    for student in [*HONEST, *OTHERS]:
        for name in TESTS:
            cell = graded.cells(student)[name]
            assert "<details class='pybox" in outputs(cell, "display_data")[-1].data["text/html"]
            assert not any(output.name == "stderr" for output in outputs(cell, "stream"))


def test_where_pybox_cannot_do_its_part_no_score_is_recorded_and_the_next_call_tries_again(
    refused: Refused, graded: Course
) -> None:
    assert refused.status == 1
    assert "no score comes of this" in refused.written
    assert "/nowhere/docker.sock" in refused.written
    assert "/nowhere/docker.sock" in refused.reported
    assert "There was an error processing assignment 'ps1' for student 'right'" in refused.written
    assert refused.scores == {None}
    assert not refused.is_graded
    assert graded.scores("right") == TESTS


CLASS = 120
CLASS_SECONDS = 3000


@pytest.mark.soak
@pytest.mark.timeout(CLASS_SECONDS + 300)
def test_a_class_of_120_is_graded_in_one_night(course: Course, boxes: Boxes) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chosen = random.Random(seed)
    night = course.copy(course.folder.with_name("night"), SEALED)
    for folder in ("release", "submitted", "autograded"):
        shutil.rmtree(night.folder / folder, ignore_errors=True)
    (night.folder / "gradebook.db").unlink()
    night.release()
    kinds = {f"student-{number:03}": chosen.choice(KINDS) for number in range(CLASS)}
    for student, kind in kinds.items():
        night.submit(student, **{**HONEST, **OTHERS}[kind])
    assert (done := to_the_end(night, CLASS_SECONDS)).returncode == 0, done.stdout
    first: dict[str, object] = {}
    for student, kind in kinds.items():
        scores = night.scores(student)
        assert None not in scores.values()
        assert scores == first.setdefault(kind, scores), (student, kind)
        assert not reported(night, student).never_ran
    assert {kind: TESTS for kind in first if kind in ("right", "killed")}.items() <= first.items()
    assert gone(boxes, within=3.0)


KINDS = ["right", "right", "killed", "wrong", *OTHERS]
