"""What a cell says to PyBox itself: ``%pybox NAME`` as a cell of its own, and ``%%pybox OPTIONS`` as its first line."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from pybox_kernel.errors import OptionError

__all__ = [
    "CELL_MAGIC",
    "COMMANDS",
    "FORMS",
    "MAGIC",
    "OPTIONS",
    "OTHER_NAMES",
    "STATUS",
    "Command",
    "Option",
    "Options",
    "command_of",
    "first_line",
    "options_of",
    "read_command",
]

MAGIC: Final = "%pybox"
CELL_MAGIC: Final = "%%pybox"


class Word(NamedTuple):
    """A command's meaning, and what may stand behind it: words that are shown so in help, options, or nothing."""

    meaning: str
    takes: str = ""


FORMS: Final = "[off|on|keep|drop NAME ...|clear|back [N]]"
"""What may stand behind ``%pybox carry``."""

QUESTIONS: Final = frozenset(
    form for word in (MAGIC, CELL_MAGIC) for form in (f"{word}?", f"{word}??", f"?{word}", f"??{word}")
)
"""How IPython is asked what a magic is."""

STATUS: Final = "status"
"""What a command is called that has no word."""

COMMANDS: Final = {
    "receipts": Word("all receipts of this session, as one table (`summary` does the same)"),
    "receipt": Word("one of them, unfolded: by the number of its cell, or by its id", "ID"),
    "doctor": Word("what is wrong on this computer, if anything, and what to do"),
    "carry": Word("what cells leave to later ones: alone, the table of it", FORMS),
    "check": Word("whether this notebook, as it was saved, was made here and is unchanged; or another file", "[FILE]"),
    "use": Word(f"what all later cells ask for, as behind `{CELL_MAGIC}`; alone: nothing special", "OPTIONS"),
    "guard": Word("in an ordinary notebook: seals every later cell that does not begin with `%%host`", "on|off"),
    "help": Word("says all this"),
}
OTHER_NAMES: Final = {"summary": "receipts"}


class Option(NamedTuple):
    field: str
    """Of ``Options``."""
    value: str
    """What its value is called; nothing where it takes none."""
    meaning: str
    example: str = ""
    many: bool = False
    """It takes one value or more."""
    of_one_cell: bool = False
    """It cannot be asked for all later cells."""
    alone: str = ""
    """Its value where none is given; nothing where one must be."""


OPTIONS: Final = {
    "--image": Option("image", "NAME", "the image that boxes are made from", "data"),
    "--timeout": Option("timeout", "S", "a time limit in seconds", "10"),
    "--input": Option("input", "PATH", "files and folders that are copied into the box", "data/", many=True),
    "--output": Option("output", "DIR", "a new folder for the files that the cell makes", "results/"),
    "--carry": Option("carry", "on|off|keep", "values of the cells before it, and its own for those below", alone="on"),
    "-i": Option("values_in", "NAME", "values that are copied into the box", "df", many=True, of_one_cell=True),
    "-o": Option("values_out", "NAME", "values that are brought back", "result", many=True, of_one_cell=True),
    "--replace": Option("replace", "", "lets -o replace what has that name already", of_one_cell=True),
    "--receipt": Option("receipt", "NAME", "a name that the receipt is bound to", "r", of_one_cell=True),
    "--no-raise": Option("no_raise", "", "a cell that fails is no error of the notebook"),
    "--quiet": Option("quiet", "", "no receipt under a cell that ended normally"),
    "--help": Option("help", "", "says all this", of_one_cell=True),
}


@dataclass(frozen=True)
class Options:
    """What a cell asks for, each as it was written; None and nothing where it does not."""

    image: str | None = None
    timeout: str | None = None
    input: tuple[str, ...] = ()
    output: str | None = None
    carry: str | None = None
    values_in: tuple[str, ...] = ()
    values_out: tuple[str, ...] = ()
    replace: bool = False
    receipt: str | None = None
    no_raise: bool = False
    quiet: bool = False
    help: bool = False

    def over(self, others: Options) -> Options:
        """These, and where they ask for nothing, what ``others`` ask for."""
        return replace(others, **{f.name: found for f in fields(self) if (found := getattr(self, f.name))})

    def __str__(self) -> str:
        asked = ((name, getattr(self, option.field)) for name, option in OPTIONS.items())
        words = [
            [name] if value is True else [name, *([value] if isinstance(value, str) else value)]
            for name, value in asked
            if value
        ]
        return shlex.join(word for part in words for word in part)


class Command(NamedTuple):
    """``name`` is one of ``COMMANDS``, or ``STATUS``; ``words`` are what stands behind it, where it takes words."""

    name: str
    options: Options = Options()
    words: tuple[str, ...] = ()


