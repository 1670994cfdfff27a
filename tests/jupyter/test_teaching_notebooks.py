"""Notebooks as teachers write them show the same in the sealed kernel as in an ordinary one, cell by cell.

Their cells build on one another: classes, seeds, files, options of libraries. Nothing in them was written for PyBox.
"""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from rich.console import Console

from pybox_kernel.notebook.commands import Options
from pybox_kernel.notebook.file import NotebookFile
from pybox_kernel.notebook.run_command import NotebookRun
from pybox_kernel.progress import CellSteps

FOLDER = Path(__file__).parents[1] / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
WITH_LIBRARIES = ("pandas", "plots")
IN_A_KERNEL = ("classes", "pandas")
"""Run by the real kernel; the others as by ``pybox-kernel run``, which executes cells in the same way."""

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(240),
    pytest.mark.usefixtures("kernelspec", "data_image", "in_advance"),
]

Shown = list[tuple[str, str]]


def shown(cell: Any, *, with_receipt: bool) -> Shown:
    """What a person sees under a cell: printed text, values and pictures in order, and then how it failed. (ipykernel
    has pictures that nobody asked for below the error.)"""
    outputs = cell.outputs[:-1] if with_receipt else cell.outputs
    outputs = sorted(outputs, key=lambda output: output.output_type == "error")
    found: Shown = []
    for output in outputs:
        if output.output_type == "stream":
            if found and found[-1][0] == output.name:
                found[-1] = (output.name, found[-1][1] + output.text)
            else:
                found.append((output.name, output.text))
        elif output.output_type == "error":
            found.append(("error", f"{output.ename}: {output.evalue}"))
        elif "image/png" in output.data or "<img" in output.data.get("text/html", ""):
            found.append(("picture", ""))
        else:
            found.append((output.output_type, output.data["text/plain"]))
    return found


def code_cells(document: Any) -> list[Any]:
    return [cell for cell in document.cells if cell.cell_type == "code"]


def by_kernel(name: str, kernel: str, folder: Path) -> list[Any]:
    document = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    beside = {"metadata": {"path": str(folder)}}
    NotebookClient(document, kernel_name=kernel, timeout=60, resources=beside).execute()
    return code_cells(document)


def by_command(name: str) -> list[Any]:
    """As ``pybox-kernel run --allow-errors`` does it, but for the file that it writes."""
    notebook = NotebookFile.read(FOLDER / f"{name}.ipynb")
    image = "data" if name in WITH_LIBRARIES else None
    with CellSteps(Console(file=io.StringIO())) as steps:
        run = NotebookRun(notebook, Options(image=image, timeout="10"), steps, carry="on", allow_errors=True)
        asyncio.run(run.run())
    return code_cells(nbformat.reads(notebook.to_bytes().decode(), as_version=4))


def test_there_are_ten_and_their_cells_expect_an_error_now_and_then() -> None:
    assert len(NAMES) >= 10
    tags = [
        cell.metadata.get("tags") for name in NAMES for cell in code_cells(nbformat.read(FOLDER / f"{name}.ipynb", 4))
    ]
    assert len(tags) >= 80
    assert ["raises-exception"] in tags


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_the_same_sealed_cell_by_cell(name: str, tmp_path: Path) -> None:
    wanted = [shown(cell, with_receipt=False) for cell in by_kernel(name, "python3", tmp_path)]
    if name in IN_A_KERNEL:
        cells = by_kernel(name, "pybox-sealed-data" if name in WITH_LIBRARIES else "pybox-sealed", tmp_path)
    else:
        cells = by_command(name)
    for number, (cell, ordinary) in enumerate(zip(cells, wanted, strict=True), 1):
        assert shown(cell, with_receipt=True) == ordinary, number
        assert "<details" in cell.outputs[-1].data["text/html"]
