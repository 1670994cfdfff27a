"""What a program says it leaves to later cells, checked against what came: names, sizes, bounds. Its values stay bytes.

``inside/carry.py`` makes it. Whatever does not fit is the end of it: then nothing of the run is carried, with a reason,
and the run is as it was.
"""

from __future__ import annotations

import hashlib
import keyword
from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from pydantic import Field, ValidationError

from pybox_kernel.carry.groups import (
    MOST_NAME_BYTES,
    MOST_NAMES,
    MOST_NEEDS,
    MOST_NEEDS_LETTERS,
    Group,
    Lost,
    NotRestored,
    Sent,
    TakenOut,
    names_of,
)
from pybox_kernel.receipt.carried import LONGEST_NAME
from pybox_kernel.wire.frames import Count, Strict
from pybox_kernel.wire.parcels import Parcel

__all__ = ["taken_out"]

LONGEST_TEXT: Final = 1000
LONGEST_PATH: Final = 4096
MOST_FILES: Final = 1000

Key = tuple[tuple[str, ...], str]
"""A group's names, and the kind of its quiet state."""

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Names = Annotated[tuple[Name, ...], Field(max_length=MOST_NAMES)]
Kind = Annotated[str, Field(pattern=r"^[a-z][a-z._-]{0,30}$")] | None
Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Path = Annotated[str, Field(max_length=LONGEST_PATH)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class OutGroup(Strict):
    names: Names
    types: Annotated[tuple[Text, ...], Field(max_length=MOST_NAMES)]
    kind: Kind = None
    needs: Annotated[tuple[Name, ...], Field(max_length=MOST_NAMES)] = ()
    size: Count
    files: Annotated[tuple[tuple[Path, Digest], ...], Field(max_length=MOST_FILES)] = ()
    same: bool = False
    """It is the group that went in; no bytes of it came."""


class OutLost(Strict):
    name: Text
    type: Text
    why: Text


class OutNotRestored(Strict):
    names: Names
    kind: Kind = None
    why: Text


class Manifest(Strict):
    groups: Annotated[tuple[OutGroup, ...], Field(max_length=MOST_NAMES)]
    lost: Annotated[tuple[OutLost, ...], Field(max_length=MOST_NAMES)] = ()
    lost_more: Count = 0
    not_restored: Annotated[tuple[OutNotRestored, ...], Field(max_length=MOST_NAMES)] = ()
    files_kept: Annotated[tuple[Path, ...], Field(max_length=MOST_FILES)] = ()


def taken_out(parcel: Parcel | str, sent: Sent, run: str) -> TakenOut:
    """``parcel`` is what came, or why nothing did; ``run`` is the id of the run that it came from."""
    if isinstance(parcel, str):
        return TakenOut(broken=parcel)
    try:
        told = Manifest.model_validate_json(parcel.manifest)
    except ValidationError:
        return TakenOut(broken="its account of it cannot be read")
    before = {(group.names, group.kind): group for group in sent.groups}
    wrong = first_wrong(told, parcel, sent, before)
    if wrong is not None:
        return TakenOut(broken=wrong)
    came = iter(parcel.payloads)
    return TakenOut(
        groups=tuple(
            told_anew(before[group.names, group.kind or ""], group)
            if group.same
            else new_group(group, next(came), run, sent.cell)
            for group in told.groups
        ),
        lost=tuple(Lost(item.name, item.type, item.why) for item in told.lost),
        lost_more=told.lost_more,
        not_restored=tuple(NotRestored(item.names, item.kind or "", item.why) for item in told.not_restored),
        files_kept=frozenset(told.files_kept),
    )


def told_anew(known: Group, told: OutGroup) -> Group:
    """The very same one where nothing is told otherwise: of many cells, one copy is kept."""
    if (known.types, known.needs) == (told.types, told.needs):
        return known
    return known._replace(types=told.types, needs=told.needs)


def new_group(told: OutGroup, data: bytes, run: str, cell: int | None) -> Group:
    digest = hashlib.sha256(data).hexdigest()
    return Group(told.names, told.types, told.kind or "", told.needs, data, digest, run, cell, told.files)


def first_wrong(told: Manifest, parcel: Parcel, sent: Sent, before: Mapping[Key, Group]) -> str | None:
    same = [(group, before.get((group.names, group.kind or ""))) for group in told.groups if group.same]
    if any(known is None or len(known.data) != group.size for group, known in same):
        return "it calls the same what did not go in"
    sizes = [group.size for group in told.groups if not group.same]
    if sizes != [len(data) for data in parcel.payloads]:
        return "its account of it does not fit what came"
    if sum(group.size for group in told.groups) > sent.limit:
        return "it is more than all cells together may leave"
    if any(bool(group.names) == (group.kind is not None) for group in told.groups):
        return "a part of it has no name, or too many"
    if any(len(group.types) != len(group.names) for group in told.groups):
        return "its account of it does not fit itself"
    names = [name for group in told.groups for name in group.names]
    every = [*names, *names_of(sent.left)]
    if len(every) > MOST_NAMES or len("".join(every).encode("utf-8", "replace")) > MOST_NAME_BYTES:
        return "it has more names than can be carried"
    needs = [*(group.needs for group in told.groups), *(group.needs for group in sent.left)]
    if sum(map(len, needs)) > MOST_NEEDS or sum(len(name) for each in needs for name in each) > MOST_NEEDS_LETTERS:
        return "its functions use more names than can be carried"
    if not all(map(may_be_carried, names)):
        return "it has a name that is none"
    if repeated(names) or repeated(group.kind for group in told.groups if group.kind is not None):
        return "it has a name twice"
    if any((item.names, item.kind or "") not in before for item in told.not_restored):
        return "it tells of what did not go in"
    return None


def may_be_carried(name: str) -> bool:
    dunder = name.startswith("__") and name.endswith("__")
    return name.isidentifier() and not keyword.iskeyword(name) and not dunder


def repeated(names: Iterable[str]) -> bool:
    seen: set[str] = set()
    return any(name in seen or seen.add(name) for name in names)  # type: ignore[func-returns-value]
