"""The boxes of one kind that wait, and how many are wanted."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pybox_kernel.boxes.waiting_box import WaitingBox
from pybox_kernel.boxes.waiting_places import Place
from pybox_kernel.policy import STDLIB, Policy

__all__ = ["Kept", "Kind", "Shelf"]

MIB_OF_STDLIB: Final = 16
MIB_OF_OTHERS: Final = 90


class Kind(NamedTuple):
    image_id: str
    policy: Policy

    @property
    def usual_mib(self) -> int:
        """What a box of it is thought to take while it waits, until one was measured: as ``make bench`` finds it."""
        return MIB_OF_STDLIB if self.policy.image == STDLIB.image else MIB_OF_OTHERS


class Kept(NamedTuple):
    waiting: WaitingBox
    place: Place


@dataclass
class Shelf:
    kind: Kind
    boxes: deque[Kept] = field(default_factory=deque)
    """The oldest is the first."""
    wanted: int = 1
    burst: int = 0
    """Cells that came shortly one after another, up to now."""
    awaited: int = 0
    """Cells that wait for the box that is made."""
    not_before: float = 0.0
    """When the next may be made."""
