"""numpy's arrays and numbers: a type from a list, a shape, and raw bytes of exactly that many entries.

numpy is the one that the program, or its host, has loaded. Standard library only.
"""

from __future__ import annotations

import re
import sys

from pybox_kernel.inside.value_form import Cannot, TooLarge, Wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["built", "described", "place_in"]

SIZED = ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
PLAIN = frozenset(["|b1", "|i1", "|u1", *(order + kind for order in "<>" for kind in SIZED)])
TIMES = re.compile(r"<[mM]8|[<>][mM]8\[(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]")
TEXTS = re.compile(r"(?:[<>]U|\|S)([1-9][0-9]{0,4})")
MOST_LEVELS = 32
LONGEST_SIDE = 1 << 31
LARGEST_CHARACTER = 0x10FFFF


def is_known(dtype: str) -> bool:
    return dtype in PLAIN or TIMES.fullmatch(dtype) is not None or TEXTS.fullmatch(dtype) is not None


def described(value: Any) -> tuple[str, Any]:
    """A plainer value, and the kind that makes this one of it again. Raises Cannot."""
    numpy: Any = sys.modules["numpy"]
    if isinstance(value, numpy.generic):
        return "number", parts_of(numpy.asarray(value))
    if type(value) is not numpy.ndarray:
        raise Cannot("is of the type numpy.%s, and only plain arrays are copied" % type(value).__name__[:60])
    return "array", parts_of(value)


def place_in(_value: Any, _place: str) -> str:
    return ""


def parts_of(array: Any) -> tuple[str, tuple[int, ...], bytes]:
    dtype = array.dtype
    if not is_known(dtype.str) or dtype.names is not None or dtype.subdtype is not None:
        raise Cannot("is an array of %s, which is none of the types that are copied" % str(dtype)[:60])
    if array.ndim > MOST_LEVELS:
        raise Cannot("has more than %d dimensions" % MOST_LEVELS)
    if array.nbytes > 1 << 32:
        raise TooLarge("is too large")
    return dtype.str, array.shape, array.tobytes()


def built(kind: str, parts: Any) -> Any:
    """Raises Wrong for what ``described`` does not make."""
    if type(parts) is not tuple or len(parts) != 3:
        raise Wrong("no array")
    array = array_of(*parts)
    if kind == "number":
        if array.ndim:
            raise Wrong("a number of many")
        return array[()]
    return array


def array_of(dtype: Any, shape: Any, data: Any) -> Any:
    numpy: Any = sys.modules["numpy"]
    if type(dtype) is not str or not is_known(dtype) or type(shape) is not tuple or type(data) is not bytes:
        raise Wrong("no array")
    if len(shape) > MOST_LEVELS or not all(type(side) is int and 0 <= side < LONGEST_SIDE for side in shape):
        raise Wrong("no shape")
    made = numpy.dtype(dtype)
    size = made.itemsize
    for side in shape:
        size *= side
    if size != len(data):
        raise Wrong("an array of another size than its bytes")
    entries = numpy.frombuffer(data, dtype=made) if data else numpy.empty(0, dtype=made)
    if made.kind == "b" and data and max(data) > 1:
        raise Wrong("truth that is neither 0 nor 1")
    if made.kind == "U" and data and entries.view(made.byteorder + "u4").max() > LARGEST_CHARACTER:
        raise Wrong("a character that is none")
    if made.str[1:] == "M8" and not numpy.isnat(entries).all():
        raise Wrong("a moment in no unit")
    try:
        return entries.reshape(shape).copy()
    except ValueError as error:  # sides whose product no computer has, of an array of nothing
        raise Wrong("no shape") from error
