"""What a cell says to PyBox itself: ``%pybox NAME`` as a cell of its own, and ``%%pybox OPTIONS`` as its first line."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Final, NamedTuple

from pybox_kernel.errors import OptionError

__all__ = ["COMMANDS", "OPTIONS", "Command", "Options", "command_of", "free_folder", "options_of"]

MAGIC: Final = "%pybox"
CELL_MAGIC: Final = "%%pybox"
COMMANDS: Final = {
    "summary": "all receipts of this session, as one table",
    "use": "what all later cells ask for",
}


MOST_FOLDERS: Final = 1000


class Option(NamedTuple):
    value: str
    """What its value is called."""
    meaning: str
    example: str
    many: bool = False
    """It takes one value or more."""


OPTIONS: Final = {
    "image": Option("NAME", "the image that boxes are made from", "data"),
    "timeout": Option("S", "a time limit in seconds", "10"),
    "input": Option("PATH", "files and folders that are copied into the box", "data/", many=True),
    "output": Option("DIR", "a new folder for the files that the cell makes", "results/"),
}


@dataclass(frozen=True)
class Options:
    """What a cell asks for, each as it was written; None and nothing where it does not."""

    image: str | None = None
    timeout: str | None = None
    input: tuple[str, ...] = ()
    output: str | None = None

    def over(self, others: Options) -> Options:
        """These, and where they ask for nothing, what ``others`` ask for."""
        return replace(others, **{f.name: found for f in fields(self) if (found := getattr(self, f.name))})

    def __str__(self) -> str:
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        words = [[f"--{name}", *([value] if isinstance(value, str) else value)] for name, value in values if value]
        return shlex.join(word for part in words for word in part)


class Command(NamedTuple):
    """``name`` is one of ``COMMANDS``."""

    name: str
    options: Options = Options()


def command_of(code: str) -> Command | None:
    """The command that a cell holds, alone but for comments and empty lines; None for a program.

    Raises OptionError for a command that is none, or has what it does not take.
    """
    lines = [line for line in map(str.strip, code.split("\n")) if line and not line.startswith("#")]
    if len(lines) != 1:
        return None
    first, rest = (*lines[0].split(None, 1), "")[:2]
    if first != MAGIC:
        return None
    words = words_of(rest)
    known = "; ".join(f"`{MAGIC} {name}`: {what}" for name, what in COMMANDS.items())
    if not words:
        raise OptionError(f"`{MAGIC}` wants a word more.", f"There are {known}.")
    name, *words = words
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, 1)
        meant = f"Did you mean `{MAGIC} {near[0]}`?" if near else f"There are {known}."
        raise OptionError(f"There is no `{MAGIC} {name[:40]}`.", meant)
    if name == "use":
        return Command(name, read_options(words, f"{MAGIC} {name}"))
    if words:
        raise OptionError(f"`{MAGIC} {name}` takes nothing more.", "Leave it out.")
    return Command(name)


def options_of(code: str) -> tuple[str, Options]:
    """The program of a cell, with an empty line in the place of its ``%%pybox``, and what that line asks for.

    Raises OptionError for an option that is not in ``OPTIONS``, or that has no value.
    """
    before, line, after = first_line(code)
    name, rest = (*line.split(None, 1), "", "")[:2]
    if name != CELL_MAGIC:
        return code, Options()
    return before + after, read_options(words_of(rest), CELL_MAGIC)


def free_folder(folder: str, cell: int) -> str:
    """Where the files of one of many cells go that all have ``folder``: a folder of its own in it, that is not there
    yet. Raises OptionError where there are too many."""
    name = f"{folder.rstrip('/')}/cell-{cell}"
    for path in (name, *(f"{name}-{number}" for number in range(2, MOST_FOLDERS))):
        if not os.path.lexists(path):
            return path
    raise OptionError(
        f"There are {MOST_FOLDERS:,} folders of this cell already.", "Remove some, or name another folder."
    )


def read_options(words: list[str], before: str) -> Options:
    found: dict[str, str | tuple[str, ...]] = {}
    while words:
        written, equals, value = words.pop(0).partition("=")
        name = written.removeprefix("--")
        if name not in OPTIONS or name == written:
            near = get_close_matches(name, OPTIONS, 1)
            known = ", ".join(f"--{known} {option.value}" for known, option in OPTIONS.items())
            advice = f"Did you mean --{near[0]} {OPTIONS[near[0]].value}?" if near else f"There are {known}."
            raise OptionError(f"`{before}` has no option {written[:40]!r}.", advice)
        option = OPTIONS[name]
        values = [value] if equals else []
        while words and not words[0].startswith("--") and (option.many or not values):
            values.append(words.pop(0))
        if not any(values):
            raise OptionError(
                f"--{name} wants a value, {option.meaning}.", f"As in `{before} --{name} {option.example}`."
            )
        if name in found and not option.many:
            raise OptionError(f"--{name} is there twice.", "Leave one out.")
        found[name] = (*found.get(name, ()), *values) if option.many else values[0]
    return Options(**found)  # type: ignore[arg-type]


def words_of(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError as error:
        raise OptionError(f"The line cannot be read: {error}.", "Put quotation marks in pairs.") from None


def first_line(code: str) -> tuple[str, str, str]:
    """Empty lines before the first other one, that line without its end, and the rest."""
    # As Python splits them: str.splitlines knows more ends of a line, which an editor may not show as such.
    start = len(code) - len(code.lstrip(" \t\r\n"))
    start = code.rfind("\n", 0, start) + 1
    end = code.find("\n", start)
    end = len(code) if end < 0 else end
    text = code[start:end].rstrip("\r")
    return code[:start], text, code[start + len(text) :]
