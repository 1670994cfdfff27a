from __future__ import annotations

from typing import Any

import pytest

from pybox_kernel.notebook.session_cells import MOST_NAMES, SessionCells


def matches(cells: SessionCells, code: str) -> list[str]:
    found: Any = cells.complete(code, len(code))["matches"]
    return list(found)


def test_a_name_belongs_to_the_last_cell_that_defined_it() -> None:
    cells = SessionCells()
    cells.add(1, "import math\ndf = 1")
    cells.add(2, "df = 2\ndef f(): inner = 1")
    assert dict(cells.defined) == {"math": 1, "df": 2, "f": 2}


def test_the_names_that_are_remembered_are_bounded_and_the_oldest_go() -> None:
    cells = SessionCells()
    cells.add(1, "first = 1")
    for number in range(2, 23):
        cells.add(number, "\n".join(f"n{number}_{k} = 1" for k in range(1000)))
    assert len(cells.defined) == MOST_NAMES
    assert "first" not in cells.defined
    assert "n22_999" in cells.defined


def test_names_of_earlier_cells_and_of_the_standard_library_are_offered() -> None:
    cells = SessionCells()
    assert matches(cells, "my_va") == []
    cells.add(1, "import collections\nmy_value = 1")
    assert matches(cells, "my_va") == ["my_value"]
    assert any("Counter" in found for found in matches(cells, "collections.Cou"))


@pytest.mark.parametrize(
    ("code", "words", "start"),
    [
        ("%", ["%pybox", "%%pybox"], 0),
        ("\n%%py", ["%%pybox"], 1),
        ("%pybox u", ["use"], 7),
        ("%pybox use --ti", ["--timeout"], 11),
        ("%%pybox --im", ["--image"], 8),
        ("%%pybox --re", ["--receipt"], 8),
        ("%%pybox -i", [], 8),
        ("x = 1\n%%py", [], 10),
        ("%time prin", ["print"], 6),
    ],
)
def test_words_to_pybox_are_offered_where_they_are_read_as_such(code: str, words: list[str], start: int) -> None:
    found: Any = SessionCells().complete(code, len(code))
    assert (found["matches"], found["cursor_start"], found["cursor_end"]) == (words, start, len(code))


def test_what_is_known_of_a_name_is_told_and_what_is_not_is_not_guessed() -> None:
    cells = SessionCells()
    told: Any = cells.inspect("print", 5, 0)
    assert told["found"]
    assert "print(" in told["data"]["text/plain"]
    assert cells.inspect("nobody_knows", 5, 0) == {"status": "ok", "found": False, "data": {}, "metadata": {}}


def test_inputs_are_kept_in_order_and_outputs_are_not_kept() -> None:
    cells = SessionCells()
    for number in (1, 2, 3):
        cells.add(number, f"x = {number}")
    assert cells.history(False, hist_access_type="tail", n=2, raw=True)["history"] == [(0, 2, "x = 2"), (0, 3, "x = 3")]
    assert cells.history(True, hist_access_type="tail", n=1, raw=True)["history"] == [(0, 3, ("x = 3", None))]
