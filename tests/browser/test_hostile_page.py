"""The corpus of hostile outputs as a page that nbconvert made."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.browser.conftest import Open, Ran
from tests.browser.guard import Guard, Trap
from tests.browser.hostile import BITTEN
from tests.browser.survey import NBCONVERT, assert_harmless, surroundings, survey

SETTLE_MS = 1000

pytestmark = [pytest.mark.engine, pytest.mark.timeout(400)]


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
