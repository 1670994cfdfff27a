"""A receipt in plain words, for a person who teaches and not for a kernel hacker. Every renderer shows these.

Four kinds of fact stay apart: allowed, seen from outside, said by the program, not known. Every text that
comes from a receipt passes ``safe_name``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pybox_kernel.render import boundary, carry, values
from pybox_kernel.render.advice import in_marks
from pybox_kernel.render.amounts import counted, finished, megabytes, milliseconds, seconds, size
from pybox_kernel.render.ending import OUTPUT, Tone, ending, files_given, is_cut, ran_to_its_end, them
from pybox_kernel.safe_display.text import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybox_kernel.receipt.model import InputCopy, NotAsRequired, Receipt, Said, Step, Stream, Withheld

__all__ = ["PROGRAM_STEP", "Difference", "Meter", "Section", "StepBar", "Tone", "Words", "words"]

PROGRAM_STEP: Final = "program ran"
STEP_NAMES: Final = {
    "made": "box made",
    "started": "box started",
    "ready": "box got ready",
    PROGRAM_STEP: "your code ran",
    "removed": "removed, looked again",
}
"""Other steps keep their names."""

MOST_LISTED: Final = 8

QUESTIONS: Final = {
    "memory_peak_bytes": "how much memory it used",
    "oom_kills": "whether anything was killed for memory",
    "tasks_peak": "how many processes and threads it had",
    "task_limit_hits": "whether it was refused a process or thread",
    "cpu_seconds": "how much processor time it used",
    "cpu_throttled_periods": "how often its processor was held back",
    "ran_seconds": "how long it ran",
    "exit_code": "its exit code",
    "removed": "whether the box is gone",
    "cgroups": "whether Linux, too, has nothing left of the box",
    "cleaning up": "whether everything was cleaned up",
    "output": "whether all of the output came through",
    "files": "whether all files that it wrote are here",
    "output_order": "in which order output and error output were written",
    "boundary": "whether another kernel stands in between",
    "machine_accelerator": "what runs the private virtual machine's processor",
    "machine_memory_mib": "how much memory the private virtual machine has",
    "machine_processors": "how many processors the private virtual machine has",
    "machine_network_devices": "whether the private virtual machine has a network device",
    "machine_shared_folders": "whether folders are shared with the private virtual machine",
    "carried_values": "whether what was carried in is right",
}
"""For what a receipt lists as unknown under the name of one of its fields."""


KINDS: Final = {
    "image/png": "PNG picture",
    "image/jpeg": "JPEG picture",
    "image/gif": "GIF picture",
    "image/svg+xml": "SVG picture",
    "application/pdf": "PDF",
    "text/html": "HTML",
    "text/markdown": "Markdown",
    "text/latex": "LaTeX",
    "application/javascript": "JavaScript",
    "text/javascript": "JavaScript",
    "application/json": "JSON",
    "application/geo+json": "map",
    "application/vnd.jupyter.widget-view+json": "widget",
    "application/vnd.plotly.v1+json": "Plotly chart",
    "audio/wav": "sound",
    "video/mp4": "video",
}
"""What a program may offer to show, by its MIME type. Other types keep their names."""


class Meter(NamedTuple):
    name: str
    value: str
    fraction: float | None
    """Of the limit, 0 to 1; None where it is not known."""


class StepBar(NamedTuple):
    name: str
    duration: str
    start: float
    length: float
    """Both as fractions of the whole, 0 to 1."""
    is_program: bool


class Section(NamedTuple):
    heading: str
    sentences: tuple[str, ...]


class Difference(NamedTuple):
    setting: str
    wanted: str
    found: str


class Words(NamedTuple):
    tone: Tone
    icon: str
    verdict: str
    notes: tuple[str, ...]
    """What stands behind the verdict in the folded line; at least one."""
    main: tuple[Section, ...]
    """For a person who reads only a few lines, under short labels; empty where nothing is unusual."""
    differences: tuple[Difference, ...]
    sections: tuple[Section, ...]
    """Allowed, seen from outside, the program says, not known, what to do; the last two only if not empty."""
    meters: tuple[Meter, ...]
    """Belong to what was seen from outside."""
    steps: tuple[StepBar, ...]

    @property
    def joint(self) -> str:
        """What stands between the verdict and the notes."""
        return " " if self.verdict.endswith(".") else " · "

    @property
    def folded(self) -> str:
        return f"{self.icon} {self.verdict}{self.joint}{' · '.join(self.notes)}"


SEEN, SAID, NOT_KNOWN = "Seen from outside", "The program says", "Not known"


def words(receipt: Receipt) -> Words:
    told = ending(receipt)
    started = receipt.observed.end.how != "not_started"
    act = "try" if started else "do"
    main = (("seen", told.seen), ("not known", told.not_known), (act, told.to_do))
    sections = (
        Section(
            "Allowed",
            (
                allowed(receipt),
                *given(receipt),
                *values.allowed(receipt),
                *boundary.allowed(receipt),
                *carry.allowed(receipt),
            ),
        ),
        Section(SEEN, (*told.seen, *also_seen(receipt), *carry.seen(receipt))),
        Section(SAID, tuple(said(receipt))),
        Section(NOT_KNOWN, (*told.not_known, *also_not_known(receipt))),
        Section(f"What to {act}", (*told.to_do, *filter(None, [carry.suspected(receipt)]))),
    )
    return Words(
        tone=told.tone,
        icon=told.icon,
        verdict=told.verdict,
        notes=tuple(told.notes),
        main=tuple(Section(label, tuple(told_of)) for label, told_of in main if told_of) * (told.tone != "ok"),
        differences=tuple(differences(receipt)),
        sections=tuple(section for section in sections if section.sentences),
        meters=tuple(meters(receipt)) if started else (),
        steps=tuple(steps(receipt.observed.steps)),
    )


def allowed(receipt: Receipt) -> str:
    policy, limit = receipt.asked.policy, receipt.asked.options.deadline_seconds
    cores = {0.5: "half a processor core", 1.0: "one processor core"}
    return (
        f"{megabytes(policy.memory_bytes)} MB of memory, "
        f"{cores.get(policy.cpu_cores, f'{policy.cpu_cores:g} processor cores')}, "
        f"{limit:g} {'second' if limit == 1 else 'seconds'}, "
        f"{policy.tasks} processes and threads; no network, {files_given(receipt)}."
    )


def given(receipt: Receipt) -> Iterator[str]:
    options, policy = receipt.asked.options, receipt.asked.policy
    if options.inputs:
        yield f"For its working folder, copies of: {listed(options.inputs)}."
    if options.output:
        most = f"{policy.files} and {size(policy.file_bytes)} in all"
        goal = f", to {in_marks(options.output_folder)}" if options.output_folder is not None else ""
        yield f"Of the files it writes there, {most} may be taken out{goal}."


def listed(files: tuple[InputCopy, ...]) -> str:
    named = [copied(file) for file in files[:MOST_LISTED]]
    if len(files) > MOST_LISTED:
        named.append(f"and {len(files) - MOST_LISTED} more")
    return ", ".join(named)


def copied(file: InputCopy) -> str:
    outside = f", from {in_marks(file.source)}" if file.source is not None else ""
    return f"{in_marks(file.name)} ({size(file.bytes)}{outside})"


def differences(receipt: Receipt) -> Iterator[Difference]:
    seal = receipt.observed.seal
    found: list[NotAsRequired] = [
        *seal.engine.differences,
        *seal.kernel.differences,
        *seal.inside.differences,
    ]
    for difference in found[:MOST_LISTED]:
        yield Difference(
            safe_name(difference.setting, 60),
            safe_name(difference.wanted, 120),
            safe_name(difference.found, 120),
        )
    if len(found) > MOST_LISTED:
        yield Difference(f"and {len(found) - MOST_LISTED} more", "see the details", "see the details")


def also_seen(receipt: Receipt) -> Iterator[str]:
    observed = receipt.observed
    seal, box = observed.seal, observed.box
    if observed.end.how != "not_started" and observed.meters.oom_kills == 0:
        yield "Nothing was killed for memory."
    if seal.before_start:
        checked = seal.engine.checked + seal.kernel.checked + seal.inside.checked
        if box.waited is None:
            yield f"The seal was checked before it started: all {checked} settings as required."
        else:
            yield f"The box was made in advance, for one program, and waited {seconds(box.waited.seconds)} s for it."
            yield f"The seal was checked then, and again before this one started: all {checked} settings as required."
        if seal.kernel.source == "the box's own reading":
            yield "Part of that was read from within the box, before your code was in it."
    if observed.saved_in is not None:
        yield f"Its files were written to {in_marks(observed.saved_in)}."
    if box.removed:
        yield "The box is removed, and confirmed gone."
    elif box.id is None:
        yield "There was no box."
    yield from boundary.seen(observed)
    if observed.end.how != "not_started":
        yield "The figures for memory and processes include start-up."
        if not observed.meters.final:
            yield "All amounts are from the last look before the end, not final."


def said(receipt: Receipt) -> Iterator[str]:
    told = receipt.said
    if receipt.observed.end.how == "not_started":
        yield "Nothing: it never started."
        return
    yield "Its word, not checked."
    if told.completed:
        yield "It reached its last line."
    if told.error is not None:
        yield f"Its error is {safe_name(told.error, 60)}."
    for stream, name in ((told.stdout, "output"), (told.stderr, "error output")):
        if stream.bytes:
            yield written(stream, name)
    if told.displays:
        yield displayed(told)
    for item in told.withheld[:MOST_LISTED]:
        yield f"Withheld: {withheld(item)}."
    if len(told.withheld) > MOST_LISTED:
        yield f"And {len(told.withheld) - MOST_LISTED} more withheld."
    yield from files(receipt)
    yield from values.said(receipt)
    yield from carry.said(receipt)
    if not told.completed:
        yield "Not that it reached its last line."


def files(receipt: Receipt) -> Iterator[str]:
    told = receipt.said
    for file in told.files:
        yield f"A file: {in_marks(file.name)}, {size(file.bytes)}."
    if told.files and not ran_to_its_end(receipt):
        yield "The program did not finish: its files may be incomplete."
    for item in told.not_brought:
        amount = f", {size(item.bytes)}" if item.bytes is not None else ""
        yield f"Not brought back: {in_marks(item.name)}{amount}: {finished(item.why)}"
    if told.not_brought_unlisted:
        yield f"Nor {counted(told.not_brought_unlisted, 'more file')}."
    if told.files_left:
        number = told.files_left
        yield f"It wrote {counted(number, 'file')} in its box; to get {them(number)}: {OUTPUT}."


def displayed(said: Said) -> str:
    plain = said.displays - said.pictures - said.tables - said.html
    forms = (
        (said.pictures, "picture", "pictures"),
        (said.tables, "table", "tables"),
        (said.html, "formatted text", "formatted texts"),
        (plain, "plain text", "plain texts"),
    )
    listed = ", ".join(counted(number, one, many) for number, one, many in forms if number)
    return f"{counted(said.displays, 'display')}: {listed}."


def withheld(item: Withheld) -> str:
    """What it is in plain words before what it is by name, and why, where it says so."""
    what, _, why = safe_name(item.what, 120).partition(": ")
    mime = what.removeprefix("parts of ")
    if mime in KINDS:
        what = f"{what.removesuffix(mime)}{KINDS[mime]} ({mime})"
    because = f": {why}" if why else ""
    several = f", {item.number:,} times" if item.number > 1 else ""
    return f"{what}{because}{several}, {size(item.bytes)}"


def written(stream: Stream, name: str) -> str:
    text = f"{size(stream.bytes)} of {name}"
    if is_cut(stream):
        text += f", of which the beginning and the end are kept ({size(stream.kept)})"
    if stream.bad_bytes:
        text += f"; {counted(stream.bad_bytes, 'byte')} of it not text, shown as \ufffd"
    return f"{text}."


def also_not_known(receipt: Receipt) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for entry in receipt.unknown:
        question = QUESTIONS.get(entry.what) or safe_name(entry.what.replace("_", " "), 100)
        reasons.setdefault(finished(entry.why), []).append(question)
    for why, questions in reasons.items():
        text = ", ".join(questions)
        yield f"{text[:1].upper()}{text[1:]}: {why}"
    how, said = receipt.observed.end.how, receipt.said
    if how == "not_started":
        return
    listed = {entry.what for entry in receipt.unknown}
    if receipt.observed.boundary.kind is None and "boundary" not in listed:
        yield "Whether another kernel stands in between."
    if said.stdout.bytes and said.stderr.bytes and "output_order" not in listed:
        yield "In which order output and error output were written."
    if how == "exited" and receipt.observed.end.exit_code == 0 and said.completed:
        yield "Whether the answer is right: PyBox does not judge that."


def meters(receipt: Receipt) -> Iterator[Meter]:
    found, policy = receipt.observed.meters, receipt.asked.policy
    limit = receipt.asked.options.deadline_seconds
    yield meter("time", found.ran_seconds, limit, f"{seconds(found.ran_seconds or 0)} of {limit:g} s")
    peak, most = found.memory_peak_bytes, policy.memory_bytes
    yield meter("memory, most", peak, most, f"{megabytes(peak or 0)} of {megabytes(most)} MB")
    refused = f"; refused {counted(found.task_limit_hits, 'time')}" if found.task_limit_hits else ""
    yield meter("processes, most", found.tasks_peak, policy.tasks, f"{found.tasks_peak} of {policy.tasks}{refused}")
    processor = limit * policy.cpu_cores
    held = found.cpu_throttled_periods
    slowed = f"; held back {counted(held, 'time')}" if held is not None else ""
    used = f"{seconds(found.cpu_seconds or 0)} of {processor:g} s{slowed}"
    yield meter("processor", found.cpu_seconds, processor, used)


def meter(name: str, value: float | None, limit: float, text: str) -> Meter:
    if value is None:
        return Meter(name, "not known", None)
    return Meter(name, text, min(1.0, max(0.0, value / limit)) if limit > 0 else None)


def steps(found: tuple[Step, ...]) -> Iterator[StepBar]:
    whole = max((step.offset_ms + step.duration_ms for step in found), default=0.0)
    for step in found:
        start = min(1.0, max(0.0, step.offset_ms / whole)) if whole > 0 else 0.0
        length = min(1.0 - start, max(0.0, step.duration_ms / whole)) if whole > 0 else 0.0
        name, duration = safe_name(STEP_NAMES.get(step.name, step.name), 40), milliseconds(step.duration_ms)
        yield StepBar(name, duration, start, length, is_program=step.name == PROGRAM_STEP)
