"""What is carried between cells, in plain words: on receipts, and as the table of ``%pybox carry``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pybox_kernel.render.advice import in_marks
from pybox_kernel.render.amounts import counted, finished, size
from pybox_kernel.safe_display.text import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pybox_kernel.receipt.carried import Carried, CarriedGroup, LostValue, NotRestoredValue
    from pybox_kernel.receipt.model import Receipt

__all__ = ["QUIET", "allowed", "lost_note", "names_listed", "quiet_name", "said", "seen", "suspected"]

LINES: Final = "lines"
"""The lines of a cell's functions, that tracebacks show: too small a thing to name on every receipt."""

QUIET: Final = {
    "random": "the state of random",
    "numpy.random": "the state of numpy.random",
    "numpy": "settings of numpy",
    "matplotlib": "settings of matplotlib",
    "pandas": "options of pandas",
    "python": "settings of Python",
    "warnings": "filters of warnings",
    "decimal": "the context of decimal",
    "environ": "environment variables",
    "logging": "settings of logging",
    "folder": "files of the working folder",
    LINES: "lines of cells, for tracebacks",
}
"""What notebooks rely on without a name. Other kinds keep their names."""

MOST_NAMED: Final = 12
MOST_SENTENCES: Final = 8


def quiet_name(kind: str) -> str:
    return QUIET.get(kind) or f"the state of {safe_name(kind, 40)}"


def names_listed(names: Iterable[str], more: int = 0, most: int = MOST_NAMED) -> str:
    shown = [safe_name(name, 40) for name in names]
    more += max(0, len(shown) - most)
    return ", ".join([*shown[:most], *([f"{more:,} more"] if more else [])])


def allowed(receipt: Receipt) -> Iterator[str]:
    mode = receipt.asked.options.carry
    if mode == "on":
        yield "Values are carried between cells."
    elif mode == "keep":
        yield "Values are carried between cells, also those that a cell defined before it failed."


def seen(receipt: Receipt) -> Iterator[str]:
    found = receipt.observed.carried
    if found is None or receipt.observed.end.how == "not_started":
        return
    put_in = tuple(group for group in found.put_in if group.kind != LINES)
    if put_in:
        yield f"Carried in: {by_cell(put_in, found.put_in_more)}."
    if found.kept_back:
        values = counted(found.kept_back, "other")
        yield f"Not put in, since the cell does not name them: {values} ({size(found.kept_back_bytes)})."
    if found.why_nothing is not None:
        yield f"Carried out: nothing, since {finished(found.why_nothing)} What earlier cells left is as it was."
    elif taken_out := tuple(group for group in found.taken_out if group.kind != LINES):
        yield f"Carried out: {described(taken_out, found.taken_out_more)}."
    if gone := gone_of(found, receipt):
        yield f"Carried in, and not left for later cells: {names_listed(gone)}."


def suspected(receipt: Receipt) -> str:
    """What to do where a run that got something of earlier cells did not end well: they chose it, and it acts from the
    first line on. Empty for any other."""
    found = receipt.observed.carried
    if found is None or not found.put_in or receipt.ok or receipt.observed.end.how in ("not_started", "stopped"):
        return ""
    return (
        "If its own code does not explain it, what earlier cells left may: %pybox carry back, in a cell of its own,"
        " returns to what there was before the last cell, and %pybox carry clear drops it all."
    )


def gone_of(found: Carried, receipt: Receipt) -> list[str]:
    """The names that went in and did not come out: the program deleted them, or says nothing of them. None where not
    all of them are listed."""
    told = receipt.said
    more = found.put_in_more + found.taken_out_more + told.not_restored_more + told.lost_more
    more += sum(group.more_names for group in (*found.put_in, *found.taken_out))
    if found.why_nothing is not None or more or any(group.more_names for group in told.not_restored):
        return []
    known = {name for group in found.taken_out for name in group.names}
    known |= {name for group in told.not_restored for name in group.names}
    known |= {item.name for item in told.lost}
    return [name for group in found.put_in for name in group.names if name not in known]


def by_cell(groups: tuple[CarriedGroup, ...], more: int) -> str:
    """Together what is of one cell: df, x (1.2 MB) from cell [3]."""
    cells: dict[int | None, list[CarriedGroup]] = {}
    for group in groups:
        cells.setdefault(group.cell, []).append(group)
    parts = [
        f"{described(tuple(found))} from {'an earlier cell' if cell is None else f'cell [{cell}]'}"
        for cell, found in cells.items()
    ]
    if len(parts) > MOST_SENTENCES:
        parts[MOST_SENTENCES:] = [f"{len(parts) - MOST_SENTENCES:,} more cells' values"]
    if more:
        parts.append(f"{more:,} more")
    return "; ".join(parts)


def described(groups: tuple[CarriedGroup, ...], more: int = 0) -> str:
    names = [name for group in groups for name in group.names]
    unnamed = sum(group.more_names for group in groups) + more
    quiet = [quiet_name(group.kind) for group in groups if group.kind]
    listed = [names_listed(names, unnamed)] if names or unnamed else []
    return f"{', '.join([*listed, *quiet])} ({'at least ' if more else ''}{size(sum(group.bytes for group in groups))})"


def said(receipt: Receipt) -> Iterator[str]:
    told = receipt.said
    for item in told.lost[:MOST_SENTENCES]:
        yield lost(item)
    if rest := max(0, len(told.lost) - MOST_SENTENCES) + told.lost_more:
        yield f"Nor {counted(rest, 'more value')}."
    for entry in told.not_restored[:MOST_SENTENCES]:
        yield not_restored(entry)
    if rest := max(0, len(told.not_restored) - MOST_SENTENCES) + told.not_restored_more:
        yield f"Nor {counted(rest, 'more value')}."


def lost(item: LostValue) -> str:
    kind = f" ({in_marks(item.type)})" if item.type else ""
    return f"Not carried to later cells: {in_marks(item.name)}{kind}: {finished(item.why)}"


def not_restored(item: NotRestoredValue) -> str:
    what = names_listed(item.names, item.more_names) if item.names else quiet_name(item.kind)
    return f"Carried in, but not made again: {what}: {finished(item.why)}"


def lost_note(receipt: Receipt) -> Iterator[str]:
    """For the folded line."""
    told, found = receipt.said, receipt.observed.carried
    if number := len(told.lost) + told.lost_more:
        yield f"{counted(number, 'value')} not carried"
    if number := len(told.not_restored) + told.not_restored_more:
        yield f"{counted(number, 'value')} not made again"
    if found is not None and found.why_nothing is not None and receipt.ok:
        yield "nothing carried to later cells"
