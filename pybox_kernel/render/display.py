"""Something a program shows, for the page: as text, and where it is more than text, inside a frame of the host's.

A program can draw anything, a receipt included. So what it shows stands in a dashed frame with a label, which its own
HTML, without styles, cannot draw, and which the receipt does not have. Styles keep to what ``render.html`` says.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from pybox_kernel.render.amounts import counted
from pybox_kernel.render.html import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pybox_kernel.safe_display.displays import Display, Picture, Table

__all__ = ["LABEL", "bundle"]

LABEL: Final = "Shown by the program"
FRAME: Final = "margin:0;border:1px dashed #8b949e;padding:2px 8px 8px"
SMALL: Final = "font-size:11px;opacity:0.75"
KINDS: Final = {"image/png": "PNG", "image/jpeg": "JPEG"}


def bundle(display: Display) -> dict[str, str]:
    """The data of a message: ``text/plain``, and ``text/html`` where there is something richer than text."""
    data = {"text/plain": str(display.text)}
    if display.picture is not None:
        data["text/plain"] = "\n".join(filter(None, (display.text, picture_in_words(display.picture))))
        data["text/html"] = framed(drawn_picture(display.picture))
    elif display.table is not None:
        data["text/html"] = framed(drawn_table(display.table))
    elif display.html is not None:
        data["text/html"] = framed(display.html)
    return data


def framed(content: str) -> str:
    return (
        f"<figure class='pybox-shown mathjax_ignore tex2jax_ignore' role='group' aria-label='{LABEL}' style='{FRAME}'>"
        f"<figcaption style='{SMALL};margin:0 0 4px;text-align:left'>{LABEL}</figcaption>"
        f"<div style='overflow:auto'>{content}</div></figure>"
    )


# Pictures


def picture_in_words(picture: Picture) -> str:
    return f"[Picture from the program: {picture.width} × {picture.height}, {KINDS[picture.mime]}]"


def drawn_picture(picture: Picture) -> str:
    alt = f"Picture from the program, {picture.width} × {picture.height}"
    data = base64.b64encode(picture.data).decode("ascii")
    return f"<img alt='{alt}' style='max-width:100%' src='data:{picture.mime};base64,{data}'>"


# Tables


def drawn_table(table: Table) -> str:
    """Numbers to the right and text to the left; what was left out is said where it was."""
    rows, columns = len(table.rows), len(table.numeric)
    rows_left_out, columns_left_out = table.shape[0] - rows, table.shape[1] - columns
    row_gap = position(table.row_gap, rows, rows_left_out)
    column_gap = position(table.column_gap, columns, columns_left_out)
    width = len(table.index_names) + columns + (column_gap is not None)
    body = [table_row(table, number, column_gap) for number in range(rows)]
    if row_gap is not None:
        words = f"… {counted(rows_left_out, 'row')} left out …"
        body.insert(row_gap, f"<tr><td colspan='{width}' style='text-align:center'>{words}</td></tr>")
    size = f"{counted(table.shape[0], 'row')} × {counted(table.shape[1], 'column')}"
    if columns_left_out:
        size += f", {counted(columns_left_out, 'column')} left out"
    return (
        f"<table><thead>{''.join(header(table, column_gap))}</thead><tbody>{''.join(body)}</tbody></table>"
        f"<div style='{SMALL}'>{size}</div>"
    )


def position(gap: int | None, shown: int, left_out: int) -> int | None:
    """Where the mark of what was left out stands: at the end if nobody says."""
    if not left_out:
        return None
    return shown if gap is None else gap


def header(table: Table, column_gap: int | None) -> Iterator[str]:
    """A row for each level, the names of the index in the last; and what the columns hold, in small letters. Where the
    levels have names, these stand before them, and the names of the index in a row of their own, as in pandas."""
    last, none = len(table.columns) - 1, ("",) * len(table.index_names)
    named = any(table.column_names) and len(none) > 0
    for level, names in enumerate(table.columns):
        above_index = table.index_names if level == last and not named else none
        if named:
            above_index = (*none[1:], table.column_names[level])
        names_of_index = [cell("th", name, "left") for name in above_index]
        shown = [cell("th", name, side(numeric)) for name, numeric in zip(names, table.numeric, strict=True)]
        yield row([*names_of_index, *with_gap(shown, column_gap, "th")])
    if named and any(table.index_names):
        beside = [cell("th", "", "left")] * len(table.numeric)
        yield row([*(cell("th", name, "left") for name in table.index_names), *with_gap(beside, column_gap, "th")])
    if table.dtypes:
        names_of_index = [cell("td", "", "left")] * len(table.index_names)
        kinds = zip(table.dtypes, table.numeric, strict=True)
        shown = [cell("td", name, side(numeric), f"{SMALL};") for name, numeric in kinds]
        yield row([*names_of_index, *with_gap(shown, column_gap, "td")])


def table_row(table: Table, number: int, column_gap: int | None) -> str:
    names = (cell("th", name, "left") for name in table.index[number])
    values = [cell("td", text, side(right)) for text, right in zip(table.rows[number], table.numeric, strict=True)]
    return row([*names, *with_gap(values, column_gap, "td")])


def with_gap(cells: list[str], gap: int | None, tag: str) -> list[str]:
    return cells if gap is None else [*cells[:gap], cell(tag, "…", "left"), *cells[gap:]]


def side(numeric: bool) -> str:
    return "right" if numeric else "left"


def cell(tag: str, text: str, align: str, style: str = "") -> str:
    return f"<{tag} style='{style}text-align:{align}'>{escape(text)}</{tag}>"


def row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"
