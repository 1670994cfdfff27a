"""Values on their way into a box and out of it: copies, as plain data, and never by pickle.

What is copied: None, truth, numbers, text, bytes, dates and times, lists, tuples, sets and dicts of them (keys: text or
whole numbers); arrays and numbers of numpy; tables, columns and indexes of pandas; tables and columns of polars. What
comes back is what the program chose: it is read strictly, bounded in size, depth and count.
"""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field, ValidationError

from pybox_kernel.errors import OptionError
from pybox_kernel.files.box_files import amount
from pybox_kernel.inside.value_form import DEEPEST, LARGEST, LIBRARIES, Cannot, NotLoaded, TooLarge, module_of
from pybox_kernel.inside.value_reader import unpack
from pybox_kernel.inside.value_writer import packed
from pybox_kernel.safe_display.text import safe_name
from pybox_kernel.wire.frames import Strict
from pybox_kernel.wire.parcels import Parcel, ValuesIn

__all__ = [
    "LARGEST",
    "MOST_VALUES",
    "BroughtValue",
    "Value",
    "ValueNotBrought",
    "ValuesAsked",
    "ValuesOut",
    "check_libraries",
    "checked_wanted",
    "nothing",
    "outcome",
    "read",
    "taken",
]

MOST_VALUES: Final = 64
"""Of those put in, and of those asked for."""
LONGEST_NAME: Final = 100
OF_THE_SHELL: Final = frozenset({"In", "Out", "display", "exit", "get_ipython", "quit"})
"""Names that IPython gives a notebook."""
HISTORY: Final = re.compile(r"_+(\d+|i+\d*|ih|oh|dh)?")


class Value(NamedTuple):
    """A copy of a value to be put into a box under its name."""

    name: str
    data: bytes
    kind: str
    """In a few plain words."""
    shape: tuple[int, ...]
    """How many entries; rows and columns; empty for what has none."""
    libraries: frozenset[str] = frozenset()
    """What the box must have, to make it again: numpy, pandas, polars."""


class ValuesAsked(NamedTuple):
    """What one cell gets, and what is asked of it."""

    values: tuple[Value, ...] = ()
    """Made by ``taken``."""
    wanted: tuple[str, ...] = ()
    """Have passed ``checked_wanted``."""

    def parcel(self) -> ValuesIn:
        manifest = [{"name": value.name, "libraries": sorted(value.libraries)} for value in self.values]
        return ValuesIn(manifest, [value.data for value in self.values], self.wanted)


class BroughtValue(NamedTuple):
    """A value as the program left it: its word, made again from plain data."""

    name: str
    value: object
    kind: str
    shape: tuple[int, ...]
    data: bytes
    """What it was made from."""


class ValueNotBrought(NamedTuple):
    name: str
    why: str
    """Stands after the name."""


class ValuesOut(NamedTuple):
    brought: tuple[BroughtValue, ...] = ()
    not_brought: tuple[ValueNotBrought, ...] = ()


class Offered(Strict):
    name: Annotated[str, Field(max_length=LONGEST_NAME)]


class Refusal(Strict):
    name: Annotated[str, Field(max_length=LONGEST_NAME)]
    why: Annotated[str, Field(max_length=1000)]


class Manifest(Strict):
    """What the runner says of the values that were asked for (``inside/values.py``): its word."""

    values: Annotated[tuple[Offered, ...], Field(max_length=MOST_VALUES)]
    missing: Annotated[tuple[Refusal, ...], Field(max_length=MOST_VALUES)]


# In


def taken(names: Sequence[str], namespace: Mapping[str, Any]) -> tuple[Value, ...]:
    """Copies of the values that ``namespace`` has under ``names``, each once. Raises OptionError for a name that is
    none, or is not there, and for a value that cannot be copied or is too large, with what to do instead."""
    values: list[Value] = []
    room = LARGEST
    for name in checked_names(names):
        if name not in namespace:
            raise OptionError(f"There is no ‘{name}’ here to copy into the box.", "Define it first, or check the name.")
        value = namespace[name]
        try:
            data, libraries = copied(value, room)
        except TooLarge as error:
            raise too_large(name, value, error, LARGEST - room) from None
        except Cannot as error:
            raise OptionError(
                f"{name} cannot be copied into a box: {name}{safe_name(error.place, 200)} {safe_name(error.why, 200)}.",
                advice_for(value),
            ) from None
        room -= len(data)
        values.append(Value(name, data, kind_of(value), shape_of(value), libraries))
    return tuple(values)


