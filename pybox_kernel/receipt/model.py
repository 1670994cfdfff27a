"""The receipt: what was asked for, what was observed, what the program said, and what is not known. Kept apart.

Frozen pydantic models that forbid unknown fields. ``schema`` names the version; a change of meaning gets a new one.
A value that could not be read is null and is listed under ``unknown`` with the reason; ``Receipt`` refuses to be
built otherwise for its meters, its exit and its removal.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, ValidationError, model_validator

from pybox_kernel.policy import Count, Policy, Quantity
from pybox_kernel.receipt.boundary import Boundary, BoundaryKind, EngineUsed, MachineSettings
from pybox_kernel.receipt.carried import Carried, Model
from pybox_kernel.receipt.said import (
    BoxFile,
    CopiedValue,
    FileNotBrought,
    NotBroughtValue,
    Said,
    Sha256,
    Stream,
    Wall,
    WallKind,
    Withheld,
)

__all__ = [
    "Asked",
    "Boundary",
    "BoundaryKind",
    "Box",
    "BoxFile",
    "Checked",
    "CopiedValue",
    "End",
    "EngineUsed",
    "FileNotBrought",
    "How",
    "Image",
    "InputCopy",
    "KernelChecked",
    "MachineSettings",
    "Meters",
    "NotAsRequired",
    "NotBroughtValue",
    "Observed",
    "Options",
    "Problem",
    "Receipt",
    "Run",
    "Said",
    "Seal",
    "Step",
    "Stream",
    "Unknown",
    "Waited",
    "Wall",
    "WallKind",
    "Withheld",
]

SCHEMA: Literal["pybox.receipt/1"] = "pybox.receipt/1"

How = Literal["not_started", "exited", "signal", "deadline", "stopped", "box_lost", "warden_failed"]
"""How a run ended.

``not_started``    not one byte of the program entered the box
``exited``         the program ended by itself, with an exit code
``signal``         the program was ended by a signal; which process sent it is not known
``deadline``       the box's own timer, or the supervisor's backstop, ended it
``stopped``        the person stopped it
``box_lost``       the box ended without its last word: see ``evidence``; the cause is not established
``warden_failed``  PyBox's own part inside the box failed
"""

ENDED_BY_ITSELF = ("exited", "signal", "box_lost", "warden_failed")
"""The ends that have an exit code, or one that is not known. A program that was ended has none."""

Token = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Signed = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32} [0-9A-Za-z_-]{86}$")]


class Image(Model):
    """The image the box was made from, as recorded at set-up."""

    name: str
    id: str
    recipe_sha256: Sha256
    base: str


class Run(Model):
    id: Token
    source_sha256: Sha256
    source_bytes: Count
    image: Image | None
    """Null where no image was set up."""
    started_at: str
    """This computer's wall clock, UTC, ISO 8601; durations come from ``steps`` alone."""


class InputCopy(BoxFile):
    source: str | None
    """The path by which it was named, made safe to show, where that leads out of the folder that paths count from: then
    ``name`` is its last part. Null where ``name`` is its path from there, or it came from Python."""


class Options(Model):
    """What this run asked for beyond the policy's own values."""

    deadline_seconds: Quantity
    inputs: tuple[InputCopy, ...]
    """Copies put into the working directory before the program started."""
    output: bool
    """Whether the files it makes or changes there are taken out."""
    carry: Literal["off", "on", "keep"] = "off"
    """Whether it gets values of earlier cells, and leaves its own to later ones: with ``keep`` also if it fails."""
    output_folder: str | None
    """The folder of this computer they are for, as it was written and made safe to show. Null where none was named:
    Python takes them from the result."""
    values: tuple[CopiedValue, ...] = ()
    """Values of this computer's Python that were copied into the program."""
    values_wanted: tuple[str, ...] = ()
    """Names of values that are to come back from it."""
    engine: str | None = None
    """Which engine a person named, as they wrote it, made safe to show; null where none was."""
    require_vm: bool = False
    """Whether it might run in no other place than a private virtual machine."""
    another_machine: bool = False
    """Whether a person said yes to another machine."""


class Asked(Model):
    policy: Policy
    options: Options
    seccomp_sha256: Sha256
    uid: Count | None
    """The box's own user and group id; null where no box was made."""


class NotAsRequired(Model):
    setting: str
    wanted: str
    found: str


class Checked(Model):
    checked: Count
    """How many settings were compared; 0 where this look was not reached."""
    differences: tuple[NotAsRequired, ...]


class KernelChecked(Checked):
    source: Literal["this computer", "witness container", "the box's own reading"] | None
    """Who read the kernel's files; the last is weaker: the box's warden, before the program arrived."""


class Seal(Model):
    before_start: bool
    """True only if every look was done, found nothing different, and was over before the program's first byte."""
    engine: Checked
    kernel: KernelChecked
    inside: Checked


