"""What was shown of the cell that runs, kept until its receipt is: then there is a signed statement on all of it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from pybox_kernel.carry.chain import link_text
from pybox_kernel.notebook.cell_error import PyBoxCellError
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.summary import line_of
from pybox_kernel.signing.keys import SigningKeys
from pybox_kernel.signing.shown_outputs import data_entries, entries_of
from pybox_kernel.signing.statement import (
    MOST_OUTPUTS,
    NO_RUN,
    Claim,
    Panel,
    Ran,
    Statement,
    digest_of_look,
    digest_of_panel,
    digest_of_source,
    short,
    whole,
)

__all__ = ["CellRecord", "PanelShown"]

NONE: Final[Mapping[str, object]] = {}


class PanelShown(NamedTuple):
    """A widget that shows the receipt as well."""

    model_id: str
    value: str


class CellRecord:
    """``raises``: as in IPython, where a cell's value is a display, and its error an exception, which is shown below
    the receipt; above it, its lines stand with the output."""

    def __init__(self, *, raises: bool = False, keys: SigningKeys | None = None) -> None:
        self.raises = raises
        self.keys = keys or SigningKeys()
        self._session = secrets.token_hex(8)
        self._serial = 0
        self._cell: tuple[int, str | None] = (0, None)
        self._shown: list[dict[str, Any]] = []
        self._raised: Mapping[str, Any] | None = None

    def begin(self, number: int, source: str | None) -> None:
        """A cell with this number, and this text on its page: None where it is not PyBox's alone, so that what stands
        under it is not known here. Nothing for the one that has begun already."""
        if self._cell != (number, source):
            self._cell = number, source
            self._serial += 1
            self._shown.clear()
            self._raised = None

    def add(self, message: str, content: Mapping[str, Any]) -> None:
        """What Jupyter's message of this type showed under the cell."""
        if self._raised is not None:
            self._shown.append({"output_type": "stream", "name": "stderr", "text": written(self._raised)})
            self._raised = None
        if self.raises and message == "error":
            self._raised = content
            return
        kind = "display_data" if self.raises and message == "execute_result" else message
        self._shown.append({"output_type": kind, **content})

    def statement(
        self,
        data: Mapping[str, Any],
        receipt: Receipt | None = None,
        panel: PanelShown | None = None,
        refused: str | None = None,
    ) -> Mapping[str, object]:
        """The metadata of the display with this ``data``, which is the last of the cell: of its ``receipt``, of an
        answer to a word to PyBox, or of why the cell was ``refused``. With ``panel`` the widget may be in it too.
        Nothing is added for a cell that is not PyBox's alone. Where there is no key, see ``keys.problem``, it is not
        signed."""
        number, source = self._cell
        error = None
        if self._raised is not None:
            lines = self._raised["traceback"] if refused is not None else ()  # with nothing between it and this
            raised = PyBoxCellError.of(self._raised["ename"], self._raised["evalue"], lines)
            [error] = entries_of([raised.as_output()])
            if refused is not None:
                self._raised = None
            else:
                self.add("stream", {"name": "stderr", "text": ""})
        outputs, shown = entries_of(self._shown), data_entries(data)
        if source is None or len(outputs) > MOST_OUTPUTS:
            return NONE
        made = Statement(
            session=self._session,
            serial=self._serial,
            cell=number,
            made_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            whole=whole(source, outputs, shown, error),
            source=short(digest_of_source(source)),
            look=short(digest_of_look(shown)),
            outputs=tuple(map(short, outputs)),
            panel=Panel(model=panel.model_id, value=digest_of_panel(panel.value)) if panel else None,
            error=short(error) if error is not None else None,
            ran=ran(number, receipt) if receipt is not None else refusal(refused) if refused is not None else None,
            carried=link_text(receipt) if receipt is not None else None,
        )
        return Claim.made(made, self.keys).metadata()


def written(raised: Mapping[str, Any]) -> str:
    return "\n".join([*raised["traceback"], ""])


def refusal(why: str) -> Ran:
    return Ran(id=NO_RUN, tone="bad", verdict="■ Not run: refused", time="-", memory="-", notes=why[:1000])


def ran(number: int, receipt: Receipt) -> Ran:
    line = line_of(number, receipt)
    return Ran(
        id=receipt.run.id,
        tone=line.tone,
        verdict=line.verdict,
        time=line.time,
        memory=line.memory,
        notes=line.notes[:1000],
    )
