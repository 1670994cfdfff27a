"""What `check` says of the receipts in a notebook's file."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ipywidgets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybox_kernel.errors import SourceError
from pybox_kernel.notebook.outbox import Text
from pybox_kernel.signing.keys import KeyRing, SigningKeys
from pybox_kernel.signing.receipt_check import MOST_PARTS, CellCheck, check_cells, read_notebook
from pybox_kernel.signing.run_order import Order, order_of
from tests.hostile_notebooks.receipts import FORGED, Forged
from tests.statements import LESSON, Author, Cell, widget_states


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> SigningKeys:
    made = SigningKeys(tmp_path_factory.mktemp("home"))
    made.create()
    return made


@pytest.fixture(scope="module")
def ring(keys: SigningKeys) -> KeyRing:
    return keys.ring()


@pytest.fixture(scope="module")
def lesson(keys: SigningKeys) -> bytes:
    return written(Author(keys).notebook())


@pytest.fixture
def _no_widgets() -> Iterator[None]:
    yield
    ipywidgets.Widget.close_all()


def written(document: Any) -> bytes:
    return json.dumps(document).encode()


def checked(document: Any, ring: KeyRing) -> tuple[list[CellCheck], Order]:
    cells = check_cells(read_notebook(written(document), "lesson.ipynb"), ring)
    return cells, order_of(cells)


def verdicts(document: Any, ring: KeyRing) -> list[str]:
    return [cell.verdict for cell in checked(document, ring)[0]]


WELL = ["unchanged"] * len(LESSON)
IN_ORDER = Order((), 0)


def test_what_was_made_here_is_unchanged_and_in_order(lesson: bytes, ring: KeyRing) -> None:
    cells, order = checked(json.loads(lesson), ring)
    assert [(cell.verdict, cell.found, cell.earlier_key) for cell in cells] == [("unchanged", (), False)] * 4
    assert [(cell.place, cell.number) for cell in cells] == [(2, 1), (3, 2), (4, 3), (5, 4)]
    assert order == IN_ORDER


def lines(text: Any) -> Any:
    return text.splitlines(keepends=True) if isinstance(text, str) else text


def by_nbformat(document: Any) -> None:
    """Divides every text into lines, as it is in a file."""
    for cell in document["cells"]:
        cell["source"] = lines(cell["source"])
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = lines(output["text"])
            output["data"] = {mime: lines(text) for mime, text in output.get("data", {}).items()}


def by_papermill(document: Any) -> None:
    document["metadata"]["papermill"] = {"duration": 1.5}
    for cell in document["cells"]:
        cell["metadata"] = {"tags": ["parameters"], "papermill": {"status": "completed"}}
        for output in cell.get("outputs", ()):
            output.setdefault("metadata", {})["tags"] = []


def by_a_page(document: Any) -> None:
    """Puts texts together, and has what is left of the panel of a cell that ran."""
    for cell in document["cells"]:
        shown: list[dict[str, Any]] = []
        for output in cell.get("outputs", ()):
            if shown and output.get("name") and shown[-1].get("name") == output["name"]:
                shown[-1]["text"] += output["text"]
            else:
                shown.append(output)
        left = {"output_type": "display_data", "data": {"text/plain": []}, "metadata": {}}
        if "outputs" in cell:
            cell["outputs"] = [left, *shown]


def by_a_hand(document: Any) -> None:
    """Words around the cells, and cells that were not run."""
    document["cells"] += [{"cell_type": "code", "metadata": {}, "source": "", "outputs": [], "execution_count": None}]
    document["cells"][0]["source"] = "# Other words"


@pytest.mark.parametrize("change", [by_nbformat, by_papermill, by_a_page, by_a_hand])
def test_what_clients_change_changes_nothing(change: Any, lesson: bytes, ring: KeyRing) -> None:
    document = json.loads(lesson)
    change(document)
    cells, order = checked(document, ring)
    assert [cell.found for cell in cells[:4]] == [()] * 4
    assert [cell.verdict for cell in cells[:4]] == WELL
    assert order == IN_ORDER


@pytest.mark.parametrize("forged", FORGED, ids=lambda forged: forged.name)
@pytest.mark.usefixtures("_no_widgets")
def test_no_forged_receipt_is_believed(forged: Forged, keys: SigningKeys, ring: KeyRing) -> None:
    document = forged.made(keys)
    cells, order = checked(document, ring)
    said = [
        *(f"{cell.verdict}: {'; '.join(cell.found)}" for cell in cells if cell.verdict != "unchanged"),
        *order.broken,
    ]
    assert any(forged.said in found for found in said), said


@pytest.mark.parametrize(
    "metadata",
    [{"image/png": {"width": 1}}, {"text/plain": {"x": 1}}, {"width": 0}, {"isolated": True}],
)
def test_what_pages_are_told_to_draw_otherwise_is_altered(
    metadata: dict[str, Any], lesson: bytes, ring: KeyRing
) -> None:
    for output in (-2, -1):
        document = json.loads(lesson)
        document["cells"][-1]["outputs"][output]["metadata"].update(metadata)
        assert verdicts(document, ring) == [*WELL[:-1], "altered"]


@pytest.mark.parametrize("change", [{"traceback": [["line 1"], "2"]}, {"ename": ["En", "ds"]}, {"evalue": ["it"]}])
def test_an_error_in_pieces_is_altered(change: dict[str, Any], lesson: bytes, ring: KeyRing) -> None:
    """Pages put commas between them."""
    document = json.loads(lesson)
    [error] = [it for it in document["cells"][2]["outputs"] if it["output_type"] == "error"]
    error.update(change)
    assert verdicts(document, ring) == [WELL[0], "altered", *WELL[2:]]


@pytest.mark.usefixtures("_no_widgets")
def test_a_live_panel_is_believed_and_so_is_the_receipt_without_it(keys: SigningKeys, ring: KeyRing) -> None:
    document = Author(keys, panels=True).notebook()
    document["metadata"] = widget_states()
    assert len(document["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]) >= 9
    assert verdicts(document, ring) == WELL
    document["metadata"] = {}
    assert verdicts(document, ring) == WELL
    for cell in document["cells"][1:]:
        cell["outputs"][-1]["data"].pop("application/vnd.jupyter.widget-view+json", None)
    assert verdicts(document, ring) == WELL


def test_in_ipython_the_error_stands_below_the_receipt(keys: SigningKeys, ring: KeyRing) -> None:
    document = Author(keys, raises=True).notebook()
    failed = document["cells"][2]
    text, receipt = failed["outputs"][0], failed["outputs"][-1]
    raised = {"output_type": "error", "ename": "PyBoxCellError", "evalue": "Ends: it"}
    raised["traceback"] = ["PyBoxCellError: Ends: it"]
    lines = {"output_type": "stream", "name": "stderr", "text": "line 1\n2\n"}
    failed["outputs"] = [text, {**text, "text": "o\n"}, lines, receipt, raised]
    document["cells"][1]["outputs"][1].pop("execution_count")
    document["cells"][1]["outputs"][1]["output_type"] = "display_data"
    assert verdicts(document, ring) == WELL
    raised["evalue"] = "Ends: well"
    assert verdicts(document, ring)[1] == "altered"
    failed["outputs"].pop()
    assert verdicts(document, ring)[1] == "altered"


def test_a_key_of_another_computer_is_not_known_here_and_can_be_named(
    lesson: bytes, ring: KeyRing, tmp_path: Path
) -> None:
    other = SigningKeys(tmp_path)
    document = Author(other).notebook()
    assert verdicts(document, ring) == ["not made here"] * 4
    assert verdicts(document, other.ring()) == WELL
    assert verdicts(json.loads(lesson), other.ring()) == ["not made here"] * 4


def test_an_earlier_key_is_told(tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path)
    document = Author(keys).notebook()
    assert keys.rotate()
    cells, _ = checked(document, keys.ring())
    assert [(cell.verdict, cell.earlier_key) for cell in cells] == [("unchanged", True)] * 4


def test_cells_in_between_that_are_not_here_are_counted(lesson: bytes, ring: KeyRing) -> None:
    document = json.loads(lesson)
    del document["cells"][2]
    assert checked(document, ring)[1] == Order((), 1)


def test_a_receipt_that_could_not_be_signed_is_not_believed(tmp_path: Path, ring: KeyRing) -> None:
    (tmp_path / "keys").write_text("in the way")
    author = Author(SigningKeys(tmp_path))
    document = author.notebook(LESSON[0])
    shown = document["cells"][1]["outputs"]
    assert "Receipts are not signed" in shown[-2]["data"]["text/plain"]
    [cell], _ = checked(document, ring)
    assert (cell.verdict, cell.found) == ("not made here", ("its receipt is not signed",))
    assert "not signed" not in str(author.cell(LESSON[0])["outputs"]), "it is said once"


# Whatever is changed

CHARACTERS = st.text(min_size=1, max_size=3)


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of all texts, numbers and nulls in the cells."""
    parts = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in parts:
        if isinstance(value, dict | list):
            yield from places(value, (*path, name))
        else:
            yield (*path, name)