def command_of(code: str) -> Command | None:
    """The command that a cell holds, alone but for comments and empty lines; None for a program.

    Raises OptionError for a command that is none, or has what it does not take.
    """
    lines = [line for line in map(str.strip, code.split("\n")) if line and not line.startswith("#")]
    if len(lines) != 1:
        return None
    first, rest = (*lines[0].split(None, 1), "")[:2]
    return read_command(rest) if first == MAGIC else None


def read_command(text: str) -> Command:
    """The command that stands behind ``%pybox``. Raises OptionError."""
    words = words_of(text)
    if not words:
        return Command(STATUS)
    name, *words = words
    name = OTHER_NAMES.get(name, name)
    if name not in COMMANDS:
        near = get_close_matches(name, [*COMMANDS, *OTHER_NAMES], 1)
        known = ", ".join(f"`{MAGIC} {known}`" for known in COMMANDS)
        meant = f"Did you mean `{MAGIC} {near[0]}`?" if near else f"There are {known}."
        raise OptionError(f"There is no `{MAGIC} {name[:40]}`.", meant)
    if name == "use":
        return Command(name, read_options(words, f"{MAGIC} {name}"))
    takes = COMMANDS[name].takes
    if words and not takes:
        raise OptionError(f"`{MAGIC} {name}` takes nothing more.", "Leave it out.")
    may_be_alone = takes.startswith("[") and not words
    if (
        takes
        and "..." not in takes
        and not may_be_alone
        and (len(words) != 1 or ("|" in takes and words[0] not in takes.split("|")))
    ):
        raise OptionError(f"`{MAGIC} {name}` wants one word more.", f"Write `{MAGIC} {name} {takes}`.")
    return Command(name, words=tuple(words))


def options_of(code: str) -> tuple[str, Options]:
    """The program of a cell, with an empty line in the place of its ``%%pybox``, and what that line asks for.

    Raises OptionError for an option that is not in ``OPTIONS``, or that has no value.
    """
    if code.strip() in QUESTIONS:
        return "", Options(help=True)
    before, line, after = first_line(code)
    name, rest = (*line.split(None, 1), "", "")[:2]
    if name != CELL_MAGIC:
        return code, Options()
    return before + after, read_options(words_of(rest), CELL_MAGIC)


def read_options(words: list[str], before: str) -> Options:
    found: dict[str, Any] = {}
    while words:
        name, equals, value = words.pop(0).partition("=")
        option = OPTIONS.get(name)
        if option is None or (option.of_one_cell and before != CELL_MAGIC):
            raise no_option(name, before)
        values = [value] if equals else []
        while option.value and words and not is_option(words[0]) and (option.many or not values):
            values.append(words.pop(0))
        if option.alone and not values:
            values = [option.alone]
        if option.value and not any(values):
            raise OptionError(
                f"{name} needs something behind it: {option.meaning}.", f"As in `{before} {name} {option.example}`."
            )
        if values and not option.value:
            raise OptionError(f"{name} takes no value.", f"Write `{name}` alone.")
        if option.field in found and not option.many:
            raise OptionError(f"{name} is there twice.", "Leave one out.")
        if option.many:
            found[option.field] = (*found.get(option.field, ()), *values)
        else:
            found[option.field] = values[0] if option.value else True
    return Options(**found)


def is_option(word: str) -> bool:
    return word.startswith("--") or word.partition("=")[0] in OPTIONS


def no_option(written: str, before: str) -> OptionError:
    there = {
        name: f"{name} {option.value}".rstrip()
        for name, option in OPTIONS.items()
        if before == CELL_MAGIC or not option.of_one_cell
    }
    if written in OPTIONS:
        return OptionError(
            f"`{before}` has no option {written}, which is for one cell.", f"Put it behind {CELL_MAGIC}."
        )
    near = get_close_matches(written, there, 1) or get_close_matches(f"--{written.lstrip('-')}", there, 1)
    advice = f"Did you mean {there[near[0]]}?" if near else f"There are {', '.join(there.values())}."
    return OptionError(f"`{before}` has no option {written[:40]!r}.", advice)


def words_of(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError as error:
        raise OptionError(f"The line cannot be read: {error}.", "Put quotation marks in pairs.") from None


def first_line(code: str) -> tuple[str, str, str]:
    """Empty lines and comments before the first other line, that line without its end, and the rest."""
    # As Python splits them: str.splitlines knows more ends of a line, which an editor may not show as such.
    start = 0
    while True:
        end = code.find("\n", start)
        end = len(code) if end < 0 else end
        text = code[start:end].rstrip("\r")
        if end == len(code) or (text.strip(" \t\r") and not text.lstrip(" \t").startswith("#")):
            return code[:start], text, code[start + len(text) :]
        start = end + 1
