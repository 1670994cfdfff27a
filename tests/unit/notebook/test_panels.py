from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets
import pytest

from pybox_kernel.notebook.panels import FRESH_SECONDS, MOST_ALIVE, MOST_REOPENED, Panels, fresh_seconds
from pybox_kernel.render.widget import VIEW
from tests.receipts import receipt


class Page:
    """What a page was sent: the data of each output, by its display id where it has one."""

    def __init__(self) -> None:
        self.outputs: list[Mapping[str, Any]] = []
        self.by_id: dict[str, Mapping[str, Any]] = {}

    def show(
        self,
        data: Mapping[str, Any],
        display_id: str | None = None,
        message: str = "display_data",
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        if message == "update_display_data":
            assert display_id in self.by_id
        else:
            self.outputs.append(data)
            assert display_id not in self.by_id
        if display_id is not None:
            self.by_id[display_id] = data


class Clock:
    """What was asked for later, and when."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], None]]] = []

    def __call__(self, delay: float, callback: Callable[[], None]) -> None:
        self.waiting.append((delay, callback))


def stated(*_: object) -> Mapping[str, object]:
    return {}


@pytest.fixture
def page() -> Any:
    yield Page()
    ipywidgets.Widget.close_all()


def models() -> int:
    return len(ipywidgets.widgets.widget._instances)


def test_without_widgets_no_model_is_made(page: Any) -> None:
    before = models()
    Panels(page.show, Clock(), stated).show(receipt(), alive=False)
    [data] = page.outputs
    assert set(data) == {"text/plain", "text/html"}
    assert (page.by_id, models()) == ({}, before)


def test_the_oldest_panels_are_replaced_by_the_same_receipt_without_widgets(page: Any) -> None:
    panels = Panels(page.show, Clock(), stated)
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
    panels = Panels(page.show, Clock(), stated)
    before = models()
    for _ in range(3):
        panels.show(receipt(), alive=True)
    panels.close()
    panels.close()
    assert [VIEW in data for data in page.by_id.values()] == [False] * 3
    assert models() == before


def test_a_panel_is_replaced_once_it_is_no_longer_fresh(page: Any) -> None:
    clock, before = Clock(), models()
    panels = Panels(page.show, clock, stated)
    for _ in range(3):
        panels.show(receipt(), alive=True)
    assert [delay for delay, _ in clock.waiting] == [FRESH_SECONDS] * 3
    clock.waiting[1][1]()
    assert [VIEW in data for data in page.by_id.values()] == [False, False, True]
    for _, put_out in clock.waiting:
        put_out()
    assert [VIEW in data for data in page.by_id.values()] == [False] * 3
    assert models() == before


def test_a_page_that_is_opened_again_finds_the_panels_it_was_saved_with(page: Any) -> None:
    clock = Clock()
    panels = Panels(page.show, clock, stated)
    panels.reopen()
    panels.show(receipt(), alive=True)
    model_id = page.outputs[0][VIEW]["model_id"]
    value = ipywidgets.widgets.widget._instances[model_id].value
    clock.waiting[0][1]()
    assert model_id not in ipywidgets.widgets.widget._instances
    for _ in range(2):
        panels.reopen()
        assert ipywidgets.widgets.widget._instances[model_id].value == value
    panels.close()
    assert model_id not in ipywidgets.widgets.widget._instances


def test_the_panels_that_are_brought_back_are_bounded(page: Any) -> None:
    panels, before = Panels(page.show, Clock(), stated), models()
    for _ in range(MOST_REOPENED + MOST_ALIVE + 5):
        panels.show(receipt(), alive=True)
    panels.reopen()
    most = models()
    panels.show(receipt(), alive=True)
    panels.reopen()
    assert models() == most <= before + 3 * (MOST_REOPENED + MOST_ALIVE)
    panels.close()
    assert models() == before


def test_the_time_a_panel_stays_fresh_can_only_be_made_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    for wish, found in (
        ("2.5", 2.5),
        ("-1", FRESH_SECONDS),
        ("600", FRESH_SECONDS),
        ("soon", FRESH_SECONDS),
        ("nan", FRESH_SECONDS),
    ):
        monkeypatch.setenv("PYBOX_FRESH_SECONDS", wish)
        assert fresh_seconds() == found, wish


def test_a_panel_that_a_second_page_found_alive_stays_for_that_page(page: Any) -> None:
    clock, before = Clock(), models()
    panels = Panels(page.show, clock, stated)
    panels.show(receipt(), alive=True)
    model_id = page.outputs[0][VIEW]["model_id"]
    panels.reopen()
    clock.waiting[0][1]()
    assert [VIEW in data for data in page.by_id.values()] == [False], "the first page has it without widgets"
    assert model_id in ipywidgets.widgets.widget._instances
    panels.reopen()
    assert model_id in ipywidgets.widgets.widget._instances
    panels.close()
    assert models() == before
