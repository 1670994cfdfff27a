"""The corpus of hostile outputs in JupyterLab: as it is run, reopened as saved, reopened as a stranger's notebook."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Ran, Reader
from tests.browser.guard import Trap
from tests.browser.hostile import BITTEN, CORPUS, LEAK
from tests.browser.notebook import written
from tests.browser.server import LabServer
from tests.browser.survey import LAB, Output, assert_harmless, surroundings, survey

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
