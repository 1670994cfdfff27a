"""A notebook open in JupyterLab, handled as a reader does: by its buttons and keys, and by what can be seen of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import nbformat

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from tests.browser.server import LabServer

__all__ = ["BY_KERNEL", "Notebook", "run_by_keys", "written"]

BY_KERNEL: Final = {
    "pybox-sealed": {"display_name": "PyBox (sealed)", "language": "python", "name": "pybox-sealed"},
    "python3": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
}
PAGE_MS: Final = 30_000

COMMAND: Final = """([id, seconds]) => Promise.race([
    jupyterapp.commands.execute(id).then(() => 'done'),
    new Promise(resolve => setTimeout(() => resolve('too late'), seconds * 1000))])"""


def written(path: Path, sources: list[str], kernel: str = "pybox-sealed") -> Path:
    """A notebook file with these cells. Each may fail without stopping those below it."""
    document = nbformat.v4.new_notebook(metadata={"kernelspec": BY_KERNEL[kernel]})
    for number, source in enumerate(sources):
        cell = nbformat.v4.new_code_cell(source, id=f"cell-{number}", metadata={"tags": ["raises-exception"]})
        document.cells.append(cell)
    nbformat.write(document, path)
    return path


def run_by_keys(cell: Locator) -> None:
    """Clicks into a cell and presses Shift+Enter, in Lab or Notebook 7, when its kernel is idle and the cursor there:
    a page that is still being built takes both a click and a key without a word."""
    page, editor = cell.page, cell.locator(".cm-content")
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first.wait_for(timeout=PAGE_MS)
    editor.click()
    while not editor.evaluate("editor => editor === document.activeElement"):
        page.wait_for_timeout(100)
        editor.click()
    page.keyboard.press("Shift+Enter")


class Notebook:
    def __init__(self, page: Page, server: LabServer, workspace: str) -> None:
        self.page, self.server, self.workspace = page, server, workspace
        self.view = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
        self.cells = self.view.locator(".jp-Notebook .jp-Cell")

    # Opening

    def launch(self, kernel: str = "PyBox (sealed)") -> None:
        """From the launcher, as someone does who has never used it."""
        self.page.goto(self.server.page("", self.workspace))
        card = self.page.locator(".jp-LauncherCard", has_text=kernel).first
        card.click(timeout=PAGE_MS)
        self._ready()

    def open(self, name: str) -> None:
        self.page.goto(self.server.page(f"/tree/{name}", self.workspace))
        self._ready()

    def open_without_kernel(self, name: str) -> None:
        """As after a restart of the computer: the file alone, and the question for a kernel answered with none."""
        self.page.goto(self.server.page(f"/tree/{name}", self.workspace))
        self.view.wait_for(timeout=PAGE_MS)

    def _ready(self) -> None:
        self.view.wait_for(timeout=PAGE_MS)
        self.cells.first.wait_for(timeout=PAGE_MS)
        self.wait_for_kernel("idle")

    def wait_for_kernel(self, status: str, seconds: float = 30) -> None:
        self.page.wait_for_function(
            "status => jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === status",
            arg=status,
            timeout=seconds * 1000,
        )

    # Typing and running

    def command(self, name: str, seconds: float = 30) -> None:
        """One of JupyterLab's own commands, by its id, as its menus give it."""
        answer = self.page.evaluate(COMMAND, [name, seconds])
        assert answer == "done", f"{name}: {answer} after {seconds} s"

    def type(self, source: str, cell: int = -1) -> None:
        """Into a cell, in place of what it had. As text put in at once, so that no bracket is closed by the editor."""
        editor = self.cells.nth(cell).locator(".cm-content")
        editor.click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(source)

    def run(self, source: str, seconds: float = 20) -> Locator:
        """Types into the last cell, and runs it with Shift+Enter; the cell, when its receipt is there."""
        cell = self.start(source)
        self.receipt(cell).wait_for(timeout=seconds * 1000)
        self.wait_for_kernel("idle")
        return cell

    def start(self, source: str) -> Locator:
        number = self.cells.count() - 1
        self.type(source, number)
        self.page.keyboard.press("Shift+Enter")
        return self.cells.nth(number)

    def run_all(self, seconds: float) -> None:
        """Runs every cell; until the last one has its receipt. (JupyterLab's command is done at the first error.)"""
        self.command("notebook:run-all-cells", seconds)
        self.receipt(self.cells.last).wait_for(state="attached", timeout=seconds * 1000)
        self.wait_for_kernel("idle")

    def save(self) -> None:
        self.page.keyboard.press("Escape")
        self.command("docmanager:save")

    def file(self) -> Any:
        """What the notebook's file holds now."""
        path = self.page.evaluate("jupyterapp.shell.currentWidget.context.path")
        return json.loads((self.server.notebooks / path).read_text(encoding="utf-8"))

    def wait_until_all_are_drawn(self) -> None:
        """Those out of sight too, which JupyterLab draws when it has nothing else to do."""
        self.page.wait_for_function(
            "jupyterapp.shell.currentWidget.content.widgets.every(cell => !cell.isPlaceholder())", timeout=PAGE_MS
        )

    # What stands under a cell

    @staticmethod
    def outputs(cell: Locator) -> Locator:
        """Those that can be seen: what is left of the running panel has no height."""
        return cell.locator(".jp-OutputArea-output:visible")

    @staticmethod
    def receipt(cell: Locator) -> Locator:
        """The fold of the last output."""
        return cell.locator(".jp-OutputArea-child").last.locator("details[style*='border-left']").first
