"""The talk with one box's warden, from its first word to its last."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal

from pybox_kernel import counters
from pybox_kernel.box import Box
from pybox_kernel.counters import Meters, Unread
from pybox_kernel.course import Course, Program
from pybox_kernel.display_door import OVER
from pybox_kernel.errors import BoxError, EngineError, Stopped
from pybox_kernel.file_frames import FilesFromBox, put_in, question
from pybox_kernel.frames import (
    ACKNOWLEDGE_EVERY,
    AGAIN,
    MOST_BYTES,
    EventParts,
    Frame,
    FrameReader,
    encode,
    read_ended,
    read_ready,
)
from pybox_kernel.parcels import CARRIED_BYTES, VALUES_BYTES, records_in
from pybox_kernel.safe_display import safe_name
from pybox_kernel.transcript import Watcher

__all__ = ["Conversation", "Stop"]

READY_SECONDS: Final = 30.0
DELIVERY_SECONDS: Final = 10.0
MOST_WAITING: Final = 262_144
"""Bytes of a parcel that wait to be taken: the rest is made when they are."""
COLLECT_MARGIN_SECONDS: Final = 1.0
WARDEN_TEXT: Final = 2000


class Stop:
    """Asks one run to stop. ``set`` may be called from any thread, at any time, more than once."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # `set` may be called by a signal handler of the thread that holds it
        self._set = False
        self._wake: Callable[[], None] | None = None

    def set(self) -> None:
        with self._lock:
            self._set = True
            if self._wake is not None:
                self._wake()

    def is_set(self) -> bool:
        return self._set

    def check(self) -> None:
        """Before the program has started. Raises Stopped if it is not to start."""
        if self._set:
            raise Stopped("Stopped before the program started.", "Run the cell again.")

    def on_set(self, wake: Callable[[], None] | None) -> None:
        """What ``set`` calls to wake the run; None takes it back."""
        with self._lock:
            self._wake = wake
            if wake is not None and self._set:
                wake()


