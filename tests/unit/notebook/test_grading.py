"""What of a cell's end is a score's business, and what a cell may ask for where it is graded."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybox_kernel.errors import EngineMissing, ExitStatus, OptionError, PyBoxError, SourceError
from pybox_kernel.notebook.cell_executor import Executed
from pybox_kernel.notebook.commands import Options, options_of
from pybox_kernel.notebook.failures import exit_status, failure, failure_of_pybox
from pybox_kernel.notebook.grading import check_standing, is_graded, permitted, why_no_score
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.running.runner import RunResult
from pybox_kernel.safe_display.text import SafeText
from tests.receipts import samples

SAMPLES = samples()
NOT_THE_PROGRAMS = {
    name
    for name, found in SAMPLES.items()
    if found.problem is not None
    or found.observed.end.how in ("not_started", "stopped", "box_lost", "warden_failed")
    or not found.observed.box.removed
}


def executed(found: Receipt) -> Executed:
    result = RunResult(found, SafeText(""), SafeText(""), None)
    return Executed(failure(result), result, exit_status(found))


@pytest.mark.parametrize("name", SAMPLES)
def test_what_pybox_or_nbgrader_did_gives_no_score_and_what_a_program_did_does(name: str) -> None:
    why = why_no_score(executed(SAMPLES[name]))
    assert (why is not None) == (name in NOT_THE_PROGRAMS)
    assert why != ""


def test_of_both_kinds_there_are_samples() -> None:
    assert {"box_lost", "no_engine", "not_sealed", "not_removed", "stopped", "warden_failed"} <= NOT_THE_PROGRAMS
    assert {"clean", "error", "deadline", "memory", "left_early", "killed"} <= set(SAMPLES) - NOT_THE_PROGRAMS


def test_a_box_that_was_lost_after_linux_killed_in_it_for_memory_is_the_programs_doing() -> None:
    lost = SAMPLES["box_lost"].model_dump(by_alias=True)
    lost["observed"]["meters"]["oom_kills"] = 2
    lost["unknown"] = [entry for entry in lost["unknown"] if entry["what"] != "oom_kills"]
    assert why_no_score(executed(Receipt.model_validate(lost))) is None


@pytest.mark.parametrize(
    ("error", "scored"),
    [
        (SourceError("The program is too long.", "Shorten it."), True),
        (OptionError("There is no such option.", "Leave it out."), True),
        (EngineMissing("Nothing answers.", "Start it."), False),
        (RuntimeError("a slip of PyBox's own"), False),
    ],
)
def test_without_a_receipt_a_cell_that_cannot_be_run_is_scored_and_pyboxs_own_failure_is_not(
    error: Exception, scored: bool
) -> None:
    status = error.exit_status if isinstance(error, PyBoxError) else ExitStatus.PYBOX_FAILED
    assert (why_no_score(Executed(failure_of_pybox(error), None, status)) is None) == scored


def test_a_cell_asks_for_no_more_time_than_whoever_grades_gives() -> None:
    assert permitted(Options(timeout="1"), Options()).timeout == "1"
    assert permitted(Options(timeout="2"), Options()).timeout == "2"
    assert permitted(Options(timeout="9"), Options(timeout="10")).timeout == "9"
    for asked, standing in (("2.1", None), ("30", "10"), ("never", None)):
        with pytest.raises(OptionError):
            permitted(Options(timeout=asked), Options(timeout=standing))


def test_a_cell_has_no_other_image_than_whoever_grades_chooses() -> None:
    assert permitted(Options(image="data"), Options(image="data")).image == "data"
    with pytest.raises(OptionError, match="made from the image stdlib"):
        permitted(Options(image="data"), Options(image="stdlib"))


def test_a_cell_has_no_other_files_than_whoever_grades_names() -> None:
    standing = Options(input=("data.csv", "more/"))
    assert permitted(Options(input=("data.csv",)), standing).input == ("data.csv",)
    for asked in (("other.csv",), ("data.csv", "more"), ("./data.csv",), ("more/a.csv",)):
        with pytest.raises(OptionError, match="only the files that whoever grades names"):
            permitted(Options(input=asked), standing)


def test_a_failed_cell_stays_an_error_and_no_receipt_is_left_out_and_nothing_is_written() -> None:
    heard = permitted(Options(no_raise=True, quiet=True, output="results", carry="off"), Options())
    assert heard == Options(carry="off")


def test_a_program_below_a_line_that_asks_for_help_is_run_all_the_same() -> None:
    program, asked = options_of("%%pybox --help\nassert answer == 42")
    assert (program.strip(), permitted(asked, Options()).help) == ("assert answer == 42", False)
    program, asked = options_of("%%pybox?")
    assert (program, permitted(asked, Options()).help) == ("", False)


def test_what_whoever_grades_asks_for_and_cannot_have_is_found_before_any_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("1")
    check_standing(Options(timeout="30", input=("data.csv",)), 300)
    for wrong in (Options(timeout="31"), Options(timeout="soon"), Options(input=("other.csv",))):
        with pytest.raises(PyBoxError):
            check_standing(wrong, 300)
    for total in (0, -1, float("nan")):
        with pytest.raises(PyBoxError):
            check_standing(Options(), total)


@pytest.mark.parametrize(("said", "graded"), [("autograde", True), ("validate", False), ("", False)])
def test_nbgrader_says_what_it_starts_a_kernel_for(monkeypatch: pytest.MonkeyPatch, said: str, graded: bool) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", said)
    assert is_graded() == graded
