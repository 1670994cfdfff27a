"""A receipt as static HTML: folded to one line; readable on light and dark pages, and without its styles.

No script, nothing remote, no ids. Notebook pages drop ``<style>``, and JupyterLab, in a notebook it does not
trust, all but a list of properties and of forms for their values: its sanitizer knows neither ``var()`` nor
grids. So styles stand inline and keep to that list. Colours are fixed ones that can be told apart on white and
on black; text has the page's own colour; each bar stands beside its amount in words.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Final

from pybox_kernel.render.words import SEEN, words
from pybox_kernel.safe_display.text import safe_name, safe_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybox_kernel.receipt.model import Receipt
    from pybox_kernel.render.words import Difference, Meter, StepBar, Tone, Words

__all__ = ["notice_html", "render_html"]

COLOURS: Final[dict[Tone, str]] = {"ok": "#2da44e", "warn": "#9a6700", "stop": "#8250df", "bad": "#cf222e"}
GREY: Final = "#999"
PALE: Final = "#8884"
CLEAR: Final = "#0000"
AT_LIMIT: Final = 0.95
UNBROKEN: Final = 16
QUIET: Final = "style='cursor:pointer;opacity:0.75'"


def render_html(receipt: Receipt, *, with_json: bool = True) -> str:
    """One ``<details>`` element. Its last fold holds the receipt's JSON or, for a file that is to stay small, only
    what identifies the run."""
    told = words(receipt)
    colour = COLOURS[told.tone]
    calm = colour if told.tone == "ok" else GREY
    rows = []
    for section in told.sections:
        parts = [escape(" ".join(section.sentences))]
        if section.heading == SEEN:
            parts += map(difference, told.differences)
            parts += (meter(found, calm, colour) for found in told.meters)
        rows.append(row(section.heading, parts))
    if told.steps:
        rows.append(row("Step by step", (step(found, colour) for found in told.steps)))
    ground = "#88888812" if told.tone == "ok" else f"{colour}1f"
    last = json(receipt) if with_json else identity(receipt)
    return (
        f"<details class='pybox pybox-{told.tone} mathjax_ignore tex2jax_ignore' "
        f"style='border-left:4px solid {colour};background:{ground};"
        "padding:4px 10px;font-size:13px;line-height:1.5'>"
        f"{summary(told, colour)}<dl style='margin:8px 0 0'>{''.join(rows)}</dl>{last}</details>"
    )


def notice_html(text: str) -> str:
    """A word of PyBox's own, in the look of a receipt."""
    style = f"border-left:4px solid {GREY};background:#88888812;padding:4px 10px;font-size:13px;line-height:1.5"
    return f"<div class='pybox mathjax_ignore tex2jax_ignore' style='{style}'>{escape(text)}</div>"


def escape(text: str) -> str:
    """Text for an element. A page's MathJax would typeset ``$...$`` and ``\\begin`` in it, with links and colours of
    the program's choice. It looks for them within one element, so what they begin with stands in one of its own. The
    classes of the whole receipt tell MathJax 3 and 2 the same, where a page keeps classes."""
    return re.sub(r"[$\\]", lambda found: f"<span>{found[0]}</span>", html.escape(text))


def summary(told: Words, colour: str) -> str:
    """A clean run is quiet. Any other has its verdict on a ground of its own, which reads on every page."""
    verdict = escape(told.verdict)
    if told.tone == "ok":
        verdict = f"<b><span style='color:{colour}'>{told.icon}</span> {verdict}</b>"
    else:
        style = f"background:{colour};color:#fff;padding:1px 7px;border-radius:3px"
        verdict = f"<b style='{style}'>{told.icon} {verdict}</b>"
    notes = (note.replace(" ", "\xa0") if len(note) < UNBROKEN else note for note in told.notes)
    tail = f"<span style='opacity:0.75'>{escape(told.joint + ' · '.join(notes))}</span>"
    return f"<summary style='cursor:pointer'>{verdict}{tail}</summary>"


def row(heading: str, parts: Iterable[str]) -> str:
    """Two columns by a float, against JupyterLab's own, which gives the heading a fifth of the width."""
    return (
        f"<dt style='float:left;width:auto;opacity:0.75'><b>{escape(heading)}</b></dt>"
        f"<dd style='float:none;width:auto;margin:0 0 6px 11em'>{'<br>'.join(parts)}</dd>"
    )


def difference(found: Difference) -> str:
    setting, wanted, actual = map(escape, found)
    return f"<b>{setting}</b>: wanted {wanted}; found <b>{actual}</b>"


def meter(found: Meter, calm: str, at_limit: str) -> str:
    full = found.fraction or 0.0
    drawn = bar(f"{at_limit if full >= AT_LIMIT else calm} {full:.0%},{PALE} 0")
    return f"{drawn}{escape(found.name)}: {escape(found.value)}"


def step(found: StepBar, colour: str) -> str:
    start = min(found.start, 0.99)
    end = max(found.start + found.length, start + 0.01)
    before = f"{CLEAR} {start:.0%}," if start >= 0.005 else ""
    drawn = bar(f"{before}{colour if found.is_program else GREY} 0 {end:.0%},{CLEAR} 0")
    text = f"{escape(found.name)}: {escape(found.duration)}"
    return f"{drawn}<b>{text}</b>" if found.is_program else f"{drawn}{text}"


def bar(stops: str) -> str:
    """Only drawn: what it shows always stands behind it in words."""
    style = "display:inline-block;width:10em;height:7px;background:linear-gradient"
    return f"<i style='{style}(90deg,{stops})'></i> "


def json(receipt: Receipt) -> str:
    """ASCII in an element, where a quotation mark is as safe as its name and shorter. A click selects all of it."""
    text = html.escape(safe_text(receipt.to_json(indent=2)), quote=False)
    style = "white-space:pre-wrap;word-break:break-all;font-size:11px;max-height:24em;overflow:auto;user-select:all"
    return f"<details><summary {QUIET}>The same as JSON</summary><pre style='{style}'>{text}</pre></details>"


def identity(receipt: Receipt) -> str:
    text = escape(safe_name(f"Run {receipt.run.id}, of the source with sha256 {receipt.run.source_sha256}", 400))
    style = "word-break:break-all"
    return f"<details><summary {QUIET}>Which run</summary><div style='{style}'>{text}</div></details>"
