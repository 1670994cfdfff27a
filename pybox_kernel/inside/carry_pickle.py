"""Pickles for what is carried: cloudpickle's, but that they lead into the ``__main__`` of the next cell.

A function of ``__main__`` takes none of its global variables with it: restored, it reads those of the new ``__main__``.
Cells of closures stay shared. What stands for something outside - an open file, a lock - is refused, and not replaced
by something that looks like it.

A payload is a table, the pickle, and the large buffers that stand outside of it (pickle protocol 5), each at a multiple
of ALIGN: arrays are restored in the memory that the payload came into.
"""

from __future__ import annotations

import functools
import gc
import io
import os
import pickle
import struct
import sys
import types
import typing
import weakref

from pybox_kernel.inside import carry_lines, carry_made, cloudpickle  # type: ignore[attr-defined]
from pybox_kernel.inside.carry_sharing import root_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Bytes = bytes | bytearray | memoryview

ALIGN = 16
HEAD = struct.Struct(">IQ")
"""How many buffers, and the size of the pickle."""
BUFFER = struct.Struct(">Q?")
"""The size of a buffer, and whether it can be written to."""
SMALL_ARRAY = 65_536
"""Bytes. An array up to this is carried in the pickle itself, and owns its memory afterwards, as it did before."""
DEEP = 9000
"""The recursion limit as values are pickled, whatever the cell has made it: a pickler takes the stack of the process,
which is 8 MiB."""


class TooLarge(Exception):
    """More bytes than may be carried."""


class Written:
    """Takes what a pickler writes as it is, without joining it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0
        self.parts: list[Bytes] = []
        self.buffers: list[pickle.PickleBuffer] = []

    def count(self, size: int) -> None:
        self.size += size
        if self.size > self.most:
            raise TooLarge(self.size)

    def write(self, data: Bytes) -> None:
        self.count(len(data))
        self.parts.append(data)

    def take(self, buffer: pickle.PickleBuffer) -> None:
        self.count(buffer.raw().nbytes)
        self.buffers.append(buffer)

    def payload(self) -> list[Bytes]:
        size = sum(map(len, self.parts))
        views = [buffer.raw() for buffer in self.buffers]
        table = HEAD.pack(len(views), size) + b"".join(BUFFER.pack(one.nbytes, not one.readonly) for one in views)
        found: list[Bytes] = [table + padding(len(table)), *self.parts, padding(size)]
        for view in views:
            found += [view, padding(view.nbytes)]
        return found


def padding(size: int) -> bytes:
    return bytes(-size % ALIGN)


class Main:
    """Stands for the namespace of ``__main__`` in a pickle."""


MAIN = Main()


def main_namespace() -> dict[str, Any]:
    return sys.modules["__main__"].__dict__


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """``shared`` has the ids of the objects that are carried as such: views of these arrays stay views of them."""

    def __init__(self, written: Written, main: dict[str, Any], shared: dict[int, int]) -> None:
        super().__init__(written, protocol=5, buffer_callback=written.take)
        self.main = main
        self.shared = shared
        self.codes: set[str] = set()
        self.reducers: dict[type, carry_made.Reducer | None] = {}

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind is Main:
            return main_namespace, ()
        reduce = REDUCERS.get(kind)
        if reduce is not None:
            return reduce(value)
        if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
            return self.reduce_array(value)
        known = SINGLETONS.get(kind.__name__)
        if known is not None and getattr(sys.modules.get(known[0]), known[1], None) is value:
            return attribute_of, known
        if issubclass(kind, type):
            return carry_made.reduced_class(value, super().reducer_override(value))
        try:
            own = self.reducers[kind]
        except KeyError:
            own = self.reducers[kind] = carry_made.reducer_of(kind)
        return super().reducer_override(value) if own is None else own(value)

    def _dynamic_function_reduce(self, function: types.FunctionType) -> Any:
        """In place of cloudpickle's: by the new namespace, and with the cells of its closure themselves."""
        if function.__globals__ is not self.main:
            return super()._dynamic_function_reduce(function)
        state: dict[str, Any] = {name: getattr(function, name) for name in FUNCTION_STATE}
        state["__qualname__"] = own_text(function.__qualname__)
        for name in ("__annotations__", "__type_params__"):
            try:
                found = getattr(function, name, None)
            except Exception:  # annotations are evaluated when they are first asked for, from Python 3.14 on
                found = None
            if found:
                state[name] = found
        arguments = (function.__code__, MAIN, own_text(function.__name__), None, function.__closure__)
        attributes = {own_text(name): value for name, value in function.__dict__.items()}
        return types.FunctionType, arguments, (state, attributes), None, None, set_function

    def reduce_array(self, array: Any) -> Any:
        if array.dtype.hasobject or array.dtype.kind == "T":
            return NotImplemented
        root = root_of(array)
        if root is not array and id(root) in self.shared and (root.flags.c_contiguous or root.flags.f_contiguous):
            offset = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
            return view_of, (root, array.dtype, array.shape, array.strides, offset, array.flags.writeable)
        if not array.dtype.isnative:  # numpy would turn the bytes of all but a contiguous one
            return array.copy().__reduce_ex__(5)
        return array.__reduce__() if array.nbytes <= SMALL_ARRAY and array.flags.writeable else NotImplemented


