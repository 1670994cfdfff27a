"""Cells whose box was made in advance beside the same whose box is made when they come, and what a waiting box takes.

Before each cell a box waits: these are the times of a person who reads between two cells; ``run_all`` has the others.
All kernels take their cells in turn.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.kernels import KernelClient, started
from benchmarks.timing import Spread, table, timed
from pybox_kernel.boxes.journal import home_path, installation_id
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.engine import Engine
from pybox_kernel.images.store import ImageStore
from pybox_kernel.install import DATA_KERNEL_NAME, KERNEL_NAME
from pybox_kernel.policy import DATA, STDLIB
from pybox_kernel.seal.spec import LABEL
from pybox_kernel.sessions.session import Session

SOURCE = "print(1)"
LIBRARIES = "import pandas, numpy, matplotlib.pyplot\nprint(1)"
WARM_UP = 2
WAIT_SECONDS = 30.0
SETTLED_SECONDS = 0.5
"""After a box waits, before a cell: what making it has left to do is done."""


class Found(NamedTuple):
    spreads: dict[str, Spread]
    """Milliseconds, by what was timed."""
    mib: dict[str, float]
    """A waiting box's memory, by its image: what its cgroup holds."""


class Contender(NamedTuple):
    name: str
    kernel_name: str
    source: str
    variables: dict[str, str]
    boxes: int
    """That wait before each cell."""


CONTENDERS: Final = (
    Contender("ipykernel", "python3", SOURCE, {}, 0),
    Contender("PyBox (sealed), made when it comes", KERNEL_NAME, SOURCE, {"PYBOX_POOL": "0"}, 0),
    Contender("PyBox (sealed), made in advance", KERNEL_NAME, SOURCE, {"PYBOX_POOL": "1"}, 1),
    Contender(
        "PyBox (sealed, data libraries), made when it comes", DATA_KERNEL_NAME, LIBRARIES, {"PYBOX_POOL": "0"}, 0
    ),
    Contender("PyBox (sealed, data libraries), made in advance", DATA_KERNEL_NAME, LIBRARIES, {"PYBOX_POOL": "1"}, 1),
)


def in_advance(rounds: int) -> Found:
    mib = {}
    for image in (STDLIB.image, DATA.image):
        with session() as opened:
            mib[image] = waiting_mib(opened, image)
    idle: dict[str, list[float]] = {one.name: [] for one in CONTENDERS}
    kernels: dict[str, KernelClient] = {}
    homes: dict[str, Path] = {}
    with ExitStack() as during:
        for one in CONTENDERS:
            homes[one.name] = during.enter_context(home())
            kernels[one.name] = during.enter_context(
                started(one.kernel_name, **one.variables, PYBOX_HOME=str(homes[one.name]))
            )
        for _ in range(WARM_UP + rounds):
            for one in CONTENDERS:
                if one.boxes:
                    a_box_waits(homes[one.name])
                else:
                    time.sleep(SETTLED_SECONDS)
                idle[one.name].append(timed(lambda one=one: kernels[one.name].run(one.source)))  # type: ignore[misc]
    spreads = {}
    for one in CONTENDERS:
        spreads[f"{one.name}: first output"] = Spread.of(kernels[one.name].first_output[WARM_UP:])
        spreads[f"{one.name}: idle again"] = Spread.of(idle[one.name][WARM_UP:])
    return Found(spreads, mib)


@contextmanager
def session() -> Iterator[Session]:
    os.environ["PYBOX_POOL"] = "1"
    try:
        with Session.open(in_advance=True) as opened:
            yield opened
    finally:
        del os.environ["PYBOX_POOL"]


def waiting_mib(opened: Session, image: str) -> float:
    """What the cgroup of a box that waits holds, by the kernel's count."""
    opened.expect(image)
    until(lambda: opened.waiting() > 0)
    time.sleep(SETTLED_SECONDS)
    (box,) = boxes(opened.engine(), home_path())
    return counted(box, "memory", "memory.usage_in_bytes", "memory.current") / (1 << 20)


@contextmanager
def home() -> Iterator[Path]:
    """A state folder of one kernel's own, with the images that there are: its box is told apart from the others'."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o700)
        for image in ImageStore(home_path()).load().values():
            ImageStore(Path(folder)).record(image)
        yield Path(folder)


def boxes(engine: Engine, folder: Path) -> list[str]:
    """Those of an installation, by id."""
    label = f"{LABEL}installation={installation_id(folder)}"
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


def a_box_waits(folder: Path) -> None:
    """Until the one box there is has been started and computes no more."""
    engine, last, began = DockerEngine(), -1, time.monotonic()
    while True:
        time.sleep(SETTLED_SECONDS)
        found = boxes(engine, folder)
        with suppress(OSError, RuntimeError):
            spent = counted(found[0], "cpuacct", "cpuacct.usage", "cpu.stat") if len(found) == 1 else -1
            if 0 <= last == spent:
                break
            last = spent
        if time.monotonic() > began + WAIT_SECONDS:
            raise RuntimeError("no box was made in advance")
    engine.close()


def until(holds: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > limit:
            raise RuntimeError("no box was made in advance")
        time.sleep(0.02)


def report(rounds: int) -> list[str]:
    spreads, mib = in_advance(rounds)
    first = ratio(spreads, "PyBox (sealed), made in advance: first output", "ipykernel: first output")
    library = ratio(
        spreads,
        "PyBox (sealed, data libraries), made in advance: idle again",
        "PyBox (sealed, data libraries), made when it comes: idle again",
    )
    return [
        "## Cells",
        "",
        f"`{SOURCE}`, and the same below `{LIBRARIES.partition(chr(10))[0]}`, from the request of a client; where "
        "boxes are made in advance, one waits before each cell:",
        "",
        *table(spreads),
        "",
        f"First output of `{SOURCE}` takes **{first:.1f} times** plain ipykernel's (medians; the aim is at most 4). "
        f"A cell that imports the data libraries takes **{library:.2f} times** as long as one whose box is made when "
        "it comes (at most 0.1).",
        "",
        f"A waiting box takes {mib[STDLIB.image]:.1f} MiB (stdlib; at most 16) or {mib[DATA.image]:.1f} MiB (data; at "
        "most 90).",
        "",
    ]


def ratio(spreads: dict[str, Spread], one: str, other: str) -> float:
    return spreads[one].median / spreads[other].median
