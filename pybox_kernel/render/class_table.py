"""A report on many notebooks that were run: as text for a terminal, as one page of HTML, and as CSV."""

from __future__ import annotations

import csv
import html
import io
import re
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pybox_kernel.render.amounts import counted
from pybox_kernel.render.text import columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "CSV_HEADINGS",
    "HTML_BEGINS",
    "NUMBERS",
    "CellLine",
    "ClassReport",
    "Kind",
    "NotGraded",
    "Submission",
    "to_csv",
    "to_html",
    "to_text",
]

Kind = Literal["well", "not well", "never run", "not known"]

CSV_HEADINGS: Final = (
    "student", "assignment", "notebook", "cell", "begins", "how it ended", "time", "memory", "notes", "receipt", "why",
)  # fmt: skip
HTML_BEGINS: Final = "<!doctype html>\n<!-- A report of pybox-kernel -->\n"
FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet takes for the beginning of a formula, and runs."""
LATER: Final = re.compile(rf"(;[\s\"']*)(?=[{re.escape(''.join(FORMULAS))}])")
"""Where one begins for a spreadsheet that parts cells by semicolons, as it does in many countries."""
MOST_NAMED: Final = 20
MOST_CELLS: Final = 40
"""Of one notebook, where not every cell is asked for: one with a thousand endless cells hides no other."""
NUMBERS: Final = "Cells are counted from the top, texts too; in brackets stands the number that Jupyter shows."

WORDS: Final[Mapping[Kind, str]] = {
    "well": "ended normally",
    "not well": "did not end normally",
    "never run": "never run",
    "not known": "not known",
}
CLAIMED: Final = "its file says"
"""Before what a receipt says that was not made here, or was altered."""


class CellLine(NamedTuple):
    """Of one cell. All texts are safe to show."""

    cell: str
    begins: str
    kind: Kind
    mark: str
    ended: str
    time: str = ""
    memory: str = ""
    notes: str = ""
    receipt: str = ""
    """Whether its receipt can be believed: "as made here", or what ``signing.receipt_check`` found; nothing where none
    is to be expected."""
    why: str = ""

    @property
    def is_believed(self) -> bool:
        return self.receipt in ("as made here", "")

    @property
    def is_plain(self) -> bool:
        """There is nothing about it that a person has to look at."""
        return self.kind == "well" and self.is_believed and not self.notes

    @property
    def told(self) -> str:
        """How it ended, and by whose word."""
        return self.ended if self.is_believed or self.kind == "not known" else f"{CLAIMED}: {self.ended}"

    @property
    def doubt(self) -> str:
        """Why its receipt cannot be believed; nothing where it can."""
        return "" if self.is_believed else f"{self.receipt}: {self.why}" if self.why else self.receipt

    @property
    def besides(self) -> str:
        return "; ".join(filter(None, (self.notes, self.doubt)))


class Submission(NamedTuple):
    """Of one notebook."""

    student: str
    assignment: str
    notebook: str
    cells: tuple[CellLine, ...]
    problem: str = ""
    """Why it could not be read."""

    @property
    def title(self) -> str:
        return " · ".join(filter(None, (self.student, self.assignment, self.notebook)))

    @property
    def never_ran(self) -> bool:
        return bool(self.cells) and all(cell.kind == "never run" for cell in self.cells)

    @property
    def was_skipped(self) -> bool:
        return any(cell.kind == "never run" and cell.notes for cell in self.cells)

    @property
    def is_unknown(self) -> bool:
        """Of what it says was run, no receipt can be believed."""
        ran = [cell for cell in self.cells if cell.kind != "never run"]
        return bool(ran) and not any(cell.is_believed for cell in ran)

    @property
    def in_short(self) -> str:
        if self.problem:
            return self.problem
        if not self.cells:
            return "it has no cell with a program"
        if self.never_ran:
            return "no cell of it was run"
        if self.is_unknown:
            doubts = list(dict.fromkeys(cell.why or cell.receipt for cell in self.cells if not cell.is_believed))
            more = f"; and {len(doubts) - 1} more" if len(doubts) > 1 else ""
            return f"nothing in it is known to be made here ({doubts[0]}{more}); --all has what it says"
        kinds = Counter(cell.kind for cell in self.cells)
        told = ", ".join(f"{kinds[kind]} {text}" for kind, text in WORDS.items() if kinds[kind])
        doubtful = sum(not cell.is_believed and cell.kind != "not known" for cell in self.cells)
        return told + (f"; {counted(doubtful, 'receipt')} not to be believed" if doubtful else "")

    @property
    def mark(self) -> str:
        if self.problem or self.never_ran or self.is_unknown:
            return "■"
        return "✓" if all(cell.is_plain for cell in self.cells) else "⚠"


class NotGraded(NamedTuple):
    """A submission of which there is no graded one. Both texts are safe to show."""

    name: str
    why: str = ""
    """As sentences; nothing where it is not known."""


class ClassReport(NamedTuple):
    submissions: Sequence[Submission]
    not_graded: Sequence[NotGraded] = ()
    left_out: Sequence[str] = ()

    @property
    def total(self) -> str:
        plain = sum(found.mark == "✓" for found in self.submissions)
        students = len({found.student for found in self.submissions})
        told = f"{counted(len(self.submissions), 'notebook')} of {counted(students, 'student')}"
        if plain < len(self.submissions):
            return f"{told}: {plain} with nothing to look at, {len(self.submissions) - plain} to look at."
        return f"{told}: nothing to look at."

    @property
    def remarks(self) -> Iterator[str]:
        if self.not_graded:
            yield "Never graded, so without a score (grade again; what was graded stays):"
        for why in dict.fromkeys(found.why for found in self.not_graded):
            names = ", ".join(found.name for found in self.not_graded if found.why == why)
            yield f"    {names}: {why or 'why is not known here; nbgrader says it when it is called again'}"
        if any(found.was_skipped for found in self.submissions):
            skipped = ", ".join(found.title for found in self.submissions if found.was_skipped)
            yield (
                f"Cells that a file has skipped: in {skipped}. nbgrader gives full marks for a test that was skipped,"
                " unless its configuration has `c.Execute.skip_cells_with_tag`: see docs/classroom.md."
            )
        cut_off = [it for it in self.submissions if it.never_ran and it.assignment and not it.was_skipped]
        if cut_off:  # graded by nbgrader
            yield (
                "Where no cell was run, the batch was cut off in that notebook, and nbgrader takes it for graded: "
                "`nbgrader autograde ASSIGNMENT --student NAME --force` runs it."
            )
        if self.left_out:
            more = [f"and {len(self.left_out) - MOST_NAMED:,} more"] if len(self.left_out) > MOST_NAMED else []
            yield "Not looked into: " + "; ".join([*self.left_out[:MOST_NAMED], *more])


def to_text(report: ClassReport, *, every_cell: bool = False) -> str:
    """A line for each notebook, and below it one for each cell that a person has to look at; or for every cell."""
    lines = [report.total, ""]
    for found in report.submissions:
        lines.append(f"{found.mark} {found.title}: {found.in_short}")
        in_short = found.never_ran or found.is_unknown
        cells = [cell for cell in found.cells if every_cell or not (cell.is_plain or in_short)]
        more = 0 if every_cell else max(0, len(cells) - MOST_CELLS)
        del cells[len(cells) - more :]
        rows = [
            (f"cell {cell.cell}", f"{cell.mark} {cell.told}", cell.time, cell.memory, cell.besides) for cell in cells
        ]
        widths = [min(60, max((columns(row[n]) for row in rows), default=0)) for n in range(5)]
        for row in rows:
            drawn = (text + " " * (width - columns(text)) for text, width in zip(row, widths, strict=True))
            lines.append(f"    {'  '.join(drawn).rstrip()}")
        if more:
            lines.append(f"    and {counted(more, 'cell')} more, which --all has")
    numbered = any(line.startswith("    cell ") for line in lines)
    remarks = [*([NUMBERS] if numbered else []), *report.remarks]
    return "\n".join([*lines, *([""] if remarks else []), *remarks]).rstrip()


def to_csv(report: ClassReport) -> str:
    """A line for each cell, and for each notebook without any. No text in it is a formula to a spreadsheet."""
    written = io.StringIO()
    to = csv.writer(written)
    to.writerow(CSV_HEADINGS)
    for found in report.submissions:
        whose = (found.student, found.assignment, found.notebook)
        for cell in found.cells:
            facts = (cell.begins, cell.told, cell.time, cell.memory, cell.notes, cell.receipt, cell.why)
            to.writerow(map(as_text, (*whose, cell.cell, *facts)))
        if not found.cells:
            to.writerow(map(as_text, (*whose, "", "", found.in_short, "", "", "", "", "")))
    for lacking in report.not_graded:
        to.writerow(map(as_text, (lacking.name, "", "", "", "", "never graded", "", "", "", "", lacking.why)))
    return written.getvalue()


def as_text(text: str) -> str:
    text = LATER.sub(r"\1'", text)
    return f"'{text}" if text.startswith(FORMULAS) else text


def to_html(report: ClassReport) -> str:
    """A page of its own without scripts, links and anything remote, in the reader's own colours, light or dark."""
    body = [f"<h1>What was run</h1><p>{escape(report.total)} {NUMBERS}</p>"]
    body += (f"<p class=remark>{escape(remark)}</p>" for remark in report.remarks)
    body += map(section, report.submissions)
    return HTML_BEGINS + HEAD + "\n".join(body) + "\n</body></html>\n"


