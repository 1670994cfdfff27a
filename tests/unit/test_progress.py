"""Long work as it is shown: lines where nobody watches, and a moving line on a terminal."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from pybox_kernel.progress import Steps, Waiting


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


def test_what_is_no_terminal_is_none_whatever_jupyter_tells_the_programs_it_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Steps() as say:
        say("Building")
    assert capsys.readouterr().out == "Building\n"


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


def waited(seconds: float, *, terminal: bool) -> str:
    file = io.StringIO()
    with Waiting(
        "Making a box", Console(file=file, force_terminal=terminal, width=60, _environ={"TERM": "xterm"}), after=0.05
    ) as waiting:
        waiting.before(3)
        time.sleep(seconds)
        waiting.over()
        file.write("OUTPUT")
        time.sleep(0.2)
    return file.getvalue()


def test_a_long_wait_is_shown_on_a_terminal_and_gone_before_the_programs_first_word() -> None:
    shown, _, after = waited(0.5, terminal=True).partition("OUTPUT")
    assert "3 before it" in shown
    assert shown.endswith("\x1b[2K"), "its line is cleared"
    assert after == ""


def test_a_short_wait_and_one_that_nobody_watches_leave_no_trace() -> None:
    assert waited(0.0, terminal=True) == "OUTPUT"
    assert waited(0.3, terminal=False) == "OUTPUT"


def test_colours_that_a_notebook_forces_make_no_terminal_of_the_waiting_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with Waiting("Making a box", after=0.01):
        time.sleep(0.2)
    assert capsys.readouterr().err == ""
