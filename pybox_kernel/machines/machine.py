"""What PyBox asks of a private virtual machine with a container engine in it, and what it knows of one.

``qemu`` (Linux) and ``colima`` (macOS) are the drivers. What a driver says of its machine it knows from its own control
connection or from the files that it wrote itself, never from the engine that is to be placed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, Literal, NamedTuple, Protocol

__all__ = [
    "LONGEST_SOCKET_PATH",
    "Accelerator",
    "Clock",
    "Machine",
    "MachineFacts",
    "MachineState",
    "clock_in_words",
    "kind_in_words",
    "silent",
]

Progress = Callable[[str], None]


def silent(_step: str) -> None:
    """A ``Progress`` that tells nobody."""


MachineState = Literal["not made", "stopped", "running", "unreachable"]
"""``unreachable``: it is there and not to be used: its engine does not answer, or others could have changed it.
``start`` mends the first, and says what to do about the other."""

Accelerator = Literal["kvm", "tcg", "vz"]
"""Who runs the machine's processor: Linux's KVM, QEMU's emulator alone, or macOS's Virtualization framework."""

LONGEST_SOCKET_PATH: Final = 103
"""Bytes of a Unix socket's path that every system here takes: 104 with the closing NUL (macOS; Linux has 108)."""


class Clock(NamedTuple):
    """The machine's clock against this computer's, as measured over the control connection at one moment."""

    ahead_seconds: float
    """The machine's clock less this computer's; negative where it is behind."""
    within_seconds: float
    """By how much ``ahead_seconds`` may be wrong: half of the time that the question took."""


class MachineFacts(NamedTuple):
    """What is known of a machine; None where it is not known, or there is nothing to know since it does not run."""

    driver: Literal["qemu", "colima"]
    name: str
    state: MachineState
    endpoint: str
    """Where its engine is or will be: ``unix:///...``, on this computer, for this user alone."""
    accelerator: Accelerator | None = None
    boot_id: str | None = None
    """Of the kernel inside, read over the driver's own control connection when it started."""
    kernel: str | None = None
    """The release of the kernel inside (``uname -r``)."""
    started_at: datetime | None = None
    """By this computer's clock."""
    clock: Clock | None = None
    """As it was when it started; ``Machine.clock`` measures anew."""
    runs_cgroup: str | None = None
    """For the engine inside: see ``Engine.runs_cgroup``."""
    memory_mib: int | None = None
    processors: int | None = None
    network_devices: int | None = None
    shared_folders: int | None = None
    """These four as seen from outside when it had started, and not as asked for."""
    remark: str = ""
    """Plain text for a person: why it is not running, or why it is slow. Empty where there is nothing to say."""


class Machine(Protocol):
    """One virtual machine of this user. Safe to use from several processes at once: they wait for one another."""

    def status(self) -> MachineFacts:
        """What is known without waiting for anything in the machine; never raises, starts nothing, takes milliseconds.

        A machine that is starting counts as stopped until its engine answers.
        """
        ...

    def start(self, progress: Progress) -> MachineFacts:
        """Starts it and waits for its engine; with one that runs, nothing is done but to mend a lost connection.

        Raises SetupError (not made, a program missing, refused by this computer) and EngineTimeout.
        """
        ...

    def stop(self, progress: Progress = silent) -> bool:
        """Ends it, with all that runs in it; False if it did not run. What was written in it since it started is gone.

        Raises EngineTimeout where it could not be ended.
        """
        ...

    def clock(self) -> Clock | None:
        """Measures its clock now. None where it does not run or does not answer within 10 s; never raises."""
        ...


KINDS: Final = {
    ("qemu", "kvm"): "private VM (QEMU, KVM)",
    ("qemu", "tcg"): "private VM (QEMU, emulated)",
    ("colima", "vz"): "private VM (Colima, Apple Virtualization)",
}


def kind_in_words(facts: MachineFacts) -> str:
    """Such as "private VM (QEMU, KVM)". Says nothing of whether an engine is in it: that takes its boot id."""
    return KINDS.get((facts.driver, facts.accelerator or ""), f"private VM ({facts.driver})")


def clock_in_words(clock: Clock | None) -> str:
    """Such as "the machine's clock is 3.200 s ahead of this computer's, give or take 0.010 s"."""
    if clock is None:
        return "the machine's clock could not be read"
    ahead, within = clock
    side = "ahead of" if ahead >= 0 else "behind"
    return f"the machine's clock is {abs(ahead):.3f} s {side} this computer's, give or take {within:.3f} s"