def matters(path: tuple[Any, ...]) -> bool:
    """What is no part of a code cell's program, of its number, its outputs or what is signed."""
    return "metadata" not in path[:2] and path[1] != "id"


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_any_text_that_is_changed_is_found(data: st.DataObject, lesson: bytes, ring: KeyRing) -> None:
    document = json.loads(lesson)
    cells = document["cells"][1:]
    path = data.draw(st.sampled_from([path for path in places(cells) if matters(path)]))
    holder: Any = cells
    for name in path[:-1]:
        holder = holder[name]
    value = holder[path[-1]]
    if isinstance(value, str):
        at = data.draw(st.integers(0, len(value)))
        new = value[:at] + data.draw(CHARACTERS) + value[at + data.draw(st.integers(0, 2)) :]
    else:
        new = data.draw(st.one_of(st.none(), st.integers(), CHARACTERS, st.just([]), st.just(True)))
    if new == value and type(new) is type(value):
        return
    holder[path[-1]] = new
    assert verdicts(document, ring) != WELL, (path, value, new)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_any_byte_of_a_statement_and_its_signature_that_is_changed_is_found(
    data: st.DataObject, lesson: bytes, ring: KeyRing
) -> None:
    document = json.loads(lesson)
    metadata = document["cells"][data.draw(st.integers(1, 4))]["outputs"][-1]["metadata"]
    claim = metadata["pybox"]
    at = data.draw(st.integers(0, len(claim) - 1))
    metadata["pybox"] = claim[:at] + chr(ord(claim[at]) ^ (1 << data.draw(st.integers(0, 7)))) + claim[at + 1 :]
    assert sorted(verdicts(document, ring)) == ["not made here", *WELL[1:]]


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_any_output_that_goes_or_comes_or_moves_is_found(data: st.DataObject, lesson: bytes, ring: KeyRing) -> None:
    document = json.loads(lesson)
    cells = document["cells"][1:]
    old = copy.deepcopy(cells)
    outputs = cells[data.draw(st.integers(0, 3))]["outputs"]
    taken = outputs.pop(data.draw(st.integers(0, len(outputs) - 1)))
    if data.draw(st.booleans()):
        target = cells[data.draw(st.integers(0, 3))]["outputs"]
        target.insert(data.draw(st.integers(0, len(target))), taken)
    cells, order = checked(document, ring)
    assert document["cells"][1:] == old or [cell.verdict for cell in cells] != WELL or order != IN_ORDER


