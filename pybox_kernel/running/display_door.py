"""From what a program asks to show to what may be shown: every check, and the bounds of one cell."""

from __future__ import annotations

import base64
import binascii
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeVar

from pybox_kernel.safe_display.displays import CleanHtml, Display, Picture, Refused, Table
from pybox_kernel.safe_display.html_cleaner import CleanedHtml
from pybox_kernel.safe_display.pictures import MOST_PIXELS, checked_jpeg, checked_png
from pybox_kernel.safe_display.text import SafeText, safe_name, safe_text
from pybox_kernel.wire.frames import DisplayData, DisplayEvent, TableEvent

__all__ = ["MOST_DISPLAYS", "MOST_EVENT_BYTES", "OVER", "DisplayDoor", "Form"]

T = TypeVar("T")
Form = Literal["picture", "table", "html", "text"]

MOST_DISPLAYS: Final = 30
"""JupyterLab folds away what comes after 50 outputs of a cell, and its receipt with it."""
MOST_ELEMENTS: Final = 20_000
"""Of HTML and tables in one cell: a page takes long over many, however few bytes they are."""
MOST_EVENT_BYTES: Final = 6_000_000
MOST_PICTURE_BYTES: Final = 4 << 20
MOST_PICTURE_PIXELS: Final = 4 * MOST_PIXELS
"""A browser takes four bytes for each."""
HTML_SECONDS: Final = 1.0
"""Of cleaning, after which the rest of a cell's HTML is withheld: the run waits for it."""
MOST_TABLE_CHARACTERS: Final = 256 << 10
MARKED: Final = "&<>$\\"
MARK_LENGTH: Final = 14
"""What it takes to write one of them in a page."""

OVER: Final = "more than a cell may display"
UNNAMED: Final = "something without a proper name"
MIME: Final = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60}")
"""What a program calls what was held back is shown only if it is a name (RFC 6838), and no sentence."""


class DisplayDoor:
    """The displays of one run. Calls ``withhold`` with what it does not let out, and the size of that in bytes."""

    def __init__(self, clean_html: Callable[[str], CleanedHtml], withhold: Callable[[str, int], None]) -> None:
        self._clean_html = clean_html
        self._withhold = withhold
        self._event_bytes = 0
        self._picture_bytes = 0
        self._picture_pixels = 0
        self._html_seconds = 0.0
        self._elements = 0
        self._has_result = False
        """A cell has one value: what else calls itself so is a display like any other."""
        self.shown: Counter[Form] = Counter()

    def pass_on(self, event: DisplayEvent, size: int) -> Display | None:
        """What may be shown of an event of ``size`` bytes: its text, and the first of its richer forms that passes.
        None where the cell has shown as much as it may."""
        self._event_bytes += size
        if self.shown.total() >= MOST_DISPLAYS or self._event_bytes > MOST_EVENT_BYTES:
            self._withhold(OVER, size)
            return None
        for mime, offered in event.withheld.items():
            self._withhold(mime if MIME.fullmatch(mime) else UNNAMED, offered)
        table = self._table(event.table)
        picture = self._picture(event.data) if table is None else None
        html = self._html(event.data.html, instead="table" if table else "picture" if picture else None)
        self.shown["table" if table else "picture" if picture else "html" if html is not None else "text"] += 1
        result, self._has_result = event.result and not self._has_result, self._has_result or event.result
        return Display(result, safe_text(event.data.text), picture, table, html)

    def _table(self, event: TableEvent | None) -> Table | None:
        def made(event: TableEvent) -> Table:
            table = safe_table(event)
            self._count(2 * sum(1 for _ in texts(event)))
            return table

        return None if event is None else self._tried("table", characters(event), lambda: made(event))

    def _picture(self, data: DisplayData) -> Picture | None:
        for mime, encoded, check in (
            ("image/png", data.png, checked_png),
            ("image/jpeg", data.jpeg, checked_jpeg),
        ):
            if encoded is not None and (found := self._one_picture(mime, encoded, check)) is not None:
                return found
        return None

    def _one_picture(self, mime: str, encoded: str, check: Callable[[bytes], Picture]) -> Picture | None:
        def made() -> Picture:
            picture = check(decoded(encoded))
            pixels = picture.width * picture.height
            if self._picture_bytes + len(picture.data) > MOST_PICTURE_BYTES:
                raise Refused(f"more than {MOST_PICTURE_BYTES >> 20} MB of pictures in one cell")
            if self._picture_pixels + pixels > MOST_PICTURE_PIXELS:
                raise Refused(f"more than {MOST_PICTURE_PIXELS:,} pixels of pictures in one cell")
            self._picture_bytes += len(picture.data)
            self._picture_pixels += pixels
            return picture

        return self._tried(mime, len(encoded.replace("\n", "").rstrip("=")) * 3 // 4, made)

    def _html(self, source: str | None, instead: str | None) -> CleanHtml | None:
        if source is None:
            return None
        size = len(source.encode("utf-8", "replace"))
        if instead is not None:
            self._withhold(f"text/html: its {instead} is shown", size)
            return None
        cleaned = self._tried("text/html", size, lambda: self._bounded(self._cleaned(source)))
        if cleaned is None:
            return None
        if cleaned.left_out:
            self._withhold("parts of text/html", max(0, size - len(cleaned.html.encode())))
        return cleaned.html

    def _bounded(self, cleaned: CleanedHtml) -> CleanedHtml:
        self._count(cleaned.html.count("<"))
        return cleaned

    def _count(self, elements: int) -> None:
        if self._elements + elements > MOST_ELEMENTS:
            raise Refused(f"more than {MOST_ELEMENTS:,} elements in one cell")
        self._elements += elements

    def _cleaned(self, source: str) -> CleanedHtml:
        if self._html_seconds > HTML_SECONDS:
            raise Refused(f"cleaning what came before it took more than {HTML_SECONDS:g} s")
        began = time.monotonic()
        try:
            return self._clean_html(source)
        finally:
            self._html_seconds += time.monotonic() - began

    def _tried(self, what: str, size: int, make: Callable[[], T]) -> T | None:
        try:
            return make()
        except Refused as why:
            self._withhold(f"{what}: {why}", size)
            return None


def decoded(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded.replace("\n", ""), validate=True)
    except (binascii.Error, ValueError):
        raise Refused("not base64") from None


def texts(event: TableEvent) -> Iterable[str]:
    for row in (*event.columns, event.column_names, event.index_names, event.dtypes, *event.index, *event.rows):
        yield from row


def characters(event: TableEvent) -> int:
    return sum(map(len, texts(event)))


def safe_table(event: TableEvent) -> Table:
    marked = sum(text.count(character) for text in texts(event) for character in MARKED)
    if characters(event) + MARK_LENGTH * marked > MOST_TABLE_CHARACTERS:
        raise Refused(f"a table of more than {MOST_TABLE_CHARACTERS:,} characters")
    return Table(
        columns=safe_rows(event.columns),
        index_names=safe_row(event.index_names),
        index=safe_rows(event.index),
        rows=safe_rows(event.rows),
        numeric=event.numeric,
        shape=event.shape,
        row_gap=event.row_gap,
        column_gap=event.column_gap,
        column_names=safe_row(event.column_names),
        dtypes=safe_row(event.dtypes),
    )


def safe_row(cells: Iterable[str]) -> tuple[SafeText, ...]:
    return tuple(safe_name(cell) for cell in cells)


def safe_rows(rows: Iterable[Iterable[str]]) -> tuple[tuple[SafeText, ...], ...]:
    return tuple(safe_row(row) for row in rows)
