"""A run's course into its receipt: each fact under the kind it is of, each null with its reason."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pybox_kernel.boxes.box import Box
from pybox_kernel.carry.groups import Missing
from pybox_kernel.engine import Place
from pybox_kernel.errors import PyBoxError
from pybox_kernel.files.box_files import InputFile, OutputFile
from pybox_kernel.home_of_user import without_home
from pybox_kernel.receipt.model import (
    Asked,
    Boundary,
    BoxFile,
    Checked,
    CopiedValue,
    EngineUsed,
    FileNotBrought,
    InputCopy,
    KernelChecked,
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
from pybox_kernel.receipt.model import Box as BoxFacts
from pybox_kernel.running.carry_course import carried_of, lost_of, not_restored_of
from pybox_kernel.running.course import Course, Program
from pybox_kernel.running.end import end_of, meters_of
from pybox_kernel.running.transcript import StreamName
from pybox_kernel.running.walls import wall_of
from pybox_kernel.safe_display.text import safe_name, safe_text
from pybox_kernel.seal import seccomp
from pybox_kernel.seal.boundary import NOT_LOOKED_AT
from pybox_kernel.seal.runtimes import runtime_of
from pybox_kernel.seal.spec import Look
from pybox_kernel.wire.values import BroughtValue, Value, ValuesOut

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
                engine=safe_name(program.wish.engine, 300) or None,
                require_vm=program.wish.require_vm,
                another_machine=program.wish.another_machine,
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
            engine_used=engine_of(program.place, box),
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
    if box is None or box.sight is None:
        return NOT_LOOKED_AT
    if box.boundary.kind is None:
        unknown.append(Unknown(what="boundary", why="the boot id of the engine's kernel could not be read"))
    for name, value in box.boundary.settings or ():
        if value is None:
            unknown.append(Unknown(what=f"machine_{name}", why="its driver cannot tell"))
    return box.boundary


def engine_of(place: Place | None, box: Box | None) -> EngineUsed | None:
    """``place`` is that of the engine that was chosen; None where none could be."""
    if place is None:
        return None
    versions = box.engine.versions if box is not None else None
    runtime = box.runtime if box is not None else None
    found = runtime_of(runtime, versions)
    return EngineUsed(
        address=safe_name(without_home(place.address), 300),
        name=place.name,
        chosen=safe_name(place.chosen, 200),
        version=safe_name(versions.engine, 60) if versions is not None and versions.engine else None,
        runtime=safe_name(found.name, 60) if found.name else None,
        runtime_version=safe_name(found.version, 60) if found.version else None,
        warning=found.warning,
    )


def box_of(box: Box | None, waited: Waited | None, unknown: list[Unknown]) -> BoxFacts:
    if box is None:
        return BoxFacts(id=None, removed=None, waited=None)
    if box.removed and not box.cgroups_looked_at:
        unknown.append(Unknown(what="cgroups", why="nothing outside the box could look at the kernel's side of it"))
    if box.why_not_confirmed and box.removed is not True:
        unknown.append(Unknown(what="removed" if box.removed is None else "cleaning up", why=box.why_not_confirmed))
    return BoxFacts(id=box.id, removed=box.removed, waited=waited)
