"""The notebook for teachers, run as it stands: it runs the command line on submissions of its own."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "04-for-teachers.ipynb"

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("kernelspec")]


@pytest.fixture(scope="module")
def shown(kernelspec: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each cell printed, by its id."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("teachers")))
        document = nbformat.read(NOTEBOOK, as_version=4)
        NotebookClient(document, timeout=60).execute()
    code = [cell for cell in document.cells if cell.cell_type == "code"]
    return {cell.id: "".join(output.text for output in cell.outputs).replace("\r\n", "\n") for cell in code}


def test_the_copies_have_nothing_of_the_forged_results_and_what_is_no_notebook_is_named(shown: dict[str, str]) -> None:
    assert "cy.ipynb: 2 cells; removed or made plain: 2 outputs" in shown["open"]
    assert "dee.ipynb: not copied" in shown["open"]


def test_the_report_has_a_line_for_each_submission_and_one_for_each_cell_to_look_at(shown: dict[str, str]) -> None:
    assert "✓ ada · ada.ipynb: 2 ended normally\n" in shown["report"]
    assert "⚠ ben · ben.ipynb: 1 ended normally, 1 did not end normally\n" in shown["report"]
    assert "cell 2 [2]  ◷ Stopped at its 2 s limit" in shown["report"]
    assert "⚠ cy · cy.ipynb: 2 did not end normally\n" in shown["report"]


def test_what_the_commands_print_is_plain_text(shown: dict[str, str]) -> None:
    assert "[2] ◷ Stopped at its 2 s limit" in "".join(shown.values())
    assert "\x1b" not in "".join(shown.values())


def test_what_was_changed_afterwards_is_told(shown: dict[str, str]) -> None:
    assert "⚠ its file says: Ended normally" in shown["altered"]
    assert "altered: the cell is not the program that ran" in shown["altered"]
    assert "✓ ada" in shown["altered"]
