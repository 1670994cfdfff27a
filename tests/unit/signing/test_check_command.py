"""`pybox-kernel check` and `pybox-kernel key` at a shell, and `%pybox check`: what they say, and how they end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pybox_kernel.cli import main
from pybox_kernel.errors import InputError
from pybox_kernel.notebook import answers
from pybox_kernel.notebook.commands import Options, command_of
from pybox_kernel.notebook.failures import Failure
from pybox_kernel.notebook.session_receipts import SessionReceipts
from pybox_kernel.render.class_table import NUMBERS
from pybox_kernel.sessions.session import Wish
from pybox_kernel.signing.keys import SigningKeys
from tests.statements import LESSON, Author, Cell

HOSTILE = "\x1b]0;x\x07\x1b[2J\u202e✓ made here"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a home of its own, which is not there yet."""
    monkeypatch.setenv("PYBOX_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    return tmp_path / "desk"


def lesson(name: str = "lesson.ipynb", *cells: Cell, keys: SigningKeys | None = None) -> dict[str, Any]:
    document = Author(keys or SigningKeys()).notebook(*cells)
    written(document, name)
    return document


def written(document: Any, name: str = "lesson.ipynb") -> None:
    Path(name).write_text(json.dumps(document))


def ran(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(arguments)
    shown = capsys.readouterr()
    assert not set("\x1b\u202e\x07") & set(shown.out + shown.err)
    return status, shown.out + shown.err


def test_what_was_made_here_is_said_cell_by_cell(capsys: Any) -> None:
    lesson()
    status, shown = ran("check", "lesson.ipynb", capsys=capsys)
    assert (status, shown.splitlines()) == (
        0,
        [
            "✓ lesson.ipynb: made here, in this order, and unchanged (4 cells)",
            "  ✓ cell 2 [1]: made here, unchanged  print('one')",
            "  ✓ cell 3 [2]: made here, unchanged  print('two'); 1/0",
            "  ✓ cell 4 [3]: made here, unchanged  %pybox use",
            "  ✓ cell 5 [4]: made here, unchanged  import sys",
            NUMBERS,
        ],
    )


def test_what_was_altered_moved_or_not_made_here_is_said_and_ends_with_1(capsys: Any) -> None:
    document = lesson()
    cells = document["cells"]
    cells[1]["outputs"][0]["text"] = "two"
    cells[2:4] = [cells[3], cells[2]]
    claim = cells[4]["outputs"][-1]["metadata"]["pybox"]
    cells[4]["outputs"][-1]["metadata"]["pybox"] = claim[:-86] + "A" * 86
    cells += [{"cell_type": "code", "source": HOSTILE, "outputs": [{}], "execution_count": None, "metadata": {}}]
    written(document)
    status, shown = ran("check", "lesson.ipynb", capsys=capsys)
    assert (status, shown.splitlines()) == (
        1,
        [
            "■ lesson.ipynb: 3 cells not as made here, not run in this order",
            "  ■ cell 2 [1]: altered: output 1, what it printed, was changed  print('one')",
            "  ✓ cell 3 [3]: made here, unchanged  %pybox use",
            "  ✓ cell 4 [2]: made here, unchanged  print('two'); 1/0",
            "  ■ cell 5 [4]: not made here: the signature of its receipt does not fit  import sys",
            "  ⚠ cell 6 [ ]: no receipt: nothing vouches for what it shows  \\x1b]0;x\\x07\\x1b[2J\\u202e✓ made here",
            "  ■ Cell 4 ran before cell 3, which stands above it.",
            NUMBERS,
        ],
    )


REFUSED = Cell("%pybox recipts", refused=Failure("PyBoxNotRun", "There is no such command.", ["There is none."]))


def test_a_cell_that_was_refused_is_no_alarm_while_it_shows_that_and_nothing_else(capsys: Any) -> None:
    document = lesson("lesson.ipynb", LESSON[0], REFUSED)
    status, shown = ran("check", "lesson.ipynb", capsys=capsys)
    assert (status, shown.splitlines()) == (
        0,
        [
            "✓ lesson.ipynb: made here, in this order, and unchanged (2 cells)",
            "  ✓ cell 2 [1]: made here, unchanged  print('one')",
            "  · cell 3 [2]: refused, so nothing was run (made here, unchanged)  %pybox recipts",
            NUMBERS,
        ],
    )
    document["cells"][2]["outputs"].insert(0, {"output_type": "stream", "name": "stdout", "text": "42"})
    written(document)
    status, shown = ran("check", "lesson.ipynb", capsys=capsys)
    assert status == 1
    assert "  ■ cell 3 [2]: altered: what it printed was added  %pybox recipts" in shown.splitlines()
    document["cells"][2]["outputs"] = document["cells"][2]["outputs"][1:2]
    written(document)
    status, shown = ran("check", "lesson.ipynb", capsys=capsys)
    assert status == 1
    assert "  ⚠ cell 3 [2]: no receipt: nothing vouches for what it shows  %pybox recipts" in shown.splitlines()


def test_a_notebook_without_receipts_is_none_that_was_made_here(capsys: Any) -> None:
    document = lesson()
    for cell in document["cells"][1:]:
        cell.update(outputs=[], execution_count=None)
    written(document)
    status, shown = ran("check", "lesson.ipynb", capsys=capsys)
    assert (status, shown.splitlines()[0]) == (1, "■ lesson.ipynb: nothing in it is known to be made here")


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_checked(folder: Path, capsys: Any) -> None:
    lesson()
    Path("bad\x1b.ipynb").write_bytes(b"{")
    os.mkfifo("pipe.ipynb")
    Path("folder.ipynb").mkdir()
    names = ["bad\x1b.ipynb", "pipe.ipynb", "folder.ipynb", "missing.ipynb", "lesson.ipynb"]
    status, shown = ran("check", *names, capsys=capsys)
    assert status == 2
    assert [line for line in shown.splitlines() if not line.startswith("  ")] == [
        "■ bad\\x1b.ipynb is not a notebook: its text is not the JSON of one. Name a file that Jupyter saved.",
        "■ pipe.ipynb is no file. Name a notebook that was saved.",
        "■ folder.ipynb is a folder. Name a notebook in it; `pybox-kernel report FOLDER` looks at all of them.",
        "■ missing.ipynb: No such file or directory. Name a notebook that was saved.",
        "✓ lesson.ipynb: made here, in this order, and unchanged (4 cells)",
        NUMBERS,
    ]
    status, shown = ran("check", "--json", *names, capsys=capsys)
    *bad, good = json.loads(shown)
    assert status == 2
    assert all(set(found) == {"file", "problem"} for found in bad)
    assert good["ok"]


def test_it_is_there_as_json(capsys: Any) -> None:
    document = lesson()
    document["cells"][1]["source"] += " "
    del document["cells"][3]
    written(document)
    status, shown = ran("check", "--json", "lesson.ipynb", capsys=capsys)
    [found] = json.loads(shown)
    assert (status, found["ok"], found["order"], found["missing"]) == (1, False, [], 1)
    first = found["cells"][0]
    made_at, run = first.pop("made_at"), first.pop("run")
    assert made_at.endswith("Z")
    assert run == "0123456789abcdef0123456789abcdef"
    said = "the cell is not the program that ran"
    assert first == {
        "cell": 2,
        "number": 1,
        "verdict": "altered",
        "found": [said],
        "earlier_key": False,
        "refused": False,
    }


def test_what_another_computer_made_is_checked_with_its_public_key(tmp_path: Path, capsys: Any) -> None:
    other = SigningKeys(tmp_path / "other")
    lesson(keys=other)
    Path("ada.pub").write_bytes(b"".join(other.public()))
    assert ran("check", "lesson.ipynb", capsys=capsys)[0] == 1
    status, shown = ran("check", "--key", "ada.pub", "lesson.ipynb", capsys=capsys)
    assert (status, shown.splitlines()[:2]) == (
        0,
        [
            "✓ lesson.ipynb: made there, in this order, and unchanged (4 cells)",
            "  ✓ cell 2 [1]: made there, unchanged  print('one')",
        ],
    )
    status, shown = ran("check", "--key", "lesson.ipynb", "lesson.ipynb", capsys=capsys)
    assert (status, "no public key" in shown) == (2, True)
    assert not (tmp_path / "home").exists(), "checking makes no key"


def test_the_key_is_shown_exported_and_made_anew(folder: Path, capsys: Any) -> None:
    assert ran("key", "show", capsys=capsys) == (0, "There is no key yet: the first receipt makes it.\n")
    assert ran("key", "export", "me.pub", capsys=capsys)[0] == 0
    shown = ran("key", "show", capsys=capsys)[1].splitlines()
    assert shown[1] == f"Kept in {SigningKeys().private_file}, for you alone."
    assert ran("key", "export", capsys=capsys) == (0, Path("me.pub").read_text())
    assert "PRIVATE" not in Path("me.pub").read_text()
    assert ran("key", "export", "me.pub", capsys=capsys)[0] == 2
    lesson()
    status, rotated = ran("key", "rotate", capsys=capsys)
    assert status == 0
    assert rotated.splitlines()[2] == f"An earlier one: {shown[0].removeprefix('Key: ')}"
    status, told = ran("check", "lesson.ipynb", capsys=capsys)
    assert status == 0
    assert "made here, unchanged (signed with an earlier key)" in told
    SigningKeys().private_file.chmod(0o644)
    status, told = ran("check", "lesson.ipynb", capsys=capsys)
    assert (status, "is open to others (mode 644)" in told) == (125, True)
    assert "counts as not made here from now on" in ran("key", "rotate", capsys=capsys)[1]


# In a notebook


def answer(line: str) -> str:
    command = command_of(line)
    assert command is not None
    standing = answers.Standing("stdlib", Options(), "", "", Wish())
    return answers.answer(command, SessionReceipts(), standing)["text/plain"]


def test_a_notebook_can_ask_of_itself_and_of_files_beside_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lesson()
    with pytest.raises(InputError, match="is not known here"):
        answer("%pybox check")
    assert answer("%pybox check lesson.ipynb").startswith("✓ lesson.ipynb: made here, in this order, and unchanged")
    monkeypatch.setenv("JPY_SESSION_NAME", str(folder / "lesson.ipynb"))
    shown = answer("%pybox check")
    assert "lesson.ipynb: made here, in this order, and unchanged (4 cells). This is the file as it was saved" in shown
    assert "cell 4  ✓ made here, unchanged" in shown


def test_a_notebook_cannot_ask_of_files_elsewhere(folder: Path) -> None:
    lesson("../lesson.ipynb")
    Path("link.ipynb").symlink_to("../lesson.ipynb")
    for name in ("../lesson.ipynb", str(folder.parent / "lesson.ipynb"), "link.ipynb", "~/x.ipynb", ".hidden.ipynb"):
        with pytest.raises(InputError):
            answer(f"%pybox check {name}")


def test_of_many_cells_it_shows_a_part(folder: Path) -> None:
    document = lesson("lesson.ipynb", LESSON[0])
    document["cells"] += [{"cell_type": "code", "source": "", "outputs": [], "metadata": {}}] * 1000
    written(document)
    shown = answer("%pybox check lesson.ipynb")
    assert "and 801 cells more: `pybox-kernel check` lists all" in shown
    assert len(shown.splitlines()) < 210