class End(Model):
    how: How
    exit_code: Annotated[int, Field(ge=0, le=255)] | None
    """As the box's engine gives it: 0-255, 128 + n after signal n. Null where there was none."""
    signal: str | None
    evidence: tuple[str, ...]
    """Plain sentences: what establishes ``how``."""


class Meters(Model):
    """The Linux kernel's own counters for the box. Peaks include start-up; the rest counts from the hand-over on."""

    final: bool
    """True if read after every process of the program was dead; false for the last sample before that."""
    memory_peak_bytes: Count | None
    oom_kills: Count | None
    tasks_peak: Count | None
    task_limit_hits: Count | None
    cpu_seconds: Quantity | None
    cpu_throttled_periods: Count | None
    ran_seconds: Quantity | None
    """From the source's last byte in the box to the program's end, by the warden's monotonic clock."""


class Step(Model):
    name: str
    offset_ms: Quantity
    duration_ms: Quantity


class Waited(Model):
    """A box that was made, started and verified before its program was known, and waited for it."""

    since: str
    """When it was ready, by this computer's wall clock: UTC, ISO 8601."""
    seconds: Quantity
    """From then until its program came and it was verified again, by the monotonic clock."""
    steps: tuple[Step, ...]
    """Of its making, on a clock that starts with it. The run's own ``steps`` have what came after."""


class Box(Model):
    id: Sha256 | None
    removed: bool | None
    """True: confirmed gone, by a fresh look at the engine and at the kernel's cgroups; where nothing outside the box
    can look at those, ``unknown`` lists them. False: it is still there.
    Null: no box was made, or it could not be confirmed (then see ``unknown``)."""
    waited: Waited | None
    """Null: it was made for this run."""


class Observed(Model):
    seal: Seal
    end: End
    meters: Meters
    boundary: Boundary
    steps: tuple[Step, ...]
    box: Box
    carried: Carried | None = None
    """Null where carry is off."""
    engine_used: EngineUsed | None = None
    """Null where none was found."""
    saved_in: str | None
    """The folder of this computer that files from the box were written to, made safe to show; null where none were."""


class Unknown(Model):
    what: str
    why: str


class Problem(Model):
    """Why PyBox could not do its part."""

    code: str
    message: str
    advice: str


class Receipt(Model):
    schema_: Literal["pybox.receipt/1"] = Field(alias="schema", default=SCHEMA)
    run: Run
    asked: Asked
    observed: Observed
    said: Said
    unknown: tuple[Unknown, ...]
    problem: Problem | None
    signed: Signed | None = Field(default=None, exclude_if=lambda signed: signed is None)
    """Of one that stands alone: the key and the signature, see ``signing.signed_receipt``."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True, validate_by_name=True)

    @model_validator(mode="after")
    def nothing_is_null_in_silence(self) -> Self:
        listed = {entry.what for entry in self.unknown}
        started = self.observed.end.how != "not_started"
        for name, value in self.observed.meters:
            if started and value is None and name not in listed:
                raise ValueError(f"{name} is null and not listed as unknown")
        if (
            self.observed.end.how in ENDED_BY_ITSELF
            and self.observed.end.exit_code is None
            and "exit_code" not in listed
        ):
            raise ValueError("the exit code is null and not listed as unknown")
        if self.observed.box.id is not None and self.observed.box.removed is None and "removed" not in listed:
            raise ValueError("whether the box is gone is null and not listed as unknown")
        if started and not self.observed.seal.before_start:
            raise ValueError("the program started although the seal was not verified")
        if self.observed.seal.before_start and any(
            look.checked == 0 or look.differences
            for look in (self.observed.seal.engine, self.observed.seal.kernel, self.observed.seal.inside)
        ):
            raise ValueError("the seal is called verified although a look is missing or found a difference")
        return self

    @property
    def ok(self) -> bool:
        """The program ended by itself without an error code, says it reached its last statement, and reports no
        exception (a process that it forked may have, though it ended well itself).

        A process of it may still have been killed for memory: see ``observed.meters.oom_kills``.
        """
        end = self.observed.end
        said_well = self.said.completed and self.said.error is None
        return end.how == "exited" and end.exit_code == 0 and said_well and self.problem is None

    def to_json(self, indent: int | None = None) -> str:
        """ASCII only, so that it can be printed anywhere."""
        return self.model_dump_json(indent=indent, ensure_ascii=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Receipt:
        """Raises pydantic.ValidationError for anything that is not a receipt of this version, to the letter."""
        receipt = cls.model_validate_json(text, strict=True, by_alias=True, by_name=False)
        if "schema_" not in receipt.model_fields_set:
            raise ValidationError.from_exception_data("Receipt", [{"type": "missing", "loc": ("schema",), "input": {}}])
        return receipt
