"""What the runner says to the warden, on the program's third pipe. Standard library only.

One type byte, a four-byte big-endian length, the payload:
    r ready    c reached the last statement    x an exception (JSON)    d a display (JSON)
    k w  a part of what is carried to later cells, of the values that were asked for (``parcels``)
"""

from __future__ import annotations

import _thread
import json
import os

TYPE_CHECKING = False  # importing typing costs a box milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

EVENTS = 3
LARGEST = 1_500_000
"""Bytes of one event that the warden takes; more is dropped."""
TEXT = 14000
"""Bytes of JSON for an exception's value, and for the text of a display."""


encode = json.JSONEncoder(ensure_ascii=False).encode
"""Not ``json.dumps``, which a program may have put something else in place of."""

lock = _thread.RLock()
"""Threads speak one after the other: a pipe takes no more than 4 KiB at once in one piece."""
os.register_at_fork(after_in_child=lock._at_fork_reinit)  # type: ignore[attr-defined]


def say(kind: bytes, payload: bytes | bytearray | memoryview = b"") -> None:
    data = memoryview(kind + len(payload).to_bytes(4, "big") + payload)
    with lock:
        while data:
            data = data[os.write(EVENTS, data) :]


def as_json(value: object) -> bytes:
    """Half of a character, which UTF-8 does not have, is escaped."""
    return encode(value).encode("utf-8", "backslashreplace")


def cut(text: str, most: int = TEXT) -> str:
    """The beginning and the end of a text, as far as both fit into ``most`` bytes of JSON. Half of a character is
    escaped."""
    text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) <= most and len(as_json(text)) <= most:
        return text
    each = min(most - 100, len(text)) // 2  # 100 for the line between
    while True:
        kept = text[:each] + "\n… %d characters left out …\n" % (len(text) - 2 * each) + text[-each:]
        if len(as_json(kept)) <= most:
            return kept
        each = each * 3 // 4


def begin(text: str, most: int) -> str:
    """The beginning of a text, as far as it fits into ``most`` bytes of JSON: for names."""
    text = text[:most].encode("utf-8", "backslashreplace").decode()[:most]
    while len(as_json(text)) > most:
        text = text[: len(text) * 3 // 4]
    return text


def text_of(value: object, convert: Callable[[Any], str] = str, most: int = TEXT) -> str:
    try:
        return cut(convert(value), most)
    except BaseException:
        return "<%s %s() failed>" % (type(value).__name__, convert.__name__)