HEAD: Final = """<html lang=en><head><meta charset=utf-8><title>What was run</title>
<meta http-equiv=Content-Security-Policy content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 1rem auto; padding: 0 1rem }
details { border-left: 4px solid #9a6700; padding: 0 .7rem; margin: .3rem 0 }
details.ok { border-color: #2da44e } details.bad { border-color: #cf222e }
summary { cursor: pointer; padding: .2rem 0 }
table { border-collapse: collapse; font-size: 13px; margin: .3rem 0 .8rem }
th, td { text-align: left; padding: .15rem .9rem .15rem 0; vertical-align: top }
td.look { font-weight: 600 } code { opacity: .75 } .remark { border-left: 4px solid #cf222e; padding-left: .7rem }
</style></head><body>
"""
HEADINGS: Final = ("Cell", "Begins", "How it ended", "Time", "Memory", "Besides")
STYLES: Final = {"✓": "ok", "⚠": "look", "■": "bad"}


def section(found: Submission) -> str:
    summary = f"<summary>{found.mark} <b>{escape(found.title)}</b>: {escape(found.in_short)}</summary>"
    head = "".join(f"<th scope=col>{heading}</th>" for heading in HEADINGS)
    table = f"<table><tr>{head}</tr>{''.join(map(html_row, found.cells))}</table>" if found.cells else ""
    return f"<details class={STYLES[found.mark]}>{summary}{table}</details>"


def html_row(cell: CellLine) -> str:
    ended = f"<td{'' if cell.is_plain else ' class=look'}>{escape(f'{cell.mark} {cell.told}')}</td>"
    rest = "".join(f"<td>{escape(text)}</td>" for text in (cell.time, cell.memory, cell.besides))
    return f"<tr><td>{escape(cell.cell)}</td><td><code>{escape(cell.begins)}</code></td>{ended}{rest}</tr>"


def escape(text: str) -> str:
    return html.escape(text)
