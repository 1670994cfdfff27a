"""A run's course into its receipt: each fact under the kind it is of, each null with its reason."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pybox_kernel import seccomp
from pybox_kernel.box import Box
from pybox_kernel.box_files import InputFile, OutputFile
from pybox_kernel.carry_course import carried_of, lost_of, not_restored_of
from pybox_kernel.carry_groups import Missing
from pybox_kernel.counters import Unread
from pybox_kernel.course import Course, Program
from pybox_kernel.errors import PyBoxError
from pybox_kernel.frames import Ended
from pybox_kernel.receipt import (
    Asked,
    Boundary,
    BoxFile,
    Checked,
    CopiedValue,
    End,
    FileNotBrought,
    How,
    InputCopy,
    KernelChecked,
    Meters,
    NotAsRequired,
    NotBroughtValue,
    Observed,
    Options,
    Problem,
    Receipt,
    Run,
    Said,
    Seal,
    Stream,
    Unknown,
    Waited,
)
from pybox_kernel.receipt import Box as BoxFacts
from pybox_kernel.safe_display import safe_name, safe_text
from pybox_kernel.seal import Look
from pybox_kernel.transcript import StreamName
from pybox_kernel.values import BroughtValue, Value, ValuesOut
from pybox_kernel.walls import wall_of
from pybox_kernel.witness import own_boot_id

__all__ = ["not_saved", "saved_in", "with_folder", "with_values", "write_receipt"]


def write_receipt(program: Program, course: Course) -> Receipt:
    """The receipt of a run that is over, its box removed or given up."""
    box, transcript = course.box, course.transcript
    streams = transcript.finish(course.ended)
    unknown: list[Unknown] = []
    end = end_of(program, course, unknown)
    return Receipt(
        run=Run(
            id=course.run,
            source_sha256=sha256(program.source),
            source_bytes=len(program.source),
            image=program.image,
            started_at=course.started_at,
        ),
        asked=Asked(
            policy=program.policy,
            options=Options(
                deadline_seconds=program.deadline_seconds,
                inputs=tuple(copy_of(file) for file in program.inputs),
                output=program.output,
                carry=program.mode or "off",
                output_folder=None,
                values=values_in(program),
                values_wanted=program.values.wanted,
            ),
            seccomp_sha256=seccomp.PROFILE_SHA256,
            uid=box.identity.uid if box is not None else None,
        ),
        observed=Observed(
            seal=seal_of(box),
            end=end,
            meters=meters_of(course, unknown),
            boundary=boundary_of(box, unknown),
            steps=tuple(course.timeline.steps),
            box=box_of(box, course.waited, unknown),
            carried=carried_of(program.sent, course.taken) if program.sent is not None else None,
            saved_in=None,
        ),
        said=Said(
            completed=course.ended is not None and course.ended.completed,
            stdout=streams["stdout"],
            stderr=streams["stderr"],
            displays=sum(transcript.displays.values()),
            pictures=transcript.displays["picture"],
            tables=transcript.displays["table"],
            html=transcript.displays["html"],
            withheld=transcript.withheld,
            error=transcript.error.name if transcript.error else None,
            wall=wall_of(transcript.error, program.earlier, program.mode, missing_in(program, course)),
            **files_of(program, course),
            **not_carried(course),
        ),
        unknown=(
            *unknown,
            *order_of(streams),
            *lost_output(course),
            *lost_files(program, course),
            *chosen_earlier(program, course),
        ),
        problem=course.problem,
    )


def order_of(streams: Mapping[StreamName, Stream]) -> Iterator[Unknown]:
    if streams["stdout"].bytes and streams["stderr"].bytes:
        yield Unknown(what="output_order", why="normal and error output come by two ways, so their order is not known")


def lost_output(course: Course) -> Iterator[Unknown]:
    if course.program_sent and course.ended is None:
        yield Unknown(what="output", why="the box ended without its last word, and with it went what came late")


# Values of other cells


def missing_in(program: Program, course: Course) -> Mapping[str, Missing]:
    """Why names of earlier cells are not there: it was known before, or the program says so, or they did not go in."""
    if program.sent is None:
        return {}
    cells = {name: group.cell for group in program.sent.groups for name in group.names}
    known = dict(program.sent.missing)
    known |= {name: Missing(group.cell, "kept_back") for group in program.sent.left for name in group.names}
    for item in course.left.not_restored:
        known |= {name: Missing(cells.get(name), "not_restored", item.why) for name in item.names}
    return known


def not_carried(course: Course) -> dict[str, Any]:
    lost = tuple(lost_of(course.taken.lost)) if course.taken is not None else ()
    failed = tuple(not_restored_of(course.left.not_restored))
    return {
        "lost": lost,
        "lost_more": course.taken.lost_more + len(course.taken.lost) - len(lost) if course.taken is not None else 0,
        "not_restored": failed,
        "not_restored_more": len(course.left.not_restored) - len(failed),
    }


def chosen_earlier(program: Program, course: Course) -> Iterator[Unknown]:
    if program.sent is not None and program.sent.groups and course.program_sent:
        yield Unknown(what="carried_values", why="earlier programs chose it, unchecked")


# Files


def copy_of(file: InputFile) -> InputCopy:
    source = None if file.source is None else str(safe_name(file.source))
    return InputCopy(name=file.name, bytes=len(file.data), sha256=sha256(file.data), source=source)


def facts_of(files: Iterable[OutputFile]) -> tuple[BoxFile, ...]:
    return tuple(BoxFile(name=file.name, bytes=len(file.data), sha256=sha256(file.data)) for file in files)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def files_of(program: Program, course: Course) -> dict[str, Any]:
    found = course.files
    if found is None:
        return {"files": (), "not_brought": (), "not_brought_unlisted": 0, "files_left": 0}
    return {
        "files": facts_of(found.files),
        "not_brought": tuple(FileNotBrought(**item._asdict()) for item in found.not_brought),
        "not_brought_unlisted": found.not_listed,
        "files_left": found.found if found.found is not None and not program.output else 0,
    }


def with_folder(receipt: Receipt, folder: str) -> Receipt:
    """The receipt of a run whose files are to go to a folder of this computer, by the path that was written."""
    options = receipt.asked.options.model_copy(update={"output_folder": str(safe_name(folder))})
    return receipt.model_copy(update={"asked": receipt.asked.model_copy(update={"options": options})})


def saved_in(receipt: Receipt, folder: str) -> Receipt:
    """The receipt of a run whose files were written to that folder of this computer."""
    observed = receipt.observed.model_copy(update={"saved_in": str(safe_name(folder))})
    return receipt.model_copy(update={"observed": observed})


def not_saved(receipt: Receipt, error: PyBoxError) -> Receipt:
    """The receipt of a run whose files came out of the box and could not be written to this computer."""
    said = receipt.said
    lost = tuple(
        FileNotBrought(name=file.name, bytes=file.bytes, why="it could not be written to this computer")
        for file in said.files
    )
    problem = Problem(code=error.code, message=safe_text(error.message), advice=error.advice)
    return receipt.model_copy(
        update={
            "said": said.model_copy(update={"files": (), "not_brought": (*lost, *said.not_brought)}),
            "problem": receipt.problem or problem,
        }
    )


# Values


def values_in(program: Program) -> tuple[CopiedValue, ...]:
    return tuple(copied(value) for value in program.values.values)


def copied(value: Value | BroughtValue) -> CopiedValue:
    digest = hashlib.sha256(value.data).hexdigest()
    return CopiedValue(name=value.name, kind=value.kind, shape=value.shape, bytes=len(value.data), sha256=digest)


def with_values(receipt: Receipt, values: ValuesOut) -> Receipt:
    """The receipt with what came of the values that were asked for."""
    found = {
        "values": tuple(copied(value) for value in values.brought),
        "values_not_brought": tuple(NotBroughtValue(**item._asdict()) for item in values.not_brought),
    }
    return receipt.model_copy(update={"said": receipt.said.model_copy(update=found)})


def lost_files(program: Program, course: Course) -> Iterator[Unknown]:
    """Why it is not known which files there were, where that was asked."""
    if not program.output or not course.program_sent:
        return
    if course.files is None:
        why = (
            "a process of it could not be ended" if course.ended is not None else "the box ended without its last word"
        )
        yield Unknown(what="files", why=why)
    elif course.files.incomplete is not None:
        yield Unknown(what="files", why=course.files.incomplete)
    elif not course.files.told:
        yield Unknown(what="files", why="the box ended before it had told of all its files")


# How it ended


def end_of(program: Program, course: Course, unknown: list[Unknown]) -> End:
    """Names a cause only where something establishes it: the warden's account, the supervisor's own act, a counter."""
    status = course.box.exit_status if course.box is not None else None
    how = how_it_ended(course)
    evidence = tuple(evidence_of(program, course, how, status))
    if how == "not_started":
        return End(how=how, exit_code=None, signal=None, evidence=evidence)
    if how not in ("exited", "signal") or course.ended is None:
        code = status if how == "box_lost" else None
        if how in ("box_lost", "warden_failed") and code is None:
            unknown.append(Unknown(what="exit_code", why="the box ended without saying how the program did"))
        return End(how=how, exit_code=code, signal=None, evidence=evidence)
    code, killer = exit_of(course.ended)
    if status is not None and status != code:
        why = f"the box's own part says {code}, the engine says {status}"
        unknown.append(Unknown(what="exit_code", why=why))
        code = None
    return End(how=how, exit_code=code, signal=killer, evidence=evidence)


def how_it_ended(course: Course) -> How:
    ended = course.ended
    if not course.program_sent:
        return "not_started"
    if ended is None and course.backstop is not None:
        return course.backstop
    if ended is None:
        return "warden_failed" if course.warden_failed else "box_lost"
    if ended.how == "exited":
        return "exited" if ended.signal is None else "signal"
    return ended.how


def evidence_of(program: Program, course: Course, how: How, status: int | None) -> Iterator[str]:
    if how in ("exited", "signal"):
        ending = "end by itself" if how == "exited" else "ended by a signal"
        yield f"the box's own part saw the program {ending}"
        if status is None:
            yield "the engine's own record of the exit status was not obtained"
    elif course.backstop is not None:
        yield f"the supervisor ended it from outside ({course.backstop})"
    elif how == "deadline":
        yield f"the box's own timer ended it at {program.deadline_seconds:g} s"
    elif how == "stopped":
        yield "the box's own part ended it when asked to stop"
    if status is not None:
        yield f"the engine recorded exit status {status}"
    if course.before is not None and course.after is not None:
        kills = difference(course.before.oom_kills, course.after.oom_kills)
        if isinstance(kills, int) and kills > 0:
            yield f"the Linux kernel counted {kills} killed for memory"
    if course.warden_said:
        yield f"the box's own part said: {course.warden_said}"


def exit_of(ended: Ended) -> tuple[int | None, str | None]:
    """The exit status as the engine should have it, and the signal's name."""
    if ended.signal is None:
        return ended.code, None
    try:
        name = signal.Signals(ended.signal).name
    except ValueError:
        name = f"signal {ended.signal}"
    return 128 + ended.signal, name


