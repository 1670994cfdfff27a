"""Many sessions at once on one engine, as of a class: cells a second, and how long each takes; beside what the engine
reaches alone with the same containers from as many threads."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from pybox_kernel.box import fresh_uid
from pybox_kernel.docker_engine import DockerEngine
from pybox_kernel.image_store import ImageStore, require
from pybox_kernel.journal import box_name, home_path, new_token
from pybox_kernel.policy import STDLIB
from pybox_kernel.seal import PYTHON, Identity, container_config
from pybox_kernel.session import Session

SOURCE = "print(1)"
SECONDS = 8.0
SESSIONS = (1, 4, 16, 30)


class Reached(NamedTuple):
    a_second: float
    median_ms: float
    p99_ms: float


def many() -> dict[int, tuple[Reached, Reached]]:
    """By the number of sessions: their cells, and the engine alone."""
    return {number: (reached(number, cells), reached(number, containers)) for number in SESSIONS}


def reached(number: int, work: Callable[[Callable[[], bool]], list[float]]) -> Reached:
    """``work`` does one thing after another as long as it is to go on, and returns how long each took. What was begun
    is done to its end, and counted."""
    over = threading.Event()
    begin = threading.Barrier(number, action=threading.Timer(SECONDS, over.set).start)

    def start(_: int) -> list[float]:
        begin.wait()
        return work(lambda: not over.is_set())

    began = time.perf_counter()
    with ThreadPoolExecutor(number) as threads:
        took = sorted(1000 * seconds for times in threads.map(start, range(number)) for seconds in times)
    elapsed = time.perf_counter() - began
    return Reached(len(took) / elapsed, took[len(took) // 2], took[len(took) * 99 // 100])


def cells(go_on: Callable[[], bool]) -> list[float]:
    with Session.open(in_advance=True) as session:
        return timed(go_on, lambda: session.run(SOURCE, deadline_seconds=30).receipt.ok)


def containers(go_on: Callable[[], bool]) -> list[float]:
    """Made, started, ended by themselves and removed, with a box's settings and no more looked at."""
    engine = DockerEngine()
    image_id = require(engine, ImageStore(home_path())).id

    def one() -> bool:
        name = box_name(new_token())
        config = container_config(STDLIB, Identity(name=name, uid=fresh_uid(), image_id=image_id, labels={}))
        made = engine.create(name, {**config, "Cmd": [PYTHON, "-c", SOURCE]})
        removal = engine.expect_removal(made)
        engine.start(made)
        return removal.status(60.0) == 0

    try:
        return timed(go_on, one)
    finally:
        engine.close()


def timed(go_on: Callable[[], bool], do: Callable[[], bool]) -> list[float]:
    found = []
    while go_on():
        began = time.perf_counter()
        if not do():
            raise RuntimeError("a run did not end normally")
        found.append(time.perf_counter() - began)
    return found


def lines(found: dict[int, tuple[Reached, Reached]]) -> list[str]:
    rows = [
        f"| {number} | {own.a_second:.1f} | {own.median_ms:.0f} | {own.p99_ms:.0f} | {engine.a_second:.1f} "
        f"| {own.a_second / engine.a_second:.0%} |"
        for number, (own, engine) in found.items()
    ]
    return [
        f"Sessions that run `{SOURCE}` again and again at the same time, {SECONDS:g} s each; beside them the engine "
        "alone, with the same containers from as many threads:",
        "",
        "| sessions | cells a second | median ms | p99 ms | containers a second, engine alone | of that |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
    ]


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines(many())) + "\n")
