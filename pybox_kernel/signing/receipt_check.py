"""Whether the receipts in a notebook's file were made here, and all that stands with them is as it was then.

The file is taken for hostile: of bounded size, read strictly, and nothing of it is followed. All texts that come of it
are made safe to show by whoever shows them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, NoReturn

from pybox_kernel.errors import SourceError
from pybox_kernel.signing.keys import KeyRing
from pybox_kernel.signing.panel_state import is_as_it_was
from pybox_kernel.signing.shown_outputs import KINDS, data_entries, entries_of, layout_of, shows_nothing, text_of
from pybox_kernel.signing.statement import (
    Claim,
    Statement,
    digest_of_look,
    digest_of_source,
    short,
    signed_bytes,
    whole,
)

__all__ = ["MOST_BYTES", "MOST_CELLS", "CellCheck", "Verdict", "check_cells", "read_notebook", "without_doubles"]

MOST_BYTES: Final = 64 << 20
MOST_PARTS: Final = 4_000_000
"""Signs that begin or part something in JSON, wherever they stand: each may take 70 bytes of memory and more."""
MOST_CELLS: Final = 10_000
MOST_NUMBER: Final = 1 << 31
MOST_CLAIMS: Final = 4
"""Under one cell, of which the signatures are looked at, from the last one up."""
MOST_TOLD: Final = 5
VIEW: Final = "application/vnd.jupyter.widget-view+json"
LOOK: Final = ("class='pybox pybox-", 'class="pybox pybox-')
"""Of a receipt's HTML. A forged one may look like it without."""

Verdict = Literal["unchanged", "altered", "not made here", "no receipt", "nothing shown"]
"""Of one cell.

``unchanged``      signed with a key of the ring, and nothing was changed since
``altered``        signed with such a key, and then something was changed, or it was put under another cell
``not made here``  there is what looks like a receipt, and no signature that fits it
``no receipt``     it was run, or shows something, and nothing vouches for that
``nothing shown``  it was not run, as far as the file says
"""


class CellCheck(NamedTuple):
    """Of a code cell."""

    place: int
    """Among all cells of the notebook, from 1."""
    number: int | None
    """As Jupyter shows it in brackets."""
    begins: str
    """Its first line: of the file."""
    verdict: Verdict
    found: tuple[str, ...] = ()
    """What was altered; or why the receipt counts for nothing."""
    earlier_key: bool = False
    statement: Statement | None = None
    """Of one that is unchanged or altered."""

    @property
    def is_refusal(self) -> bool:
        """PyBox says that it ran nothing of it."""
        return self.statement is not None and self.statement.ran is not None and self.statement.ran.is_refusal


# Reading


def read_notebook(data: bytes, name: str) -> Mapping[str, Any]:
    """The document: its ``cells`` are objects, and so are its ``metadata``. Raises SourceError."""
    what = f"{name} is not a notebook"
    if len(data) > MOST_BYTES:
        raise SourceError(f"{name} has over {MOST_BYTES >> 20} MB.", "Notebooks that large are not looked into.")
    if not data.strip():
        raise SourceError(f"{name} is empty.", "Name a file that Jupyter saved.")
    if sum(data.count(sign) for sign in (b",", b"[", b"{")) > MOST_PARTS:
        raise SourceError(f"{name} has over {MOST_PARTS:,} parts.", "Notebooks that large are not looked into.")
    try:
        document = json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=without_doubles, parse_constant=refuse_constant
        )
    except (ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, Doubled) else "its text is not the JSON of one"
        raise SourceError(f"{what}: {why}.", "Name a file that Jupyter saved.") from None
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        raise SourceError(f"{what}: it has no list of cells.", "Name a file that Jupyter saved.")
    if document.get("nbformat") != 4 or isinstance(document["nbformat"], bool):
        raise SourceError(f"{what} of format 4.", "Open it in JupyterLab and save it.")
    if len(document["cells"]) > MOST_CELLS:
        raise SourceError(f"{name} has over {MOST_CELLS:,} cells.", "Notebooks that large are not looked into.")
    if not all(isinstance(cell, dict) for cell in document["cells"]) or not isinstance(document.get("metadata"), dict):
        raise SourceError(f"{what}: its cells or its metadata are none.", "Name a file that Jupyter saved.")
    return document


