"""``pybox-kernel check`` and ``pybox-kernel key``: whether receipts can be believed, and the key that makes it so."""

from __future__ import annotations

import argparse
import json
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pybox_kernel.errors import ExitStatus, OptionError, PyBoxError, SourceError
from pybox_kernel.receipt_check import MOST_BYTES, CellCheck, Verdict, check_cells, read_notebook
from pybox_kernel.render.amounts import counted
from pybox_kernel.run_order import Order, order_of
from pybox_kernel.safe_display import safe_name
from pybox_kernel.signing_keys import KeyRing, SigningKeys, in_groups, read_public

__all__ = ["FileCheck", "add_parsers", "check", "check_file", "key", "lines_of", "title_of"]

MARKS: Final[dict[Verdict, str]] = {
    "unchanged": "✓",
    "altered": "■",
    "not made here": "■",
    "no receipt": "⚠",
    "nothing shown": "·",
}
UNSOUND: Final = "Others may have had the one before it: what that signed counts as not made here from now on."
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


def add_parsers(commands: Any) -> None:
    """Adds both to the command line's."""
    told = commands.add_parser(
        "check", help="say whether the receipts in a notebook's file were made here", allow_abbrev=False
    )
    told.add_argument("file", metavar="FILE", nargs="+", help="a notebook, as it was saved")
    told.add_argument("--key", metavar="FILE.pub", help="made on the computer whose public key this is")
    told.add_argument("--json", action="store_true", help="what was found, as JSON")
    keys = commands.add_parser("key", help="the key that receipts are signed with", allow_abbrev=False)
    what = keys.add_subparsers(dest="what", required=True, metavar="WHAT")
    what.add_parser("show", help="which one it is, and where it lies", allow_abbrev=False)
    export = what.add_parser("export", help="its public half, for other computers", allow_abbrev=False)
    export.add_argument("file", metavar="FILE.pub", nargs="?", help="a new file; standard output where none is named")
    what.add_parser("rotate", help="make a new one; what earlier ones signed can still be checked", allow_abbrev=False)


# check


def check(options: argparse.Namespace) -> int:
    """0 where all is as it was made; 1 where something is not; 2 where a file could not be read."""
    ring = read_public(Path(options.key)) if options.key else SigningKeys().ring()
    status, documents = int(ExitStatus.OK), []
    for name in options.file:
        try:
            found = check_file(Path(name), ring)
        except SourceError as error:
            status = ExitStatus.USAGE
            documents.append({"file": name, "problem": safe_name(str(error), 1000)})
            if not options.json:
                print(f"■ {safe_name(str(error), 1000)}")
            continue
        if not found.ok:
            status = max(status, ExitStatus.PROGRAM_FAILED)
        documents.append(as_json(found))
        if not options.json:
            print("\n".join([title_of(found, "there" if options.key else "here"), *lines_of(found, options.key)]))
    if options.json:
        print(json.dumps(documents, indent=2))
    return status


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


def lines_of(found: FileCheck, key: str | None = None) -> Iterator[str]:
    """A line for each cell, and what is to be said of their order; safe to show."""
    for cell in found.cells:
        number = f"[{cell.number}]" if cell.number is not None else "[ ]"
        begins = f"  {safe_name(cell.begins, 50)}" if cell.begins else ""
        yield f"  {MARKS[cell.verdict]} cell {cell.place} {number}: {in_words(cell, key)}{begins}"
    for sentence in found.order.broken:
        yield f"  ■ {safe_name(sentence, 400)}"
    if found.order.missing:
        yield f"  · {counted(found.order.missing, 'cell')} that ran in between: not here, or without a receipt"


def in_words(cell: CellCheck, key: str | None = None) -> str:
    here = "with this key" if key else "here"
    told = {"unchanged": f"made {here}, unchanged", "not made here": f"not made {here}"}.get(cell.verdict, cell.verdict)
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
                "run": cell.statement.ran.id if cell.statement and cell.statement.ran else None,
            }
            for cell in found.cells
        ],
        "order": list(found.order.broken),
        "missing": found.order.missing,
    }


# key


def key(options: argparse.Namespace) -> int:
    keys = SigningKeys()
    if options.what == "show":
        print("\n".join(shown(keys)))
    elif options.what == "export":
        keys.create()
        export(b"".join(keys.public()), options.file)
    else:
        kept = keys.rotate()
        print("\n".join(shown(keys)))
        if not kept:
            print(UNSOUND)
    return ExitStatus.OK


def shown(keys: SigningKeys) -> Iterator[str]:
    ring = keys.ring()
    if ring.current is None:
        yield "There is no key yet: the first receipt makes it."
    else:
        yield f"Key: {in_groups(ring.current)}"
        yield f"Kept in {safe_name(str(keys.private_file), 1000)}, for you alone."
    for earlier in ring.keys:
        if earlier != ring.current:
            yield f"An earlier one: {in_groups(earlier)}"


def export(data: bytes, name: str | None) -> None:
    if name is None:
        print(data.decode("ascii"), end="")
        return
    path = Path(name)
    try:
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise OptionError(f"{path} is there already.", "Name a new file.") from None
    except OSError as error:
        raise PyBoxError(f"{path} could not be written: {error.strerror}.", "Name another file.") from error
    print(f"Written to {safe_name(str(path), 1000)}. It is no secret: whoever has it can check, and cannot sign.")
