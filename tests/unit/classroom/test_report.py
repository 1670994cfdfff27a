"""Which notebooks are reported, whose they are, and what is made of files of any kind."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from pybox_kernel.classroom.report import DEEPEST, Place, find, read, why_not_graded
from pybox_kernel.cli import main
from pybox_kernel.errors import OptionError
from pybox_kernel.notebook.no_score import keep
from pybox_kernel.render.class_table import ClassReport, to_csv, to_html, to_text
from pybox_kernel.signing.keys import SigningKeys
from pybox_kernel.signing.statement import Claim, Ran
from tests.hostile_notebooks import FILES, SPECIAL
from tests.statements import STATED, Author, Cell

CONTROLS = re.compile(r"(?!\n|\r\n)[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")

RAN = Ran(
    id="1d" * 16,
    tone="warn",
    verdict="⚠ Ended with an error",
    time="0.3 of 2 s",
    memory="-",
    notes="2 things withheld",
)


def code(source: str, number: int | None = None, outputs: Any = ()) -> dict[str, Any]:
    listed = list(outputs) if isinstance(outputs, (list, tuple)) else outputs
    return {"cell_type": "code", "metadata": {}, "source": source, "execution_count": number, "outputs": listed}


def put(path: Path, *cells: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}))
    return path


def stated(ran: Ran | None, *, signed: bool) -> dict[str, Any]:
    """An output as the receipt of a cell with this statement, which says something else of the cell than is there."""
    statement = STATED.model_copy(update={"ran": ran})
    claim = Claim.made(statement, SigningKeys()) if signed else Claim(statement.text(), None, None)
    return {"output_type": "display_data", "data": {"text/plain": "x"}, "metadata": claim.metadata()}


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    monkeypatch.setenv("PYBOX_HOME", str(folder))


def lines(path: Path) -> list[tuple[str, ...]]:
    found = read(Place(path, "ada", ""), SigningKeys().ring())
    assert not found.problem
    return [(cell.cell, cell.kind, cell.ended, cell.receipt) for cell in found.cells]


# Which and whose


def test_of_a_course_of_nbgraders_the_graded_ones_are_reported_and_those_that_were_never_graded_named(
    tmp_path: Path,
) -> None:
    for folder in ("source", "release", "submitted/ada", "submitted/ben", "autograded/ada", "feedback/ada"):
        put(tmp_path / folder / "ps1" / "a.ipynb")
    put(tmp_path / "autograded" / "ada" / "ps1" / ".ipynb_checkpoints" / "a.ipynb")
    (tmp_path / "autograded" / "ben" / "ps1").mkdir(parents=True)
    found = find(tmp_path)
    graded = tmp_path / "autograded" / "ada" / "ps1" / "a.ipynb"
    assert found.notebooks == [Place(graded, "ada", "ps1")]
    assert found.not_graded == [Place(tmp_path / "submitted" / "ben" / "ps1", "ben", "ps1")]
    for folder in ("autograded", "autograded/ada", "autograded/ada/ps1"):
        assert find(tmp_path / folder) == ([Place(graded, "ada", "ps1")], [], [])


def test_where_nothing_of_a_course_was_graded_yet_every_submission_is_named_and_why_where_that_is_known(
    tmp_path: Path,
) -> None:
    for student in ("ada", "ben", "cy"):
        put(tmp_path / "submitted" / student / "ps1" / "a.ipynb")
    (tmp_path / "submitted" / "cy" / "ps1" / "a.ipynb").write_text("{")
    (tmp_path / "submitted" / "dee" / "ps1").mkdir(parents=True)
    (tmp_path / "gradebook.db").touch()
    keep(tmp_path / "autograded" / "ada" / "ps1", "The engine said \x1b[2Jno.\nGo on.")
    found = find(tmp_path)
    assert found.notebooks == found.left_out == []
    why = {place.student: why_not_graded(place) for place in found.not_graded}
    assert why.pop("ada").startswith("The engine said \\x1b[2Jno.")
    assert why == {
        "ben": "",
        "cy": "a.ipynb is not a notebook: its text is not the JSON of one.",
        "dee": "No notebook was submitted.",
    }


def test_in_any_other_folder_a_notebook_is_of_the_folder_it_lies_in_or_of_its_own_name(tmp_path: Path) -> None:
    put(tmp_path / "ada" / "x" / "a.ipynb")
    put(tmp_path / "ben.ipynb")
    assert [place.student for place in find(tmp_path).notebooks] == ["ada", "ben"]
    assert find(tmp_path / "ben.ipynb").notebooks == [Place(tmp_path / "ben.ipynb", "ben", "")]


def test_links_and_deep_folders_are_named_and_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "class"
    put(tmp_path / "elsewhere" / "a.ipynb")
    put(folder.joinpath("ada", *["x"] * (DEEPEST + 1), "a.ipynb"))
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    (folder / "link.ipynb").symlink_to(tmp_path / "elsewhere" / "a.ipynb")
    (folder / "loop").symlink_to("loop")
    ben = put(folder / "ben.ipynb")
    found = find(folder)
    assert [place.path for place in found.notebooks] == [ben]
    assert len(found.left_out) == 3
    assert {f"{folder / name}: a link" for name in ("link", "link.ipynb")} < set(found.left_out)
    assert any("folders deep" in text for text in found.left_out)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OptionError):
        find(tmp_path / "nowhere")


# What stands in one


def test_a_cell_that_was_never_run_is_told_and_one_without_a_program_is_not(tmp_path: Path) -> None:
    path = put(tmp_path / "a.ipynb", code("1 + 1"), code(""), code(" \n"))
    assert lines(path) == [("1", "never run", "Never run", "")]


@pytest.mark.parametrize("tags", [["x", "skip-execution"], "skip-execution"])
def test_that_a_file_has_a_cell_skipped_is_told_of_cell_and_notebook(tags: object, tmp_path: Path) -> None:
    path = put(tmp_path / "a.ipynb", {**code("1 + 1"), "metadata": {"tags": tags}}, code("2", 1))
    found = read(Place(path, "ada", "ps1"), SigningKeys().ring())
    assert found.cells[0].besides == "its file has it skipped (skip-execution)"
    assert "skipped: in ada · ps1 · a.ipynb." in to_text(ClassReport([found]))
    assert "skipped" not in to_text(ClassReport([read(Place(put(path, code("1")), "ada", ""), SigningKeys().ring())]))


def test_a_receipt_that_was_not_made_here_is_what_its_file_says(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.ipynb", code("1", 1, [stated(RAN, signed=False)]), code("2", 2, [stated(RAN, signed=True)])
    )
    assert lines(path) == [
        ("1 [1]", "not well", "Ended with an error", "not made here"),
        ("2 [2]", "not well", "Ended with an error", "altered"),
    ]
    first, second = read(Place(path, "ada", ""), SigningKeys().ring()).cells
    assert first.told == second.told == "its file says: Ended with an error"
    assert (first.time, first.memory, first.notes) == ("0.3 of 2 s", "", "2 things withheld")
    assert not first.is_plain


def test_what_the_program_says_of_its_error_is_told_in_marks_and_what_pybox_says_is_not(tmp_path: Path) -> None:
    shown = [("NameError", "name 'f' is ‘not’ defined\nat all"), ("Odd\x1b", ""), ("PyBoxDeadline", "Stopped")]
    cells = [
        code(
            "f()",
            1,
            [{"output_type": "error", "ename": name, "evalue": said, "traceback": []}, stated(RAN, signed=True)],
        )
        for name, said in shown
    ]
    found = read(Place(put(tmp_path / "a.ipynb", *cells), "ada", ""), SigningKeys().ring())
    assert [cell.notes.removeprefix("2 things withheld") for cell in found.cells] == [
        "; it says ‘NameError: name 'f' is 'not' defined’",
        "; it says ‘Odd\\x1b’",
        "",
    ]


def test_a_word_to_pybox_is_no_cell_of_the_report_and_what_only_says_so_is_one(tmp_path: Path) -> None:
    author = Author(SigningKeys())
    made = author.cell(Cell("%pybox use", [], None))
    assert lines(put(tmp_path / "a.ipynb", made)) == []
    for cell in ({**made, "source": "1 / 0"}, code("1 / 0", 1, [stated(None, signed=False)])):
        [(_, kind, ended, receipt)] = lines(put(tmp_path / "a.ipynb", cell))
        assert (kind, ended) == ("not known", "Not known")
        assert receipt in ("altered", "not made here")


def test_a_program_that_was_left_out_below_a_line_that_asks_for_help_was_never_run(tmp_path: Path) -> None:
    author = Author(SigningKeys())
    made = [author.cell(Cell(source, [], None)) for source in ("%%pybox --help\n1 / 0", "%%pybox --help", "%%pybox?")]
    [(name, kind, ended, receipt)] = lines(put(tmp_path / "a.ipynb", *made))
    assert (name, kind, receipt) == ("1 [1]", "never run", "")
    assert "asks for help" in ended
    assert lines(put(tmp_path / "a.ipynb", Author(SigningKeys()).cell(Cell("%%pybox --gone\n1", [], None)))) == []


def test_a_program_that_begins_far_below_is_one(tmp_path: Path) -> None:
    assert lines(put(tmp_path / "a.ipynb", code("\n" * 5000 + "1 / 0"))) == [("1", "never run", "Never run", "")]


def test_outputs_without_a_receipt_are_not_known_and_their_error_is_named_safely(tmp_path: Path) -> None:
    error = {"output_type": "error", "ename": "\x1b[2J<b>=1", "evalue": "", "traceback": []}
    path = put(tmp_path / "a.ipynb", code("1", 1), code("2", None, [error]), code("3", 3, ["odd"]), code("4", 4, 17))
    kinds = [(kind, receipt) for _, kind, _, receipt in lines(path)]
    assert kinds == [("not known", "no receipt")] * 4
    assert "\x1b" not in lines(path)[1][2]


def test_texts_of_a_file_are_bounded_and_made_safe(tmp_path: Path) -> None:
    wild = "\x1b]0;x\x07\u202e" * 1000
    long = RAN.model_copy(update={"verdict": wild[:900], "time": wild[:900], "notes": wild[:900]})
    path = put(tmp_path / "a.ipynb", code(wild, 1, [stated(long, signed=False)]))
    [cell] = read(Place(path, wild, wild), SigningKeys().ring()).cells
    for text in cell:
        assert len(text) <= 400
        assert not set(text) & set("\x1b\x07\u202e")


def test_of_a_corpus_of_hostile_files_nothing_is_believed_and_every_one_is_reported(tmp_path: Path) -> None:
    for file in (file for file in FILES if "huge" not in file.name):  # of those, ``signing.receipt_check`` has a test
        path = tmp_path / "corpus" / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data())
    for special in SPECIAL:
        special.make(tmp_path / "corpus")
    found = find(tmp_path / "corpus")
    ring = SigningKeys().ring()
    assert len(found.notebooks) > 40
    submissions = [read(place, ring) for place in found.notebooks]
    report = ClassReport(submissions, left_out=found.left_out)
    assert not [line for read_one in submissions for line in read_one.cells if line.receipt == "as made here"]
    for made in (to_text(report, every_cell=True), to_html(report), to_csv(report)):
        assert not CONTROLS.search(made)
        made.encode()


# The command


@pytest.mark.parametrize("text", ["", "[]", "{", '{"cells": 1}', "[" * 100_000, '{"nbformat": 3}', "\ud800", "nul\0l"])
def test_a_malformed_file_is_named_with_its_problem_and_the_others_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    put(tmp_path / "ada" / "good.ipynb", code("1"))
    (tmp_path / "bad.ipynb").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert main(["report", str(tmp_path)]) == 2
    written = capsys.readouterr().out
    assert "■ ada · good.ipynb: no cell of it was run" in written
    assert "■ bad · bad.ipynb: It is " in written


def test_a_folder_without_notebooks_is_wrong_usage_and_not_a_class_with_nothing_to_look_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert f"There is no notebook in {tmp_path}." in capsys.readouterr().err


def test_a_pipe_named_as_a_notebook_holds_nothing_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "a.ipynb")
    assert main(["report", str(tmp_path)]) == 2
    assert "a.ipynb" in capsys.readouterr().out


def test_files_are_written_over_only_where_they_are_earlier_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "class" / "a.ipynb", code("1"))
    page, table, other = tmp_path / "r.html", tmp_path / "r.csv", tmp_path / "mine.html"
    for _ in range(2):
        assert main(["report", str(tmp_path / "class"), "--html", str(page), "--csv", str(table)]) == 0
    assert page.read_text().startswith("<!doctype html>")
    assert table.read_text().startswith("student,")
    other.write_text("mine")
    link = tmp_path / "link.html"
    link.symlink_to(tmp_path / "nowhere")
    for target in (other, link, tmp_path, table):
        assert main(["report", str(tmp_path / "class"), "--html", str(target)]) == 2
    assert other.read_text() == "mine"
    assert "no report of this kind" in capsys.readouterr().err
