"""Whether a cell's text is a whole program, for a client that asks before it runs it."""

from __future__ import annotations

from itertools import accumulate
from typing import Final

from IPython.core.inputtransformer2 import TransformerManager

__all__ = ["completeness"]

LONGEST: Final = 64 * 1024
DEEPEST: Final = 100
BRACKETS: Final = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def completeness(code: str) -> dict[str, object]:
    """Whether ``code`` can be run, needs more lines, or cannot become a program; "unknown" where to look would cost.

    The code is parsed, and never run. It is plain Python: a magic is no part of it.
    """
    if len(code) > LONGEST or deepest(code) > DEEPEST:
        return {"status": "unknown"}
    checker = TransformerManager()  # type: ignore[no-untyped-call]
    checker.cleanup_transforms = []
    checker.line_transforms = []
    checker.token_transformers = []
    try:
        status, indent = checker.check_complete(code)
    except Exception:
        return {"status": "unknown"}
    return {"status": status, "indent": " " * (indent or 0)} if status == "incomplete" else {"status": status}


def deepest(code: str) -> int:
    """The deepest nesting of brackets, those in texts and comments included."""
    return max(accumulate((BRACKETS.get(character, 0) for character in code), initial=0))
