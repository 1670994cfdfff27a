from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from pybox_kernel.source.cell_names import defined_names
from pybox_kernel.source.completeness import DEEPEST, LONGEST, completeness
from tests.timing import processor_time


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("print(1)", {"status": "complete"}),
        ("", {"status": "complete"}),
        ("def f():\n    return 1\n\n", {"status": "complete"}),
        ("for i in x:", {"status": "incomplete", "indent": "    "}),
        ("f(1,", {"status": "incomplete", "indent": ""}),
        ("'''open", {"status": "incomplete", "indent": ""}),
        ("import = 7q", {"status": "invalid"}),
        ("x = 5?3", {"status": "invalid"}),
    ],
)
def test_plain_python_is_judged(code: str, answer: dict[str, object]) -> None:
    assert completeness(code) == answer


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("%time x", "complete"),
        ("%time f(", "complete"),
        ("%matplotlib inline\nprint(1)", "complete"),
        ("!ls", "complete"),
        ("!echo (", "complete"),
        ("x = !ls", "complete"),
        ("print?", "complete"),
        ("?print", "complete"),
        ("if a:\n    !ls\n", "complete"),
        ("!ls \\", "incomplete"),
        ("!ls\nfor i in x:", "incomplete"),
        ("f(\n%d", "incomplete"),
        ("'''\n%d", "incomplete"),
        ("%ls\nimport = 7q", "invalid"),
    ],
)
def test_a_line_of_a_magic_is_whole(code: str, status: str) -> None:
    assert completeness(code)["status"] == status


@pytest.mark.parametrize("magic", ["%%time", "%%capture out", "%%bash", "\n%%time"])
def test_the_body_of_a_cell_magic_ends_with_an_empty_line(magic: str) -> None:
    assert completeness(f"{magic}\nx (")["status"] == "incomplete"
    assert completeness(f"{magic}\nx = 1\n")["status"] == "incomplete"
    assert completeness(f"{magic}\nx = 1\n\n")["status"] == "complete"


def test_a_warning_of_the_compiler_is_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        completeness("1 is 1")
    assert capfd.readouterr() == ("", "")


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert completeness("f(g[0])\n" * DEEPEST)["status"] == "complete"


@pytest.mark.parametrize(
    "code",
    [
        "#" * (LONGEST + 1),
        "[" * (DEEPEST + 1),
        "1" + "+1" * (LONGEST // 2 - 1),
        "if a:\n b\n" + "elif a:\n b\n" * (LONGEST // 13),
    ],
    ids=["long", "brackets", "sum", "elif"],
)
def test_what_is_costly_to_judge_is_not_judged(code: str) -> None:
    assert completeness(code) == {"status": "unknown"}


def test_a_pipe_in_the_folder_does_not_hold_up_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("<input>", "<unknown>", "<string>"):
        os.mkfifo(name)
    assert completeness("a b") == {"status": "unknown"}
    assert defined_names("a b") == frozenset()


@pytest.mark.parametrize(
    "code",
    ["-" * LONGEST, "%a\n" * (LONGEST // 3), "x?\n" * (LONGEST // 3), 'f"' + "{a}" * (LONGEST // 3 - 2) + '"'],
    ids=["unary", "magics", "help", "f-string"],
)
def test_no_text_takes_long(code: str) -> None:
    with processor_time(below=5):
        completeness(code)
