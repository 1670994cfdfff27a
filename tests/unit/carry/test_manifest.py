"""What a program says it leaves: taken as it is if all of it fits, and not at all otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.carry.groups import MOST_CARRIED, Group, Lost, NotRestored
from pybox_kernel.carry.manifest import taken_out
from pybox_kernel.wire.parcels import Parcel
from tests.carrying import group, sent, told

NEW = "7" * 32


def broken(parcel: Parcel | str, **more: Any) -> str:
    found = taken_out(parcel, sent(**more), NEW)
    assert (found.groups, found.lost, found.not_restored) == ((), (), ())
    assert found.broken
    return found.broken


def changed(**changes: Any) -> Parcel:
    """One group, told of with ``changes``."""
    parcel = told(group("a"))
    manifest = json.loads(parcel.manifest)
    manifest["groups"][0] |= changes
    return Parcel(json.dumps(manifest).encode(), parcel.payloads)


def same_of(parcel: Parcel) -> Parcel:
    """The first group is as it went in, so that no bytes of it come."""
    manifest = json.loads(parcel.manifest)
    manifest["groups"][0]["same"] = True
    return Parcel(json.dumps(manifest).encode(), parcel.payloads[1:])


def test_groups_come_with_the_run_they_are_of() -> None:
    found = taken_out(told(group("a", "b", data=b"12", needs=("np",)), group(kind="random")), sent(cell=9), NEW)
    assert found.broken is None
    first, second = found.groups
    assert (first.names, first.data, first.needs, first.run, first.cell) == (("a", "b"), b"12", ("np",), NEW, 9)
    assert (second.names, second.kind) == ((), "random")


def test_what_comes_out_as_it_went_in_is_still_of_its_run() -> None:
    old, other = group("a", data=b"1"), group("b", data=b"2")
    found = taken_out(same_of(told(group("a", data=b"1", needs=("z",)), group("b", data=b"3"))), sent(old, other), NEW)
    assert found.groups[0] == old._replace(needs=("z",))
    assert found.groups[0].data is old.data
    assert (found.groups[1].run, found.groups[1].data) == (NEW, b"3")


def test_what_is_called_the_same_is_what_went_in_and_does_not_come_again() -> None:
    old, other = group("a", data=b"1"), group("b", data=b"2")
    parcel = told(group("a", data=b"1"), group("b", data=b"3"))
    manifest = json.loads(parcel.manifest)
    manifest["groups"][0]["same"] = True
    found = taken_out(Parcel(json.dumps(manifest).encode(), (b"3",)), sent(old, other), NEW)
    assert found.broken is None
    assert found.groups[0] == old
    assert (found.groups[1].data, found.groups[1].run) == (b"3", NEW)


@pytest.mark.parametrize("went_in", [(), (group("a", data=b"two"),), (group("a", "b"),), (group(kind="a"),)])
def test_what_is_called_the_same_must_have_gone_in(went_in: tuple[Group, ...]) -> None:
    found = taken_out(Parcel(changed(same=True).manifest, ()), sent(*went_in), NEW)
    assert found.broken == "it calls the same what did not go in"


def test_what_could_not_be_carried_or_made_again_is_told() -> None:
    parcel = told(
        lost=[{"name": "f", "type": "TextIOWrapper", "why": "an open file"}],
        not_restored=[{"names": ["a"], "kind": None, "why": "KeyError"}],
    )
    found = taken_out(parcel, sent(group("a")), NEW)
    assert found.lost == (Lost("f", "TextIOWrapper", "an open file"),)
    assert found.lost_more == 0
    assert found.not_restored == (NotRestored(("a",), "", "KeyError"),)


@pytest.mark.parametrize(
    "parcel",
    [
        "it did not come whole",
        Parcel(b"", ()),
        Parcel(b"{}", ()),
        Parcel(b"[" * 500_000, ()),
        Parcel(b'{"groups":' * 50_000, ()),
        Parcel(b"\xff\xfe", ()),
        Parcel(b'{"groups":[],"lost":[],"not_restored":[],"more":1}', ()),
        Parcel(told(group("a")).manifest, ()),
        Parcel(told(group("a")).manifest, (b"x", b"y")),
        Parcel(told(group("a")).manifest, (b"xx",)),
        Parcel(told().manifest, (b"xx",)),
        changed(size=2),
        changed(size=-1),
        changed(size=1 << 80),
        changed(size="1"),
        changed(names=[]),
        changed(names=["a"], kind="random"),
        changed(names=["a", "a"], types=["int", "int"]),
        changed(names=["a", "b"]),
        changed(names=["a b"]),
        changed(names=["class"]),
        changed(names=["__builtins__"]),
        changed(names=["__name__"]),
        changed(names=[""]),
        changed(names=["\ud800"]),
        changed(names=["a\u202e"]),
        changed(names=["<script>"]),
        changed(names=["a" * 256]),
        changed(names=[["a"]]),
        changed(names="a"),
        changed(names={"a": 1}),
        changed(names=[], types=[], kind="../../etc"),
        changed(names=[], types=[], kind=""),
        changed(names=[], types=[], kind="x" * 100),
        changed(needs=["x" * 300]),
        changed(needs=None),
        changed(same=1),
        changed(same=True),
        same_of(told(group("never"))),
        changed(types=["x" * 2000]),
        told(group("a"), group("a")),
        told(group(kind="random"), group(kind="random")),
        told(*(group(f"n{n}") for n in range(10_001))),
        told(*(group(f"n{n:0250}") for n in range(600))),
        told(group("a", needs=[f"n{n:0250}" for n in range(3000)]), group("b", needs=[f"m{n}" for n in range(10_001)])),
        told(not_restored=[{"names": ["other"], "kind": None, "why": ""}]),
        told(lost=[{"name": "f", "type": "x", "why": "w" * 5000}]),
        told(lost=[{"name": "f", "type": "x"}]),
        told(lost=[{"name": "f", "type": "x", "why": ""}] * 10_001),
    ],
)
def test_whatever_does_not_fit_is_nothing_with_a_reason(parcel: Parcel | str) -> None:
    assert "\n" not in broken(parcel)


def test_no_more_comes_than_all_cells_may_leave_together() -> None:
    rest = group("rest", data=bytes(MOST_CARRIED - 10))
    assert taken_out(told(group("a", data=bytes(10))), sent(left=(rest,)), NEW).broken is None
    assert "more than" in broken(told(group("a", data=bytes(11))), left=(rest,))


def test_the_names_that_functions_use_count_in_all() -> None:
    used = tuple(f"n{n:095}" for n in range(8000))
    rest = group("rest", needs=used)
    assert taken_out(told(group("a", needs=used[:900])), sent(left=(rest,)), NEW).broken is None
    assert "use more names" in broken(told(group("a", needs=used)), left=(rest,))


def test_the_names_of_what_stayed_behind_count() -> None:
    rest = tuple(group(f"n{n}") for n in range(9_999))
    assert taken_out(told(group("a")), sent(left=rest), NEW).broken is None
    assert "names" in broken(told(group("a"), group("b")), left=rest)


@given(st.binary(max_size=300), st.lists(st.binary(max_size=5), max_size=3))
def test_any_bytes_have_an_answer(manifest: bytes, payloads: list[bytes]) -> None:
    assert taken_out(Parcel(manifest, tuple(payloads)), sent(), NEW).broken


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.sampled_from(["names", "types", "kind", "needs", "size"]), JSON)
def test_any_value_in_any_place_has_an_answer(field: str, value: object) -> None:
    parcel = told(group("a"))
    manifest = json.loads(parcel.manifest)
    manifest["groups"][0][field] = value
    found = taken_out(Parcel(json.dumps(manifest).encode(), parcel.payloads), sent(), NEW)
    assert found.broken or found.groups
