"""How a run ended, in plain words: the verdict, and the few sentences that go with it.

A cause is named only where the receipt holds the evidence for it. An exit code is the program's own number,
whatever it looks like: 137 is no memory kill and 124 is no time limit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pybox_kernel.render import values
from pybox_kernel.render.advice import FEWER_TASKS, LESS_DATA, advice, little_processor, longer_limit
from pybox_kernel.render.amounts import counted, megabytes, seconds, sentence
from pybox_kernel.render.boundary import boundary_note
from pybox_kernel.render.carry import lost_note
from pybox_kernel.safe_display.text import safe_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pybox_kernel.receipt.model import How, Receipt, Stream

__all__ = ["NOT_RUN", "OUTPUT", "Ending", "Tone", "ending", "files_given", "ran_to_its_end", "them"]

Tone = Literal["ok", "warn", "stop", "bad"]
ICONS: Final[dict[Tone, str]] = {"ok": "✓", "warn": "⚠", "stop": "◷", "bad": "✗"}

NOT_RUN: Final = {
    "pybox_failed": "PyBox could not do its part",
    "setup": "the box's image is not ready",
    "engine": "the container engine failed",
    "engine_missing": "no container engine answers",
    "vm_missing": "no private virtual machine can be used",
    "engine_elsewhere": "the container engine is on another machine",
    "engine_denied": "you may not use the container engine",
    "engine_timeout": "the container engine does not answer in time",
    "engine_refused": "the container engine refused",
    "engine_not_found": "the container engine does not have what is needed",
    "not_sealed": "the box was not sealed as required",
    "box": "its box was not ready",
    "stopped": "you stopped it before it began",
    "time_is_up": "the notebook's time is up",
}
"""By the problem's code. Bad input never makes a receipt."""

CRASHES: Final = {
    "SIGSEGV": "segmentation fault",
    "SIGBUS": "bus error",
    "SIGILL": "illegal instruction",
    "SIGFPE": "arithmetic fault",
    "SIGABRT": "abort",
    "SIGTRAP": "trap",
    "SIGSYS": "forbidden system call",
}
SIGNALS: Final = {
    "SIGTERM": "asked to end",
    "SIGINT": "interrupted",
    "SIGQUIT": "asked to quit",
    "SIGHUP": "hung up",
    "SIGPIPE": "nobody read what it wrote",
    "SIGALRM": "its own alarm",
    "SIGXCPU": "a limit on processor time",
    "SIGXFSZ": "a limit on the size of a file",
}
RESERVED_CODES: Final = 124
"""From here on, shells and their kin give exit codes a meaning of their own."""

OUTPUT: Final = "--output DIR"
QUIET_END: Final = "Ended by itself, without an error code."
SENDER: Final = "Which process sent the signal: one of the program's own can."
LOSS: Final = "Which part was killed, and what was lost."


@dataclass
class Ending:
    tone: Tone
    verdict: str
    icon: str = ""
    notes: list[str] = field(default_factory=list)
    """What stands behind the verdict in the folded line."""
    seen: list[str] = field(default_factory=list)
    not_known: list[str] = field(default_factory=list)
    to_do: list[str] = field(default_factory=list)
    """These three: sentences for a person who reads only a few lines."""
    tells: frozenset[Kind] = frozenset()
    """Troubles that the verdict tells of already."""


Kind = Literal["memory", "tasks", "problem", "removal"]


class Trouble(NamedTuple):
    """Something beside the end itself that makes a run less than normal."""

    kind: Kind
    note: str
    """Reads well alone, and after "but"."""
    seen: str = ""
    not_known: str = ""
    to_do: str = ""
    tone: Tone = "warn"


def ending(receipt: Receipt) -> Ending:
    told = TOLD[receipt.observed.end.how](receipt)
    found = list(troubles(receipt))
    notes = [trouble.note for trouble in found if trouble.kind not in told.tells]
    if told.tone == "ok" and found:
        told.tone = "bad" if any(trouble.tone == "bad" for trouble in found) else "warn"
        told.verdict = f"Ended without an error code, but {notes.pop(0)}"
        if any(trouble.kind in ("memory", "tasks") for trouble in found):
            notes.append("results may be incomplete")
    told.icon = told.icon or ICONS[told.tone]
    told.notes += [*notes, *circumstances(receipt, told.tone)]
    told.seen += [trouble.seen for trouble in found if trouble.seen]
    told.not_known += [trouble.not_known for trouble in found if trouble.not_known]
    told.to_do += [trouble.to_do for trouble in found if trouble.to_do and trouble.to_do not in told.to_do]
    if differs(receipt):
        told.to_do.append("Do not switch kernels to get round this.")
    return told


# How it ended


