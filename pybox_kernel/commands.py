"""Cells that are for PyBox itself: ``%pybox NAME`` as a cell of its own. They need no box, and run nothing."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final, NamedTuple

__all__ = ["COMMANDS", "Command", "command_of"]

MAGIC: Final = "%pybox"
COMMANDS: Final = {"summary": "all receipts of this session, as one table"}


class Command(NamedTuple):
    """``name`` is one of ``COMMANDS``; or ``mistake`` says what is wrong with the line."""

    name: str
    mistake: str = ""


def command_of(code: str) -> Command | None:
    """The command that a cell holds; None for a program. Comments and empty lines may stand beside it."""
    lines = [line for line in map(str.strip, code.splitlines()) if line and not line.startswith("#")]
    if len(lines) != 1:
        return None
    first, *words = lines[0].split()
    if first != MAGIC:
        return None
    known = "; ".join(f"`{MAGIC} {name}` shows {what}" for name, what in COMMANDS.items())
    if not words:
        return Command("", f"{MAGIC} wants a word more: {known}.")
    if words[0] not in COMMANDS:
        near = get_close_matches(words[0], COMMANDS, 1)
        meant = f" Did you mean `{MAGIC} {near[0]}`?" if near else f" {known}."
        return Command("", f"There is no `{MAGIC} {words[0][:40]}`.{meant}")
    if words[1:]:
        return Command("", f"`{MAGIC} {words[0]}` takes nothing more.")
    return Command(words[0])
