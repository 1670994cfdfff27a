"""Which carried values a cell can reach, found from its text without running it.

An estimate that errs on one side only: each name that stands anywhere in the text, a comment or a string included, is
reached, so that ``df.query("a > @least")`` and ``"{x}".format(...)`` find theirs, and so is what the functions and
classes among those may read in turn. A word by which names are found at run time reaches all there is. It costs time
in proportion to the text and the names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from typing import Final, Protocol

__all__ = ["EVERYTHING", "Reachable", "reached"]

EVERYTHING: Final = "*"
"""Among what a group needs: all there is."""

NAMESPACES: Final = "globals locals vars dir eval exec execfile user_ns get_ipython"
MODULES: Final = "__main__ __import__ __globals__ __builtins__ builtins importlib modules runpy"
FRAMES: Final = "inspect currentframe _getframe _current_frames f_back f_globals f_locals gc ctypes pdb breakpoint"
COLLECTORS: Final = "get_type_hints doctest unittest pytest ipytest dill joblib shelve"
IN_TEXTS: Final = "query evaluate numexpr duckdb sqldf patsy statsmodels cProfile profile timeit Trace"
FINDERS: Final = frozenset(" ".join((NAMESPACES, MODULES, FRAMES, COLLECTORS, IN_TEXTS)).split())
"""Words by which a program finds names that do not stand in its text: those of namespaces and frames, of collectors of
tests, and of what reads expressions or statements in strings, which may come from elsewhere."""

PICKLED: Final = "pickle"
"""As a part of a word, too: what is unpickled finds classes by their names."""

WORD: Final = re.compile(r"\w+")
STAR: Final = re.compile(r"\bimport[\s(]*\*")
MAGIC: Final = re.compile(r"^[ \t]*%{1,2}(\w+)", re.MULTILINE)
QUIET_MAGICS: Final = frozenset({"capture", "config", "file", "matplotlib", "pybox", "time", "timeit", "writefile"})
"""Those that reach nothing but what stands in their lines."""


class Reachable(Protocol):
    """A group of carried values: the names it binds, and those that its functions and classes may read."""

    @property
    def names(self) -> Collection[str]: ...

    @property
    def needs(self) -> Collection[str]: ...


def reached(source: str, groups: Sequence[Reachable]) -> list[bool]:
    """For each group whether the cell can reach it."""
    todo = list(words_of(source))
    if finds_names(source):
        return [True] * len(groups)
    owners: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        for name in group.names:
            owners.setdefault(name, []).append(place)
    found = [False] * len(groups)
    seen = set(todo)
    while todo:
        for place in owners.get(todo.pop(), ()):
            if found[place]:
                continue
            found[place] = True
            needs = groups[place].needs
            if any(word == EVERYTHING or is_finder(word) for word in needs):
                return [True] * len(groups)
            new = set(needs) - seen
            seen |= new
            todo += new
    return found


def words_of(source: str) -> Iterator[str]:
    """As written, and as Python takes a name: in its compatibility form (PEP 3131)."""
    yield from WORD.findall(source)
    if not source.isascii():
        yield from WORD.findall(unicodedata.normalize("NFKC", source))


def finds_names(source: str) -> bool:
    return (
        any(is_finder(word) for word in words_of(MAGIC.sub("", source)))
        or STAR.search(source) is not None
        or any(name not in QUIET_MAGICS for name in MAGIC.findall(source))
    )


def is_finder(word: str) -> bool:
    return word in FINDERS or PICKLED in word
