"""What notebooks rely on without a name for it: states of modules, as far as they differ from those of a fresh box.

A state is read only of a module that is loaded. Each is a value that is pickled as a group of its own, under its kind.
"""

from __future__ import annotations

import os
import sys
import time
import warnings

from pybox_kernel.inside.carry_pickle import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def read_random(module: Any) -> Any:
    return module.getstate()


def set_random(module: Any, state: Any) -> None:
    module.setstate(state)


def read_numpy_random(module: Any) -> Any:
    state = module.get_state(legacy=False)
    inner = state["state"]
    return {**state, "state": {**inner, "key": inner["key"].tobytes()}} if "key" in inner else state


def set_numpy_random(module: Any, state: Any) -> None:
    inner = state["state"]
    if "key" in inner:
        import numpy

        state = {**state, "state": {**inner, "key": numpy.frombuffer(inner["key"], "uint32")}}
    module.set_state(state)


def read_numpy(module: Any) -> Any:
    return {"print": module.get_printoptions(), "errors": module.geterr()}


def set_numpy(module: Any, state: Any) -> None:
    module.set_printoptions(**state["print"])
    module.seterr(**state["errors"])


def read_matplotlib(module: Any) -> Any:
    """Those that differ from a fresh box's. The backend is the box's."""
    fresh = fresh_values.get("matplotlib") or dict(dict.items(module.rcParamsDefault))
    return {
        name: value
        for name, value in dict.items(module.rcParams)
        if not name.startswith("backend") and (name not in fresh or fresh[name] != value)
    }


def set_matplotlib(module: Any, state: Any) -> None:
    dict.update(module.rcParams, state)


def pandas_options(module: Any) -> dict[str, Any]:
    """Flat: an option's whole name, and its value."""
    waiting, found = [("", module._global_config)], {}
    while waiting:
        prefix, part = waiting.pop()
        for name, value in part.items():
            if type(value) is dict:
                waiting.append((prefix + name + ".", value))
            else:
                found[prefix + name] = value
    return found


def read_pandas(module: Any) -> Any:
    registered = module._registered_options
    return {
        name: value
        for name, value in pandas_options(module).items()
        if name in registered and value != registered[name].defval
    }


