"""A stand-in for IPython, which is not in a box: made for cells that were written for a notebook.

``import IPython``, ``from IPython.display import ...`` and ``get_ipython()`` find here what cells commonly use.
Everything that is shown goes through PyBox's ``display``: pictures and tables are shown, simple HTML as the host allows
it, and what a page would run or fetch is named on the receipt and held back. There is no IPython behind it.
"""

from __future__ import annotations

import sys

from pybox_kernel.inside import shown
from pybox_kernel.inside.cell import CELL
from pybox_kernel.inside.cell_magics import UsageError, is_silent
from pybox_kernel.inside.display_objects import NAMES
from pybox_kernel.inside.magic_advice import advice_on_command, advice_on_magic
from pybox_kernel.inside.shown import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

VERSION = "9.0.0+pybox.stand.in"
"""The IPython whose names it has, and that it is none."""
FORMATS = ("set_matplotlib_formats", "set_matplotlib_close")


class Events:
    """Takes what libraries register, and calls none of it."""

    def register(self, event: str, function: object) -> None:
        pass

    def unregister(self, event: str, function: object) -> None:
        pass


class BoxShell:
    """What ``get_ipython()`` gives: the magics that work in a box, and no shell."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.events = Events()
        self.kernel = None
        self.execution_count = 1

    @property
    def user_ns(self) -> dict[str, Any]:
        return sys.modules["__main__"].__dict__

    def run_line_magic(self, magic_name: str, line: str = "", _stack_depth: int = 1) -> Any:
        frame = sys._getframe(1)
        name = magic_name.lstrip("%")
        if name in ("time", "timeit"):
            from pybox_kernel.inside import timing

            lineno = frame.f_lineno if frame.f_code.co_filename == CELL else 1
            if name == "time":
                return timing.time_line(line, frame.f_globals, frame.f_locals, lineno)
            names = frame.f_globals
            if frame.f_locals is not names:
                names = {**names, **frame.f_locals}
            return timing.timeit(line, None, names, lineno)
        if name == "pinfo":
            from pybox_kernel.inside.help_text import help_on

            shown.send(shown.Shown({"text/plain": help_on(line, {**frame.f_globals, **frame.f_locals})}))
            return None
        if is_silent(name, line.strip()):
            return None
        raise UsageError(advice_on_magic(name, line), "%" + (name + " " + line).strip())

    def run_cell_magic(self, magic_name: str, line: str, _cell: str) -> Any:
        raise UsageError("Write %% magics in the first line of a cell.", "%%" + (magic_name + " " + line).strip())

    def magic(self, arg_s: str) -> Any:
        name, _, line = arg_s.partition(" ")
        return self.run_line_magic(name, line)

    def system(self, command: str) -> Any:
        raise UsageError(advice_on_command(command), "!" + command)

    getoutput = system_piped = getoutput_error = system

    def enable_gui(self, gui: object = None) -> None:
        pass

    def ev(self, expression: str) -> Any:
        return eval(expression, self.user_ns)  # noqa: S307 - the program's own, in its own process

    def ex(self, statement: str) -> None:
        exec(statement, self.user_ns)

    def push(self, variables: dict[str, Any], _interactive: bool = True) -> None:
        self.user_ns.update(variables)

    def __repr__(self) -> str:
        return "<PyBox's stand-in for IPython's shell>"


shell = BoxShell()


def get_ipython() -> BoxShell:
    return shell


MODULES: dict[str, dict[str, Any]] = {
    "IPython": {
        "__version__": VERSION,
        "version_info": (9, 0, 0, "pybox"),
        "get_ipython": get_ipython,
        "display": display,
    },
    "IPython.display": NAMES,
    "IPython.core": {},
    "IPython.core.display": NAMES,
    "IPython.core.display_functions": NAMES,
    "IPython.core.getipython": {"get_ipython": get_ipython},
    "IPython.core.error": {"UsageError": UsageError},
    "matplotlib_inline": {},
    "matplotlib_inline.backend_inline": {name: NAMES[name] for name in FORMATS},
}


class Loader:
    """Fills a module of the stand-in."""

    @staticmethod
    def create_module(_spec: object) -> None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        module.__doc__ = __doc__
        module.__dict__.update(MODULES[module.__name__])


def spec_of(name: str) -> Any:
    from importlib.machinery import ModuleSpec

    if name not in MODULES:
        return None
    is_package = any(other.startswith(name + ".") for other in MODULES)
    return ModuleSpec(name, Loader, is_package=is_package)  # type: ignore[arg-type]
