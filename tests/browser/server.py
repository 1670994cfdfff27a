"""A JupyterLab server of these tests' own: own folders, own port, nothing fetched, ended by its own process id."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.ports import OwnPorts

__all__ = ["LabServer", "lab_server"]

START_SECONDS = 40.0
END_SECONDS = 15.0
LEFT_OUT = (
    "@jupyterlab/apputils-extension:announcements",
    "@jupyter/nbgrader",  # which is here for the tests of grading
)


ROOT: Final = Path(__file__).parents[2]
OWN_PORTS: Final = "import sys; sys.path.insert(0, {root!r}); from tests.ports import OwnPorts; OwnPorts.instance()\n"
"""The server's own configuration, which is a program: its kernels have ports that nobody else takes."""


class LabServer(NamedTuple):
    url: str
    token: str
    notebooks: Path
    settings: Path

    def page(self, path: str, workspace: str) -> str:
        """The address of a page of Lab, in a workspace that nothing else uses."""
        return f"{self.url}/lab/workspaces/{workspace}{path}?token={self.token}"

    def ask(self, method: str, path: str) -> Any:
        request = urllib.request.Request(
            f"{self.url}{path}", method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read() or b"null")

    def kernels(self) -> set[str]:
        """Those that run, by the ids of their sessions."""
        return {session["id"] for session in self.ask("GET", "/api/sessions")}

    def end_kernels(self, but: Collection[str] = ()) -> None:
        for session in self.kernels().difference(but):
            self.ask("DELETE", f"/api/sessions/{session}")


def variables(folder: Path, prefix: Path) -> dict[str, str]:
    """Where Jupyter keeps anything is below ``folder``, and the kernels it knows are those below ``prefix``."""
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
        "HOME": "home",
    }
    for name in places.values():
        (folder / name).mkdir()
    named = {variable: str(folder / name) for variable, name in places.items()}
    return {**named, "JUPYTER_PATH": str(prefix / "share" / "jupyter"), "JUPYTER_PLATFORM_DIRS": "1"}


@contextmanager
def lab_server(folder: Path, prefix: Path, **more: str) -> Iterator[LabServer]:
    """Starts the server; ends it, with its kernels, at the end of the block. ``more`` is for its environment."""
    environment = {**os.environ, **variables(folder, prefix), "PYBOX_TEST_PORTS": "server", **more}
    (folder / "config" / "jupyter_server_config.py").write_text(OWN_PORTS.format(root=str(ROOT)))
    (folder / "config" / "labconfig").mkdir()
    (folder / "config" / "labconfig" / "page_config.json").write_text(
        json.dumps({"disabledExtensions": dict.fromkeys(LEFT_OUT, True)})
    )
    notebooks = folder / "notebooks"
    notebooks.mkdir()
    port, token = OwnPorts.instance().find_available_port("127.0.0.1"), secrets.token_hex(16)
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", f"--notebook-dir={notebooks}"),
        *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
        f"--IdentityProvider.token={token}",
        *("--ServerApp.terminals_enabled=False", "--ServerApp.shutdown_no_activity_timeout=1800"),
        *("--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"),
        *("--LabApp.extension_manager=readonly", "--LabApp.expose_app_in_browser=True"),
        *(["--allow-root"] if os.geteuid() == 0 else []),
    ]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    server = LabServer(f"http://127.0.0.1:{port}", token, notebooks, folder / "settings")
    try:
        wait_until_it_answers(server, process, folder / "server.log")
        yield server
        server.end_kernels()
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until_it_answers(server: LabServer, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            server.ask("GET", "/api/status")
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"JupyterLab did not start:\n{log.read_text(errors='replace')[-2000:]}")
