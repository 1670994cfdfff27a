"""JupyterLab as someone meets it who has just installed PyBox."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.engine


def test_a_cell_from_the_launcher_shows_its_output_and_below_it_a_receipt(notebook: Any) -> None:
    notebook.launch()
    cell = notebook.run("print('hello')")
    outputs = notebook.outputs(cell)
    assert outputs.first.inner_text().strip() == "hello"
    assert "✓ Ended normally" in notebook.receipt(cell).inner_text()
