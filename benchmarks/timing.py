"""Medians and spread of things done in turn, so that a change of the machine's speed meets all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

__all__ = ["Spread", "in_turn", "table", "timed"]


class Spread(NamedTuple):
    """Milliseconds."""

    least: float
    quarter: float
    median: float
    three_quarters: float
    most: float

    @classmethod
    def of(cls, seconds: list[float]) -> Spread:
        found = sorted(1000 * value for value in seconds)
        quarter, median, three_quarters = statistics.quantiles(found, n=4)
        return cls(found[0], quarter, median, three_quarters, found[-1])


def timed(do: Callable[[], object]) -> float:
    """Seconds."""
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def in_turn(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int,
    warm_up: int,
    before: Mapping[str, Callable[[], object]] | None = None,
) -> tuple[dict[str, Spread], dict[str, list[float]]]:
    """Times each contender once a round, A B C A B C ...; the first ``warm_up`` rounds are not counted, and neither is
    what is done ``before`` one each time."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(warm_up + rounds):
        for name, do in contenders.items():
            if before is not None and name in before:
                before[name]()
            took = timed(do)
            if number >= warm_up:
                times[name].append(took)
    return {name: Spread.of(found) for name, found in times.items()}, times


def table(spreads: Mapping[str, Spread]) -> list[str]:
    rows = (
        f"| {name} | " + " | ".join(f"{ms:.{int(ms < 20)}f}" for ms in spread) + " |"
        for name, spread in spreads.items()
    )
    return ["| ms | least | quarter | median | three quarters | most |", "|---|---|---|---|---|---|", *rows]
