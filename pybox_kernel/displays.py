"""What a program asks to show, made safe: plain text always, and at most one richer form beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

from pybox_kernel.pictures import Picture
from pybox_kernel.safe_display import SafeText

__all__ = ["CleanHtml", "Display", "Table"]

CleanHtml = NewType("CleanHtml", str)
"""HTML that passed the cleaner: markup of text and tables only. Made there only."""


@dataclass(frozen=True)
class Table:
    """A table as data: rectangular, every cell safe to show."""

    columns: tuple[tuple[SafeText, ...], ...]
    """One row of names for each level of the header."""
    index_names: tuple[SafeText, ...]
    index: tuple[tuple[SafeText, ...], ...]
    """For each row its names, one for each level."""
    rows: tuple[tuple[SafeText, ...], ...]
    numeric: tuple[bool, ...]
    """Whether a column holds numbers."""
    shape: tuple[int, int]
    """Rows and columns of the whole, as the program says."""
    row_gap: int | None
    """Before which row others were left out."""
    column_gap: int | None


@dataclass(frozen=True)
class Display:
    """One thing that a program asked to show. At most one of ``picture``, ``table`` and ``html`` is there."""

    result: bool
    """It is the value of the cell's last expression."""
    text: SafeText
    picture: Picture | None = None
    table: Table | None = None
    html: CleanHtml | None = None
