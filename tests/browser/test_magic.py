"""``%%pybox`` in an ordinary notebook of JupyterLab."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.conftest import OnePage
from tests.browser.notebook import Notebook
from tests.browser.test_lab import ENDLESS, STOPPED_MS

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def ordinary(one_page: OnePage) -> Iterator[Notebook]:
    with one_page("Python 3 (ipykernel)") as notebook:
        notebook.start("%load_ext pybox_kernel")
        notebook.wait_for_kernel("busy")
        notebook.wait_for_kernel("idle")
        yield notebook


def test_one_cell_is_sealed_and_a_near_miss_is_refused(ordinary: Notebook) -> None:
    cell = ordinary.run("%%pybox\nimport os\nprint(os.getcwd())\n6 * 7")
    assert [output.strip() for output in ordinary.outputs(cell).all_inner_texts()][:2] == ["/box", "42"]
    assert "✓ Ended normally" in ordinary.receipt(cell).inner_text()
    ordinary.receipt(cell).locator("summary").first.click()
    ordinary.receipt(cell).get_by_text("Whether the answer is right").wait_for()
    missed = ordinary.start("%pybox\nprint('ran' + ' here')")
    ordinary.outputs(missed).filter(has_text="Nothing was run").wait_for()
    assert "ran here" not in missed.inner_text()


@pytest.mark.parametrize("button", ["of the panel", "of the toolbar"])
def test_a_panel_shows_the_time_and_stop_ends_the_box(ordinary: Notebook, button: str) -> None:
    cell = ordinary.start(f"%%pybox --timeout 20\n{ENDLESS}")
    ordinary.outputs(cell).filter(has_text="begun").wait_for()
    cell.locator("progress[value]").wait_for()
    where = cell if button == "of the panel" else ordinary.view.locator(".jp-NotebookPanel-toolbar")
    name = "Stop" if button == "of the panel" else "Interrupt the kernel"
    stop = where.get_by_role("button", name=name).first
    stop.wait_for()
    began = ordinary.page.evaluate("performance.now()")
    stop.click()
    ordinary.outputs(cell).filter(has_text="PyBoxCellError").wait_for()
    assert ordinary.page.evaluate("performance.now()") - began < 2 * STOPPED_MS
    assert cell.locator("details").get_by_text("Stopped by you").first.is_visible()
    assert cell.locator("progress").count() == 0
    assert "Ended normally" in ordinary.receipt(ordinary.run("%%pybox\nprint('alive')")).inner_text()