def copied(value: object, room: int) -> tuple[bytes, frozenset[str]]:
    size = size_of(value)
    if size is not None and size > room:
        raise TooLarge("is too large")
    return packed(value, room)


def checked_wanted(names: Sequence[str], namespace: Mapping[str, Any], *, replace: bool) -> tuple[str, ...]:
    """The names of the values to bring back, each once. Raises OptionError for one that cannot be bound, and for one
    that ``namespace`` has already unless ``replace``."""
    wanted = checked_names(names)
    for name in wanted:
        if hasattr(builtins, name) or name in OF_THE_SHELL or HISTORY.fullmatch(name):
            raise OptionError(
                f"{name} has a meaning in Python or in the notebook.", "Bring the value back under another."
            )
        if name in namespace and not replace:
            raise OptionError(
                f"The name ‘{name}’ is taken already.", "Add --replace, or bring it back under another name."
            )
    return wanted


def checked_names(names: Sequence[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(names))
    if len(found) > MOST_VALUES:
        raise OptionError(
            f"There are more than {MOST_VALUES} names: a box takes no more.", "Put the values into a dict."
        )
    for name in found:
        if fault := fault_of(name):
            raise OptionError(f"{safe_name(name, 100)!r} {fault}.", "Give the name of a variable.")
    return found


def fault_of(name: str) -> str | None:
    """What is wrong with the name of a variable; None if nothing is."""
    if not name.isidentifier() or unicodedata.normalize("NFKC", name) != name:
        return "is no name of a variable"
    if keyword.iskeyword(name):
        return "is a word of Python's own"
    if name.startswith("__") and name.endswith("__") and name.strip("_"):
        return "is a name that Python keeps for itself"
    if len(name.encode()) > LONGEST_NAME:
        return f"is longer than {LONGEST_NAME} bytes"
    return None


def check_libraries(asked: ValuesAsked, image: str, packages: Iterable[str]) -> None:
    """Raises OptionError for a value that only a package can make which is not among those of the image."""
    there = set(packages)
    for value in asked.values:
        if missing := sorted(value.libraries - there):
            raise OptionError(
                f"{value.name} needs {' and '.join(missing)}, which the box '{image}' does not have.",
                "Use an image of your own that has it, or copy a dict or a table of pandas."
                if "polars" in missing
                else "Use `--image data`, which has numpy and pandas, or copy a list or a dict.",
            )


# Out


def outcome(came: Parcel | str, wanted: Sequence[str]) -> ValuesOut:
    """What came of the values ``wanted``, or the reason why nothing did."""
    return nothing(wanted, f"did not come: {came}") if isinstance(came, str) else read(*came, wanted)


def read(manifest: bytes, payloads: Sequence[bytes], wanted: Iterable[str]) -> ValuesOut:
    """What came of the values ``wanted``, from what the program says. A value that cannot be read takes no other with
    it; raises nothing."""
    try:
        told = Manifest.model_validate_json(manifest)
    except ValidationError:
        return nothing(wanted, "did not come: what the program says of it cannot be read")
    if len(told.values) != len(payloads) or sum(map(len, payloads)) > LARGEST:
        return nothing(wanted, "did not come: what the program sent is not what it says")
    sent = {offered.name: data for offered, data in zip(told.values, payloads, strict=True)}
    refused = {refusal.name: refusal.why for refusal in told.missing}
    brought, not_brought = [], []
    for name in wanted:
        if name in sent:
            try:
                brought.append(made(name, sent[name]))
            except NotLoaded as error:
                why = f"needs {error.args[0]}, which this notebook has not imported: import it, and run the cell again"
                not_brought.append(ValueNotBrought(name, why))
            except Exception:  # whatever a library has against what none of its programs makes, too
                not_brought.append(ValueNotBrought(name, "did not come in a form that can be read"))
        else:
            why = refused.get(name, "did not come")
            not_brought.append(ValueNotBrought(name, safe_name(why, 300)))
    return ValuesOut(tuple(brought), tuple(not_brought))


def nothing(wanted: Iterable[str], why: str) -> ValuesOut:
    """Nothing of all that was asked for, and why, in words that stand after a name."""
    return ValuesOut((), tuple(ValueNotBrought(name, why) for name in wanted))


def made(name: str, data: bytes) -> BroughtValue:
    value = unpack(data)
    return BroughtValue(name, value, kind_of(value), shape_of(value), data)


# In words

KINDS: Final = {
    type(None): "None", bool: "truth", int: "whole number", float: "number", complex: "complex number", str: "text",
    bytes: "bytes", list: "list", tuple: "tuple", set: "set", dict: "dict",
}  # fmt: skip
PARTS: Final = {"DataFrame": "table", "Series": "column"}


def kind_of(value: Any) -> str:
    kind = type(value)
    if kind in KINDS:
        return KINDS[kind]
    library = library_of(value)
    if library is None:
        return kind.__name__
    if library == "numpy":
        return f"{'array' if kind.__name__ == 'ndarray' else 'number'} of {value.dtype}"
    return f"{PARTS.get(kind.__name__, kind.__name__)} of {library}"


def shape_of(value: Any) -> tuple[int, ...]:
    if library_of(value) is not None:
        return tuple(getattr(value, "shape", ()))
    return (len(value),) if type(value) in (str, bytes, list, tuple, set, dict) else ()


def library_of(value: object) -> str | None:
    library = module_of(type(value))
    return library if library in LIBRARIES and library != "datetime" else None


def size_of(value: Any) -> int | None:
    """About how many bytes it has, where that can be told without looking through it."""
    match library_of(value), type(value).__name__:
        case "numpy", _:
            return int(value.nbytes)
        case "pandas", "DataFrame":
            return int(value.memory_usage(index=False).sum())
        case "pandas", "Series":
            return int(value.memory_usage(index=False))
        case "polars", "DataFrame" | "Series":
            return int(value.estimated_size())
    return len(value) if type(value) in (str, bytes) else None


def too_large(name: str, value: Any, error: TooLarge, before: int) -> OptionError:
    size = size_of(value)
    had = f"has {amount(size)}" if size is not None and size > LARGEST else error.why
    others = f" beside {amount(before)} of others" if before else ""
    limit = f"All values that go into a box may have {amount(LARGEST)} together"
    return OptionError(f"{name} {had}{others}. {limit}.", f"Copy a part of it: {smaller(name, value, size)}.")


def smaller(name: str, value: Any, size: int | None) -> str:
    """An expression that gives a part which is not too large."""
    shape = shape_of(value)
    if not shape or type(value) in (set, dict):
        return "name what is needed of it"
    count = floor_to_digit(max(1, int(shape[0] * LARGEST / (size * 1.25)) if size else shape[0] // 10))
    if library_of(value) in ("pandas", "polars") and type(value).__name__ in PARTS:
        return f"{name}_part = {name}.sample({count})"
    return f"{name}_part = {name}[:{count}]"


def floor_to_digit(number: int) -> int:
    """The number with its first digit alone: 48,211 gives 40,000."""
    step: int = 10 ** (len(str(number)) - 1)
    return number // step * step


def advice_for(value: object) -> str:
    if library_of(value) in ("pandas", "polars"):
        return "Copy a table without it, or turn it into text or numbers first."
    if isinstance(value, FunctionType | ModuleType):
        return "Define it, or import it, in the cell that runs in the box."
    return f"Copy a list, a dict, text, numbers, arrays or tables, at most {DEEPEST} levels deep."
