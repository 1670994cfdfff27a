"""A notebook of a stranger's with nothing in it but its cells: their kinds and their texts, in a new document.

Nothing is taken over that is not named here. So outputs, the state of widgets, attachments, the kernel and all other
metadata are gone, of whatever extension they are; texts lose what could act or be fetched; code is left as it is.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from pybox_kernel.classroom.inert_markdown import dense, inert
from pybox_kernel.errors import SourceError
from pybox_kernel.install import KERNEL_NAME, display_name
from pybox_kernel.notebook.file import MOST_BYTES, MOST_CELLS, is_text, joined, lines, written
from pybox_kernel.safe_display.characters import ESCAPED
from pybox_kernel.safe_display.text import safe_name

__all__ = ["MOST_READ", "WORDS", "Cleaned", "Quote", "cleaned"]

MOST_READ: Final = 128 << 20
"""Bytes of a file, with its outputs."""
MOST_PARTS: Final = 1_000_000
MOST_VALUES: Final = 4_000_000
"""Lists and objects, and what is in them: with more, a small file would take all of the memory."""
LONGEST_CODE: Final = 256 << 10
"""Characters of a code cell. A box takes a quarter of that."""
MOST_QUOTES: Final = 60

WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "kernel": ("kernel setting", "kernel settings"),
    "outputs": ("output", "outputs"),
    "widgets": ("state of widgets", "states of widgets"),
    "attachments": ("attachment", "attachments"),
    "metadata": ("setting", "settings"),
    "cells": ("cell that is none", "cells that are none"),
    "html": ("piece of HTML", "pieces of HTML"),
    "pictures": ("picture", "pictures"),
    "links": ("link", "links"),
    "addresses": ("address", "addresses"),
    "codes": ("character's code", "characters' codes"),
    "formulas": ("command in a formula", "commands in formulas"),
    "diagrams": ("diagram", "diagrams"),
    "dense": ("text with marks without end (not laid out)", "texts with marks without end (not laid out)"),
    "cut": ("text that was cut", "texts that were cut"),
    "hidden": ("code cell with hidden characters (left)", "code cells with hidden characters (left)"),
}  # fmt: skip
"""What is removed, made plain text, or noted: one of it, and several."""

SURROGATE: Final = re.compile("[\ud800-\udfff]")
EXPECTED: Final = frozenset(("cell_type", "id", "metadata", "source", "outputs", "execution_count", "attachments"))
OLD_NAMES: Final = frozenset(("input", "prompt_number", "language", "collapsed", "level", "rendered"))
PLAIN: Final = {"kernelspec", "language_info", "widgets"}
"""Of the notebook's metadata: told by other names, or worth no word."""


class Quote(NamedTuple):
    cell: int
    """Counted from 1; 0 for the notebook itself."""
    kind: str
    text: str
    """Safe to show, and at most 120 characters."""


class Cleaned(NamedTuple):
    data: bytes
    """The new notebook, in nbformat 4.5."""
    cells: int
    counts: Mapping[str, int]
    """By the names in ``WORDS``."""
    quotes: Sequence[Quote]
    """The first of what the counts count."""


def cleaned(data: bytes, kernel: str = KERNEL_NAME) -> Cleaned:
    """The notebook in ``data``, for one of the sealed kernels. Its cells have the numbers they had.

    Raises SourceError for what is no notebook, or too large for one; its message goes on behind the file's name.
    """
    return Cleaning(parsed(data), kernel).result()


