"""``%pybox carry`` and its forms, and the table of what is carried."""

from __future__ import annotations

import pytest

from pybox_kernel.carry.groups import Group, Lost, TakenOut
from pybox_kernel.carry.store import Carry
from pybox_kernel.errors import OptionError
from pybox_kernel.notebook.carry_commands import carried, in_short, obey
from tests.carrying import group

HOSTILE = "</td><script>alert(1)</script>\x1b[2J\u202e$x$"


def carry_of(*groups: Group, lost: tuple[Lost, ...] = ()) -> Carry:
    carry = Carry()
    carry.settle("", carry.going_in(""), TakenOut(groups, lost=lost), 3)
    return carry


def text_of(carry: Carry) -> str:
    found = carried(carry)["text/plain"]
    assert isinstance(found, str)
    return found


def test_the_table_has_names_types_sizes_and_origins() -> None:
    carry = carry_of(
        group(kind="numpy.random", data=bytes(2500), cell=2),
        group("df", "copy", data=bytes(3 << 20), cell=3),
        group("x", cell=None),
        lost=(Lost("f", "TextIOWrapper", "an open file"),),
    )
    assert text_of(carry) == (
        "3 names carried from cell to cell, 3 MB of 32 MB in all.\n"
        "A cell that fails changes nothing.\n"
        "%pybox carry back N returns to what there was N cells ago: 1 at most.\n"
        "\n"
        "Name                         What  Size    From\n"
        "df, copy                     int   3 MB    cell [3]\n"
        "x                            int   1 byte  an earlier cell\n"
        "(the state of numpy.random)        2.4 kB  cell [2]\n"
        "\n"
        "Not carried: f, of cell [3]: it could not be carried (TextIOWrapper: an open file)."
    )


def test_nothing_carried_is_said() -> None:
    assert text_of(Carry("off")) == (
        "0 names carried from cell to cell, 0 bytes of 32 MB in all.\n"
        "Carrying is off: cells do without it until %pybox carry on."
    )


def test_a_programs_words_cannot_act_in_the_table() -> None:
    carry = carry_of(group("x")._replace(types=(HOSTILE,)), lost=(Lost(HOSTILE, HOSTILE, HOSTILE),))
    html = carried(carry)["text/html"]
    assert isinstance(html, str)
    for text in (html, text_of(carry)):
        assert not any(sign in text for sign in ("\x1b", "\u202e"))
    assert "<script" not in html
    assert "$x" not in html


def test_a_table_of_the_most_names_is_of_a_size_to_show() -> None:
    carry = carry_of(*(group(f"name_{n}") for n in range(5000)), group(*(f"n{n}" for n in range(5000))))
    data = carried(carry)
    assert all(len(str(text)) < 64 * 1024 for text in data.values())
    assert "10,000 names" in text_of(carry)


@pytest.mark.parametrize("mode", ["off", "on", "keep"])
def test_its_mode_is_set(mode: str) -> None:
    carry = Carry()
    assert obey(carry, [mode])
    assert carry.mode == mode


def test_it_drops_clears_and_goes_back() -> None:
    carry = carry_of(group("a", "b"), group("c"), group(kind="folder"))
    assert obey(carry, []) is None
    assert obey(carry, ["drop", "a,", "folder"]) == "Dropped: a, b, files of the working folder."
    assert obey(carry, ["clear"]) == "Dropped all there was: 1 name."
    assert obey(carry, ["back"]) == "Back to what was carried before the last cell."
    assert obey(carry, ["back", "1"]) == "Back to what was carried before the last cell."
    assert {name for it in carry.listing().groups for name in it.names} == {"a", "b", "c"}


@pytest.mark.parametrize(
    "words",
    [
        ["on", "off"],
        ["drop"],
        ["clear", "all"],
        ["back", "x"],
        ["back", "-1"],
        ["back", "²"],
        ["back", "1" * 5000],
        ["back", "1", "2"],
        ["ON"],
        ["x" * 5000],
    ],
)
def test_other_words_are_refused_with_the_forms_there_are(words: list[str]) -> None:
    carry = carry_of(group("a"))
    before = carry.listing()
    with pytest.raises(OptionError, match="none of its forms") as caught:
        obey(carry, words)
    assert "drop NAME ..." in caught.value.advice
    assert len(caught.value.message) < 200
    assert carry.listing() == before


def test_its_state_in_a_line() -> None:
    carry = carry_of(group("a", "b", data=bytes(2048)), group(kind="random", data=b""))
    assert in_short(carry) == "2 names, 2 kB; `%pybox carry` lists them"
    carry.mode = "off"
    assert in_short(carry).startswith("nothing; ")
