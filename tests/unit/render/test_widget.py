"""What a message with a receipt carries, and that a panel leaves nothing behind."""

from __future__ import annotations

from typing import Any

import ipywidgets
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from pybox_kernel.render.html import render_html
from pybox_kernel.render.text import render_short
from pybox_kernel.render.widget import VIEW, bundle, close, panel, with_panel
from tests.receipts import samples


def models() -> set[Any]:
    return set(ipywidgets.Widget.widgets)


def test_every_bundle_carries_text_and_static_html() -> None:
    for receipt in samples().values():
        assert bundle(receipt) == {
            "text/plain": f"{render_short(receipt)}\n",
            "text/html": render_html(receipt, with_json=False),
        }


@pytest.mark.filterwarnings("ignore:Widget.widgets is deprecated:DeprecationWarning")
def test_a_panel_is_three_models_and_none_once_it_is_closed() -> None:
    before = models()
    receipt = samples()["memory"]
    shown = panel(receipt)
    assert shown.value == render_html(receipt)
    assert len(models() - before) == 3
    data = with_panel(bundle(receipt), shown)
    assert data[VIEW] == {"version_major": 2, "version_minor": 0, "model_id": shown.model_id}
    assert data["text/html"] == render_html(receipt, with_json=False)
    close(shown)
    assert models() == before


def test_25_receipts_add_less_than_110_kib_to_a_notebook() -> None:
    """Of every kind, in the order of the samples, beginning again after the last."""
    receipts = list(samples().values())
    cells = [new_code_cell(str(n)) for n in range(25)]
    bare = len(nbformat.writes(new_notebook(cells=cells)).encode())
    for n, cell in enumerate(cells):
        cell.outputs = [new_output("display_data", bundle(receipts[n % len(receipts)]))]
    assert len(nbformat.writes(new_notebook(cells=cells)).encode()) - bare < 110 * 1024
    for cell in cells:
        cell.outputs = [new_output("display_data", bundle(receipts[0]))]
    assert len(nbformat.writes(new_notebook(cells=cells)).encode()) - bare < 110 * 1024


def test_where_the_programs_last_line_is_open_the_text_begins_a_new_one() -> None:
    text = str(bundle(samples()["clean"], in_mid_line=True)["text/plain"])
    assert text == f"\n{render_short(samples()['clean'])}\n"
