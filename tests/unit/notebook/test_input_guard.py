"""What IPython is given to run, with the guard on and off."""

from __future__ import annotations

import pytest

from pybox_kernel.notebook.cell_error import PyBoxCellError
from pybox_kernel.notebook.input_guard import InputGuard


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def guard(told: list[str]) -> InputGuard:
    return InputGuard(lambda name: name == "time", told.append)


def through(guard: InputGuard, cell: str) -> str:
    return "".join(guard(cell.splitlines(keepends=True)))


@pytest.mark.parametrize(
    ("cell", "run"),
    [
        ("%%pybox\nx\n", "%%pybox \nx\n"),
        ("%%pybox\t--timeout\t5  \nx\n", "%%pybox --timeout\t5\nx\n"),
        ("# c\n\n%%pybox -i a\nx\n", "%%pybox -i a\n# c\n\nx\n"),
        ("%%pybox --help\n", "%%pybox --help\n\n"),
        ("%%host\n\n%%time\nx\n", "%%time\nx\n"),
        ("%%host\n", ""),
        ("%%time\n%%pybox\nx\n", "%%time\n%%pybox\nx\n"),
        ("x\n", "x\n"),
        ("%pybox guard on\n", "%pybox guard on\n"),
    ],
)
@pytest.mark.parametrize("on", [False, True])
def test_what_is_run(guard: InputGuard, cell: str, run: str, on: bool) -> None:
    guard.on = on
    sealed = on and cell == "x\n"
    assert through(guard, cell) == ("%%pybox_guarded\nx\n" if sealed else run)


def test_a_near_miss_is_an_error_that_says_what_to_write(guard: InputGuard) -> None:
    with pytest.raises(PyBoxCellError) as caught:
        through(guard, "%pybox\nx\n")
    assert str(caught.value) == "Nothing was run. There is a program below `%pybox`, which is for commands."
    assert "Put `%%pybox`, just so, into the first line" in "".join(caught.value._render_traceback_())


def test_what_a_cell_of_this_computer_has_run_is_not_sealed_and_what_comes_after_is(
    guard: InputGuard, told: list[str]
) -> None:
    guard.on = True
    through(guard, "%%host\n%%time\nx\n")
    guard.begun()
    assert told == ["Not sealed: this cell begins with `%%host`, and runs on this computer."]
    assert through(guard, "x\n") == "x\n"
    guard.begun()
    assert through(guard, "y\n") == "y\n"
    guard.ended()
    guard.ended()
    assert through(guard, "x\n").startswith("%%pybox_guarded\n")
    assert len(told) == 1


def test_only_the_outermost_cell_can_be_one_of_this_computer(guard: InputGuard) -> None:
    guard.on = True
    through(guard, "%%pybox\nx\n")
    guard.begun()
    with pytest.raises(PyBoxCellError, match="inside of another cell"):
        through(guard, "%%host\nx\n")


def test_it_may_be_set_up_by_a_cell_that_it_did_not_see_begin(guard: InputGuard) -> None:
    guard.ended()
    through(guard, "%%host\nx\n")
    guard.begun()
    assert through(guard, "y\n") == "y\n"
