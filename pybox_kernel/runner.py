"""One cell in, its output as it comes, one receipt out. Every door runs a cell through here and in no other way."""

from __future__ import annotations

import hashlib
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple, Protocol

from pybox_kernel import counters, seccomp
from pybox_kernel.box import Box, Timeline, fresh_identity
from pybox_kernel.counters import Meters as Reading
from pybox_kernel.counters import Unread
from pybox_kernel.engine import Engine
from pybox_kernel.errors import BoxError, EngineError, PyBoxError
from pybox_kernel.frames import (
    ACKNOWLEDGE_EVERY,
    DisplayEvent,
    Ended,
    ErrorEvent,
    Frame,
    FrameReader,
    encode,
    read_ended,
    read_event,
    read_ready,
)
from pybox_kernel.journal import Journal, new_token
from pybox_kernel.policy import Policy
from pybox_kernel.receipt import (
    Asked,
    Boundary,
    Checked,
    End,
    How,
    Image,
    KernelChecked,
    Meters,
    NotAsRequired,
    Observed,
    Options,
    Problem,
    Receipt,
    Run,
    Said,
    Seal,
    Stream,
    Unknown,
    Withheld,
)
from pybox_kernel.receipt import Box as BoxFacts
from pybox_kernel.safe_display import SafeText, StreamCleaner, safe_name, safe_text
from pybox_kernel.seal import Look
from pybox_kernel.witness import Witness, own_boot_id

__all__ = ["Program", "ProgramError", "RunResult", "Stop", "Watcher", "run_program"]

StreamName = Literal["stdout", "stderr"]
READY_SECONDS: Final = 30.0
DELIVERY_SECONDS: Final = 10.0
WARDEN_TEXT: Final = 2000
MOST_WITHHELD: Final = 100


class Watcher(Protocol):
    """Is told of a run while it goes on, from the thread that runs it, in order. What it raises ends the run."""

    def started(self, deadline_seconds: float) -> None:
        """The program's clock has started."""
        ...

    def output(self, stream: StreamName, text: SafeText) -> None: ...

    def display(self, text: SafeText) -> None:
        """The plain text of something the program asked to show."""
        ...


