"""One notebook's file, checked: what there is to say of it, in words that are safe to show."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pybox_kernel.errors import SourceError
from pybox_kernel.render.amounts import counted
from pybox_kernel.safe_display.text import safe_name
from pybox_kernel.signing.keys import KeyRing
from pybox_kernel.signing.receipt_check import MOST_BYTES, CellCheck, Verdict, check_cells, read_notebook
from pybox_kernel.signing.run_order import Order, order_of

__all__ = [
    "FileCheck",
    "as_json",
    "check_file",
    "in_words",
    "lines_of",
    "mark_of",
    "order_lines",
    "read_file",
    "title_of",
]

MARKS: Final[dict[Verdict, str]] = {
    "unchanged": "✓",
    "altered": "■",
    "not made here": "■",
    "no receipt": "⚠",
    "nothing shown": "·",
}
ADVICE: Final = "Name a notebook that was saved."


class FileCheck(NamedTuple):
    """Of a notebook's file."""

    name: str
    cells: Sequence[CellCheck]
    order: Order

    @property
    def ok(self) -> bool:
        """All that it shows was made here, in this order, and is unchanged; and it shows something."""
        verdicts = {cell.verdict for cell in self.cells}
        return "unchanged" in verdicts and verdicts <= {"unchanged", "nothing shown"} and not self.order.broken


def check_file(path: Path, ring: KeyRing) -> FileCheck:
    """Raises SourceError for what cannot be read, or is no notebook."""
    document = read_notebook(read_file(path), str(path))
    cells = check_cells(document, ring)
    return FileCheck(str(path), cells, order_of(cells))


def read_file(path: Path) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(file, "rb") as opened:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise SourceError(f"{path} is no file.", ADVICE)
            return opened.read(MOST_BYTES + 1)
    except IsADirectoryError:
        advice = "Name a notebook in it; `pybox-kernel report FOLDER` looks at all of them."
        raise SourceError(f"{path} is a folder.", advice) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a name of a file"
        raise SourceError(f"{path}: {why}.", ADVICE) from error


def title_of(found: FileCheck, where: str = "here") -> str:
    """In one line; safe to show."""
    number = sum(cell.verdict == "unchanged" for cell in found.cells)
    bad = sum(cell.verdict in ("altered", "not made here", "no receipt") for cell in found.cells)
    name = safe_name(found.name, 300)
    if found.ok:
        return f"✓ {name}: made {where}, in this order, and unchanged ({counted(number, 'cell')})"
    if not number:
        return f"■ {name}: nothing in it is known to be made {where}"
    wrong = [f"{counted(bad, 'cell')} not as made {where}"] if bad else []
    wrong += ["not run in this order"] if found.order.broken else []
    return f"■ {name}: {', '.join(wrong)}"


def lines_of(found: FileCheck, where: str = "here") -> Iterator[str]:
    """A line for each cell, and what is to be said of their order; safe to show. ``where``: whose key it was checked
    with, "here" or "there"."""
    for cell in found.cells:
        number = f"[{cell.number}]" if cell.number is not None else "[ ]"
        begins = f"  {safe_name(cell.begins, 50)}" if cell.begins else ""
        yield f"  {mark_of(cell)} cell {cell.place} {number}: {in_words(cell, where)}{begins}"
    yield from (f"  {line}" for line in order_lines(found))


def mark_of(cell: CellCheck) -> str:
    return "·" if cell.verdict == "unchanged" and cell.is_refusal else MARKS[cell.verdict]


def order_lines(found: FileCheck) -> Iterator[str]:
    """What is to be said of the order in which the cells ran; nothing where all is well."""
    for sentence in found.order.broken:
        yield f"■ {safe_name(sentence, 400)}"
    if found.order.missing:
        yield f"· {counted(found.order.missing, 'cell')} that ran in between: not here, or without a receipt"


def in_words(cell: CellCheck, where: str = "here") -> str:
    if cell.verdict == "unchanged" and cell.is_refusal:
        return f"refused, so nothing was run (made {where}, unchanged)"
    told = {"unchanged": f"made {where}, unchanged", "not made here": f"not made {where}"}.get(
        cell.verdict, cell.verdict
    )
    if cell.found:
        told += f": {'; '.join(cell.found)}"
    return f"{told} (signed with an earlier key)" if cell.earlier_key and cell.statement is not None else told


def as_json(found: FileCheck) -> dict[str, Any]:
    return {
        "file": found.name,
        "ok": found.ok,
        "cells": [
            {
                "cell": cell.place,
                "number": cell.number,
                "verdict": cell.verdict,
                "found": list(cell.found),
                "earlier_key": cell.earlier_key,
                "made_at": cell.statement.made_at if cell.statement else None,
                "run": cell.statement.ran.id if cell.statement and cell.statement.ran and not cell.is_refusal else None,
                "refused": cell.is_refusal,
            }
            for cell in found.cells
        ],
        "order": list(found.order.broken),
        "missing": found.order.missing,
    }
