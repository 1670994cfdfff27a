"""What the receipts in a folder of executed notebooks say: of each cell how it ended, and what was never run.

The files are taken for hostile: they may be submissions. No link is followed, and nothing in them is obeyed; what
comes of them is made safe to show here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pybox_kernel.errors import OptionError, SourceError
from pybox_kernel.notebook.commands import command_of, options_of
from pybox_kernel.notebook.no_score import kept
from pybox_kernel.render.advice import in_marks
from pybox_kernel.render.class_table import CellLine, Kind, Submission
from pybox_kernel.safe_display.text import safe_name
from pybox_kernel.signing.file_check import read_file
from pybox_kernel.signing.keys import KeyRing
from pybox_kernel.signing.receipt_check import CellCheck, check_cells, read_notebook
from pybox_kernel.signing.shown_outputs import text_of
from pybox_kernel.signing.statement import Claim, Ran, Statement

__all__ = ["MOST_NOTEBOOKS", "Found", "Place", "find", "read", "why_not_graded"]

MOST_NOTEBOOKS: Final = 5_000
MOST_ENTRIES: Final = 200_000
"""Files and folders looked at."""
DEEPEST: Final = 12
GRADED, SUBMITTED = "autograded", "submitted"
"""Folders of a course of nbgrader's: what was graded, and what is to be, each in STUDENT/ASSIGNMENT."""
GRADEBOOK: Final = "gradebook.db"
SKIP: Final = "skip-execution"
"""A tag: nbclient, and so nbgrader, does not run the cell, whoever put it there."""
MARKS: Final = {"ok": "✓", "warn": "⚠", "stop": "◷", "bad": "✗"}


class Place(NamedTuple):
    """A notebook, and whose it is by the folders it lies in."""

    path: Path
    student: str
    assignment: str
    """Nothing where it is not in a course of nbgrader's."""


class Found(NamedTuple):
    notebooks: list[Place]
    not_graded: list[Place]
    """Submissions, each a folder, of which there is no graded one."""
    left_out: list[str]
    """What was not looked into, and why."""


def find(folder: Path) -> Found:
    """The notebooks in a folder and those below it, or the one that is named; of a course of nbgrader's, those that
    were graded. Raises OptionError where there is no such folder."""
    left_out: list[str] = []
    if folder.is_file():
        return Found([place_of(folder, folder.parent)], [], left_out)
    if not folder.is_dir():
        raise OptionError(f"There is no folder {folder}.", "Name one with notebooks that were run.")
    any_graded = (folder / GRADED).is_dir()
    is_course = any_graded or ((folder / SUBMITTED).is_dir() and (folder / GRADEBOOK).is_file())
    look_in = folder / GRADED if any_graded else folder
    paths = sorted(notebooks_in(look_in, left_out)) if any_graded or not is_course else []
    if len(paths) > MOST_NOTEBOOKS:
        left_out.append(f"{len(paths) - MOST_NOTEBOOKS:,} notebooks more than {MOST_NOTEBOOKS:,}")
    return Found(
        [place_of(path, folder) for path in paths[:MOST_NOTEBOOKS]],
        sorted(never_graded(folder)) if is_course else [],
        left_out,
    )


def notebooks_in(folder: Path, left_out: list[str]) -> Iterator[Path]:
    """Hidden files and folders are none: editors keep copies there."""
    waiting, entries = [(folder, 0)], 0
    while waiting:
        place, depth = waiting.pop()
        try:
            with os.scandir(place) as found:
                for entry in found:
                    entries += 1
                    if entries > MOST_ENTRIES:
                        left_out.append(f"what comes after {MOST_ENTRIES:,} files and folders")
                        return
                    is_notebook = entry.name.lower().endswith(".ipynb")
                    if entry.name.startswith("."):
                        continue
                    if entry.is_symlink():
                        if is_notebook or os.path.isdir(entry.path):  # noqa: PTH112  # which raises nothing
                            left_out.append(f"{safe_name(entry.path, 200)}: a link")
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append((Path(entry.path), depth + 1))
                    elif is_notebook:
                        yield Path(entry.path)
        except OSError as error:
            left_out.append(f"{safe_name(str(place), 200)}: {error.strerror}")
        if waiting and waiting[-1][1] > DEEPEST:
            left_out.append(f"{safe_name(str(waiting[-1][0]), 200)}: more than {DEEPEST} folders deep")
            waiting = [it for it in waiting if it[1] <= DEEPEST]


def place_of(path: Path, folder: Path) -> Place:
    parts = path.absolute().parts
    if GRADED in parts[:-3]:
        at = len(parts) - 1 - parts[::-1].index(GRADED)
        if len(parts) > at + 3:
            return Place(path, parts[at + 1], parts[at + 2])
    beside = path.relative_to(folder).parts
    return Place(path, beside[0] if len(beside) > 1 else path.stem, "")


def never_graded(course: Path) -> Iterator[Place]:
    for path in (course / SUBMITTED).glob("[!.]*/[!.]*"):
        student, assignment = path.parts[-2:]
        # An empty one is left where nbgrader was killed before it wrote the first notebook.
        if path.is_dir() and not any((course / GRADED / student / assignment).glob("*.ipynb")):
            yield Place(path, student, assignment)


