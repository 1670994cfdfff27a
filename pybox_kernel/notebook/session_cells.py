"""The cells of a session, as text: what they were, which names they defined, and what a page asks about them.

Nothing of a cell is run or imported for it, and nothing is written to disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pybox_kernel.notebook.history import History
from pybox_kernel.notebook.magic_completion import offered_in_a_box
from pybox_kernel.safe_display.text import safe_text
from pybox_kernel.source.cell_names import defined_names
from pybox_kernel.source.completion import Completer, Completions
from pybox_kernel.source.inspection import inspect

__all__ = ["MOST_NAMES", "SessionCells"]

MOST_NAMES: Final = 20_000
LONGEST_NAME: Final = 100


class SessionCells:
    def __init__(self) -> None:
        self._completer = Completer()
        self._history = History()
        self._defined: dict[str, int] = {}

    @property
    def defined(self) -> Mapping[str, int]:
        """The names that the cells so far defined at their top level, each with the number of the last that did."""
        return MappingProxyType(self._defined)

    def add(self, number: int, source: str) -> None:
        """A cell that was run, however it ended."""
        self._history.add(number, source)
        self._completer.add_cell(source)
        for name in defined_names(source):
            if len(name) > LONGEST_NAME:
                continue
            self._defined.pop(name, None)
            self._defined[name] = number
        while len(self._defined) > MOST_NAMES:
            del self._defined[next(iter(self._defined))]

    # Jupyter's questions, each answered with the content of its reply

    def complete(self, code: str, cursor: int) -> dict[str, object]:
        found = self._to_pybox(code, cursor) or self._completer.complete(code, cursor)
        return {
            "status": "ok",
            "matches": list(found.matches),
            "cursor_start": found.start,
            "cursor_end": found.end,
            "metadata": found.metadata(),
        }

    def _to_pybox(self, code: str, cursor: int) -> Completions | None:
        end = max(0, min(cursor, len(code)))
        found = offered_in_a_box(code, end)
        return None if found is None else Completions(tuple(found[0]), found[1], end, ("magic",) * len(found[0]))

    def inspect(self, code: str, cursor: int, detail_level: int) -> dict[str, object]:
        text = inspect(code, cursor, detail_level, self._completer)
        data = {"text/plain": str(safe_text(text))} if text is not None else {}
        return {"status": "ok", "found": text is not None, "data": data, "metadata": {}}

    def history(self, output: bool, **asked: Any) -> dict[str, object]:
        """Outputs are not kept: where they are asked for as well, there is none."""
        found = self._history.answer(output=output, **asked)
        with_output = [(session, line, (source, None)) for session, line, source in found]
        return {"status": "ok", "history": with_output if output else found}
