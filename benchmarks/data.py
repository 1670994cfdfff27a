"""A cell that imports the three data libraries, in a new box of the ``data`` image each time: from request to idle."""

from __future__ import annotations

import sys

from benchmarks.kernels import started
from benchmarks.timing import Spread, in_turn
from pybox_kernel.install import DATA_KERNEL_NAME

SOURCE = "import pandas, numpy, matplotlib.pyplot"
WARM_UP = 2


def data(rounds: int) -> Spread:
    with started(DATA_KERNEL_NAME, PYBOX_POOL="0") as kernel:
        spreads, _ = in_turn({SOURCE: lambda: kernel.run(SOURCE, prints=False)}, rounds, WARM_UP)
    return spreads[SOURCE]


def lines(spread: Spread) -> list[str]:
    return [
        f"A cell with `{SOURCE}` in PyBox (sealed, data), each in a new box made when it comes, from the request of a "
        "client until the kernel is idle again (the libraries are imported before the box takes the cell):",
        "",
        "| least | median | most |",
        "|---|---|---|",
        f"| {spread.least:.0f} | {spread.median:.0f} | {spread.most:.0f} |",
        "",
    ]


if __name__ == "__main__":
    print("\n".join(lines(data(int(sys.argv[1]) if len(sys.argv) > 1 else 20))))