# What is no notebook


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "x.ipynb is empty"),
        (b"\xff\xfe", "its text is not the JSON of one"),
        (b"[]", "no list of cells"),
        (b"{}", "no list of cells"),
        (b"[" * 100_000, "its text is not the JSON of one"),
        (b"[" * (MOST_PARTS + 1), "parts"),
        (b'{"cells": [], "cells": []}', "one name twice"),
        (b'{"cells": [NaN]}', "its text is not the JSON of one"),
        (b'{"cells": [1' + b"0" * 5000 + b"]}", "its text is not the JSON of one"),
        (b'{"cells": [], "nbformat": 3, "metadata": {}}', "of format 4"),
        (b'{"cells": [], "nbformat": true, "metadata": {}}', "of format 4"),
        (b'{"cells": [], "nbformat": 4, "metadata": []}', "its cells or its metadata"),
        (b'{"cells": [1], "nbformat": 4, "metadata": {}}', "its cells or its metadata"),
        (b'{"cells": [' + b"{}," * 10_001 + b'{}], "nbformat": 4, "metadata": {}}', "10,000 cells"),
        (b" " * (65 << 20), "64 MB"),
    ],
    ids=range(15),
)
def test_what_is_no_notebook_is_said(data: bytes, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        read_notebook(data, "x.ipynb")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = ("output_type", "name", "text", "data", "metadata", "traceback", "ename", "evalue", "execution_count")
OUTPUT = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, ANYTHING)) | st.sampled_from(
    [
        {"output_type": "stream", "name": "stdout", "text": [1]},
        {"output_type": "display_data", "data": {"text/plain": {"a": "\ud800"}}},
        {"output_type": "error", "ename": "", "evalue": "", "traceback": [None]},
    ]
)
CELL = st.fixed_dictionaries(
    {"cell_type": st.just("code")},
    optional={"source": ANYTHING, "outputs": st.lists(OUTPUT, max_size=3) | ANYTHING, "execution_count": ANYTHING},
)


@given(cells=st.lists(CELL, max_size=3), metadata=st.dictionaries(st.just("widgets"), ANYTHING))
@settings(max_examples=150, deadline=None)
def test_any_cells_have_an_answer(cells: Any, metadata: Any, lesson: bytes, ring: KeyRing) -> None:
    """Those that stand around real receipts too."""
    document = json.loads(lesson)
    document["metadata"] = metadata
    for cell in cells:
        real = document["cells"][2]["outputs"][-1]
        if isinstance(cell.get("outputs"), list):
            cell["outputs"].append(real)
    document["cells"] += cells
    found, order = checked(document, ring)
    assert [cell.verdict for cell in found[:4]] == WELL
    assert all(cell.verdict != "unchanged" for cell in found[4:])
    assert len(order.broken) < 30


def test_a_number_of_a_thousand_digits_is_none(lesson: bytes, ring: KeyRing) -> None:
    document = json.loads(lesson)
    document["cells"][1]["execution_count"] = 10**1000
    document["cells"].append({**document["cells"][1], "outputs": []})
    first, *_, last = checked(document, ring)[0]
    assert (first.verdict, first.number) == ("altered", None)
    assert (last.verdict, last.number) == ("no receipt", None)


def test_many_receipts_of_one_run_take_no_long_time(keys: SigningKeys, ring: KeyRing) -> None:
    """By whoever has the key."""
    author = Author(keys)
    cell = author.cell(Cell("1", [Text("stdout", "x" * 10_000)]))
    document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell] * 300}
    cells, order = checked(document, ring)
    assert {found.verdict for found in cells} == {"unchanged"}
    assert order.broken[0] == "Cells 1 and 2 show one and the same run."
    assert order.broken[-1] == "And 279 things more."
