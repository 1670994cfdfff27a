from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import ipywidgets
import pytest

from pybox_kernel.notebook.outbox import Outbox
from pybox_kernel.notebook.running_panel import NOTHING, TICK_SECONDS, RunningPanel
from pybox_kernel.render.widget import VIEW
from tests.unit.notebook.test_panels import Page, models


@pytest.fixture
def page() -> Iterator[Page]:
    yield Page()
    ipywidgets.Widget.close_all()


def parts(panel: RunningPanel) -> tuple[Any, Any]:
    bar, button = panel._box.children
    return bar, button


def test_it_stands_there_while_a_cell_runs_and_leaves_an_empty_text(page: Page) -> None:
    panel = RunningPanel(page.show, lambda: None)
    panel.show()
    [shown] = page.by_id.values()
    assert shown[VIEW]["model_id"] == panel._box.model_id
    panel.hide()
    assert list(page.by_id.values()) == [NOTHING]
    assert len(page.outputs) == 1


def test_hidden_it_draws_nothing_where_it_is_asked_for_again(page: Page) -> None:
    panel = RunningPanel(page.show, lambda: None)
    panel.show()
    assert panel._box.layout.display == "flex"
    panel.hide()
    assert panel._box.layout.display == "none"


def test_the_bar_has_a_name_and_moves_up_to_the_limit(page: Page) -> None:
    panel = RunningPanel(page.show, lambda: None)
    panel.show()
    bar, _ = parts(panel)
    assert "<progress max='1' aria-label='Making a fresh box'" in bar.value
    for elapsed, fraction, text in ((0.5, "0.250", "0.5 of 2 s"), (9.0, "1.000", "2.0 of 2 s")):
        panel.tick(elapsed, 2.0)
        assert f"value='{fraction}' aria-label='Running in a sealed box: {text}'" in bar.value
        assert text in re.sub("<[^>]*>", "", bar.value)


def test_a_cell_that_waits_for_its_turn_says_so_and_how_many_are_before(page: Page) -> None:
    panel = RunningPanel(page.show, lambda: None)
    panel.show()
    bar, _ = parts(panel)
    panel.wait(3)
    assert "Waiting for its turn" in bar.value
    assert "3 cells before it" in bar.value
    panel.wait(0)
    assert "Making a fresh box" in bar.value
    assert "before it" not in bar.value


def test_its_button_stops_the_cell_once_and_is_ready_for_the_next(page: Page) -> None:
    stopped: list[int] = []
    panel = RunningPanel(page.show, lambda: stopped.append(1))
    panel.show()
    _, button = parts(panel)
    button.click()
    assert (stopped, button.disabled, button.description) == ([1], True, "Stopping …")
    panel.hide()
    panel.show()
    assert (button.disabled, button.description) == (False, "Stop")


def test_a_hundred_cells_need_no_more_models_than_one_and_none_is_left(page: Page) -> None:
    before = models()
    panel = RunningPanel(page.show, lambda: None)
    panel.show()
    one = models()
    for _ in range(100):
        panel.hide()
        panel.show()
    assert models() == one
    panel.close()
    panel.close()
    assert models() == before
    assert all(data == NOTHING for data in page.by_id.values())


def test_it_follows_a_cell_from_the_moment_its_program_started(page: Page) -> None:
    panel = RunningPanel(page.show, lambda: None)

    async def cell() -> list[str]:
        outbox = Outbox(lambda item: 0)
        following = asyncio.ensure_future(panel.follow(outbox))
        await asyncio.sleep(TICK_SECONDS * 1.5)
        seen = [parts(panel)[0].value]
        outbox.started(2.0)
        await asyncio.sleep(TICK_SECONDS * 2)
        seen.append(parts(panel)[0].value)
        following.cancel()
        await asyncio.wait([following])
        return seen

    before, after = asyncio.run(cell())
    assert "value=" not in before
    assert "of 2 s" in after
    assert list(page.by_id.values()) == [NOTHING]
