"""Every client that runs notebooks or cells, each for real, on every sealed notebook of ``notebooks/``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from pybox_kernel.carry.chain import breaks
from pybox_kernel.signing.file_check import check_file
from pybox_kernel.signing.keys import SigningKeys
from pybox_kernel.signing.run_order import Order
from tests.jupyter.console import console, plain
from tests.statements import links_in

ROOT = Path(__file__).parents[2]
NOTEBOOKS = [
    path for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if '"pybox-sealed' in path.read_text("utf-8")
]
"""Those of the sealed kernel; ``test_magic_clients`` has the one of an ordinary kernel."""
CLIENT_SECONDS = 100
CLIENTS_OWN_SECONDS = 0.5
MARKS = "✓⚠◷✗■"

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("kernelspec", "in_advance")]

every_notebook = pytest.mark.parametrize("name", [path.name for path in NOTEBOOKS])


@pytest.fixture
def notebook(name: str, data_image: object, tmp_path: Path) -> Path:
    """A copy, with what lies beside it, so that what its cells write comes there."""
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks", ignore=shutil.ignore_patterns("results", ".*"))
    return tmp_path / "notebooks" / name


def jupyter(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """A program of Jupyter's, in ``folder``, without the settings of whoever runs the tests."""
    environment = {**os.environ, "JUPYTER_CONFIG_DIR": str(folder / "config"), "HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=CLIENT_SECONDS,
        check=False,
    )


def wanted(cell: nbformat.NotebookNode) -> str | None:
    """The name of the error that a cell ends with, as its notebook says."""
    name = cell.metadata.get("pybox", {}).get("error")
    return None if name is None else str(name)


def code_cells(document: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in document.cells if cell.cell_type == "code"]


def assert_receipts_form_a_chain(file: Path) -> None:
    links = links_in(file.read_bytes())
    assert breaks(links) == []
    assert sum(len(link.put_in) for link in links)
    assert_made_here(file)


def assert_made_here(file: Path) -> None:
    """By its receipts. Papermill tells of an error in cells of its own, which have none."""
    found = check_file(file, SigningKeys().ring())
    assert found.order == Order((), 0)
    told = [(cell.verdict, cell.begins, cell.found) for cell in found.cells if cell.verdict != "unchanged"]
    assert {(verdict, begins[:14]) for verdict, begins, _ in told} <= {("nothing shown", "")}, told


def has_no_receipt(cell: nbformat.NotebookNode) -> bool:
    """Nothing is run by a word to PyBox itself."""
    return bool(cell.source.startswith("%pybox "))


def receipt(cell: nbformat.NotebookNode) -> str:
    """The text of what stands last under a cell, which is its receipt."""
    last = cell.outputs[-1]
    assert last.output_type == "display_data"
    assert "<details" in last.data["text/html"]
    text = str(last.data["text/plain"])
    assert text[0] in MARKS
    return text


def assert_ran_as_it_says(document: nbformat.NotebookNode) -> None:
    nbformat.validate(document)
    for cell in code_cells(document):
        errors = [output.ename for output in cell.outputs if output.output_type == "error"]
        assert errors == [name for name in [wanted(cell)] if name is not None], cell.id
        if not has_no_receipt(cell):
            receipt(cell)


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("name", ["00-at-home.ipynb"])
def test_nbclient(notebook: Path, kernelspec: str) -> None:
    """As a library. Under nbconvert and papermill it runs all notebooks."""
    document = nbformat.read(notebook, as_version=4)
    beside = {"metadata": {"path": str(notebook.parent)}}
    NotebookClient(document, kernel_name=kernelspec, timeout=30, resources=beside).execute()
    assert_ran_as_it_says(document)
    nbformat.write(document, notebook)
    assert_made_here(notebook)


@every_notebook
def test_nbconvert(notebook: Path, tmp_path: Path) -> None:
    to_notebook = ("--execute", "--to", "notebook", "--output-dir", tmp_path, "--output", "out.ipynb")
    done = jupyter(tmp_path, "nbconvert", *to_notebook, notebook)
    assert done.returncode == 0, done.stderr
    document = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert_ran_as_it_says(document)
    assert_receipts_form_a_chain(tmp_path / "out.ipynb")
    page = jupyter(tmp_path, "nbconvert", "--to", "html", "out.ipynb")
    assert page.returncode == 0, page.stderr
    shown = (tmp_path / "out.html").read_text(encoding="utf-8")
    receipts = [cell for cell in code_cells(document) if not has_no_receipt(cell)]
    assert shown.count('<details class="pybox pybox-') == len(receipts)


