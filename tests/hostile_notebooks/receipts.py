"""Notebooks whose receipts are forged, changed, cut, moved, or of another run: each from a lesson that was made here.

``made`` gives the notebook, and ``said`` is part of what `pybox-kernel check` has to say of it. They are in the corpus
of hostile files too, where nothing of a receipt may be left.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from pybox_kernel.render.widget import VIEW
from pybox_kernel.signing.keys import SigningKeys
from pybox_kernel.signing.shown_outputs import digest
from pybox_kernel.signing.statement import Claim, Signer, Statement, signed_bytes
from tests.hostile_notebooks.making import add
from tests.receipts import ended, receipt
from tests.statements import Author, Cell, widget_states

__all__ = ["FORGED", "Forged"]

Document = dict[str, Any]
ALPHABET: Final = f"{string.ascii_uppercase}{string.ascii_lowercase}{string.digits}-_"
PROMISE: Final = "✓ Ended normally · 0.01 of 2 s · sealed: no network, none of your files"
FAILED: Final = receipt(observed__end=ended("exited", code=1), said__completed=False, said__error="ZeroDivisionError")


class Forged(NamedTuple):
    name: str
    tries: str
    change: Callable[[Document, SigningKeys], Document | None]
    said: str
    panels: bool = False

    def made(self, keys: SigningKeys) -> Document:
        document = Author(keys, panels=self.panels).notebook()
        if self.panels:
            document["metadata"] = widget_states()
        return self.change(document, keys) or document


FORGED: Final[list[Forged]] = []


def forged(tries: str, said: str, *, panels: bool = False) -> Callable[[Any], Any]:
    def keep(change: Any) -> Any:
        name = change.__name__.replace("_", "-")
        FORGED.append(Forged(name, tries, change, said, panels))
        return change

    return keep


def outputs(document: Document, cell: int = 1) -> list[Document]:
    return document["cells"][cell]["outputs"]  # type: ignore[no-any-return]


def claim(document: Document, cell: int = 1) -> Claim:
    found = Claim.of(outputs(document, cell)[-1]["metadata"])
    assert found is not None
    return found


def put(document: Document, found: Claim) -> None:
    outputs(document)[-1]["metadata"] = found.metadata()


def restated(document: Document, signer: Signer, **changes: Any) -> None:
    """Another statement in the place of the first one's, signed by ``signer``."""
    stated = Statement.of(claim(document).text)
    assert stated is not None
    put(document, Claim.made(stated.model_copy(update=changes), signer))


# Without the key


@forged("a receipt drawn by hand", "no receipt: nothing vouches for what it shows")
def drawn(document: Document, _: SigningKeys) -> None:
    html = f"<details><summary><b>{PROMISE}</b></summary></details>"
    outputs(document)[-1] = {"output_type": "display_data", "metadata": {}, "data": {"text/html": html}}


@forged("a real receipt's look, without its statement", "it looks like a receipt, and carries no statement")
def look_alone(document: Document, _: SigningKeys) -> None:
    outputs(document)[-1]["metadata"] = {}


@forged("a receipt as text", "no receipt: nothing vouches for what it shows")
def as_text(document: Document, _: SigningKeys) -> None:
    outputs(document)[-1] = {"output_type": "stream", "name": "stdout", "text": PROMISE}


@forged("a statement that is not signed", "its receipt is not signed")
def unsigned(document: Document, _: SigningKeys) -> None:
    put(document, Claim(claim(document).text, None, None))


@forged("a signature of nothing", "the signature of its receipt does not fit")
def zeros(document: Document, _: SigningKeys) -> None:
    put(document, claim(document)._replace(signature=bytes(64)))


@forged("a statement signed by somebody else, who says so", "signed with a key that is not known here")
def of_another_key(document: Document, keys: SigningKeys) -> None:
    restated(document, other(keys))