def own_text(text: str) -> str:
    """The same text as an object of its own. Whether two texts are one object shows in a pickle, and would make it
    another one in the next cell, which has not changed anything."""
    return "".join(iter(text))


FUNCTION_STATE = ("__defaults__", "__kwdefaults__", "__doc__", "__module__")

SINGLETONS = {
    "Random": ("random", "_inst"),
    "RandomState": ("numpy.random.mtrand", "_rand"),
    "RcParams": ("matplotlib", "rcParams"),
    "_Environ": ("os", "environ"),
}
"""By their types' names: what functions of their modules belong to. It is carried by name, and its state beside it."""


def set_function(function: types.FunctionType, state: Any) -> None:
    attributes, own = state
    for name, value in attributes.items():
        setattr(function, name, value)
    function.__dict__.update(own)


def view_of(root: Any, dtype: Any, shape: Any, strides: Any, offset: int, writable: bool) -> Any:
    array = type(root)(shape, dtype, root, offset, strides)
    if not writable:
        array.flags.writeable = False
    return array


def attribute_of(module: str, name: str) -> Any:
    __import__(module)
    return getattr(sys.modules[module], name)


def set_cell(cell: types.CellType, state: Any) -> None:
    (cell.cell_contents,) = state


def reduce_cell(cell: types.CellType) -> Any:
    try:
        state = (cell.cell_contents,)
    except ValueError:  # it is empty
        return types.CellType, ()
    return types.CellType, (), state, None, None, set_cell


def reduce_cache(cache: Any) -> Any:
    """The function with an empty cache: what is in it can be had again."""
    return make_cache, (cache.__wrapped__, cache.cache_parameters()), cache.__dict__, None, None, set_dict


