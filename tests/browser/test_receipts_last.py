"""Receipts last: saved, closed, reopened, edited; with the kernel and without it; and cost the file little."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from pybox_kernel.signing.file_check import check_file
from pybox_kernel.signing.keys import SigningKeys
from tests.browser.conftest import FRESH_SECONDS, NewReader, Reader
from tests.browser.notebook import Notebook, written
from tests.browser.server import LabServer

LOST: Final = ("model not found", "Error displaying widget", "Loading widget", "[object Object]")
PER_25_RECEIPTS: Final = 128 * 1024
"""Of which their signed statements are a tenth."""
SOURCES: Final = ["print('one')", "1/0", "print('three')"]

pytestmark = pytest.mark.engine


def assert_all_there(notebook: Notebook, cells: int = len(SOURCES)) -> None:
    notebook.wait_until_all_are_drawn()
    notebook.page.wait_for_timeout(1500)
    assert_nothing_lost(notebook)
    assert notebook.cells.count() >= cells
    for number in range(cells):
        receipt = notebook.receipt(notebook.cells.nth(number))
        assert receipt.locator("summary").first.is_visible()
        assert any(mark in (receipt.text_content() or "") for mark in "✓✗")


def assert_nothing_lost(notebook: Notebook) -> None:
    shown = " ".join(notebook.view.locator(".jp-OutputArea").all_text_contents())
    assert [words for words in LOST if words in shown] == []


def stale(notebook: Notebook) -> None:
    notebook.page.wait_for_timeout((FRESH_SECONDS + 1) * 1000)


@pytest.fixture
def path(folder: Path) -> str:
    return f"{folder.name}/{written(folder / 'three.ipynb', SOURCES).name}"


def test_saved_while_they_are_fresh_they_are_there_again_with_the_kernel_that_made_them(
    new_reader: NewReader, path: str
) -> None:
    """Their widgets are in it, and in no file."""
    notebook = new_reader().notebook
    notebook.open(path)
    notebook.run_all(30)
    notebook.save()
    file = notebook.server.notebooks / path
    assert "widget-view" in file.read_text("utf-8")
    found = check_file(file, SigningKeys().ring())
    assert found.ok, found
    notebook.page.close()
    again = new_reader().notebook
    again.open(path)
    assert_all_there(again)
    answer = again.outputs(again.start("%pybox check"))
    answer.filter(has_text="three.ipynb: made here, in this order, and unchanged (3 cells)").first.wait_for()


def test_they_stay_in_an_open_page_reopened_with_the_kernel_and_without_it_and_edited(
    new_reader: NewReader, lab: LabServer, path: str
) -> None:
    first = new_reader().notebook
    first.open(path)
    first.run_all(30)
    assert_all_there(first)
    stale(first)
    assert first.view.locator(".jupyter-widgets").count() == 0
    assert_all_there(first)
    first.save()
    second = new_reader().notebook
    second.open(path)
    assert_all_there(second)
    second.page.close()
    lab.end_kernels()
    assert_all_there(first)
    first.page.close()
    third = new_reader().notebook
    third.open(path)
    assert_all_there(third)
    third.type("print('edited')", 0)
    third.save()
    third.page.close()
    lab.end_kernels()
    fourth = new_reader().notebook
    fourth.open(path)
    assert "edited" in fourth.cells.first.inner_text()
    assert_all_there(fourth)


def test_a_reload_in_the_middle_of_a_run_leaves_no_lost_panel(new_reader: NewReader, path: str) -> None:
    notebook = new_reader().notebook
    notebook.open(path)
    cell = notebook.cells.nth(len(SOURCES) - 1)
    notebook.type("import time\nprint('begun', flush=True)\ntime.sleep(1.5)")
    notebook.page.keyboard.press("Shift+Enter")
    notebook.outputs(cell).filter(has_text="begun").wait_for()
    notebook.command("docmanager:save")
    notebook.page.close()
    again = new_reader().notebook
    again.open(path)
    again.page.wait_for_timeout(3000)
    assert_nothing_lost(again)


def test_25_receipts_add_less_than_128_kib_to_the_file(reader: Reader, folder: Path) -> None:
    file = written(folder / "many.ipynb", ["print('hello')"] * 25)
    before = file.stat().st_size
    notebook = reader.notebook
    notebook.open(f"{folder.name}/{file.name}")
    notebook.run_all(60)
    notebook.save()
    fresh = file.stat().st_size - before
    stale(notebook)
    notebook.save()
    still = file.stat().st_size - before
    assert max(fresh, still) < PER_25_RECEIPTS, (fresh, still)
    assert "widgets" not in notebook.file()["metadata"]
    assert check_file(file, SigningKeys().ring()).ok
    assert_all_there(notebook, 25)


def test_no_setting_of_the_users_lab_is_written(notebook: Notebook, lab: LabServer) -> None:
    notebook.launch()
    notebook.run("print('hello')")
    written_files = {path.name for path in lab.settings.rglob("*") if path.is_file()}
    assert written_files <= {"themes.jupyterlab-settings"}  # which the tests of themes write, through Lab's own menu
