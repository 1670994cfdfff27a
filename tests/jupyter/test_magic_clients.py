"""``%%pybox`` in every client that has an ordinary Python: those that run notebooks, and IPython in a terminal."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from pybox_kernel.signing.file_check import check_file
from pybox_kernel.signing.keys import SigningKeys
from tests.jupyter.console import Console, plain, terminal_of
from tests.jupyter.test_clients import CLIENTS_OWN_SECONDS, MARKS, ROOT, code_cells, jupyter, wanted

NAME = "03-one-sealed-cell.ipynb"
SEALED = {"dearest", "network", "guarded"}

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("kernelspec")]


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    return Path(shutil.copy(ROOT / "notebooks" / NAME, tmp_path))


def assert_ran_as_it_says(document: nbformat.NotebookNode) -> None:
    nbformat.validate(document)
    texts = {}
    for cell in code_cells(document):
        errors = [output.ename for output in cell.outputs if output.output_type == "error"]
        assert errors == [name for name in [wanted(cell)] if name is not None], cell.id
        texts[cell.id] = "".join(output.get("text", "") for output in cell.outputs)
        if cell.id in SEALED:
            last = cell.outputs[-1]
            assert "<details" in last.data["text/html"]
            assert last.data["text/plain"][0] in MARKS
            assert set(last.data) == {"text/plain", "text/html"}  # no widget, which nobody could open again
    assert texts["dearest"] == texts["guarded"] == "This runs in /box\n"
    assert texts["back"] == "Here again, with cake\n"
    assert texts["receipt"] == "exited 1 network\n"
    assert texts["missed"] == ""
    assert texts["host"] == "This runs here: ['cake', 'coffee', 'tea']\n"
    assert "3 cells run in this session" in document.cells[-1].outputs[0].data["text/plain"]


def test_nbclient(notebook: Path) -> None:
    document = nbformat.read(notebook, as_version=4)
    beside = {"metadata": {"path": str(notebook.parent)}}
    NotebookClient(document, timeout=30, resources=beside).execute()
    assert_ran_as_it_says(document)
    nbformat.write(document, notebook)
    ids = [cell.id for cell in document.cells]
    verdicts = {ids[cell.place - 1]: cell.verdict for cell in check_file(notebook, SigningKeys().ring()).cells}
    assert {verdicts[name] for name in SEALED} == {"unchanged"}


def test_papermill_goes_on_after_a_clean_cell_and_stops_at_a_failing_one(tmp_path: Path) -> None:
    sources = ("%load_ext pybox_kernel", "%%pybox\nprint(6 * 7)", "%%pybox\n1 / 0", "print('never' + ' run')")
    document = nbformat.read(ROOT / "notebooks" / NAME, as_version=4)
    document.cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(document, tmp_path / "in.ipynb")
    done = jupyter(tmp_path, "papermill", "in.ipynb", "out.ipynb")
    assert done.returncode == 1
    assert "PyBoxCellError: ZeroDivisionError: division by zero" in done.stderr
    out = (tmp_path / "out.ipynb").read_text("utf-8")
    assert "✓ Ended normally" in out
    assert "never run" not in out
    cells = check_file(tmp_path / "out.ipynb", SigningKeys().ring()).cells
    sealed = [cell for cell in cells if cell.begins == "%%pybox"]
    assert [(cell.verdict, cell.found) for cell in sealed] == [("unchanged", ())] * 2


def ipython(folder: Path) -> AbstractContextManager[Console]:
    return terminal_of(["-m", "IPython", "--no-banner", "--ext=pybox_kernel"], IPYTHONDIR=str(folder))


def test_ipython_in_a_terminal(tmp_path: Path) -> None:
    with ipython(tmp_path) as terminal:
        shown = terminal.run("%%pybox\nimport os\nprint(os.getcwd(), '\\x1b]0;title\\x07\\x1b[2J')\n6 * 7")
        text = plain(shown)
        assert "/box" in text
        assert "42" in text
        assert "✓ Ended normally" in text
        assert "<details" not in text
        assert b"\x1b]0;" not in shown
        assert b"\x1b[2J" not in shown
        failed = plain(terminal.run("%%pybox\n1 / 0"))
        assert (
            failed.index("Your code, line 2") < failed.index("✗ Ended with an error") < failed.index("PyBoxCellError")
        )
        assert "magic.py" not in failed
        terminal.start("%%pybox --timeout 30\nprint('be' + 'gun', flush=True)\nwhile True: pass")
        terminal.wait_for("begun")
        seconds, written = terminal.interrupt()
        assert seconds < 3 * CLIENTS_OWN_SECONDS
        assert "Stopped by you" in plain(written)
        assert "alive" in plain(terminal.run("print('al' + 'ive')"))
