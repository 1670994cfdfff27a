"""Values as bytes, and bytes as values: the same at both ends, and never by pickle. Standard library only.

A value is one type byte and what belongs to it, numbers little-endian:
    N T F     None, True, False              f c    a float, a complex number: 8 bytes, 16 bytes
    i         a whole number: 8 bytes        I      a longer one: its bytes
    s b       text (UTF-8), bytes            l t    a list, a tuple: its entries
    e d       a set, a dict: entries, keys before theirs; a key is text or a whole number, and there once
    q g u     a list of whole numbers, of floats, of texts, packed
    x         what is made of a plainer one: its kind, and that (by ``value_dates``, ``value_arrays`` and the like)
Whatever has a length has it first, in 4 bytes. Reading takes no memory for a length before that many bytes are there,
goes at most DEEPEST levels down and makes at most MOST_PARTS values, so it ends soon whatever the bytes are.
"""

from __future__ import annotations

import struct
import sys
from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["DEEPEST", "LARGEST", "MOST_PARTS", "Cannot", "NotLoaded", "TooLarge", "Wrong", "pack", "packed", "unpack"]

LARGEST = 8 << 20
"""Bytes of all values that go one way."""
DEEPEST = 64
"""Levels of lists and the like in one another."""
MOST_PARTS = 500_000
"""Values in one value. Of lists that are packed each counts as one."""
MOST_PACKED = 1_000_000
"""Entries of packed lists in one value: each takes more memory than bytes."""
LONGEST_NUMBER = 512
"""Bytes of a whole number."""
FEWEST_PACKED = 8
LENGTH = struct.Struct("<I")
NUMBER = struct.Struct("<q")
FLOAT = struct.Struct("<d")
COMPLEX = struct.Struct("<dd")
LIBRARIES = {
    "datetime": "value_dates",
    "numpy": "value_arrays",
    "pandas": "value_tables",
    "polars": "value_polars",
}
MADE_BY = {
    **dict.fromkeys(("date", "time", "moment", "span"), "datetime"),
    **dict.fromkeys(("array", "number"), "numpy"),
    **dict.fromkeys(("table", "column", "index", "stamp", "stretch", "missing"), "pandas"),
    **dict.fromkeys(("polars table", "polars column"), "polars"),
}
"""The library that makes a value of this kind."""


