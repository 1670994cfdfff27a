"""What a program shows, drawn for the page: inside the host's frame, inert, whole, and readable without its styles."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import pytest

from pybox_kernel.render.display import LABEL, bundle
from pybox_kernel.render.html import render_html
from pybox_kernel.safe_display.displays import CleanHtml, Display, Picture, Table
from pybox_kernel.safe_display.text import SafeText
from tests.receipts import samples
from tests.unit.render.test_html import COLOUR, LENGTH
from tests.unit.render.test_html import STYLES as RECEIPT_STYLES
from tests.unit.safe_display.test_pictures import PLAIN

STYLES = {
    **RECEIPT_STYLES,
    "border": rf"{LENGTH} dashed {COLOUR}",
    "max-width": r"\d+%",
    "text-align": "left|right|center",
}
"""As for receipts, of what JupyterLab keeps in a notebook it does not trust."""
STRIPPED = {"role", "aria-label"}
"""Attributes that it does not keep."""
ATTRIBUTES = {"img": {"alt", "src"}, "td": {"colspan"}}


class Frame(HTMLParser):
    """One framed display: fails at what it may not hold."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text = ""
        self.rows: list[list[str]] = []
        self.pictures: list[dict[str, str | None]] = []
        self.aligned: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []
        assert source.startswith("<figure class='pybox-shown mathjax_ignore tex2jax_ignore'")
        assert source.endswith("</figure>")
        assert source.count("<figure") == source.count("</figure>") == 1

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert set(found) <= {"class", "style"} | STRIPPED | ATTRIBUTES.get(tag, set())
        for declaration in filter(None, (found.get("style") or "").split(";")):
            name, _, value = declaration.partition(":")
            assert re.fullmatch(STYLES[name], value), declaration
        if tag == "img":
            self.pictures.append(found)
        else:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.aligned.append((found["style"] or "").rpartition("text-align:")[2])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def safe(rows: list[list[str]]) -> tuple[tuple[SafeText, ...], ...]:
    return tuple(tuple(map(SafeText, row)) for row in rows)


def table(**changes: object) -> Table:
    found = {
        "columns": safe([["name", "price"]]),
        "index_names": safe([[""]])[0],
        "index": safe([["0"], ["1"], ["998"], ["999"]]),
        "rows": safe([["tea", "1.5"], ["milk", "2.0"], ["rice", "3.0"], ["salt", "0.5"]]),
        "numeric": (False, True),
        "shape": (1000, 2),
        "row_gap": 2,
        "column_gap": None,
        **changes,
    }
    return Table(**found)  # type: ignore[arg-type]


def drawn(**forms: object) -> Frame:
    return Frame(bundle(Display(False, SafeText("T"), **forms))["text/html"])  # type: ignore[arg-type]


def test_text_alone_has_no_frame() -> None:
    assert bundle(Display(True, SafeText("six"))) == {"text/plain": "six"}


def test_a_picture_stands_in_the_frame_and_is_told_in_words() -> None:
    picture = Picture("image/png", 640, 480, PLAIN)
    found = bundle(Display(False, SafeText("<Figure>"), picture=picture))
    assert found["text/plain"] == "<Figure>\n[Picture from the program: 640 × 480, PNG]"
    frame = Frame(found["text/html"])
    assert frame.text == LABEL
    [shown] = frame.pictures
    assert shown["alt"] == "Picture from the program, 640 × 480"
    start, _, data = (shown["src"] or "").partition(",")
    assert start == "data:image/png;base64"
    assert base64.b64decode(data) == PLAIN
    jpeg = Picture("image/jpeg", 1, 2, b"")
    assert bundle(Display(False, SafeText(""), picture=jpeg))["text/plain"] == "[Picture from the program: 1 × 2, JPEG]"


def test_html_stands_in_the_frame_as_it_is() -> None:
    found = bundle(Display(False, SafeText("T"), html=CleanHtml("<b>six</b>")))
    assert found["text/plain"] == "T"
    assert "<b>six</b>" in found["text/html"]
    assert Frame(found["text/html"]).text == f"{LABEL}six"


def test_a_table_is_drawn_with_its_gap_its_size_and_its_numbers_to_the_right() -> None:
    frame = drawn(table=table())
    assert frame.rows == [
        ["", "name", "price"],
        ["0", "tea", "1.5"],
        ["1", "milk", "2.0"],
        ["… 996 rows left out …"],
        ["998", "rice", "3.0"],
        ["999", "salt", "0.5"],
    ]
    assert "1,000 rows × 2 columns" in frame.text
    assert frame.aligned[:6] == ["left", "left", "right"] * 2


