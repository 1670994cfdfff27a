"""How a run ended, and what the Linux kernel counted of it: each null with its reason."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from pybox_kernel import counters
from pybox_kernel.counters import Unread
from pybox_kernel.receipt.model import End, How, Meters, Unknown
from pybox_kernel.running.course import Course, Program
from pybox_kernel.wire.frames import Ended

__all__ = ["end_of", "meters_of", "take_kept_counters"]


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


def take_kept_counters(course: Course) -> None:
    """For a box that was lost before its counters were read for the last time: those of the run's own cgroup, if it has
    one. They are final if the box has been removed. Call it after that."""
    box = course.box
    if box is None or not course.program_sent or course.after_is_final:
        return
    texts = box.kept_counters()
    if texts is None:
        return
    plain = {name.removeprefix("cgroup:"): text for name, text in texts.items()}
    reading = counters.read_meters(plain, 2)
    if not isinstance(reading.memory_peak_bytes, Unread):
        # A limit of processor time is counted where it is set, and that cgroup has gone with the box.
        throttled = Unread("the box was gone before it was read")
        course.after = reading._replace(cpu_throttled_periods=throttled)
        course.after_is_final = box.removed is True


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
