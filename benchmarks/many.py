"""Many sessions at once on one engine, as of a class: cells a second, and how long each takes; beside what the engine
reaches alone from as many threads: with the same containers, and with a plain program in their place."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from pybox_kernel.boxes.box import fresh_uid
from pybox_kernel.boxes.journal import box_name, home_path, new_token
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.images.store import ImageStore, require
from pybox_kernel.policy import STDLIB
from pybox_kernel.seal.spec import PYTHON, Identity, container_config
from pybox_kernel.sessions.session import Session

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


class Race:
    """So many threads that do one thing after another, all from the same moment on. What was begun when the time is
    over is done to its end, and counted; opening and closing what they need is not."""

    def __init__(self, number: int) -> None:
        self.times: list[float] = []
        self.ended = 0.0
        self._over = threading.Event()
        self._begin = threading.Barrier(number, action=self._start)

    def _start(self) -> None:
        self.began = time.perf_counter()
        threading.Timer(SECONDS, self._over.set).start()

    def run(self, do: Callable[[], bool]) -> None:
        self._begin.wait()
        while not self._over.is_set():
            began = time.perf_counter()
            if not do():
                raise RuntimeError("a run did not end normally")
            self.times.append(time.perf_counter() - began)
        self.ended = max(self.ended, time.perf_counter())


def reached(number: int, work: Callable[[Race], None]) -> Reached:
    race = Race(number)
    with ThreadPoolExecutor(number) as threads:
        for done in [threads.submit(work, race) for _ in range(number)]:
            done.result()
    took = sorted(1000 * seconds for seconds in race.times)
    return Reached(len(took) / (race.ended - race.began), took[len(took) // 2], took[len(took) * 99 // 100])


def cells(race: Race) -> None:
    with Session.open(in_advance=True) as session:
        session.run(SOURCE)
        race.run(lambda: session.run(SOURCE, deadline_seconds=30).receipt.ok)


def same_containers(race: Race) -> None:
    """Made, started, ready (their first word), ended by the end of their stdin, and removed: nothing is looked at."""
    containers(race, None)


def plain_programs(race: Race) -> None:
    """Made, started, ended by themselves and removed."""
    containers(race, [PYTHON, "-c", SOURCE])


def containers(race: Race, command: list[str] | None) -> None:
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
        one()
        race.run(one)
    finally:
        engine.close()


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
