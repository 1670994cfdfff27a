"""`make demo` as a person sees it: the tour notebook, run by scripts/demo.py through the installed kernel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
TOUR = ROOT / "notebooks" / "00-try-to-break-out.ipynb"
MARKS = "✓⚠◷✗■"

pytestmark = pytest.mark.usefixtures("kernelspec")


def demo(notebook: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / "demo.py", notebook], capture_output=True, text=True, timeout=100
    )


def test_six_cells_try_to_break_out_and_each_receipt_says_what_happened() -> None:
    shown = demo(TOUR)
    assert (shown.returncode, shown.stderr) == (0, "")
    receipts = [line for line in shown.stdout.splitlines() if line[:1] in MARKS and line]
    assert [line.split(" · ")[0] for line in receipts] == [
        "✓ Ended normally",
        "✓ Ended normally",
        "⚠ Ended without an error code, but it met its limit of 32 processes and threads",
        "◷ Stopped at its 2 s limit",
        "⚠ Ended without an error code, but part of it was killed for memory",
        "✗ Left early, before its last line",
    ]
    assert "  > ✓ Ended normally" in shown.stdout  # the forged one, behind the mark of what a program prints
    assert "\x1b" not in shown.stdout


def test_a_cell_that_ends_otherwise_than_the_notebook_says_fails_the_demo(tmp_path: Path) -> None:
    document = nbformat.read(TOUR, as_version=4)
    document.cells = [cell for cell in document.cells if cell.id == "forge-a-receipt"]
    document.cells[0].source = "print('no trick at all')"
    nbformat.write(document, tmp_path / "changed.ipynb")
    shown = demo(tmp_path / "changed.ipynb")
    assert shown.returncode == 1
    assert "wanted at the end of this cell: PyBoxLeftEarly; found: no error" in shown.stdout
