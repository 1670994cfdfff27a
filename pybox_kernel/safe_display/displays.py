"""What a program asked to show, as values that are safe to show: plain text, and at most one richer form beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, NewType

from pybox_kernel.safe_display.text import SafeText

__all__ = ["CleanHtml", "Display", "Picture", "Refused", "Table"]

CleanHtml = NewType("CleanHtml", str)
"""HTML that passed the cleaner: markup of text and tables only. Made in ``html_cleaner`` only."""


class Refused(Exception):
    """Something a program asked to show that is not let out. Says why, in words that stand behind its name."""


class Picture(NamedTuple):
    """A picture that passed ``pictures``, written anew without what a picture does not need."""

    mime: Literal["image/png", "image/jpeg"]
    width: int
    height: int
    data: bytes


@dataclass(frozen=True)
class Table:
    """A table as data, rectangular: ``numeric`` and every row have as many entries as each row of ``columns``,
    ``dtypes`` has as many or none, and ``column_names`` one for each row of ``columns`` or none."""

    columns: tuple[tuple[SafeText, ...], ...]
    """The names of the columns, a row for each level of the header."""
    index_names: tuple[SafeText, ...]
    index: tuple[tuple[SafeText, ...], ...]
    """The names of each row, one for each of ``index_names``."""
    rows: tuple[tuple[SafeText, ...], ...]
    numeric: tuple[bool, ...]
    """Whether a column holds numbers."""
    shape: tuple[int, int]
    """Rows and columns of the whole, by the program's word."""
    row_gap: int | None
    """Before which row others were left out."""
    column_gap: int | None
    """Before which column others were left out."""
    column_names: tuple[SafeText, ...] = ()
    """What each row of ``columns`` is called; empty where none is."""
    dtypes: tuple[SafeText, ...] = ()
    """What each column holds, in its library's words; empty where it does not say."""


@dataclass(frozen=True)
class Display:
    """One thing that a program asked to show. At most one of ``picture``, ``table`` and ``html`` is there."""

    result: bool
    """It is the value of the cell's last expression."""
    text: SafeText
    picture: Picture | None = None
    table: Table | None = None
    html: CleanHtml | None = None
