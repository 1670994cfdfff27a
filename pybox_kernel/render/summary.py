"""All receipts of a session as one table: a line each, as text and as static HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pybox_kernel.render.amounts import counted, megabytes, seconds
from pybox_kernel.render.html import COLOURS, escape
from pybox_kernel.render.text import columns
from pybox_kernel.render.words import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybox_kernel.receipt.model import Receipt
    from pybox_kernel.render.words import Tone

__all__ = ["Line", "line_of", "summary_html", "summary_text"]

HEADINGS = ("Cell", "How it ended", "Time", "Memory", "Notes")


class Line(NamedTuple):
    """What a summary says of one receipt. Safe to show, and a few hundred bytes, whatever the run was."""

    cell: int
    tone: Tone
    verdict: str
    time: str
    memory: str
    notes: str

    @property
    def cells(self) -> tuple[str, ...]:
        return f"[{self.cell}]", self.verdict, self.time, self.memory, self.notes


def line_of(cell: int, receipt: Receipt) -> Line:
    told, meters = words(receipt), receipt.observed.meters
    ran, peak = meters.ran_seconds, meters.memory_peak_bytes
    limit, most = receipt.asked.options.deadline_seconds, receipt.asked.policy.memory_bytes
    notes = []
    if not receipt.observed.seal.before_start:
        notes.append("not sealed, so not run" if receipt.observed.box.id else "no box")
    if receipt.said.files:
        notes.append(f"{counted(len(receipt.said.files), 'file')} saved")
    if missed := len(receipt.said.not_brought) + receipt.said.not_brought_unlisted:
        notes.append(f"{counted(missed, 'file')} not brought back")
    if receipt.said.withheld:
        notes.append(f"{counted(sum(item.number for item in receipt.said.withheld), 'thing')} withheld")
    if receipt.observed.box.id is not None and not receipt.observed.box.removed:
        notes.append("its box is not confirmed gone")
    return Line(
        cell,
        told.tone,
        f"{told.icon} {told.verdict}"[:120],
        "-" if ran is None else f"{seconds(ran)} of {limit:g} s",
        "-" if peak is None else f"{megabytes(peak)} of {megabytes(most)} MB",
        ", ".join(notes),
    )


def total(lines: Sequence[Line], left_out: int) -> str:
    well = sum(line.tone == "ok" for line in lines)
    others = f", {len(lines) - well} did not" if well < len(lines) else ""
    more = f" {counted(left_out, 'earlier one')} left out." if left_out else ""
    return f"{counted(len(lines), 'cell')} run in this session: {well} ended normally{others}.{more}"


def summary_text(lines: Sequence[Line], left_out: int = 0) -> str:
    """``left_out``: how many earlier receipts are not among ``lines``."""
    if not lines:
        return "No cell has run in this session."
    rows = [HEADINGS, *(line.cells for line in lines)]
    widths = [max(columns(row[n]) for row in rows) for n in range(len(HEADINGS))]
    drawn = (
        "  ".join(cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True)) for row in rows
    )
    return "\n".join([total(lines, left_out), "", *(row.rstrip() for row in drawn)])


def summary_html(lines: Sequence[Line], left_out: int = 0) -> str:
    """One ``<div>``, of what ``render_html`` uses: readable in light and dark, and without its styles."""
    if not lines:
        return "<div>No cell has run in this session.</div>"
    cell = "style='text-align:left;padding:2px 12px 2px 0'"
    head = "".join(f"<th {cell}>{heading}</th>" for heading in HEADINGS)
    rows = "".join(f"<tr>{''.join(cells_of(line, cell))}</tr>" for line in lines)
    return (
        "<div class='mathjax_ignore tex2jax_ignore' style='font-size:13px'>"
        f"<p>{escape(total(lines, left_out))}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def cells_of(line: Line, style: str) -> list[str]:
    drawn = [f"<td {style}>{escape(text)}</td>" for text in line.cells]
    if line.tone != "ok":
        ground = f"background:{COLOURS[line.tone]};color:#fff;padding:1px 7px;border-radius:3px"
        drawn[1] = f"<td {style}><b style='{ground}'>{escape(line.verdict)}</b></td>"
    return drawn