def set_pandas(module: Any, state: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in state.items():
            module.set_option(name, value)


def read_warnings(module: Any) -> Any:
    return list(module.filters)


def set_warnings(module: Any, state: Any) -> None:
    module.filters[:] = []
    module.simplefilter("default")  # tells those who remember what the filters said that they have changed
    module.filters[:] = state


def read_environment(module: Any) -> Any:
    """What is set otherwise, and what is not set any more."""
    fresh = fresh_values.get("environ", {})
    changed = {name: value for name, value in module.environ.items() if fresh.get(name) != value}
    gone = [name for name in fresh if name not in module.environ]
    zone = time.tzname != fresh_values.get("zone", time.tzname)
    return {"set": changed, "unset": gone, "zone": zone} if changed or gone or zone else {}


def set_environment(module: Any, state: Any) -> None:
    for name in state.get("unset", ()):
        module.environ.pop(name, None)
    module.environ.update(state.get("set", {}))
    if state.get("zone"):
        time.tzset()


def read_decimal(module: Any) -> Any:
    context, fresh = module.getcontext().copy(), module.DefaultContext.copy()
    for one in (context, fresh):
        one.clear_flags()
    return context.__reduce__()[1] if context.__reduce__() != fresh.__reduce__() else None


def set_decimal(module: Any, state: Any) -> None:
    module.setcontext(module.Context(*state))


def read_python(module: Any) -> Any:
    digits = getattr(module, "get_int_max_str_digits", lambda: 0)()
    return {"path": list(module.path), "recursion": module.getrecursionlimit(), "digits": digits}


def set_python(module: Any, state: Any) -> None:
    module.path[:] = state["path"]
    module.setrecursionlimit(state["recursion"])
    if hasattr(module, "set_int_max_str_digits"):
        module.set_int_max_str_digits(state["digits"])


def read_logging(module: Any) -> Any:
    """By a logger's name, what is not as it was made: level, whether it propagates and is off, handlers."""
    loggers = {"": module.root, **module.root.manager.loggerDict}
    found = {}
    for name, logger in loggers.items():
        if not isinstance(logger, module.Logger):
            continue
        handlers = [told for handler in logger.handlers if (told := handler_told(module, handler)) is not None]
        state = (logger.level, logger.propagate, logger.disabled, handlers)
        if state != (module.NOTSET if name else module.WARNING, True, False, []):
            found[name] = state
    off = module.root.manager.disable
    return {"loggers": found, "off": off} if found or off else {}


def handler_told(module: Any, handler: Any) -> Any:
    """Where it writes, its level, its format; None for one that is not made of these alone."""
    kind, form = type(handler), handler.formatter
    if handler.filters or type(form) not in (type(None), module.Formatter):
        return None
    if kind is module.FileHandler:
        place: Any = (handler.baseFilename, handler.encoding)
    else:
        place = next((name for name in ("stdout", "stderr") if getattr(handler, "stream", 0) is getattr(sys, name)), "")
    if kind not in (module.StreamHandler, module.FileHandler) or not place:
        return None
    if form is None:
        return place, handler.level, None
    style = next((sign for sign, known in module._STYLES.items() if known[0] is type(form._style)), "%")
    return place, handler.level, (form._fmt, form.datefmt, style)


def set_logging(module: Any, state: Any) -> None:
    module.disable(state["off"])
    for name, (level, propagate, disabled, handlers) in state["loggers"].items():
        logger = module.getLogger(name) if name else module.root
        logger.setLevel(level)
        logger.propagate, logger.disabled = propagate, disabled
        there = [handler_told(module, handler) for handler in logger.handlers]
        for told in handlers:
            if told not in there:
                logger.addHandler(handler_of(module, *told))


def handler_of(module: Any, place: Any, level: int, form: Any) -> Any:
    if isinstance(place, str):
        handler = module.StreamHandler(getattr(sys, place))
    else:
        handler = module.FileHandler(place[0], "a", place[1], delay=True)
    handler.setLevel(level)
    if form is not None:
        handler.setFormatter(module.Formatter(*form))
    return handler


KINDS: dict[str, tuple[str, str, Callable[[Any], Any], Callable[[Any, Any], None]]] = {
    "environ": ("os", "os", read_environment, set_environment),
    "python": ("sys", "sys", read_python, set_python),
    "warnings": ("warnings", "warnings", read_warnings, set_warnings),
    "decimal": ("decimal", "decimal", read_decimal, set_decimal),
    "logging": ("logging", "logging", read_logging, set_logging),
    "random": ("random", "random", read_random, set_random),
    "numpy": ("numpy", "numpy", read_numpy, set_numpy),
    "numpy.random": ("numpy.random.mtrand", "numpy.random.mtrand", read_numpy_random, set_numpy_random),
    "matplotlib": ("matplotlib", "matplotlib", read_matplotlib, set_matplotlib),
    "pandas": ("pandas", "pandas._config.config", read_pandas, set_pandas),
}
"""The kind, the module with which it is there, the module that has it, how it is read, and how set."""

fresh_values: dict[str, Any] = {}
"""What differences are counted from."""
fresh_states: dict[str, Any] = {}
"""The states before the cell, of the modules that every box has loaded by then."""
to_come: dict[str, Any] = {}
"""Pickles of states whose modules are not loaded yet, by kind."""


def remember_fresh() -> None:
    """To be called when the box is as every cell finds it."""
    fresh_values["environ"] = dict(os.environ)
    fresh_values["zone"] = time.tzname
    if "matplotlib" in sys.modules:
        fresh_values["matplotlib"] = dict(dict.items(sys.modules["matplotlib"].rcParams))
    fresh_states.update(states())


def states() -> dict[str, Any]:
    """Of each kind that is there: its state now. A kind that cannot be read is left out."""
    found = {}
    for kind, (name, owner, read, _) in KINDS.items():
        if name in sys.modules and owner in sys.modules:
            try:
                found[kind] = read(sys.modules[owner])
            except Exception:
                pass
    return found


def changed() -> dict[str, Any]:
    """The states that are not as in a fresh box."""
    return {kind: state for kind, state in states().items() if state and not same(state, fresh_states.get(kind))}


def same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:
        return False


def restore(kind: str, payload: Any) -> None:
    """Now, or as soon as its module is loaded: a state alone is no reason to load it. Raises whatever setting it
    raises."""
    name, owner, _, setter = KINDS[kind]
    if name in sys.modules:
        setter(sys.modules[owner], load(payload))
        return
    if not to_come:
        sys.meta_path.insert(0, Waiting)
    to_come[kind] = payload


class Waiting:
    """Looks out for the modules whose states are still to come."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        kinds = [kind for kind in to_come if KINDS[kind][0] == name]
        if not kinds:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not Waiting else None
            if spec is not None and hasattr(spec.loader, "exec_module"):
                spec.loader = Loader(spec.loader, kinds)  # type: ignore[assignment]
                return spec
        return None


class Loader:
    """A module's own loader, and then its state."""

    def __init__(self, own: Any, kinds: list[str]) -> None:
        self.own = own
        self.kinds = kinds

    def create_module(self, spec: Any) -> Any:
        return self.own.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self.own
        self.own.exec_module(module)
        for kind in self.kinds:
            payload = to_come.pop(kind, None)
            if payload is not None:
                try:
                    restore(kind, payload)
                except Exception:
                    pass