class Cannot(Exception):
    """A value that cannot go, and the reason in words that stand after its name. ``place`` leads to what is the
    matter inside it, like ``[0]['a']``."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.place = ""

    def within(self, place: str) -> Cannot:
        self.place = place + self.place
        return self


class TooLarge(Cannot):
    """It is over LARGEST, or over MOST_PARTS."""


class Wrong(ValueError):
    """Bytes that are no value."""


class NotLoaded(Exception):
    """A value is of a library that is not loaded: its name."""


def pack(value: object, most: int = LARGEST) -> bytes:
    """Raises Cannot for what has no such form, TooLarge for what takes more than ``most`` bytes."""
    return packed(value, most)[0]


def packed(value: object, most: int = LARGEST) -> tuple[bytes, frozenset[str]]:
    """The same, and the libraries that whoever unpacks it must have."""
    writer = Writer(most)
    writer.write(value, 0)
    return b"".join(writer.out), frozenset(writer.libraries)


def unpack(data: bytes) -> object:
    """Raises Wrong for whatever ``pack`` does not make, and NotLoaded."""
    reader = Reader(data)
    value = reader.read(0)
    if reader.at != len(data):
        raise Wrong("bytes after its end")
    return value


class Writer:
    def __init__(self, most: int) -> None:
        self.out: list[bytes] = []
        self.room = most
        self.parts = 0
        self.packed = 0
        self.libraries: set[str] = set()

    def put(self, data: bytes) -> None:
        self.room -= len(data)
        if self.room < 0:
            raise TooLarge("is too large")
        self.out.append(data)

    def put_long(self, kind: bytes, data: bytes) -> None:
        if len(data) > self.room:
            raise TooLarge("is too large")
        self.put(kind + LENGTH.pack(len(data)))
        self.put(data)

    def write(self, value: object, depth: int) -> None:
        self.parts += 1
        if depth > DEEPEST:
            raise Cannot("is more than %d levels deep, or holds itself" % DEEPEST)
        kind = type(value)
        known = WRITERS.get(kind)
        if known is not None:
            known(self, value, depth)
            return
        library = module_of(kind)
        if library not in LIBRARIES:
            raise Cannot("is " + name_of(kind))
        if library != "datetime":
            self.libraries.add(library)
        module = module_for(library)
        made_by, plainer = module.described(value)
        self.put_long(b"x", made_by.encode())
        try:
            self.write(plainer, depth + 1)
        except Cannot as error:
            error.place = module.place_in(value, error.place)
            raise

    def write_constant(self, value: Any, _: int) -> None:
        self.put(b"N" if value is None else b"T" if value else b"F")

    def write_number(self, value: int, _: int) -> None:
        if -(2**63) <= value < 2**63:
            self.put(b"i" + NUMBER.pack(value))
        elif value.bit_length() < LONGEST_NUMBER * 8:
            self.put_long(b"I", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
        else:
            raise Cannot("is a whole number of more than %d bytes" % LONGEST_NUMBER)

    def write_float(self, value: float, _: int) -> None:
        self.put(b"f" + FLOAT.pack(value))

    def write_text(self, value: str, _: int) -> None:
        self.put_long(b"s", value.encode("utf-8", "surrogatepass"))

    def write_bytes(self, value: bytes, _: int) -> None:
        self.put_long(b"b", value)

    def write_list(self, value: list[Any], depth: int) -> None:
        if len(value) < FEWEST_PACKED or not self.pack_list(value):
            self.write_entries(b"l", value, depth)

    def write_tuple(self, value: tuple[Any, ...], depth: int) -> None:
        self.write_entries(b"t", value, depth)

    def write_set(self, value: set[Any], depth: int) -> None:
        for entry in value:
            if not is_key(entry):
                raise Cannot("has an entry that is neither text nor a usual whole number")
        self.write_entries(b"e", tuple(value), depth)

    def put_count(self, kind: bytes, count: int) -> None:
        if self.parts + count > MOST_PARTS:
            raise TooLarge("has more than %d values in it" % MOST_PARTS)
        self.put(kind + LENGTH.pack(count))

    def write_entries(self, kind: bytes, value: Any, depth: int) -> None:
        self.put_count(kind, len(value))
        for place, entry in enumerate(value):
            try:
                self.write(entry, depth + 1)
            except Cannot as error:
                raise error.within("" if kind == b"e" else "[%d]" % place) from None

    def write_dict(self, value: dict[Any, Any], depth: int) -> None:
        self.put_count(b"d", 2 * len(value))
        for key, entry in value.items():
            if not is_key(key):
                raise Cannot("has a key that is neither text nor a usual whole number, but " + name_of(type(key)))
            self.write(key, depth + 1)
            try:
                self.write(entry, depth + 1)
            except Cannot as error:
                raise error.within("[%.60s]" % repr(key)) from None

    def pack_list(self, value: list[Any]) -> bool:
        kinds = set(map(type, value))
        if len(kinds) != 1:
            return False
        (kind,) = kinds
        if kind is int:
            try:
                self.put_packed(b"q", len(value), little(array("q", value)))
            except OverflowError:
                return False
        elif kind is float:
            self.put_packed(b"g", len(value), little(array("d", value)))
        elif kind is str:
            text = "".join(value).encode("utf-8", "surrogatepass")
            self.put_packed(b"u", len(value), little(array("I", map(len, value))))
            self.put_long(b"s", text)
        else:
            return False
        return True

    def put_packed(self, kind: bytes, count: int, data: bytes) -> None:
        self.packed += count
        if self.packed > MOST_PACKED:
            raise TooLarge("has more than %d values in it" % MOST_PACKED)
        self.put(kind + LENGTH.pack(count))
        self.put(data)

    def write_complex(self, value: complex, _: int) -> None:
        self.put(b"c" + COMPLEX.pack(value.real, value.imag))


WRITERS: dict[type, Callable[[Writer, Any, int], None]] = {
    type(None): Writer.write_constant, bool: Writer.write_constant, int: Writer.write_number, float: Writer.write_float,
    complex: Writer.write_complex, str: Writer.write_text, bytes: Writer.write_bytes, list: Writer.write_list,
    tuple: Writer.write_tuple, set: Writer.write_set, dict: Writer.write_dict,
}  # fmt: skip


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


CONSTANTS = {b"N": None, b"T": True, b"F": False}


def build(kind: str, plainer: object) -> Any:
    """What a plainer value is made into. Raises Wrong, or NotLoaded where the library for it is not there."""
    library = MADE_BY.get(kind)
    if library is None:
        raise Wrong("an unknown kind")
    if library not in sys.modules and library != "datetime":
        raise NotLoaded(library)
    return module_for(library).built(kind, plainer)


def module_for(library: str) -> Any:
    return __import__("pybox_kernel.inside." + LIBRARIES[library], fromlist=["built"])


def is_key(value: object) -> bool:
    return type(value) is str or (type(value) is int and -(2**60) < value < 2**60)


def as_text(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise Wrong("text that is not UTF-8") from error


def little(numbers: array[Any]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def little_list(code: str, data: bytes) -> list[Any]:
    numbers = array(code, data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def module_of(kind: type) -> str:
    """The library whose own this type is, if it is loaded."""
    module = kind.__module__
    library = module.partition(".")[0] if type(module) is str else ""
    return library if library in sys.modules else ""


def name_of(kind: type) -> str:
    name = kind.__qualname__
    module = module_of(kind)
    return "of the type " + (name if module in ("", "builtins", "__main__") else "%s.%s" % (module, name))[:100]