class Conversation:
    """The talk with one box's warden, from its first word to its last."""

    def __init__(
        self,
        program: Program,
        course: Course,
        box: Box,
        watcher: Watcher | None,
        stop: Stop,
    ) -> None:
        assert box.connection is not None
        self._program = program
        self._course = course
        self._box = box
        self._connection = box.connection
        self._watcher = watcher
        self._stop = stop
        self._files = FilesFromBox(program.policy, program.inputs, bring=program.output)
        self._reader = FrameReader(MOST_BYTES + self._files.most_bytes + CARRIED_BYTES + VALUES_BYTES)
        self._event = EventParts()
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
            self._put_files_in()
            self._put_parcels_in()
            self._run()
            self._read_meters()
            self._take_files_out()
            self._send(b"L", b"")
            self._deliver(time.monotonic() + self._program.policy.release_seconds)
        finally:
            self._stop.on_set(None)
            self._wake_reader.close()
            self._wake_writer.close()

    def _is_open(self) -> bool:
        return not self._closed

    def _is_going_on(self) -> bool:
        return self._is_open() and self._course.ended is None

    def _wake(self) -> None:
        with suppress(OSError):
            self._wake_writer.send(b"!")

    # Before the program

    def _until_ready(self) -> None:
        timeline, box = self._course.timeline, self._box
        began = time.monotonic()
        report = None
        while report is None:
            self._stop.check()
            for frame in self._frames(began + READY_SECONDS):
                if frame.kind == b"R":
                    report = read_ready(frame.payload)
                else:
                    self._misplaced(frame)
            if report is None and not self._is_open():
                raise BoxError(f"The box ended before it was ready{self._last_words()}.", "Run `pybox-kernel doctor`.")
            if report is None and time.monotonic() > began + READY_SECONDS:
                raise BoxError(f"The box was not ready within {READY_SECONDS:g} s.", "Try again when less is running.")
        timeline.add("ready", began, time.monotonic())
        with timeline.step("seal checked"):
            box.verify(report)
            self._course.before = self._reading(fresh=False)
        box.expect_removal()

    def _put_files_in(self) -> None:
        if not self._program.inputs:
            return
        with self._course.timeline.step("files put in"):
            self._outgoing += put_in(self._program.inputs)
            limit = time.monotonic() + DELIVERY_SECONDS
            placed = False
            while not placed:
                self._stop.check()
                for frame in self._frames(limit):
                    if frame.kind == b"P" and not self._outgoing:
                        placed = True
                    else:
                        self._misplaced(frame)
                if not placed and not self._is_open():
                    raise BoxError(f"The box ended before it had its files{self._last_words()}.", AGAIN)
                if not placed and time.monotonic() > limit:
                    raise BoxError("The box does not take the files that are put into it.", AGAIN)

    def _put_parcels_in(self) -> None:
        """The manifest always; what is large only as the box takes it."""
        program = self._program
        began = time.monotonic()
        for piece in records_in(program.carry, program.values):
            self._outgoing += encode(b"N", piece)
            while len(self._outgoing) > MOST_WAITING:
                self._stop.check()
                for frame in self._frames(began + DELIVERY_SECONDS):
                    self._misplaced(frame)
                if not self._is_open():
                    raise BoxError(f"The box ended before it had its values{self._last_words()}.", AGAIN)
                if time.monotonic() > began + DELIVERY_SECONDS:
                    raise BoxError("The box does not take the values that are put into it.", AGAIN)
        if program.carry is not None or program.values is not None:
            self._course.timeline.add("values put in", began, time.monotonic())

    # The program

    def _run(self) -> None:
        self._stop.check()
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

        def pass_stop_on() -> None:
            nonlocal stop_sent, backstop
            if self._stop.is_set() and not stop_sent:
                stop_sent = True
                self._send(b"S", b"")
                backstop = min(backstop, time.monotonic() + self._program.policy.stop_seconds)

        try:
            while self._is_going_on():
                pass_stop_on()
                frames = self._frames(backstop)
                for frame in frames:
                    self._take(frame)  # what is shown may take a moment to clean
                    pass_stop_on()
                # After a pause of this computer the backstop is over, and the box's own account may still lie here.
                if not frames and self._is_going_on() and time.monotonic() >= backstop:
                    self._end_from_outside("stopped" if stop_sent else "deadline")
                    return
        finally:
            self._course.timeline.add("program ran", began, time.monotonic())
        if self._course.ended is None:
            self._sample(final=False)

    def _end_from_outside(self, why: Literal["deadline", "stopped"]) -> None:
        """The backstop: the box's own timer, or its answer to a stop, did not come."""
        self._sample(final=False)
        if self._box.kill():
            self._course.backstop = why

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
        elif frame.kind in (b"v", b"V"):
            event = self._event.take(frame)
            if event is not None:
                transcript.event(event)
        elif frame.kind == b"k":
            self._course.carried.take(frame.payload)
        elif frame.kind == b"w":
            self._course.values.take(frame.payload)
        elif frame.kind == b"X" and not self._event.open:
            ended = self._course.ended = read_ended(frame.payload)
            if ended.events_dropped:
                transcript.withhold(OVER, ended.events_dropped_bytes, ended.events_dropped)
            if ended.events_garbled:
                transcript.withhold("displays that could not be read", 0)
            self._course.carried.end(dropped=ended.carried_dropped)
            self._course.values.end(dropped=ended.values_dropped)
        elif frame.kind in (b"D", b"d", b"T") and self._course.files is not None:
            self._course.files.take(frame)
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

    # Files

    def _take_files_out(self) -> None:
        """Or asks for their number alone. While a process may live its files may change: then nothing is taken."""
        ended = self._course.ended
        if ended is None or not ended.all_reaped:
            return
        began = time.monotonic()
        self._course.files = self._files
        self._send(b"B", question(self._program.policy, bring=self._program.output))
        limit = began + self._program.policy.collect_seconds + COLLECT_MARGIN_SECONDS
        while not self._files.told and self._is_open() and time.monotonic() < limit:
            for frame in self._frames(limit):
                self._take(frame)
        if self._program.output:
            self._course.timeline.add("files taken out", began, time.monotonic())

    # Meters

    def _read_meters(self) -> None:
        if self._course.ended is not None:
            with self._course.timeline.step("meters read"):
                self._sample(final=self._course.ended.all_reaped)

    def _sample(self, final: bool) -> None:
        reading = self._reading(fresh=True)
        if reading is not None and not all(isinstance(value, Unread) for value in reading):
            self._course.after, self._course.after_is_final = reading, final

    def _reading(self, fresh: bool) -> Meters | None:
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
        while self._outgoing and self._is_open():
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
