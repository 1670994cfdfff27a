"""The container engine that made a box, and what stands around the box, in sentences for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pybox_kernel.render.advice import in_marks
from pybox_kernel.render.amounts import sentence
from pybox_kernel.safe_display.text import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybox_kernel.receipt.model import Boundary, EngineUsed, MachineSettings, Observed, Receipt

__all__ = ["allowed", "boundary_note", "seen"]

MOST_FACTS: Final = 12
NOTES: Final = {
    "this_kernel": "this computer's kernel",
    "other_kernel": "another kernel, not identified",
    "another_machine": "on another machine",
}

SEEN: Final = {
    "this_kernel": "No virtual machine between the box and this computer: they share one kernel",
    "another_machine": "On another machine, over a network: your program and its files went there",
    "other_kernel": "Another kernel than this computer's, not identified: a virtual machine, or another computer",
}
NO_WORD: Final = "not known"
RUN_BY: Final = {
    "kvm": "this computer's processor (KVM)",
    "tcg": "QEMU's emulator, which is slow",
    "vz": "this computer's processor (Apple Virtualization)",
}


def boundary_note(boundary: Boundary) -> Iterator[str]:
    """What the folded line says of it; nothing where it is not known, which stands elsewhere."""
    if boundary.kind == "private_vm":
        yield f"in a {safe_name(boundary.machine or 'private VM', 60)}"
    elif boundary.kind is not None:
        yield NOTES[boundary.kind]


def allowed(receipt: Receipt) -> Iterator[str]:
    options = receipt.asked.options
    if options.require_vm:
        yield "To run in a private virtual machine, and nowhere else."
    if options.engine is not None:
        yield f"The container engine that was named: {in_marks(options.engine)}."
    if options.another_machine:
        yield "An engine on another machine: somebody said yes to that."


def seen(observed: Observed) -> Iterator[str]:
    """What the boundary is, what that is known by, and which engine it was."""
    boundary = observed.boundary
    if boundary.kind is not None:
        facts = (boundary.evidence, *boundary.facts[:MOST_FACTS])
        known_by = "; ".join(safe_name(fact, 200) for fact in facts)
        what = (
            f"In a {safe_name(boundary.machine or 'private VM', 60)}"
            if boundary.kind == "private_vm"
            else SEEN[boundary.kind]
        )
        yield f"{what} ({known_by})."
    if boundary.settings is not None:
        yield f"What that machine has, as its driver knows it from outside ({'; '.join(has(boundary.settings))})."
    if observed.engine_used is not None:
        yield from engine(observed.engine_used)


def has(settings: MachineSettings) -> Iterator[str]:
    """Each setting, by its name."""
    memory, run_by = settings.memory_mib, settings.accelerator
    yield f"memory: {memory:,} MB" if memory is not None else f"memory: {NO_WORD}"
    yield f"processors: {number(settings.processors)}"
    yield f"run by: {RUN_BY[run_by] if run_by is not None else NO_WORD}"
    yield f"network devices: {number(settings.network_devices)}"
    yield f"folders shared with this computer: {number(settings.shared_folders)}"


def number(count: int | None) -> str:
    return NO_WORD if count is None else f"{count:,}" if count else "none"


def engine(used: EngineUsed) -> Iterator[str]:
    runtime = " ".join(safe_name(text, 60) for text in (used.runtime, used.runtime_version) if text)
    facts = (safe_name(text, 300) for text in (used.version, runtime, used.address, used.chosen) if text)
    yield sentence(f"{safe_name(used.name, 100)}: {', '.join(facts)}", 1000)
    if used.warning:
        yield f"A weakness is known of {runtime}: {safe_name(used.warning, 300)}."
