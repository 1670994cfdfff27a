"""The chain of a notebook's receipts: that what a cell got is what an earlier one left, checked from the file alone.

Receipts stand in a notebook's file without their JSON. So the message that shows one has a link in its metadata, a few
dozen bytes for each group: which run it is of, what went in and from which run, what came out. A file can be changed
by anyone, its links included: a chain that holds says that they agree with one another.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pybox_kernel.carry_facts import CarriedGroup
from pybox_kernel.receipt import Receipt

__all__ = ["KEY", "MOST_LISTED", "Break", "Link", "breaks", "link_of", "links_in", "metadata_of"]

KEY: Final = "pybox"
"""In the metadata of the output that shows a receipt."""

MOST_LISTED: Final = 32
"""Groups each way; of more only the number, and they cannot be checked."""

MOST_BYTES: Final = 64 << 20
LONGEST_NAMES: Final = 120

Token = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z_-]{22}$")]
"""The first 16 bytes of a sha256, in base64."""
Count = Annotated[int, Field(ge=0, le=1 << 40)]
Names = Annotated[str, StringConstraints(max_length=LONGEST_NAMES)]
"""Parted by commas, and cut; of a quiet state, what it is of, in brackets."""
In = tuple[Names, Count, Digest, Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}$")]]
"""The last is the beginning of the id of the run that it came from."""
Out = tuple[Names, Count, Digest]


class Link(BaseModel):
    """Of one receipt."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True, serialize_by_alias=True)

    run: Token
    put_in: Annotated[tuple[In, ...], Field(alias="in", max_length=MOST_LISTED)] = ()
    out: Annotated[tuple[Out, ...], Field(max_length=MOST_LISTED)] = ()
    """What this run made or changed. What it left as it was is still of the run before it."""
    more: Count = 0
    """Groups that are not listed."""


class Break(NamedTuple):
    """A place where the chain does not hold."""

    run: str
    names: str
    why: str


def link_of(receipt: Receipt) -> Link | None:
    """None for a cell that carried nothing."""
    found = receipt.observed.carried
    if found is None:
        return None
    own = [group for group in found.taken_out if group.run == receipt.run.id]
    more = found.put_in_more + found.taken_out_more
    more += max(0, len(found.put_in) - MOST_LISTED) + max(0, len(own) - MOST_LISTED)
    return Link(
        run=receipt.run.id,
        put_in=tuple((*entry(group), group.run[:8]) for group in found.put_in[:MOST_LISTED]),
        out=tuple(entry(group) for group in own[:MOST_LISTED]),
        more=more,
    )


def entry(group: CarriedGroup) -> Out:
    digest = base64.urlsafe_b64encode(bytes.fromhex(group.sha256)[:16]).rstrip(b"=").decode()
    more = (f"+{group.more_names}",) if group.more_names else ()
    names = ",".join((*group.names, *more)) if group.names else f"({group.kind})"
    return names[:LONGEST_NAMES], group.bytes, digest


def metadata_of(receipt: Receipt) -> dict[str, object]:
    """For the message that shows the receipt."""
    link = link_of(receipt)
    return {KEY: link.model_dump(mode="json", exclude_defaults=True)} if link is not None else {}


def links_in(notebook: bytes) -> list[Link]:
    """Of a notebook's file, in the order of its cells. What is not a link is passed over: then what depends on it is a
    break of the chain. Raises ValueError for what is not a notebook."""
    if len(notebook) > MOST_BYTES:
        raise ValueError(f"it has over {MOST_BYTES >> 20} MB")
    try:
        document = json.loads(notebook)
        return list(links_of(document["cells"]))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise ValueError("it is not a notebook") from error


def links_of(cells: Sequence[Mapping[str, Any]]) -> Iterator[Link]:
    for cell in cells:
        for output in cell.get("outputs", ()):
            told = (output.get("metadata") or {}).get(KEY)
            if told is None:
                continue
            try:
                yield Link.model_validate_json(json.dumps(told))
            except ValidationError:
                continue


def breaks(links: Sequence[Link]) -> list[Break]:
    """Where the chain does not hold; empty where all that went into a cell is what the run left that it is said to
    come from."""
    left: dict[str, list[Link]] = {}
    for link in links:
        left.setdefault(link.run[:8], []).append(link)
    found = []
    for link in links:
        for names, size, digest, run in link.put_in:
            sources = left.get(run, [])
            listed = [it for source in sources for it in source.out]
            if any(is_of(names, it[0]) and (size, digest) == it[1:] for it in listed):
                continue
            if not sources:
                why = "the receipt of the run that it came from is not here"
            elif any(is_of(names, it[0]) for it in listed):
                why = "the run that it came from left something else under that name"
            elif any(source.more for source in sources):
                why = "the run that it came from left more than its receipt lists"
            else:
                why = "the run that it came from did not leave it"
            found.append(Break(link.run, names, why))
    return found


def is_of(names: str, left: str) -> bool:
    """All of the names, or those that no later group took over."""
    return names == left or set(names.split(",")) <= set(left.split(","))
