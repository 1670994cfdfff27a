"""Cleaned notebooks: cells and their texts, and nothing else of what a file had."""

from __future__ import annotations

import json
from typing import Any

import nbformat
import pytest

from pybox_kernel.classroom import cleaning as notebook_cleaning
from pybox_kernel.classroom.cleaning import MOST_QUOTES, WORDS, Cleaned, cleaned
from pybox_kernel.classroom.inert_markdown import inert
from pybox_kernel.errors import SourceError
from pybox_kernel.install import DATA_KERNEL_NAME
from tests.hostile_notebooks import FILES, HostileFile
from tests.hostile_notebooks.making import code, document, markdown

TAKEN = [file for file in FILES if not file.problem]
REFUSED = [file for file in FILES if file.problem]


def of(document: object, **options: str) -> Cleaned:
    return cleaned(json.dumps(document).encode(), **options)


def read(clean: Cleaned) -> dict[str, Any]:
    return dict(json.loads(clean.data))


def named(file: HostileFile) -> str:
    return file.name.encode("unicode_escape").decode()[:60]


def test_the_corpus_is_as_large_as_it_should_be() -> None:
    assert len({file.name for file in FILES}) == len(FILES) >= 45


@pytest.mark.parametrize("file", TAKEN, ids=named)
def test_what_comes_of_a_hostile_notebook_is_a_notebook_of_known_parts(file: HostileFile) -> None:
    clean = cleaned(file.data())
    document = read(clean)
    nbformat.validate(document)
    assert document["metadata"] == {
        "kernelspec": {"display_name": "PyBox (sealed)", "language": "python", "name": "pybox-sealed"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(document["cells"], 1):
        more = {"outputs", "execution_count"} if cell["cell_type"] == "code" else set()
        assert cell.keys() == {"cell_type", "id", "metadata", "source"} | more
        assert cell["metadata"] == {}
        assert cell["id"] == f"cell-{number}"
        assert not cell.get("outputs")
    assert document.keys() == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert set(clean.counts) <= set(WORDS)
    assert len(clean.quotes) <= MOST_QUOTES
    assert all(quote.text.isprintable() for quote in clean.quotes)


@pytest.mark.parametrize("file", REFUSED, ids=named)
def test_what_is_no_notebook_is_refused_with_the_reason(file: HostileFile) -> None:
    with pytest.raises(SourceError, match=file.problem):
        cleaned(file.data())


def test_code_and_the_order_of_cells_stay_as_they_are() -> None:
    source = "x = '<img>' # ![p](http://a)\r\nprint(x)\t\x0c"
    clean = of(document(code(source), markdown("# a"), {"cell_type": "raw", "metadata": {}, "source": "<b>"}, code([])))
    cells = read(clean)["cells"]
    assert [cell["cell_type"] for cell in cells] == ["code", "markdown", "raw", "code"]
    assert ["".join(cell["source"]) for cell in cells] == [source, "# a", "<b>", ""]


def test_a_notebook_with_too_much_text_is_refused_before_all_of_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(notebook_cleaning, "inert", lambda text: (looked.append(text), inert(text))[1])
    monkeypatch.setattr(notebook_cleaning, "MOST_BYTES", 1 << 20)
    with pytest.raises(SourceError, match="1 MB also without its outputs"):
        of(document(*[markdown("word " * 10_000)] * 60))
    assert len(looked) == 21


def test_the_kernel_is_the_one_that_is_asked_for() -> None:
    assert read(of(document(code()), kernel=DATA_KERNEL_NAME))["metadata"]["kernelspec"]["name"] == DATA_KERNEL_NAME


def test_all_that_is_gone_is_counted_and_the_first_of_it_quoted() -> None:
    output = {"output_type": "display_data", "data": {"text/html": "x"}, "metadata": {}}
    given = document(
        code(outputs=(output, output), metadata={"trusted": True}),
        markdown("![p](http://a/b.png)", attachments={"a.png": {}}),
        metadata={"kernelspec": {"name": "python3"}, "widgets": {"x": 1}, "toc": {}},
    )
    clean = of(given)
    counts = {"kernel": 1, "widgets": 1, "metadata": 2, "outputs": 2, "attachments": 1, "pictures": 1}
    assert clean.counts == counts
    assert (0, "kernel", "python3") in clean.quotes
    assert (1, "outputs", "text/html") in clean.quotes
    assert (2, "pictures", "![p](http://a/b.png)") in clean.quotes


def test_a_notebook_that_is_clean_stays_as_it_is() -> None:
    once = of(document(code("x = 1"), markdown("# a"), metadata={}))
    again = cleaned(once.data)
    assert again.data == once.data
    assert again.counts == {}
