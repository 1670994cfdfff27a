"""Every wall, in the words that a person reads."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest

from pybox_kernel.notebook.failures import failure
from pybox_kernel.receipt.model import WallKind
from pybox_kernel.render.advice import LESS_DATA, WALLS, advice, little_processor, longer_limit
from pybox_kernel.render.words import words
from pybox_kernel.running.runner import ProgramError, RunResult
from pybox_kernel.safe_display.text import safe_name, safe_text
from tests.receipts import ended, receipt, samples

TOLD = {
    ("module", "numpy.linalg", None): "There is no module ‘numpy.linalg’ in this box: "
    "it has Python's standard library alone. Put this line first in the cell: %%pybox --image data "
    "(at a shell, add --image data). That image is made once, by `pybox-kernel setup --yes --with data`.",
    ("module", "sklearn", None): "There is no module ‘sklearn’ in this box: it has Python's standard library alone. "
    "Put this line first in the cell: %%pybox --image class (at a shell, add --image class). "
    "That image is made once, by `pybox-kernel image build class --yes`.",
    ("module", "turtle", None): "There is no module ‘turtle’ in this box: it has Python's standard library alone. "
    "It needs a screen, which a box does not have.",
    (
        "module",
        "attrs",
        None,
    ): "There is no module ‘attrs’ in this box: it has Python's standard library alone. If it is "
    "a package, name it and those it is used with in a file requirements.txt, and run `pybox-kernel image build mine "
    "--from requirements.txt --yes`. Then put this line first in the cell: %%pybox --image mine "
    "(at a shell, add --image mine).",
    ("name", "df", 3): "Cell [3] defines ‘df’, but each cell runs in a fresh box that knows nothing of the others. "
    "Copy what defines it into this cell.",
    ("file", "data/x.csv", None): "There is no ‘data/x.csv’ in this box: it has none of your files, and starts empty. "
    "To have a copy of one of yours in it, put this line first in the cell: %%pybox --input PATH "
    "(at a shell, add --input PATH).",
    ("file", "", None): "There is no such file in this box: it has none of your files, and starts empty. "
    "To have a copy of one of yours in it, put this line first in the cell: %%pybox --input PATH "
    "(at a shell, add --input PATH).",
    ("read_only", "/usr/x", None): "‘/usr/x’ cannot be used like that: in a box a program can write to its "
    "working folder and to /tmp alone. "
    "Use a name without a folder: open('result.txt', 'w').",
    ("full", "", None): "No room is left: a box has 8 MB in its working folder and 8 MB in /tmp, and 1,024 files in "
    "each. Write less, or delete what is no longer needed. For 64 MB in its working folder, put this line first "
    "in the cell: %%pybox --output DIR (at a shell, add --output DIR).",
    ("network", "example.org", None): "A box has no network: nothing can be fetched or sent. "
    "Put the data into the cell, as text.",
    ("input", "", None): "Nobody can type into a box: it has no keyboard. "
    "Write the answer in place of input(), as in answer = 'yes'.",
    ("memory", "", None): "A box has 128 MB of memory in all. Less data at a time.",
    ("tasks", "", None): "A box may have 32 processes and threads at once. Fewer processes or threads at once.",
    ("files_open", "", None): "A program in a box may have 128 files open at once. "
    "Close each when it is done with: with open(...) as file.",
    ("forbidden", "", None): "A box may not allow this request to the operating system.",
    ("magic", "!ls", None): "A box runs plain Python, with few of IPython's % commands and no ! commands.",
}


def met(kind: str, what: str = "", cell: int | None = None, **changes: Any) -> Any:
    wall = {"kind": kind, "what": what, "cell": cell}
    failed = {"observed__end": ended("exited", code=1), "said__completed": False, "said__error": "SomeError"}
    return receipt(**failed, said__wall=wall, **changes)


@pytest.mark.parametrize(("wall", "text"), TOLD.items(), ids=lambda value: value[0] if isinstance(value, tuple) else "")
def test_each_wall_is_told_in_a_sentence_and_what_to_do_in_another(wall: tuple[Any, ...], text: str) -> None:
    found = met(*wall)
    assert str(advice(found)) == text
    assert dict(words(found).main)["try"] == (text,)
    assert len(text) < 400


def test_every_kind_of_wall_has_its_words() -> None:
    assert set(WALLS) == set(get_args(WallKind)) == {kind for kind, *_ in TOLD}


def test_another_image_is_named() -> None:
    image = {"name": "class", "id": "sha256:" + "1b" * 32, "recipe_sha256": "2c" * 32, "base": "Debian 12"}
    told = advice(met("module", "scipy", run__image=image))
    assert str(told).startswith("There is no module ‘scipy’ in this box: it has those of its image, class. ")


def test_memory_that_ran_out_and_the_time_limit_are_told_with_what_to_do_as_well() -> None:
    assert LESS_DATA in dict(words(samples()["killed_for_memory"]).main)["try"]
    assert longer_limit(2, 30) in dict(words(samples()["deadline"]).main)["try"]
    assert longer_limit(30, 30) == "Less work at a time."


def test_a_program_that_had_little_of_its_processor_time_at_its_limit_is_told_so() -> None:
    busy = (
        "It had the processor for 0.2 of 1 s: if it did not sleep or wait, this computer may be busy, so run it again."
    )
    sample = samples()["deadline_on_a_busy_computer"]
    assert dict(words(sample).main)["try"] == (busy, longer_limit(2, 30))
    told = failure(RunResult(sample, safe_text(""), safe_text(""), None))
    assert told is not None
    assert told.traceback[-2] == f"PyBox: it {busy.removeprefix('It ')}"
    enough = receipt(observed__end=ended("deadline"), observed__meters__cpu_seconds=0.4)
    assert little_processor(enough) == ""
    assert little_processor(samples()["clean"]) == ""


def test_a_cells_error_ends_with_what_to_do() -> None:
    told = ProgramError(
        safe_name("ModuleNotFoundError"), safe_text("No module named 'numpy'"), safe_text("Traceback\n")
    )
    found = failure(RunResult(met("module", "attrs"), safe_text(""), safe_text(""), told))
    assert found is not None
    assert found.traceback[-1] == f"\nPyBox: {TOLD['module', 'attrs', None]}"
    found = failure(RunResult(samples()["deadline"], safe_text(""), safe_text(""), None))
    assert found is not None
    assert found.traceback[-1:] == [
        "PyBox: for a longer limit, put this line first in the cell: %%pybox --timeout 30",
    ]


@pytest.mark.parametrize("kind", [kind for kind, what, _ in TOLD if what])
def test_a_name_of_the_programs_choice_cannot_become_a_sentence_of_pyboxs(kind: str) -> None:
    forged = "a’ is broken; run `pip install x` in a terminal, it is not \x1b[2J\n" + "b" * 500
    text = str(advice(met(kind, forged)))
    assert not {"\x1b", "\n"} & set(text)
    assert len(text) < 400
    outside = re.sub("‘[^’]*’", "", text)
    assert "pip install" not in outside
    assert "broken" not in outside
