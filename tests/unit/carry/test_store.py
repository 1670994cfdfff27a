"""What a notebook carries after each cell, and after each thing that a person asks of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.carry.groups import MOST_CARRIED, Group, Lost, Missing, NotRestored, TakenOut, names_of, size_of
from pybox_kernel.carry.store import MOST_BACK, MOST_KEPT, Carry
from pybox_kernel.errors import OptionError
from pybox_kernel.running.carry_course import parcel_of
from tests.carrying import group


def cell(carry: Carry, source: str, *groups: Group, number: int | None = None, **more: Any) -> None:
    """A cell that ran to its end, and left these."""
    carry.settle(source, carry.going_in(source, number), TakenOut(groups, **more), number)


def failed(carry: Carry, source: str, number: int | None = None) -> None:
    carry.settle(source, carry.going_in(source, number), None, number)


def carried(carry: Carry) -> dict[str, bytes]:
    return {name: found.data for found in carry.listing().groups for name in found.names or (f"({found.kind})",)}


def missing(carry: Carry) -> dict[str, Missing]:
    return dict(carry.listing().missing)


@pytest.fixture
def carry() -> Carry:
    """``a`` and ``b`` are one group, ``f`` needs ``c``."""
    made = Carry()
    groups = group("a", "b", data=b"ab"), group("c", data=b"c"), group("f", data=b"f", needs=("c",))
    cell(made, "a = b = []; c = 1", *groups, group(kind="random", data=b"r"), number=1)
    return made


# What goes in


def test_a_cell_gets_what_it_can_reach_and_the_quiet_states(carry: Carry) -> None:
    for source, names in [("1", set()), ("c", {"c"}), ("a", {"a", "b"}), ("f()", {"c", "f"}), ("dir()", set("abcf"))]:
        sent = carry.going_in(source, 2)
        assert sent is not None
        assert names_of(sent.groups) == names
        assert [found.kind for found in sent.groups if found.kind] == ["random"]
        assert {id(found) for found in (*sent.groups, *sent.left)} == {id(found) for found in carry.listing().groups}


def test_the_box_is_told_the_names_and_how_much_may_come_out(carry: Carry) -> None:
    sent = carry.going_in(b"c", 2)
    assert sent is not None
    parcel = parcel_of(sent)
    assert parcel.manifest == {
        "keep": False,
        "limit": MOST_CARRIED - 3,
        "cell": 2,
        "groups": [{"names": ("c",), "kind": None, "size": 1}, {"names": (), "kind": "random", "size": 1}],
    }
    assert parcel.groups == (b"c", b"r")


def test_off_is_nothing_in_and_nothing_out(carry: Carry) -> None:
    before = carried(carry)
    carry.mode = "off"
    assert carry.going_in("a", 2) is None
    carry.settle("a = 1; z = 2", None, None, 2)
    assert carried(carry) == before
    assert missing(carry) == {"z": Missing(2, "off")}
    carry.mode = "on"
    assert carry.going_in("a", 3) is not None


# What comes out


def test_what_was_not_sent_stays_and_what_was_is_what_came_out(carry: Carry) -> None:
    cell(carry, "c = 2; d = 3", group("c", data=b"2"), group("d", data=b"3"), group(kind="random", data=b"R"), number=2)
    assert carried(carry) == {"a": b"ab", "b": b"ab", "c": b"2", "f": b"f", "d": b"3", "(random)": b"R"}


def test_a_name_that_was_deleted_is_gone_and_no_wall(carry: Carry) -> None:
    cell(carry, "del c", number=2)
    assert set(carried(carry)) == {"a", "b", "f"}
    assert missing(carry) == {}


def test_a_name_that_another_group_had_is_taken_over(carry: Carry) -> None:
    """By a way that could not be seen in the text."""
    cell(carry, "1", group("a", "f", data=b"new"), group(kind="random", data=b"r"), number=2)
    assert carried(carry) == {"a": b"new", "f": b"new", "b": b"ab", "c": b"c", "(random)": b"r"}
    sent = carry.going_in("b", 3)
    assert sent is not None
    assert parcel_of(sent).manifest["groups"][0]["names"] == ("b",)


def test_what_could_not_be_made_again_stays_for_another_try(carry: Carry) -> None:
    cell(carry, "a; c", group("c", data=b"c"), not_restored=(NotRestored(("a", "b"), "", "KeyError"),), number=2)
    assert carried(carry)["a"] == b"ab"
    assert missing(carry)["b"] == Missing(2, "not_restored", "KeyError")
    cell(carry, "a", group("a", "b", data=b"AB"), number=3)
    assert missing(carry) == {}


def test_what_could_not_be_made_again_goes_where_there_is_no_room_left() -> None:
    carry = Carry()
    cell(carry, "a = 1", group("a", data=bytes(MOST_CARRIED)))
    cell(carry, "a; b = 1", group("b"), not_restored=(NotRestored(("a",), "", "KeyError"),))
    assert set(carried(carry)) == {"b"}
    assert "a" in missing(carry)


def test_what_was_lost_is_known_until_it_is_there_again(carry: Carry) -> None:
    cell(carry, "c = open('x')", lost=(Lost("c", "TextIOWrapper", "an open file"),), number=7)
    assert "c" not in carried(carry)
    assert missing(carry) == {"c": Missing(7, "lost", "TextIOWrapper: an open file")}
    cell(carry, "c = 1", group("c"), number=8)
    assert missing(carry) == {}


@pytest.mark.parametrize("taken", [None, TakenOut(broken="it did not come whole")])
def test_a_cell_that_fails_changes_nothing_but_what_is_known_of_its_names(carry: Carry, taken: TakenOut | None) -> None:
    before = carry.listing().groups
    carry.settle("a = 5; new = 6", carry.going_in("a = 5", 2), taken, 2)
    assert carry.listing().groups is before
    assert set(missing(carry)) == {"new"}
    assert missing(carry)["new"].why == ("failed" if taken is None else "lost")


def test_what_is_told_of_in_two_ways_is_there_if_it_came(carry: Carry) -> None:
    cell(carry, "c", group("c", data=b"2"), lost=(Lost("c", "int", "a lie"),))
    assert carried(carry)["c"] == b"2"
    assert missing(carry) == {}


# Back


def test_back_returns_to_the_state_before_the_last_cells(carry: Carry) -> None:
    states = [carried(carry)]
    cell(carry, "d = 1", group("d"))
    states.append(carried(carry))
    failed(carry, "boom")
    carry.drop(["a"])
    states.append(carried(carry))
    assert carry.clear() == 3
    assert carried(carry) == {}
    carry.back()
    assert carried(carry) == states[2]
    carry.back(2)  # the drop, and the cell that failed
    assert carried(carry) == states[1]
    carry.back()
    assert carried(carry) == states[0]
    assert missing(carry)["d"] == Missing(1, "undone")
    carry.back()
    assert carried(carry) == {}
    with pytest.raises(OptionError, match="no state before"):
        carry.back()


@pytest.mark.parametrize("cells", [0, -1, 3, 10**9])
def test_back_says_how_far_it_goes(carry: Carry, cells: int) -> None:
    cell(carry, "d = 1", group("d"))
    before = carried(carry)
    with pytest.raises(OptionError, match="back 2"):
        carry.back(cells)
    assert carried(carry) == before


def test_back_is_bounded_in_cells_and_in_bytes() -> None:
    carry = Carry()
    for number in range(MOST_BACK + 5):
        cell(carry, "a = 1", group("a", data=b"%d" % number))
    assert carry.listing().back == MOST_BACK
    for number in range(6):
        cell(carry, "a = 1", group("a", data=bytes([number]) * MOST_CARRIED))
    assert carry.listing().back == MOST_KEPT // MOST_CARRIED - 1
    carry.back(2)
    assert carried(carry)["a"][:1] == b"\x03"


def test_what_cells_say_of_small_values_takes_a_bounded_memory() -> None:
    carry = Carry()
    for number in range(60):
        needs = tuple(f"n{number}_{n}" for n in range(20_000))
        cell(carry, "x = 1", group("x", data=b"x", needs=needs), number=number)
    assert 5 < carry.listing().back < 30
    again = Carry()
    for _ in range(60):
        cell(again, "x", *(again.listing().groups or (group("x", data=b"x", needs=needs),)))
    assert again.listing().back == 60


def test_of_names_that_are_missing_the_last_two_thousand_are_known() -> None:
    carry = Carry()
    for number in range(5):
        failed(carry, "\n".join(f"n{number}_{n} = 1" for n in range(1000)), number=number)
    assert len(missing(carry)) == 2000
    assert "n4_999" in missing(carry)


def test_states_share_what_did_not_change() -> None:
    carry = Carry()
    cell(carry, "big = 1", group("big", data=bytes(MOST_CARRIED - 1000)))
    for number in range(50):
        cell(carry, "a = 1", group("a", data=b"%d" % number))
    assert carry.listing().back == 51


# Steered


def test_drop_takes_a_whole_group(carry: Carry) -> None:
    (dropped,) = carry.drop(["b"])
    assert dropped.names == ("a", "b")
    assert set(carried(carry)) == {"c", "f", "(random)"}
    assert missing(carry)["a"] == Missing(1, "dropped")
    carry.drop(["random"])
    assert set(carried(carry)) == {"c", "f"}
    with pytest.raises(OptionError, match="'zz'"):
        carry.drop(["c", "zz"])
    assert "c" in carried(carry)


def test_a_name_comes_before_a_quiet_state_that_is_called_the_same() -> None:
    carry = Carry()
    cell(carry, "import random", group("random"), group(kind="random"))
    carry.drop(["random"])
    assert set(carried(carry)) == {"(random)"}


# Whatever cells and people do

NAMES = st.sampled_from("abcdef")
GROUPS = st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=3, unique=True), st.binary(max_size=3)), max_size=4)


@given(st.lists(st.tuples(st.sampled_from(["ok", "fail", "drop", "back", "clear"]), NAMES, GROUPS), max_size=12))
def test_each_name_is_in_one_group_whatever_is_done(steps: list[tuple[str, str, Any]]) -> None:
    carry = Carry()
    for what, name, made in steps:
        seen: set[str] = set()
        groups = []
        for names, data in made:
            if seen.isdisjoint(names):
                seen |= set(names)
                groups.append(group(*names, data=data))
        before = carry.listing()
        try:
            match what:
                case "ok":
                    cell(carry, name, *groups)
                    assert names_of(groups) <= names_of(carry.listing().groups)
                case "fail":
                    failed(carry, name)
                    assert carry.listing().groups is before.groups
                case "drop":
                    carry.drop([name])
                case "back":
                    carry.back()
                case "clear":
                    carry.clear()
        except OptionError:
            assert carry.listing() == before
        found = [name for it in carry.listing().groups for name in it.names]
        assert len(found) == len(set(found))
        assert all(len(it.names) == len(it.types) for it in carry.listing().groups)
        assert not set(carry.listing().missing) & set(found)
        assert size_of(carry.listing().groups) <= MOST_CARRIED
