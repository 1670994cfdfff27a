"""Cells whose box was made in advance beside the same whose box is made when they come, and what a waiting box takes.

Before each cell a box waits: these are the times of a person who reads between two cells. Cells that come at once one
after another use up what waits, and then take as long as without.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.data import SOURCE as LIBRARIES
from benchmarks.kernels import KernelClient, started
from benchmarks.timing import Spread
from pybox_kernel.docker_engine import DockerEngine
from pybox_kernel.engine import Engine
from pybox_kernel.install import DATA_KERNEL_NAME, KERNEL_NAME
from pybox_kernel.journal import home_path, installation_id
from pybox_kernel.policy import DATA, STDLIB
from pybox_kernel.seal import LABEL
from pybox_kernel.session import Session

SOURCE = "print(1)"
WARM_UP = 2
WAIT_SECONDS = 30.0
SETTLED_SECONDS = 0.5
"""After a box waits, before a cell: what making it has left to do is done."""


class Found(NamedTuple):
    spreads: dict[str, Spread]
    """Milliseconds, by what was timed."""
    steps: dict[str, float]
    """The receipts' own, in a session: medians."""
    mib: dict[str, float]
    """A waiting box's memory, by its image: what its cgroup holds."""


def in_advance(rounds: int) -> Found:
    spreads: dict[str, Spread] = {}
    with session() as opened:
        whole, steps = runs(opened, rounds)
        spreads["a run in a session, its receipt, its box confirmed gone"] = whole
        mib = {STDLIB.image: waiting_mib(opened, STDLIB.image)}
    with session() as opened:
        mib[DATA.image] = waiting_mib(opened, DATA.image)
    with started("python3") as plain:
        spreads["ipykernel: first output"], spreads["ipykernel: idle again"] = cells(plain, SOURCE, rounds, no_wait)
    names = {"": KERNEL_NAME, ", data libraries": DATA_KERNEL_NAME}
    for what, kernel_name in names.items():
        source = LIBRARIES + "\nprint(1)" if what else SOURCE
        for how, boxes, wait in (("made when it comes", "0", no_wait), ("made in advance", "1", a_box_waits)):
            with started(kernel_name, PYBOX_POOL=boxes) as kernel:
                first, idle = cells(kernel, source, rounds, wait)
            spreads[f"PyBox (sealed{what}), {how}: first output"] = first
            spreads[f"PyBox (sealed{what}), {how}: idle again"] = idle
    return Found(spreads, steps, mib)


@contextmanager
def session() -> Iterator[Session]:
    os.environ["PYBOX_POOL"] = "1"
    try:
        with Session.open(in_advance=True) as opened:
            yield opened
    finally:
        del os.environ["PYBOX_POOL"]


def runs(opened: Session, rounds: int) -> tuple[Spread, dict[str, float]]:
    times: list[float] = []
    steps: dict[str, list[float]] = {}
    for _ in range(WARM_UP + rounds):
        opened.expect(STDLIB.image)
        until(lambda: opened.waiting() > 0)
        began = time.perf_counter()
        receipt = opened.run(SOURCE).receipt
        times.append(time.perf_counter() - began)
        if not receipt.ok or receipt.observed.box.waited is None:
            raise RuntimeError(receipt.to_json())
        for step in receipt.observed.steps:
            steps.setdefault(step.name, []).append(step.duration_ms)
    medians = {name: statistics.median(values[WARM_UP:]) for name, values in steps.items()}
    return Spread.of(times[WARM_UP:]), medians


def waiting_mib(opened: Session, image: str) -> float:
    """What the cgroup of a box that waits holds, by the kernel's count."""
    opened.expect(image)
    until(lambda: opened.waiting() > 0)
    time.sleep(SETTLED_SECONDS)
    (box,) = boxes(opened.engine())
    return counted(box, "memory", "memory.usage_in_bytes", "memory.current") / (1 << 20)


def boxes(engine: Engine) -> list[str]:
    """Those of this installation, by id."""
    label = f"{LABEL}installation={installation_id(home_path())}"
    return [box.id for box in engine.containers(labels=[label])]


def counted(box: str, controller: str, v1: str, v2: str) -> int:
    """The first number in a file of the box's cgroup, v1 or v2, where the usual drivers of an engine put it."""
    for path in (
        f"/sys/fs/cgroup/{controller}/docker/{box}/{v1}",
        f"/sys/fs/cgroup/system.slice/docker-{box}.scope/{v2}",
    ):
        if Path(path).exists():
            return int(re.findall(r"\d+", Path(path).read_text())[0])
    raise RuntimeError("the box's cgroup was not found")


def cells(kernel: KernelClient, source: str, rounds: int, wait: Callable[[], None]) -> tuple[Spread, Spread]:
    """To the first output, and until the kernel is idle."""
    idle: list[float] = []
    for _ in range(WARM_UP + rounds):
        wait()
        began = time.perf_counter()
        kernel.run(source)
        idle.append(time.perf_counter() - began)
    return Spread.of(kernel.first_output[WARM_UP:]), Spread.of(idle[WARM_UP:])


def no_wait() -> None:
    time.sleep(SETTLED_SECONDS)


def a_box_waits() -> None:
    """Until the one box there is has been started and computes no more."""
    engine, last, began = DockerEngine(), -1, time.monotonic()
    while True:
        time.sleep(SETTLED_SECONDS)
        found = boxes(engine)
        with suppress(OSError, RuntimeError):
            spent = counted(found[0], "cpuacct", "cpuacct.usage", "cpu.stat") if len(found) == 1 else -1
            if 0 <= last == spent:
                break
            last = spent
        if time.monotonic() > began + WAIT_SECONDS:
            raise RuntimeError("no box was made in advance")
    engine.close()


def until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + WAIT_SECONDS
    while not holds():
        if time.monotonic() > limit:
            raise RuntimeError("no box was made in advance")
        time.sleep(0.02)


def lines(found: Found) -> list[str]:
    spreads = found.spreads
    rows = [
        f"| {name} | {spread.least:.1f} | {spread.median:.1f} | {spread.most:.1f} |" for name, spread in spreads.items()
    ]
    first = ratio(spreads, "PyBox (sealed), made in advance: first output", "ipykernel: first output")
    library, without = (
        f"PyBox (sealed, data libraries), made {how}: idle again" for how in ("in advance", "when it comes")
    )
    return [
        "Boxes made in advance, one waiting before each cell:",
        "",
        "| | least | median | most |",
        "|---|---|---|---|",
        *rows,
        "",
        f"First output of `{SOURCE}` takes **{first:.1f} times** plain ipykernel's (medians; the aim is at most 4). "
        "A cell that imports the data libraries takes "
        f"{ratio(spreads, library, without):.2f} times as long as one whose box is made when it comes.",
        "",
        "| step of such a run | ms |",
        "|---|---|",
        *(f"| {name} | {value:.1f} |" for name, value in found.steps.items()),
        "",
        "A waiting box takes " + ", ".join(f"{mib:.1f} MiB ({image})" for image, mib in found.mib.items()) + ".",
        "",
    ]


def ratio(spreads: dict[str, Spread], one: str, other: str) -> float:
    return spreads[one].median / spreads[other].median


if __name__ == "__main__":
    print("\n".join(lines(in_advance(int(sys.argv[1]) if len(sys.argv) > 1 else 20))))
