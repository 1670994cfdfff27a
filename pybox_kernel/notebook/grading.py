"""Grading: a score comes of what a student's program did, and never of what PyBox failed to do.

nbgrader gives no points to a cell that shows an error, and cannot tell whose. So where PyBox could not do its part, the
kernel ends: then nbgrader records no score, names the student, goes on with the others, and tries again when it is
called again.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from pybox_kernel.errors import ExitStatus, OptionError
from pybox_kernel.files import files_in
from pybox_kernel.notebook.cell_executor import Executed
from pybox_kernel.notebook.commands import Options
from pybox_kernel.notebook.total_time import checked_total
from pybox_kernel.policy import STDLIB, checked_deadline, policy_for
from pybox_kernel.render.ending import ending
from pybox_kernel.safe_display.text import SafeText, safe_name, safe_text, without_colour

__all__ = ["check_standing", "is_graded", "permitted", "why_no_score"]

VARIABLE: Final = "NBGRADER_EXECUTION"
"""By which nbgrader tells a kernel what it runs it for."""

NOT_THE_PROGRAMS: Final = (ExitStatus.PYBOX_FAILED, ExitStatus.INTERRUPTED)
"""The latter since nobody but nbgrader stops a cell there, after a time in which the box should long have been gone."""


def is_graded() -> bool:
    """Whether nbgrader started this process to grade."""
    return os.environ.get(VARIABLE) == "autograde"


def permitted(asked: Options, standing: Options) -> Options:
    """What a notebook may ask for where it is graded: no more time than ``standing`` has, no other image, and no other
    files, since what lies beside a submission may have come there by a link. Raises OptionError. That a failed cell be
    no error, that receipts be left out, that files be kept, and that help be shown instead of running the program is
    not heard."""
    policy = policy_for(standing.image or STDLIB.image)
    most = checked_deadline(policy, standing.timeout)
    if asked.timeout is not None and checked_deadline(policy, asked.timeout) > most:
        raise OptionError(
            f"Where it is graded, a cell gets {most:g} s at most.",
            "Ask for less; or whoever grades allows more: see docs/classroom.md.",
        )
    if asked.image is not None and asked.image != policy.image:
        raise OptionError(
            f"Where it is graded, every box is made from the image {policy.image}.",
            "Leave --image out; or whoever grades chooses another: see docs/classroom.md.",
        )
    if others := [path for path in asked.input if path not in standing.input]:
        raise OptionError(
            "Where it is graded, a cell gets only the files that whoever grades names; "
            f"{safe_name(others[0], 60)} is not among them.",
            "Leave --input out; or whoever grades names it: see docs/classroom.md.",
        )
    return replace(asked, help=False, no_raise=False, quiet=False, output=None)


def check_standing(standing: Options, total_time: object) -> None:
    """Raises PyBoxError where what whoever grades asks for cannot be had: that is to cost no student a point."""
    policy = policy_for(standing.image or STDLIB.image)
    checked_deadline(policy, standing.timeout)
    checked_total(total_time)
    if standing.input:
        files_in.read(policy, standing.input, Path.cwd())


def why_no_score(executed: Executed) -> SafeText | None:
    """Why what came of a cell says nothing of the program in it; None where it does.

    A box that was lost counts as the program's doing where the Linux kernel killed processes in it for memory: a
    program can see to it that the box's own process is among them.
    """
    if executed.status not in NOT_THE_PROGRAMS:
        return None
    if executed.result is not None:
        observed = executed.result.receipt.observed
        if observed.end.how == "box_lost" and observed.meters.oom_kills:
            return None
    if executed.failure is not None:
        return without_colour(safe_text("\n".join(executed.failure.traceback[-2:])))
    if executed.result is None:
        return safe_text("it is not known.")
    told = ending(executed.result.receipt)
    return safe_text(". ".join([told.verdict, *told.to_do]))
