"""``pybox-kernel check`` and ``pybox-kernel key``: whether receipts can be believed, and the key that makes it so."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pybox_kernel.errors import ExitStatus, OptionError, PyBoxError, SourceError
from pybox_kernel.file_check import as_json, check_file, lines_of, read_file, title_of
from pybox_kernel.safe_display import safe_name
from pybox_kernel.signing_keys import SigningKeys, in_groups, read_public

__all__ = ["add_parsers", "check", "key", "read_file"]

UNSOUND: Final = "Others may have had the one before it: what that signed counts as not made here from now on."


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
