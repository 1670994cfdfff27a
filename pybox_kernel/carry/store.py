"""What the cells of one notebook carry from one to the next: kept here, in memory alone, and never looked into.

Each cell still runs in a fresh box. What it can reach of this goes in with it, and what it leaves comes out, as bytes
that only a box ever unpickles. All or nothing of a run counts.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, get_args

from pybox_kernel.carry.groups import (
    MOST_CARRIED,
    Group,
    Listing,
    Missing,
    Mode,
    Sent,
    TakenOut,
    names_of,
    size_of,
)
from pybox_kernel.carry.reach import reached
from pybox_kernel.errors import OptionError
from pybox_kernel.policy import MIB
from pybox_kernel.source.cell_names import defined_names

__all__ = ["MOST_BACK", "MOST_KEPT", "Carry", "checked_mode"]

MOST_BACK: Final = 100
"""Cells that ``back`` can go back at most, where nothing else is said."""

MOST_KEPT: Final = 3 * MOST_CARRIED
"""Bytes, of what is carried now and of all that ``back`` can return to; what they share counts once."""

MOST_BESIDE: Final = 32 * MIB
"""Bytes of memory, about, for names and the like beside those."""

MOST_MISSING: Final = 2000

EACH_GROUP: Final = 300
EACH_WORD: Final = 80
"""Bytes that a group and a name take in memory, about, beside what they hold."""


@dataclass(frozen=True)
class State:
    groups: tuple[Group, ...] = ()
    missing: Mapping[str, Missing] = field(default_factory=dict)
    own: int = 0
    """Bytes of memory, about, that it takes beside the values, and that no earlier state takes."""


class Carry:
    """What one notebook carries. Its door owns it, and gives it to each ``Session.run`` of the notebook's cells, one
    after the other. Thread-safe."""

    def __init__(self, mode: Mode = "on", most_back: int = MOST_BACK) -> None:
        """``back`` can go back ``most_back`` cells."""
        self._mode: Mode = mode
        self._state = State()
        self._before: deque[State] = deque(maxlen=most_back)
        """The state before each of the last cells, oldest first."""
        self._lock = threading.Lock()

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        """What is carried stays; with ``off``, cells do without it."""
        self._mode = mode

    # A cell

    def going_in(self, source: str | bytes, cell: int | None = None, mode: Mode | None = None) -> Sent | None:
        """What goes in with a cell; None where nothing is carried. ``mode`` is that of this cell, if it has its own."""
        with self._lock:
            mode = mode or self._mode
            if mode == "off":
                return None
            groups = self._state.groups
            wanted = reached(text_of(source), groups)
            chosen = [bool(group.kind) or want for group, want in zip(groups, wanted, strict=True)]
            return Sent(
                mode,
                tuple(group for group, goes in zip(groups, chosen, strict=True) if goes),
                tuple(group for group, goes in zip(groups, chosen, strict=True) if not goes),
                MappingProxyType(dict(self._state.missing)),
                cell,
            )

    def settle(self, source: str | bytes, sent: Sent | None, taken: TakenOut | None, cell: int | None) -> None:
        """After a cell that has run: ``taken`` is what counts of what it left, None where nothing does: it failed."""
        with self._lock:
            before = self._state
            if sent is None:
                after = without(before, source, Missing(cell, "off"))
            elif taken is None:
                after = without(before, source, Missing(cell, "failed"))
            elif taken.broken is not None:
                after = without(before, source, Missing(cell, "lost", taken.broken))
            else:
                after = grown(before, sent, taken, cell)
            self._step(after)

    def _step(self, after: State) -> None:
        self._before.append(self._state)
        self._state = after
        states = (after, *self._before)
        while self._before and (kept_bytes(states) > MOST_KEPT or sum(state.own for state in states) > MOST_BESIDE):
            self._before.popleft()
            states = (after, *self._before)

    # What a person asks for

    def listing(self) -> Listing:
        with self._lock:
            return Listing(self._mode, self._state.groups, self._state.missing, len(self._before))

    def drop(self, names: Collection[str]) -> tuple[Group, ...]:
        """Takes out the groups that have these names, and returns them; what is no name may be a quiet state. Raises
        OptionError for what is not there."""
        with self._lock:
            groups = self._state.groups
            bound = names_of(groups)
            kinds = {group.kind for group in groups if group.kind} - bound
            unknown = [name for name in names if name not in bound and name not in kinds]
            if unknown:
                raise OptionError(
                    f"Nothing is carried under the name {unknown[0][:60]!r}.", "`%pybox carry` lists what is."
                )
            wanted = set(names)
            quiet = kinds & wanted
            going = tuple(group for group in groups if group.kind in quiet or not wanted.isdisjoint(group.names))
            gone = {id(group) for group in going}
            dropped = {name: Missing(group.cell, "dropped") for group in going for name in group.names}
            left = tuple(group for group in groups if id(group) not in gone)
            self._step(State(left, with_missing(self._state.missing, dropped)))
            return going

    def clear(self) -> int:
        """Takes out all there is; how many names that were."""
        with self._lock:
            dropped = {name: Missing(group.cell, "dropped") for group in self._state.groups for name in group.names}
            self._step(State((), with_missing(self._state.missing, dropped)))
            return len(dropped)

    def back(self, cells: int = 1) -> None:
        """Returns to the state before the last ``cells`` cells, a ``drop`` and a ``clear`` counted as cells. Raises
        OptionError where that state is not kept any more."""
        with self._lock:
            if not 1 <= cells <= len(self._before):
                last = len(self._before)
                far = f"`%pybox carry back {last}` is as far as it goes." if last else "There is no state before this."
                ago = f"{cells:,} {'cell' if cells == 1 else 'cells'}"
                raise OptionError(f"What was carried {ago} ago is not kept.", far)
            undone: dict[str, Missing] = {}
            for _ in range(cells):
                undone |= {name: Missing(it.cell, "undone") for it in self._state.groups for name in it.names}
                self._state = self._before.pop()
            there = names_of(self._state.groups)
            undone = {name: why for name, why in undone.items() if name not in there}
            missing = with_missing(self._state.missing, undone)
            self._state = replace(self._state, missing=missing, own=self._state.own + EACH_WORD * len(undone))


def grown(before: State, sent: Sent, taken: TakenOut, cell: int | None) -> State:
    """What was not sent stays; of what was sent, what came out again. A name that came out belongs to its new group
    alone. What could not be restored stays too, as far as there is room for it, so that a later cell can try again."""
    earlier = {(group.names, group.kind): group for group in sent.groups}
    new = taken.groups
    bound, kinds = names_of(new), {group.kind for group in new if group.kind}
    failed = {(item.names, item.kind) for item in taken.not_restored}
    if size_of([*sent.left, *new, *(group for key, group in earlier.items() if key in failed)]) > MOST_CARRIED:
        failed = set()
    gone = {id(group) for key, group in earlier.items() if key not in failed}
    stay = [group for group in before.groups if id(group) not in gone]
    kept = [left for group in stay if group.kind not in kinds and (left := less(group, bound)) is not None]
    missing = {name: found for name, found in before.missing.items() if name not in bound}
    new_missing = {name: Missing(cell, "not_restored", it.why) for it in taken.not_restored for name in it.names}
    new_missing |= {it.name: Missing(cell, "lost", f"{it.type}: {it.why}") for it in taken.lost}
    missing |= {name: found for name, found in new_missing.items() if name not in bound}
    groups = tuple(in_order(before.groups, [*kept, *new]))
    known = {id(group) for group in before.groups}
    own = sum(memory_of(group) for group in groups if id(group) not in known)
    return State(groups, with_missing(missing, {}), own + 8 * len(groups) + EACH_WORD * len(missing))


def memory_of(group: Group) -> int:
    words = (*group.names, *group.types, *group.needs)
    return EACH_GROUP + EACH_WORD * len(words) + sum(map(len, words))


def less(group: Group, taken: Collection[str]) -> Group | None:
    """The group without names that another has now; None where none is left."""
    if group.kind or not any(name in taken for name in group.names):
        return group
    left = [(name, kind) for name, kind in zip(group.names, group.types, strict=True) if name not in taken]
    if not left:
        return None
    return group._replace(names=tuple(name for name, _ in left), types=tuple(kind for _, kind in left))


def in_order(before: Sequence[Group], groups: Iterable[Group]) -> list[Group]:
    """As they stood before, new ones last: a class before what is made of it."""
    places = {key: place for place, group in enumerate(before) for key in (group.names or (group.kind,))}
    last = len(before)
    return sorted(groups, key=lambda group: min(places.get(key, last) for key in group.names or (group.kind,)))


def without(state: State, source: str | bytes, why: Missing) -> State:
    """The same state, in which the names that the cell would have defined are known to be missing."""
    there = names_of(state.groups)
    names = [name for name in defined_names(text_of(source)) if name not in there]
    return replace(state, missing=with_missing(state.missing, dict.fromkeys(names, why))) if names else state


def with_missing(missing: Mapping[str, Missing], more: Mapping[str, Missing]) -> dict[str, Missing]:
    every = {**missing, **more}
    return dict(list(every.items())[-MOST_MISSING:])


def kept_bytes(states: Iterable[State]) -> int:
    different = {id(state.groups): state.groups for state in states}
    return sum({id(group.data): len(group.data) for groups in different.values() for group in groups}.values())


def text_of(source: str | bytes) -> str:
    return source if isinstance(source, str) else source.decode("utf-8", "replace")


def checked_mode(wish: str) -> Mode:
    """Raises OptionError for a word that is none."""
    for mode in get_args(Mode):
        if wish == mode:
            return mode  # type: ignore[no-any-return]
    raise OptionError(f"Carrying is on, off or keep, and not {wish[:40]!r}.", "Write --carry on, --carry off or keep.")
