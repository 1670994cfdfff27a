"""Which names of a namespace belong together: those whose values share an object that has an identity.

Each such set becomes one group, pickled as one, so that ``a = b = []`` stays one list; names that share nothing are
groups of their own, so that a value that cannot be carried takes no other with it. A class belongs to the group of its
instances: what changes it is then seen by all of them. Nothing of the program runs here but the getters of a metaclass:
references are read as the garbage collector reads them.
"""

from __future__ import annotations

import functools
import gc
import re
import sys
import types
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

MOST_OBJECTS = 300_000
"""Objects that are looked at in all. What is left then counts as one group, whatever it shares."""
ANY = "*"
"""Among the names that a group may need: any."""
MOST_NEEDS = 500

ATOMS: set[type] = {
    *(int, float, complex, bool, str, bytes, range, type(None), type(...), type(NotImplemented)),
    *(types.CodeType, types.ModuleType, types.FrameType, types.TracebackType, types.GetSetDescriptorType),
    *(types.MemberDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType),
}
"""Of which nobody can tell whether there are one or two, or which are never carried as part of something."""
EMPTY_ONCE = {tuple, frozenset}
"""Of which there is one empty one."""
ATOMIC_MODULES = {"datetime", "zoneinfo", "decimal", "fractions", "uuid", "re", "pathlib", "_decimal", "ipaddress"}
LEAVES = {"DataFrame", "Series"}
"""Of pandas: a thing of its own each. They share their insides as they like, and nobody can tell, but for objects that
stand in their cells."""
WORDS = (
    "globals locals vars dir eval exec execfile user_ns get_ipython __main__ __import__ import_module __globals__",
    "__builtins__ builtins importlib modules runpy inspect currentframe _getframe _current_frames f_back f_globals",
    "f_locals gc ctypes pdb breakpoint get_type_hints doctest unittest pytest ipytest dill joblib shelve query",
    "evaluate numexpr duckdb sqldf patsy statsmodels cProfile profile timeit Trace",
)
EVERYTHING = set(" ".join(WORDS).split())
"""Names by which code reaches names that it does not have in it: the words of the host's ``carry.reach``."""
PICKLED = "pickle"
"""As a part of a name, too."""
WORD = r"[^\W\d]\w*"

OPTIMIZED = 0x1
"""The flag of code whose own names are no namespace: all but the bodies of classes and modules."""


