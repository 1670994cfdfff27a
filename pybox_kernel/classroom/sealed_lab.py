"""A JupyterLab for notebooks of strangers: sealed kernels only, nothing of the user's own Jupyter, nothing fetched.

What the server and the page may do is decided here and by no configuration of the user's, the environment's or the
computer's: those may name other kernels, language servers, terminals, and extensions that ask other computers.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any, Final

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel
from jupyter_core.paths import jupyter_path

from pybox_kernel.errors import ExitStatus, PyBoxError, SetupError
from pybox_kernel.file_lock import file_lock, file_lock_now
from pybox_kernel.install import DISPLAY_NAMES, KERNEL_NAME, install, kernel_name, put_kernel_of
from pybox_kernel.not_outlived import with_this_process

__all__ = ["SealedKernels", "check_lab", "run_lab"]

WIDGETS: Final = "@jupyter-widgets/jupyterlab-manager"
"""The one extension of Lab besides its own: it draws the panel of a cell that runs."""
KERNELS: Final = "PYBOX_LAB_KERNELS"
"""In the environment of the server: the folder with the kernels it knows."""
NOT_FOR_A_COPY: Final = ("JUPYTER", "JUPYTERLAB", "IPYTHON", "PYTHONSTARTUP")
"""How the names begin of what would bring the user's own settings in."""
DISABLED: Final = (
    "@jupyterlab/apputils-extension:announcements",
    "@jupyterlab/extensionmanager-extension",
    "@jupyterlab/terminal-extension",
    "@jupyterlab/mermaid-extension",
    "@jupyterlab/debugger-extension",
    "@jupyterlab/htmlviewer-extension",
    "@jupyterlab/vega5-extension",
)
ALIVE: Final = "alive"
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
END_SECONDS: Final = 15.0


class SealedKernels(KernelSpecManager):
    """Knows the sealed kernels only. (Jupyter's own list of allowed kernels hides the others; asked for by name, they
    start all the same.)"""

    def find_kernel_specs(self) -> dict[str, str]:
        folder = Path(os.environ[KERNELS])
        return {kernel.name: str(kernel) for kernel in folder.iterdir()}

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        found = self.find_kernel_specs().get(kernel_name)
        if found is None:
            raise NoSuchKernel(kernel_name)
        spec: KernelSpec = KernelSpec.from_resource_dir(found)
        return spec


def check_lab() -> None:
    """Raises SetupError where there is no JupyterLab in this Python environment."""
    if find_spec("jupyterlab") is None:
        raise SetupError(
            "JupyterLab is not installed beside PyBox.",
            f'Install it with `{sys.executable} -m pip install "pybox-kernel[lab]"`, or use --only-copy.',
        )


def run_lab(folder: Path, home: Path, *, images: Collection[str] = (), first: str = "", browser: bool = True) -> int:
    """Runs JupyterLab on ``folder`` until it is ended by Ctrl-C, SIGTERM or its own menu; the exit status.

    It has the two sealed kernels, and one for each of a person's own ``images``. ``first`` is the notebook it opens, as
    a path from the folder. Its settings, and the copies of the kernels it knows, are in a folder in ``home`` that is
    gone afterwards. Raises SetupError and PyBoxError.
    """
    check_lab()
    with state_folder(home) as (state, lock):
        install(prefix=str(state))
        for image in images:
            if kernel_name(image) not in DISPLAY_NAMES:
                put_kernel_of(image, kernels_in(state))
        configure(folder, state, first, browser=browser)
        command = [sys.executable, "-P", "-m", "jupyterlab", f"--config={state / 'jupyter.json'}"]
        # Jupyter obeys a jupyter_config.py where it is started, and that may be a stranger's folder.
        started = subprocess.Popen(with_this_process(command), cwd=state, env=environment(state), pass_fds=[lock])
        status = 0
        with suppress(Ended), ended_by_signals(started):
            status = started.wait()
    return ExitStatus.OK if status == 0 else ExitStatus.PYBOX_FAILED