def test_what_the_columns_hold_stands_below_their_names() -> None:
    frame = drawn(table=table(dtypes=safe([["str", "float64"]])[0], shape=(4, 9), row_gap=None, column_gap=1))
    assert frame.rows[:3] == [["", "name", "…", "price"], ["", "str", "…", "float64"], ["0", "tea", "…", "1.5"]]


def test_columns_that_were_left_out_are_marked_where_they_were() -> None:
    frame = drawn(table=table(shape=(4, 32), row_gap=None, column_gap=1))
    assert frame.rows[:2] == [["", "name", "…", "price"], ["0", "tea", "…", "1.5"]]
    assert len(frame.rows) == 5
    assert "4 rows × 32 columns, 30 columns left out" in frame.text


@pytest.mark.parametrize(
    ("changes", "rows"),
    [
        ({"shape": (4, 2), "row_gap": 2}, 5),
        ({"shape": (9, 2), "row_gap": None}, 6),
        ({"shape": (9, 2), "row_gap": 0}, 6),
        ({"shape": (4, 9), "row_gap": None, "column_gap": None}, 5),
    ],
)
def test_what_is_missing_is_marked_whatever_the_program_says_of_gaps(changes: dict[str, object], rows: int) -> None:
    frame = drawn(table=table(**changes))
    assert len(frame.rows) == rows
    assert ("…" in frame.text) is (changes["shape"] != (4, 2))


def test_levels_of_header_and_index_are_drawn_in_full() -> None:
    frame = drawn(
        table=table(
            columns=safe([["a", "a"], ["x", "y"]]),
            index_names=safe([["year", "month"]])[0],
            index=safe([["2030", "1"], ["2030", "2"], ["2030", "3"], ["2031", "1"]]),
            shape=(4, 2),
        )
    )
    assert frame.rows[:3] == [["", "", "a", "a"], ["year", "month", "x", "y"], ["2030", "1", "tea", "1.5"]]


def test_names_of_the_columns_stand_before_them_and_those_of_the_index_below() -> None:
    names = {"column_names": safe([["kind"]])[0], "index_names": safe([["year"]])[0], "shape": (4, 2)}
    assert drawn(table=table(**names)).rows[:3] == [["kind", "name", "price"], ["year", "", ""], ["0", "tea", "1.5"]]
    alone = {**names, "index_names": safe([[""]])[0]}
    assert drawn(table=table(**alone)).rows[:2] == [["kind", "name", "price"], ["0", "tea", "1.5"]]
    bare = {**names, "index_names": (), "index": ((),) * 4}
    assert drawn(table=table(**bare)).rows[:2] == [["name", "price"], ["tea", "1.5"]]


def test_an_empty_table_and_one_without_index_are_drawn() -> None:
    empty = table(columns=((),), index_names=(), index=(), rows=(), numeric=(), shape=(0, 0), row_gap=None)
    assert "0 rows × 0 columns" in drawn(table=empty).text
    bare = table(columns=(), index_names=(), index=((),) * 4, shape=(4, 2), row_gap=None)
    assert drawn(table=bare).rows[0] == ["tea", "1.5"]


def test_no_text_of_a_table_becomes_markup_or_mathematics() -> None:
    evil = "</td></table></figure><script>alert(1)</script>'\"&amp;$x$\\(y\\)"
    names = safe([[evil, evil]])
    frame = drawn(table=table(columns=names, dtypes=names[0], index=safe([[evil]] * 4), rows=names * 4))
    assert frame.rows[1] == ["", evil, evil]
    assert frame.rows[2] == [evil] * 3
    page = bundle(Display(False, SafeText(""), table=table(rows=safe([[evil, evil]] * 4))))["text/html"]
    rest = page.replace("<span>$</span>", "").replace("<span>\\</span>", "")
    assert "$" not in rest
    assert "\\" not in rest


def test_the_frame_is_nothing_like_a_receipt() -> None:
    page = bundle(Display(False, SafeText(""), html=CleanHtml("x")))["text/html"]
    for receipt in samples().values():
        shown = render_html(receipt)
        assert "dashed" not in shown
        assert "<figure" not in shown
    assert "<details" not in page
    assert "border-left" not in page
