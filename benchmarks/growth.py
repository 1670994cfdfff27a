"""How a run's time and this process's memory grow: with what is printed, and with the number of runs."""

from __future__ import annotations

import gc
import statistics
import time
from typing import Final

from benchmarks.memory import own_mib
from benchmarks.timing import timed
from pybox_kernel.policy import STDLIB
from pybox_kernel.sessions.session import Session

PRINTED: Final = {"1 KiB": 1 << 10, "64 KiB": 1 << 16, "1 MiB": 1 << 20, "32 MiB": 1 << 25, "1 GiB": 1 << 30}
OUTPUT_RUNS: Final = 3
WRITE: Final = "import os\nleft = {size}\nwhile left: left -= os.write(1, b'x' * min(left, 65536))"
NUMBERS: Final = (1, 10, 50, 100, 200, 500, 1000, 2000, 5000)
MOST_RUNS: Final = 200
"""Where nobody asks for more: ``python -m benchmarks runs 5000``."""
LAST: Final = 20
"""Of so many runs is the median time at each number."""


def output() -> dict[str, tuple[float, float, float]]:
    """By what is printed: milliseconds of the program (its clock) and of the run (medians), and MiB of this process
    after it."""
    found = {}
    with Session.open() as session:
        session.run("print(1)")
        for name, size in PRINTED.items():
            pairs = [printing(session, size) for _ in range(OUTPUT_RUNS)]
            ran, whole = (1000 * statistics.median(seconds) for seconds in zip(*pairs, strict=True))
            found[name] = ran, whole, own_mib()
    return found


def printing(session: Session, size: int) -> tuple[float, float]:
    """Seconds of the program, and of the whole run."""
    began = time.perf_counter()
    receipt = session.run(WRITE.format(size=size), deadline_seconds=STDLIB.longest_deadline_seconds).receipt
    whole, told = time.perf_counter() - began, receipt.said.stdout
    if not receipt.ok or told.bytes != size or told.kept > STDLIB.kept_bytes:
        raise RuntimeError(receipt.to_json())
    return receipt.observed.meters.ran_seconds or 0.0, whole


def output_report(_rounds: int) -> list[str]:
    return [
        "## Growth with what a program prints",
        "",
        f"{STDLIB.kept_bytes >> 10} KiB are kept; the rest is read, and counted. Medians of {OUTPUT_RUNS}.",
        "",
        "| printed | ms, program | ms, whole run | MiB of PyBox's own process |",
        "|---|---|---|---|",
        *(f"| {name} | {ran:.0f} | {whole:.0f} | {mib:.0f} |" for name, (ran, whole, mib) in output().items()),
        "",
    ]


def runs(most: int) -> dict[int, tuple[float, float]]:
    """By the number of runs in one session: milliseconds of the last ones (median), and MiB of this process."""
    found, times = {}, []
    with Session.open(in_advance=True) as session:
        for number in range(1, most + 1):

            def one(number: int = number) -> None:
                if not session.run(f"print({number})", deadline_seconds=10).receipt.ok:
                    raise RuntimeError("a run did not end normally")

            times.append(timed(one))
            if number in NUMBERS or number == most:
                gc.collect()
                found[number] = 1000 * statistics.median(times[-LAST:]), own_mib()
    return found


def runs_report(rounds: int) -> list[str]:
    found = runs(max(rounds, MOST_RUNS))
    return [
        "## Growth with the number of runs",
        "",
        "| runs in a session, one directly after another | ms of the last ones (median) | MiB of PyBox's own process |",
        "|---|---|---|",
        *(f"| {number} | {ms:.0f} | {mib:.1f} |" for number, (ms, mib) in found.items()),
        "",
    ]
