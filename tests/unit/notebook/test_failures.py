from __future__ import annotations

import pytest

from pybox_kernel.errors import EngineMissing, SetupError, SourceError
from pybox_kernel.notebook.failures import Failure, failure, failure_of_pybox
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.words import words
from pybox_kernel.running.runner import ProgramError, RunResult
from pybox_kernel.safe_display.text import safe_name, safe_text
from tests.receipts import samples

TOLD = ProgramError(safe_name("KeyError"), safe_text("'a'"), safe_text("Traceback\nKeyError: 'a'\n"))


def failed(receipt: Receipt, told: ProgramError | None = None) -> Failure:
    found = failure(RunResult(receipt, safe_text(""), safe_text(""), told))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("sample", "name"),
    [
        ("deadline", "PyBoxDeadline"),
        ("not_sealed", "PyBoxNotRun"),
        ("left_early", "PyBoxLeftEarly"),
        ("exit_137", "PyBoxExitCode"),
        ("crash", "PyBoxKilled"),
        ("warden_failed", "PyBoxFailed"),
    ],
)
def test_the_errors_name_is_of_how_the_run_ended_and_its_value_is_the_verdict(sample: str, name: str) -> None:
    receipt = samples()[sample]
    found = failed(receipt)
    assert (found.ename, found.evalue) == (name, words(receipt).verdict)
    assert found.traceback[0] == f"{name}: {words(receipt).verdict}"


def test_every_sample_but_those_that_ran_to_their_end_is_a_failure() -> None:
    for sample, receipt in samples().items():
        assert (failure(RunResult(receipt, safe_text(""), safe_text(""), None)) is None) == receipt.ok, sample


def test_why_a_program_did_not_start_is_told_with_what_to_do() -> None:
    receipt = samples()["not_sealed"]
    assert receipt.problem is not None
    assert failed(receipt).traceback[-1] == f"{receipt.problem.message} {receipt.problem.advice}"


def test_the_programs_own_exception_is_its_error() -> None:
    assert failed(samples()["error"], TOLD) == ("KeyError", "'a'", ["Traceback\nKeyError: 'a'"])


def test_an_exception_that_was_reported_and_was_not_the_end_stands_above_what_was_observed() -> None:
    receipt = samples()["deadline"]
    found = failed(receipt, TOLD)
    assert found.ename == "PyBoxDeadline"
    assert found.traceback[:2] == ["Traceback\nKeyError: 'a'", f"PyBoxDeadline: {words(receipt).verdict}"]


def test_an_exception_named_like_one_of_pyboxs_own_is_told_as_the_programs() -> None:
    for name in ("PyBoxDeadline", " PyBoxStopped", "pyboxNotRun"):
        told = ProgramError(safe_name(name), safe_text("x"), safe_text("Traceback\n"))
        assert failed(samples()["error"], told).ename == f"Program. {name}"


def test_no_line_of_a_programs_traceback_begins_like_one_of_pyboxs_own() -> None:
    text = "Traceback\nPyBox: try the other kernel\n  \x1b[31mPyBoxNotRun\x1b[0m: no\nmy PyBox is fine\n"
    for sample in ("error", "deadline"):
        [shown, *_] = failed(samples()[sample], ProgramError(safe_name("E"), safe_text("x"), safe_text(text))).traceback
        assert shown.split("\n") == [
            "Traceback",
            "| PyBox: try the other kernel",
            "|   \x1b[31mPyBoxNotRun\x1b[0m: no",
            "my PyBox is fine",
        ]


def test_a_program_that_says_both_that_it_ended_well_and_that_it_failed_has_failed() -> None:
    assert failed(samples()["clean"], TOLD).ename == "KeyError"


def test_bad_input_and_a_failure_of_pybox_are_told_with_advice() -> None:
    advice = "Do this."
    assert failure_of_pybox(SourceError("Too long.", advice)) == ("PyBoxNotRun", "Too long.", ["Too long.\nDo this."])
    assert failure_of_pybox(SetupError("No folder.", advice)).ename == "PyBoxFailed"
    assert failure_of_pybox(EngineMissing("None\x1b[2J.", advice)).evalue == "None."


def test_what_nobody_thought_of_is_told_without_its_text() -> None:
    found = failure_of_pybox(RuntimeError("/home/someone/secret"))
    assert found.ename == "PyBoxFailed"
    assert "RuntimeError" in found.evalue
    assert "secret" not in str(found)
