"""Values read from bytes that may be anybody's, in the form of ``value_form``. Standard library only."""

from __future__ import annotations

import sys
from array import array

from pybox_kernel.inside.value_form import (
    COMPLEX,
    DEEPEST,
    FLOAT,
    LENGTH,
    LONGEST_NUMBER,
    MADE_BY,
    MOST_PACKED,
    MOST_PARTS,
    NUMBER,
    NotLoaded,
    Wrong,
    is_key,
    module_for,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["unpack"]

CONSTANTS = {b"N": None, b"T": True, b"F": False}


def unpack(data: bytes) -> object:
    """Raises Wrong for whatever ``pack`` does not make, and NotLoaded."""
    reader = Reader(data)
    value = reader.read(0)
    if reader.at != len(data):
        raise Wrong("bytes after its end")
    return value


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.parts = 0
        self.packed = 0

    def take(self, size: int) -> bytes:
        start, self.at = self.at, self.at + size
        if self.at > len(self.data):
            raise Wrong("it ends too soon")
        return self.data[start : self.at]

    def length(self) -> int:
        length: int = LENGTH.unpack(self.take(4))[0]
        if length > len(self.data) - self.at:
            raise Wrong("a length of more than there is")
        return length

    def read(self, depth: int) -> Any:
        self.parts += 1
        if self.parts > MOST_PARTS or depth > DEEPEST:
            raise Wrong("too many values, or too deep")
        kind = self.take(1)
        if kind == b"s":
            return as_text(self.take(self.length()))
        if kind == b"i":
            return NUMBER.unpack(self.take(8))[0]
        if kind == b"f":
            return FLOAT.unpack(self.take(8))[0]
        if kind in CONSTANTS:
            return CONSTANTS[kind]
        if kind == b"b":
            return self.take(self.length())
        if kind == b"c":
            return complex(*COMPLEX.unpack(self.take(16)))
        if kind == b"I":
            length = self.length()
            if length > LONGEST_NUMBER:
                raise Wrong("a whole number that is too long")
            return int.from_bytes(self.take(length), "little", signed=True)
        if kind in b"lted":
            return self.read_entries(kind, depth)
        if kind in b"qgu":
            return self.read_packed(kind)
        if kind == b"x":
            return build(as_text(self.take(self.length())), self.read(depth + 1))
        raise Wrong("an unknown type")

    def read_entries(self, kind: bytes, depth: int) -> Any:
        count = self.length()
        if kind == b"d":
            if count % 2:
                raise Wrong("a key without an entry")
            keys = {}
            for _ in range(count // 2):
                key = self.read(depth + 1)
                if not is_key(key) or key in keys:
                    raise Wrong("a key that is none, or that is there twice")
                keys[key] = self.read(depth + 1)
            return keys
        entries = [self.read(depth + 1) for _ in range(count)]
        if kind == b"l":
            return entries
        if kind == b"t":
            return tuple(entries)
        if not all(map(is_key, entries)) or len(set(entries)) != count:
            raise Wrong("an entry of a set that cannot be one, or that is there twice")
        return set(entries)

    def read_packed(self, kind: bytes) -> list[Any]:
        count = self.length()
        self.packed += count
        if self.packed > MOST_PACKED:
            raise Wrong("too many values")
        if kind != b"u":
            return little_list("q" if kind == b"q" else "d", self.take(8 * count))
        lengths = little_list("I", self.take(4 * count))
        if self.take(1) != b"s":
            raise Wrong("texts without their text")
        text = as_text(self.take(self.length()))
        if sum(lengths) != len(text):
            raise Wrong("texts of another length than there is")
        entries, start = [], 0
        for length in lengths:
            entries.append(text[start : start + length])
            start += length
        return entries


def build(kind: str, plainer: object) -> Any:
    """What a plainer value is made into. Raises Wrong, or NotLoaded where the library for it is not there."""
    library = MADE_BY.get(kind)
    if library is None:
        raise Wrong("an unknown kind")
    if library not in sys.modules and library != "datetime":
        raise NotLoaded(library)
    return module_for(library).built(kind, plainer)


def as_text(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise Wrong("text that is not UTF-8") from error


def little_list(code: str, data: bytes) -> list[Any]:
    numbers = array(code, data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()
