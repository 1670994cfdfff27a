"""How the attacks are run: each in a box of its own, on the real engine, and what must hold of every run."""

from __future__ import annotations

import json
import platform
import re
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

from pybox_kernel.policy import STDLIB
from pybox_kernel.receipt.model import End, Meters, Receipt
from pybox_kernel.running.transcript import Display
from pybox_kernel.safe_display.text import SafeText
from pybox_kernel.sessions.session import RunResult, Session

LATE: Final = 0.5
"""Seconds after the deadline by which the last process is dead. Not 0: the tasks of a box share half a processor, and
to be killed takes each of them a moment of it."""
REMOVAL: Final = 1.5
"""Seconds from there until the box is confirmed gone."""


class Clock:
    """Notes when the program's clock started; shows nothing."""

    began = 0.0

    def started(self, deadline_seconds: float) -> None:
        self.began = time.monotonic()

    def output(self, stream: str, text: SafeText) -> None:
        return None

    def display(self, display: Display) -> None:
        return None


class Ran(NamedTuple):
    """A run that is over. ``seconds`` is from the program's start until its box was confirmed gone, by our clock."""

    result: RunResult
    deadline: float
    seconds: float

    @property
    def receipt(self) -> Receipt:
        return self.result.receipt

    @property
    def end(self) -> End:
        return self.receipt.observed.end

    @property
    def meters(self) -> Meters:
        return self.receipt.observed.meters

    @property
    def printed(self) -> str:
        return self.result.stdout

    @property
    def answer(self) -> Any:
        """What the program printed, read as JSON."""
        return json.loads(self.result.stdout)

    def assert_deadline(self) -> None:
        """It was ended at its deadline by the timer in its box, in time, and the receipt says so on evidence."""
        assert self.end.how == "deadline"
        assert self.end.evidence[0] == f"the box's own timer ended it at {self.deadline:g} s"
        assert self.meters.ran_seconds is not None
        assert self.deadline <= self.meters.ran_seconds <= self.deadline + LATE
        assert self.seconds <= self.deadline + LATE + REMOVAL
        assert not self.receipt.ok

    def assert_exited(self, code: int, *, completed: bool) -> None:
        assert (self.end.how, self.end.exit_code, self.end.signal) == ("exited", code, None)
        assert self.receipt.said.completed is completed
        assert self.receipt.ok is (completed and code == 0)

    def assert_signal(self, name: str, code: int) -> None:
        assert (self.end.how, self.end.exit_code, self.end.signal) == ("signal", code, name)
        assert not self.receipt.said.completed
        assert not self.receipt.ok


def without_colour(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def run_attack(session: Session, source: str, deadline: float) -> Ran:
    """Runs an attack, and looks at what holds of every run whatever it did."""
    clock = Clock()
    result = session.run(source, deadline_seconds=deadline, watcher=clock)
    ran = Ran(result, deadline, time.monotonic() - clock.began)
    receipt = result.receipt
    assert receipt.problem is None, receipt.problem
    assert receipt.observed.seal.before_start
    assert receipt.observed.box.removed is True
    known = {item.what for item in receipt.unknown}
    # Of a box that the kernel took whole, its warden included, there is the last sample, not called final.
    lost = receipt.observed.end.how == "box_lost"
    assert receipt.observed.meters.final or lost or "memory_peak_bytes" in known
    assert (receipt.observed.meters.tasks_peak or 0) <= STDLIB.tasks
    assert (receipt.observed.meters.memory_peak_bytes or 0) <= STDLIB.memory_bytes
    return ran


def numbers() -> dict[str, int]:
    """The system calls of this machine by name."""
    column = {"x86_64": 1, "aarch64": 2}[platform.machine()]
    table = Path(__file__).parents[1] / "unit" / "syscalls.tsv"
    rows = (line.split("\t") for line in table.read_text().splitlines()[3:])
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


CALLS: Final = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

def errno_of(name, *arguments):
    "What a raw system call answers; 0 if it was let through. Bytes are passed by their address."
    ctypes.set_errno(0)
    raw = [a if isinstance(a, bytes) else ctypes.c_ulong(a % 2**64) for a in arguments]
    return ctypes.get_errno() if libc.syscall(ctypes.c_long(NUMBERS[name]), *raw) == -1 else 0

def tried(action, *arguments):
    "The errno with which an action fails; 0 if it does not."
    try:
        action(*arguments)
    except OSError as error:
        return error.errno
    return 0
"""


def with_calls(source: str) -> str:
    """``source`` with ``errno_of`` and ``tried`` before it."""
    used = {name: number for name, number in numbers().items() if f'"{name}"' in source}
    return f"NUMBERS = {used!r}\n{CALLS}\n{source}"


FILES: Final = """
import os
def files():
    "Every file of the box with its mode, but for what the kernel shows of itself."
    for folder, folders, names in os.walk("/"):
        if folder == "/": folders[:] = [name for name in folders if name not in ("proc", "sys")]
        for name in names:
            path = folder + "/" + name
            try: yield path, os.lstat(path).st_mode
            except OSError: continue
"""
