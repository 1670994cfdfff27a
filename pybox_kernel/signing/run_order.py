"""Whether a notebook's cells ran in the order in which they stand, in one session, each on what those above left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pybox_kernel.carry.chain import Link, breaks
from pybox_kernel.signing.receipt_check import CellCheck

__all__ = ["Order", "order_of"]

MOST_TOLD = 20


class Order(NamedTuple):
    broken: tuple[str, ...]
    """Why they did not, a sentence each; nothing where they did."""
    missing: int
    """Cells that ran in between, and are not here."""


def order_of(cells: Sequence[CellCheck]) -> Order:
    """Only receipts that were made here count."""
    here = [cell for cell in cells if cell.statement is not None and cell.verdict == "unchanged"]
    found: list[str] = []
    seen: dict[tuple[str, int], int] = {}
    last: CellCheck | None = None
    missing = 0
    for cell in here:
        assert cell.statement is not None
        session, serial = cell.statement.session, cell.statement.serial
        if (session, serial) in seen:
            found.append(f"Cells {seen[session, serial]} and {cell.place} show one and the same run.")
            continue
        seen[session, serial] = cell.place
        if last is not None and last.statement is not None:
            if session != last.statement.session:
                found.append(f"Cell {cell.place} ran in another session than cell {last.place}.")
            elif serial < last.statement.serial:
                found.append(f"Cell {cell.place} ran before cell {last.place}, which stands above it.")
            else:
                missing += serial - last.statement.serial - 1
        last = cell
    links = {cell.place: link for cell in here if (link := link_of(cell)) is not None}
    places = {link.run: place for place, link in links.items()}
    for torn in breaks(list(links.values())):
        found.append(f"Cell {places[torn.run]} got {torn.names} from elsewhere: {torn.why}.")
    if len(found) > MOST_TOLD:
        found[MOST_TOLD:] = [f"And {len(found) - MOST_TOLD} things more."]
    return Order(tuple(found), missing)


def link_of(cell: CellCheck) -> Link | None:
    return Link.of(cell.statement.carried) if cell.statement is not None else None
