"""What cells leave to later cells of their notebook, as this computer holds it: groups of bytes that it never reads.

A group is one pickled value, or several that share an object, under the names that they are bound to; or a quiet
state, such as that of ``random``, which has no name. Names, types and reasons are the program's word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from pybox_kernel.policy import KIB, MIB
from pybox_kernel.receipt.carried import WhyMissing

__all__ = [
    "MOST_CARRIED",
    "MOST_NAMES",
    "MOST_NAME_BYTES",
    "MOST_NEEDS",
    "MOST_NEEDS_LETTERS",
    "Group",
    "Listing",
    "Lost",
    "Missing",
    "Mode",
    "NotRestored",
    "Sent",
    "TakenOut",
    "digest_of",
    "names_of",
    "size_of",
]

MOST_CARRIED: Final = 32 * MIB
"""Bytes, of all groups of one notebook together."""

MOST_NAMES: Final = 10_000
MOST_NAME_BYTES: Final = 128 * KIB
"""Of all names together: with these two bounds a manifest always has room for them."""

MOST_NEEDS: Final = 100_000
MOST_NEEDS_LETTERS: Final = 1 * MIB
"""Of all names that all groups together may read."""

Mode = Literal["off", "on", "keep"]
"""``on``: what a cell leaves counts if it ran to its end. ``keep``: what one defined before it failed counts too."""


class Group(NamedTuple):
    names: tuple[str, ...]
    """Identifiers, each in one group only; none for a quiet state."""
    types: tuple[str, ...]
    """Of the values, one for each name."""
    kind: str
    """Of a quiet state, what it is of; empty for values."""
    needs: tuple[str, ...]
    """Names that its functions and classes may read; ``*`` for any."""
    data: bytes
    sha256: str
    run: str
    """The id of the run that it came from, as on that run's receipt."""
    cell: int | None
    """And the number of its cell."""
    files: tuple[tuple[str, str], ...] = ()
    """Of the working folder: the files in it, each with what ``digest_of`` gives for it."""


class Lost(NamedTuple):
    """A value that could not be carried."""

    name: str
    type: str
    why: str


class NotRestored(NamedTuple):
    """A group that went in and whose values could not be made again."""

    names: tuple[str, ...]
    kind: str
    why: str


class Missing(NamedTuple):
    """Why a name that an earlier cell defined is not there."""

    cell: int | None
    why: WhyMissing
    detail: str = ""
    """What the program said of it."""


class Sent(NamedTuple):
    """What goes into a box with a cell, and what of the rest it is to be known by."""

    mode: Literal["on", "keep"]
    groups: tuple[Group, ...]
    """Those that the cell can reach, in the order in which they came."""
    left: tuple[Group, ...] = ()
    """The rest of what there is."""
    missing: Mapping[str, Missing] = MappingProxyType({})
    cell: int | None = None

    @property
    def limit(self) -> int:
        """Bytes that may come out."""
        return max(0, MOST_CARRIED - size_of(self.left))


class TakenOut(NamedTuple):
    """What a run left, whole and checked; or nothing, because ``broken``."""

    groups: tuple[Group, ...] = ()
    lost: tuple[Lost, ...] = ()
    lost_more: int = 0
    """How many more there are than are listed."""
    not_restored: tuple[NotRestored, ...] = ()
    files_kept: frozenset[str] = frozenset()
    """Files of the working folder that are as earlier cells left them."""
    broken: str | None = None
    """Why nothing of it counts, as half a sentence."""


class Listing(NamedTuple):
    """What there is, for a person to see."""

    mode: Mode
    groups: tuple[Group, ...]
    missing: Mapping[str, Missing]
    back: int
    """How many cells ``back`` can go back."""


def digest_of(data: bytes) -> str:
    """As a box takes it of a file."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def size_of(groups: Iterable[Group]) -> int:
    return sum(len(group.data) for group in groups)


def names_of(groups: Iterable[Group]) -> frozenset[str]:
    return frozenset(name for group in groups for name in group.names)
