"""What a cell says to PyBox itself: ``%pybox NAME`` as a cell of its own, and ``%%pybox OPTIONS`` as its first line."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final, NamedTuple

from pybox_kernel.errors import OptionError

__all__ = ["COMMANDS", "OPTIONS", "Command", "Options", "command_of", "options_of"]

MAGIC: Final = "%pybox"
CELL_MAGIC: Final = "%%pybox"
COMMANDS: Final = {"summary": "all receipts of this session, as one table"}
OPTIONS: Final = {"--timeout": "a time limit in seconds"}


class Command(NamedTuple):
    """``name`` is one of ``COMMANDS``; or ``mistake`` says what is wrong with the line."""

    name: str
    mistake: str = ""


class Options(NamedTuple):
    """What a cell asks for."""

    timeout: str | None = None
    """As it was written; ``policy.checked_deadline`` reads it."""


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


def options_of(code: str) -> tuple[str, Options]:
    """The program of a cell, with an empty line in the place of its ``%%pybox``, and what that line asks for.

    Raises OptionError for an option that is not in ``OPTIONS``, or that has no value.
    """
    before, line, after = first_line(code)
    name, *words = line.split() or [""]
    if name != CELL_MAGIC:
        return code, Options()
    found: dict[str, str] = {}
    while words:
        option, equals, value = words.pop(0).partition("=")
        if option not in OPTIONS:
            near = get_close_matches(option, OPTIONS, 1) or list(OPTIONS)
            raise OptionError(
                f"`{CELL_MAGIC}` has no option {option[:40]!r}.",
                f"Did you mean {near[0]} S, {OPTIONS[near[0]]}?",
            )
        if not equals and not words:
            raise OptionError(f"{option} wants a value, {OPTIONS[option]}.", f"As in `{CELL_MAGIC} {option} 10`.")
        found[option.removeprefix("--")] = value if equals else words.pop(0)
    return before + after, Options(**found)


def first_line(code: str) -> tuple[str, str, str]:
    """Empty lines before the first other one, that line without its end, and the rest."""
    lines = code.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.strip():
            text = line.rstrip("\r\n")
            return "".join(lines[:number]), text, line[len(text) :] + "".join(lines[number + 1 :])
    return code, "", ""