class Doubled(ValueError):
    pass


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For the reader of JSON. Raises ValueError."""
    found = dict(pairs)
    if len(found) != len(pairs):  # of two with one name, one program sees the first, another the last
        raise Doubled("something in it has one name twice")
    return found


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


# Checking


def check_cells(document: Mapping[str, Any], ring: KeyRing) -> list[CellCheck]:
    """Of each code cell of a document that ``read_notebook`` gave."""
    states = widget_states(document["metadata"])
    return [
        check_cell(place, cell, ring, states)
        for place, cell in enumerate(document["cells"], 1)
        if cell.get("cell_type") == "code"
    ]


def check_cell(place: int, cell: Mapping[str, Any], ring: KeyRing, states: Mapping[str, Any]) -> CellCheck:
    said_number = cell.get("execution_count")
    number = said_number if type(said_number) is int and 0 <= said_number < MOST_NUMBER else None
    try:
        source = text_of(cell.get("source"))
    except ValueError:
        return CellCheck(place, number, "", "no receipt", ("the cell cannot be read",))
    begins = source.lstrip()[:200].partition("\n")[0]
    outputs = cell.get("outputs", [])
    if not isinstance(outputs, list) or not all(isinstance(output, dict) for output in outputs):
        return CellCheck(place, number, begins, "no receipt", ("its outputs cannot be read",))
    why = ""
    claims = [at for at in reversed(range(len(outputs))) if looks_like_one(outputs[at])]
    for at in claims[:MOST_CLAIMS]:
        stated, said = believed(outputs[at], ring)
        if stated is not None:
            found = differences(stated, source, number, outputs, at, states)
            verdict: Verdict = "altered" if found else "unchanged"
            return CellCheck(place, number, begins, verdict, tuple(found), said != ring.current, stated)
        why = why or said
    if why:
        return CellCheck(place, number, begins, "not made here", (why,))
    if said_number is None and not outputs:
        return CellCheck(place, number, begins, "nothing shown")
    shown = "nothing vouches for what it shows" if outputs else "it was run, and shows nothing"
    return CellCheck(place, number, begins, "no receipt", (shown,))


def believed(output: Mapping[str, Any], ring: KeyRing) -> tuple[Statement | None, str]:
    """The statement that an output carries and a key of the ring signed, and that key's fingerprint. Or none, and why
    what looks like a receipt is none."""
    claim = Claim.of(output.get("metadata"))
    if claim is None:
        return None, "it looks like a receipt, and carries no statement"
    if claim.key is None or claim.signature is None:
        return None, "its receipt is not signed"
    if claim.key not in ring.keys:
        return None, "its receipt is signed with a key that is not known here"
    if not ring.verify(claim.key, claim.signature, signed_bytes("statement", claim.text)):
        return None, "the signature of its receipt does not fit"
    stated = Statement.of(claim.text)
    if stated is None:
        return None, "its receipt is of another version of PyBox"
    return stated, claim.key


def looks_like_one(output: Mapping[str, Any]) -> bool:
    metadata, data = output.get("metadata"), output.get("data")
    if isinstance(metadata, dict) and "pybox" in metadata:
        return True
    try:
        html = text_of(data.get("text/html", "")) if isinstance(data, dict) else ""
    except ValueError:
        return False
    return any(look in html for look in LOOK)


def differences(
    stated: Statement,
    source: str,
    number: int | None,
    outputs: Sequence[Mapping[str, Any]],
    at: int,
    states: Mapping[str, Any],
) -> list[str]:
    """What is not as ``stated``, in words; nothing where all is. ``at`` is the place of the output that carries it."""
    found = []
    if short(digest_of_source(source)) != stated.source:
        found.append("the cell is not the program that ran")
    numbers = [number, *(it.get("execution_count") for it in outputs if it.get("output_type") == "execute_result")]
    if any(type(it) is not int or it != stated.cell for it in numbers):
        found.append(f"its number was [{stated.cell}]")
    shown = shown_by(stated, outputs[at], states)
    if shown is None or short(digest_of_look(shown)) != stated.look:
        found.append("the receipt does not look as it did")
    try:
        above = entries_of(outputs[:at])
        below = entries_of([it for it in outputs[at + 1 :] if not shows_nothing(it)])
    except (ValueError, RecursionError):
        return [*found, "some of its outputs are none that a cell can have"]
    found += changes(stated.outputs, tuple(map(short, above)))
    if tuple(map(short, below)) != ((stated.error,) if stated.error is not None else ()):
        found.append("below its receipt stands something else than did" if below else "its error is not there")
    error = below[0] if below else None
    if not found and (shown is None or whole(source, above, shown, error) != stated.whole):
        found.append("something in it was changed")
    return found


def shown_by(stated: Statement, output: Mapping[str, Any], states: Mapping[str, Any]) -> Mapping[str, str] | None:
    """The forms of the receipt that the output has, by their MIME types; beside them it may have the panel that is
    stated. None where it shows anything else."""
    data = output.get("data")
    if output.get("output_type") != "display_data" or not isinstance(data, dict) or layout_of(output):
        return None
    rest = dict(data)
    view = rest.pop(VIEW, None)
    if view is not None and (stated.panel is None or not is_as_it_was(stated.panel, view, states)):
        return None
    try:
        return data_entries(rest)
    except (ValueError, RecursionError):
        return None


def widget_states(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """The states of widgets that stand in the file, by the id of their model."""
    found: Any = metadata
    for name in ("widgets", "application/vnd.jupyter.widget-state+json", "state"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def changes(wanted: Sequence[str], there: Sequence[str]) -> list[str]:
    """What became of outputs, in words."""
    if tuple(wanted) == tuple(there):
        return []
    if sorted(wanted) == sorted(there):
        return ["its outputs stand in another order"]
    start = next((at for at, (one, other) in enumerate(zip(wanted, there, strict=False)) if one != other), None)
    start = min(len(wanted), len(there)) if start is None else start
    end = 0  # as many at the end are the same
    while end < min(len(wanted), len(there)) - start and wanted[-1 - end] == there[-1 - end]:
        end += 1
    gone, come = wanted[start : len(wanted) - end], there[start : len(there) - end]
    both = min(len(gone), len(come))
    found = [f"output {start + at}, {kind(gone[at - 1])}, was changed" for at in range(1, both + 1)]
    found += [f"output {start + at}, {kind(gone[at - 1])}, is missing" for at in range(both + 1, len(gone) + 1)]
    found += [f"{kind(entry)} was added" for entry in come[both:]]
    return [*found[:MOST_TOLD], f"and {len(found) - MOST_TOLD} things more"] if len(found) > MOST_TOLD + 1 else found


def kind(entry: str) -> str:
    return KINDS.get(entry.partition(":")[0], "something")
