"""What PyBox answers to a ``%pybox`` line: rows of a name and a text, or receipts. As text, and as static HTML."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from pybox_kernel import __version__
from pybox_kernel.doctor import Finding, in_short
from pybox_kernel.errors import OptionError
from pybox_kernel.files.named_paths import check_beside
from pybox_kernel.install import KERNEL_NAME
from pybox_kernel.notebook.commands import CELL_MAGIC, COMMANDS, MAGIC, OPTIONS, STATUS, Command, Options
from pybox_kernel.notebook.session_receipts import SessionReceipts
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.boundary import boundary_note
from pybox_kernel.render.html import escape, notice_html, render_html
from pybox_kernel.render.text import columns, render_full
from pybox_kernel.safe_display.text import safe_name, safe_text
from pybox_kernel.sessions import session
from pybox_kernel.signing.file_check import check_file, in_words, mark_of, order_lines, title_of
from pybox_kernel.signing.keys import SigningKeys

__all__ = ["MARKS", "Standing", "answer", "help_on_options"]

MARKS: Final = {"ok": "✓", "warning": "⚠", "wrong": "■"}
NEWEST: Final = 3
MOST_ROWS: Final = 200

Bundle = Mapping[str, str]
"""The data of a display message."""

Rows = Sequence[tuple[str, str]]


class Standing(NamedTuple):
    """What holds for later cells."""

    image: str
    """The image of those that do not name one."""
    used: Options
    guard: str
    """Which cells are sealed, in words."""
    carried: str
    """What they have of one another, in words."""
    engine: session.Wish
    """What was said of the engine."""


def answer(command: Command, receipts: SessionReceipts, standing: Standing) -> Bundle:
    """To every command that only asks. May take as long as the engine takes to answer. Raises OptionError for a receipt
    that is not there."""
    if command.name == "receipts":
        return receipts.table
    if command.name == "receipt":
        return unfolded(receipts.find(command.words[0]))
    if command.name == "check":
        return checked(command.words[0] if command.words else None)
    if command.name == "doctor":
        findings = session.examine(KERNEL_NAME, lambda: standing.engine)
        return rows_bundle(verdict(findings), [row_of(finding) for finding in findings])
    if command.name == "help":
        return help_on_commands()
    assert command.name == STATUS
    return status(session.examine(KERNEL_NAME, lambda: standing.engine), receipts, standing)


def status(findings: Sequence[Finding], receipts: SessionReceipts, standing: Standing) -> Bundle:
    last = receipts.last
    image = "box image" if standing.image == "stdlib" else f"box image {standing.image}"
    rows = [row_of(finding) for finding in findings if finding.what in ("container engine", image)]
    seen = "".join(boundary_note(last.observed.boundary)) if last is not None else ""
    rows.append(("boundary", f"the last box: {seen}" if seen else "not known before a box was looked at"))
    rows.append(("sealed", standing.guard))
    rows.append(("carried", standing.carried))
    rows.append(("cells ask for", str(standing.used) or "nothing special"))
    rows.append(("this session", receipts.total))
    rows += [(f"cell {line.cells[0]}", " · ".join(line.cells[1:4])) for line in receipts.newest(NEWEST)]
    return rows_bundle(f"PyBox {__version__}. {verdict(findings)} `{MAGIC} help` says what there is.", rows)


def verdict(findings: Sequence[Finding]) -> str:
    well = all(finding.state == "ok" for finding in findings)
    return f"{in_short(findings)}{'' if well else f': see `{MAGIC} doctor`'}."


def row_of(finding: Finding) -> tuple[str, str]:
    advice = f". {finding.advice}" if finding.advice else ""
    return finding.what, f"{MARKS[finding.state]} {finding.found.rstrip('.')}{advice}"


def help_on_commands() -> Bundle:
    rows = [(MAGIC, "how things stand")]
    rows += [(f"{MAGIC} {name} {word.takes}".rstrip(), word.meaning) for name, word in COMMANDS.items()]
    return rows_bundle(
        f"`{CELL_MAGIC}` on top of a cell runs it in a sealed box, and `{CELL_MAGIC}?` says what may stand behind it."
        " In a line of its own there are:",
        rows,
    )


def help_on_options() -> Bundle:
    """What ``%%pybox --help`` says."""
    rows = [
        (f"{name} {option.value}{' ...' * option.many}".rstrip(), option.meaning) for name, option in OPTIONS.items()
    ]
    return rows_bundle(
        f"`{CELL_MAGIC}` on top of a cell runs it in a fresh sealed box, with a receipt. It takes:", rows
    )


def checked(name: str | None) -> Bundle:
    """What there is to say of a notebook's file: of the one with this name below the current folder, or of the one that
    the Jupyter server says is this notebook's. Raises InputError."""
    path = Path(name) if name is not None else own_file()
    if name is not None:
        check_beside(name, Path.cwd())
        if not path.resolve().is_relative_to(Path.cwd().resolve()):
            raise OptionError(f"{safe_name(name, 100)} is a link that leads elsewhere.", "Name the file itself.")
    found = check_file(path, SigningKeys().ring())
    saved = datetime.fromtimestamp(path.stat().st_mtime).strftime("%H:%M:%S")
    rows = [(f"cell {cell.place}", f"{mark_of(cell)} {in_words(cell)}") for cell in found.cells]
    if len(rows) > MOST_ROWS:
        rows[MOST_ROWS:] = [("", f"and {len(rows) - MOST_ROWS} cells more: `pybox-kernel check` lists all")]
    rows += [("order", line) for line in order_lines(found)]
    return rows_bundle(f"{title_of(found)}. This is the file as it was saved at {saved}.", rows)


def own_file() -> Path:
    name = os.environ.get("JPY_SESSION_NAME", "")
    if not name.endswith(".ipynb"):
        raise OptionError("Which file this notebook is, is not known here.", f"Write `{MAGIC} check NAME.ipynb`.")
    return Path(name)


def unfolded(receipt: Receipt) -> Bundle:
    html = render_html(receipt).replace("<details ", "<details open ", 1)
    return {"text/plain": render_full(receipt), "text/html": html}


def rows_bundle(title: str, rows: Rows) -> Bundle:
    """Names beside texts, both of which may hold anything: they are made safe here."""
    safe = [(safe_name(name, 60), safe_name(text, 400)) for name, text in rows]
    width = max(columns(name) for name, _ in safe)
    lines = [safe_text(title), "", *(f"  {name}{' ' * (width - columns(name))}  {text}" for name, text in safe)]
    style = "style='text-align:left;padding:2px 12px 2px 0;vertical-align:top'"
    drawn = "".join(f"<tr><th {style}>{escape(name)}</th><td {style}>{escape(text)}</td></tr>" for name, text in safe)
    html = f"{notice_html(title)}<table class='mathjax_ignore tex2jax_ignore'><tbody>{drawn}</tbody></table>"
    return {"text/plain": "\n".join(lines), "text/html": f"<div style='font-size:13px'>{html}</div>"}
