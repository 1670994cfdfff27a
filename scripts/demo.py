"""Runs a notebook through the installed kernel, and shows each cell, its output and its receipt.

``demo.py NOTEBOOK``. Exit status 0: every cell has a receipt and ended as the notebook says, that is without
an error or with the one named in its metadata: ``{"pybox": {"error": "PyBoxDeadline"}}``.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH = min(shutil.get_terminal_size((100, 24)).columns, 100) - 4
CELL_SECONDS = 60


class Look(NamedTuple):
    """Terminal codes, or nothing at all where they are not wanted."""

    bold: str = ""
    faint: str = ""
    red: str = ""
    off: str = ""


COLOURS = Look(bold="\x1b[1m", faint="\x1b[2m", red="\x1b[31m", off="\x1b[0m")
COLOUR_CODES = re.compile(r"\x1b\[[0-9;]*m")


def receipt_of(cell: nbformat.NotebookNode) -> str | None:
    """The text of the receipt: the last thing under a cell, and the only one that is more than plain text."""
    for output in cell.outputs[-1:]:
        if output.output_type == "display_data" and "text/html" in output.data:
            return str(output.data["text/plain"])
    return None


def what_is_wrong(cell: nbformat.NotebookNode) -> str | None:
    """How a finished cell differs from what the notebook says of it."""
    wanted = cell.metadata.get("pybox", {}).get("error", "no error")
    found = next((output.ename for output in cell.outputs if output.output_type == "error"), "no error")
    if receipt_of(cell) is None:
        return "there is no receipt under this cell"
    return None if found == wanted else f"wanted at the end of this cell: {wanted}; found: {found}"


def prose(source: str, look: Look) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", source):
        if block.startswith("#"):
            yield f"{look.bold}{block.lstrip('# ')}{look.off}"
        else:
            yield from textwrap.wrap(" ".join(block.split()).replace("**", ""), WIDTH)
        yield ""


def within(mark: str, text: str) -> Iterator[str]:
    """The lines of ``text`` behind ``mark``, cut at words so that none of them can reach the left edge again."""
    for line in COLOUR_CODES.sub("", text).splitlines():
        parts = textwrap.wrap(line, WIDTH, drop_whitespace=False, break_on_hyphens=False) or [""]
        yield from (f"  {mark} {part}" for part in parts)


def code(source: str, look: Look) -> Iterator[str]:
    yield from (f"{look.faint}{line}{look.off}" for line in within("│", source))
    yield ""


def results(cell: nbformat.NotebookNode, look: Look) -> Iterator[str]:
    """What came out of a cell, behind a mark; then its receipt at the left edge, where no program can write."""
    for output in cell.outputs:
        if output.output_type == "stream":
            yield from within(">", output.text)
        elif output.output_type == "error":
            told = within(">", "\n".join(output.traceback))
            yield from (f"{look.red}{line}{look.off}" for line in told)
    yield ""
    yield from (f"{look.bold}{line}{look.off}" for line in (receipt_of(cell) or "").splitlines())
    yield ""


def run(notebook: Path, look: Look) -> list[str]:
    """Runs and prints every cell in turn. Returns what was not as it should be."""
    wrong: list[str] = []
    document = nbformat.read(notebook, as_version=4)
    with TemporaryDirectory(prefix="pybox-demo-") as folder:
        # Files that only this user can open, in place of ports that everyone on this machine can reach.
        manager = AsyncKernelManager(
            kernel_name=document.metadata.kernelspec.name,
            transport="ipc",
            connection_file=f"{folder}/kernel.json",
        )
        client = NotebookClient(document, km=manager, timeout=CELL_SECONDS, allow_errors=True)
        with client.setup_kernel(cleanup_kc=True):
            for index, cell in enumerate(document.cells):
                if cell.cell_type != "code":
                    print(*prose(cell.source, look), sep="\n")
                    continue
                print(*code(cell.source, look), sep="\n", flush=True)
                client.execute_cell(cell, index)
                print(*results(cell, look), sep="\n", flush=True)
                if problem := what_is_wrong(cell):
                    print(f"{look.red}NOT AS EXPECTED: {problem}{look.off}\n")
                    wrong.append(f"{cell.id}: {problem}")
    return wrong


def main() -> int:
    look = COLOURS if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else Look()
    try:
        wrong = run(Path(sys.argv[1]), look)
    except KeyboardInterrupt:
        return 130
    except (CellTimeoutError, DeadKernelError) as error:
        wrong = [f"the kernel did not finish: {str(error).splitlines()[0]}"]
    print("\n".join(wrong) or "Every cell ended as the notebook says, each with its receipt.")
    if any(problem.endswith("no error; found: PyBoxDeadline") for problem in wrong):
        print("A cell met its time limit: if this computer is busy with something else, run it again when it is not.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
