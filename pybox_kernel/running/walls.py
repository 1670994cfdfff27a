"""The walls of a box that an exception met: what a program wanted that a box does not give.

An exception is the program's word, and so is what it met. Only what can be told from it without guessing is: which
wall, and what stood behind it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pybox_kernel.carry.groups import Missing, Mode
from pybox_kernel.receipt.model import Wall
from pybox_kernel.running.transcript import ProgramError
from pybox_kernel.safe_display.text import safe_name

__all__ = ["wall_of"]

HISTORY: Final = re.compile(r"_{1,3}|_i{0,3}|_i?[0-9]{1,6}|_[io]h|_dh|In|Out")
"""Names by which IPython has the last results, and what was typed."""


def wall_of(
    error: ProgramError | None,
    earlier: Mapping[str, int],
    mode: Mode | None = None,
    missing: Mapping[str, Missing] = MappingProxyType({}),
) -> Wall | None:
    """The wall that ``error`` met, if it met one. ``earlier`` has the names that cells before this one defined, each
    with the number of its cell: a name that is not among them is an ordinary mistake, and no wall. Where values are
    carried from those cells, only those that ``missing`` has met one."""
    if error is None or error.about is None:
        return None
    about = error.about
    if about.kind != "name":
        return Wall(kind=about.kind, what=about.what, cell=None)
    if mode is not None and HISTORY.fullmatch(about.what) and about.what not in (*earlier, *missing):
        return Wall(kind="name", what=about.what, cell=None, why_missing="history")
    if mode in (None, "off"):
        known = about.what in earlier
        return Wall(kind="name", what=about.what, cell=earlier[about.what], why_missing=mode) if known else None
    found = missing.get(about.what)
    if found is None:
        return None
    detail = safe_name(found.detail) if found.detail else None
    return Wall(kind="name", what=about.what, cell=found.cell, why_missing=found.why, detail=detail)
