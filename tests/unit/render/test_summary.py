from __future__ import annotations

import html
import re

from pybox_kernel.render.summary import line_of, summary_html, summary_text
from pybox_kernel.render.text import columns
from tests.receipts import receipt, samples

CLEAN = line_of(1, receipt())


def test_a_session_without_a_run_says_so() -> None:
    assert summary_text(()) == "No cell has run in this session."
    assert "No cell has run" in summary_html(())


def test_a_line_for_each_receipt_with_how_it_ended_its_time_and_its_memory() -> None:
    lines = [CLEAN, line_of(12, samples()["deadline"])]
    assert summary_text(lines, left_out=3).splitlines() == [
        "2 cells run in this session: 1 ended normally, 1 did not. 3 earlier ones left out.",
        "",
        "Cell  How it ended                Time        Memory        Notes",
        "[1]   ✓ Ended normally            0.3 of 2 s  21 of 128 MB",
        "[12]  ◷ Stopped at its 2 s limit  2.0 of 2 s  21 of 128 MB",
    ]


def test_every_sample_is_one_row_whose_text_is_the_same_in_both_forms() -> None:
    lines = [line_of(number, found) for number, found in enumerate(samples().values(), 1)]
    rows = summary_text(lines).splitlines()[3:]
    assert len(rows) == len(lines)
    cells = [html.unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall("<td.*?</td>", summary_html(lines))]
    assert cells == [cell for line in lines for cell in line.cells]
    for row, line in zip(rows, lines, strict=True):
        assert all(cell in row for cell in line.cells)


def test_columns_stand_under_each_other_whatever_is_in_them() -> None:
    lines = [CLEAN, CLEAN._replace(verdict="結果 ✓"), CLEAN._replace(verdict="short")]
    starts = {columns(row[: row.index("0.3 of")]) for row in summary_text(lines).splitlines()[3:]}
    assert len(starts) == 1


def test_what_a_receipt_says_is_escaped() -> None:
    drawn = summary_html([CLEAN._replace(verdict="<img src=x onerror=1> $x$", notes="<script>")])
    assert "<img" not in drawn
    assert "<script>" not in drawn
    assert "$x$" not in drawn