def make_cache(function: Any, parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


def set_dict(value: Any, state: dict[str, Any]) -> None:
    value.__dict__.update(state)


def reduce_cached_property(value: Any) -> Any:
    """Without its lock."""
    return make_cached_property, (value.func, value.attrname)


def make_cached_property(function: Any, name: str | None) -> Any:
    made: Any = functools.cached_property(function)
    made.attrname = name
    return made


def reduce_reference(reference: Any) -> Any:
    target = reference()
    return (weakref.ref, (target,)) if target is not None else (dead_reference, ())


def dead_reference() -> Any:
    return weakref.ref(type("gone", (), {})())


def reduce_module(module: types.ModuleType) -> Any:
    name = module.__name__
    if module is sys.modules.get("__main__"):
        return main_module, ()
    if sys.modules.get(name) is not module:
        return cloudpickle._module_reduce(module)
    return import_module, (own_text(name), newly_loaded(name))


def main_module() -> types.ModuleType:
    return sys.modules["__main__"]


loaded_before: frozenset[str] = frozenset()
"""The names of the modules that every box has loaded before its cell."""


def newly_loaded(package: str) -> list[str]:
    """The submodules that a cell has imported: an attribute of their package, once something has imported them."""
    names = [name for name in sys.modules if name.startswith(package + ".") and name not in loaded_before]
    return names[:1000]


def import_module(name: str, submodules: list[str]) -> types.ModuleType:
    __import__(name)
    for submodule in submodules:
        if submodule not in sys.modules:
            try:
                __import__(submodule)
            except Exception:
                pass
    return sys.modules[name]


def refuse(value: object) -> Any:
    raise pickle.PicklingError("cannot pickle '%s' object" % type(value).__name__)


def reduce_file(file: Any) -> Any:
    """What a ``with open(...) as file`` leaves is closed, and holds nothing of its box any more."""
    for name in ("stdout", "stderr", "stdin"):
        if getattr(sys, name) is file:
            return attribute_of, ("sys", name)
    if file.closed and type(file.name) is str and type(getattr(file, "mode", None)) is str:
        return closed_file, (file.name, file.mode, getattr(file, "encoding", None))
    return refuse(file)


def closed_file(name: str, mode: str, encoding: str | None) -> Any:
    """One that is like it, and never was a file of that name here."""

    def opener(_name: str, _flags: int) -> int:
        return os.open(os.devnull, os.O_RDWR)

    with open(name, mode.replace("x", "w"), encoding=encoding, opener=opener) as file:
        return file


def reduce_new_type(value: Any) -> Any:
    return make_new_type, (value.__name__, value.__supertype__, value.__module__)


def make_new_type(name: str, supertype: Any, module: str) -> Any:
    made = typing.NewType(name, supertype)  # type: ignore[misc]
    made.__module__ = module
    return made


def reduce_view(name: str, view: Any) -> Any:
    """Of the dictionary itself: it shows what is put into that later."""
    return getattr(dict, name), tuple(one for one in gc.get_referents(view) if isinstance(one, dict))


def reduce_code(code: types.CodeType) -> Any:
    """Of this cell, under a name by which later cells know it."""
    make, arguments = cloudpickle._code_reduce(code)
    place = carry_lines.place_in(code)
    return make, tuple(place if one == "<dynamic-code>" else one for one in arguments)


REDUCERS: dict[type, Any] = {
    types.CellType: reduce_cell,
    types.CodeType: reduce_code,
    types.ModuleType: reduce_module,
    functools._lru_cache_wrapper: reduce_cache,
    functools.cached_property: reduce_cached_property,
    weakref.ref: reduce_reference,
    weakref.WeakKeyDictionary: lambda value: (weakref.WeakKeyDictionary, (dict(value),)),
    weakref.WeakValueDictionary: lambda value: (weakref.WeakValueDictionary, (dict(value),)),
    typing.NewType: reduce_new_type,
    **dict.fromkeys((io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom), reduce_file),
    memoryview: refuse,
    **{type(getattr(dict, name)({})): functools.partial(reduce_view, name) for name in ("keys", "values", "items")},
}


def dump(value: object, most: int, main: dict[str, Any], shared: dict[int, int]) -> Written:
    """Raises whatever the value's own methods raise, TooLarge, and the errors of pickle."""
    before = sys.getrecursionlimit()
    try:
        for limit in (min(before, DEEP), DEEP):
            sys.setrecursionlimit(limit)
            try:
                written = Written(most)
                Pickler(written, main, shared).dump(value)
                return written
            except (RecursionError, pickle.PicklingError) as error:
                deep = isinstance(error, RecursionError) or isinstance(error.__cause__, RecursionError)
                if not deep or limit == DEEP:
                    raise
        raise AssertionError
    finally:
        sys.setrecursionlimit(before)


def load(payload: bytearray) -> Any:
    """Raises whatever the program makes of it."""
    view = memoryview(payload)
    count, size = HEAD.unpack_from(view)
    if HEAD.size + count * BUFFER.size > len(view):
        raise ValueError("what was carried is no payload")
    table = [BUFFER.unpack_from(view, HEAD.size + BUFFER.size * number) for number in range(count)]
    place = HEAD.size + BUFFER.size * count
    place += -place % ALIGN
    text = view[place : place + size]
    place += size + -size % ALIGN
    buffers = []
    for length, writable in table:
        buffer = view[place : place + length]
        buffers.append(buffer if writable else buffer.toreadonly())
        place += length + -length % ALIGN
    return pickle.loads(text, buffers=buffers)  # noqa: S301 - in the box, as the program that made it
