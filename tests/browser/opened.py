"""``pybox-kernel open`` as a process of its own, and a reader at the JupyterLab that it starts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.browser.guard import Guard, Trap

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Route

__all__ = ["OpenedLab", "Visitor", "opened_lab"]

START_SECONDS: Final = 60.0
PAGE_MS: Final = 60_000
AFTERWARDS_MS: Final = 50
"""For what a page does when it has drawn a notebook."""
ADDRESS: Final = re.compile(r"(http://127\.0\.0\.1:\d+)/lab\S*\?token=(\w+)")
OPEN: Final = "path => jupyterapp.commands.execute('docmanager:open', {path, factory: 'Notebook'}).then(() => null)"
DRAWN: Final = """() => {
    const open = jupyterapp.shell.currentWidget;
    const drawn = cell => !cell.isPlaceholder() && (cell.model.type !== 'markdown'
        || cell.model.sharedModel.source === '' || cell.node.querySelector('.jp-RenderedMarkdown'));
    const cells = open?.context?.isReady && open.sessionContext.session && open.content.widgets;
    return cells && cells.length && cells.every(drawn);
}"""
ACTIVE: Final = """() => [...document.querySelectorAll('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-Cell')]
    .flatMap(cell => [...cell.querySelectorAll('.jp-RenderedMarkdown *, .jp-OutputArea-output *')])
    .filter(element => element.matches(`img,script,iframe,object,embed,svg,style,link,meta,base,form,button,video,audio,
        input:not([type=checkbox]),[srcset],[data-commandlinker-command],details,a[href]:not([href^="#"])`)
        || [...element.attributes].some(({name, value}) => /^on/i.test(name) || /url\\(|javascript:/i.test(value)))
    .map(element => element.outerHTML.slice(0, 200))"""


class OpenedLab(NamedTuple):
    url: str
    token: str
    folder: Path
    said: str
    """What the command printed before Lab's address."""

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer; its status alone where that is an error's."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(f"{self.url}{path}", data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code


@contextmanager
def opened_lab(given: Path, folder: Path, **environment: str) -> Iterator[OpenedLab]:
    """Runs the command in ``given``, as someone does who went there first; ends it at the end of the block."""
    command = [sys.executable, "-P", "-m", "pybox_kernel.cli", "open", ".", "--to", str(folder), "--no-browser"]
    process = subprocess.Popen(
        command,
        cwd=given,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        said: list[str] = []
        found = None
        for line in process.stdout:
            said.append(line)
            if found := ADDRESS.search(line):
                break
        assert found, "".join(said)[-3000:]
        lab = OpenedLab(found[1], found[2], folder, "".join(said))
        wait_until_it_answers(lab)
        yield lab
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


def wait_until_it_answers(lab: OpenedLab) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            lab.ask("GET", "/api/status")
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
        else:
            return
    raise AssertionError("JupyterLab did not start")


class Visitor:
    """Someone who looks at many notebooks. Their sessions share one kernel, as starting one takes seconds; what kernel
    each of them asked for is in ``asked``."""

    def __init__(self, context: BrowserContext, trap: Trap, lab: OpenedLab) -> None:
        self.asked: list[str] = []
        self.guard = Guard(context, trap, lab.url)
        self.lab = lab
        self.page = context.new_page()
        self._kernel = lab.ask("POST", "/api/kernels", {"name": "pybox-sealed"})["id"]
        self.page.route(re.compile(re.escape(lab.url) + r"/lab\?"), expose)
        self.page.route(f"{lab.url}/api/sessions?*", self._share)
        self.page.goto(f"{lab.url}/lab?token={lab.token}")
        self.page.wait_for_function("window.jupyterapp !== undefined", timeout=PAGE_MS)
        self.page.evaluate("jupyterapp.restored.then(() => null)")

    def _share(self, route: Route) -> None:
        if route.request.method != "POST":
            route.continue_()
            return
        wanted = json.loads(route.request.post_data or "{}")
        self.asked.append(wanted["kernel"].get("name"))
        route.continue_(post_data={**wanted, "kernel": {"id": self._kernel}})

    def look(self, name: str) -> list[str]:
        """Opens a notebook, and closes it; what is in its cells that could act."""
        self.page.evaluate(OPEN, name)
        self.page.wait_for_function(DRAWN, timeout=PAGE_MS)
        self.page.wait_for_timeout(AFTERWARDS_MS)
        found: list[str] = self.page.evaluate(ACTIVE)
        self.page.evaluate("() => { jupyterapp.shell.currentWidget.dispose(); }")
        return found


def expose(route: Route) -> None:
    """Lab's page, with the application within a test's reach."""
    answer = route.fetch()
    route.fulfill(response=answer, body=re.sub(r'("exposeAppInBrowser": )false', r"\1true", answer.text()))
