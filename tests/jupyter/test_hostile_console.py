"""The corpus of hostile outputs in a terminal, through ``jupyter console``."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.browser.hostile import CORPUS
from tests.jupyter.console import Console, console, plain

pytestmark = [pytest.mark.engine, pytest.mark.timeout(400), pytest.mark.usefixtures("in_advance")]

COLOUR: Final = re.compile(rb"\x1b\[([0-9;]*)m")
SEQUENCE: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|.?)", re.DOTALL)
CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
MARKS: Final = tuple("✓⚠◷✗■")
HARMLESS: Final = ("print('x')", "6 * 7", "display('x')", "1/0", "import os; os._exit(0)")


def sequences(written: bytes) -> set[bytes]:
    """The escape sequences but for colour."""
    return set(SEQUENCE.findall(COLOUR.sub(b"", written)))


def test_in_jupyter_console_nothing_but_colour_reaches_the_terminal(kernelspec: str) -> None:
    wrong = {}
    with console(kernelspec) as terminal:
        own = set[bytes]().union(*(sequences(terminal.run(source)) for source in HARMLESS))
        assert own <= {b"\x1b[?7h"}  # the terminal wraps its lines again
        for hostile in CORPUS:
            told = what_is_wrong(terminal, hostile.source, own)
            if told:
                wrong[hostile.name] = told
    assert wrong == {}


def what_is_wrong(terminal: Console, source: str, own: set[bytes]) -> list[str]:
    written = terminal.run(source)
    told = [repr(sequence) for sequence in sequences(written) - own]
    text = SEQUENCE.sub(b"", COLOUR.sub(b"", written)).decode("utf-8", "replace")
    told += [f"control {control!r}" for control in sorted(set(CONTROLS.findall(text)))]
    told += ["hidden text" for colour in COLOUR.findall(written) if b"8" in colour.split(b";")[:1]]
    return told if any(mark in text for mark in MARKS) else [*told, "no receipt"]


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_receipt_begins_a_line_of_its_own_whatever_was_printed_before_it(kernelspec: str, stream: str) -> None:
    with console(kernelspec) as terminal:
        written = terminal.run(f"import sys\nprint('this is no ', end='', file=sys.{stream})")
    assert any(line.startswith(MARKS) for line in plain(written).splitlines()), written
