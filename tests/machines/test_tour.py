"""The tour notebook as `make demo` runs it, with its boxes in the private machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from pybox_kernel.machines.qemu import QemuMachine
from tests.jupyter.conftest import kernelspec

__all__ = ["kernelspec"]

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[2]
SECONDS = 8
LIMIT = f"◷ Stopped at its {SECONDS} s limit"
VERDICTS = (
    "✓ Ended normally",
    "✓ Ended normally",
    "⚠ Ended without an error code, but it met its limit of 32 processes and threads",
    LIMIT,
    "⚠ Ended without an error code, but part of it was killed for memory",
    "✗ Left early, before its last line",
)


def test_the_cells_that_try_to_break_out_are_sealed_and_in_the_machine(
    machine: QemuMachine, kernelspec: str, tmp_path: Path
) -> None:
    """Not one of them leaves its box. On an emulated processor any of them may meet its limit."""
    tour = nbformat.read(ROOT / "notebooks" / "00-try-to-break-out.ipynb", as_version=4)
    for cell in tour.cells:
        if cell.cell_type == "code":
            cell.source = f"%%pybox --timeout {SECONDS}\n{cell.source}"
    nbformat.write(tour, tmp_path / "tour.ipynb")
    program = "import sys, demo; demo.CELL_SECONDS = 300; sys.exit(demo.main())"
    shown = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "tour.ipynb"], cwd=ROOT / "scripts",
        env={**os.environ, "PYBOX_ENGINE": "vm"}, capture_output=True, text=True, timeout=800, check=False,
    )  # fmt: skip
    receipts = re.findall(r"^[✓⚠◷✗■] .*(?:\n  .*)*", shown.stdout, re.MULTILINE)
    assert len(receipts) == 6, shown.stdout + shown.stderr
    for receipt, verdict in zip((" ".join(receipt.split()) for receipt in receipts), VERDICTS, strict=True):
        assert receipt.startswith((verdict, LIMIT)), shown.stdout
        assert " · sealed" in receipt
        assert " in a private VM (QEMU, " in receipt
