"""What stands under a cell, in one form: the same for what a kernel sent, and for what a notebook's file has of it.

Clients put texts together, divide them into lines, number cells, and add metadata of their own. None of that changes
what is seen, and none of it is in this form. Everything else is: an output more or less, in another order, of another
kind, or with another form of its data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

__all__ = ["KINDS", "data_entries", "digest", "entries_of", "layout_of", "shows_nothing", "text_of"]

KINDS: Final = {
    "stdout": "what it printed",
    "stderr": "what it printed as errors",
    "display": "what it displayed",
    "result": "its last value",
    "error": "its error",
}
"""The first word of an entry, and what it is of."""

DATA: Final = {"display_data": "display", "execute_result": "result"}

LAYOUT: Final = frozenset({"height", "isolated", "needs_background", "unconfined", "width"})
"""Metadata of an output that say how pages draw it. PyBox gives it none."""

Output = Mapping[str, Any]
"""As nbformat has it: ``output_type``, and the content of Jupyter's message of that name."""


def entries_of(outputs: Sequence[Output]) -> tuple[str, ...]:
    """Of each output its kind and the digest of what it shows. Raises ValueError for what is no output of nbformat 4.

    Consecutive texts of one stream are one output; what shows nothing is none.
    """
    return tuple(f"{kind} {digest(kind, *parts)}" for kind, parts in joined(outputs))


def data_entries(data: Mapping[str, Any]) -> dict[str, str]:
    """Of each form of the data of a display, by its MIME type, the digest. Raises ValueError."""
    return {mime: digest("data", *parts_of(mime, value)) for mime, value in data.items()}


def joined(outputs: Sequence[Output]) -> Iterator[tuple[str, list[bytes]]]:
    name = ""
    texts: list[str] = []
    for output in outputs:
        kind = output.get("output_type")
        if not isinstance(kind, str):
            raise ValueError("an output of no kind")
        if kind == "stream":
            if output.get("name") not in ("stdout", "stderr"):
                raise ValueError("a stream without a name")
            if name and name != output["name"]:
                yield name, [encoded("".join(texts))]
                texts = []
            name = output["name"]
            texts.append(text_of(output.get("text")))
            if not texts[-1]:
                texts.pop()
                name = name if texts else ""
            continue
        if shows_nothing(output):
            continue
        if name:
            yield name, [encoded("".join(texts))]
            name, texts = "", []
        if kind == "error":
            lines = output.get("traceback")
            if not isinstance(lines, list | tuple):
                raise ValueError("an error without its lines")
            words = (output.get("ename"), output.get("evalue"), *lines)
            if not all(isinstance(word, str) for word in words):  # no client divides them
                raise ValueError("an error whose words are none")
            yield "error", list(map(encoded, words))
        elif kind in DATA:
            data = data_of(output)
            parts = [part for mime in sorted(data) for part in parts_of(mime, data[mime])]
            layout = layout_of(output)
            yield DATA[kind], [*parts, *(parts_of("layout", layout) if layout else ())]
        else:
            raise ValueError("an output of an unknown kind")
    if name:
        yield name, [encoded("".join(texts))]


def shows_nothing(output: Output) -> bool:
    """As what is left of the panel of a cell that ran."""
    if output.get("output_type") != "display_data":
        return False
    data = data_of(output)
    return set(data) <= {"text/plain"} and not text_of(data.get("text/plain", ""))


def data_of(output: Output) -> Mapping[str, Any]:
    data = output.get("data")
    if not isinstance(data, Mapping):
        raise ValueError("a display without data")
    return data


def layout_of(output: Output) -> Mapping[str, Any]:
    """What its metadata say of how it is drawn: a picture as small as a dot, or HTML in a frame of its own."""
    said = output.get("metadata")
    found = said.items() if isinstance(said, Mapping) else ()
    return {name: value for name, value in found if value not in (None, {}) and (name in LAYOUT or "/" in name)}


def text_of(text: object) -> str:
    """A text, or the list of its lines."""
    if isinstance(text, str):
        return text
    if isinstance(text, list) and all(isinstance(line, str) for line in text):
        return "".join(text)
    raise ValueError("no text where one must be")


def parts_of(mime: str, value: object) -> tuple[bytes, bytes, bytes]:
    try:
        return encoded(mime), b"text", encoded(text_of(value))
    except ValueError:
        written = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return encoded(mime), b"json", written.encode()


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def digest(kind: str, *parts: bytes) -> str:
    """A sha256 in which it is marked of what kind it is, and where each part ends."""
    found = hashlib.sha256(b"PyBox " + kind.encode() + b"\0")
    for part in parts:
        found.update(len(part).to_bytes(8))
        found.update(part)
    return found.hexdigest()
