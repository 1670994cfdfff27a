r"""Markdown of a stranger's with nothing in it that could act or be fetched: it is shown as the text it is.

Where markup could begin a space is put between its first characters: ``<img`` becomes ``< img``, ``](`` becomes
``] (``. That is done everywhere, in code and in formulas too. So it does not matter how a page's Markdown, its HTML and
its formulas understand the text, nor whether one of them is read twice; and a program in a block of code, of Python at
least, still means the same. What is left is headings, lists, emphasis, tables, code, and formulas of known commands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from pybox_kernel.classroom.formula_words import COMMANDS, ENVIRONMENTS
from pybox_kernel.safe_display.text import safe_text, without_colour

__all__ = ["LONGEST", "Inert", "Kind", "dense", "inert"]

LONGEST: Final = 64 << 10
"""Characters of one text. A page takes seconds for more, and quadratic time for some."""
QUOTED: Final = 120

Kind = Literal["html", "pictures", "links", "addresses", "codes", "formulas", "diagrams", "cut"]


class Inert(NamedTuple):
    text: str
    found: Sequence[tuple[Kind, str]]
    """What could have acted: its kind, and its beginning, which is not safe to show as it is."""


GAP: Final = re.compile(
    r"""
    (?P<html>     (?<=<)(?=[A-Za-z/!?]) )
  | (?P<picture>  (?<=!)(?=\[) )
  | (?P<links>    (?<=\])(?=[(:]) )
  | (?P<addresses>(?<=://)(?=\S) | (?<=[Ww][Ww][Ww]\.)(?=\S) | (?<=[\w.+@-])(?=@) )
  | (?P<codes>    (?<=&)(?=[#A-Za-z]) )
  | (?P<formulas> (?<=\\)(?=(?P<command>[A-Za-z]{2,})(?:[ ]?\{(?P<environment>[A-Za-z]*\*?)\})?) )
  | (?P<diagrams> (?: (?<=```)(?=(?P<info>[^`\n]+)(?:\n|\Z)) | (?<=~~~)(?=(?P<info2>[^~\n][^\n]{0,99})) ) )
    """,
    re.VERBOSE,
)
WITH_ADDRESS: Final = {
    "links": re.compile(r"[(:][ \t]*\S*"),
    "html": re.compile(r"[^>\n]{0,2000}"),
}
"""How far from where it begins such a thing has an address of its own."""
MARK: Final = re.compile(r"[*_\[\]`~$\\]")
MOST_MARKS: Final = 1500
"""In one paragraph, list or table."""
MOST_MARKS_IN_ALL: Final = 6000
LIST_MARK: Final = r"(?:>|[-*+](?=[ \t])|[0-9]{1,9}[.)](?=[ \t]))"
NESTED: Final = re.compile(rf"^(?:[ \t]*{LIST_MARK}){{20}}|^[ \t>]{{60,}}{LIST_MARK}|[ \t]{{500}}", re.MULTILINE)
FORMULA: Final = re.compile(r"\$|\\[(\[]|\\begin")
LANGUAGE: Final = re.compile(r"text .*|(?!mermaid)[a-z0-9+#.-]{1,20}", re.IGNORECASE)
"""A block of code whose first line says anything else could be drawn by a program of the page's."""


def dense(text: str) -> bool:
    """Whether a page would take long to lay it out, or for ever: with marks in one another without end."""
    blocks = [len(MARK.findall(block)) for block in re.split(r"\n[ \t]*\n", text)]
    return max(blocks) > MOST_MARKS or sum(blocks) > MOST_MARKS_IN_ALL or NESTED.search(text) is not None


def inert(text: str) -> Inert:
    """``text`` is Markdown from anywhere. What is returned has no hidden characters, and is Markdown still."""
    found: list[tuple[Kind, str]] = []
    if len(text) > LONGEST:
        found.append(("cut", text[LONGEST:]))
        text = text[:LONGEST]
    text = without_colour(safe_text(text))
    formula = FORMULA.search(text) is not None
    parts: list[str] = []
    done = told_to = 0
    for gap in GAP.finditer(text):
        kind, put = reason(gap, formula)
        if kind is None:
            continue
        at = gap.start()
        parts += (text[done:at], put)
        done = at
        if kind != "addresses" or at >= told_to:  # one in a link was told with that
            found.extend(told(kind, text, at))
        if kind in WITH_ADDRESS and (target := WITH_ADDRESS[kind].match(text, at)):
            told_to = max(told_to, target.end())
    return Inert("".join([*parts, text[done:]]), found)


def reason(gap: re.Match[str], formula: bool) -> tuple[str | None, str]:
    """What kind of thing begins here, and what is put in; no kind where it may stay as it is."""
    kind = gap.lastgroup
    if gap["command"] is not None:
        command, environment = gap["command"], gap["environment"]
        known = environment in ENVIRONMENTS if command in ("begin", "end") else command in COMMANDS
        return ("formulas", " ") if formula and not known else (None, "")
    if info := gap["info"] or gap["info2"]:
        plain = not info.strip() or LANGUAGE.fullmatch(info.strip())
        return (None, "") if plain else ("diagrams", "text ")
    return kind, " "


def told(kind: str, text: str, at: int) -> Sequence[tuple[Kind, str]]:
    begin = at - 1
    if kind == "picture":  # told where its address begins
        return ()
    if kind == "links":
        begin = max(at - QUOTED, 0)
        begin = max(begin, *(text.rfind(end, begin, at) + 1 for end in "\n["))
        begin -= text[max(begin - 1, 0)] == "["
        if text[begin - 1 : begin + 1] == "![":
            kind, begin = "pictures", begin - 1
    elif kind in ("addresses", "diagrams"):
        begin = max(at - QUOTED // 2, 0)
        begin = max(begin, *(text.rfind(end, begin, at) + 1 for end in " \n\t"))
    return ((kind, text[begin : begin + QUOTED].partition("\n")[0]),)  # type: ignore[return-value]
