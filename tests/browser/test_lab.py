"""JupyterLab as someone meets it who has just installed PyBox."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from pybox_kernel.boxes.turns import Turns, at_once
from pybox_kernel.stop import Stop
from tests.browser.conftest import Reader
from tests.browser.notebook import Notebook, run_by_keys, written
from tests.browser.server import LabServer

ENDLESS: Final = "print('begun', flush=True)\nwhile True: pass"
SOON_MS: Final = 400
"""For what is to be there within 100 ms, by the kernel's side: what a page on a busy computer adds is in it."""
STOPPED_MS: Final = 5000
"""Half a second, and the time of a page on a busy computer. The limit of the cell itself is far behind it."""

pytestmark = pytest.mark.engine

WATCH: Final = """() => {
    window.seen = {values: []};
    addEventListener('keydown', event => { if (event.key === 'Enter') seen.asked = performance.now(); }, true);
    new MutationObserver(() => {
        const bar = document.querySelector('.jp-OutputArea progress');
        const shown = bar !== null && bar.offsetParent !== null;
        if (shown) seen.shown ??= performance.now();
        if (shown && bar.value !== seen.values.at(-1)) seen.values.push(bar.value);
        if (!shown && seen.shown) seen.gone ??= performance.now();
    }).observe(document.body, {childList: true, subtree: true, attributes: true});
}"""


def seen(notebook: Notebook) -> dict[str, Any]:
    found: dict[str, Any] = notebook.page.evaluate("seen")
    return found


def test_a_cell_from_the_launcher_shows_what_it_prints_its_value_and_below_them_a_receipt(notebook: Notebook) -> None:
    notebook.launch()
    cell = notebook.run("print('hello')\n6 * 7")
    assert [output.strip() for output in notebook.outputs(cell).all_inner_texts()][:2] == ["hello", "42"]
    assert "✓ Ended normally" in notebook.receipt(cell).inner_text()
    assert notebook.outputs(cell).count() == 3


def test_an_error_shows_its_line_and_the_next_cell_runs(shared: Notebook) -> None:
    cell = shared.run("total = 0\nprint(10 / total)")
    shown = shared.outputs(cell).first.inner_text()
    assert "ZeroDivisionError: division by zero" in shown
    assert "line 2" in shown
    assert "ZeroDivisionError" in shared.receipt(cell).inner_text()
    assert "Ended normally" in shared.receipt(shared.run("print('next')")).inner_text()


def test_a_receipt_unfolds_with_the_mouse_down_to_its_json(shared: Notebook) -> None:
    receipt = shared.receipt(shared.run("print('hello')"))
    said = receipt.get_by_text("Whether the answer is right")
    assert not said.is_visible()
    receipt.locator("summary").first.click()
    said.wait_for()
    receipt.get_by_text("The same as JSON").click()
    document = json.loads(receipt.locator("pre").inner_text())
    assert document["schema"].startswith("pybox.receipt/")


def test_a_receipt_unfolds_with_the_keyboard_alone(shared: Notebook) -> None:
    cell = shared.run("print('hello')")
    press = shared.page.keyboard.press
    press("Escape")
    press("ArrowUp")
    fold = "document.activeElement.tagName === 'SUMMARY' && document.activeElement.closest('.jp-OutputArea') !== null"
    for _ in range(40):
        if shared.page.evaluate(fold):
            break
        press("Tab")
    assert shared.page.evaluate(fold), "no Tab leads to the receipt"
    press("Enter")
    shared.receipt(cell).get_by_text("Whether the answer is right").wait_for(timeout=2000)


def test_the_panel_is_there_at_once_moves_and_goes(shared: Notebook) -> None:
    shared.run("print('so that the kernel has run once')")
    shared.page.evaluate(WATCH)
    cell = shared.run("import time\ntime.sleep(1.2)\nprint('done')")
    found = seen(shared)
    assert found["shown"] - found["asked"] < SOON_MS, found
    assert len(found["values"]) > 3, found
    assert found["values"] == sorted(found["values"])
    assert "gone" in found
    assert cell.locator("progress").count() == 0
    assert "Running in a sealed box" not in cell.inner_text()