@contextmanager
def state_folder(home: Path) -> Iterator[tuple[Path, int]]:
    """A new folder, gone at the end of the block, and a lock on it: whoever has that open is alive and uses it. Those
    whose users were killed are removed."""
    state = home / "lab" / secrets.token_hex(8)
    try:
        state.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with file_lock(state.parent / "lock"):
            for other in state.parent.iterdir():
                if other.is_dir() and is_left(other):
                    shutil.rmtree(other, ignore_errors=True)
            state.mkdir(mode=0o700)
            lock = os.open(state / ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        raise PyBoxError(
            f"{state.parent} cannot be written to: {error.strerror}.", "Make room there, or set PYBOX_HOME."
        ) from error
    try:
        yield state, lock
    finally:
        shutil.rmtree(state, ignore_errors=True)
        os.close(lock)


def is_left(state: Path) -> bool:
    try:
        with file_lock_now(state / ALIVE) as held:
            return held
    except FileNotFoundError:
        return True


class Ended(Exception):
    """By a signal."""


@contextmanager
def ended_by_signals(server: subprocess.Popen[bytes]) -> Iterator[None]:
    """Raises Ended at Ctrl-C and SIGTERM; ends the server, which takes some seconds for its kernels, with the block."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise Ended

    before = [signal.signal(number, end) for number in SIGNALS]
    try:
        yield
    finally:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        server.terminate()
        try:
            server.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)


def kernels_in(state: Path) -> Path:
    return state / "share" / "jupyter" / "kernels"


def environment(state: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(NOT_FOR_A_COPY)}
    return {
        **kept,
        "PYBOX_HOME": str(state.parent.parent),
        KERNELS: str(kernels_in(state)),
        "JUPYTER_NO_CONFIG": "1",
        "JUPYTER_DATA_DIR": str(state / "data"),
        "JUPYTER_RUNTIME_DIR": str(state / "runtime"),
        "IPYTHONDIR": str(state / "ipython"),
        "TMPDIR": str(state),  # Jupyter makes its empty configuration there, and leaves it
    }


def configure(folder: Path, state: Path, first: str, *, browser: bool) -> None:
    """Writes the configuration of the server, and of the page."""
    for name in ("runtime", "settings", "user", "workspaces", "extensions", "data", "ipython"):
        (state / name).mkdir(mode=0o700)
    copy_widgets(state / "extensions")
    write(state / "jupyter.json", configuration(folder, state, first, browser=browser))
    write(state / "settings" / "page_config.json", {"disabledExtensions": dict.fromkeys(DISABLED, True)})
    write(state / "settings" / "overrides.json", OVERRIDES)


OVERRIDES: Final = {
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": False,
    },
}  # fmt: skip


def configuration(folder: Path, state: Path, first: str, *, browser: bool) -> dict[str, Any]:
    return {
        "Application": {"log_level": 40},
        "ServerApp": {
            "ip": "127.0.0.1",
            "allow_remote_access": False,
            "allow_root": True,
            "answer_yes": True,
            "jpserver_extensions": {"jupyterlab": True},
            "kernel_spec_manager_class": f"{__name__}.{SealedKernels.__name__}",
            "open_browser": browser,
            "quit_button": True,
            "root_dir": str(folder),
            "terminals_enabled": False,
            "tornado_settings": {"headers": dict(headers())},
        },
        # Not over TCP, where every user of this computer could listen in on what cells show.
        "MappingKernelManager": {"default_kernel_name": KERNEL_NAME},
        "FileContentsManager": {"delete_to_trash": False},
        "LabApp": {
            "app_settings_dir": str(state / "settings"),
            "check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
            "default_url": f"/lab/tree/{first}" if first else "/lab",
            "extension_manager": "readonly",
            "extra_labextensions_path": [],
            "labextensions_path": [str(state / "extensions")],
            "news_url": None,
            "user_settings_dir": str(state / "user"),
            "workspaces_dir": str(state / "workspaces"),
        },
    }


def headers() -> Mapping[str, str]:
    """What a browser holds the page to, should markup or script get into it in spite of all."""
    own = " ".join(own_scripts())
    policy = {
        "default-src": "'none'",
        "script-src": f"'self' 'unsafe-eval' {own}",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self'",
        "worker-src": "'self' blob:",
        "manifest-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Referrer-Policy": "no-referrer",
        "X-DNS-Prefetch-Control": "off",
    }


def own_scripts() -> Iterator[str]:
    """The hashes of the scripts that stand in Lab's own page."""
    found = find_spec("jupyterlab")
    assert found is not None
    assert found.origin is not None
    page = Path(found.origin).with_name("static").joinpath("index.html").read_text(encoding="utf-8")
    for script in re.findall(r"<script>(.*?)</script>", page, re.DOTALL):
        yield f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def copy_widgets(target: Path) -> None:
    for place in jupyter_path("labextensions"):
        if (Path(place) / WIDGETS / "package.json").is_file():
            shutil.copytree(Path(place) / WIDGETS, target / WIDGETS)
            return


def write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
