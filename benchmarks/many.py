"""Many sessions at once on one engine, as of a class: cells a second, and how long each takes; beside what the engine
reaches alone from as many threads: with the same containers, and with a plain program in their place."""

from __future__ import annotations

import select
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


class Beside(NamedTuple):
    cells: Reached
    same: Reached
    """The engine alone: a box's containers, ended once they are ready."""
    plain: Reached
    """The engine alone: the same settings around a plain ``python -c``."""


def many() -> dict[int, Beside]:
    """By the number of sessions, or threads."""
    return {
        number: Beside(reached(number, cells), reached(number, same_containers), reached(number, plain_programs))
        for number in SESSIONS
    }


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


def same_containers(go_on: Callable[[], bool]) -> list[float]:
    """Made, started, ready (their first word), ended by the end of their stdin, and removed: nothing is looked at."""
    return containers(go_on, None)


def plain_programs(go_on: Callable[[], bool]) -> list[float]:
    """Made, started, ended by themselves and removed."""
    return containers(go_on, [PYTHON, "-c", SOURCE])


def containers(go_on: Callable[[], bool], command: list[str] | None) -> list[float]:
    engine = DockerEngine()
    image_id = require(engine, ImageStore(home_path())).id

    def one() -> bool:
        name = box_name(new_token())
        config = container_config(STDLIB, Identity(name=name, uid=fresh_uid(), image_id=image_id, labels={}))
        if command is not None:
            made = engine.create(name, {**config, "Cmd": command})
            removal = engine.expect_removal(made)
            engine.start(made)
            return removal.status(60.0) == 0
        made = engine.create(name, config)
        connection = engine.attach(made)
        removal = engine.expect_removal(made)
        engine.start(made)
        ready = bool(select.select([connection.fileno()], [], [], 60.0)[0]) and bool(connection.receive())
        connection.close()
        return removal.status(60.0) is not None and ready

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


def report(_rounds: int) -> list[str]:
    rows = [
        f"| {number} | {own.a_second:.1f} | {own.median_ms:.0f} | {own.p99_ms:.0f} | {same.a_second:.1f} "
        f"| {own.a_second / same.a_second:.0%} | {plain.a_second:.1f} | {own.a_second / plain.a_second:.0%} |"
        for number, (own, same, plain) in many().items()
    ]
    return [
        "## Many at once",
        "",
        f"Sessions that run `{SOURCE}` again and again at the same time, {SECONDS:g} s each, with boxes made in "
        "advance; beside them the engine alone from as many threads: making, starting and removing the same "
        "containers (a box's own two processes, ended once they are ready), and the same settings around a plain "
        f"`python -c '{SOURCE}'`. The aim is 80 % of the same containers.",
        "",
        "| sessions | cells a second | p50 ms | p99 ms | same containers a second | of that | plain ones | of that |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        "",
    ]