class Stop:
    """Asks one run to stop. ``set`` may be called from any thread, at any time, more than once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set = False
        self._wake: Callable[[], None] | None = None

    def set(self) -> None:
        with self._lock:
            self._set = True
            if self._wake is not None:
                self._wake()

    @property
    def is_set(self) -> bool:
        return self._set

    def on_set(self, wake: Callable[[], None] | None) -> None:
        """What ``set`` calls to wake the run; None takes it back."""
        with self._lock:
            self._wake = wake
            if wake is not None and self._set:
                wake()


@dataclass(frozen=True)
class ProgramError:
    """The exception that the program reported: its word, made safe to show."""

    name: SafeText
    value: SafeText
    traceback: SafeText


@dataclass(frozen=True)
class RunResult:
    """A receipt, and the output that belongs to it."""

    receipt: Receipt
    stdout: SafeText
    stderr: SafeText
    error: ProgramError | None
    notices: tuple[str, ...] = ()
    """What happened beside the run that the person should know, a sentence each."""


class Program(NamedTuple):
    """A program that has passed ``policy.checked_source``, its policy, its deadline in seconds, its image."""

    source: bytes
    policy: Policy
    deadline_seconds: float
    image: Image


class Transcript:
    """What a program printed and displayed, bounded by the warden, made safe piece by piece."""

    def __init__(self, watcher: Watcher | None) -> None:
        self._watcher = watcher
        self._cleaners: dict[StreamName, StreamCleaner] = {"stdout": StreamCleaner(), "stderr": StreamCleaner()}
        self._parts: dict[StreamName, list[SafeText]] = {"stdout": [], "stderr": []}
        self._bytes: dict[StreamName, int] = {"stdout": 0, "stderr": 0}
        self._tails: dict[StreamName, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self.error: ProgramError | None = None
        self.displays = 0
        self.withheld: list[Withheld] = []

    def head(self, stream: StreamName, data: bytes) -> None:
        self._bytes[stream] += len(data)
        self._show(stream, self._cleaners[stream].feed(data))

    def tail(self, stream: StreamName, data: bytes) -> None:
        self._tails[stream] += data

    def event(self, payload: bytes) -> None:
        event = read_event(payload)
        if isinstance(event, ErrorEvent):
            self.error = ProgramError(safe_name(event.name), safe_text(event.value), safe_text(event.traceback))
        elif isinstance(event, DisplayEvent):
            self.displays += 1
            for mime, size in event.others:
                self.withhold(safe_name(mime), size)
            if self._watcher is not None:
                self._watcher.display(safe_text(event.text))

    def withhold(self, what: str, size: int) -> None:
        if len(self.withheld) < MOST_WITHHELD:
            self.withheld.append(Withheld(what=what, bytes=size))

    def finish(self, ended: Ended | None) -> dict[StreamName, Stream]:
        """Ends both streams: what was dropped between their two parts is said in a line of its own."""
        streams: dict[StreamName, Stream] = {}
        for stream, cleaner in self._cleaners.items():
            tail = bytes(self._tails[stream])
            held = self._bytes[stream] + len(tail)
            seen = held if ended is None else getattr(ended.streams, stream).bytes
            if seen > held:
                self._show(stream, cleaner.close())
                bad = cleaner.bad_bytes
                self._show(stream, SafeText(f"\n… {seen - held:,} bytes not kept …\n"))
                cleaner = StreamCleaner()
            else:
                bad = 0
            self._show(stream, cleaner.feed(tail))
            self._show(stream, cleaner.close())
            streams[stream] = Stream(bytes=max(seen, held), kept=held, bad_bytes=bad + cleaner.bad_bytes)
        return streams

    def text(self, stream: StreamName) -> SafeText:
        return SafeText("".join(self._parts[stream]))

    def _show(self, stream: StreamName, text: SafeText) -> None:
        if text:
            self._parts[stream].append(text)
            if self._watcher is not None:
                self._watcher.output(stream, text)


@dataclass
class Course:
    """What is known of one run so far; the receipt is made of it at the end."""

    run: str
    started_at: str
    timeline: Timeline
    transcript: Transcript
    box: Box | None = None
    program_sent: bool = False
    ended: Ended | None = None
    backstop: Literal["deadline", "stopped"] | None = None
    warden_said: str = ""
    before: Reading | None = None
    after: Reading | None = None
    after_is_final: bool = False
    problem: Problem | None = None
    unknown: list[Unknown] = field(default_factory=list)

    def set_problem(self, error: PyBoxError) -> None:
        if self.problem is None:
            self.problem = Problem(code=error.code, message=error.message, advice=error.advice)


def run_program(
    program: Program,
    engine: Engine,
    journal: Journal,
    witness: Witness | None,
    executor: Executor,
    watcher: Watcher | None = None,
    stop: Stop | None = None,
) -> RunResult:
    """Runs ``program`` in a fresh box and returns when the box is gone, or was given up with that on the receipt.

    Raises nothing of its own: trouble is on the receipt (``problem``, ``unknown``). What the watcher raises, and a
    KeyboardInterrupt, pass through after the box is removed.
    """
    course = Course(
        run=new_token(),
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        timeline=Timeline(),
        transcript=Transcript(watcher),
    )
    policy = program.policy
    identity = fresh_identity(journal, course.run, program.image.id, program.deadline_seconds)
    box = Box(engine, journal, witness, policy, identity, course.run)
    course.box = box
    stop = stop or Stop()
    try:
        with course.timeline.step("made"):
            box.create()
        with course.timeline.step("started"):
            box.start()
        Conversation(program, course, box, watcher, stop, executor).hold()
    except PyBoxError as error:
        course.set_problem(error)
    finally:
        with course.timeline.step("removed"):
            box.destroy()
    streams = course.transcript.finish(course.ended)
    return RunResult(
        receipt=write_receipt(program, course, streams),
        stdout=course.transcript.text("stdout"),
        stderr=course.transcript.text("stderr"),
        error=course.transcript.error,
    )


def problem_receipt(policy: Policy, source: bytes, deadline: float, error: PyBoxError) -> Receipt:
    """The receipt of a run for which no box could even be asked: no engine, no image."""
    course = Course(new_token(), datetime.now(UTC).isoformat(timespec="milliseconds"), Timeline(), Transcript(None))
    course.set_problem(error)
    return compose(policy, source, deadline, None, course, course.transcript.finish(None))


class Conversation:
    """The talk with one box's warden, from its first word to its last."""

    def __init__(
        self, program: Program, course: Course, box: Box, watcher: Watcher | None, stop: Stop, executor: Executor
    ) -> None:
        assert box.connection is not None
        self._program = program
        self._course = course
        self._box = box
        self._connection = box.connection
        self._watcher = watcher
        self._stop = stop
        self._executor = executor
        self._reader = FrameReader()
        self._outgoing = bytearray()
        self._answered = 0
        self._closed = False
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)

    def hold(self) -> None:
        """Raises PyBoxError where the box was not sealed, was lost, or broke the protocol."""
        self._stop.on_set(self._wake)
        try:
            self._until_ready()
            self._run()
            self._read_meters()
            self._send(b"L", b"")
            self._deliver(time.monotonic() + self._program.policy.release_seconds)
        finally:
            self._stop.on_set(None)
            self._wake_reader.close()
            self._wake_writer.close()

    def _wake(self) -> None:
        with suppress(OSError):
            self._wake_writer.send(b"!")

    # Before the program

    def _until_ready(self) -> None:
        timeline, box = self._course.timeline, self._box
        began = time.monotonic()
        report = None
        while report is None:
            if self._stop.is_set:
                raise BoxError("Stopped before the program started.", "Run the cell again.")
            for frame in self._frames(began + READY_SECONDS):
                if frame.kind == b"R":
                    report = read_ready(frame.payload)
                else:
                    self._misplaced(frame)
            if report is None and self._closed:
                raise BoxError(f"The box ended before it was ready{self._last_words()}.", "Run `pybox-kernel doctor`.")
            if report is None and time.monotonic() > began + READY_SECONDS:
                raise BoxError(f"The box was not ready within {READY_SECONDS:g} s.", "Try again when less is running.")
        timeline.add("ready", began, time.monotonic())
        with timeline.step("seal checked"):
            box.verify(report)
            self._course.before = self._reading(fresh=False)
        box.expect_removal(self._executor, self._longest_life())

    def _longest_life(self) -> float:
        policy = self._program.policy
        return self._program.deadline_seconds + policy.backstop_seconds + policy.release_seconds + DELIVERY_SECONDS + 5

    # The program

    def _run(self) -> None:
        if self._stop.is_set:
            raise BoxError("Stopped before the program started.", "Run the cell again.")
        deadline = self._program.deadline_seconds
        self._send(b"G", b"%.6f" % deadline)
        self._send(b"C", self._program.source)
        self._course.program_sent = True
        began = time.monotonic()
        self._deliver(began + DELIVERY_SECONDS)
        if self._watcher is not None:
            self._watcher.started(deadline)
        backstop = time.monotonic() + deadline + self._program.policy.backstop_seconds
        stop_sent = False
        try:
            while self._course.ended is None and not self._closed:
                if self._stop.is_set and not stop_sent:
                    stop_sent = True
                    self._send(b"S", b"")
                    backstop = min(backstop, time.monotonic() + self._program.policy.stop_seconds)
                for frame in self._frames(backstop):
                    self._take(frame)
                if self._course.ended is None and not self._closed and time.monotonic() >= backstop:
                    self._end_from_outside("stopped" if stop_sent else "deadline")
                    return
        finally:
            self._course.timeline.add("program ran", began, time.monotonic())
        if self._course.ended is None:
            self._sample(final=False)

    def _end_from_outside(self, why: Literal["deadline", "stopped"]) -> None:
        """The backstop: the box's own timer, or its answer to a stop, did not come."""
        self._sample(final=False)
        self._course.backstop = why
        self._box.kill()

    def _take(self, frame: Frame) -> None:
        transcript = self._course.transcript
        if frame.kind == b"O":
            transcript.head("stdout", frame.payload)
        elif frame.kind == b"E":
            transcript.head("stderr", frame.payload)
        elif frame.kind == b"o":
            transcript.tail("stdout", frame.payload)
        elif frame.kind == b"e":
            transcript.tail("stderr", frame.payload)
        elif frame.kind == b"V":
            transcript.event(frame.payload)
        elif frame.kind == b"X":
            ended = self._course.ended = read_ended(frame.payload)
            if ended.events_dropped:
                transcript.withhold("more than a cell may display", ended.events_dropped_bytes)
            if ended.events_garbled:
                transcript.withhold("displays that could not be read", 0)
        else:
            self._misplaced(frame)

    def _misplaced(self, frame: Frame) -> None:
        if frame.kind == b"F":
            self._course.warden_said = safe_name(frame.payload.decode("utf-8", "replace"), WARDEN_TEXT)
            raise BoxError(f"PyBox's own part in the box failed{self._last_words()}.", "Run `pybox-kernel doctor`.")
        raise BoxError("The box's parts came in the wrong order.", "Run `pybox-kernel doctor`.")

    def _last_words(self) -> str:
        said = self._course.warden_said
        return f" ({said})" if said else ""

    # Meters

    def _read_meters(self) -> None:
        if self._course.ended is not None:
            with self._course.timeline.step("meters read"):
                self._sample(final=self._course.ended.all_reaped)

    def _sample(self, final: bool) -> None:
        reading = self._reading(fresh=True)
        if reading is not None and not all(isinstance(value, Unread) for value in reading):
            self._course.after, self._course.after_is_final = reading, final

    def _reading(self, fresh: bool) -> Reading | None:
        """The box's meters now, or as they were in the look at its seal."""
        sight, witness = self._box.sight, self._box.witness
        if sight is None:
            return None
        texts = sight.texts
        if fresh:
            found = witness.meters(sight.folders) if witness is not None and sight.folders else None
            if found is None:
                return None
            texts = found
        plain = {name.removeprefix("cgroup:"): text for name, text in texts.items()}
        return counters.read_meters(plain, 1 if not sight.folders or "memory" in sight.folders else 2)

    # The channel

    def _send(self, kind: bytes, payload: bytes) -> None:
        self._outgoing += encode(kind, payload)
        self._push()

    def _push(self) -> None:
        with suppress(EngineError):  # a closed connection shows as the end of what comes
            while self._outgoing and (sent := self._connection.send(bytes(self._outgoing[:65536]))):
                del self._outgoing[:sent]

    def _deliver(self, limit: float) -> None:
        """Waits until all that was sent is taken, or the box is gone."""
        while self._outgoing and not self._closed:
            if time.monotonic() > limit:
                raise BoxError("The box does not take what is sent to it.", "Run `pybox-kernel doctor`.")
            for frame in self._frames(limit):
                self._take(frame)

    def _frames(self, until: float) -> list[Frame]:
        """Waits for something from the box, a stop, or ``until``; what came, as frames."""
        poll = select.poll()
        poll.register(self._connection.fileno(), select.POLLIN | (select.POLLOUT if self._outgoing else 0))
        poll.register(self._wake_reader, select.POLLIN)
        poll.poll(max(0.0, until - time.monotonic()) * 1000)
        with suppress(BlockingIOError):
            self._wake_reader.recv(64)
        if self._outgoing:
            self._push()
        parts = self._connection.receive()
        if parts is None:
            self._closed = True
            return []
        frames: list[Frame] = []
        for stream, data in parts:
            if stream == 1:
                frames += self._reader.feed(data)
            elif len(self._course.warden_said) < WARDEN_TEXT:
                self._course.warden_said += safe_name(data.decode("utf-8", "replace"), WARDEN_TEXT)
        if self._reader.total - self._answered >= ACKNOWLEDGE_EVERY:
            self._answered = self._reader.total
            self._send(b"A", b"%d" % self._answered)
        return frames