# What was counted


def difference(before: int | Unread, after: int | Unread) -> int | Unread:
    if isinstance(after, Unread):
        return after
    if isinstance(before, Unread):
        return before
    return after - before if after >= before else Unread("the counter ran backwards")


def meters_of(course: Course, unknown: list[Unknown]) -> Meters:
    """What the kernel counted during the run. Each null is listed as unknown, if the program started at all."""
    values = {
        **counted(course),
        "ran_seconds": Unread("the box ended without saying how long the program ran"),
    }
    if course.ended is not None:
        values["ran_seconds"] = round(course.ended.ran_ms / 1000, 6)
    if course.program_sent:
        unknown += [Unknown(what=name, why=value.why) for name, value in values.items() if isinstance(value, Unread)]
    numbers = {name: None if isinstance(value, Unread) else value for name, value in values.items()}
    return Meters.model_validate({"final": course.after_is_final, **numbers})


def counted(course: Course) -> dict[str, int | float | Unread]:
    before, after = course.before, course.after
    if before is None or after is None:
        why = Unread("the box's counters could not be read at the end of the run")
        names = set(Meters.model_fields) - {"final", "ran_seconds"}
        return dict.fromkeys(sorted(names), why)
    cpu = difference(before.cpu_microseconds, after.cpu_microseconds)
    return {
        "memory_peak_bytes": after.memory_peak_bytes,
        "oom_kills": difference(before.oom_kills, after.oom_kills),
        "tasks_peak": after.tasks_peak,
        "task_limit_hits": difference(before.task_limit_hits, after.task_limit_hits),
        "cpu_seconds": cpu if isinstance(cpu, Unread) else cpu / 1e6,
        "cpu_throttled_periods": difference(before.cpu_throttled_periods, after.cpu_throttled_periods),
    }


