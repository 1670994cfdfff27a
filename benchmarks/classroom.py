"""A class's submissions, each in a kernel of its own as nbgrader runs them: sealed, and in an ordinary kernel.

A whole class is ``python -m benchmarks classroom 120``.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import nbformat
from nbclient import NotebookClient

from pybox_kernel.install import KERNEL_NAME

__all__ = ["report"]

ORDINARY: Final = "python3"
CELLS: Final = (
    "import json, math, statistics\nfrom collections import Counter",
    "def squares(n):\n    if n < 1:\n        raise ValueError(n)\n    return [i**2 for i in range(1, n + 1)]",
    "squares(10)",
    "words = 'the quick brown fox jumps over the lazy dog the end'.split()\ncounted = Counter(words)\ncounted",
    "def primes(n):\n    return [p for p in range(2, n) if all(p % d for d in range(2, math.isqrt(p) + 1))]\n"
    "found = primes(5_000)\nprint(len(found), found[-1])",
    "assert squares(3) == [1, 4, 9]\nassert counted['the'] == 3",
    "assert len(found) == 669\nstatistics.mean(found)",
    "table = [{'n': n, 'square': s} for n, s in enumerate(squares(50), 1)]\njson.dumps(table)[:60]",
)


class Submission(NamedTuple):
    """Seconds that one took."""

    started: float
    """Until its kernel answered."""
    ran: float
    """All its cells."""
    ended: float
    """Until its kernel was gone."""

    @property
    def whole(self) -> float:
        return sum(self)


def classroom(submissions: int) -> dict[str, list[Submission]]:
    """Each is run in both kernels before the next, so that both find the same computer. Raises RuntimeError where a
    cell fails."""
    found: dict[str, list[Submission]] = {ORDINARY: [], KERNEL_NAME: []}
    for _ in range(submissions):
        for name, times in found.items():
            times.append(asyncio.run(one(name)))
    return found


async def one(kernel_name: str) -> Submission:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    client = NotebookClient(notebook, kernel_name=kernel_name, timeout=30)
    times = [time.perf_counter()]
    async with client.async_setup_kernel():
        times.append(time.perf_counter())
        for index, cell in enumerate(notebook.cells):
            await client.async_execute_cell(cell, index)
        times.append(time.perf_counter())
    times.append(time.perf_counter())
    return Submission(*(after - before for before, after in pairwise(times)))


def report(submissions: int) -> list[str]:
    found = classroom(submissions)
    plain, sealed = found[ORDINARY], found[KERNEL_NAME]
    ratio = sum(it.whole for it in sealed) / sum(it.whole for it in plain)
    parts = ("started", "ran", "ended")
    more = {part: median(sealed, part) - median(plain, part) for part in parts}
    most = max(more, key=lambda part: more[part])
    what = {"started": "the start of the kernel", "ran": "the cells", "ended": "the end of the kernel"}[most]
    return [
        "## A class",
        "",
        f"{len(plain)} submissions of {len(CELLS)} cells, one after the other, each in a kernel of its own as nbgrader",
        "runs them. Seconds, medians of one submission:",
        "",
        "| | kernel starts | its cells | kernel ends | all submissions |",
        "|---|---|---|---|---|",
        row("ipykernel", plain),
        row("PyBox (sealed)", sealed),
        "",
        f"Sealed takes **{ratio:.2f} times** as long. What is more is {more['started']:.2f} s for the start of the "
        f"kernel, {more['ran']:.2f} s for the cells and {more['ended']:.2f} s for its end: most of it is {what}.",
        "",
    ]


def row(name: str, found: Sequence[Submission]) -> str:
    medians = (f"{median(found, part):.2f}" for part in ("started", "ran", "ended"))
    return f"| {name} | {' | '.join(medians)} | {sum(it.whole for it in found):.0f} |"


def median(found: Sequence[Submission], part: str) -> float:
    return statistics.median(getattr(it, part) for it in found)
