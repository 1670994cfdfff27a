"""The corpus of hostile notebook files, opened with ``pybox-kernel open``: no request, no script, no unsealed kernel.

Two walls are looked at one by one: the copies without the page's own policy, and the policy without the copies.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest

from tests.browser.conftest import Open
from tests.browser.guard import Guard, Trap
from tests.browser.hostile import BITTEN
from tests.browser.notebook import run_by_keys
from tests.browser.opened import OpenedLab, Visitor, opened_lab
from tests.hostile_notebooks import FILES, write_corpus

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

SETTLE_MS = 1000


@pytest.fixture(scope="module")
def lab(box_image: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenedLab]:
    """With a configuration of the user's that would let all in, and one in the folder that is opened."""
    top = tmp_path_factory.mktemp("open")
    with ThreadPoolExecutor(1) as beside:  # Playwright's event loop runs in this thread, and receipts are made in one
        beside.submit(write_corpus, top / "given").result()
    for large in ("outputs-huge", "outputs-too-huge", "outputs-many", "metadata-many"):  # about size alone
        (top / "given" / f"{large}.ipynb").unlink()
    config = top / "config"
    config.mkdir()
    for name in ("jupyter_config", "jupyter_server_config", "jupyter_lab_config"):
        settings = {"ServerApp": {"terminals_enabled": True, "ip": "0.0.0.0"}, "IdentityProvider": {"token": ""}}
        (config / f"{name}.json").write_text(json.dumps(settings))
        (top / "given" / f"{name}.py").write_text(f"open({str(top / 'bitten')!r}, 'w')")
    variables = {"JUPYTER_CONFIG_DIR": str(config), "JUPYTER_CONFIG_PATH": str(config), "JUPYTER_TOKEN": "known"}
    with opened_lab(top / "given", top / "copies", **variables) as opened:
        yield opened
    assert not (top / "bitten").exists()


@pytest.fixture
def visitor(open_context: Open, trap: Trap, lab: OpenedLab) -> Iterator[Visitor]:
    """Whose browser does not heed the page's policy."""
    yield Visitor(open_context(bypass_csp=True), trap, lab)
    for session in lab.ask("GET", "/api/sessions"):
        lab.ask("DELETE", f"/api/sessions/{session['id']}")


def copies(lab: OpenedLab) -> list[str]:
    """One of those with the same bytes: many are the same when they are clean."""
    distinct: dict[bytes, str] = {}
    for file in FILES:
        path = lab.folder / file.name
        if not file.problem and path.is_file():
            distinct.setdefault(path.read_bytes(), file.name)
    return list(distinct.values())


def test_nothing_acts_in_the_copies_and_each_asks_for_the_sealed_kernel(visitor: Visitor, lab: OpenedLab) -> None:
    looked = copies(lab)
    assert len(looked) >= 45
    acting = {name: found for name in looked if (found := visitor.look(name))}
    visitor.page.wait_for_timeout(SETTLE_MS)
    assert acting == {}
    assert visitor.guard.all() == []
    assert set(visitor.asked) == {"pybox-sealed"}
    assert len(visitor.asked) >= len(looked)
    assert visitor.page.evaluate("window.__bitten ?? null") is None
    assert BITTEN not in visitor.page.title()


def test_a_notebook_opens_with_its_sealed_kernel_without_the_forged_receipt_and_runs(
    open_context: Open, trap: Trap, lab: OpenedLab
) -> None:
    context = open_context()
    guard = Guard(context, trap, lab.url)
    page = context.new_page()
    page.goto(f"{lab.url}/lab/tree/output-receipt.ipynb?token={lab.token}")
    cell = page.locator(".jp-Notebook .jp-CodeCell").first
    cell.wait_for(timeout=60_000)
    receipt = page.locator("details[style*='border-left']")
    end = monotonic() + 60
    while not lab.ask("GET", "/api/sessions") and monotonic() < end:
        page.wait_for_timeout(100)
    assert receipt.count() == 0
    kernels = [session["kernel"]["name"] for session in lab.ask("GET", "/api/sessions")]
    assert kernels == ["pybox-sealed"]
    run_by_keys(cell)
    receipt.first.wait_for(timeout=60_000)
    assert guard.all() == []


def test_no_other_kernel_terminal_or_reader_is_let_in(lab: OpenedLab) -> None:
    assert set(lab.ask("GET", "/api/kernelspecs")["kernelspecs"]) == {"pybox-sealed", "pybox-sealed-data"}
    for name in ("python3", "PYTHON3", "../python3"):
        assert lab.ask("POST", "/api/kernels", {"name": name}) in range(400, 600)
        session = {"path": "x.ipynb", "name": "", "type": "notebook", "kernel": {"name": name}}
        assert lab.ask("POST", "/api/sessions", session) in range(400, 600)
    assert {kernel["name"] for kernel in lab.ask("GET", "/api/kernels")} <= {"pybox-sealed"}
    assert lab.ask("POST", "/api/terminals") == 404
    assert lab.ask("GET", "/lsp/status") == 404
    for token in ("", "known"):
        assert lab._replace(token=token).ask("GET", "/api/contents") == 403


def test_what_is_left_out_is_said_and_no_configuration_is_obeyed(lab: OpenedLab) -> None:
    assert "output-receipt.ipynb: 1 cell; removed or made plain: 1 kernel setting, 1 output\n" in lab.said
    assert "cut-off.ipynb: not copied. It is not a notebook: it is no JSON, in line 1." in lab.said
    assert "Not looked into: more.zip" in lab.said
    assert not (lab.folder.parent / "bitten").exists()


ORIGINALS = (
    *("markdown-image", "markdown-image-html", "markdown-style", "markdown-frame", "markdown-media", "output-html"),
    *("output-markdown", "output-svg", "markdown-receipt", "trusted"),
)


@pytest.mark.parametrize("heeded", [True, False], ids=["heeded", "not heeded"])
def test_a_page_that_heeds_its_policy_asks_nobody_even_for_the_originals(
    open_context: Open, trap: Trap, lab: OpenedLab, heeded: bool
) -> None:
    """And one that does not asks, which shows that the originals are what they should be."""
    for name in ORIGINALS:
        original = json.loads((lab.folder.parent / "given" / f"{name}.ipynb").read_text())
        original["metadata"]["kernelspec"] = {"name": "pybox-sealed", "display_name": "PyBox (sealed)"}  # no dialogs
        (lab.folder / f"original-{name}.ipynb").write_text(json.dumps(original))
    visitor = Visitor(open_context(bypass_csp=not heeded), trap, lab)
    for name in ORIGINALS:
        visitor.look(f"original-{name}.ipynb")
    visitor.page.wait_for_timeout(SETTLE_MS)
    asked = {found.what for found in visitor.guard.all()} & {"request", "connection", "script", "socket"}
    assert bool(asked) is not heeded
