"""How a cell fails in Jupyter's sense: whatever did not run to its end is an error, so that "run all" stops there.

And in a shell's sense: the exit status.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from pybox_kernel.errors import ExitStatus, InputError, PyBoxError, Stopped, TimeIsUp
from pybox_kernel.receipt.model import How, Receipt
from pybox_kernel.render.advice import advice, little_processor, longer_limit_line
from pybox_kernel.render.ending import ending
from pybox_kernel.running.runner import ProgramError, RunResult
from pybox_kernel.safe_display.text import SafeText, safe_text, without_colour
from pybox_kernel.wire.values import ValuesOut

__all__ = ["Failure", "exit_status", "failure", "failure_of_pybox"]

NOT_RUN: Final = "PyBoxNotRun"
FAILED: Final = "PyBoxFailed"
LEFT_EARLY: Final = "PyBoxLeftEarly"
NO_VALUE: Final = "PyBoxNoValue"
ENDED: Final[Mapping[How, str]] = {
    "not_started": NOT_RUN,
    "exited": "PyBoxExitCode",
    "signal": "PyBoxKilled",
    "deadline": "PyBoxDeadline",
    "stopped": "PyBoxStopped",
    "box_lost": "PyBoxBoxLost",
    "warden_failed": FAILED,
}
"""The names of the errors by which a cell fails other than with an exception of its own."""

OWN: Final = re.compile(r"[\W_]*pybox", re.IGNORECASE)
"""What those names begin with, and every line of PyBox's own in an error. A program's exception that is named so is
shown as ``Program. ...``, and a line of its traceback that begins so stands behind a bar."""


class Failure(NamedTuple):
    """The content of an ``error`` message, safe to show."""

    ename: str
    evalue: str
    traceback: list[str]


def failure(result: RunResult) -> Failure | None:
    """None if the program ran to its end, and all values that were asked of it came.

    The program's own exception where that is how it ended; otherwise what was observed, and the exception above it.
    Last, where there is something, what to do.
    """
    receipt, told = result.receipt, result.error
    if receipt.ok and told is None:
        return without_values(result.values)
    end, told_by = receipt.observed.end, ending(receipt)
    verdict = told_by.verdict
    if told is not None and end.how == "exited":
        name = f"Program. {told.name}" if OWN.match(told.name) else told.name
        met = advice(receipt) if told.about is None or told.about.kind != "magic" else None  # it says all itself
        return Failure(name, told.value, [*said(told), *([f"\nPyBox: {met}"] if met is not None else [])])
    name = ENDED[end.how]
    if receipt.problem is not None and receipt.problem.code == Stopped.code:
        name = ENDED["stopped"]
    elif end.how == "exited" and end.exit_code == 0:
        name = FAILED if receipt.said.completed else LEFT_EARLY
    lines = said(told) if told is not None else []
    lines.append(f"{name}: {verdict}")
    if receipt.problem is not None:
        lines.append(safe_text(f"{receipt.problem.message} {receipt.problem.advice}"))
    elif end.how == "deadline" and (line := longer_limit_line(receipt)):
        if busy := little_processor(receipt):
            lines.append(f"PyBox: {busy[0].lower()}{busy[1:]}")
        lines.append(f"PyBox: {line}")
    elif to_do := " ".join(told_by.to_do):
        lines.append(f"PyBox: {to_do[0].lower()}{to_do[1:]}")
    return Failure(name, verdict, lines)


def without_values(values: ValuesOut) -> Failure | None:
    """Who asks for a value goes on to use it: without it the cells below would take an older one, or none."""
    if not values.not_brought:
        return None
    lost = "; ".join(f"{item.name} {item.why}" for item in values.not_brought[:3])
    more = f"; and {len(values.not_brought) - 3} more" if len(values.not_brought) > 3 else ""
    told = safe_text(f"Not brought back: {lost}{more}.")
    return Failure(NO_VALUE, told, [f"{NO_VALUE}: {told}"])


def said(told: ProgramError) -> list[str]:
    """The program's own account of its error, in which no line can pass for one of PyBox's."""
    lines = told.traceback.rstrip("\n").split("\n")
    return ["\n".join(f"| {line}" if OWN.match(without_colour(SafeText(line))) else line for line in lines)]


def failure_of_pybox(error: Exception) -> Failure:
    """Where there is no receipt: a program that cannot be run, or PyBox's own failure."""
    if not isinstance(error, PyBoxError):
        told = f"PyBox itself failed ({type(error).__name__}). What went wrong is in the Jupyter server's log."
        return Failure(FAILED, told, [told])
    name = NOT_RUN if isinstance(error, InputError | TimeIsUp) else FAILED
    return Failure(name, safe_text(error.message), [safe_text(f"{error.message}\n{error.advice}")])


def exit_status(receipt: Receipt) -> int:
    """Of a program at a shell: an ``ExitStatus``."""
    how = receipt.observed.end.how
    if how == "stopped" or (receipt.problem is not None and receipt.problem.code == Stopped.code):
        return ExitStatus.INTERRUPTED
    if receipt.problem is not None and receipt.problem.code == TimeIsUp.code:
        return ExitStatus.DEADLINE
    if receipt.problem is not None or how in ("not_started", "box_lost", "warden_failed"):
        return ExitStatus.PYBOX_FAILED
    if receipt.observed.box.removed is not True:
        return ExitStatus.PYBOX_FAILED
    if how == "deadline":
        return ExitStatus.DEADLINE
    return ExitStatus.OK if receipt.ok else ExitStatus.PROGRAM_FAILED
