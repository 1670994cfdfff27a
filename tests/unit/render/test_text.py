"""The receipt in a terminal: its width, its colours, and nothing that a terminal obeys."""

from __future__ import annotations

import re

import pytest

from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.text import columns, render_full, render_short, wrapped
from pybox_kernel.safe_display.text import safe_text
from tests.receipts import HOSTILE, hostile, samples

COLOUR = re.compile(r"\x1b\[[0-9;]+m")


def every_rendering(receipt: Receipt, width: int = 100, colour: bool = False) -> list[str]:
    return [render(receipt, width=width, colour=colour) for render in (render_short, render_full)]


@pytest.mark.parametrize("width", [0, 60, 77, 100, 500])
def test_no_line_is_wider_than_asked_nor_than_100_columns(width: int) -> None:
    for sample in [*samples().values(), *hostile(), *hostile("界" * 300), *hostile("ab " * 99)]:
        for text in every_rendering(sample, width):
            assert max(map(columns, text.split("\n"))) <= min(max(width, 60), 100)


def test_a_clean_run_is_one_line() -> None:
    assert "\n" not in render_short(samples()["clean"])


def test_colour_adds_only_colour() -> None:
    for sample in samples().values():
        for plain, coloured in zip(every_rendering(sample), every_rendering(sample, colour=True), strict=True):
            assert "\x1b" not in plain
            assert COLOUR.sub("", coloured) == plain
            assert COLOUR.search(coloured)
            assert COLOUR.findall(coloured)[-1] == "\x1b[0m"


def test_the_verdict_and_not_its_notes_are_coloured() -> None:
    shown = render_short(samples()["memory"], colour=True)
    assert shown.startswith(
        "\x1b[1;33m⚠ Ended without an error code, but part of it was killed for memory\x1b[0m · results"
    )


def test_no_text_of_a_receipt_reaches_the_terminal_as_a_control() -> None:
    for sample in hostile():
        for text in every_rendering(sample):
            assert safe_text(text) == text
            assert "\x1b" not in text
            assert HOSTILE not in text


def test_the_hostile_text_is_there_escaped() -> None:
    shown = "".join(text for sample in hostile() for text in every_rendering(sample))
    assert "\\x1b[2J\\u202e" in shown


def test_words_are_wrapped_and_long_ones_cut() -> None:
    assert wrapped("one two three", 7) == ["one two", "three"]
    assert wrapped("  indented stays", 10) == ["  indented", "stays"]
    assert wrapped("abcdefghij kl", 4) == ["abcd", "efgh", "ij", "kl"]
    assert wrapped("界界界 x", 4) == ["界界", "界 x"]
