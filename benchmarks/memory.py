"""What a kernel holds in memory (resident), beside a plain one, and a box that waits."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Final

from benchmarks.kernels import started
from pybox_kernel.install import KERNEL_NAME

CELLS: Final = 50
NAMES: Final = {"ipykernel": ("python3", {}), "PyBox (sealed)": (KERNEL_NAME, {"PYBOX_POOL": "1"})}


def resident_mib(pid: int) -> float:
    found = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError("it has ended")
    return int(found[1]) / 1024


def children(pid: int) -> list[int]:
    """And theirs."""
    direct = [
        int(text) for task in Path(f"/proc/{pid}/task").iterdir() for text in (task / "children").read_text().split()
    ]
    return [*direct, *(below for child in direct for below in children(child))]


def memory() -> dict[str, tuple[float, float]]:
    """MiB of each kernel, with the processes that it keeps, as it starts and after ``CELLS`` cells."""
    found = {}
    for name, (kernel_name, variables) in NAMES.items():
        with started(kernel_name, **variables) as kernel:
            time.sleep(2.0)
            first = all_of(kernel.pid)
            for number in range(CELLS):
                kernel.run(f"x{number} = {number}\nprint({number})")
            found[name] = first, all_of(kernel.pid)
    return found


def all_of(pid: int) -> float:
    return sum(map(resident_mib, [pid, *children(pid)]))


def report(_rounds: int) -> list[str]:
    return [
        "## Memory of a kernel",
        "",
        f"| MiB resident | after its start | after {CELLS} cells |",
        "|---|---|---|",
        *(f"| {name} | {first:.0f} | {then:.0f} |" for name, (first, then) in memory().items()),
        "",
    ]


def own_mib() -> float:
    return resident_mib(os.getpid())
