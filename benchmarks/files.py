"""8 MiB into a box and 8 MiB out of it, beside a plain ``docker cp`` pair with a container of the same image."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from benchmarks.timing import Spread, in_turn
from pybox_kernel.boxes.journal import home_path
from pybox_kernel.files.box_files import InputFile
from pybox_kernel.images.store import ImageStore
from pybox_kernel.policy import STDLIB
from pybox_kernel.sessions.session import Session

PLAIN, WITH_FILES, WITHOUT = "`docker cp` in, `docker cp` out", "a run with the files", "the same run without files"
STEPS = ("files put in", "files taken out")
WARM_UP = 2


def files(rounds: int) -> tuple[dict[str, Spread], dict[str, Spread]]:
    """Of each contender, and of the two steps that move files, by the receipts."""
    data = os.urandom(STDLIB.file_bytes)
    steps: dict[str, list[float]] = {name: [] for name in STEPS}
    with tempfile.TemporaryDirectory() as folder, Session.open() as session:
        (Path(folder) / "data").write_bytes(data)
        container = docker("create", "--network=none", ImageStore(home_path()).load()["stdlib"].id, "/bin/true")

        def copied() -> None:
            docker("cp", f"{folder}/data", f"{container}:/tmp/data")
            docker("cp", f"{container}:/tmp/data", f"{folder}/back")

        def moved() -> None:
            result = session.run("open('data', 'r+b').write(b'!')", inputs=[InputFile("data", data)], output=True)
            if [len(file.data) for file in result.files] != [len(data)]:
                raise RuntimeError(result.receipt.to_json())
            for step in result.receipt.observed.steps:
                if step.name in steps:
                    steps[step.name].append(step.duration_ms / 1000)

        try:
            contenders = {PLAIN: copied, WITH_FILES: moved, WITHOUT: lambda: session.run("print(1)")}
            spreads, _ = in_turn(contenders, rounds, WARM_UP)
        finally:
            docker("rm", "--force", container)
    return spreads, {name: Spread.of(found[WARM_UP:]) for name, found in steps.items()}


def docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True).stdout.strip()


def ratios(spreads: dict[str, Spread], steps: dict[str, Spread]) -> tuple[float, float]:
    """To a ``docker cp`` pair: of the steps that move files, and of all that a run with files takes longer."""
    longer = spreads[WITH_FILES].median - spreads[WITHOUT].median
    return sum(step.median for step in steps.values()) / spreads[PLAIN].median, longer / spreads[PLAIN].median


def lines(spreads: dict[str, Spread], steps: dict[str, Spread]) -> list[str]:
    moving, longer = ratios(spreads, steps)
    found = ["## Files", "", f"{STDLIB.file_bytes >> 20} MB of a file into a box, changed there, and out of it:", ""]
    found += ["| ms | least | median | most |", "|---|---|---|---|"]
    found += [
        f"| {name} | {spread.least:.0f} | {spread.median:.0f} | {spread.most:.0f} |"
        for name, spread in (spreads | {f"step: {name}": spread for name, spread in steps.items()}).items()
    ]
    return [
        *found,
        "",
        f"The steps that move files take **{moving:.2f} times** a plain `docker cp` pair, and a run takes {longer:.2f} "
        "times that longer for them (medians). The aim is under 3.",
        "",
    ]


def report(rounds: int) -> list[str]:
    return lines(*files(rounds))
