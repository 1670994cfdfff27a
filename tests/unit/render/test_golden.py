"""The whole expected texts of the sample receipts.

After a change that is meant, write them anew with ``PYBOX_WRITE_GOLDEN=1`` and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybox_kernel.render.html import render_html
from pybox_kernel.render.text import render_full, render_short
from tests.receipts import samples

GOLDEN = Path(__file__).parents[2] / "golden" / "receipts"
SAMPLES = samples()


def rendered(name: str) -> dict[str, str]:
    receipt = SAMPLES[name]
    return {
        f"{name}.short.txt": render_short(receipt) + "\n",
        f"{name}.full.txt": render_full(receipt) + "\n",
        f"{name}.html": render_html(receipt, with_json=False) + "\n",
    }


@pytest.mark.parametrize("name", SAMPLES)
def test_a_receipt_is_rendered_as_pinned(name: str) -> None:
    for file, text in rendered(name).items():
        if os.environ.get("PYBOX_WRITE_GOLDEN"):
            (GOLDEN / file).write_text(text, encoding="utf-8")
        assert text == (GOLDEN / file).read_text(encoding="utf-8")


def test_no_pinned_text_is_left_over() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {file for name in SAMPLES for file in rendered(name)}
