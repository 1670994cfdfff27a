"""``pybox-kernel check`` and ``pybox-kernel key``: whether receipts can be believed, and the key that makes it so."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from pybox_kernel.errors import ExitStatus, OptionError, PyBoxError, SourceError
from pybox_kernel.render.class_table import NUMBERS
from pybox_kernel.safe_display.text import safe_name
from pybox_kernel.signing.file_check import as_json, check_file, lines_of, read_file, title_of
from pybox_kernel.signing.keys import KeyRing, SigningKeys, in_groups, read_public
from pybox_kernel.signing.signed_receipt import check_receipt

__all__ = ["add_parsers", "check", "key"]

UNSOUND: Final = "Others may have had the one before it: what that signed counts as not made here from now on."


def add_parsers(commands: Any) -> None:
    """Adds both to the command line's."""
    told = commands.add_parser(
        "check", help="say whether the receipts in a notebook's file were made here", allow_abbrev=False
    )
    told.add_argument(
        "file", metavar="FILE", nargs="+", help="a notebook, as it was saved; or a receipt of `run --json`"
    )
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
    found = [checked(name, ring, elsewhere=options.key is not None) for name in options.file]
    if options.json:
        print(json.dumps([one.document for one in found], indent=2))
    else:
        print("\n".join(line for one in found for line in one.lines))
        if any(len(one.lines) > 1 for one in found):
            print(NUMBERS)
    return max(one.status for one in found)


class Checked(NamedTuple):
    """What came of one file."""

    status: int
    lines: list[str]
    document: dict[str, Any]


def checked(name: str, ring: KeyRing, *, elsewhere: bool) -> Checked:
    try:
        of_a_kind = of_a_receipt if name.lower().endswith(".json") else of_a_notebook
        return of_a_kind(Path(name), ring, "there" if elsewhere else "here")
    except SourceError as error:
        told = safe_name(str(error), 1000)
        return Checked(ExitStatus.USAGE, [f"■ {told}"], {"file": name, "problem": told})


def of_a_notebook(path: Path, ring: KeyRing, where: str) -> Checked:
    found = check_file(path, ring)
    status = ExitStatus.OK if found.ok else ExitStatus.PROGRAM_FAILED
    return Checked(status, [title_of(found, where), *lines_of(found, where)], as_json(found))


def of_a_receipt(path: Path, ring: KeyRing, where: str) -> Checked:
    """Of one that stands alone."""
    found = check_receipt(read_file(path), ring)
    told = f"made {where}, unchanged" if found.ok else f"not known to be made {where}: {found.why}"
    told += " (signed with an earlier key)" if found.earlier_key else ""
    document = {"file": str(path), "ok": found.ok, "verdict": found.verdict, "found": [found.why] if found.why else []}
    status = ExitStatus.OK if found.ok else ExitStatus.PROGRAM_FAILED
    return Checked(status, [f"{'✓' if found.ok else '■'} {safe_name(str(path), 300)}: {told}"], document)


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
