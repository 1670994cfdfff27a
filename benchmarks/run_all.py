"""*Run All*: twenty small cells asked for at once, in a new kernel and again in the same, as after a first look."""

from __future__ import annotations

import time
from typing import Final

from benchmarks.kernels import KernelClient, started
from benchmarks.timing import timed
from pybox_kernel.install import KERNEL_NAME

CELLS: Final = 20
SETTLED_SECONDS: Final = 6.0
"""Until the boxes for the next time are made."""
SOURCES: Final = {"`print(1)`": "print(1)", "0.3 s of work": "import time; time.sleep(0.3); print(1)"}


def run_all() -> dict[str, tuple[float, float]]:
    """Seconds of the first and of the second time, by the kernel and what its cells do."""
    found: dict[str, tuple[float, float]] = {}
    for what, source in SOURCES.items():
        for how, boxes in (("boxes made when they are asked for", "0"), ("boxes made in advance", "16")):
            with started(KERNEL_NAME, PYBOX_POOL=boxes) as kernel:
                time.sleep(1.0)
                first = timed(lambda kernel=kernel, source=source: all_cells(kernel, source))  # type: ignore[misc]
                time.sleep(SETTLED_SECONDS)
                then = timed(lambda kernel=kernel, source=source: all_cells(kernel, source))  # type: ignore[misc]
                found[f"{what}, {how}"] = first, then
    return found


def all_cells(kernel: KernelClient, source: str) -> None:
    for _ in range(CELLS):
        kernel.run(source)


def report(_rounds: int) -> list[str]:
    return [
        "## Run All",
        "",
        f"{CELLS} cells one directly after another, in a new kernel and then once more:",
        "",
        "| seconds | first time | second time |",
        "|---|---|---|",
        *(f"| {name} | {first:.1f} | {second:.1f} |" for name, (first, second) in run_all().items()),
        "",
    ]
