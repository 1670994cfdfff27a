"""PyBox in Jupyter: each cell in a fresh sealed container, with a receipt."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if sys.platform == "win32":
    raise ImportError(
        "PyBox needs Linux or macOS. On Windows, install it inside WSL 2, which has both: "
        "run `wsl --install` once, then install PyBox and Jupyter in its Linux."
    )

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from pybox_kernel.files.box_files import InputFile
    from pybox_kernel.sessions.session import RunResult, Session

__all__ = ["InputFile", "Session", "__version__", "load_ipython_extension", "run", "unload_ipython_extension"]

__version__ = "0.1.0"

# Importing the package alone must stay cheap: the kernelspec does it too.
LATER: Final = {"InputFile": "pybox_kernel.files.box_files", "Session": "pybox_kernel.sessions.session"}


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(LATER[name]), name)


def run(source: str | bytes, *, deadline_seconds: float | None = None) -> RunResult:
    """Runs one program in a fresh sealed box and returns its output and receipt.

    Raises errors.InputError if the program or the deadline (seconds, above 0, at most 30) cannot be taken; all other
    trouble is on ``result.receipt``.
    """
    from pybox_kernel.sessions import session

    return session.run(source, deadline_seconds=deadline_seconds)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext pybox_kernel``: gives an ordinary notebook, or IPython, ``%%pybox`` and ``%pybox``."""
    from pybox_kernel import magic

    magic.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    from pybox_kernel import magic

    magic.unload(shell)
