"""Cells that use what earlier ones left: one small name beside 30 MB of others, and growing ones in and out."""

from __future__ import annotations

from benchmarks.timing import Spread, in_turn, table
from pybox_kernel.policy import MIB
from pybox_kernel.sessions.session import Carry, Session

NOTHING = "nothing carried"
SMALL, BESIDE = "one small name in and out", "the same beside 30 MB of others"
MEGABYTE = "1 MB in, changed, and out"
LARGER = {"64 kB in, changed, and out": 1 << 16, MEGABYTE: 1 << 20, "8 MB in, changed, and out": 1 << 23}
WARM_UP = 2


def carrying(rounds: int) -> dict[str, Spread]:
    with Session.open() as session:
        small, beside = Carry(), Carry()
        large = {name: Carry() for name in LARGER}

        def run(carry: Carry | None, source: str) -> None:
            result = session.run(source, carry=carry, deadline_seconds=10)
            told = result.receipt.observed.carried
            if not result.receipt.ok or (told is not None and told.why_nothing):
                raise RuntimeError(result.receipt.to_json())

        run(small, "x = 1")
        run(beside, "import os; x = 1; data = {n: os.urandom(1 << 20) for n in range(15)}; more = os.urandom(15 << 20)")
        for name, size in LARGER.items():
            run(large[name], f"import os; m = bytearray(os.urandom({size}))")
        if sum(len(group.data) for group in beside.listing().groups) < 30 * MIB:
            raise RuntimeError("not all of it is carried")
        spreads, _ = in_turn(
            {
                NOTHING: lambda: run(None, "m = bytearray(1 << 20); m[0] ^= 1"),
                SMALL: lambda: run(small, "x += 1"),
                BESIDE: lambda: run(beside, "x += 1"),
                **{name: lambda name=name: run(large[name], "m[0] ^= 1") for name in LARGER},  # type: ignore[misc]
            },
            rounds,
            WARM_UP,
        )
    return spreads


def figures(spreads: dict[str, Spread]) -> tuple[float, float]:
    """How many times as long a cell takes beside others, and the milliseconds that 1 MB each way adds."""
    return spreads[BESIDE].median / spreads[SMALL].median, spreads[MEGABYTE].median - spreads[NOTHING].median


def lines(spreads: dict[str, Spread]) -> list[str]:
    times, added = figures(spreads)
    return [
        "## Carried values",
        "",
        "Cells that use what earlier cells left, each in a box made when it comes:",
        "",
        *table(spreads),
        "",
        f"Beside 30 MB of others a cell takes **{times:.2f} times** as long (the aim is 1.3 at most), and 1 MB in and "
        f"out adds **{added:.0f} ms** (40 at most; medians).",
        "",
    ]


def report(rounds: int) -> list[str]:
    return lines(carrying(rounds))