@pytest.mark.parametrize("button", ["of the panel", "of the panel, by the keyboard alone", "of the toolbar"])
def test_stop_ends_the_cell(shared: Notebook, button: str) -> None:
    cell = shared.start(f"%%pybox --timeout 20\n{ENDLESS}")
    shared.outputs(cell).filter(has_text="begun").wait_for()
    of_panel = button.startswith("of the panel")
    where = cell if of_panel else shared.view.locator(".jp-NotebookPanel-toolbar")
    name = "Stop" if of_panel else "Interrupt the kernel"
    stop = where.get_by_role("button", name=name).first
    stop.wait_for()
    if "keyboard" in button:
        shared.page.keyboard.press("Escape")
        cell.locator(".jp-InputPrompt").click()
        for _ in range(40):
            shared.page.keyboard.press("Tab")
            if shared.page.evaluate("document.activeElement.tagName === 'BUTTON'") and stop.evaluate(
                "button => button === document.activeElement"
            ):
                break
    began = shared.page.evaluate("performance.now()")
    shared.page.keyboard.press("Enter") if "keyboard" in button else stop.click()
    shared.receipt(cell).get_by_text("Stopped by you").first.wait_for()
    assert shared.page.evaluate("performance.now()") - began < STOPPED_MS
    shared.wait_for_kernel("idle")
    assert cell.locator("progress").count() == 0
    assert "Ended normally" in shared.receipt(shared.run("print('alive')")).inner_text()


def test_run_all_stops_after_a_failing_cell(reader: Reader, folder: Path) -> None:
    file = written(folder / "three.ipynb", ["print('one')", "1/0", "print('three')"])
    document = json.loads(file.read_text())
    for cell in document["cells"]:
        cell["metadata"] = {}
    file.write_text(json.dumps(document))
    notebook = reader.notebook
    notebook.open(f"{folder.name}/three.ipynb")
    notebook.page.get_by_role("menuitem", name="Run", exact=True).click()
    notebook.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    notebook.receipt(notebook.cells.nth(1)).wait_for()
    notebook.wait_for_kernel("idle")
    notebook.page.wait_for_timeout(500)
    assert notebook.outputs(notebook.cells.nth(0)).count() == 2
    assert notebook.outputs(notebook.cells.nth(2)).count() == 0


def test_tab_completes_names_of_earlier_cells_too(shared: Notebook) -> None:
    shared.run("temperature_in_prague = 21")
    shared.type("temperature_i")
    shared.page.keyboard.press("Tab")
    offered = shared.page.locator(".jp-Completer-item")
    line = shared.cells.last.locator(".cm-line")
    offered.or_(line).filter(has_text="temperature_in_prague").first.wait_for()
    shared.page.keyboard.press("Escape")
    shared.type("import ope")
    shared.page.keyboard.press("Tab")
    offered.or_(line).filter(has_text="operator").first.wait_for()


def test_after_a_restart_the_receipts_are_still_there_and_cells_run(shared: Notebook) -> None:
    first = shared.run("print('before')")
    shared.view.get_by_role("button", name="Restart the kernel", exact=True).click()
    shared.page.locator(".jp-Dialog").get_by_role("button", name="Confirm Kernel Restart").click()
    shared.wait_for_kernel("idle")
    second = shared.run("print('after')")
    for cell in (first, second):
        assert "✓ Ended normally" in shared.receipt(cell).inner_text()
    assert "not found" not in shared.view.inner_text()


def test_in_the_classic_look_of_notebook_7_cells_have_their_values_errors_and_receipts_too(
    reader: Reader, lab: LabServer, folder: Path
) -> None:
    file = written(folder / "classic.ipynb", ["answer = 42", "answer", "1/0"])
    page = reader.page
    page.goto(f"{lab.url}/notebooks/{folder.name}/{file.name}?token={lab.token}")
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    for number in range(3):
        run_by_keys(cells.nth(number))
        Notebook.receipt(cells.nth(number)).wait_for()
    assert page.locator("#jp-main-dock-panel").count() == 0  # it is not Lab
    value, error = (Notebook.outputs(cells.nth(number)).first.inner_text() for number in (1, 2))
    assert value.strip() == "42"
    assert "ZeroDivisionError: division by zero" in error
    marks = [Notebook.receipt(cells.nth(number)).inner_text()[0] for number in range(3)]
    assert marks == ["✓", "✓", "✗"]
    Notebook.receipt(cells.nth(1)).locator("summary").first.click()
    Notebook.receipt(cells.nth(1)).get_by_text("Whether the answer is right").wait_for()


def test_a_cell_whose_turn_has_not_come_says_how_many_are_before_it_and_runs_when_it_has(
    shared: Notebook, home: Path
) -> None:
    with ExitStack() as others:
        for _ in range(at_once()):
            others.enter_context(Turns(home, at_once()).turn(Stop()))
        cell = shared.start("print('at last')")
        shared.outputs(cell).get_by_text("1 cell before it").wait_for()
        assert shared.outputs(cell).get_by_text("at last").count() == 0
    assert "Ended normally" in (shared.receipt(cell).inner_text(timeout=20_000))
    assert shared.outputs(cell).get_by_text("at last").is_visible()
    shared.wait_for_kernel("idle")
