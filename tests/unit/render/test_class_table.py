"""A report on many notebooks as text, HTML and CSV."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser

import pytest

from pybox_kernel.render.class_table import (
    CSV_HEADINGS,
    CellLine,
    ClassReport,
    NotGraded,
    Submission,
    to_csv,
    to_html,
    to_text,
)
from tests.receipts import HOSTILE

WELL = CellLine("1 [1]", "def f(n):", "well", "✓", "Ended normally", "0.3 of 2 s", "20 of 128 MB", "", "as made here")
STOPPED = CellLine("2 [2]", "while True: pass", "not well", "◷", "Stopped at its 2 s limit", "2.0 of 2 s", "", "",
    "as made here")  # fmt: skip
WITHHELD = WELL._replace(cell="3 [3]", notes="2 things withheld")
FORGED = WELL._replace(cell="4 [4]", mark="⚠", receipt="not made here", why="its receipt is not signed")
NEVER = CellLine("5", "f(3)", "never run", "·", "Never run")

REPORT = ClassReport(
    [
        Submission("ada", "ps1", "a.ipynb", (WELL, WELL._replace(cell="2 [2]"))),
        Submission("ben", "ps1", "a.ipynb", (WELL, STOPPED, WITHHELD, FORGED, NEVER)),
        Submission("cy", "ps1", "a.ipynb", (NEVER,)),
        Submission("dee", "", "b.ipynb", (), "It is not a notebook."),
    ],
    not_graded=[NotGraded("eve · ps1"), NotGraded("flo · ps1", "No notebook was submitted.")],
    left_out=["fay/a.ipynb: a link"],
)

TEXT = """\
4 notebooks of 4 students: 1 with nothing to look at, 3 to look at.

✓ ada · ps1 · a.ipynb: 2 ended normally
⚠ ben · ps1 · a.ipynb: 3 ended normally, 1 did not end normally, 1 never run; 1 receipt not to be believed
    cell 2 [2]  ◷ Stopped at its 2 s limit       2.0 of 2 s
    cell 3 [3]  ✓ Ended normally                 0.3 of 2 s  20 of 128 MB  2 things withheld
    cell 4 [4]  ⚠ its file says: Ended normally  0.3 of 2 s  20 of 128 MB  not made here: its receipt is not signed
    cell 5      · Never run
■ cy · ps1 · a.ipynb: no cell of it was run
■ dee · b.ipynb: It is not a notebook.

Cells are counted from the top, texts too; in brackets stands the number that Jupyter shows.
Never graded, so without a score (grade again; what was graded stays):
    eve · ps1: why is not known here; nbgrader says it when it is called again
    flo · ps1: No notebook was submitted.
Where no cell was run, the batch was cut off in that notebook, and nbgrader takes it for graded: \
`nbgrader autograde ASSIGNMENT --student NAME --force` runs it.
Not looked into: fay/a.ipynb: a link"""


def test_the_text_has_a_line_for_each_notebook_and_one_for_each_cell_that_a_person_has_to_look_at() -> None:
    assert to_text(REPORT) == TEXT


def test_of_a_notebook_that_is_in_no_course_it_is_not_said_that_nbgrader_takes_it_for_graded() -> None:
    assert "nbgrader" not in to_text(ClassReport([Submission("cy", "", "a.ipynb", (NEVER,))]))


def test_every_cell_can_be_had() -> None:
    assert to_text(REPORT, every_cell=True).count("\n    cell ") == 8


def test_a_notebook_with_many_cells_to_look_at_hides_no_other() -> None:
    text = to_text(ClassReport([Submission("ada", "", "a.ipynb", (STOPPED,) * 50)]))
    assert text.count("\n    cell ") == 40
    assert "\n    and 10 cells more, which --all has\n" in text


def test_where_no_receipt_can_be_believed_that_is_said_once() -> None:
    unknown = CellLine("2", "f()", "not known", "⚠", "Not known", receipt="no receipt", why="nothing vouches for it")
    found = Submission("ada", "", "a.ipynb", (FORGED, FORGED, unknown, NEVER))
    assert to_text(ClassReport([found])).splitlines()[2:] == [
        "■ ada · a.ipynb: nothing in it is known to be made here (its receipt is not signed; and 1 more);"
        " --all has what it says"
    ]


def test_a_report_on_nothing_says_so() -> None:
    assert to_text(ClassReport([])) == "0 notebooks of 0 students: nothing to look at."


def test_csv_has_a_line_for_each_cell_and_for_each_notebook_without_any() -> None:
    head, *rows = csv.reader(io.StringIO(to_csv(REPORT)))
    assert tuple(head) == CSV_HEADINGS
    assert len(rows) == 8 + 1 + 2
    assert {len(row) for row in rows} == {len(CSV_HEADINGS)}
    assert rows[5][:4] == ["ben", "ps1", "a.ipynb", "4 [4]"]
    assert rows[5][5:] == [
        "its file says: Ended normally", "0.3 of 2 s", "20 of 128 MB", "", "not made here", "its receipt is not signed",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["x=1;=1+1", "x; \"'=1+1", 'a";@A1', "a;;-1"])
def test_nor_where_it_parts_cells_by_semicolons(text: str) -> None:
    line = to_csv(ClassReport([Submission("ada", "", text, ())])).splitlines()[1]
    assert not any(part.strip(" \"'").startswith(("=", "@", "-")) and "'" not in part for part in line.split(";"))


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_no_text_in_csv_is_a_formula_to_a_spreadsheet(sign: str) -> None:
    text = f"{sign}cmd|' /C calc'!A0,\"\n{sign}1"
    cell = CellLine(*(text if name not in ("kind", "mark") else WELL[n] for n, name in enumerate(CellLine._fields)))
    found = Submission(text, text, text, (cell,))
    report = ClassReport([found, found._replace(cells=(), problem=text)], [NotGraded(text, text)])
    rows = list(csv.reader(io.StringIO(to_csv(report), newline="")))
    assert len(rows) == 4
    assert not [field for row in rows for field in row if field.startswith(sign)]


def test_the_page_has_no_script_no_link_and_nothing_remote_whatever_the_texts_are() -> None:
    cell = WELL._replace(**dict.fromkeys([name for name in CellLine._fields if name != "kind"], HOSTILE))
    found = Submission(HOSTILE, HOSTILE, HOSTILE, (cell,), HOSTILE)
    seen = Seen()
    seen.feed(to_html(ClassReport([found], [NotGraded(HOSTILE, HOSTILE)], [HOSTILE])))
    table = {"code", "table", "tr", "th", "td"}
    assert seen.tags <= {"html", "head", "meta", "title", "style", "body", "h1", "p", "details", "summary", "b", *table}
    assert seen.attributes <= {"lang", "charset", "http-equiv", "content", "class", "scope"}
    assert "default-src 'none'; style-src 'unsafe-inline'" in seen.policies
    assert "<script>alert(1)</script>" in "".join(seen.texts)


class Seen(HTMLParser):
    """The elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.policies: list[str | None] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.policies += [value for name, value in attrs if name == "content"]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_has_every_cell_folded_under_its_notebook() -> None:
    page = to_html(REPORT)
    assert page.count("<details") == 4
    assert page.count("<tr><td>") == 8
    assert "<summary>⚠ <b>ben · ps1 · a.ipynb</b>: 3 ended normally, 1 did not end normally, 1 never run" in page
