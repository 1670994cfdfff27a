"""Settings of the environment that are whole numbers."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["MOST_DIGITS", "misread", "number_setting"]

MOST_DIGITS: Final = 9


def number_setting(name: str, otherwise: int) -> int:
    """The number that the variable ``name`` has been set to; ``otherwise`` where it is not set, or is ``misread``."""
    text = set_to(name)
    return int(text) if is_number(text) else otherwise


def misread(name: str) -> str | None:
    """What the variable ``name`` has been set to, where that is no whole number from 0 up, of ``MOST_DIGITS`` at most:
    foreign text of any length."""
    text = set_to(name)
    return text if text and not is_number(text) else None


def set_to(name: str) -> str:
    return os.environ.get(name, "").strip()


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
