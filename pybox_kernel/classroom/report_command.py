"""``pybox-kernel report FOLDER``: what was run of a folder of notebooks, how it ended, and what was never run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from pybox_kernel.classroom.report import find, read, why_not_graded
from pybox_kernel.errors import ExitStatus, OptionError
from pybox_kernel.notebook.file import write
from pybox_kernel.render.class_table import CSV_HEADINGS, HTML_BEGINS, ClassReport, NotGraded, to_csv, to_html, to_text
from pybox_kernel.safe_display.text import safe_name
from pybox_kernel.signing.keys import SigningKeys, read_public

__all__ = ["add_report_parser", "report"]

CSV_BEGINS: Final = ",".join(CSV_HEADINGS)


def add_report_parser(commands: Any) -> None:
    told = commands.add_parser(
        "report", help="say what was run in a folder of notebooks, and how it ended", allow_abbrev=False
    )
    told.add_argument(
        "folder", metavar="FOLDER", help="notebooks that were run, such as nbgrader's autograded/, or its whole course"
    )
    told.add_argument("--all", action="store_true", help="print every cell, not only those to look at")
    told.add_argument("--html", metavar="FILE", help="write a page of HTML")
    told.add_argument("--csv", metavar="FILE", help="write a table for a spreadsheet, with a line for each cell")
    told.add_argument("--key", metavar="FILE.pub", help="they were run on the computer whose public key this is")


def report(options: argparse.Namespace) -> int:
    """The exit status: 0, or 2 where a notebook could not be read, of which the report says why. Raises PyBoxError."""
    targets = [
        (Path(name), begins, make)
        for name, begins, make in ((options.html, HTML_BEGINS, to_html), (options.csv, CSV_BEGINS, to_csv))
        if name
    ]
    for target, begins, _ in targets:
        check_target(target, begins)
    ring = read_public(Path(options.key)) if options.key else SigningKeys().ring()
    found = find(Path(options.folder))
    if not found.notebooks and not found.not_graded:
        left_out = f" Not looked into: {'; '.join(found.left_out)}." if found.left_out else ""
        raise OptionError(
            f"There is no notebook in {safe_name(options.folder, 200)}.{left_out}",
            "Name a folder with notebooks that were run.",
        )
    submissions = [read(place, ring) for place in found.notebooks]
    not_graded = [
        NotGraded(safe_name(f"{place.student} · {place.assignment}", 200), why_not_graded(place))
        for place in found.not_graded
    ]
    made = ClassReport(submissions, not_graded, found.left_out)
    for target, _, make in targets:
        write(target, make(made).encode("utf-8", "replace"))
        print(f"Written to {safe_name(str(target), 1000)}.")
    print(made.total if targets else to_text(made, every_cell=options.all))
    return ExitStatus.USAGE if any(found.problem for found in submissions) else ExitStatus.OK


def check_target(target: Path, begins: str) -> None:
    """Raises OptionError where there is something that is no earlier report."""
    try:
        if not target.is_file():
            if target.is_symlink() or target.exists():
                raise OptionError(f"{target} is there already.", "Name another file.")
            return
        with target.open("rb") as file:
            if file.read(len(begins.encode())) == begins.encode():
                return
    except OSError as error:
        raise OptionError(f"{target}: {error.strerror}.", "Name another file.") from error
    raise OptionError(f"{target} is there already, and is no report of this kind.", "Name another file.")
