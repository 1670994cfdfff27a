"""Every case of the catalogue is held by a test."""

import importlib
from pathlib import Path

import pytest

from tests.cases import CASES, HELD, case, snippet

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def all_tests_imported() -> None:
    for path in sorted(TESTS.rglob("test_*.py")):
        importlib.import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))


@pytest.mark.usefixtures("all_tests_imported")
@pytest.mark.parametrize("name", CASES)
def test_the_case_is_held_by_a_test(name: str) -> None:
    assert HELD[name], CASES[name].expected


def test_a_name_that_is_no_case_is_an_error_where_it_is_written() -> None:
    with pytest.raises(ValueError, match="no such case: time-slep"):
        case("time-slep")


def test_every_case_that_is_a_program_has_its_snippet() -> None:
    assert all(snippet(found.id) for found in CASES.values() if found.kind == "cell")