# The receipt


def write_receipt(program: Program, course: Course, streams: dict[StreamName, Stream]) -> Receipt:
    return compose(program.policy, program.source, program.deadline_seconds, program.image, course, streams)


def compose(
    policy: Policy,
    source: bytes,
    deadline: float,
    image: Image | None,
    course: Course,
    streams: dict[StreamName, Stream],
) -> Receipt:
    box, unknown = course.box, course.unknown
    end = how_it_ended(course, policy, deadline)
    if streams["stdout"].bytes and streams["stderr"].bytes:
        unknown.append(Unknown(what="output_order", why="the two output streams come by two ways"))
    if box is not None and box.removed is None and box.id is not None:
        unknown.append(Unknown(what="removed", why=box.why_not_confirmed))
    elif box is not None and box.why_not_confirmed and not box.removed:
        unknown.append(Unknown(what="box", why=box.why_not_confirmed))
    meters = final_meters(course, unknown if end.how != "not_started" else [])
    return Receipt(
        run=Run(
            id=course.run,
            source_sha256=hashlib.sha256(source).hexdigest(),
            source_bytes=len(source),
            image=image,
            started_at=course.started_at,
        ),
        asked=Asked(
            policy=policy,
            options=Options(deadline_seconds=deadline),
            seccomp_sha256=seccomp.PROFILE_SHA256,
            uid=box.identity.uid if box is not None else None,
        ),
        observed=Observed(
            seal=seal_of(course),
            end=end,
            meters=meters,
            boundary=boundary_of(box, unknown),
            steps=tuple(course.timeline.steps),
            box=BoxFacts(id=box.id if box else None, removed=box.removed if box else None),
        ),
        said=Said(
            completed=course.ended is not None and course.ended.completed,
            stdout=streams["stdout"],
            stderr=streams["stderr"],
            displays=course.transcript.displays,
            withheld=tuple(course.transcript.withheld),
            error=course.transcript.error.name if course.transcript.error else None,
            files=(),
        ),
        unknown=tuple(unknown),
        problem=course.problem,
    )


