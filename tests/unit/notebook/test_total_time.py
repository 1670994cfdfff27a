"""The time that a graded notebook has: what counts, and when nothing more is run."""

from __future__ import annotations

import math

import pytest

from pybox_kernel.errors import ExitStatus, OptionError
from pybox_kernel.notebook.cell_executor import Executed
from pybox_kernel.notebook.failures import exit_status, failure
from pybox_kernel.notebook.grading import why_no_score
from pybox_kernel.notebook.total_time import TotalTime, checked_total
from pybox_kernel.policy import STDLIB
from pybox_kernel.running.course import Program
from pybox_kernel.running.runner import not_run
from tests.receipts import samples

SAMPLES = samples()


def test_a_program_counts_for_as_long_as_it_ran() -> None:
    total = TotalTime(3)
    total.spend_on(SAMPLES["deadline"])
    assert SAMPLES["deadline"].observed.meters.ran_seconds == pytest.approx(2, abs=0.1)
    assert total.refusal() is None
    total.spend_on(SAMPLES["deadline"])
    assert "had 3 s together" in str(total.refusal())


def test_the_number_of_cells_is_bounded_too() -> None:
    total = TotalTime(1)
    for _ in range(3):
        total.spend(0)
        assert total.refusal() is None
    total.spend(0)
    assert total.refusal() is not None


def test_a_program_whose_time_is_not_known_counts_for_its_whole_limit_and_one_that_never_started_for_nothing() -> None:
    assert SAMPLES["box_lost"].observed.meters.ran_seconds is None
    total = TotalTime(SAMPLES["box_lost"].asked.options.deadline_seconds)
    total.spend_on(SAMPLES["not_sealed"])
    assert total.refusal() is None
    total.spend_on(SAMPLES["box_lost"])
    assert total.refusal() is not None


def test_without_a_limit_there_is_none() -> None:
    total = TotalTime()
    total.spend(1e9)
    assert total.refusal() is None


def test_a_cell_that_came_too_late_is_an_error_that_costs_points_and_has_a_receipt_that_says_why() -> None:
    total = TotalTime(0.1)
    total.spend(0)
    refusal = total.refusal()
    assert refusal is not None
    late = not_run(Program(b"1", STDLIB, 2.0, None), refusal)
    failed = failure(late)
    assert failed is not None
    assert (failed.ename, failed.evalue) == ("PyBoxNotRun", "Not run: the notebook's time is up.")
    assert exit_status(late.receipt) == ExitStatus.DEADLINE
    assert why_no_score(Executed(failed, late, exit_status(late.receipt))) is None


@pytest.mark.parametrize("wrong", [0, -1, math.nan, "soon", None, ""])
def test_what_is_no_time_is_refused(wrong: object) -> None:
    with pytest.raises(OptionError):
        checked_total(wrong)
    assert checked_total("0.5") == 0.5
