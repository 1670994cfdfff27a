"""A corpus of hostile notebook files, each with what it tries: to act when it is opened, or to break what reads it.

``write_corpus(folder)`` writes all of them. A payload that gets its way calls ``bite``, asks for something below
``LEAK``, or starts ``python3``. Another module adds to the corpus with ``add`` and is named in ``MODULES``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final

from tests.hostile_notebooks.making import FILES, SPECIAL, HostileFile

__all__ = ["FILES", "MODULES", "SPECIAL", "HostileFile", "write_corpus"]

MODULES: Final = ("contents", "documents", "names", "receipts")
for module in MODULES:
    import_module(f"{__name__}.{module}")


def write_corpus(folder: Path) -> None:
    """All of it, in a new folder."""
    folder.mkdir()
    for file in FILES:
        path = folder / file.name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(file.data())
    for special in SPECIAL:
        special.make(folder)