class Sharing:
    """``by_reference`` says of a class or a function whether it is found again by its name. Afterwards ``owners`` has
    the id of each object that has an identity."""

    def __init__(self, main: dict[str, Any], by_reference: Callable[[Any], bool]) -> None:
        self.by_reference = by_reference
        self.owners: dict[int, int] = {id(main): -1}
        self.parents: list[int] = []
        self.needs: list[set[str]] = []
        self.atomic: dict[type, bool] = dict.fromkeys(ATOMS, True)
        self.referred: dict[int, bool] = {}
        self.views: list[Any] = []
        self.exhausted = False

    def groups(self, values: list[Any]) -> list[tuple[list[int], set[str]]]:
        """The places in ``values`` that belong together, in order of their first, and the names that each may need."""
        self.parents = list(range(len(values)))
        self.needs = [set() for _ in values]
        for number, value in enumerate(values):
            self.walk(number, value)
            if self.exhausted:
                rest = [place for place, one in enumerate(values) if not self.is_atomic(type(one))]
                for place in rest:
                    self.join(rest[0], place)
                self.needs[number].add(ANY)
                break
        self.keep_roots()
        for view in self.views:
            owner = self.owners.get(id(root_of(view)), -1)
            if owner >= 0:
                self.join(owner, self.owners[id(view)])
        found: dict[int, tuple[list[int], set[str]]] = {}
        for number in range(len(values)):
            places, needs = found.setdefault(self.root(number), ([], set()))
            places.append(number)
            needs |= self.needs[number]
        return [
            (places, {ANY} if ANY in needs or len(needs) > MOST_NEEDS else needs) for places, needs in found.values()
        ]

    def keep_roots(self) -> None:
        """Arrays that have no name, and share their memory by several that have one, as in ``a = arange(6).reshape(2,
        3); b = a.T``. Not one that is much larger than what is seen of it."""
        seen: dict[int, list[Any]] = {}
        for view in self.views:
            seen.setdefault(id(root_of(view)), []).append(view)
        for root, views in seen.items():
            seen_bytes = sum(view.nbytes for view in views)
            if len(views) > 1 and root not in self.owners and root_of(views[0]).nbytes <= 2 * seen_bytes:
                self.owners[root] = self.owners[id(views[0])]

    def root(self, number: int) -> int:
        while self.parents[number] != number:
            self.parents[number] = self.parents[self.parents[number]]
            number = self.parents[number]
        return number

    def join(self, one: int, other: int) -> None:
        one, other = self.root(one), self.root(other)
        self.parents[max(one, other)] = min(one, other)

    def walk(self, number: int, value: object) -> None:
        waiting = [value]
        while waiting:
            item = waiting.pop()
            kind = type(item)
            if self.is_atomic(kind) or (kind in EMPTY_ONCE and not item):
                continue
            owner = self.owners.get(id(item))
            if owner is not None:
                if owner >= 0:
                    self.join(number, owner)
                continue
            if self.is_referred_to(item, kind):
                if isinstance(item, types.BuiltinFunctionType) and item.__name__ in EVERYTHING:  # eval, under any name
                    self.needs[number].add(ANY)
                continue
            if len(self.owners) > MOST_OBJECTS:
                self.exhausted = True
                return
            self.owners[id(item)] = number
            waiting += self.parts(number, item, kind)

    def is_atomic(self, kind: type) -> bool:
        known = self.atomic.get(kind)
        if known is None:
            known = self.atomic[kind] = atomic(kind)
        return known

    def is_referred_to(self, item: Any, kind: type) -> bool:
        """It is found again under its name in a module that can be imported."""
        if kind is types.BuiltinFunctionType:
            return item.__self__ is None or isinstance(item.__self__, (types.ModuleType, type))
        if kind is not types.FunctionType and not issubclass(kind, type):
            return False
        known = self.referred.get(id(item))
        if known is None:
            try:
                known = self.by_reference(item)
            except Exception:
                known = False
            self.referred[id(item)] = known
        return known

    def parts(self, number: int, item: Any, kind: type) -> Iterable[Any]:
        if kind is types.FunctionType:
            self.needs[number] |= needs_of(item.__code__)
            annotations = list(annotations_of(item).values())
            self.needs[number].update(*(re.findall(WORD, one) for one in annotations if type(one) is str))
            return [item.__defaults__, item.__kwdefaults__, item.__dict__, *(item.__closure__ or ()), *annotations]
        if kind is weakref.ref:
            return [item()]
        if kind is functools._lru_cache_wrapper:  # what is in the cache stays here
            return [item.__dict__]
        module = kind.__module__
        if module == "numpy" and kind.__name__ == "ndarray":
            if item.base is not None:
                self.views.append(item)
            if item.dtype.hasobject and item.size <= MOST_OBJECTS:
                return list(item.flat)
            return []
        if kind.__name__ in LEAVES and isinstance(module, str) and module.partition(".")[0] == "pandas":
            return objects_in(item)
        is_atomic = self.atomic.get
        return [part for part in gc.get_referents(item) if not is_atomic(type(part))]


def annotations_of(function: Any) -> dict[str, Any]:
    try:
        return function.__annotations__ or {}
    except Exception:  # they are evaluated when they are first asked for, from Python 3.14 on
        return {}


def objects_in(table: Any) -> list[Any]:
    """What stands in the cells of a table or a column of pandas, where that may be any object."""
    try:
        arrays = [one for one in table._mgr.arrays if type(one).__name__ == "ndarray" and one.dtype.hasobject]
    except Exception:
        return []
    return [part for one in arrays if one.size <= MOST_OBJECTS for part in one.flat if type(part) not in ATOMS]


def root_of(array: Any) -> Any:
    """The array that has the memory."""
    while type(array.base) is type(array):
        array = array.base
    return array


def atomic(kind: type) -> bool:
    try:
        module = kind.__module__.partition(".")[0]
    except Exception:
        return False
    if module in ATOMIC_MODULES:
        return True
    if module == "pandas":
        return any(base.__name__ == "Index" for base in kind.__mro__)
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return False
    scalars = tuple(one for one in (getattr(numpy, name, None) for name in ("generic", "dtype", "ufunc")) if one)
    return issubclass(kind, scalars)


def needs_of(code: types.CodeType) -> set[str]:
    """The global names that the code, and the code in it, may read or write."""
    found: set[str] = set()
    waiting = [code]
    while waiting:
        code = waiting.pop()
        waiting += [one for one in code.co_consts if type(one) is types.CodeType]
        if code.co_names:
            if not EVERYTHING.isdisjoint(code.co_names) or any(PICKLED in name for name in code.co_names):
                return {ANY}
            found.update(globals_of(code) if code.co_flags & OPTIMIZED else code.co_names)
    return found


def globals_of(code: types.CodeType) -> list[str]:
    """Of code whose own names are no namespace: those that its instructions for global names give."""
    import opcode

    load, store, delete = (opcode.opmap[name] for name in ("LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL"))
    extended = opcode.EXTENDED_ARG
    text, names, found, high = code.co_code, code.co_names, [], 0
    for place in range(0, len(text), 2):
        instruction = text[place]
        if instruction == extended:
            high = (high | text[place + 1]) << 8
            continue
        if instruction in (load, store, delete):
            index = high | text[place + 1]
            found.append(names[index >> 1 if instruction == load else index])
        high = 0
    return found