def how_it_ended(course: Course, policy: Policy, deadline: float) -> End:
    status = course.box.exit_status if course.box is not None else None
    evidence: list[str] = []
    if status is not None:
        evidence.append(f"the engine recorded exit status {status}")
    if not course.program_sent:
        return End(how="not_started", exit_code=None, signal=None, evidence=tuple(evidence))
    if course.after is not None and course.before is not None:
        kills = difference(course.before.oom_kills, course.after.oom_kills)
        if isinstance(kills, int) and kills > 0:
            evidence.append(f"the Linux kernel counted {kills} processes killed for memory")
    ended = course.ended
    how: How
    if ended is None and course.backstop is not None:
        evidence.append(f"the supervisor ended it from outside: {course.backstop}")
        how = course.backstop
    elif ended is None:
        how = "warden_failed" if course.warden_said or status == 71 else "box_lost"
        if course.warden_said:
            evidence.append(f"the box's own part said: {course.warden_said}")
    elif ended.how == "exited":
        how = "exited" if ended.signal is None else "signal"
        evidence.append("the box's own part saw the program end by itself")
    else:
        how = ended.how
        evidence.append(
            f"the box's own timer ended it at {deadline:g} s"
            if ended.how == "deadline"
            else "the box's own part ended it when asked to stop"
        )
    code, killer = exit_of(ended)
    if how in ("deadline", "stopped"):
        code, killer = None, None
    if code is not None and status is not None and status != code:
        course.unknown.append(
            Unknown(what="exit_code", why=f"the box's own part says {code}, the engine says {status}")
        )
        code = None
    elif how in ("exited", "signal") and status is None:
        evidence.append("the engine's own record of the exit status was not obtained")
    if code is None and how == "box_lost" and status is not None:
        code = status
    return End(how=how, exit_code=code, signal=killer, evidence=tuple(evidence))


