from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets
import pytest

from pybox_kernel.panels import MOST_ALIVE, Panels
from pybox_kernel.render.widget import VIEW
from tests.receipts import receipt


class Page:
    """What a page was sent: the data of each output, by its display id where it has one."""

    def __init__(self) -> None:
        self.outputs: list[Mapping[str, Any]] = []
        self.by_id: dict[str, Mapping[str, Any]] = {}

    def show(self, data: Mapping[str, Any], display_id: str | None = None, message: str = "display_data") -> None:
        if message == "update_display_data":
            assert display_id in self.by_id
        else:
            self.outputs.append(data)
            assert display_id not in self.by_id
        if display_id is not None:
            self.by_id[display_id] = data


@pytest.fixture
def page() -> Any:
    yield Page()
    ipywidgets.Widget.close_all()


def models() -> int:
    return len(ipywidgets.widgets.widget._instances)


def test_without_widgets_no_model_is_made(page: Any) -> None:
    before = models()
    Panels(page.show).show(receipt(), alive=False)
    [data] = page.outputs
    assert set(data) == {"text/plain", "text/html"}
    assert (page.by_id, models()) == ({}, before)


def test_the_oldest_panels_are_replaced_by_the_same_receipt_without_widgets(page: Any) -> None:
    panels = Panels(page.show)
    panels.show(receipt(), alive=True)
    a_panels_models = models()
    for _ in range(MOST_ALIVE + 2):
        panels.show(receipt(), alive=True)
    alive = [VIEW in data for data in page.by_id.values()]
    assert alive == [False] * 3 + [True] * MOST_ALIVE
    assert models() == a_panels_models * MOST_ALIVE
    replaced, *_ = page.by_id.values()
    assert replaced == {kind: text for kind, text in page.outputs[0].items() if kind != VIEW}


def test_at_the_end_every_panel_is_replaced_and_no_model_is_left(page: Any) -> None:
    panels = Panels(page.show)
    before = models()
    for _ in range(3):
        panels.show(receipt(), alive=True)
    panels.close()
    panels.close()
    assert [VIEW in data for data in page.by_id.values()] == [False] * 3
    assert models() == before
