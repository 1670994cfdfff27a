"""Copies of notebooks: all that can be copied, under harmless names, once, and never over anything."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pybox_kernel.classroom.copies import Copies, Outcome, copy_all, safe_part
from pybox_kernel.errors import OptionError
from pybox_kernel.install import DATA_KERNEL_NAME, KERNEL_NAME
from tests.hostile_notebooks import FILES, SPECIAL, write_corpus
from tests.hostile_notebooks.making import code, document

PLAIN = json.dumps(document(code("x = 1"))).encode()


@pytest.fixture
def given(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    (folder / "ann").mkdir(parents=True)
    (folder / "ann" / "a.ipynb").write_bytes(PLAIN)
    (folder / "b.ipynb").write_bytes(PLAIN)
    (folder / "data.csv").write_text("1,2")
    return folder


def copy(given: Path, told: list[Outcome] | None = None, kernel: str = KERNEL_NAME) -> Copies:
    heard = [] if told is None else told
    return copy_all(given, given.parent / "copies", given.parent / "home", kernel, heard.append)


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "given"
    write_corpus(folder)
    return folder


def test_of_a_hostile_folder_all_notebooks_are_copied_and_the_others_named_with_their_problem(corpus: Path) -> None:
    before = {path: path.lstat() for path in corpus.rglob("*")}
    copies = copy(corpus)
    made = [outcome.copied for outcome in copies.outcomes if outcome.copied.copy_name]
    problems = [outcome.copied.problem for outcome in copies.outcomes if outcome.copied.problem]
    expected = [file.problem for file in (*FILES, *SPECIAL) if file.problem]
    assert len(made) == len([file for file in FILES if not file.problem])
    assert len(problems) == len(expected)
    for part in expected:
        assert any(part in problem for problem in problems), part
    assert names(copies.folder) == {copied.copy_name for copied in made}
    assert copies.archives == ("more.zip",)
    for path, facts in before.items():
        after = path.lstat()
        assert (after.st_mode, after.st_size, after.st_mtime_ns) == (facts.st_mode, facts.st_size, facts.st_mtime_ns)


def test_no_name_of_a_copy_leads_elsewhere_hides_or_is_an_option(corpus: Path) -> None:
    for path in (corpus.parent / "copies").rglob("*"):
        assert path.name.isprintable()
        assert path.name[0] not in "-. "
        assert not set(path.name) & set("<>:\"|?*\\%#&;'`$\n")
        assert len(path.name.encode()) <= 200


def test_a_batch_that_was_interrupted_goes_on_where_it_stopped(given: Path) -> None:
    def stop(_outcome: Outcome) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_all(given, given.parent / "copies", given.parent / "home", KERNEL_NAME, stop)
    assert names(given.parent / "copies") == {"ann/a.ipynb"}
    assert [outcome.kept for outcome in copy(given).outcomes] == ["copied before", ""]
    assert names(given.parent / "copies") == {"ann/a.ipynb", "b.ipynb"}


def test_a_copy_that_was_worked_on_is_kept_and_a_lost_one_made_again(given: Path) -> None:
    folder = copy(given).folder
    (folder / "b.ipynb").write_text("mine")
    (folder / "ann" / "a.ipynb").unlink()
    assert [outcome.kept for outcome in copy(given).outcomes] == ["", "copied before"]
    assert (folder / "b.ipynb").read_text() == "mine"
    (given / "b.ipynb").write_bytes(PLAIN + b" ")
    assert [outcome.kept for outcome in copy(given).outcomes] == [
        "copied before",
        "copied before it changed; that copy is kept",
    ]


def test_asked_for_the_other_kernel_copies_get_it_and_one_that_was_worked_on_is_kept_and_says_so(given: Path) -> None:
    folder = copy(given).folder
    (folder / "b.ipynb").write_text("mine")
    for _ in range(2):
        kept = [outcome.kept for outcome in copy(given, kernel=DATA_KERNEL_NAME).outcomes]
        assert kept[1] == "worked on since; it keeps the kernel PyBox (sealed)"
    assert kept[0] == "copied before"
    assert json.loads((folder / "ann" / "a.ipynb").read_text())["metadata"]["kernelspec"]["name"] == DATA_KERNEL_NAME
    assert (folder / "b.ipynb").read_text() == "mine"
    assert names(folder) == {"ann/a.ipynb", "b.ipynb"}


def test_a_record_that_ends_early_costs_the_last_line_only(given: Path) -> None:
    copy(given)
    (record,) = (given.parent / "home" / "opened").glob("*.jsonl")
    record.write_text(record.read_text()[:-30])
    assert [outcome.kept for outcome in copy(given).outcomes] == ["copied before", ""]
    assert names(given.parent / "copies") == {"ann/a.ipynb", "b.ipynb", "b-2.ipynb"}


def test_a_folder_that_somebody_else_filled_is_refused(given: Path) -> None:
    """One that came with the notebooks, say, and looks like copies of before."""
    folder = copy(given).folder
    folder.rename(folder.with_name("moved"))
    folder.mkdir()
    (folder / "b.ipynb").write_bytes(PLAIN)
    with pytest.raises(OptionError, match="did not make what is in it"):
        copy(given)
    assert names(folder) == {"b.ipynb"}


def test_a_link_in_the_place_of_a_folder_for_copies_is_not_written_through(given: Path) -> None:
    elsewhere = given.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("x")
    (given.parent / "copies").symlink_to(elsewhere)
    with pytest.raises(OptionError, match="did not make what is in it"):
        copy(given)


def test_what_is_no_notebook_and_no_folder_is_refused(given: Path) -> None:
    for name in ("data.csv", "missing.ipynb", "missing"):
        with pytest.raises(OptionError):
            copy_all(given / name, given.parent / "copies", given.parent / "home", KERNEL_NAME, lambda _: None)


def test_one_notebook_alone_is_copied(given: Path) -> None:
    notebook, home = given / "ann" / "a.ipynb", given.parent / "home"
    copies = copy_all(notebook, given.parent / "one", home, KERNEL_NAME, lambda _: None)
    assert names(copies.folder) == {"a.ipynb"}


@pytest.mark.parametrize(
    "part", ["..", ".", "", "-", " ", "CON", "con.txt", "a\0b", "\ud800", "x" * 300, "\u3164", "HEAD"]
)
def test_a_part_of_a_name_is_made_harmless(part: str) -> None:
    made = safe_part(part)
    assert made
    assert made[0] not in ".- "
    assert len(os.fsencode(made)) <= 161
    assert made.casefold() not in ("con", "head")
