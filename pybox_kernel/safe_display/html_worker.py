"""Cleans HTML from boxes, in a process of its own that can be killed: a parser may take very long over very little.

Run by its path, not imported: standard library and ``nh3`` alone. It is spoken to over one socket, its standard input
and output, and ends when that does. A request is a four-byte length and UTF-8; an answer one byte, a length, UTF-8.
    R ready    C clean    P clean, and parts of it were left out    N not cleaned, because
"""

from __future__ import annotations

import re
import resource
import socket
import struct
from collections import Counter
from time import process_time
from typing import Final

import nh3

LENGTH: Final = struct.Struct(">I")
ANSWER: Final = struct.Struct(">cI")

MEMORY: Final = 512 << 20
"""Of address space; the interpreter and nh3 map about 100 MB."""
CPU_SECONDS: Final = 4
"""For one request, should there be no supervisor any more to kill it."""
DEEPEST: Final = 64
"""Elements in one another: deep lists take seconds, a few bytes a level."""
DEEPEST_CLEAN: Final = 4 * DEEPEST
"""With those that need no tag of their own, like the three between a table and a cell's text."""
TOO_DEEP: Final = f"more than {DEEPEST} elements in one another"

TEXT: Final = "p br hr div span blockquote pre h1 h2 h3 h4 h5 h6 b strong i em u s sub sup small code kbd samp"
LISTS: Final = "ul ol li dl dt dd"
TABLES: Final = "table caption thead tbody tfoot tr th td"
TAGS: Final = frozenset(f"{TEXT} {LISTS} {TABLES}".split())
VOID: Final = ("br", "hr")
SPANS: Final = {cell: {"colspan", "rowspan"} for cell in ("td", "th")}
WIDEST_SPAN: Final = 100
DROPPED_WHOLE: Final = {"script", "style", "title", "template", "noscript", "iframe", "textarea", "svg", "math"}

FRAMES: Final = frozenset(("html", "head", "body"))
"""Not missed where they are left out."""
HOLD_NOTHING: Final = "br hr img input meta link wbr col"
END_BY_THEMSELVES: Final = "p li dt dd tr td th thead tbody tfoot option"
NOT_NESTED: Final = frozenset(f"{HOLD_NOTHING} {END_BY_THEMSELVES}".split())
"""Their ends are often left out, and do not count."""
TAG: Final = re.compile("<(/?)([a-zA-Z][^\t\n\f\r />]*)([^<>]*)")
HANDLER: Final = re.compile("[\t\n\f\r /\"']on[a-z]+[\t\n\f\r ]*=", re.IGNORECASE)


def examine(source: str) -> tuple[int, bool]:
    """How deep elements stand in one another at the deepest, roughly, and whether something is there that cleaning
    leaves out and a reader could miss. Both by one look along the text, before any parser reads it."""
    depth = deepest = 0
    unclosed: Counter[str] = Counter()
    missed = False
    for end, written, rest in TAG.findall(source):
        name = written.lower()
        missed = missed or (name not in TAGS and name not in FRAMES) or HANDLER.search(rest) is not None
        if name in NOT_NESTED:
            continue
        if not end:
            unclosed[name] += 1
            depth += 1
            deepest = max(deepest, depth)
        elif unclosed[name]:
            unclosed[name] -= 1
            depth -= 1
    return deepest, missed


def depth_of(cleaned: str) -> int:
    """Of what the parser itself wrote: each element has its end, but for those that hold nothing."""
    depth = deepest = 0
    for end, name, _ in TAG.findall(cleaned):
        if name not in VOID:
            depth += -1 if end else 1
            deepest = max(deepest, depth)
    return deepest


def span(_tag: str, _attribute: str, value: str) -> str | None:
    number = value.strip()
    return number if re.fullmatch("[1-9][0-9]{0,2}", number, re.ASCII) and int(number) <= WIDEST_SPAN else None


def clean(source: str) -> tuple[bytes, str]:
    deepest, missed = examine(source)
    if deepest > DEEPEST:
        return b"N", TOO_DEEP
    cleaned = nh3.clean(
        source,
        tags=set(TAGS),
        clean_content_tags=DROPPED_WHOLE,
        attributes=SPANS,
        attribute_filter=span,
        strip_comments=True,
        link_rel=None,
        url_schemes=set(),
    )
    if depth_of(cleaned) > DEEPEST_CLEAN:
        return b"N", TOO_DEEP
    return b"P" if missed else b"C", cleaned


def serve(channel: socket.socket) -> None:
    with channel.makefile("rb") as requests:
        answer(channel, b"R", "")
        while head := requests.read(LENGTH.size):
            source = requests.read(*LENGTH.unpack(head)).decode("utf-8")
            _, hard = resource.getrlimit(resource.RLIMIT_CPU)
            resource.setrlimit(resource.RLIMIT_CPU, (int(process_time()) + CPU_SECONDS, hard))
            answer(channel, *clean(source))


def answer(channel: socket.socket, kind: bytes, text: str) -> None:
    payload = text.encode("utf-8")
    channel.sendall(ANSWER.pack(kind, len(payload)) + payload)


def main() -> None:
    for limit, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)):
        resource.setrlimit(limit, (most, most))
    with socket.socket(fileno=0) as channel:
        serve(channel)


if __name__ == "__main__":
    main()
