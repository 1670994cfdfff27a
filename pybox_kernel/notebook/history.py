"""The inputs of one session, for a client that asks for them. They are kept in memory, and nowhere on the disk."""

from __future__ import annotations

import fnmatch
import re
from collections import deque
from typing import Final

__all__ = ["Entry", "History"]

MOST_CELLS: Final = 1000
MOST_BYTES: Final = 1 << 20
LONGEST_PATTERN: Final = 200
"""Characters; of a longer one, the rest is taken for ``*``."""

SESSION: Final = 0
"""The number that the protocol gives the current session; there is no other one here."""

PIECE: Final = re.compile(r"\[[!^]?\]?[^\]]*\]|\*|.", re.DOTALL)

Entry = tuple[int, int, str]
"""Session, line, source: what the protocol calls a history tuple."""


class History:
    """The oldest inputs go where there are more than 1,000, or more than 1 MiB of them."""

    def __init__(self) -> None:
        self._cells: deque[tuple[int, str, int]] = deque()
        self._size = 0

    def add(self, line: int, source: str) -> None:
        """``line`` is the cell's execution count."""
        size = len(source.encode("utf-8", "surrogatepass"))
        if size > MOST_BYTES:
            return
        self._cells.append((line, source, size))
        self._size += size
        while len(self._cells) > MOST_CELLS or self._size > MOST_BYTES:
            self._size -= self._cells.popleft()[2]

    def answer(
        self,
        hist_access_type: str,
        session: int | None = None,
        start: int | None = None,
        stop: int | None = None,
        n: int | None = None,
        pattern: str | None = None,
        unique: bool = False,
        raw: bool = True,
        output: bool = False,
    ) -> list[Entry]:
        """The inputs asked for, oldest first. The terms are those of Jupyter's ``history_request``:

        - "range": from line ``start`` to before ``stop``, of session 0; there is none before it,
        - "tail": the last ``n``,
        - "search": the last ``n`` of those that ``pattern`` fits, with ``*``, ``?`` and ``[...]`` as in file names.

        A magic is kept as it was written, whatever ``raw`` says, and outputs are not kept: ``output`` changes nothing.
        """
        del raw, output
        match hist_access_type:
            case "range" if session in (None, SESSION):
                lowest, end = start or 0, stop
                return [entry for entry in self._entries() if entry[1] >= lowest and (end is None or entry[1] < end)]
            case "tail":
                return last(self._entries(), n)
            case "search":
                found = self._search("*" if pattern is None else pattern)
                return last(once(found) if unique else found, n)
        return []

    def _entries(self) -> list[Entry]:
        return [(SESSION, line, source) for line, source, _ in self._cells]

    def _search(self, pattern: str) -> list[Entry]:
        fits = Pattern(pattern)
        return [entry for entry in self._entries() if fits(entry[2])]


class Pattern:
    """A pattern as for file names. The time it takes grows with the length of pattern times text, never faster: what
    stands between two stars is looked for once, from left to right, and never again further on."""

    def __init__(self, pattern: str) -> None:
        shown = pattern if len(pattern) <= LONGEST_PATTERN else pattern[:LONGEST_PATTERN] + "*"
        parts = [""]
        for piece in PIECE.findall(shown):
            if piece == "*":
                parts.append("")
            else:
                parts[-1] += "[!" + piece[2:] if piece.startswith("[^") and len(piece) > 1 else piece
        # fnmatch's own end anchor is cut off, but for the last part.
        *start, end = map(fnmatch.translate, parts)
        self._start = [re.compile(part[: -len(r"\Z")]) for part in start]
        self._end = re.compile(end)

    def __call__(self, text: str) -> bool:
        if not self._start:
            return self._end.match(text) is not None
        place = self._start[0].match(text)
        for part in self._start[1:]:
            place = place and part.search(text, place.end())
        return place is not None and self._end.search(text, place.end()) is not None


def once(entries: list[Entry]) -> list[Entry]:
    """Each source once, where it comes last."""
    latest = {entry[2]: entry for entry in entries}
    return [entry for entry in entries if latest[entry[2]] is entry]


def last(entries: list[Entry], n: int | None) -> list[Entry]:
    return entries if n is None else entries[max(0, len(entries) - max(0, n)) :]
