"""The traceback of an exception, as Python prints it, in the cell's own terms: ``Your code, line 3, in f``.

Chains, groups, notes and folded recursion are Python's own. Left out are the frames of PyBox's own part in the box.
"""

from __future__ import annotations

import linecache
import os
import sys
import traceback

from pybox_kernel.inside.carry_lines import name_of
from pybox_kernel.inside.cell import CELL, source_lines
from pybox_kernel.inside.events import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
LONGEST_LINE = 200
"""Characters of one line of source that are shown."""
TRACEBACK = 40000
"""Bytes of JSON of a whole traceback; what is over is left out of its middle."""
MOST_ERRORS = 500
"""Exceptions of one chain or group that are shown."""

GREEN, RED, BOLD_RED, BOLD, PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[1;31m", "\x1b[1m", "\x1b[0m"


def traceback_of(error: BaseException) -> str:
    """The whole traceback, in colour, bounded; a line that says so where it cannot be made."""
    try:
        # The lines as they were written, whatever became of the file; each ends, as Python's own marks expect.
        lines = [line.rstrip("\n") + "\n" for line in source_lines]
        linecache.cache[CELL] = (sum(map(len, lines)), None, lines, CELL)
        told = traceback.TracebackException.from_exception(error)
        for one in chain(told):
            one.__class__ = Told
            prepare(one)
        text = refused(error) + "".join(told.format())
    except BaseException:
        text = "<the traceback could not be made>\n%s\n" % type(error).__name__
    return cut(text, TRACEBACK)


def print_traceback(error: BaseException) -> None:
    sys.stderr.write(traceback_of(error))


def refused(error: BaseException) -> str:
    """The line that a whole cell was refused for, which no frame shows."""
    lineno = getattr(error, "lineno", 0) if getattr(type(error), "pybox_magic", False) else 0
    if not lineno:
        return ""
    line = source_lines[lineno - 1].strip()[:LONGEST_LINE] if lineno <= len(source_lines) else ""
    return "  %sYour code, line %d%s\n%s" % (GREEN, lineno, PLAIN, marked("    %s\n" % line))


def chain(first: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    """It and all that are told with it; what is over MOST_ERRORS is taken off."""
    waiting, count = [first], 0
    while waiting:
        one = waiting.pop(0)
        yield one
        count += 1
        if count >= MOST_ERRORS:
            one.__cause__ = one.__context__ = None
            if one.exceptions:
                one.exceptions = []
            continue
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None]
        waiting += one.exceptions or []


def prepare(one: Any) -> None:
    if one.stack is not None:
        one.stack[:] = [frame for frame in one.stack if not frame.filename.startswith(OWN)]
        one.stack.__class__ = Stack
    # Of a syntax error the line stands in the exception itself.
    text, offset = getattr(one, "text", None), getattr(one, "offset", None)
    if isinstance(text, str) and len(text) > LONGEST_LINE:
        start = max(0, (offset if isinstance(offset, int) else 1) - LONGEST_LINE // 2)
        one.text = text[start : start + LONGEST_LINE]
        if isinstance(offset, int):
            one.offset = offset - start
            end = getattr(one, "end_offset", None)
            one.end_offset = min(end - start, LONGEST_LINE) if isinstance(end, int) else None


def heading(line: str) -> str:
    """Python's line about a place in the cell, in other words; any other as it is."""
    before, found, after = line.partition('File "')
    path, comma, place = after.partition('", ')
    cell = "Your code" if path == CELL else name_of(path)
    if not found or not comma or before.strip() or cell is None:
        return line
    place = place.rstrip("\n").removesuffix(", in <module>")
    return "%s%s%s, %s%s\n" % (before, GREEN, cell, place, PLAIN)


class Stack(traceback.StackSummary):
    def format_frame_summary(self, frame_summary: Any, **options: Any) -> str:
        line = frame_summary.line
        if line and len(line) > LONGEST_LINE:
            place = '  File "%s", line %s, in %s\n' % (frame_summary.filename, frame_summary.lineno, frame_summary.name)
            return heading(place) + "    %s%s%s\n" % (BOLD, around(line, frame_summary), PLAIN)
        lines = super().format_frame_summary(frame_summary, **options).splitlines(keepends=True)
        if not lines:
            return ""
        first = heading(lines[0])
        if first == lines[0]:
            return "".join(lines)
        return first + "".join(map(marked, lines[1:]))


def around(line: str, frame: Any) -> str:
    """The part of a long line where it failed."""
    column = getattr(frame, "colno", None) or 0
    whole = getattr(frame, "_original_line", "") or line
    if not isinstance(whole, str) or "\n" in whole.rstrip("\n"):
        whole = line
    column -= len(whole) - len(whole.lstrip())
    column = len(line.encode("utf-8", "replace")[: max(0, column)].decode("utf-8", "ignore"))
    start = max(0, min(column - LONGEST_LINE // 2, len(line) - LONGEST_LINE))
    end = start + LONGEST_LINE
    return "%s%s%s" % ("… " if start else "", line[start:end], " …" if end < len(line) else "")


def marked(line: str) -> str:
    """A line of the cell in bold, and Python's marks under it in red."""
    text = line.rstrip("\n")
    colour = BOLD_RED if text.strip(" ^~") == "" else BOLD
    return "%s%s%s\n" % (colour, text, PLAIN) if text.strip() else line


class Told(traceback.TracebackException):
    def format_exception_only(self, *arguments: Any, **options: Any) -> Generator[str, None, None]:
        name = self.exc_type_text()
        named = False
        for text in super().format_exception_only(*arguments, **options):
            line = heading(text)
            if not named and line.startswith(name):
                named = True
                line = BOLD_RED + name + PLAIN + line[len(name) :]
            elif line == text and text.strip(" ^~\n") == "" and "^" in text:
                line = marked(text)
            yield line

    def exc_type_text(self) -> str:
        newer = getattr(self, "exc_type_str", None)  # from Python 3.13 on, where exc_type warns
        if isinstance(newer, str):
            return newer
        module, name = self.exc_type.__module__, self.exc_type.__qualname__
        return name if module in ("__main__", "builtins") else "%s.%s" % (module, name)
