from __future__ import annotations

import pytest

from pybox_kernel.commands import COMMANDS, Command, command_of


@pytest.mark.parametrize(
    "code", ["%pybox summary", "\n  %pybox   summary  \n", "# all of them\n%pybox summary\n# done"]
)
def test_a_command_is_a_cell_of_its_own(code: str) -> None:
    assert command_of(code) == Command("summary")


@pytest.mark.parametrize(
    "code",
    [
        "",
        "# %pybox summary",
        "%pybox summary\nprint(1)",
        "print('%pybox summary')",
        "%pyboxsummary",
        "%%pybox",
        "x = 1",
    ],
)
def test_anything_else_is_a_program(code: str) -> None:
    assert command_of(code) is None


@pytest.mark.parametrize(
    ("code", "mistake"),
    [
        ("%pybox", "%pybox wants a word more: `%pybox summary` shows all receipts of this session, as one table."),
        ("%pybox sumary", "There is no `%pybox sumary`. Did you mean `%pybox summary`?"),
        (
            "%pybox xyz",
            "There is no `%pybox xyz`. `%pybox summary` shows all receipts of this session, as one table.",
        ),
        ("%pybox summary --all", "`%pybox summary` takes nothing more."),
    ],
)
def test_a_command_that_is_none_says_what_is_meant(code: str, mistake: str) -> None:
    assert command_of(code) == Command("", mistake)


def test_every_command_is_understood() -> None:
    for name in COMMANDS:
        assert command_of(f"%pybox {name}") == Command(name)