@every_notebook
def test_papermill(notebook: Path, tmp_path: Path) -> None:
    """It runs all cells. Then any error is a failure for it, an expected one too: it knows no ``raises-exception``."""
    done = jupyter(tmp_path, "papermill", "--cwd", notebook.parent, notebook, "out.ipynb")
    document = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    errors = [name for name in map(wanted, code_cells(document)) if name is not None]
    assert done.returncode == (1 if errors else 0), done.stderr
    if errors:
        assert errors[-1] in done.stderr
    document.cells = without_papermills_own(document)
    assert_ran_as_it_says(document)
    assert_receipts_form_a_chain(tmp_path / "out.ipynb")


def without_papermills_own(document: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The cells, but for those by which papermill tells of an error."""
    return [cell for cell in document.cells if "papermill-error-cell-tag" not in cell.metadata.get("tags", [])]


def test_a_parameter_of_papermills_is_seen_by_the_cells_below(tmp_path: Path) -> None:
    """Papermill puts a cell with them behind the one tagged ``parameters``."""
    cells = [
        nbformat.v4.new_code_cell("limit = 3", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell("print(limit)"),
    ]
    spec = {"name": "pybox-sealed", "language": "python", "display_name": "PyBox (sealed)"}
    document = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": spec})
    nbformat.write(document, tmp_path / "in.ipynb")
    done = jupyter(tmp_path, "papermill", "in.ipynb", "out.ipynb", "-p", "limit", "7")
    assert done.returncode == 0, done.stderr
    given, injected, used = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells
    assert (given.source, injected.source) == ("limit = 3", "# Parameters\nlimit = 7\n")
    assert "Ended normally" in receipt(injected)
    assert used.outputs[0].text == "7\n"


@pytest.mark.parametrize("name", ["01-data-and-files.ipynb", "02-carrying-values.ipynb"])
def test_pybox_kernel_run(notebook: Path, tmp_path: Path) -> None:
    run = ("pybox_kernel.cli", "run", "--allow-errors", "--timeout", "10", "--to", tmp_path / "out.ipynb", notebook)
    done = jupyter(tmp_path, *run)
    document = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert_ran_as_it_says(document)
    assert (done.returncode == 0) == (not any(map(wanted, code_cells(document)))), done.stdout
    assert_made_here(tmp_path / "out.ipynb")


@every_notebook
def test_jupyter_run(notebook: Path, tmp_path: Path) -> None:
    """It runs files. A failing one ends it with an error, so the last of those is run below the cells it builds on."""
    clean: list[str] = []
    failing: tuple[list[str], str] | None = None
    for number, cell in enumerate(code_cells(nbformat.read(notebook, as_version=4))):
        name = f"cell-{number}.py"
        (notebook.parent / name).write_text(cell.source, encoding="utf-8")
        if (error := wanted(cell)) is None:
            clean.append(name)
        else:
            failing = ([*clean, name], error)
    done = jupyter(notebook.parent, "jupyter_client.runapp", "--kernel=pybox-sealed", *clean)
    assert done.returncode == 0, done.stderr
    assert sum(done.stdout.count(f"{mark} ") for mark in MARKS) >= len(clean)
    if failing is not None:
        names, error = failing
        ended = jupyter(notebook.parent, "jupyter_client.runapp", "--kernel=pybox-sealed", *names)
        assert ended.returncode == 1
        assert error in ended.stderr
        assert f"error running '{names[-1]}'" in ended.stderr


@every_notebook
def test_jupyter_console(notebook: Path, kernelspec: str) -> None:
    with console(kernelspec, notebook.parent) as terminal:
        for cell in code_cells(nbformat.read(notebook, as_version=4)):
            shown = plain(terminal.run(cell.source))
            assert (wanted(cell) or "") in shown
            assert has_no_receipt(cell) or any(line[:1] in MARKS for line in shown.splitlines() if line), shown


@pytest.mark.alone
def test_ctrl_c_in_jupyter_console_stops_the_cell_and_the_receipt_says_so(kernelspec: str) -> None:
    with console(kernelspec) as terminal:
        terminal.start("print('be' + 'gun', flush=True)\nwhile True: pass")
        terminal.wait_for("begun")
        seconds, written = terminal.interrupt()
        assert seconds < 0.5 + CLIENTS_OWN_SECONDS
        assert "Stopped by you" in plain(written)
        assert "alive" in plain(terminal.run("print('al' + 'ive')"))
