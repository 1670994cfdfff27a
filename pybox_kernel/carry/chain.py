"""The chain of a notebook's receipts: that what a cell got is what an earlier one left, checked from themselves alone.

Receipts stand in a notebook's file without their JSON. So the statement on each has a link, a few dozen bytes for each
group: which run it is of, what went in and from which run, what came out. A file can be changed by anyone, its links
included: a chain that holds says that they agree with one another, and ``signing.receipt_check`` whether they were
made here.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from pybox_kernel.receipt.carried import CarriedGroup
from pybox_kernel.receipt.model import Receipt

__all__ = ["MOST_LISTED", "Break", "Link", "breaks", "link_of", "link_text"]

MOST_LISTED: Final = 32
"""Groups each way; of more only the number, and they cannot be checked."""

MOST_BREAKS: Final = 200
"""That are found: of a file that was made to have more, nobody reads them all."""

LONGEST_NAMES: Final = 120

NAMES: Final = rf"(?P<names>[^ ;<>]{{1,{LONGEST_NAMES}}}) (?P<size>\d{{1,12}}) (?P<digest>[\w-]{{22}})"
LEFT: Final = re.compile(NAMES, re.ASCII)
PUT_IN: Final = re.compile(NAMES + r" (?P<run>[0-9a-f]{8})", re.ASCII)
LINK: Final = re.compile(r"(?P<run>[0-9a-f]{32}) (?P<more>\d{1,9})<(?P<put_in>[^<>]*)>(?P<left>[^<>]*)", re.ASCII)
LONGEST_LINK: Final = 64 + 2 * MOST_LISTED * (LONGEST_NAMES + 50)


class Entry(NamedTuple):
    names: str
    """Parted by commas, and cut; of a quiet state, what it is of, in brackets."""
    size: int
    digest: str
    """The first 16 bytes of a sha256, in base64."""
    run: str = ""
    """Of what went in, the beginning of the id of the run that it came from."""


class Link(NamedTuple):
    """Of one receipt. In a file it is one short text."""

    run: str
    put_in: tuple[Entry, ...] = ()
    left: tuple[Entry, ...] = ()
    """What this run made or changed. What it left as it was is still of the run before it."""
    more: int = 0
    """Groups that are not listed."""

    def __str__(self) -> str:
        put_in = ";".join(f"{it.names} {it.size} {it.digest} {it.run}" for it in self.put_in)
        left = ";".join(f"{it.names} {it.size} {it.digest}" for it in self.left)
        return f"{self.run} {self.more}<{put_in}>{left}"

    @classmethod
    def of(cls, text: object) -> Link | None:
        """None for what is no link."""
        found = LINK.fullmatch(text) if isinstance(text, str) and len(text) <= LONGEST_LINK else None
        if found is None:
            return None
        put_in, left = entries(found["put_in"], PUT_IN), entries(found["left"], LEFT)
        return cls(found["run"], put_in, left, int(found["more"])) if put_in is not None and left is not None else None


def entries(text: str, form: re.Pattern[str]) -> tuple[Entry, ...] | None:
    found = [form.fullmatch(part) for part in text.split(";")] if text else []
    whole = [
        Entry(match["names"], int(match["size"]), match["digest"], match.groupdict().get("run", ""))
        for match in found
        if match is not None
    ]
    return tuple(whole) if len(whole) == len(found) <= MOST_LISTED else None


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
        put_in=tuple(entry(group)._replace(run=group.run[:8]) for group in found.put_in[:MOST_LISTED]),
        left=tuple(entry(group) for group in own[:MOST_LISTED]),
        more=more,
    )


def entry(group: CarriedGroup) -> Entry:
    digest = base64.urlsafe_b64encode(bytes.fromhex(group.sha256)[:16]).rstrip(b"=").decode()
    more = (f"+{group.more_names}",) if group.more_names else ()
    names = ",".join((*group.names, *more)) if group.names else f"({group.kind})"
    return Entry(names[:LONGEST_NAMES], group.bytes, digest)


def link_text(receipt: Receipt) -> str | None:
    """The link as a statement has it; None where nothing was carried."""
    link = link_of(receipt)
    return str(link) if link is not None and (link.put_in or link.left or link.more) else None


def breaks(links: Sequence[Link]) -> list[Break]:
    """Where the chain does not hold; empty where all that went into a cell is what the run left that it is said to
    come from. At most some more than ``MOST_BREAKS``."""
    left: dict[str, list[Link]] = {}
    exact: dict[tuple[str, int, str], list[str]] = {}
    for link in links:
        left.setdefault(link.run[:8], []).append(link)
        for it in link.left:
            exact.setdefault((link.run[:8], it.size, it.digest), []).append(it.names)
    found: list[Break] = []
    for link in links:
        if len(found) >= MOST_BREAKS:
            break
        for names, size, digest, run in link.put_in:
            if any(is_of(names, it) for it in exact.get((run, size, digest), ())[:MOST_LISTED]):
                continue
            sources = left.get(run, [])
            listed = [it for source in sources[:MOST_LISTED] for it in source.left]
            if not sources:
                why = "the receipt of the run that it came from is not here"
            elif any(is_of(names, it.names) for it in listed):
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