class Cleaning:
    def __init__(self, document: Mapping[str, Any], kernel: str) -> None:
        self._document = document
        self._kernel = kernel
        self._counts: Counter[str] = Counter()
        self._quotes: list[Quote] = []
        self._number = 0
        self._characters = 0

    def result(self) -> Cleaned:
        old = old_cells(self._document)
        self._notebook(self._document.get("metadata"))
        cells = []
        for self._number, cell in enumerate(old, 1):
            cells.append(self._cell(cell))
        document = {
            "cells": cells,
            "metadata": {
                "kernelspec": {"display_name": display_name(self._kernel), "language": "python", "name": self._kernel},
                "language_info": {"name": "python"},
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        data = written(document, ascii_only=False)
        if len(data) > MOST_BYTES:
            refuse_size()
        return Cleaned(data, len(cells), dict(self._counts), tuple(self._quotes))

    def _notebook(self, metadata: object) -> None:
        said = metadata if isinstance(metadata, dict) else {}
        if spec := said.get("kernelspec"):
            name = spec.get("name") if isinstance(spec, dict) else spec
            if name != self._kernel:
                self._note("kernel", str(name))
        if said.get("widgets"):
            self._note("widgets", "in the notebook")
        for name in said:
            if name not in PLAIN:
                self._note("metadata", str(name))

    def _cell(self, cell: object) -> dict[str, Any]:
        said = cell if isinstance(cell, dict) else {}
        source: Any = said.get("source", said.get("input", ""))
        kind = said.get("cell_type")
        text = SURROGATE.sub("\ufffd", joined(source)) if is_text(source) else ""
        if not is_text(source) or kind not in ("code", "markdown", "raw", "html", "heading"):
            self._note("cells", str(kind))
            kind = "raw"
        self._leavings(said)
        new: dict[str, Any] = {"cell_type": "markdown", "id": f"cell-{self._number}", "metadata": {}}
        if kind == "code":
            new |= {"cell_type": "code", "execution_count": None, "outputs": []}
            text = self._code(text)
        elif kind == "raw":
            new["cell_type"] = "raw"
            text = self._cut(text)
        else:
            level = said.get("level")
            if kind == "heading":
                text = f"{'#' * (level if type(level) is int and 0 < level < 7 else 1)} {text}"
            text = self._markdown(text)
            if dense(text):
                self._note("dense", text)
                new["cell_type"] = "raw"
        self._characters += len(text)
        if self._characters > MOST_BYTES:  # at once, since a text may take a tenth of a second
            refuse_size()
        return {**new, "source": lines(text)}

    def _code(self, text: str) -> str:
        if text.replace("\r\n", "\n").translate(ESCAPED) != text.replace("\r\n", "\n"):
            self._note("hidden", text)
        return self._cut(text)

    def _cut(self, text: str) -> str:
        if len(text) > LONGEST_CODE:
            self._note("cut", text[LONGEST_CODE:])
        return text[:LONGEST_CODE]

    def _markdown(self, text: str) -> str:
        plain = inert(text)
        for kind, quote in plain.found:
            self._note(kind, quote)
        return plain.text

    def _leavings(self, cell: Mapping[str, Any]) -> None:
        """Notes what a cell has and its copy has not."""
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else [outputs] if outputs else []:
            self._note("outputs", kind_of(output))
        attachments = cell.get("attachments")
        for name in attachments if isinstance(attachments, dict) else ["?"] if attachments else []:
            self._note("attachments", name)
        metadata = cell.get("metadata")
        for name in metadata if isinstance(metadata, dict) else ["?"] if metadata else []:
            self._note("metadata", name)
        for name in cell.keys() - EXPECTED - OLD_NAMES:
            self._note("metadata", name)

    def _note(self, kind: str, quote: str) -> None:
        self._counts[kind] += 1
        if len(self._quotes) < MOST_QUOTES:
            self._quotes.append(Quote(self._number, kind, safe_name(quote, 120)))


def kind_of(output: object) -> str:
    if not isinstance(output, dict):
        return "of no kind"
    data = output.get("data")
    return ", ".join(list(data)[:5]) if isinstance(data, dict) else str(output.get("output_type"))[:60]


def parsed(data: bytes) -> dict[str, Any]:
    if len(data) > MOST_READ:
        refuse(f"has over {MOST_READ >> 20} MB", "Clear its outputs in JupyterLab, save it, and try again.")
    if data.count(b"[") + data.count(b"{") > MOST_PARTS or data.count(b",") > MOST_VALUES:
        refuse("has far more parts than a notebook", "Look at it in a text editor, or leave it.")
    try:
        document = json.loads(data.decode("utf-8-sig"), parse_constant=lambda _: None)
    except UnicodeDecodeError:
        refuse("is not a notebook: it is no text in UTF-8")
    except RecursionError:
        refuse("is not a notebook: its parts are nested without end")
    except ValueError as error:
        place = f", in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        refuse(f"is not a notebook: it is no JSON{place}" if data.strip() else "is empty")
    if not isinstance(document, dict):
        refuse("is not a notebook: it is JSON of another kind")
    return document


def old_cells(document: Mapping[str, Any]) -> Sequence[object]:
    """The cells of a notebook of any format since 2."""
    version = document.get("nbformat")
    if type(version) is not int or version < 2:
        refuse("is not a notebook: it does not say of which format it is")
    if version > 4:
        refuse(f"is a notebook of format {str(version)[:20]}, newer than this version of PyBox knows", "Update PyBox.")
    if version == 4:
        found = document.get("cells")
    else:
        sheets = document.get("worksheets")
        parts = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)] if isinstance(sheets, list) else []
        found = (
            [cell for part in parts if isinstance(part, list) for cell in part] if isinstance(sheets, list) else None
        )
    if not isinstance(found, list):
        refuse("is not a notebook: it has no list of cells")
    if len(found) > MOST_CELLS:
        refuse(f"has {len(found):,} cells; the most is {MOST_CELLS:,}", "Divide it.")
    return found


def refuse_size() -> NoReturn:
    refuse(f"has over {MOST_BYTES >> 20} MB also without its outputs", "Divide it.")


def refuse(what: str, advice: str = "Look at it in a text editor, or ask whoever sent it.") -> NoReturn:
    raise SourceError(what, advice)
