"""Statements on cells, and whole notebooks of sealed cells, as PyBox makes them, but without a box."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import ipywidgets

from pybox_kernel.carry.chain import Link
from pybox_kernel.notebook.cell_record import CellRecord
from pybox_kernel.notebook.failures import Failure
from pybox_kernel.notebook.outbox import Text
from pybox_kernel.notebook.page import Page
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.safe_display.displays import Display
from pybox_kernel.safe_display.text import SafeText
from pybox_kernel.signing.keys import SigningKeys
from pybox_kernel.signing.statement import Claim, Statement
from tests.receipts import receipt

STATED = Statement(
    session="5e" * 8,
    serial=1,
    cell=1,
    made_at="2031-05-04T10:20:30Z",
    whole="4d" * 21 + "A",
    source="5a" * 4,
    look="6b" * 4,
    outputs=(),
    ran=None,
    carried=None,
)


def metadata_of(carried: object) -> dict[str, Any]:
    """That of an unsigned one with this link, whatever it is."""
    return {"pybox": f"{STATED.text().removesuffix('[null]')}{json.dumps([carried], separators=(',', ':'))} - -"}


class Cell(NamedTuple):
    source: str
    shows: Sequence[Text | Display | Failure] = ()
    receipt: Receipt | None = receipt()
    refused: Failure | None = None
    """Then it shows that, and nothing else."""


LESSON = (
    Cell("print('one')\n6 * 7", [Text("stdout", "one\n"), Display(True, SafeText("42"))]),
    Cell("print('two'); 1/0", [Text("stdout", "tw"), Text("stdout", "o\n"), Failure("Ends", "it", ["line 1", "2"])]),
    Cell("%pybox use", [], None),
    Cell("import sys\ndraw()", [Text("stderr", "e"), Text("stdout", "o"), Display(False, SafeText("a picture"))]),
)


class Author:
    """Writes notebooks, as a page of Jupyter does that shows what one kernel sends."""

    def __init__(self, keys: SigningKeys, *, panels: bool = False, raises: bool = False) -> None:
        self._page = Page(self._show, lambda: "panel", lambda: None, CellRecord(raises=raises, keys=keys))
        self._page.has_widgets = panels
        self._outputs: list[dict[str, Any]] = []
        self._number = 0

    def cell(self, cell: Cell) -> dict[str, Any]:
        """The cell as it stands in a file after it ran."""
        self._number += 1
        self._outputs = []
        self._page.record.begin(self._number, cell.source)
        for shown in cell.shows:
            if isinstance(shown, Text):
                self._page.output(shown)
            elif isinstance(shown, Display):
                self._page.display(shown, self._number)
            else:
                self._page.error(shown)
        if cell.refused is not None:
            self._page.refused(cell.refused)
        elif cell.receipt is None:
            self._page.answer({"text/plain": "said", "text/html": "<div class='pybox'>said</div>"})
        else:
            asyncio.run(self._receipt(cell.receipt))
        return {
            "cell_type": "code",
            "id": f"cell-{self._number}",
            "metadata": {},
            "source": cell.source,
            "execution_count": self._number,
            "outputs": self._outputs,
        }

    def notebook(self, *cells: Cell) -> dict[str, Any]:
        words = {"cell_type": "markdown", "id": "words", "metadata": {}, "source": "# Lesson"}
        made = [self.cell(cell) for cell in cells or LESSON]
        return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [words, *made]}

    async def _receipt(self, found: Receipt) -> None:
        self._page.receipt(found, self._number)

    def _show(self, message: str, content: Mapping[str, object]) -> None:
        shown = {name: value for name, value in content.items() if name != "transient"}
        self._outputs.append(json.loads(json.dumps({"output_type": message, **shown})))


def links_in(notebook: bytes) -> list[Link]:
    """Those of the statements in a notebook's file, believed or not; what is no link is passed over."""
    outputs = (output for cell in json.loads(notebook)["cells"] for output in cell.get("outputs", ()))
    claims = [claim for output in outputs if (claim := Claim.of(output.get("metadata"))) is not None]
    stated = [found for claim in claims if (found := Statement.of(claim.text)) is not None]
    return [link for found in stated if (link := Link.of(found.carried)) is not None]


def widget_states() -> dict[str, Any]:
    """The metadata of a notebook that was saved with its widgets."""
    state = ipywidgets.Widget.get_manager_state(drop_defaults=True)["state"]
    kept = {"state": state, "version_major": 2, "version_minor": 0}
    return {"widgets": {"application/vnd.jupyter.widget-state+json": kept}}
