"""Whether a cell's text is a whole program, for a client that asks before it runs it."""

from __future__ import annotations

import os
from typing import Final

from IPython.core.inputtransformer2 import TransformerManager

from pybox_kernel.source.cell_names import CELL_MAGIC, DEEPEST, LONGEST, deepest, python_of

__all__ = ["completeness"]

MAGIC_MARKS: Final = "%!?"

LOOKED_FOR: Final = "<input>"
"""Where there is an error, Python opens a file of this name in the current folder to show the line. That folder is the
notebook's, and a pipe of that name would hold up the kernel for good."""


def completeness(code: str) -> dict[str, object]:
    """Whether ``code`` can be run, needs more lines, or cannot become a program; "unknown" where to look would cost.

    The code is parsed, and never run. A line that is a magic's, the shell's or for help is whole as it stands, whatever
    it says; a cell magic's body ends with an empty line, as in IPython.
    """
    if len(code) > LONGEST or deepest(code) > DEEPEST or os.path.lexists(LOOKED_FOR):
        return {"status": "unknown"}
    try:
        cell_magic = CELL_MAGIC.match(code) is not None
        status, indent = check(code.lstrip() if cell_magic else code)
        goes_on = cell_magic or code.rstrip("\n").endswith("\\")
        if status != "complete" and not goes_on and any(mark in code for mark in MAGIC_MARKS):
            without = check(python_of(code, timed=False))
            if status == "invalid" or without[0] == "complete":
                status, indent = without
    except Exception:
        return {"status": "unknown"}
    return {"status": status, "indent": " " * (indent or 0)} if status == "incomplete" else {"status": status}


def check(code: str) -> tuple[str, int | None]:
    # IPython's own transforms of magics take time that grows with the square of their number.
    checker = TransformerManager()  # type: ignore[no-untyped-call]
    checker.cleanup_transforms = []
    checker.line_transforms = []
    checker.token_transformers = []
    status, indent = checker.check_complete(code)
    return status, indent
