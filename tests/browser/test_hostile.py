"""The corpus of hostile outputs in JupyterLab, as it is run, reopened as saved, reopened as a stranger's notebook; and
on the page that nbconvert makes of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Open, Ran, Reader
from tests.browser.guard import Guard, Trap
from tests.browser.hostile import BITTEN, CORPUS, LEAK
from tests.browser.notebook import written
from tests.browser.server import LabServer
from tests.browser.survey import LAB, NBCONVERT, Output, assert_harmless, surroundings, survey

SETTLE_MS = 1000

pytestmark = [pytest.mark.engine, pytest.mark.timeout(400)]


def test_nothing_of_the_corpus_runs_asks_for_anything_or_opens_a_dialog(ran: Ran) -> None:
    assert ran.found == []
    assert ran.after["bitten"] is None
    assert BITTEN not in ran.title


def test_nothing_of_the_page_is_changed_but_the_outputs(ran: Ran) -> None:
    assert ran.after == ran.before


def test_each_output_is_defused_and_the_receipt_is_last_and_the_only_one(ran: Ran) -> None:
    assert_harmless(ran.outputs)


def reopened(reader: Reader, name: str) -> tuple[dict[str, Any], list[list[Output]]]:
    reader.notebook.open(name)
    reader.notebook.wait_until_all_are_drawn()
    reader.notebook.receipt(reader.notebook.cells.last).wait_for(state="attached")
    reader.page.wait_for_timeout(SETTLE_MS)
    return surroundings(reader.page), survey(reader.page, LAB)


def trusted(page: Page) -> bool:
    cells = "[...jupyterapp.shell.currentWidget.content.model.cells]"
    return bool(page.evaluate(f"{cells}.every(cell => cell.trusted)"))


@pytest.mark.parametrize("kind", ["as saved", "of a stranger"])
def test_reopened_it_is_as_harmless(ran: Ran, reader: Reader, kind: str) -> None:
    file = ran.file
    if kind == "of a stranger":
        document = json.loads(file.read_text(encoding="utf-8"))
        document["cells"][-1]["source"] += "  # one change, and no signature fits"
        file = file.with_name("stranger.ipynb")
        file.write_text(json.dumps(document), encoding="utf-8")
    around, outputs = reopened(reader, file.name)
    assert trusted(reader.page) is (kind == "as saved")
    assert {**around, "place": ran.before["place"]} == {**ran.before, "base": around["base"]}
    assert_harmless(outputs)


# As a page of nbconvert's


def page_of(notebook: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", folder, notebook]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=100, check=False, env={**os.environ, "HOME": str(folder)}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / f"{notebook.stem}.html"


def asked_by(page: Path, open_context: Open, trap: Trap) -> list[str]:
    """What the page asks of elsewhere. It is opened as a file."""
    context = open_context()
    guard = Guard(context, trap, page.as_uri())
    shown = context.new_page()
    shown.goto(page.as_uri())
    shown.wait_for_timeout(SETTLE_MS)
    assert {found.what for found in guard.all()} <= {"request"}, guard.all()
    return sorted({found.detail for found in guard.all()})


def test_as_a_page_of_nbconverts(ran: Ran, tmp_path: Path, open_context: Open, trap: Trap) -> None:
    page = page_of(ran.file, tmp_path)
    context = open_context()
    guard = Guard(context, trap, page.as_uri())
    shown = context.new_page()
    shown.goto(page.as_uri())
    shown.wait_for_timeout(SETTLE_MS)
    assert_harmless(survey(shown, NBCONVERT))
    assert surroundings(shown)["bitten"] is None
    assert BITTEN not in shown.title()
    nbformat.write(nbformat.v4.new_notebook(), tmp_path / "empty.ipynb")
    own = asked_by(page_of(tmp_path / "empty.ipynb", tmp_path), open_context, trap)
    assert sorted({found.detail for found in guard.all()}) == own
    assert {found.what for found in guard.all()} <= {"request"}
    assert all(re.match(r"https://cdnjs\.cloudflare\.com/", address) for address in own), own


# Without PyBox


def test_the_same_payloads_do_bite_where_nothing_is_sealed(chromium: Browser, trap: Trap, lab: LabServer) -> None:
    """Or the tests above would show nothing. What leaves the page altogether, or halts it, is not among them."""
    kinds = ("html-", "mime-", "picture-")
    leaving = ("html-meta-refresh", "html-form", "html-deep", "html-wide")
    programs = [hostile for hostile in CORPUS if hostile.name.startswith(kinds) and hostile.name not in leaving]
    file = written(lab.notebooks / "unsealed.ipynb", [hostile.source for hostile in programs], "python3")
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, service_workers="block")
    reader = Reader(context, trap, lab)
    reader.notebook.open(file.name)
    reader.notebook.wait_until_all_are_drawn()
    before = surroundings(reader.page)
    reader.notebook.command("notebook:run-all-cells", 60)
    reader.page.wait_for_timeout(SETTLE_MS)
    after = surroundings(reader.page)
    wrong = [thing for cell in survey(reader.page, LAB) for output in cell for thing in output.wrong]
    context.close()
    lab.end_kernels()
    bitten = set((after["bitten"] or "").split())
    asked = {
        found.detail.removeprefix(f"{LEAK}/").split("/")[0] for found in reader.guard.all() if LEAK in found.detail
    }
    assert len(bitten) > 12, bitten
    assert len(asked) > 8, asked
    assert after != before
    assert len(wrong) > 50
