"""What a notebook of the sealed kernel answers to a ``%pybox`` line, and what a cell may ask for beside limits."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.engine


def shown(cell: Any) -> str:
    assert cell.reply["content"]["status"] == "ok"
    [content] = cell.of("display_data")
    assert "<script" not in content["data"]["text/html"]
    return str(content["data"]["text/plain"])


def test_status_doctor_help_and_receipts(kernel: Any) -> None:
    number = kernel.run("print('a receipt to look at')").reply["content"]["execution_count"]
    status = shown(kernel.run("%pybox"))
    for words in (
        "container engine",
        "Python 3",
        "this computer's kernel",
        "Every cell is sealed",
        "1 cell run",
        f"cell [{number}]",
    ):
        assert words in status
    assert "system call filter" in shown(kernel.run("%pybox doctor"))
    for command in ("receipts", "receipt ID", "doctor", "use OPTIONS", "guard on|off"):
        assert f"%pybox {command}" in shown(kernel.run("%pybox help"))
    assert f"[{number}]" in shown(kernel.run("%pybox receipts"))
    whole = kernel.run(f"%pybox receipt {number}")
    assert "Ended normally" in shown(whole)
    assert whole.of("display_data")[0]["data"]["text/html"].startswith("<details open ")
    assert "no receipt" in kernel.run("%pybox receipt 999").error["evalue"]
    assert "Every cell is sealed" in shown(kernel.run("%pybox guard off"))
    for asked in ("%%pybox --help", "%%pybox?"):
        assert "--timeout S" in shown(kernel.run(asked))


def test_a_line_for_an_ordinary_notebook_works_on_a_sealed_cell(kernel: Any) -> None:
    cell = kernel.run("# first\n%%pybox --quiet --receipt r --timeout 5\nprint(1)")
    assert cell.text("stdout") == "1\n"
    assert "nothing is bound to r" in shown(cell)
    told = kernel.run("%%pybox --no-raise\n1 / 0")
    assert told.reply["content"]["status"] == "ok"
    assert "ZeroDivisionError" in told.text("stderr")
    assert "ZeroDivisionError" in told.receipt_text
    failed = kernel.run("%%pybox --quiet\n1 / 0")
    assert failed.error["ename"] == "ZeroDivisionError"
    assert "ZeroDivisionError" in failed.receipt_text


def test_values_of_a_notebook_are_those_that_its_cells_leave_to_one_another(kernel: Any) -> None:
    kernel.run("%%pybox --carry\nnumbers = [1, 2]")
    cell = kernel.run("%%pybox --carry -i numbers -o total --replace\ntotal = sum(numbers)\nprint(total)")
    assert cell.text("stdout") == "3\n"
    refused = kernel.run("%%pybox --carry off -i numbers\nnumbers").error
    assert "here each cell is on its own" in refused["evalue"]
