"""What a run leaves for later cells: whether it counts, all of it or nothing, and what the receipt says of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pybox_kernel.carry.groups import Group, Lost, NotRestored, Sent, TakenOut, digest_of, size_of
from pybox_kernel.carry.manifest import taken_out
from pybox_kernel.receipt.carried import (
    MOST_GROUPS,
    MOST_NAMES_LISTED,
    Carried,
    CarriedGroup,
    LostValue,
    NotRestoredValue,
)
from pybox_kernel.running.course import Course, Program
from pybox_kernel.safe_display.text import safe_name
from pybox_kernel.wire.parcels import CarryIn

__all__ = ["carried_of", "lost_of", "not_restored_of", "parcel_of", "take"]

MOST_LOST: Final = 64


def parcel_of(sent: Sent) -> CarryIn:
    """What the box is given. Of the values that came under ``names``, it is to bind these and no others."""
    manifest = {
        "keep": sent.mode == "keep",
        "limit": sent.limit,
        "cell": sent.cell,
        "groups": [
            {"names": group.names, "kind": group.kind or None, "size": len(group.data)} for group in sent.groups
        ],
    }
    return CarryIn(manifest, tuple(group.data for group in sent.groups))


def take(program: Program, course: Course) -> None:
    """At the end of a run: looks at what it left for later cells, and decides whether that counts."""
    if program.sent is None or not course.program_sent:
        return
    course.left = taken_out(course.carried.outcome(), program.sent, course.run)
    if course.files is not None:
        left_before = {path: digest for group in program.sent.groups for path, digest in group.files}
        as_it_was = course.left.files_kept if course.left.broken is None else None
        course.files.leave_out(left_before, as_it_was, digest_of)
    ended = course.ended
    if ended is None or ended.how != "exited" or ended.signal is not None:
        return
    well = ended.code == 0 and ended.completed and course.transcript.error is None and course.problem is None
    kept = program.sent.mode == "keep" and course.left.broken is None
    course.left_counts = well or kept


def carried_of(sent: Sent, taken: TakenOut | None) -> Carried:
    """``taken`` is None where the run did not end so that what it left counts."""
    groups = taken.groups if taken is not None else ()
    return Carried(
        put_in=tuple(map(fact_of, sent.groups[:MOST_GROUPS])),
        put_in_more=max(0, len(sent.groups) - MOST_GROUPS),
        kept_back=len(sent.left),
        kept_back_bytes=size_of(sent.left),
        taken_out=tuple(map(fact_of, groups[:MOST_GROUPS])),
        taken_out_more=max(0, len(groups) - MOST_GROUPS),
        why_nothing="the cell did not run to its end" if taken is None else taken.broken,
    )


def fact_of(group: Group) -> CarriedGroup:
    names = group.names[:MOST_NAMES_LISTED]
    more = len(group.names) - len(names)
    size = len(group.data)
    return CarriedGroup(
        names=names, more_names=more, kind=group.kind, bytes=size, sha256=group.sha256, run=group.run, cell=group.cell
    )


def lost_of(lost: Iterable[Lost]) -> Iterator[LostValue]:
    for item, _ in zip(lost, range(MOST_LOST), strict=False):
        yield LostValue(name=item.name, type=safe_name(item.type, 100), why=safe_name(item.why))


def not_restored_of(found: Iterable[NotRestored]) -> Iterator[NotRestoredValue]:
    for item, _ in zip(found, range(MOST_LOST), strict=False):
        names = item.names[:MOST_NAMES_LISTED]
        more = len(item.names) - len(names)
        yield NotRestoredValue(names=names, more_names=more, kind=item.kind, why=safe_name(item.why))
