"""What the corpus of hostile notebook files is made with, and the lists that it is put into."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

__all__ = [
    "FILES",
    "SPECIAL",
    "HostileFile",
    "Special",
    "add",
    "code",
    "document",
    "markdown",
    "one_code",
    "one_markdown",
    "special",
]


class HostileFile(NamedTuple):
    name: str
    """Its path in the corpus' folder."""
    tries: str
    data: Callable[[], bytes]
    """Made when it is asked for, since some are large."""
    problem: str
    """Part of why it cannot be copied; empty where it can."""


class Special(NamedTuple):
    """What is no plain file."""

    name: str
    tries: str
    make: Callable[[Path], None]
    """In the folder given."""
    problem: str


FILES: Final[list[HostileFile]] = []
SPECIAL: Final[list[Special]] = []
PYTHON: Final = {"kernelspec": {"name": "python3", "display_name": "PyBox (sealed)", "language": "python"}}
"""Of every document where nothing else is said: it asks for a kernel that is not sealed, by the name of one that is."""


def add(name: str, tries: str, content: object, problem: str = "") -> None:
    """``content``: a document, or the bytes of the file, or what makes them."""

    def data() -> bytes:
        made = content() if callable(content) else content
        return made if isinstance(made, bytes) else json.dumps(made).encode()

    FILES.append(HostileFile(name if name.endswith(".ipynb") else f"{name}.ipynb", tries, data, problem))


def special(name: str, tries: str, make: Callable[[Path], None], problem: str) -> None:
    SPECIAL.append(Special(name, tries, make, problem))


def document(*cells: object, metadata: object = PYTHON, **others: object) -> dict[str, Any]:
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": list(cells), **others}


def markdown(source: object, **others: object) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": "m", "metadata": {}, "source": source, **others}


def code(source: object = "1 + 1", outputs: object = (), **others: object) -> dict[str, Any]:
    shown = list(outputs) if isinstance(outputs, tuple) else outputs
    cell = {"cell_type": "code", "id": "c", "metadata": {}, "source": source, "outputs": shown, "execution_count": 1}
    return {**cell, **others}


def one_markdown(name: str, tries: str, source: str) -> None:
    add(name, tries, document(markdown(source), code()))


def one_code(name: str, tries: str, *outputs: object) -> None:
    add(name, tries, document(code(outputs=outputs)))
