"""A receipt as plain text, for a terminal and for clients that show nothing else."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from pybox_kernel.render.words import SEEN, withheld, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pybox_kernel.receipt.model import Receipt
    from pybox_kernel.render.words import Difference, Meter, StepBar, Tone, Words

__all__ = ["render_full", "render_short"]

WIDEST: Final = 100
NARROWEST: Final = 60
SHORT_LABEL: Final = 11
LONG_LABEL: Final = 19
BAR: Final = 20
MOST_WITHHELD: Final = 3
"""Kinds of what was withheld that a short receipt names."""
COLOURS: Final[dict[Tone, str]] = {"ok": "32", "warn": "1;33", "stop": "1;35", "bad": "1;31"}


def render_short(receipt: Receipt, *, width: int = WIDEST, colour: bool = False) -> str:
    """The folded line; where something is unusual, also what was seen, what is not known, what to try, and what was
    withheld.

    Lines of at most ``width`` columns, which is taken as 60 to 100; no newline at the end.
    """
    told = words(receipt)
    width = min(max(width, NARROWEST), WIDEST)
    lines = headline(told, width, colour)
    for section in told.main:
        lines += row(section.heading, section.sentences, SHORT_LABEL, width, colour)
        if section.heading == "seen":
            lines += row("differs", map(differs, told.differences), SHORT_LABEL, width, colour)
    lines += row("withheld", map(withheld, receipt.said.withheld[:MOST_WITHHELD]), SHORT_LABEL, width, colour)
    return "\n".join(lines)


def render_full(receipt: Receipt, *, width: int = WIDEST, colour: bool = False) -> str:
    """The whole receipt, except its JSON. Widths as for ``render_short``."""
    told = words(receipt)
    width = min(max(width, NARROWEST), WIDEST)
    lines = headline(told, width, colour)
    for section in told.sections:
        lines += ["", *row(section.heading, section.sentences, LONG_LABEL, width, colour)]
        if section.heading == SEEN:
            lines += row("", map(differs, told.differences), LONG_LABEL, width, colour)
            lines += row("", map(meter_line, told.meters), LONG_LABEL, width, colour)
    if told.steps:
        lines += ["", *row("Step by step", map(step_line, told.steps), LONG_LABEL, width, colour)]
    return "\n".join(lines)


def headline(told: Words, width: int, colour: bool) -> list[str]:
    lines = wrapped(told.folded, width - 2)
    lines = [lines[0], *(f"  {line}" for line in lines[1:])]
    verdict = f"{told.icon} {told.verdict}"
    strong = verdict if lines[0].startswith(verdict) else lines[0]
    return [painted(strong, COLOURS[told.tone], colour) + lines[0].removeprefix(strong), *lines[1:]]


def row(label: str, texts: Iterable[str], label_width: int, width: int, colour: bool) -> list[str]:
    """A label, and beside it each text on lines of its own."""
    lines = [line for text in texts for line in wrapped(text, width - label_width - 2)]
    labels = [painted(f"{label:<{label_width}}", "2", colour), *[" " * label_width] * len(lines)]
    return [f"  {before}{line}" for before, line in zip(labels, lines, strict=False)]


def differs(found: Difference) -> str:
    return f"{found.setting}: wanted {found.wanted}; found {found.found}"


def meter_line(meter: Meter) -> str:
    full = 0 if meter.fraction is None else max(round(meter.fraction * BAR), meter.fraction > 0)
    return f"{meter.name:<16}{'█' * full:░<{BAR}} {meter.value}"


def step_line(step: StepBar) -> str:
    start = min(round(step.start * BAR), BAR - 1)
    length = max(1, min(round(step.length * BAR), BAR - start))
    bar = " " * start + ("█" if step.is_program else "▒") * length
    return f"{bar:<{BAR}} {step.duration:>8}  {step.name}"


def painted(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def columns(text: str) -> int:
    if text.isascii():
        return len(text)
    wide = unicodedata.east_asian_width
    return sum(2 if wide(character) in "WF" else 1 for character in text)


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` columns; unlike ``textwrap``, knows characters that are two columns wide."""
    lines: list[str] = []
    for word in re.findall(" *[^ ]+", text):
        if lines and columns(lines[-1] + word) <= width:
            lines[-1] += word
        else:
            lines += cut(word.lstrip() if lines else word, width)
    return lines


def cut(word: str, width: int) -> Iterator[str]:
    part = ""
    for character in word:
        if columns(part + character) > width:
            yield part
            part = ""
        part += character
    yield part
