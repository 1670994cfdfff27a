"""A JupyterLab server and a Chromium for all tests of this folder; for each test a browser context of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from pybox_kernel.install import install
from tests.browser.guard import Found, Guard, Trap
from tests.browser.hostile import CORPUS
from tests.browser.notebook import Notebook, written
from tests.browser.server import LabServer, lab_server
from tests.browser.survey import LAB, Output, surroundings, survey

WORKSPACES = count(1)
FRESH_SECONDS = 4
"""How long a receipt is a panel. A minute outside of these tests."""
BOXES_IN_ADVANCE = "2"
"""For each kernel: as for a user, and quicker."""
CORPUS_SECONDS = 250.0
SETTLE_MS = 1000
LAST = "print('the last of all')"
PAGE: Final[dict[str, Any]] = {"viewport": {"width": 1280, "height": 900}, "service_workers": "block"}
PAGE_MS: Final = 30_000


@pytest.fixture(scope="package")
def lab(box_image: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    prefix = tmp_path_factory.mktemp("prefix")
    install(prefix=str(prefix))
    settings = {"PYBOX_FRESH_SECONDS": str(FRESH_SECONDS), "PYBOX_POOL": BOXES_IN_ADVANCE}
    with lab_server(tmp_path_factory.mktemp("lab"), prefix, **settings) as server:
        yield server


@pytest.fixture(scope="package")
def trap() -> Iterator[Trap]:
    opened = Trap()
    yield opened
    opened.close()


@pytest.fixture(scope="package")
def chromium(trap: Trap) -> Iterator[Browser]:
    """Debian's. Of the package, not of the session: while Playwright runs there can be no other event loop."""
    program = shutil.which("chromium")
    assert program, "these tests need Chromium: apt-get install chromium"
    options = ["--disable-quic", "--disable-background-networking", "--disable-component-update", "--no-first-run"]
    # No other name leads anywhere: not for a page, and not for what the browser asks by itself.
    options += [f"--host-resolver-rules=MAP leak.invalid 127.0.0.1:{trap.port}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    options += ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=options)
        yield browser
        browser.close()


Open = Callable[..., BrowserContext]


@pytest.fixture
def open_context(chromium: Browser) -> Iterator[Open]:
    """Browser contexts, closed at the end of the test."""
    opened: list[BrowserContext] = []

    def open_one(**options: object) -> BrowserContext:
        opened.append(chromium.new_context(**{**PAGE, **options}))
        opened[-1].set_default_timeout(PAGE_MS)
        return opened[-1]

    yield open_one
    for context in opened:
        context.close()


class Reader:
    """Someone at a browser, with a page of Lab and a guard that notes what it does."""

    def __init__(self, context: BrowserContext, trap: Trap, lab: LabServer) -> None:
        self.guard = Guard(context, trap, lab.url)
        self.page = context.new_page()
        self.notebook = Notebook(self.page, lab, f"test-{next(WORKSPACES)}")


NewReader = Callable[..., Reader]


@pytest.fixture
def new_reader(open_context: Open, trap: Trap, lab: LabServer) -> Iterator[NewReader]:
    """Readers for whom nothing may have left their page, or run in it, at the end of the test."""
    readers: list[Reader] = []

    def new(**options: object) -> Reader:
        readers.append(Reader(open_context(**options), trap, lab))
        return readers[-1]

    before = lab.kernels()
    yield new
    found = [finding for reader in readers for finding in reader.guard.all()]
    lab.end_kernels(but=before)
    assert found == []


OnePage = Callable[[str], AbstractContextManager[Notebook]]


@pytest.fixture(scope="module")
def one_page(chromium: Browser, trap: Trap, lab: LabServer) -> OnePage:
    """A page with a new notebook of the kernel that is named, for tests that do no more than add cells to it. At the
    end of the block nothing may have left the page, or run in it."""

    @contextmanager
    def launched(kernel: str) -> Iterator[Notebook]:
        before = lab.kernels()
        context = chromium.new_context(**PAGE)
        context.set_default_timeout(PAGE_MS)
        reader = Reader(context, trap, lab)
        reader.notebook.launch(kernel)
        yield reader.notebook
        found = reader.guard.all()
        context.close()
        lab.end_kernels(but=before)
        assert found == []

    return launched


@pytest.fixture(scope="module")
def shared(one_page: OnePage) -> Iterator[Notebook]:
    """One sealed notebook, open in one page, for all tests of a file that do no more than add cells to it."""
    with one_page("PyBox (sealed)") as notebook:
        yield notebook


@pytest.fixture
def reader(new_reader: NewReader) -> Reader:
    return new_reader()


@pytest.fixture
def notebook(reader: Reader) -> Notebook:
    return reader.notebook


@pytest.fixture
def folder(lab: LabServer, request: pytest.FixtureRequest) -> Path:
    """A folder below the server's own for this test's notebooks."""
    made = lab.notebooks / request.node.name
    made.mkdir()
    return made


# The corpus, run once for all that look at it


class Ran(NamedTuple):
    """The corpus after its run in Lab, one cell for each of its programs."""

    file: Path
    title: str
    before: dict[str, Any]
    after: dict[str, Any]
    outputs: list[list[Output]]
    found: list[Found]


@pytest.fixture(scope="package")
def ran(chromium: Browser, trap: Trap, lab: LabServer) -> Iterator[Ran]:
    file = written(lab.notebooks / "corpus.ipynb", [*(hostile.source for hostile in CORPUS), LAST])
    context = chromium.new_context(**PAGE)
    reader = Reader(context, trap, lab)
    notebook = reader.notebook
    notebook.open(file.name)
    notebook.wait_until_all_are_drawn()
    before = surroundings(reader.page)
    notebook.run_all(CORPUS_SECONDS)
    reader.page.wait_for_timeout(SETTLE_MS)
    after, outputs = surroundings(reader.page), survey(reader.page, LAB)
    notebook.save()
    title = reader.page.title()
    yield Ran(file, title, before, after, outputs, reader.guard.all())
    context.close()
    lab.end_kernels()
