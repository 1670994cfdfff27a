"""The static receipt: well-formed, inert, small, readable on light and dark pages, and with its styles taken away."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import pytest

from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.html import COLOURS, render_html
from pybox_kernel.render.words import words
from tests import receipts
from tests.receipts import HOSTILE, hostile, samples

TAGS = {"details", "summary", "dl", "dt", "dd", "div", "pre", "span", "b", "i", "br"}
# Of the properties and forms of values that JupyterLab keeps in a notebook it does not trust (its sanitizer.ts).
COLOUR = "(#[0-9a-f]{3,8})"
LENGTH = r"(0|\d+(px|em))"
STYLES = {
    "background": rf"{COLOUR}|linear-gradient\(90deg(,({COLOUR}( (\d+%|0)){{1,2}}))+\)",
    "border-left": rf"{LENGTH} solid {COLOUR}",
    "border-radius": LENGTH,
    "color": COLOUR,
    "cursor": "pointer",
    "display": "inline-block",
    "float": "left|none",
    "font-size": LENGTH,
    "height": LENGTH,
    "line-height": r"\d\.\d",
    "margin": rf"{LENGTH}( {LENGTH}){{0,3}}",
    "max-height": LENGTH,
    "opacity": r"0\.\d+",
    "overflow": "auto",
    "padding": rf"{LENGTH}( {LENGTH}){{0,3}}",
    "white-space": "pre-wrap",
    "width": rf"{LENGTH}|auto",
    "word-break": "break-all",
}
ONLY_FOR_COMFORT = {"user-select"}


class Page(HTMLParser):
    """Fails at what a receipt may not hold; ``text`` is what is left without any style."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text = ""
        self.folds: list[bool] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        assert {name for name, _ in attrs} <= {"class", "style"}
        self.check_style(dict(attrs).get("style") or "")
        if tag == "details":
            self.folds.append("details" in self.open)
        if tag != "br":
            self.open.append(tag)
        if tag in ("br", "dt", "dd", "div", "pre", "summary"):
            self.text += "\n"

    def check_style(self, style: str) -> None:
        for declaration in filter(None, style.split(";")):
            name, _, value = declaration.partition(":")
            if name not in ONLY_FOR_COMFORT:
                assert name in STYLES, name
                assert re.fullmatch(STYLES[name], value), declaration

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", samples())
def test_a_receipt_is_inert_and_says_everything_without_its_styles(name: str) -> None:
    receipt = samples()[name]
    found = words(receipt)
    page = Page(render_html(receipt))
    assert page.folds == [False, True]
    text = page.text.replace("\xa0", " ")
    assert found.folded in text
    for section in found.sections:
        assert f"\n{section.heading}\n{' '.join(section.sentences)}" in text
    assert all(f"{meter.name}: {meter.value}" in text for meter in found.meters)
    assert all(f"{step.name}: {step.duration}" in text for step in found.steps)
    assert all(f"{d.setting}: wanted {d.wanted}; found {d.found}" in text for d in found.differences)


def test_the_json_in_it_is_the_receipt() -> None:
    for receipt in [*samples().values(), *hostile()]:
        found = re.search("<pre [^>]*>(.*)</pre>", render_html(receipt), re.DOTALL)
        assert found is not None
        assert Receipt.from_json(html.unescape(found[1])) == receipt


def test_without_its_json_it_still_says_which_run_it_was() -> None:
    receipt = samples()["clean"]
    shown = render_html(receipt, with_json=False)
    assert "<pre" not in shown
    assert receipt.run.id in shown
    assert receipt.run.source_sha256 in shown


def test_no_text_of_a_receipt_becomes_markup_or_a_control() -> None:
    for with_json in (True, False):
        for receipt in hostile():
            shown = render_html(receipt, with_json=with_json)
            assert HOSTILE not in shown
            assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f]", shown)
            Page(shown)


def test_the_hostile_text_is_there_escaped() -> None:
    shown = "".join(render_html(receipt, with_json=False) for receipt in hostile())
    read = shown.replace("<span>\\</span>", "\\")  # kept from MathJax, as the next test says
    assert html.escape("</pre><script>alert(1)</script>'\"&amp;\\x1b[2J\\u202e") in read


def test_the_bars_are_as_long_as_the_words_say() -> None:
    shown = render_html(samples()["clean"])
    assert "linear-gradient(90deg,#2da44e 14%,#8884 0)'></i> time: 0.3 of 2 s" in shown
    assert "linear-gradient(90deg,#2da44e 16%,#8884 0)'></i> memory, most: 21 of 128 MB" in shown
    shown = render_html(samples()["memory"])
    assert f"linear-gradient(90deg,{COLOURS['warn']} 100%,#8884 0)'></i> memory, most: 128 of" in shown
    assert "linear-gradient(90deg,#999 70%,#8884 0)'></i> time: 1.4 of 2 s" in shown


def test_every_verdict_can_be_read_and_its_colour_seen_on_white_and_on_black() -> None:
    for tone, colour in COLOURS.items():
        assert tone == "ok" or contrast(colour, "#ffffff") >= 4.5
        assert contrast(colour, "#ffffff") >= 3
        assert contrast(colour, "#111111") >= 3


def test_a_clean_run_is_small() -> None:
    assert len(render_html(samples()["clean"], with_json=False).encode()) < 3600


def test_no_text_of_a_program_is_typeset_as_mathematics() -> None:
    name = r"$\href{javascript:alert(1)}{Ended normally}$ \(x\) \[x\] $$x$$ \begin{x}\end{x}"
    page = render_html(
        receipts.receipt(observed__end__exit_code=1, said__completed=False, said__error=name), with_json=False
    )
    assert "mathjax_ignore tex2jax_ignore" in page
    assert "href{javascript" in page
    without = page.replace("<span>$</span>", "").replace("<span>\\</span>", "")
    assert "$" not in without
    assert "\\" not in without