# The seal, the boundary, the box


def seal_of(box: Box | None) -> Seal:
    looks = (box.engine_look, box.kernel_look, box.inside_look) if box is not None else (Look(0, ()),) * 3
    engine, kernel, inside = looks
    return Seal(
        before_start=all(look.checked and not look.differences for look in looks),
        engine=Checked(checked=engine.checked, differences=differences(engine)),
        kernel=KernelChecked(
            checked=kernel.checked,
            differences=differences(kernel),
            source=box.sight.source if box is not None and box.sight is not None else None,
        ),
        inside=Checked(checked=inside.checked, differences=differences(inside)),
    )


def differences(look: Look) -> tuple[NotAsRequired, ...]:
    return tuple(
        NotAsRequired(setting=safe_name(d.setting), wanted=safe_name(d.wanted), found=safe_name(d.found))
        for d in look.differences
    )


def boundary_of(box: Box | None, unknown: list[Unknown]) -> Boundary:
    """Whether the box runs on this computer's own kernel: by the boot id (random(4)), which no two boots share."""
    sight = box.sight if box is not None else None
    if sight is None or sight.boot_id is None:
        if box is not None and box.sight is not None:
            unknown.append(Unknown(what="boundary", why="the boot id of the engine's kernel could not be read"))
        return Boundary(kind=None, evidence="not looked at" if sight is None else "no boot id")
    own = own_boot_id()
    if own == sight.boot_id:
        return Boundary(kind="this_kernel", evidence="the box's kernel has the same boot id as this computer's")
    return Boundary(kind="other_kernel", evidence="the box's kernel has another boot id than this computer's")


def box_of(box: Box | None, waited: Waited | None, unknown: list[Unknown]) -> BoxFacts:
    if box is None:
        return BoxFacts(id=None, removed=None, waited=None)
    if box.removed and not box.cgroups_looked_at:
        unknown.append(Unknown(what="cgroups", why="nothing outside the box could look at the kernel's side of it"))
    if box.why_not_confirmed and box.removed is not True:
        unknown.append(Unknown(what="removed" if box.removed is None else "cleaning up", why=box.why_not_confirmed))
    return BoxFacts(id=box.id, removed=box.removed, waited=waited)
