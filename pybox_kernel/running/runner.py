"""One cell in, its output as it comes, one receipt out. Every door runs a cell through here and in no other way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

from pybox_kernel.boxes.box import Box, fresh_identity
from pybox_kernel.boxes.journal import Journal
from pybox_kernel.boxes.pool import Pool
from pybox_kernel.boxes.shelf import Kind
from pybox_kernel.boxes.waiting_box import WaitingBox
from pybox_kernel.carry.groups import TakenOut
from pybox_kernel.engine import Engine
from pybox_kernel.errors import PyBoxError
from pybox_kernel.files.box_files import OutputFile
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.running.carry_course import take
from pybox_kernel.running.conversation import Conversation
from pybox_kernel.running.course import Course, Program
from pybox_kernel.running.end import take_kept_counters
from pybox_kernel.running.receipt_writer import with_values, write_receipt
from pybox_kernel.running.transcript import ProgramError, Transcript, Watcher
from pybox_kernel.safe_display.displays import Refused
from pybox_kernel.safe_display.html_cleaner import CleanedHtml, HtmlCleaner
from pybox_kernel.safe_display.text import SafeText
from pybox_kernel.seal.witness import Witness
from pybox_kernel.stop import Stop
from pybox_kernel.wire.parcels import CarryIn, Parcel
from pybox_kernel.wire.values import ValuesOut, nothing, outcome

__all__ = [
    "CarryIn",
    "Parcel",
    "Program",
    "ProgramError",
    "RunResult",
    "Stop",
    "Watcher",
    "not_run",
    "run_program",
]


@dataclass(frozen=True)
class RunResult:
    """A receipt, and the output that belongs to it."""

    receipt: Receipt
    stdout: SafeText
    stderr: SafeText
    error: ProgramError | None
    notices: tuple[str, ...] = ()
    """What happened beside the run that the person should know, a sentence each."""
    files: tuple[OutputFile, ...] = ()
    """What was taken out of the box, where that was asked for."""
    carried: Parcel | str | None = None
    """What the program leaves for later cells, or why that did not come; null where nothing was to be carried. It is
    the program's word, also of a run that failed."""
    taken: TakenOut | None = None
    """What of it counts, checked; null where nothing does, since the run did not end so."""
    values: ValuesOut = field(default_factory=ValuesOut)
    """Those that were asked for: its word, and nothing of a run that did not end well."""


def run_program(
    program: Program,
    engine: Engine,
    journal: Journal,
    witness: Witness | None,
    clean_html: Callable[[str], CleanedHtml],
    watcher: Watcher | None = None,
    stop: Stop | None = None,
    pool: Pool | None = None,
) -> RunResult:
    """Runs ``program`` in a fresh box, one that waits in ``pool`` or one made now, and returns when the box is gone, or
    was given up with that on the receipt.

    Raises nothing of its own: trouble is on the receipt (``problem``, ``unknown``). What the watcher raises, and a
    KeyboardInterrupt, pass through after the box is removed.
    """
    assert program.image is not None
    stop = stop or Stop()

    def clean_unless_stopped(source: str) -> CleanedHtml:
        if stop.is_set():  # who asked for it does not wait for what they did not want
            raise Refused("the cell was stopped")
        return clean_html(source)

    course = Course(Transcript(watcher, clean_unless_stopped))
    kind = Kind(program.image.id, program.policy)
    waiting = None
    with pool.cell() if pool is not None else nullcontext(do_nothing) as program_over:
        try:
            waiting = pool.take(kind, stop, course.timeline) if pool is not None else None
            if waiting is not None:
                course.run, course.waited = waiting.box.run, waiting.waited()
            else:
                identity = fresh_identity(journal, course.run, program.image.id, program.deadline_seconds)
                waiting = WaitingBox(Box(engine, journal, witness, program.policy, identity, course.run))
            course.box = waiting.box
            if course.waited is None:
                waiting.make_ready(stop, course.timeline)
            Conversation(program, course, waiting, watcher, stop).hold()
        except PyBoxError as error:
            course.set_problem(error)
        finally:
            program_over()
            if waiting is not None:
                course.warden_said = waiting.said
                with course.timeline.step("removed"):
                    try:
                        waiting.destroy()
                    except KeyboardInterrupt:
                        waiting.destroy()
                        raise
    take_kept_counters(course)
    take(program, course)
    receipt = write_receipt(program, course)
    brought = values_of(program, course, receipt)
    return RunResult(
        receipt=with_values(receipt, brought),
        stdout=course.transcript.text("stdout"),
        stderr=course.transcript.text("stderr"),
        error=course.transcript.error,
        files=tuple(course.files.files) if course.files is not None else (),
        carried=course.carried.outcome() if program.carry is not None else None,
        taken=course.taken,
        values=brought,
    )


def do_nothing() -> None: ...


def values_of(program: Program, course: Course, receipt: Receipt) -> ValuesOut:
    """What came of the values that were asked for."""
    wanted = program.values.wanted
    if not wanted:
        return ValuesOut()
    if not receipt.ok:
        return nothing(wanted, "did not come: only a cell that ends well gives values back")
    return outcome(course.values.outcome(), wanted)


def not_run(program: Program, error: PyBoxError) -> RunResult:
    """The result of a run for which no box could even be asked: no engine, no image."""
    course = Course(Transcript(None, HtmlCleaner().clean))
    course.set_problem(error)
    receipt = write_receipt(program, course)
    brought = values_of(program, course, receipt)
    return RunResult(with_values(receipt, brought), SafeText(""), SafeText(""), None, values=brought)
