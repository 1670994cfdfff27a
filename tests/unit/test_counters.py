"""Numbers out of cgroup files, v1 and v2: what is there, or the reason why not; never a guess."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.counters import METER_FILES, Meters, Unread, field, number, read_meters
from tests.cases import case
from tests.unit.box_texts import V1, V2


def files(texts: Mapping[str, str]) -> dict[str, str | None]:
    return {name.removeprefix("cgroup:"): text for name, text in texts.items() if name.startswith("cgroup:")}


@case("eng-cgroup-v1")
def test_the_meters_of_a_real_box_v1() -> None:
    assert read_meters(files(V1), 1) == Meters(11767808, 0, 5, 0, 55906, 0)


def test_the_meters_of_a_box_v2() -> None:
    assert read_meters(files(V2), 2) == Meters(11767808, 1, 5, 2, 55906, 1)


def test_nothing_there_is_a_reason_for_each_meter() -> None:
    assert read_meters({}, 1) == Meters(
        Unread("this kernel offers no memory.max_usage_in_bytes"),
        Unread("this kernel offers no memory.oom_control"),
        Unread("this kernel offers no pids.peak"),
        Unread("this kernel offers no pids.events"),
        Unread("this kernel offers no cpuacct.usage"),
        Unread("this kernel offers no cpu.stat"),
    )
    assert read_meters({}, 2) == Meters(
        Unread("this kernel offers no memory.peak"),
        Unread("this kernel offers no memory.events"),
        Unread("this kernel offers no pids.peak"),
        Unread("this kernel offers no pids.events"),
        Unread("this kernel offers no cpu.stat"),
        Unread("this kernel offers no cpu.stat"),
    )


@pytest.mark.parametrize(("version", "texts"), [(1, V1), (2, V2)])
def test_each_file_missing_makes_only_its_own_meters_unread(version: int, texts: dict[str, str]) -> None:
    whole = read_meters(files(texts), version)
    for name in METER_FILES:
        if name not in files(texts):
            continue
        partial = read_meters({**files(texts), name: None}, version)
        changed = {key for key in Meters._fields if getattr(partial, key) != getattr(whole, key)}
        assert 1 <= len(changed) <= 2
        assert all(isinstance(getattr(partial, key), Unread) for key in changed)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "max", "-1", "+1", "1 2", "0x10", "1.5", "1e3", "١٢", "²", "1\n2\n", "9" * 21, "\0", "nan", "1_0"],
)
def test_what_is_no_whole_number_is_not_read(text: str) -> None:
    assert number({"memory.peak": text}, "memory.peak") == Unread("memory.peak is not a number")


@pytest.mark.parametrize(("text", "value"), [("0\n", 0), ("12", 12), (" 7 \n", 7), (str(2**64 - 1), 2**64 - 1)])
def test_a_whole_number_is_read(text: str, value: int) -> None:
    assert number({"x": text}, "x") == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "oom 3\n",
        "oom_kill\n",
        "oom_kill x\n",
        "oom_kill -1\n",
        "oom_kill 1 2\n",
        "oom_kill ٣\n",
        "noom_kill 3\n",
        "oom_kill:3\n",
    ],
)
def test_a_field_that_is_not_there_in_its_form_is_not_read(text: str) -> None:
    assert field({"memory.events": text}, "memory.events", "oom_kill") == Unread("memory.events has no oom_kill")


def test_a_field_is_read_by_its_whole_name() -> None:
    text = "oom 9\noom_kill_disable 8\noom_kill 3\noom_group_kill 7\n"
    assert field({"memory.events": text}, "memory.events", "oom_kill") == 3


@given(st.dictionaries(st.sampled_from(METER_FILES), st.none() | st.text(max_size=100)), st.sampled_from([1, 2]))
def test_any_text_gives_numbers_or_reasons(texts: dict[str, str | None], version: int) -> None:
    for value in read_meters(texts, version):
        assert (isinstance(value, int) and 0 <= value < 10**20) or (isinstance(value, Unread) and value.why)
