"""A box from its making until its program comes: it waits, with its runner up and its seal verified."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from pybox_kernel.boxes.box import Box
from pybox_kernel.boxes.line import Line
from pybox_kernel.errors import BoxEnded, BoxError, EngineError, PyBoxError
from pybox_kernel.policy import MIB
from pybox_kernel.receipt.model import Step, Waited
from pybox_kernel.receipt.timeline import Timeline
from pybox_kernel.stop import Stop
from pybox_kernel.wire.frames import read_ready

__all__ = ["WaitingBox"]

READY_SECONDS: Final = 30.0
AGAIN_SECONDS: Final = 5.0
"""For an answer that takes a millisecond where nothing has halted the box."""


class WaitingBox:
    """Call ``make_ready`` once, ``look_again`` where the box has waited, and ``destroy`` always: see ``Box``."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.since = 0.0
        """When it was ready, on the monotonic clock."""
        self.since_utc = ""
        """The same on this computer's own clock, as ISO 8601."""
        self.steps: list[Step] = []
        """Of its making."""
        self._line: Line | None = None
        self._report: Mapping[str, Any] = {}

    @property
    def line(self) -> Line:
        assert self._line is not None
        return self._line

    @property
    def said(self) -> str:
        """What the box's own part said as it failed, made safe to show."""
        return self._line.said if self._line is not None else ""

    def make_ready(self, stop: Stop, timeline: Timeline) -> None:
        """Raises PyBoxError where the box is not sealed as required, is lost, or breaks the protocol; Stopped."""
        box, self.steps = self.box, timeline.steps
        with timeline.step("made"):
            box.create()
        stop.check()
        with timeline.step("started"):
            box.start()
        assert box.connection is not None
        self._line = Line(box.connection)
        stop.on_set(self._line.wake)
        try:
            box.expect_removal()
            with timeline.step("ready"):
                self._report = self._await_report(stop, READY_SECONDS)
        finally:
            stop.on_set(None)
        with timeline.step("seal checked"):
            box.verify(self._report)
        self.since, self.since_utc = time.monotonic(), datetime.now(UTC).isoformat(timespec="milliseconds")

    def _await_report(self, stop: Stop, usual_seconds: float) -> Mapping[str, Any]:
        seconds = usual_seconds * self.box.engine.place.patience
        line, limit = self.line, time.monotonic() + seconds
        while True:
            stop.check()
            frames = line.frames(limit)
            if frames:
                report, *more = frames
                if report.kind != b"R" or more:
                    line.misplaced((report, *more)[report.kind == b"R"])
                return read_ready(report.payload)
            if line.closed:
                words = line.last_words()
                raise BoxError(f"The box ended before it was ready{words}.", "Run `pybox-kernel doctor`.")
            if time.monotonic() > limit:
                raise BoxError(f"The box was not ready within {seconds:g} s.", "Try again when less is running.")

    @property
    def mib(self) -> int | None:
        """The most memory that it has taken since it was made, up to the last look, as the kernel counts it (what it
        was the first to read of its image included), in whole MiB, rounded up. None where that is not known."""
        peak = self.box.sight.meters().memory_peak_bytes if self.box.sight is not None else None
        return -(-peak // MIB) if isinstance(peak, int) else None

    @property
    def can_be_seen(self) -> bool:
        """By a witness outside of it, now and again."""
        return self.box.sight is not None and bool(self.box.sight.folders)

    def is_quiet(self) -> bool:
        """Still connected, and has said nothing since it was ready."""
        try:
            return not self.line.frames(0.0) and not self.line.closed
        except (PyBoxError, OSError, ValueError):  # the last two of a line whose descriptor is gone
            return False

    def look_again(self, stop: Stop) -> None:
        """Raises PyBoxError unless the box is the one that it was, waits, was left alone, and is sealed as required
        now. Raises Stopped."""
        if not self.is_quiet():
            if self.line.closed:
                raise BoxEnded(f"The box ended while it waited{self.line.last_words()}.", "Run the cell again.")
            raise BoxError("The box spoke before its program came.", "Run the cell again.")
        self.line.send(b"Q", b"")  # it answers while the others look
        stop.on_set(self.line.wake)
        try:
            self.box.verify(self._report, lambda: self._await_report(stop, AGAIN_SECONDS))
        finally:
            stop.on_set(None)

    def waited(self) -> Waited:
        """Until now."""
        seconds = round(time.monotonic() - self.since, 3)
        return Waited(since=self.since_utc, seconds=seconds, steps=tuple(self.steps))

    def hang_up(self) -> None:
        """At which it ends by itself."""
        if self.box.connection is not None:
            self.box.connection.close()

    def end(self) -> None:
        """Ends it at once, whatever it does, and does not wait until it is gone."""
        self.hang_up()
        if self.box.id is not None:
            with suppress(EngineError):
                self.box.kill()

    def destroy(self) -> None:
        if self._line is not None:
            self._line.close()
        self.box.destroy()