def exit_of(ended: Ended | None) -> tuple[int | None, str | None]:
    if ended is None:
        return None, None
    if ended.signal is not None:
        try:
            name = signal.Signals(ended.signal).name
        except ValueError:
            name = f"signal {ended.signal}"
        return 128 + ended.signal, name
    return ended.code, None


def difference(before: int | Unread, after: int | Unread) -> int | Unread:
    if isinstance(after, Unread):
        return after
    if isinstance(before, Unread):
        return before
    return after - before if after >= before else Unread("the counter ran backwards")


def final_meters(course: Course, unknown: list[Unknown]) -> Meters:
    """What the kernel counted during the run; each null goes to ``unknown`` with its reason."""
    before, after = course.before, course.after
    values: dict[str, int | float | Unread]
    if before is None or after is None:
        why = Unread("the box's counters could not be read at the end of the run")
        values = dict.fromkeys(
            ("memory_peak_bytes", "oom_kills", "tasks_peak", "task_limit_hits", "cpu_seconds", "cpu_throttled_periods"),
            why,
        )
    else:
        cpu = difference(before.cpu_microseconds, after.cpu_microseconds)
        values = {
            "memory_peak_bytes": after.memory_peak_bytes,
            "oom_kills": difference(before.oom_kills, after.oom_kills),
            "tasks_peak": after.tasks_peak,
            "task_limit_hits": difference(before.task_limit_hits, after.task_limit_hits),
            "cpu_seconds": cpu if isinstance(cpu, Unread) else round(cpu / 1e6, 6),
            "cpu_throttled_periods": difference(before.cpu_throttled_periods, after.cpu_throttled_periods),
        }
    if course.ended is not None:
        values["ran_seconds"] = round(course.ended.ran_ms / 1000, 6)
    else:
        values["ran_seconds"] = Unread("the box ended without saying how long the program ran")
    for name, value in values.items():
        if isinstance(value, Unread):
            unknown.append(Unknown(what=name, why=value.why))
    numbers = {name: None if isinstance(value, Unread) else value for name, value in values.items()}
    return Meters(final=course.after_is_final and after is not None, **numbers)  # type: ignore[arg-type]


def seal_of(course: Course) -> Seal:
    box = course.box
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
    """Whether the box runs on this computer's own kernel, by the kernel's boot id (random(4)), which no two boots share."""
    sight = box.sight if box is not None else None
    if sight is None or sight.boot_id is None:
        if box is not None and box.sight is not None:
            unknown.append(Unknown(what="boundary", why="the boot id of the engine's kernel could not be read"))
        return Boundary(kind=None, evidence="not looked at" if sight is None else "no boot id")
    own = own_boot_id()
    if own == sight.boot_id:
        return Boundary(kind="this_kernel", evidence="the box's kernel has the same boot id as this computer's")
    return Boundary(kind="other_kernel", evidence="the box's kernel has another boot id than this computer's")
