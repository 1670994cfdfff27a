"""``%pybox carry``: what a person asks of what their cells carry from one to the next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pybox_kernel.carry.groups import MOST_CARRIED, size_of
from pybox_kernel.errors import OptionError
from pybox_kernel.notebook.commands import FORMS
from pybox_kernel.render.amounts import counted, size
from pybox_kernel.render.carry import names_listed, quiet_name
from pybox_kernel.render.carry_table import carried_html, carried_text
from pybox_kernel.sessions.session import Carry

__all__ = ["carried", "in_short", "obey"]

COMMAND: Final = "%pybox carry"
NUMBER: Final = re.compile(r"[0-9]{1,5}")
MODES: Final = {
    "off": "Off: cells below start with nothing of other cells, and leave nothing. What is carried now is kept for"
    f" `{COMMAND} on`.",
    "on": "On: a cell gets what it uses of the cells before it, and leaves what it defines, if it runs to its end.",
    "keep": "On, and what a cell defined before it failed is kept too.",
}


def obey(carry: Carry, words: Sequence[str]) -> str | None:
    """Does it, and says what was done, in a sentence; None where the table of what is carried is the answer. Raises
    OptionError for what is none of ``FORMS``, and for what is not there."""
    match list(words):
        case []:
            return None
        case [("off" | "on" | "keep") as mode]:
            carry.mode = mode
            return MODES[mode]
        case ["drop", *names] if names:
            dropped = carry.drop([name.rstrip(",") for name in names])
            named = [name for group in dropped for name in group.names or (quiet_name(group.kind),)]
            return f"Dropped: {names_listed(named)}."
        case ["clear"]:
            return f"Dropped all there was: {counted(carry.clear(), 'name')}."
        case ["back", *number] if not number or (len(number) == 1 and NUMBER.fullmatch(number[0])):
            cells = int(number[0]) if number else 1
            carry.back(cells)
            return f"Back to what was carried before the last {f'{cells:,} cells' if cells > 1 else 'cell'}."
    raise OptionError(
        f"`{COMMAND} {' '.join(words)[:60]}` is none of its forms.",
        f"Write `{COMMAND}`, alone or with one of these: {FORMS[1:-1].replace('|', ', ')}.",
    )


def carried(carry: Carry) -> dict[str, object]:
    """The table, as the data of a display message."""
    listing = carry.listing()
    return {"text/plain": carried_text(listing, MOST_CARRIED), "text/html": carried_html(listing, MOST_CARRIED)}


def in_short(carry: Carry) -> str:
    listing = carry.listing()
    if listing.mode == "off":
        return f"nothing; `{COMMAND} on` lets cells have what those above them made"
    names = sum(len(group.names) for group in listing.groups)
    kept = ", of cells that failed too" if listing.mode == "keep" else ""
    return f"{counted(names, 'name')}, {size(size_of(listing.groups))}{kept}; `{COMMAND}` lists them"
