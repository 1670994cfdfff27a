"""The names that a session's cells have bound, as far as completion and inspection need them, and no value of any.

The memory taken is bounded: names count, with what is known of them, and the oldest are forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Literal, NamedTuple

from pybox_kernel.source.cell_reading import MOST_STARS, CellReading, Definition
from pybox_kernel.source.meanings import Thing

__all__ = ["MOST", "Known", "KnownNames"]

MOST: Final = 20_000
DEFINITION_COUNTS: Final = 10
MOST_ATTRIBUTES: Final = 200


class Known(NamedTuple):
    """``bound`` is False for a name that cells have only used."""

    bound: bool
    thing: Thing | None
    definition: Definition | None
    attributes: frozenset[str]

    @property
    def size(self) -> int:
        defined = 0 if self.definition is None else DEFINITION_COUNTS + len(self.definition.members)
        return 1 + defined + len(self.attributes)


NOTHING: Final = Known(False, None, None, frozenset())


class KnownNames:
    def __init__(self) -> None:
        self._names: OrderedDict[str, Known] = OrderedDict()
        self._size = 0
        self.stars: tuple[str, ...] = ()
        """The modules that cells have imported all names from."""

    def __len__(self) -> int:
        """How much is kept: at most MOST."""
        return self._size

    def add(self, cell: CellReading) -> None:
        self.stars = tuple(dict.fromkeys([*self.stars, *cell.stars]))[-MOST_STARS:]
        for name in sorted(cell.top):
            before = self.get(name)
            known = Known(True, cell.things.get(name), cell.definitions.get(name), before.attributes)
            self._put(name, known)
        for name, seen in cell.attributes.items():
            before = self.get(name)
            kept = [*seen, *(before.attributes - seen)][:MOST_ATTRIBUTES]
            self._put(name, before._replace(attributes=frozenset(kept)))

    def get(self, name: str) -> Known:
        return self._names.get(name, NOTHING)

    def bound(self) -> dict[str, Thing | None]:
        return {name: known.thing for name, known in self._names.items() if known.bound}

    def thing(self, name: str) -> Thing | Literal["free"] | None:
        """What that name is: None if it is not known, "free" if no cell has bound it."""
        known = self.get(name)
        return known.thing if known.bound else "free"

    def _put(self, name: str, known: Known) -> None:
        self._size += known.size - (self._names.pop(name).size if name in self._names else 0)
        self._names[name] = known
        while self._size > MOST:
            _, oldest = self._names.popitem(last=False)
            self._size -= oldest.size
