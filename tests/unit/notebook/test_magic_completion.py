from __future__ import annotations

import pytest

from pybox_kernel.notebook.commands import COMMANDS, OPTIONS
from pybox_kernel.notebook.magic_completion import offered

NAMES = ("table", "_7", "total")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%pybox ", list(COMMANDS)),
        ("%pybox re", ["receipts", "receipt"]),
        ("%pybox guard ", ["on", "off"]),
        ("%pybox guard of", ["off"]),
        ("%pybox carry ", ["off", "on", "keep", "drop", "clear", "back"]),
        ("%pybox carry drop ", []),
        ("%pybox receipts ", []),
        ("%pybox use --ti", ["--timeout"]),
        ("%pybox use -", [name for name, option in OPTIONS.items() if not option.of_one_cell]),
        ("%%pybox --t", ["--timeout"]),
        ("%%pybox --timeout ", []),
        ("%%pybox --timeout 5 --t", []),
        ("%%pybox --timeout 5 --i", ["--image", "--input"]),
        ("%%pybox -i ", ["table", "total"]),
        ("%%pybox -i ta", ["table"]),
        ("%%pybox -i table to", ["total"]),
        ("%%pybox -i table --rep", ["--replace"]),
        ("%%pybox --carry o", ["on", "off"]),
        ("%%pybox --carry --ti", ["--timeout"]),
        ("%%pybox --quiet --qu", []),
        ("%%pybox", []),
        ("%%pyboxx --t", []),
        ("", []),
    ],
)
def test_words_that_could_come_next(line: str, words: list[str]) -> None:
    assert offered(line, NAMES) == words
