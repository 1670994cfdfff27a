"""``pybox-kernel open``: clean copies of notebooks from strangers, and a JupyterLab with sealed kernels only."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pybox_kernel.boxes.journal import home_folder
from pybox_kernel.classroom.cleaning import WORDS
from pybox_kernel.classroom.copies import Copied, Copies, Outcome, copy_all
from pybox_kernel.classroom.sealed_lab import check_lab, run_lab
from pybox_kernel.errors import ExitStatus, OptionError
from pybox_kernel.install import kernel_name
from pybox_kernel.notebook.file import write
from pybox_kernel.render.amounts import counted
from pybox_kernel.safe_display.text import safe_name
from pybox_kernel.sessions.images import known_images

__all__ = ["add_open_parser", "open_notebooks"]

IMAGES: Final = ("stdlib", "data")
"""Of PyBox's own, made or not."""
LISTING: Final = "what-was-removed.txt"
MOST_NAMES: Final = 200


def add_open_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "open", help="open notebooks from strangers: clean copies, sealed kernels only", allow_abbrev=False
    )
    parser.add_argument("path", metavar="PATH", help="a notebook, or a folder with notebooks; it is not changed")
    parser.add_argument(
        "--to", metavar="FOLDER", help="where the copies go (PATH-opened): a new folder, or that of an earlier call"
    )
    parser.add_argument(
        "--image",
        default="stdlib",
        metavar="NAME",
        help="what the notebooks' boxes have: stdlib, data, or an image of `pybox-kernel image list`",
    )
    parser.add_argument("--only-copy", action="store_true", help="make the copies, and open nothing")
    parser.add_argument("--no-browser", action="store_true", help="start JupyterLab, and say where it is")


def open_notebooks(options: argparse.Namespace) -> int:
    if not options.only_copy:
        check_lab()
    path = Path(options.path).absolute()
    if path.name in ("", ".."):
        path = real(path)
    target = Path(options.to).absolute() if options.to else path.parent / beside(path)
    if real(target) == real(path) or real(path) in real(target).parents or real(target) in real(path).parents:
        raise OptionError("The copies cannot be in the folder that they are copies of.", "Name another with --to.")
    home = home_folder().absolute()
    images = known_images()
    if options.image not in (*IMAGES, *images):
        raise OptionError(
            f"There is no image {options.image[:60]!r}.",
            "`pybox-kernel image list` has those there are, and `pybox-kernel image build NAME` makes one.",
        )
    copies = copy_all(path, target, home, kernel_name(options.image), show)
    made = [outcome.copied for outcome in copies.outcomes if outcome.copied.copy_name]
    for line in ending(copies, made):
        print(line)
    if not copies.outcomes:
        raise OptionError(f"There is no notebook in {safe_name(str(path), 200)}.", "Name a folder with notebooks.")
    if not made:
        return ExitStatus.USAGE
    write(target / LISTING, "".join(f"{line}\n" for line in listing(copies)).encode())
    print(f"The copies are in {safe_name(str(target), 1000)}; {LISTING} there has the details.")
    if options.only_copy:
        return ExitStatus.OK if len(made) == len(copies.outcomes) else ExitStatus.PROGRAM_FAILED
    print("JupyterLab starts, with sealed kernels only; Ctrl-C here ends it.", flush=True)
    first = made[0].copy_name if len(made) == 1 else ""
    return run_lab(target.resolve(), home, images=images, first=first, browser=not options.no_browser)


def beside(path: Path) -> str:
    """What the folder with the copies is called: by the whole name of another folder, which may have a dot in it."""
    return f"{path.name if path.is_dir() else path.stem}-opened"


def real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def show(outcome: Outcome) -> None:
    print(said(outcome), flush=True)


def said(outcome: Outcome) -> str:
    """A line about one notebook."""
    copied = outcome.copied
    if copied.problem:
        return f"✗ {copied.source}: not copied. {copied.problem}"
    name = "" if copied.copy_name == copied.source else f" as {copied.copy_name}"
    kept = f" ({outcome.kept})" if outcome.kept else ""
    return f"✓ {copied.source}{name}{kept}: {counted(copied.cells, 'cell')}; {in_short(copied)}"


def in_short(copied: Copied) -> str:
    parts = [counted(copied.counts[kind], *WORDS[kind]) for kind in WORDS if kind in copied.counts]
    return f"removed or made plain: {', '.join(parts)}" if parts else "nothing to remove"


def ending(copies: Copies, made: Sequence[Copied]) -> Iterator[str]:
    if copies.outcomes:
        failed = len(copies.outcomes) - len(made)
        others = f", {failed} not" if failed else ""
        yield ""
        yield f"{counted(len(made), 'notebook')} copied{others}."
    if copies.others:
        yield f"{counted(copies.others, 'file')} of other kinds not copied."
    if copies.without and copies.outcomes:
        more = f", and {len(copies.without) - MOST_NAMES} more" if len(copies.without) > MOST_NAMES else ""
        yield f"Folders without a notebook: {', '.join(copies.without[:MOST_NAMES])}{more}."
    if copies.links:
        yield f"Links, which are not followed: {', '.join(copies.links)}."
    if copies.archives:
        yield f"Not looked into: {', '.join(copies.archives)}. To open notebooks in there, unpack it first."
    if copies.unfinished:
        yield copies.unfinished


def listing(copies: Copies) -> Iterator[str]:
    """All that is known of the copies, as lines."""
    yield "These notebooks are copies. The originals are as they were."
    yield "Cells have the numbers they have in the originals; markup that is shown as text has a space put into it."
    yield from ending(copies, [outcome.copied for outcome in copies.outcomes if outcome.copied.copy_name])
    for outcome in copies.outcomes:
        yield ""
        yield said(outcome)
        for cell, kind, text in outcome.copied.quotes:
            where = f"cell {cell}" if cell else "notebook"
            yield f"    {where}, {WORDS[kind][0]}: {text}"
        if left := sum(outcome.copied.counts.values()) - len(outcome.copied.quotes):
            yield f"    and {left:,} more"
