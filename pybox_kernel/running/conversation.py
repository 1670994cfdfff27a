"""The talk with one box's warden, from its being ready to its last word."""

from __future__ import annotations

import time
from typing import Final, Literal

from pybox_kernel.boxes.waiting_box import WaitingBox
from pybox_kernel.counters import Meters, Unread
from pybox_kernel.errors import BoxError
from pybox_kernel.running.course import Course, Program
from pybox_kernel.running.display_door import OVER
from pybox_kernel.running.transcript import Watcher
from pybox_kernel.stop import Stop
from pybox_kernel.wire.files import FilesFromBox, put_in, question
from pybox_kernel.wire.frames import AGAIN, EventParts, Frame, encode, read_ended
from pybox_kernel.wire.parcels import CARRIED_BYTES, VALUES_BYTES, records_in

__all__ = ["Conversation"]

DELIVERY_SECONDS: Final = 10.0
MOST_WAITING: Final = 262_144
"""Bytes of a parcel that wait to be taken: the rest is made when they are."""
COLLECT_MARGIN_SECONDS: Final = 1.0


class Conversation:
    """The talk with one box's warden, from its being ready to its last word."""

    def __init__(
        self,
        program: Program,
        course: Course,
        waiting: WaitingBox,
        watcher: Watcher | None,
        stop: Stop,
    ) -> None:
        self._program = program
        self._course = course
        self._box = waiting.box
        self._line = waiting.line
        self._watcher = watcher
        self._stop = stop
        self._files = FilesFromBox(program.policy, program.inputs, bring=program.output)
        self._line.allow(self._files.most_bytes + CARRIED_BYTES + VALUES_BYTES)
        self._event = EventParts()

    def hold(self) -> None:
        """Raises PyBoxError where the box was lost, or broke the protocol."""
        self._stop.on_set(self._line.wake)
        try:
            self._course.before = self._reading(fresh=False)
            self._put_files_in()
            self._put_parcels_in()
            self._run()
            self._read_meters()
            self._take_files_out()
            self._line.send(b"L", b"")
            self._deliver(time.monotonic() + self._program.policy.release_seconds)
        finally:
            self._stop.on_set(None)

    def _is_open(self) -> bool:
        return not self._line.closed

    def _is_going_on(self) -> bool:
        return self._is_open() and self._course.ended is None

    # Before the program

    def _put_files_in(self) -> None:
        if not self._program.inputs:
            return
        with self._course.timeline.step("files put in"):
            self._line.put(put_in(self._program.inputs))
            limit = time.monotonic() + DELIVERY_SECONDS
            placed = False
            while not placed:
                self._stop.check()
                for frame in self._line.frames(limit):
                    if frame.kind == b"P" and not self._line.waiting:
                        placed = True
                    else:
                        self._line.misplaced(frame)
                if not placed and not self._is_open():
                    raise BoxError(f"The box ended before it had its files{self._line.last_words()}.", AGAIN)
                if not placed and time.monotonic() > limit:
                    raise BoxError("The box does not take the files that are put into it.", AGAIN)

    def _put_parcels_in(self) -> None:
        """The manifest always; what is large only as the box takes it."""
        program = self._program
        began = time.monotonic()
        for piece in records_in(program.carry, program.values.parcel()):
            self._line.put(encode(b"N", piece))
            while self._line.waiting > MOST_WAITING:
                self._stop.check()
                for frame in self._line.frames(began + DELIVERY_SECONDS):
                    self._line.misplaced(frame)
                if not self._is_open():
                    raise BoxError(f"The box ended before it had its values{self._line.last_words()}.", AGAIN)
                if time.monotonic() > began + DELIVERY_SECONDS:
                    raise BoxError("The box does not take the values that are put into it.", AGAIN)
        if (program.carry is not None and program.carry.groups) or program.values.values:
            self._course.timeline.add("values put in", began, time.monotonic())

    # The program

    def _run(self) -> None:
        self._stop.check()
        deadline = self._program.deadline_seconds
        self._line.send(b"G", b"%.6f" % deadline)
        self._line.send(b"C", self._program.source)
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
                self._line.send(b"S", b"")
                backstop = min(backstop, time.monotonic() + self._program.policy.stop_seconds)

        try:
            while self._is_going_on():
                pass_stop_on()
                frames = self._line.frames(backstop)
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
            self._line.misplaced(frame)

    # Files

    def _take_files_out(self) -> None:
        """Or asks for their number alone. While a process may live its files may change: then nothing is taken."""
        ended = self._course.ended
        if ended is None or not ended.all_reaped:
            return
        began = time.monotonic()
        self._course.files = self._files
        self._line.send(b"B", question(self._program.policy, bring=self._program.output))
        limit = began + self._program.policy.collect_seconds + COLLECT_MARGIN_SECONDS
        while not self._files.told and self._is_open() and time.monotonic() < limit:
            for frame in self._line.frames(limit):
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
        if not fresh:
            return sight.meters()
        found = witness.meters(sight.folders) if witness is not None and sight.folders else None
        return None if found is None else sight.meters(found)

    # The line

    def _deliver(self, limit: float) -> None:
        """Waits until all that was sent is taken, or the box is gone."""
        while self._line.waiting and self._is_open():
            if time.monotonic() > limit:
                raise BoxError("The box does not take what is sent to it.", "Run `pybox-kernel doctor`.")
            for frame in self._line.frames(limit):
                self._take(frame)
