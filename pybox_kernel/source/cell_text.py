"""What stands around the cursor in a cell that may be half written: read as text, in one pass, without a parser."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

__all__ = [
    "Before",
    "Import",
    "before",
    "calls_around",
    "covered",
    "enclosing_class",
    "end_of_name",
    "import_at",
    "operand_before",
]

LONGEST_EXPRESSION: Final = 1000
LONGEST_STATEMENT: Final = 4000
NEAREST_CALLS: Final = 5
MOST_LINES_UP: Final = 2000

COVER: Final = '"'
"""Stands for each character of a text, so that what is in it is taken for nothing else."""

# Each branch begins with one character, so that the search for it is fast.
LEXICAL: Final = re.compile(
    r"""
      \#[^\n]*+
    | \"\"\" (?: [^"\\]++ | \\. | "(?!"") )*+ (?: \"\"\" | (?P<open1> \\?\Z ) )
    | \'\'\' (?: [^'\\]++ | \\. | '(?!'') )*+ (?: \'\'\' | (?P<open2> \\?\Z ) )
    | " (?: [^"\\\n]++ | \\. )*+ (?: " | (?=\n) | (?P<open3> \\?\Z ) )
    | ' (?: [^'\\\n]++ | \\. )*+ (?: ' | (?=\n) | (?P<open4> \\?\Z ) )
    """,
    re.VERBOSE | re.DOTALL,
)
PREFIXES: Final = "bBfFrRtTuU"
OPENING: Final = {")": "(", "]": "[", "}": "{"}

NAMING: Final = re.compile(r"(?:^|[^\w.])(?:def|class|as|global|nonlocal)[ \t]+$")
MODULE: Final = re.compile(r"[ \t]*(?:import[ \t]+(?:[\w. \t]+,[ \t]*)*+|from[ \t]+)(?P<module>[\w.]*)")
MEMBER: Final = re.compile(r"[ \t]*from[ \t]+(?P<module>[\w.]+)[ \t]+import[ \t]*\(?(?:[^(),;]+,)*+\s*(?P<name>\w*)")
FROM: Final = re.compile(r"(?:^|[\n;:])[ \t]*from[ \t]")
CLASS: Final = re.compile(r"([ \t]*)class[ \t]+(\w+)")


class Before(NamedTuple):
    """What stands before the cursor. ``code`` ends there, and ``covered`` is the same with texts and comments covered.

    ``where`` is "code" where something can be completed, "quiet" in a text, in a comment, in the line of a magic and
    where a new name is being given. The name being written is ``code[start:]``; with ``dot``, it is the member of the
    expression ``code[operand:dot]``; where that is not clear, ``operand`` is None.
    """

    code: str
    covered: str
    where: Literal["code", "quiet"]
    start: int
    dot: int | None
    operand: int | None

    @property
    def stem(self) -> str:
        return self.code[self.start :]


class Import(NamedTuple):
    """An import statement being written: a module's name, or with ``name`` not None a name from that module."""

    module: str
    name: str | None


def before(code: str) -> Before:
    """Looks at a cell up to the cursor, where ``code`` ends."""
    text, inside = covered_and_open(code)
    start = back_over_name(text, len(text))
    dot = operand = None
    last = back_over_space(text, start)
    if last and text[last - 1] == ".":
        dot = last - 1
        operand = operand_before(text, dot)
    quiet = inside or no_name(text, start) or in_magic(text, start) or naming(text, start)
    return Before(code, text, "quiet" if quiet else "code", start, dot, operand)


def covered(code: str) -> str:
    """The code with as many characters, those of texts as ``"``, of comments as spaces."""
    return covered_and_open(code)[0]


def covered_and_open(code: str) -> tuple[str, bool]:
    parts: list[str] = []
    done = 0
    inside = False
    for found in LEXICAL.finditer(code):
        start, end = found.span()
        comment = code[start] == "#"
        inside = end == len(code) and (comment or found.lastgroup is not None)
        if not comment:
            start -= length_of_prefix(code[max(done, start - 3) : start])
        parts.append(code[done:start])
        parts.append((" " if comment else COVER) * (end - start))
        done = end
    parts.append(code[done:])
    return "".join(parts), inside


def length_of_prefix(text: str) -> int:
    """How many characters that ``text`` ends in belong to the quote after it, as in ``rb"..."``."""
    length = len(text) - len(text.rstrip(PREFIXES))
    alone = length == len(text) or not is_name_character(text[-length - 1])
    return length if length <= 2 and alone else 0


def is_name_character(character: str) -> bool:
    return character == "_" or ("a" + character).isidentifier()


def back_over_name(text: str, end: int) -> int:
    lowest = max(0, end - LONGEST_EXPRESSION)
    while end > lowest and is_name_character(text[end - 1]):
        end -= 1
    return end


def end_of_name(text: str, start: int) -> int:
    """Where the name ends that ``start`` stands in."""
    highest = min(len(text), start + LONGEST_EXPRESSION)
    while start < highest and is_name_character(text[start]):
        start += 1
    return start


def back_over_space(text: str, end: int) -> int:
    lowest = max(0, end - LONGEST_EXPRESSION)
    while end > lowest and text[end - 1] in " \t":
        end -= 1
    return end


def operand_before(text: str, end: int) -> int | None:
    """Where the names, calls, indexes and literals begin that end at ``end``, one behind another."""
    lowest = max(0, end - LONGEST_EXPRESSION)
    while end > lowest:
        end = back_over_space(text, end)
        last = text[end - 1 : end]
        if last in OPENING:
            opened = opening_of(text, end - 1, lowest)
            if opened is None:
                return None
            end = opened
            before_it = text[end - 1 : end]
            if last != "}" and before_it and (is_name_character(before_it) or before_it in ")]" or before_it == COVER):
                continue  # a call, or an index: what it is of stands before it
            return end
        if last == COVER:
            while end > lowest and text[end - 1] == COVER:
                end -= 1
            return end
        start = back_over_name(text, end)
        if start == end or text[start].isdigit():
            return None
        dot = back_over_space(text, start)
        if text[dot - 1 : dot] != ".":
            return start
        end = dot - 1
    return None


def opening_of(text: str, position: int, lowest: int) -> int | None:
    closed: list[str] = []
    for at in range(position, lowest - 1, -1):
        character = text[at]
        if character in OPENING:
            closed.append(OPENING[character])
        elif character in "([{":
            if closed.pop() != character:
                return None
            if not closed:
                return at
    return None


def line_before(text: str, end: int) -> str:
    return text[text.rfind("\n", 0, end) + 1 : end]


def no_name(text: str, start: int) -> bool:
    """Whether no name can begin here: right behind a text or a bracket's end, or where a number is."""
    return text[start : start + 1].isdigit() or (start == len(text) and text[-1:] in (COVER, *OPENING))


def in_magic(text: str, start: int) -> bool:
    """Whether the line is the shell's, or the name that begins here is a magic's."""
    line = line_before(text, start).lstrip(" \t")
    return line.startswith(("!", "?")) or line in ("%", "%%")


def naming(text: str, start: int) -> bool:
    return NAMING.search(text[max(0, start - 20) : start]) is not None


def import_at(text: str) -> Import | None:
    """The import statement that the covered text ends in."""
    recent = text[-LONGEST_STATEMENT:]
    statement = re.split(r"[\n;:]", recent)[-1]
    found = MODULE.fullmatch(statement)
    if found is not None:
        return Import(found["module"], None)
    # A list of names in brackets may go over lines.
    for place in [*FROM.finditer(recent)][-1:]:
        found = MEMBER.fullmatch(recent[place.start() :].lstrip("\n;:"))
        if found is not None and ("(" in recent[place.start() :] or "\n" not in recent[place.start() + 1 :]):
            return Import(found["module"], found["name"])
    return None


def calls_around(text: str) -> list[int]:
    """Where the names end of the calls whose brackets are open at the end of the covered text, the innermost first."""
    lowest = max(0, len(text) - LONGEST_STATEMENT)
    found: list[int] = []
    closed = 0
    for at in range(len(text) - 1, lowest - 1, -1):
        character = text[at]
        if character in ")]}":
            closed += 1
        elif character in "([{":
            if closed:
                closed -= 1
            elif character == "(" and at and (is_name_character(text[at - 1]) or text[at - 1] in ")]"):
                found.append(at)
                if len(found) == NEAREST_CALLS:
                    break
    return found


def enclosing_class(text: str) -> str | None:
    """The name of the class whose body the last line of the covered text stands in, by its indentation."""
    lines = text.rsplit("\n", MOST_LINES_UP)
    if len(lines) > MOST_LINES_UP:
        lines = lines[1:]
    indent = len(lines[-1]) - len(lines[-1].lstrip(" \t"))
    for line in reversed(lines[:-1]):
        stripped = line.strip()
        own = len(line) - len(line.lstrip(" \t"))
        if not stripped or own >= indent:
            continue
        found = CLASS.match(line)
        if found is not None:
            return found[2]
        indent = own
    return None