def why_not_graded(place: Place) -> str:
    """Of one of those that were never graded, as sentences; nothing where that is not known here."""
    assignment, student, submitted = place.path.name, place.path.parent.name, place.path.parent.parent
    found = kept(submitted.parent / GRADED / student / assignment)
    if found is not None:
        return str(found)
    left_out: list[str] = []
    for path in sorted(notebooks := list(notebooks_in(place.path, left_out))):
        try:
            read_notebook(read_file(path), path.name)
        except SourceError as error:
            return str(safe_name(error.message, 300))
    return "" if notebooks or left_out else "No notebook was submitted."


def read(place: Place, ring: KeyRing) -> Submission:
    """What stands in one notebook. A file that cannot be read is one with a ``problem``."""
    student, assignment = safe_name(place.student, 100), safe_name(place.assignment, 100)
    notebook = safe_name(place.path.name, 100)
    try:
        document = read_notebook(read_file(place.path), place.path.name)
    except SourceError as error:
        return Submission(student, assignment, notebook, (), safe_name(problem_in(error.message, place.path), 500))
    cells = [cell for cell in document["cells"] if cell.get("cell_type") == "code"]
    lines = (line_of(check, cell) for check, cell in zip(check_cells(document, ring), cells, strict=True))
    return Submission(student, assignment, notebook, tuple(line for line in lines if line is not None))


def problem_in(message: str, path: Path) -> str:
    """What is said of a file, where its name stands beside it."""
    for name in (str(path), path.name):
        if message.startswith(f"{name}: "):
            return message[len(name) + 2 :]
        if message.startswith(f"{name} "):
            return f"It{message[len(name) :]}"
    return message


def line_of(check: CellCheck, cell: Mapping[str, Any]) -> CellLine | None:
    """None for a cell without a program: an empty one, or a word to PyBox."""
    name = f"{check.place}" + (f" [{check.number}]" if check.number is not None else "")
    begins = safe_name(check.begins.strip(), 60)
    if check.verdict == "nothing shown":
        notes = f"its file has it skipped ({SKIP})" if is_skipped(cell.get("metadata")) else ""
        return CellLine(name, begins, "never run", "·", "Never run", notes=notes) if begins else None
    stated = check.statement or claimed(cell)
    ran = stated.ran if stated is not None else None
    error, message = error_in(cell)
    said = f"{error}: {message}" if message else error
    if check.verdict == "unchanged":
        if ran is not None:
            return line_of_a_run(name, begins, ran, said, "as made here", "")
        ended = "Never run: it stands below a line that asks for help"
        return CellLine(name, begins, "never run", "·", ended) if has_program(cell) else None
    why = safe_name("; ".join(check.found), 300)
    if ran is not None:
        return line_of_a_run(name, begins, ran, said, check.verdict, why)
    ended = f"Not known; it shows an error: {safe_name(error, 60)}" if error else "Not known"
    return CellLine(name, begins, "not known", "⚠", ended, receipt=check.verdict, why=why)


def has_program(cell: Mapping[str, Any]) -> bool:
    """Of one that was a word to PyBox, whether there is one below."""
    source = text_of(cell["source"])
    try:
        return command_of(source) is None and bool(options_of(source)[0].strip())
    except OptionError:  # of words that an earlier PyBox knew
        return False


def is_skipped(metadata: object) -> bool:
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return isinstance(tags, str | list) and SKIP in tags  # as nbclient looks for it, also in one text


def error_in(cell: Mapping[str, Any]) -> tuple[str, str]:
    """The name of the exception that it shows, and the first line of what that says; nothing where there is none."""
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, dict) and output.get("output_type") == "error":
            return str(output.get("ename"))[:100], str(output.get("evalue") or "")[:1000].strip().split("\n")[0]
    return "", ""


def claimed(cell: Mapping[str, Any]) -> Statement | None:
    """What the last receipt under a cell says, whoever made it."""
    outputs = cell.get("outputs")
    for output in reversed(outputs if isinstance(outputs, list) else []):
        claim = Claim.of(output.get("metadata")) if isinstance(output, dict) else None
        if claim is not None:
            return Statement.of(claim.text)
    return None


def line_of_a_run(name: str, begins: str, ran: Ran, said: str, receipt: str, why: str) -> CellLine:
    kind: Kind = "well" if ran.tone == "ok" else "not well"
    ended = safe_name(ran.verdict, 120).lstrip("".join(MARKS.values()) + "■ ")
    time, memory = ("" if text == "-" else safe_name(text, 40) for text in (ran.time, ran.memory))
    mark = MARKS[ran.tone] if receipt == "as made here" else "⚠"
    notes: str = safe_name(ran.notes, 200)
    if said and kind == "not well" and not said.startswith("PyBox"):  # those are no exceptions of the program's
        notes = "; ".join(filter(None, (notes, f"it says {in_marks(said, 100)}")))
    return CellLine(name, begins, kind, mark, ended, time, memory, notes, receipt, why)