def exited(receipt: Receipt) -> Ending:
    code = receipt.observed.end.exit_code
    error = receipt.said.error
    reported = [f"it says {error_name(error)}"] if error is not None else []
    if code is None:
        return Ending("bad", "Ended by itself; its exit code is not known", notes=reported)
    if code != 0:
        seen = f"Ended by itself, with exit code {code}."
        if code >= RESERVED_CODES:
            seen += " That number is the program's own: no time limit ended it, and nobody stopped it."
        if error is None:
            seen += f" Exit codes wrap at 256: {code + 256} shows as {code} too."
        verdict = "Ended with an error" if error is not None else f"Ended with exit code {code}"
        met = advice(receipt)
        return Ending("bad", verdict, notes=reported, seen=[seen], to_do=[str(met)] if met is not None else [])
    if not receipt.said.completed:
        return Ending(
            "bad",
            "Left early, before its last line",
            notes=[*reported, "no error code"],
            seen=[QUIET_END, "Exit codes wrap at 256, so one of 256 would look the same."],
            not_known=["What it left undone."],
            to_do=["Look for what ends the program on the way, like exit()."],
        )
    if error is not None:
        return Ending("bad", "Ended without an error code, but reports an error", notes=reported, seen=[QUIET_END])
    return Ending("ok", "Ended normally", seen=[QUIET_END])


def error_name(error: str) -> str:
    """As exceptions are named in Python; a program could call one anything, a clean run's words included."""
    return safe_name(error, 60) if error.isidentifier() else "an error"


def ended_by_signal(receipt: Receipt) -> Ending:
    name = receipt.observed.end.signal or ""
    if name in CRASHES:
        return Ending(
            "bad",
            f"Crashed in native code ({CRASHES[name]})",
            seen=[f"Ended by a signal: {CRASHES[name]}."],
            not_known=["Where it crashed, or whether a process of its own sent that signal."],
        )
    if name == "SIGKILL" and receipt.observed.meters.oom_kills:
        return Ending("bad", "Killed for memory", seen=["Ended by force."], tells=frozenset({"memory"}))
    if name == "SIGKILL":
        return Ending("bad", "Killed; cause not established", seen=["Ended by force."], not_known=[SENDER])
    what = f" ({SIGNALS[name]})" if name in SIGNALS else ""
    return Ending("bad", f"Ended by a signal{what}", seen=["Ended by a signal."], not_known=[SENDER])


def ended_at_deadline(receipt: Receipt) -> Ending:
    limit = receipt.asked.options.deadline_seconds
    instead = longer_limit(limit, receipt.asked.policy.longest_deadline_seconds)
    if receipt.observed.meters.ran_seconds is None:  # the box itself never said how it ended
        return Ending(
            "stop",
            f"Ended from outside, after its {limit:g} s limit",
            seen=evidence_of(receipt)[:1],
            not_known=["Whether it was still running at its limit."],
            to_do=[instead],
        )
    return Ending(
        "stop",
        f"Stopped at its {limit:g} s limit",
        seen=[
            f"Still running at {limit:g} s; it and everything it had started were stopped.",
            *evidence_of(receipt)[:1],
        ],
        not_known=["Whether it would have finished."],
        to_do=[*filter(None, [little_processor(receipt)]), instead],
    )


def ended_on_request(receipt: Receipt) -> Ending:
    return Ending(
        "stop",
        "Stopped by you",
        seen=["It and everything it had started were stopped.", *evidence_of(receipt)[:1]],
        not_known=["Whether it would have finished."],
    )


def box_lost(receipt: Receipt) -> Ending:
    killed = receipt.observed.meters.oom_kills
    return Ending(
        "bad",
        "The box ended without its last report",
        notes=[] if killed else ["cause not established"],
        seen=evidence_of(receipt),
        not_known=["Whether the program had finished, and what was lost."],
        to_do=[] if receipt.problem or killed else ["Run it once more."],
        tells=frozenset({"problem"} if killed else {"problem", "memory"}),
    )


def warden_failed(receipt: Receipt) -> Ending:
    return Ending(
        "bad",
        "PyBox's own part in the box failed",
        seen=evidence_of(receipt),
        not_known=["How far the program came."],
        to_do=[] if receipt.problem else ["Run it once more."],
        tells=frozenset({"problem"}),
    )


def not_started(receipt: Receipt) -> Ending:
    problem = receipt.problem
    if differs(receipt):
        why = NOT_RUN["not_sealed"]
    elif problem is not None:
        why = NOT_RUN.get(problem.code, NOT_RUN["pybox_failed"])
    else:
        why = "it was stopped before it began"
    return Ending(
        "bad",
        f"Not run: {why}.",
        icon="■",
        notes=["Your code never started."],
        tells=frozenset({"problem"}),
    )