@forged("a statement signed by somebody else, in the name of this key", "the signature of its receipt does not fit")
def in_the_name_of_this_key(document: Document, keys: SigningKeys) -> None:
    mine = claim(document).key
    restated(document, other(keys))
    put(document, claim(document)._replace(key=mine))


@forged("a signature that is of another thing than a statement", "the signature of its receipt does not fit")
def of_another_thing(document: Document, keys: SigningKeys) -> None:
    _, signature = keys.sign(signed_bytes("receipt", claim(document).text)) or ("", b"")
    put(document, claim(document)._replace(signature=signature))


@forged("another ending in the statement", "the signature of its receipt does not fit")
def another_ending(document: Document, _: SigningKeys) -> None:
    put(document, claim(document)._replace(text=claim(document).text.replace("0.3 of 2 s", "0.01 of 2 s")))


@forged("a statement with more in it", "the signature of its receipt does not fit")
def more_in_it(document: Document, _: SigningKeys) -> None:
    put(document, claim(document)._replace(text=claim(document).text + " trusted"))


@forged("a claim with more in it", "it looks like a receipt, and carries no statement")
def more_beside_it(document: Document, _: SigningKeys) -> None:
    outputs(document)[-1]["metadata"]["pybox"] += " unchanged"


@forged("a claim of strange types", "it looks like a receipt, and carries no statement")
def strange_types(document: Document, _: SigningKeys) -> None:
    outputs(document)[-1]["metadata"]["pybox"] = [outputs(document)[-1]["metadata"]["pybox"], {"a": 1}]


@forged("a statement of two megabytes", "it looks like a receipt, and carries no statement")
def endless(document: Document, _: SigningKeys) -> None:
    put(document, claim(document)._replace(text=claim(document).text + " " * (2 << 20)))


@forged("a statement of a later form, rightly signed", "its receipt is of another version of PyBox")
def of_a_later_form(document: Document, keys: SigningKeys) -> None:
    text = "2" + claim(document).text[1:]
    put(document, Claim(text, *(keys.sign(signed_bytes("statement", text)) or ("", b""))))


@forged("a signature written in another way, which gives the same bytes", "carries no statement")
def written_in_another_way(document: Document, _: SigningKeys) -> None:
    metadata = outputs(document)[-1]["metadata"]
    last = ALPHABET.index(metadata["pybox"][-1])
    metadata["pybox"] = metadata["pybox"][:-1] + ALPHABET[last ^ 1]


# With a real receipt of this key


@forged("another program above the receipt", "altered: the cell is not the program that ran")
def another_program(document: Document, _: SigningKeys) -> None:
    document["cells"][1]["source"] += "\nimport os; os.system('rm -rf ~')"


@forged("characters in the program that nobody sees", "altered: the cell is not the program that ran")
def unseen_characters(document: Document, _: SigningKeys) -> None:
    document["cells"][1]["source"] = document["cells"][1]["source"].replace("one", "o\u200bne")


@forged("another printed text", "altered: output 1, what it printed, was changed")
def another_text(document: Document, _: SigningKeys) -> None:
    outputs(document)[0]["text"] = "two\n"


@forged("another value", "altered: output 2, its last value, was changed")
def another_value(document: Document, _: SigningKeys) -> None:
    outputs(document)[1]["data"]["text/plain"] = "43"


@forged("a value shown in one form more", "altered: output 2, its last value, was changed")
def one_form_more(document: Document, _: SigningKeys) -> None:
    outputs(document)[1]["data"]["text/html"] = "<b>43</b>"


@forged("a value that becomes a display", "altered: output 2, its last value, was changed")
def another_kind(document: Document, _: SigningKeys) -> None:
    outputs(document)[1]["output_type"] = "display_data"


@forged("another number", "altered: its number was [1]")
def another_number(document: Document, _: SigningKeys) -> None:
    document["cells"][1]["execution_count"] = outputs(document)[1]["execution_count"] = 7


