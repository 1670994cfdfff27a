"""Cells that use what earlier ones left: one small name beside 30 MB of others, and 1 MB in and out."""

from __future__ import annotations

import sys

from benchmarks.timing import Spread, in_turn
from pybox_kernel.policy import MIB
from pybox_kernel.session import Carry, Session

NOTHING = "nothing carried"
SMALL, BESIDE = "one small name in and out", "the same beside 30 MB of others"
MEGABYTE = "1 MB in, changed, and out"
WARM_UP = 2


def carrying(rounds: int) -> dict[str, Spread]:
    with Session.open() as session:
        small, beside, large = Carry(), Carry(), Carry()

        def run(carry: Carry | None, source: str) -> None:
            result = session.run(source, carry=carry, deadline_seconds=10)
            told = result.receipt.observed.carried
            if not result.receipt.ok or (told is not None and told.why_nothing):
                raise RuntimeError(result.receipt.to_json())

        run(small, "x = 1")
        run(beside, "import os; x = 1; data = {n: os.urandom(1 << 20) for n in range(15)}; more = os.urandom(15 << 20)")
        run(large, "import os; m = bytearray(os.urandom(1 << 20))")
        if sum(len(group.data) for group in beside.listing().groups) < 30 * MIB:
            raise RuntimeError("not all of it is carried")
        spreads, _ = in_turn(
            {
                NOTHING: lambda: run(None, "m = bytearray(1 << 20); m[0] ^= 1"),
                SMALL: lambda: run(small, "x += 1"),
                BESIDE: lambda: run(beside, "x += 1"),
                MEGABYTE: lambda: run(large, "m[0] ^= 1"),
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
    found = ["Cells that use what earlier cells left:", "", "| | least | median | most |", "|---|---|---|---|"]
    found += [
        f"| {name} | {spread.least:.0f} | {spread.median:.0f} | {spread.most:.0f} |" for name, spread in spreads.items()
    ]
    return [
        *found,
        "",
        f"Beside 30 MB of others a cell takes **{times:.2f} times** as long (the aim is 1.3 at most), and 1 MB in and "
        f"out adds **{added:.0f} ms** (40 at most; medians).",
        "",
    ]


if __name__ == "__main__":
    print("\n".join(lines(carrying(int(sys.argv[1]) if len(sys.argv) > 1 else 20))))
