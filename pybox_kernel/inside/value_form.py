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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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


def module_for(library: str) -> Any:
    return __import__("pybox_kernel.inside." + LIBRARIES[library], fromlist=["built"])


def is_key(value: object) -> bool:
    return type(value) is str or (type(value) is int and -(2**60) < value < 2**60)


def module_of(kind: type) -> str:
    """The library whose own this type is, if it is loaded."""
    module = kind.__module__
    library = module.partition(".")[0] if type(module) is str else ""
    return library if library in sys.modules else ""


def name_of(kind: type) -> str:
    name = kind.__qualname__
    module = module_of(kind)
    return "of the type " + (name if module in ("", "builtins", "__main__") else "%s.%s" % (module, name))[:100]
