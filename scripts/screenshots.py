"""Draws docs/lab-*.png: the main moments in a real JupyterLab, light and dark. Needs what the tests need.

.venv/bin/python scripts/screenshots.py
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import sync_playwright  # noqa: E402

from pybox_kernel.boxes.journal import home_path  # noqa: E402
from pybox_kernel.install import install  # noqa: E402
from tests.browser.notebook import Notebook  # noqa: E402
from tests.browser.server import lab_server  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

    from tests.browser.server import LabServer

DOCS: Final = ROOT / "docs"
SIZE: Final = {"width": 940, "height": 900}
MOST_BYTES: Final = 150_000

RUNNING: Final = "import time\n\nfor step in range(10):\n    print('step', step, flush=True)\n    time.sleep(0.4)"
CLEAN: Final = "sum(range(10))"
PROBLEM: Final = """\
import os

if os.fork() == 0:
    hoard = [bytearray(1 << 20) for _ in range(500)]
os.wait()
print('All done!')"""
HOSTILE: Final = '''\
class Page:
    def _repr_html_(self):
        return """<script>steal()</script><img src=x onerror=steal()>
          <div style="position:fixed;inset:0">Your session has ended. Password: <input></div>
          <details class="pybox pybox-ok"><summary>✓ Ended normally · sealed</summary></details>"""

display(Page())
print("\\x1b[2J\\x1b]52;c;c3RvbGVu\\x07✓ Ended normally · 0.01 of 2 s · sealed: no network, none of your files")
raise SystemExit(1)'''

DATA: Final = """\
%%pybox --input planets.csv --timeout 10
import matplotlib.pyplot as plt
import pandas as pd

planets = pd.read_csv('planets.csv')
plt.figure(figsize=(5, 2))
plt.barh(planets.columns[0], planets.columns[1], data=planets)
plt.title(planets.columns[1])
planets.head(3)"""


def take(cells: list[Locator], name: str) -> None:
    """A picture of these cells, which stand one below the other."""
    boxes = [box for box in (cell.bounding_box() for cell in cells) if box is not None]
    top, bottom = boxes[0]["y"], boxes[-1]["y"] + boxes[-1]["height"]
    clip = {"x": boxes[0]["x"], "y": top, "width": boxes[0]["width"], "height": bottom - top}
    target = DOCS / f"lab-{name}.png"
    cells[0].page.screenshot(path=target, clip=clip, full_page=True)  # type: ignore[arg-type]
    size = target.stat().st_size
    assert size < MOST_BYTES, f"{target}: {size} bytes"
    sys.stdout.write(f"{target.relative_to(ROOT)}: {size:,} bytes\n")


def moments(browser: Browser, lab: LabServer, theme: str, name: str) -> None:
    page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
    notebook = Notebook(page, lab, name)
    notebook.launch()
    page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
    notebook.command("application:toggle-left-area")
    cell = notebook.start(RUNNING)
    notebook.outputs(cell).filter(has_text="step 3").wait_for()
    take([cell], f"running-{name}")
    notebook.receipt(cell).wait_for()
    notebook.wait_for_kernel("idle")
    for source, moment in ((CLEAN, "clean"), (PROBLEM, "problem"), (HOSTILE, "hostile")):
        cell = notebook.run(source)
        cell.scroll_into_view_if_needed()
        take([cell], f"{moment}-{name}")
        if moment == "clean":
            notebook.receipt(cell).locator("summary").first.click()
            cell.scroll_into_view_if_needed()
            take([cell], f"unfolded-{name}")
    page.close()


def data(browser: Browser, lab: LabServer, theme: str, name: str) -> None:
    page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
    notebook = Notebook(page, lab, f"data-{name}")
    notebook.launch("PyBox (sealed, data)")
    page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
    notebook.command("application:toggle-left-area")
    cell = notebook.run(DATA)
    cell.scroll_into_view_if_needed()
    take([cell], f"data-{name}")
    page.close()


def main() -> None:
    program = shutil.which("chromium")
    if program is None:
        sys.exit("Chromium is missing: apt-get install chromium")
    DOCS.mkdir(exist_ok=True)
    options = ["--no-first-run", "--disable-background-networking", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with tempfile.TemporaryDirectory(prefix="pybox-screenshots-") as name, sync_playwright() as playwright:
        folder, prefix = Path(name, "lab"), Path(name, "prefix")
        folder.mkdir()
        install(prefix=str(prefix))
        with lab_server(folder, prefix, PYBOX_HOME=str(home_path())) as lab:
            shutil.copy(ROOT / "notebooks" / "data" / "planets.csv", folder / "notebooks")
            browser = playwright.chromium.launch(executable_path=program, headless=True, args=options)
            for take_all in (moments, data):
                take_all(browser, lab, "JupyterLab Light", "light")
                take_all(browser, lab, "JupyterLab Dark", "dark")
            browser.close()


if __name__ == "__main__":
    main()
