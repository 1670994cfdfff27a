"""The programs that carry values, here: with the one file of cloudpickle under the name that it has in a box."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import cloudpickle

NAME = "pybox_kernel.inside.cloudpickle"


def as_in_a_box() -> None:
    if NAME in sys.modules:
        return
    import pybox_kernel.inside

    spec = importlib.util.spec_from_file_location(NAME, cloudpickle.cloudpickle.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = pybox_kernel.inside.cloudpickle = module  # type: ignore[attr-defined]
    spec.loader.exec_module(module)


as_in_a_box()

from pybox_kernel.inside import carry_folder, carry_lines, carry_pickle, carry_quiet, carry_sharing  # noqa: E402

__all__ = ["Main", "carry_folder", "carry_lines", "carry_pickle", "carry_quiet", "carry_sharing"]


class Main:
    """A ``__main__`` of its own, as a cell has one."""

    def __init__(self, source: str = "") -> None:
        self.module = ModuleType("__main__")
        self.names: dict[str, Any] = self.module.__dict__
        self.run(source)

    def run(self, source: str) -> None:
        sys.modules["__main__"], before = self.module, sys.modules["__main__"]
        try:
            exec(compile(source, "/tmp/cell.py", "exec", dont_inherit=True), self.names)
        finally:
            sys.modules["__main__"] = before

    def own(self) -> dict[str, Any]:
        return {name: value for name, value in self.names.items() if not name.startswith("__")}

    def groups(self) -> list[tuple[list[str], set[str]]]:
        own = self.own()
        names = list(own)
        found = sharing(self).groups(list(own.values()))
        return [([names[place] for place in places], needs) for places, needs in found]

    def carried(self) -> Main:
        """The ``__main__`` of the next cell, which got all of this one as one group."""
        return self.of(self.payload())

    def payload(self, limit: int = 1 << 25) -> bytearray:
        sharing_ = sharing(self)
        own = self.own()
        sharing_.groups(list(own.values()))
        written = carry_pickle.dump(own, limit, self.names, sharing_.owners)
        return bytearray(b"".join(bytes(part) for part in written.payload()))

    @classmethod
    def of(cls, payload: bytearray) -> Main:
        later = cls()
        sys.modules["__main__"], before = later.module, sys.modules["__main__"]
        try:
            later.names.update(carry_pickle.load(payload))
        finally:
            sys.modules["__main__"] = before
        return later


def sharing(main: Main) -> carry_sharing.Sharing:
    return carry_sharing.Sharing(main.names, carry_pickle.cloudpickle._should_pickle_by_reference)
