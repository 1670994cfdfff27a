"""What a notebook carries at the moment, as one table: as text and as static HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pybox_kernel.render.amounts import counted, size
from pybox_kernel.render.carry import names_listed, quiet_name
from pybox_kernel.render.html import escape
from pybox_kernel.render.text import columns
from pybox_kernel.safe_display.text import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybox_kernel.carry.groups import Group, Listing, Missing

__all__ = ["carried_html", "carried_text"]

HEADINGS: Final = ("Name", "What", "Size", "From")
MOST_ROWS: Final = 200
MOST_MISSING: Final = 20
REASONS: Final = {
    "off": "it was defined while carrying was off",
    "failed": "that cell did not run to its end",
    "lost": "it could not be carried",
    "not_restored": "it could not be made again",
    "dropped": "it was dropped",
}


def carried_text(listing: Listing, most: int) -> str:
    """``most`` is how many bytes may be carried in all."""
    rows = [HEADINGS, *rows_of(listing)]
    widths = [max(columns(row[n]) for row in rows) for n in range(len(HEADINGS))]
    drawn = (
        "  ".join(cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True)) for row in rows
    )
    table = ["", *(row.rstrip() for row in drawn)] if len(rows) > 1 else []
    return "\n".join([*sentences(listing, most), *table, *([""] if listing.missing else []), *missing_of(listing)])


def carried_html(listing: Listing, most: int) -> str:
    cell = "style='text-align:left;padding:2px 12px 2px 0'"
    head = "".join(f"<th {cell}>{heading}</th>" for heading in HEADINGS)
    rows = [f"<tr>{''.join(f'<td {cell}>{escape(text)}</td>' for text in row)}</tr>" for row in rows_of(listing)]
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>" if rows else ""
    missing = "".join(f"<br>{escape(line)}" for line in missing_of(listing))
    return (
        "<div class='mathjax_ignore tex2jax_ignore' style='font-size:13px'>"
        f"<p>{escape(' '.join(sentences(listing, most)))}</p>{table}{missing and f'<p>{missing[4:]}</p>'}</div>"
    )


def sentences(listing: Listing, most: int) -> Iterator[str]:
    names = sum(len(group.names) for group in listing.groups)
    held = size(sum(len(group.data) for group in listing.groups))
    yield f"{counted(names, 'name')} carried from cell to cell, {held} of {size(most)} in all."
    yield {
        "on": "A cell that fails changes nothing.",
        "keep": "What a cell defined before it failed is kept.",
        "off": "Carrying is off: cells do without it until %pybox carry on.",
    }[listing.mode]
    if listing.back:
        yield f"%pybox carry back N returns to what there was N cells ago: {listing.back:,} at most."


def rows_of(listing: Listing) -> Iterator[tuple[str, ...]]:
    ordered = sorted(listing.groups, key=lambda group: bool(group.kind))
    for group in ordered[:MOST_ROWS]:
        yield row_of(group)
    if len(ordered) > MOST_ROWS:
        rest = ordered[MOST_ROWS:]
        yield f"{len(rest):,} more", "", size(sum(len(group.data) for group in rest)), ""


def row_of(group: Group) -> tuple[str, ...]:
    origin = "an earlier cell" if group.cell is None else f"cell [{group.cell}]"
    if group.kind:
        return f"({quiet_name(group.kind)})", "", size(len(group.data)), origin
    types = dict.fromkeys(safe_name(kind, 40) for kind in group.types)
    return names_listed(group.names), names_listed(types, most=3), size(len(group.data)), origin


def missing_of(listing: Listing) -> Iterator[str]:
    """The latest of them."""
    for name, why in list(listing.missing.items())[: -MOST_MISSING - 1 : -1]:
        yield f"Not carried: {safe_name(name, 60)}{told(why)}"


def told(missing: Missing) -> str:
    where = f", of cell [{missing.cell}]" if missing.cell is not None else ""
    said = f" ({safe_name(missing.detail, 160)})" if missing.detail else ""
    return f"{where}: {REASONS[missing.why]}{said}."
