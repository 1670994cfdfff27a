"""What an agent may ask for: never more than the person allowed, and the schema says the same as the checks."""

from __future__ import annotations

import base64
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.errors import InputError, OptionError
from pybox_kernel.mcp.asks import Ceilings, checked_call, input_schema
from pybox_kernel.policy import MIB, STDLIB

ALL = Ceilings(("stdlib", "data"), 5, files=True, carry=True)


@pytest.mark.parametrize("given", [{}, dict.fromkeys(["image", "timeout", "files", "return_files", "session"])])
def test_what_is_not_said_is_the_least(given: dict[str, None]) -> None:
    call = checked_call({"code": "1", **given}, Ceilings())
    assert (call.policy, call.deadline_seconds, call.files, call.return_files, call.session) == (
        STDLIB,
        2,
        (),
        (),
        None,
    )


def test_the_usual_time_limit_is_within_the_ceiling() -> None:
    assert checked_call({"code": "1"}, Ceilings(timeout=0.5)).deadline_seconds == 0.5
    assert input_schema(Ceilings(timeout=0.5))["properties"]["timeout"]["default"] == 0.5


@pytest.mark.parametrize(
    ("ceilings", "asked", "said"),
    [
        (Ceilings(), {"image": "data"}, "started for stdlib (--images)"),
        (Ceilings(), {"image": "../x\x1b"}, "started for stdlib (--images)"),
        (Ceilings(timeout=5), {"timeout": 5.001}, "5 seconds (--max-timeout)"),
        (Ceilings(), {"timeout": 31}, "30 seconds (--max-timeout)"),
        (Ceilings(), {"files": [{"name": "a", "text": ""}]}, "without --files"),
        (Ceilings(), {"return_files": ["a"]}, "without --files"),
        (Ceilings(), {"session": "a"}, "without --carry"),
    ],
)
def test_more_than_the_ceiling_is_an_error_that_names_it(ceilings: Ceilings, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as caught:
        checked_call({"code": "1", **asked}, ceilings)
    assert said in caught.value.message
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "asked",
    [
        {"code": None},
        {"code": b"1"},
        {"code": "x" * (STDLIB.source_bytes + 1)},
        {"code": "\0"},
        {"code": "\ud800"},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": "2"},
        {"timeout": True},
        {"more": 1},
        {"image": ["stdlib"]},
        {"session": ""},
        {"session": "a b"},
        {"session": "a\n"},
        {"session": "x" * 65},
        {"files": [{"name": "a"}]},
        {"files": [{"name": "a", "text": "", "base64": ""}]},
        {"files": [{"name": "a", "base64": "=x"}]},
        {"files": [{"name": "a", "text": "\ud800"}]},
        {"files": [{"name": "../a", "text": ""}]},
        {"files": [{"name": "a", "text": ""}, {"name": "A", "text": ""}]},
        {"files": [{"name": "a", "path": "/etc/passwd"}]},
        {"files": [{"name": str(number), "text": ""} for number in range(65)]},
        {"files": [{"name": "a", "text": "x" * (8 * MIB + 1)}]},
        {"return_files": ["/a"]},
        {"return_files": ["a", "b/../c"]},
        {"return_files": [""]},
    ],
    ids=lambda asked: str(asked)[:40],
)
def test_what_is_wrong_is_said_without_what_it_was(asked: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        checked_call({"code": "1", **asked}, ALL)
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


def test_no_arguments_at_all_are_an_error() -> None:
    for asked in (None, {}):
        with pytest.raises(OptionError, match="code"):
            checked_call(asked, ALL)


def test_files_come_as_they_were_given() -> None:
    asked = [{"name": "d/a.txt", "text": "é\r\n"}, {"name": "b", "base64": base64.b64encode(b"\0\xff").decode()}]
    call = checked_call({"code": "1", "files": asked, "return_files": ["x", "x"]}, ALL)
    assert [(file.name, file.data) for file in call.files] == [("d/a.txt", "é\r\n".encode()), ("b", b"\0\xff")]
    assert call.return_files == ("x",)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, 4.5, 5, 5.5, 31, -1]),
    st.sampled_from(["", "a", "stdlib", "data", "own", "x" * 70]),
    st.lists(
        st.fixed_dictionaries(
            {"name": st.sampled_from(["a", "b", ""])}, optional={"text": st.just("t"), "base64": st.just("dA==")}
        ),
        max_size=1,
    ),
    st.lists(st.sampled_from(["a", "b", ""]), max_size=2),
)


@given(
    st.dictionaries(st.sampled_from(["code", "image", "timeout", "files", "return_files", "session", "x"]), VALUES),
    st.builds(
        Ceilings, st.sampled_from([("stdlib",), ("data", "stdlib")]), st.sampled_from([1, 5, 30]),
        st.booleans(), st.booleans(),
    ),
)  # fmt: skip
def test_what_the_schema_lets_through_is_taken_and_nothing_else(asked: dict[str, Any], ceilings: Ceilings) -> None:
    known = {name: value for name, value in asked.items() if value is not None}
    try:
        checked_call(known, ceilings)
    except InputError:
        taken = False
    else:
        taken = True
    allowed = jsonschema.Draft202012Validator(input_schema(ceilings)).is_valid(known)
    if not ceilings.files:  # an empty list asks for nothing
        allowed = allowed or (taken and known.get("files", []) == known.get("return_files", []) == [])
    assert taken == allowed


@pytest.mark.parametrize("images", ["", "stdlib,", "Stdlib", "a b", "../x"])
def test_images_are_names(images: str) -> None:
    with pytest.raises(OptionError):
        Ceilings.read(images, None, files=False, carry=False)


@pytest.mark.parametrize("timeout", ["0", "-1", "31", "nan", "x", ""])
def test_the_longest_time_limit_is_one_that_a_box_can_have(timeout: str) -> None:
    with pytest.raises(OptionError):
        Ceilings.read("stdlib", timeout, files=False, carry=False)


def test_ceilings_are_read_as_written() -> None:
    found = Ceilings.read("data, stdlib,data", "2.5", files=True, carry=False)
    assert found == Ceilings(("data", "stdlib"), 2.5, files=True, carry=False)
