"""Values packed as bytes, in the form of ``value_form``. Standard library only."""

from __future__ import annotations

import sys
from array import array

from pybox_kernel.inside.value_form import (
    COMPLEX,
    DEEPEST,
    FEWEST_PACKED,
    FLOAT,
    LARGEST,
    LENGTH,
    LIBRARIES,
    LONGEST_NUMBER,
    MOST_PACKED,
    MOST_PARTS,
    NUMBER,
    Cannot,
    TooLarge,
    is_key,
    module_for,
    module_of,
    name_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["pack", "packed"]


def pack(value: object, most: int = LARGEST) -> bytes:
    """Raises Cannot for what has no such form, TooLarge for what takes more than ``most`` bytes."""
    return packed(value, most)[0]


def packed(value: object, most: int = LARGEST) -> tuple[bytes, frozenset[str]]:
    """The same, and the libraries that whoever unpacks it must have."""
    writer = Writer(most)
    writer.write(value, 0)
    return b"".join(writer.out), frozenset(writer.libraries)


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


def little(numbers: array[Any]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
