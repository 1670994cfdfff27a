"""``pybox-kernel open --only-copy``: what it says, what it leaves, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pybox_kernel.cli import main
from tests.hostile_notebooks.making import code, document, markdown

HOSTILE = document(markdown("![p](http://a.b/c.png)"), code(outputs=({"output_type": "stream", "text": "x"},)))


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYBOX_HOME", str(tmp_path / "home"))
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "a.ipynb").write_text(json.dumps(HOSTILE))
    return folder


def opened(*arguments: object) -> int:
    return main(["open", *map(str, arguments), "--only-copy"])


def test_each_notebook_has_a_line_and_the_listing_the_details(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (given / "more.zip").write_bytes(b"PK")
    assert opened(given) == 0
    assert capsys.readouterr().out.splitlines() == [
        "✓ a.ipynb: 2 cells; removed or made plain: 1 kernel setting, 1 output, 1 picture",
        "",
        "1 notebook copied.",
        "1 file of other kinds not copied.",
        "Not looked into: more.zip. To open notebooks in there, unpack it first.",
        f"The copies are in {given}-opened; what-was-removed.txt there has the details.",
    ]
    listing = (given.with_name("given-opened") / "what-was-removed.txt").read_text()
    assert "    notebook, kernel setting: python3\n" in listing
    assert "    cell 1, picture: ![p](http://a.b/c.png)\n" in listing
    assert "    cell 2, output: stream\n" in listing


def test_a_file_that_is_no_notebook_is_named_and_the_status_says_so(
    given: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (given / "b\x1b[2J.ipynb").write_text("x")
    assert opened(given) == 1
    said = capsys.readouterr().out
    assert "✗ b\\x1b[2J.ipynb: not copied. It is not a notebook: it is no JSON, in line 1.\n" in said
    assert "1 notebook copied, 1 not." in said


def test_who_sent_something_else_or_nothing_is_named(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("ada/x", "ben/x", "cy"):
        (given / name).mkdir(parents=True)
    (given / "ada" / "x" / "a.ipynb").write_text(json.dumps(HOSTILE))
    (given / "ben" / "x" / "a.pdf").write_bytes(b"%PDF")
    assert opened(given) == 0
    assert "\nFolders without a notebook: ben, cy.\n" in capsys.readouterr().out


def test_who_sent_nothing_is_named_also_where_another_folder_lies_too_deep_to_be_looked_at(
    given: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given.joinpath("ada", *["x"] * 20).mkdir(parents=True)
    (given / "ben").mkdir()
    assert opened(given) == 0
    shown = capsys.readouterr().out
    assert "\nFolders without a notebook: ben.\n" in shown
    assert "were not looked at" in shown


def test_again_goes_on_and_says_what_was_there(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened(given)
    assert opened(given) == 0
    assert "✓ a.ipynb (copied before): 2 cells;" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("given", "given"),
        ("given", "given/copies"),
        ("given/a.ipynb", "given/a.ipynb"),
        ("given", ""),
        ("missing", "x"),
        ("given/..", "given/copies"),
        ("missing/../given", "given/copies"),
    ],
)
def test_what_cannot_be_is_wrong_usage(given: Path, path: str, target: str) -> None:
    assert opened(given.parent / path, "--to", given.parent / target) == 2
    assert [file.name for file in given.iterdir()] == ["a.ipynb"]


def test_an_image_that_is_not_there_is_wrong_usage(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert opened(given, "--image", "mine") == 2
    assert "There is no image 'mine'." in capsys.readouterr().err
    assert not given.with_name("given-opened").exists()


def test_a_folder_without_notebooks_is_wrong_usage(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (given / "a.ipynb").rename(given / "a.txt")
    assert opened(given) == 2
    assert f"There is no notebook in {given}." in capsys.readouterr().err


def test_a_path_that_ends_in_no_name_is_that_of_its_folder(given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (given / "below").mkdir()
    monkeypatch.chdir(given / "below")
    assert opened("..") == 0
    assert (given.with_name("given-opened") / "a.ipynb").exists()
    assert opened("/") == 2


def test_two_folders_whose_names_begin_alike_have_copies_of_their_own(given: Path) -> None:
    for name in ("kim.ada", "kim.ben"):
        (given / name).mkdir()
        (given / name / "a.ipynb").write_text(json.dumps(document(code(name))))
        assert opened(given / name) == 0
        assert name in (given / f"{name}-opened" / "a.ipynb").read_text()


def test_copies_of_one_folder_are_not_gone_on_with_for_another(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = given.with_name("given.ipynb")
    alone.write_text(json.dumps(document(code("other"))))
    assert opened(given) == 0
    assert opened(alone) == 2
    assert "has the copies of" in capsys.readouterr().err
    assert "other" not in (given.with_name("given-opened") / "a.ipynb").read_text()


def test_links_to_folders_are_named_and_where_there_is_nothing_nothing_is_made(
    given: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (given / "ann").symlink_to(given)
    assert opened(given) == 0
    assert "Links, which are not followed: ann." in capsys.readouterr().out
    assert opened(given.with_name("missing")) == 2
    assert not given.with_name("missing-opened").exists()
