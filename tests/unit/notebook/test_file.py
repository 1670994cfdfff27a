"""Notebook files: whatever is not a notebook of Python cells is refused, and what is written is one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybox_kernel.errors import OptionError, PyBoxError, SourceError
from pybox_kernel.notebook.file import (
    DEEPEST,
    MOST_BYTES,
    MOST_CELLS,
    NotebookFile,
    check_target,
    deeper,
    is_own,
    output_of,
    write,
)

CODE = {"cell_type": "code", "metadata": {}, "source": ["x = 1\n", "x"], "outputs": [], "execution_count": None}
TEXT = {"cell_type": "markdown", "metadata": {}, "source": "# Title"}


def document(*cells: object, **others: object) -> dict[str, Any]:
    return {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": list(cells), **others}


def parsed(found: object) -> NotebookFile:
    return NotebookFile(json.dumps(found).encode(), "a.ipynb")


def test_the_code_cells_of_a_notebook_are_read_with_their_lines_joined() -> None:
    raw = {**TEXT, "cell_type": "raw"}
    found = parsed(document(TEXT, CODE, raw, {**CODE, "source": "y\r\n"}))
    assert [cell.source for cell in found.code_cells] == ["x = 1\nx", "y\r\n"]


def test_a_notebook_without_code_is_one() -> None:
    assert parsed(document()).code_cells == []


WRONG = {
    "no JSON": (b"x = 1", "the JSON of one"),
    "nothing": (b"", "the JSON of one"),
    "no text": (b"\xff\xfe{", "the JSON of one"),
    "deep": (b"[" * 200_000, "the JSON of one"),
    "deep and closed": (json.dumps(document(a=json.loads("[" * 90 + "]" * 90))).encode(), "the JSON of one"),
    "a huge number": (b'{"nbformat": ' + b"9" * 10_000 + b"}", "the JSON of one"),
    "NaN": (json.dumps(document(a=float("nan"))).encode(), "the JSON of one"),
    "a list": (b"[]", "the JSON of one"),
    "no format": (b"{}", "of which format"),
    "a format that is no number": (json.dumps({**document(), "nbformat": "4"}).encode(), "of which format"),
    "a format that is true": (json.dumps({**document(), "nbformat_minor": True}).encode(), "of which format"),
    "an old format": (json.dumps({**document(), "nbformat": 3}).encode(), "the old format 3"),
    "a new format": (json.dumps({**document(), "nbformat": 5}).encode(), "format 5, newer"),
    "no cells": (json.dumps({**document(), "cells": {}}).encode(), "no list of cells"),
    "no metadata": (json.dumps({**document(), "metadata": None}).encode(), "or no metadata"),
    "a cell that is a text": (json.dumps(document(CODE, "x")).encode(), "its cell 2 is none"),
    "a cell of another kind": (json.dumps(document({**CODE, "cell_type": "heading"})).encode(), "its cell 1 is none"),
    "a cell without metadata": (json.dumps(document({**CODE, "metadata": []})).encode(), "its cell 1 is none"),
    "a source of numbers": (json.dumps(document({**CODE, "source": [1]})).encode(), "its cell 1 is none"),
    "too many cells": (json.dumps(document(*[CODE] * (MOST_CELLS + 1))).encode(), "2,001 cells"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_not_a_notebook_is_refused_with_what_is_wrong(wrong: str) -> None:
    data, words = WRONG[wrong]
    with pytest.raises(SourceError) as caught:
        NotebookFile(data, "a.ipynb")
    assert caught.value.message.startswith("a.ipynb ")
    assert words in caught.value.message
    assert caught.value.advice


@pytest.mark.parametrize(("part", "key"), [("kernelspec", "language"), ("language_info", "name")])
@pytest.mark.parametrize("language", ["julia", "R", 3])
def test_a_notebook_of_another_language_is_refused(part: str, key: str, language: object) -> None:
    metadata = {part: {key: language}}
    with pytest.raises(SourceError, match=f"is a notebook for {language}"):
        parsed(document(CODE, metadata=metadata))


@pytest.mark.parametrize(
    "metadata",
    [
        {"kernelspec": {"name": "python3", "language": "python"}, "language_info": {"name": "python"}},
        {"kernelspec": {"name": "python3"}, "language_info": {"name": "ipython"}},
        {"kernelspec": None, "language_info": "x"},
    ],
)
def test_a_notebook_of_python_or_of_none_is_taken(metadata: dict[str, object]) -> None:
    assert parsed(document(CODE, metadata=metadata)).code_cells


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["code", "cells", "metadata"]),
        lambda below: st.lists(below) | st.dictionaries(st.sampled_from([*document(), *CODE, "x"]), below),
    )
)
def test_any_json_is_taken_or_refused(found: object) -> None:
    for tried in (found, document(found), document({**CODE, "source": found}), document(CODE, metadata=found)):
        try:
            notebook = parsed(tried)
        except SourceError:
            continue
        assert parsed(json.loads(notebook.to_bytes())).code_cells is not None


def test_depth_is_counted_in_lists_and_objects() -> None:
    assert not deeper([{"a": [1]}], 3)
    assert deeper([{"a": [1]}], 2)
    assert not deeper(1, 0)
    assert DEEPEST > 10


def test_outputs_that_came_with_a_notebook_are_not_kept_nor_what_folds_them() -> None:
    old = {"output_type": "stream", "name": "stdout", "text": "✓ Ended normally"}
    folded = {
        "collapsed": True,
        "scrolled": True,
        "jupyter": {"outputs_hidden": True, "source_hidden": True},
        "tags": [],
    }
    cell = {**CODE, "outputs": [old], "execution_count": 7, "metadata": folded}
    found = json.loads(parsed(document(cell, metadata={"widgets": {"state": {}}, "authors": [1]})).to_bytes())
    [kept] = found["cells"]
    assert (kept["outputs"], kept["execution_count"]) == ([], None)
    assert kept["metadata"] == {"jupyter": {"source_hidden": True}, "tags": []}
    assert set(found["metadata"]) == {"authors", "pybox"}


def test_messages_become_outputs_as_jupyter_writes_them() -> None:
    notebook = parsed(document(TEXT, CODE))
    [cell] = notebook.code_cells
    cell.number(3)
    for text in ("one\ntw", "o\n"):
        cell.add("stream", {"name": "stdout", "text": text})
    cell.add("stream", {"name": "stderr", "text": "oops"})
    cell.add("display_data", {"data": {"text/plain": "a\nb"}, "metadata": {}, "transient": {}})
    cell.add("execute_result", {"data": {"text/plain": "c"}, "metadata": {}, "execution_count": 3})
    cell.add("error", {"ename": "E", "evalue": "", "traceback": ["E"]})
    data = notebook.to_bytes()
    written = nbformat.reads(data.decode(), as_version=4)
    nbformat.validate(written)
    assert [dict(output) for output in written.cells[1].outputs] == [
        {"output_type": "stream", "name": "stdout", "text": "one\ntwo\n"},
        {"output_type": "stream", "name": "stderr", "text": "oops"},
        {"output_type": "display_data", "data": {"text/plain": "a\nb"}, "metadata": {}},
        {"output_type": "execute_result", "data": {"text/plain": "c"}, "metadata": {}, "execution_count": 3},
        {"output_type": "error", "ename": "E", "evalue": "", "traceback": ["E"]},
    ]
    assert written.cells[1].execution_count == 3
    assert json.loads(data)["cells"][1]["outputs"][0]["text"] == ["one\n", "two\n"]


def test_half_a_character_in_a_source_is_written_as_it_came() -> None:
    notebook = parsed(document({**CODE, "source": "x = '\ud800é'"}))
    assert json.loads(notebook.to_bytes())["cells"][0]["source"] == "x = '\ud800é'"


def test_a_file_is_read_up_to_a_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(SourceError, match="over 16 MB"):
        NotebookFile.read(path)
    with pytest.raises(SourceError, match="No such file"):
        NotebookFile.read(tmp_path / "b.ipynb")
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(document(CODE)).encode())
    assert len(NotebookFile.read(path).code_cells) == 1


# What is written over


def test_the_output_stands_beside_the_notebook() -> None:
    assert output_of(Path("/a/b.c.ipynb")) == Path("/a/b.c-run.ipynb")


def test_only_what_was_written_here_is_written_over(tmp_path: Path) -> None:
    source, target = tmp_path / "a.ipynb", tmp_path / "b.ipynb"
    source.write_text(json.dumps(document(CODE)))
    check_target(target, source)
    write(target, NotebookFile.read(source).to_bytes())
    check_target(target, source)
    for other in (json.dumps(document(CODE)), "", "[]", '{"metadata": []}', '{"metadata": {"pybox": {"run": 1}}}'):
        target.write_text(other)
        with pytest.raises(OptionError, match="did not write it"):
            check_target(target, source)
        assert target.read_text() == other


def test_what_is_too_large_or_no_file_is_not_read_to_see_whether_it_was_written_here(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    for name in ("pipe", "large", "none", "."):
        assert not is_own(tmp_path / name)


def test_a_notebook_is_never_written_over_by_whatever_name(tmp_path: Path) -> None:
    source = tmp_path / "a.ipynb"
    write(source, parsed(document(CODE)).to_bytes())
    (tmp_path / "link.ipynb").symlink_to("a.ipynb")
    os.link(source, tmp_path / "same.ipynb")
    for name in ("a.ipynb", "link.ipynb", "same.ipynb", "../" + tmp_path.name + "/a.ipynb"):
        with pytest.raises(OptionError, match="is the notebook itself"):
            check_target(tmp_path / name, source)


def test_what_is_no_place_for_a_file_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "a.ipynb"
    source.write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "away").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "away", "pipe", "no/b.ipynb", "a.ipynb/b"):
        with pytest.raises(OptionError):
            check_target(tmp_path / name, source)


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "a.ipynb"
    write(target, b"before")
    write(target, b"after")
    assert target.read_bytes() == b"after"
    with pytest.raises(PyBoxError, match="could not be written"):
        write(tmp_path / ("a" * 300), b"x")
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    with pytest.raises(PyBoxError, match="could not be written"):
        write(tmp_path / "folder", b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ipynb", "folder"]