@forged("printed text that becomes an error's", "output 1, what it printed, ")
def another_stream(document: Document, _: SigningKeys) -> None:
    outputs(document)[0]["name"] = "stderr"


@forged("an output cut out", "altered: output 1, what it printed, is missing")
def output_cut(document: Document, _: SigningKeys) -> None:
    del outputs(document)[0]


@forged("all outputs cut but the receipt", "output 2, its last value, is missing")
def all_outputs_cut(document: Document, _: SigningKeys) -> None:
    del outputs(document)[:-1]


@forged("an error cut out", "altered: output 2, its error, is missing")
def error_cut(document: Document, _: SigningKeys) -> None:
    del outputs(document, 2)[-2]


@forged("an output more", "altered: what it displayed was added")
def output_more(document: Document, _: SigningKeys) -> None:
    more = {"output_type": "display_data", "metadata": {}, "data": {"text/plain": "10 of 10 points"}}
    outputs(document).insert(1, more)


@forged("outputs in another order", "altered: its outputs stand in another order")
def outputs_moved(document: Document, _: SigningKeys) -> None:
    outputs(document)[0:2] = reversed(outputs(document)[0:2])


@forged("a second receipt, drawn below the real one", "altered: below its receipt stands something else than did")
def one_below(document: Document, _: SigningKeys) -> None:
    more = deepcopy(outputs(document)[-1])
    more["metadata"] = {}
    outputs(document).append(more)


@forged("a receipt twice under one cell", "altered: what it displayed was added")
def twice(document: Document, _: SigningKeys) -> None:
    outputs(document).append(outputs(document)[-1])


@forged("another look of the receipt", "altered: the receipt does not look as it did")
def another_look(document: Document, _: SigningKeys) -> None:
    data = outputs(document, 2)[-1]["data"]
    data["text/html"] = data["text/html"].replace("Ended", "Well ended")


@forged("another text of the receipt, for pages without HTML", "altered: the receipt does not look as it did")
def another_plain_text(document: Document, _: SigningKeys) -> None:
    outputs(document)[-1]["data"]["text/plain"] = PROMISE


@forged("a picture that a page prefers to the receipt's HTML", "altered: the receipt does not look as it did")
def picture_in_its_place(document: Document, _: SigningKeys) -> None:
    outputs(document)[-1]["data"]["image/png"] = "iVBORw0KGgo="


@forged("the receipt without its HTML", "altered: the receipt does not look as it did")
def without_html(document: Document, _: SigningKeys) -> None:
    del outputs(document)[-1]["data"]["text/html"]


@forged("the receipt as a last value", "altered: the receipt does not look as it did")
def as_a_value(document: Document, _: SigningKeys) -> None:
    outputs(document)[-1].update(output_type="execute_result", execution_count=1)


# Cut, replayed, moved


@forged("the receipt cut out", "no receipt: nothing vouches for what it shows")
def receipt_cut(document: Document, _: SigningKeys) -> None:
    outputs(document).pop()


@forged("all that a cell showed cut out", "no receipt: it was run, and shows nothing")
def all_cut(document: Document, _: SigningKeys) -> None:
    outputs(document, 2).clear()


@forged("the receipt of another cell", "altered: the cell is not the program that ran")
def of_another_cell(document: Document, _: SigningKeys) -> None:
    outputs(document, 2)[:] = outputs(document)


@forged(
    "a cell that failed, with the receipt of a program that did not", "altered: the cell is not the program that ran"
)
def well_again(document: Document, keys: SigningKeys) -> None:
    document["cells"][2] = Author(keys).cell(Cell("1/0", [], FAILED))
    outputs(document, 2)[-1] = outputs(document, 3)[-1]


@forged("one cell and its receipt, twice", "Cells 2 and 4 show one and the same run.")
def replayed(document: Document, _: SigningKeys) -> None:
    document["cells"].insert(3, deepcopy(document["cells"][1]))