TOLD: Final[dict[How, Callable[[Receipt], Ending]]] = {
    "not_started": not_started,
    "exited": exited,
    "signal": ended_by_signal,
    "deadline": ended_at_deadline,
    "stopped": ended_on_request,
    "box_lost": box_lost,
    "warden_failed": warden_failed,
}


def evidence_of(receipt: Receipt) -> list[str]:
    return [sentence(text) for text in receipt.observed.end.evidence]


# What else happened


def troubles(receipt: Receipt) -> Iterator[Trouble]:
    meters, policy, box = receipt.observed.meters, receipt.asked.policy, receipt.observed.box
    started = receipt.observed.end.how != "not_started"
    if meters.oom_kills:
        peak = meters.memory_peak_bytes
        most = f"; the most in use was {megabytes(peak)} of {megabytes(policy.memory_bytes)} MB" if peak else ""
        killed = f"Linux killed {counted(meters.oom_kills, 'process', 'processes')} for memory{most}."
        yield Trouble("memory", "part of it was killed for memory", killed, LOSS, LESS_DATA)
    elif meters.oom_kills is None and started:
        yield Trouble("memory", "whether part of it was killed for memory is not known")
    if meters.task_limit_hits:
        hits = counted(meters.task_limit_hits, "time", "times")
        yield Trouble(
            "tasks",
            f"it met its limit of {policy.tasks} processes and threads",
            f"Linux refused it one more process or thread {hits}; {policy.tasks} at once are allowed.",
            "What it left undone for want of them.",
            FEWER_TASKS,
        )
    if receipt.problem is not None:
        message, advice = sentence(receipt.problem.message, 600), sentence(receipt.problem.advice, 600)
        yield Trouble("problem", "PyBox could not do all of its part", message, to_do=advice, tone="bad")
    if box.removed is False:
        yield Trouble("removal", "its box is still there", "The box is still there.", tone="bad")
    elif box.id is not None and box.removed is None:
        yield Trouble("removal", "its box is not confirmed gone")


def circumstances(receipt: Receipt, tone: Tone) -> Iterator[str]:
    """The rest of the folded line: output, files, time, the seal, the boundary."""
    how, said, observed = receipt.observed.end.how, receipt.said, receipt.observed
    if how == "not_started":
        return
    if any(is_cut(stream) for stream in (said.stdout, said.stderr)):
        yield "beginning and end of the output kept"
    elif how not in ("exited", "signal") and said.stdout.bytes + said.stderr.bytes:
        yield "output so far kept"
    if said.files:
        maybe = "" if ran_to_its_end(receipt) else ", maybe incomplete"
        beside = " in another folder, since that one was taken meanwhile" if is_beside(receipt) else ""
        yield f"{counted(len(said.files), 'file')} saved{beside}{maybe}"
    if missed := len(said.not_brought) + said.not_brought_unlisted:
        yield f"{counted(missed, 'file')} not brought back"
    if any(entry.what == "files" for entry in receipt.unknown):
        yield "maybe not all of its files"
    if said.files_left:
        yield f"wrote {counted(said.files_left, 'file')} in its box; to get {them(said.files_left)}: {OUTPUT}"
    if said.withheld:
        yield f"{counted(sum(item.number for item in said.withheld), 'thing')} withheld"
    yield from values.note(receipt)
    yield from lost_note(receipt)
    if how != "deadline" and observed.meters.ran_seconds is not None:
        yield f"{seconds(observed.meters.ran_seconds)} of {receipt.asked.options.deadline_seconds:g} s"
    yield f"sealed: no network, {files_given(receipt)}" if tone == "ok" else "sealed"
    yield from boundary_note(observed.boundary)


def files_given(receipt: Receipt) -> str:
    number = len(receipt.asked.options.inputs)
    several = "a copy of one of your files" if number == 1 else f"copies of {number:,} of your files"
    return several if number else "none of your files"


def ran_to_its_end(receipt: Receipt) -> bool:
    return receipt.observed.end.how == "exited" and receipt.said.completed


def is_beside(receipt: Receipt) -> bool:
    """Its files are neither in the folder that was named for them nor in one below it."""
    named, place = receipt.asked.options.output_folder, receipt.observed.saved_in
    return named is not None and place is not None and not PurePosixPath(place).is_relative_to(PurePosixPath(named))


def them(number: int) -> str:
    return "it" if number == 1 else "them"


def differs(receipt: Receipt) -> bool:
    seal = receipt.observed.seal
    return any(look.differences for look in (seal.engine, seal.kernel, seal.inside))


def is_cut(stream: Stream) -> bool:
    return stream.kept < stream.bytes
