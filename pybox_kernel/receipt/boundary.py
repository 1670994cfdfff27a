"""What a receipt says of the engine that made a box, and of what stands around the box."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pybox_kernel.policy import Count
from pybox_kernel.receipt.carried import Model

__all__ = ["Boundary", "BoundaryKind", "EngineUsed", "MachineSettings"]

BoundaryKind = Literal["this_kernel", "other_kernel", "private_vm", "another_machine"]
"""
``this_kernel``      the box shares this computer's own kernel
``private_vm``       it is in PyBox's own virtual machine
``another_machine``  it is on another kernel, and its engine is reached over a network
``other_kernel``     it is on another kernel; whose, is not identified
"""


class MachineSettings(Model):
    """What the private virtual machine was seen to have when it had started; null where that is not known."""

    accelerator: Literal["kvm", "tcg", "vz"] | None
    """Linux's KVM, QEMU's emulator alone, or macOS's Virtualization framework."""
    memory_mib: Count | None
    processors: Count | None
    network_devices: Count | None
    shared_folders: Count | None


class Boundary(Model):
    """What stands between the box and this computer, beside the container."""

    kind: BoundaryKind | None
    evidence: str
    """What establishes ``kind``."""
    machine: str | None = None
    """What the private virtual machine is, in words; null where it is none."""
    settings: MachineSettings | None = Field(default=None, exclude_if=lambda settings: settings is None)
    """Of the private virtual machine; not there where it is none."""
    facts: tuple[str, ...] = ()
    """What else was seen of the box's kernel, and of this computer's: a sentence each, without a full stop. What a
    machine says of itself is its word."""


class EngineUsed(Model):
    """Which container engine made the box. Versions are the engine's word."""

    address: str
    name: str
    """What listens there, in words, as far as the address tells."""
    chosen: str
    """Why this one, in a few words: "asked for", "the usual one"."""
    version: str | None
    runtime: str | None
    """The container runtime, by the engine's record of the box; null where no box was made."""
    runtime_version: str | None
    warning: str | None = None
    """What is known to be wrong with that runtime."""
