"""Values go into a box and come back as plain data, under names that a notebook can bind."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pybox_kernel.errors import OptionError
from pybox_kernel.inside.value_form import LARGEST
from pybox_kernel.inside.value_writer import pack
from pybox_kernel.wire.values import MOST_VALUES, ValueNotBrought, checked_wanted, read, taken


def manifest(*names: str, **missing: str) -> bytes:
    return json.dumps(
        {
            "values": [{"name": name} for name in names],
            "missing": [{"name": name, "why": why} for name, why in missing.items()],
        }
    ).encode()


def refusal(name: str, value: object) -> OptionError:
    with pytest.raises(OptionError) as caught:
        taken([name], {name: value})
    return caught.value


def test_a_value_is_told_in_plain_words() -> None:
    values = {
        "n": 3,
        "words": ["a", "b"],
        "grid": np.zeros((2, 3)),
        "half": np.float32(0.5),
        "table": {"a": 1},
        "both": [pd.DataFrame({"a": [1]}), {"b": [np.int8(1)]}],
    }
    told = {value.name: (value.kind, value.shape, value.libraries) for value in taken(list(values), values)}
    assert told == {
        "n": ("whole number", (), set()),
        "words": ("list", (2,), set()),
        "grid": ("array of float64", (2, 3), {"numpy"}),
        "half": ("number of float32", (), {"numpy"}),
        "table": ("dict", (1,), set()),
        "both": ("list", (2,), {"numpy", "pandas"}),
    }


def test_a_name_is_taken_once() -> None:
    assert [value.name for value in taken(["b", "a", "b"], {"a": 1, "b": 2})] == ["b", "a"]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a b",
        "a-b",
        "a.b",
        "1a",
        "class",
        "None",
        "__name__",
        "__builtins__",
        "ﬁle",
        "x" * 101,
        "a\n",
        "a;b",
        "\ud800",
    ],
)
def test_what_is_no_name_of_a_variable_is_refused(name: str) -> None:
    with pytest.raises(OptionError):
        taken([name], {name: 1})
    with pytest.raises(OptionError):
        checked_wanted([name], {}, replace=True)


@pytest.mark.parametrize("name", ["print", "Out", "In", "_", "__", "___", "_i", "_i3", "_ih", "get_ipython", "exit"])
def test_a_name_that_has_a_meaning_is_not_bound(name: str) -> None:
    with pytest.raises(OptionError, match="has a meaning"):
        checked_wanted([name], {}, replace=True)


def test_a_name_that_is_there_is_bound_only_if_that_is_asked_for() -> None:
    assert checked_wanted(["a", "b", "a"], {}, replace=False) == ("a", "b")
    assert checked_wanted(["a"], {"a": 1}, replace=True) == ("a",)
    with pytest.raises(OptionError) as caught:
        checked_wanted(["a"], {"a": 1}, replace=False)
    assert "--replace" in caught.value.advice


def test_more_names_than_a_box_takes_are_refused() -> None:
    names = [f"n{number}" for number in range(MOST_VALUES + 1)]
    with pytest.raises(OptionError, match="more than 64 names"):
        taken(names, dict.fromkeys(names, 1))


def test_a_name_that_is_not_there_is_refused() -> None:
    with pytest.raises(OptionError, match="There is no ‘missing’ here to copy"):
        taken(["missing"], {})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (open, "x is of the type builtin_function_or_method"),
        ([1, {"a": object()}], "x[1]['a'] is of the type object"),
        ({(1, 2): 3}, "x has a key that is neither text nor a usual whole number, but of the type tuple"),
        ({float("nan"): 3}, "x has a key that is neither"),
        (np.array([object()]), "x is an array of object"),
        ({"deep": (np.zeros(2, "i4,f4"),)}, "x['deep'][0] is an array of [('f0', '<i4'), ('f1', '<f4')]"),
        (np.ma.array([1]), "x is of the type numpy.MaskedArray"),
        (10**2000, "x is a whole number of more than 512 bytes"),
    ],
)
def test_what_cannot_be_copied_is_named(value: Any, words: str) -> None:
    assert refusal("x", value).message.startswith(f"x cannot be copied into a box: {words}")


def test_what_holds_itself_is_named() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert "is more than 64 levels deep, or holds itself" in refusal("loop", loop).message


def test_what_is_too_large_is_refused_with_its_size_and_a_part_that_is_not() -> None:
    error = refusal("grid", np.zeros((3_000_000, 2)))
    assert error.message == "grid has 45 MB. All values that go into a box may have 8 MB together."
    assert error.advice == "Copy a part of it: grid_part = grid[:400000]."
    part = np.zeros((3_000_000, 2))[:400000]
    assert len(taken(["part"], {"part": part})[0].data) <= LARGEST


def test_values_that_are_too_large_together_are_refused() -> None:
    values = {"a": bytes(5 << 20), "b": bytes(5 << 20)}
    assert taken(["a"], values)
    assert taken(["b"], values)
    with pytest.raises(OptionError, match="b is too large beside 5 MB of others"):
        taken(["a", "b"], values)


def test_a_list_of_too_many_is_refused() -> None:
    assert "has more than" in refusal("x", [None] * 600_000).message
    assert "has more than" in refusal("x", [1] * 1_100_000).message


# What comes back


def test_each_value_that_was_asked_for_is_there_or_has_its_reason() -> None:
    sent = [pack([1, 2]), b"?", pack(np.arange(3))]
    out = read(manifest("a", "b", "c", d="was not defined"), sent, ["c", "a", "b", "d", "e"])
    assert [(value.name, value.kind, value.shape) for value in out.brought] == [
        ("c", "array of int64", (3,)),
        ("a", "list", (2,)),
    ]
    assert out.not_brought == (
        ValueNotBrought("b", "did not come in a form that can be read"),
        ValueNotBrought("d", "was not defined"),
        ValueNotBrought("e", "did not come"),
    )


def test_what_was_not_asked_for_is_not_taken() -> None:
    out = read(manifest("print", "a"), [pack(1), pack(2)], ["a"])
    assert [(value.name, value.value) for value in out.brought] == [("a", 2)]


@pytest.mark.parametrize(
    ("told", "payloads"),
    [
        (b"", []),
        (b"[" * 1_000_000, []),
        (b'{"values": [], "missing": [], "more": 1}', []),
        (b'{"values": [{"name": "a", "form": {}}], "missing": []}', [b"N"]),
        (b'{"values": [{"name": 1}], "missing": []}', [b"N"]),
        (manifest("a"), []),
        (manifest(), [b"N"]),
        (manifest(*["a"] * 65), [b"N"] * 65),
        (manifest("a"), [bytes(LARGEST + 1)]),
    ],
)
def test_an_account_that_cannot_be_believed_brings_nothing(told: bytes, payloads: list[bytes]) -> None:
    out = read(told, payloads, ["a"])
    assert out.brought == ()
    assert [name for name, _ in out.not_brought] == ["a"]


def test_reasons_of_a_program_are_made_safe() -> None:
    (lost,) = read(manifest(a="\x1b[31m\u202e" + "x" * 900), [], ["a"]).not_brought
    assert "\x1b" not in lost.why
    assert "\u202e" not in lost.why
    assert len(lost.why) <= 300