@forged("the same cell from an earlier run, in the place of the later one", "Cell 3 ran before cell 2")
def of_an_earlier_run(_: Document, keys: SigningKeys) -> Document:
    author, cell = Author(keys), Cell("check()")
    first = author.cell(cell)
    document = author.notebook(Cell("prepare()"), cell)
    document["cells"][2] = first
    return document


@forged("a cell of another notebook", "Cell 3 ran in another session than cell 2.")
def of_another_notebook(document: Document, keys: SigningKeys) -> None:
    document["cells"][2] = Author(keys).notebook()["cells"][2]


@forged("cells in another order", "Cell 3 ran before cell 2, which stands above it.")
def reordered(document: Document, _: SigningKeys) -> None:
    document["cells"][1:3] = reversed(document["cells"][1:3])


@forged("a value that no cell here left", "Cell 2 got x from elsewhere")
def values_from_elsewhere(document: Document, keys: SigningKeys) -> None:
    link = f"{'1' * 32} 0<x 48 {'x' * 22} 22222222>"
    restated(document, keys, carried=link)


# As a live panel


@forged("another panel in the receipt's place", "altered: the receipt does not look as it did", panels=True)
def another_panel(document: Document, _: SigningKeys) -> None:
    outputs(document)[-1]["data"][VIEW]["model_id"] = outputs(document, 2)[-1]["data"][VIEW]["model_id"]


@forged("a panel beside a receipt that never had one", "altered: the receipt does not look as it did")
def added_panel(document: Document, keys: SigningKeys) -> None:
    panels = Author(keys, panels=True).notebook()
    outputs(document)[-1]["data"][VIEW] = outputs(panels)[-1]["data"][VIEW]


def state_of(document: Document) -> Document:
    model = outputs(document)[-1]["data"][VIEW]["model_id"]
    states = document["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    return states[model]  # type: ignore[no-any-return]


@forged("another text in the panel's own state", "altered: the receipt does not look as it did", panels=True)
def another_state(document: Document, _: SigningKeys) -> None:
    state_of(document)["state"]["value"] = f"<b>{PROMISE}</b>"


@forged("a description beside the panel", "altered: the receipt does not look as it did", panels=True)
def description(document: Document, _: SigningKeys) -> None:
    state_of(document)["state"].update(description=PROMISE, description_allow_html=True)


@forged("a panel of another kind", "altered: the receipt does not look as it did", panels=True)
def another_model(document: Document, _: SigningKeys) -> None:
    state_of(document)["model_name"] = "TextareaModel"


@forged("a panel with another model's view", "altered: the receipt does not look as it did", panels=True)
def another_view(document: Document, _: SigningKeys) -> None:
    state_of(document)["state"]["_view_name"] = "TextareaView"


@forged("a panel with a layout that hides it", "altered: the receipt does not look as it did", panels=True)
def hidden(document: Document, _: SigningKeys) -> None:
    states = document["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    states["x" * 32] = {"model_name": "LayoutModel", "state": {"display": "none"}}
    state_of(document)["state"]["layout"] = f"IPY_MODEL_{'x' * 32}"


@forged("a panel whose state comes in a buffer", "altered: the receipt does not look as it did", panels=True)
def buffered(document: Document, _: SigningKeys) -> None:
    state_of(document)["buffers"] = [{"path": ["value"], "encoding": "base64", "data": "eA=="}]


def other(keys: SigningKeys) -> SigningKeys:
    """Somebody else's."""
    return SigningKeys(keys.private_file.parent.parent / digest("other")[:8])


def as_a_file(forged: Forged) -> Callable[[], bytes]:
    def made() -> bytes:
        with TemporaryDirectory() as home:
            return json.dumps(forged.made(SigningKeys(Path(home)))).encode()

    return made


for one in FORGED:
    add(f"receipt-{one.name}", one.tries, as_a_file(one))
