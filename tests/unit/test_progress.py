"""Long work as it is shown: lines where nobody watches, and a moving line on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from pybox_kernel.progress import Steps


def shown(*steps: str, terminal: bool, error: bool = False) -> str:
    file = io.StringIO()
    console = Console(
        file=file, force_terminal=terminal, width=60, highlight=False, markup=False, soft_wrap=True, color_system=None
    )
    try:
        with Steps(console) as say:
            for step in steps:
                say(step)
            if error:
                raise RuntimeError
    except RuntimeError:
        assert error
    return file.getvalue()


def test_where_nobody_watches_each_step_is_one_plain_line() -> None:
    long = "Fetching " + "x" * 100
    assert shown("Building [it]", long, terminal=False) == f"Building [it]\n{long}\n"


def test_on_a_terminal_each_step_stays_with_its_time_and_the_last_is_marked_when_it_failed() -> None:
    text = shown("Fetching", "Building", terminal=True)
    assert "✓   0.0 s  Fetching\n" in text
    assert "✓   0.0 s  Building\n" in text
    assert "■   0.0 s  Building\n" in shown("Fetching", "Building", terminal=True, error=True)


@pytest.mark.parametrize("terminal", [True, False])
def test_what_an_index_calls_its_files_cannot_act_in_a_terminal(terminal: bool) -> None:
    text = shown("Fetching a\x1b]0;title\x07 [red]b[/red]", terminal=terminal)
    assert "]0;title" not in text
    assert "[red]b[/red]" in text
