"""The attack catalogue, ``cases.jsonl``, and which test holds which of its cases.

A test names its cases: ``@case("time-sleep")``. A name that is no case is an error where it is written, and
``escapes/test_cases.py`` fails where a case has no test.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

__all__ = ["CASES", "HELD", "case", "snippet"]

Test = TypeVar("Test", bound=Callable[..., Any])


class Case(NamedTuple):
    """One line of the catalogue. ``snippet`` is the attack where the program itself makes it."""

    id: str
    area: str
    kind: str
    description: str
    expected: str
    snippet: str | None = None


def read_cases() -> dict[str, Case]:
    lines = (Path(__file__).parent / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return {found.id: found for found in (Case(**json.loads(line)) for line in lines)}


CASES: Final = read_cases()

HELD: Final[dict[str, list[str]]] = {name: [] for name in CASES}
"""The tests of each case, as far as their modules have been imported."""


def case(*names: str) -> Callable[[Test], Test]:
    """Marks a test as one that holds these cases."""

    def held(test: Test) -> Test:
        for name in names:
            HELD[name].append(f"{test.__module__}::{test.__name__}")
        return test

    unknown = [name for name in names if name not in CASES]
    if unknown:
        raise ValueError(f"no such case: {', '.join(unknown)}")
    return held


def snippet(name: str) -> str:
    """The program of a case, as it stands in the catalogue."""
    found = CASES[name].snippet
    assert found is not None, f"{name} is no program"
    return found
