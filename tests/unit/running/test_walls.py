from __future__ import annotations

from typing import Any

import pytest

from pybox_kernel.carry.groups import Missing
from pybox_kernel.receipt.model import Wall
from pybox_kernel.running.transcript import About, ProgramError
from pybox_kernel.running.walls import wall_of
from pybox_kernel.safe_display.text import safe_name, safe_text


def error(kind: Any, what: str = "") -> ProgramError:
    return ProgramError(safe_name("E"), safe_text(""), safe_text(""), About(kind, safe_name(what)))


def test_no_error_and_an_error_that_met_nothing_have_no_wall() -> None:
    assert wall_of(None, {}) is None
    assert wall_of(ProgramError(safe_name("E"), safe_text(""), safe_text("")), {"df": 1}) is None


@pytest.mark.parametrize("kind", ["module", "file", "network", "input"])
def test_what_the_exception_met_is_the_wall(kind: Any) -> None:
    assert wall_of(error(kind, "x"), {"x": 1}) == Wall(kind=kind, what="x", cell=None)


@pytest.mark.parametrize("name", ["_", "__", "___", "_1", "_i", "_ii", "_i12", "In", "Out", "_oh"])
def test_the_names_of_ipythons_history_are_a_wall_in_a_notebook(name: str) -> None:
    assert wall_of(error("name", name), {}, "on") == Wall(kind="name", what=name, cell=None, why_missing="history")
    assert wall_of(error("name", name), {}) is None
    missing = {name: Missing(2, "failed")}
    assert wall_of(error("name", name), {name: 2}, "on", missing) == Wall(
        kind="name", what=name, cell=2, why_missing="failed"
    )


def test_a_name_is_a_wall_only_if_an_earlier_cell_defined_it() -> None:
    assert wall_of(error("name", "df"), {"df": 3}) == Wall(kind="name", what="df", cell=3)
    assert wall_of(error("name", "dff"), {"df": 3}) is None
