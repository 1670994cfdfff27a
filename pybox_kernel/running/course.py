"""The course of one run: what was asked, and what is known of it so far. The receipt is made of it at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from pybox_kernel.boxes.box import Box
from pybox_kernel.boxes.journal import new_token
from pybox_kernel.carry.groups import Mode, Sent, TakenOut
from pybox_kernel.counters import Meters
from pybox_kernel.engine import Place
from pybox_kernel.engine_choice import Wish
from pybox_kernel.errors import PyBoxError
from pybox_kernel.files.box_files import InputFile
from pybox_kernel.policy import Policy
from pybox_kernel.receipt.model import Image, Problem, Waited
from pybox_kernel.receipt.timeline import Timeline
from pybox_kernel.running.transcript import Transcript
from pybox_kernel.safe_display.text import safe_text
from pybox_kernel.wire.files import FilesFromBox
from pybox_kernel.wire.frames import Ended
from pybox_kernel.wire.parcels import VALUES_BYTES, CarryIn, ParcelReader
from pybox_kernel.wire.values import ValuesAsked

__all__ = ["Course", "Program"]

WARDEN_FAILED: Final = 71
"""The exit status of a warden that failed (``inside/warden.py``)."""


class Program(NamedTuple):
    """A program that has passed ``policy.checked_source``, its policy, its deadline in seconds, its image."""

    source: bytes
    policy: Policy
    deadline_seconds: float
    image: Image | None
    """Null where none was set up: then no box can be asked for."""
    earlier: Mapping[str, int] = MappingProxyType({})
    """Names that cells before this one defined, each with the number of its cell."""
    inputs: tuple[InputFile, ...] = ()
    """Have passed ``files.box_files.checked_inputs``."""
    output: bool = False
    """Whether the files that the program makes or changes are taken out of its box."""
    carry: CarryIn | None = None
    """What earlier cells left for it; null where it neither gets nor leaves anything."""
    mode: Mode | None = None
    """Null where it is not a cell of a notebook whose cells may carry."""
    sent: Sent | None = None
    """What is known here of ``carry``."""
    values: ValuesAsked = ValuesAsked()
    """Values put into it and asked of it by name."""
    wish: Wish = Wish()
    """What was said of the engine."""
    place: Place | None = None
    """Where that is; None where none could be chosen."""


@dataclass
class Course:
    """What is known of one run so far."""

    transcript: Transcript
    run: str = field(default_factory=new_token)
    started_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    timeline: Timeline = field(default_factory=Timeline)
    box: Box | None = None
    waited: Waited | None = None
    """How its box waited, where it was not made for it."""
    program_sent: bool = False
    ended: Ended | None = None
    backstop: Literal["deadline", "stopped"] | None = None
    """Why the supervisor ended the box from outside, if it did."""
    warden_said: str = ""
    """What the warden wrote as it failed."""
    before: Meters | None = None
    """The meters at the hand-over."""
    after: Meters | None = None
    """The last reading since."""
    after_is_final: bool = False
    files: FilesFromBox | None = None
    """What came of its files; null where they were not asked for."""
    carried: ParcelReader = field(default_factory=lambda: ParcelReader(b"g"))
    """What it leaves for later cells."""
    left: TakenOut = field(default_factory=TakenOut)
    """What came of that, checked."""
    left_counts: bool = False
    """Whether it is what later cells get."""
    values: ParcelReader = field(default_factory=lambda: ParcelReader(b"v", VALUES_BYTES))
    """The values that were asked of it."""
    problem: Problem | None = None

    @property
    def taken(self) -> TakenOut | None:
        return self.left if self.left_counts else None

    @property
    def warden_failed(self) -> bool:
        return bool(self.warden_said) or (self.box is not None and self.box.exit_status == WARDEN_FAILED)

    def set_problem(self, error: PyBoxError) -> None:
        if self.problem is None:
            # What was found, and what an engine answered, stands in it word for word.
            self.problem = Problem(code=error.code, message=safe_text(error.message), advice=error.advice)
