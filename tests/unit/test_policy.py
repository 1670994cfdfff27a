"""What a cell may give: a program that is UTF-8 text within bounds, and a deadline. All else is refused, and why."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pybox_kernel.errors import ExitStatus, InputError, OptionError, SourceError
from pybox_kernel.policy import DATA, MIB, STDLIB, UID_FIRST, UID_LAST, checked_deadline, checked_source, policy_for

LIMIT = STDLIB.source_bytes


def refused(source: object) -> SourceError:
    with pytest.raises(SourceError) as caught:
        checked_source(STDLIB, source)
    assert caught.value.advice
    assert caught.value.exit_status == ExitStatus.USAGE
    return caught.value


# The program


@pytest.mark.parametrize(
    "source", ["", "print(1)\n", "é" * 10, "\ufeffprint(1)", "\r\n\t\x0c", "a" * LIMIT, "\U0001f600"]
)
def test_text_is_taken_exactly_as_it_is(source: str) -> None:
    assert checked_source(STDLIB, source) == source.encode()
    assert checked_source(STDLIB, source.encode()) == source.encode()
    assert checked_source(STDLIB, bytearray(source.encode())) == source.encode()


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200))
def test_every_text_without_halves_and_nuls_is_taken(source: str) -> None:
    assert checked_source(STDLIB, source).decode() == source


@pytest.mark.parametrize("source", ["a" * (LIMIT + 1), "é" * (LIMIT // 2 + 1), b"#" * (1 << 20)])
def test_a_program_over_the_limit_is_refused_with_both_sizes(source: str | bytes) -> None:
    size = len(source.encode() if isinstance(source, str) else source)
    assert refused(source).message == f"The program has {size:,} bytes; the most a box takes is 65,536."


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("\ud800", "Line 1 of the program holds half of a character (U+D800), which is not text."),
        ("a = 1\nb = '\udfff'", "Line 2 of the program holds half of a character (U+DFFF), which is not text."),
        ("\n\n\ude00\ud83d", "Line 3 of the program holds half of a character (U+DE00), which is not text."),
    ],
)
def test_half_a_character_is_refused_with_its_line(source: str, message: str) -> None:
    assert refused(source).message == message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("\0", "The program holds a NUL character at byte 0 (line 1)."),
        ("é\n\n'\0'", "The program holds a NUL character at byte 5 (line 3)."),
        (b"a\n\0", "The program holds a NUL character at byte 2 (line 2)."),
    ],
)
def test_nul_is_refused_with_its_place(source: str | bytes, message: str) -> None:
    assert refused(source).message == message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"\xff", "The program is not UTF-8: byte 0 (line 1) is 0xff."),
        (b"x = 1\ny = '\xe9'\n", "The program is not UTF-8: byte 11 (line 2) is 0xe9."),
        (b"\xff\xfep\0r\0", "The program is not UTF-8: byte 0 (line 1) is 0xff."),
        (b"'\xed\xa0\x80'", "The program is not UTF-8: byte 1 (line 1) is 0xed."),
        (b"\xc0\x80", "The program is not UTF-8: byte 0 (line 1) is 0xc0."),
        (b"abc\xe2\x82", "The program is not UTF-8: byte 3 (line 1) is 0xe2."),
    ],
)
def test_bytes_that_are_not_utf8_are_refused_with_their_place(source: bytes, message: str) -> None:
    assert refused(source).message == message


@pytest.mark.parametrize(
    ("source", "kind"), [(None, "NoneType"), (1, "int"), (["x"], "list"), (memoryview(b"x"), "memoryview")]
)
def test_what_is_no_text_is_refused(source: object, kind: str) -> None:
    assert refused(source).message == f"The program is {kind}, not text."


@given(st.text() | st.binary())
def test_any_text_or_bytes_are_taken_whole_or_refused(source: str | bytes) -> None:
    try:
        data = checked_source(STDLIB, source)
    except InputError:
        return
    assert data.decode() == (source if isinstance(source, str) else source.decode())


# The deadline


def test_without_a_wish_the_policy_decides() -> None:
    assert checked_deadline(STDLIB, None) == STDLIB.deadline_seconds == 2.0


@pytest.mark.parametrize(
    ("wish", "seconds"), [(1, 1.0), (0.5, 0.5), (30, 30.0), ("5", 5.0), ("0.25", 0.25), (1e-9, 1e-9)]
)
def test_a_number_in_bounds_is_taken(wish: object, seconds: float) -> None:
    assert checked_deadline(STDLIB, wish) == seconds


@pytest.mark.parametrize(
    ("wish", "shown"),
    [
        (0, "0 seconds; it must be"),
        (-1, "-1 seconds; it must be"),
        ("-0.0", "-0 seconds; it must be"),
        (31, "31 seconds; it must be"),
        (30.0000001, "30.0000001 seconds; it must be"),
        ("31", "31 seconds; it must be"),
        (float("nan"), "nan seconds; it must be"),
        ("NaN", "nan seconds; it must be"),
        (float("inf"), "inf seconds; it must be"),
        ("-inf", "-inf seconds; it must be"),
        ("1e400", "inf seconds; it must be"),
        (10**400, "'1" + "0" * 39 + "' is not"),
        ("abc", "'abc' is not"),
        ("", "'' is not"),
        ("5s", "'5s' is not"),
        ("x" * 1000, "'" + "x" * 40 + "' is not"),
        ("5\x00", "'5\\x00' is not"),
        (True, "bool, not"),
        ([1], "list, not"),
        (b"5", "bytes, not"),
        (1j, "complex, not"),
        (Decimal(5), "Decimal, not"),
        (Fraction(1, 2), "Fraction, not"),
    ],
)
def test_what_is_no_number_above_0_and_at_most_30_is_refused(wish: object, shown: str) -> None:
    with pytest.raises(OptionError) as caught:
        checked_deadline(STDLIB, wish)
    assert (
        caught.value.message
        == f"The time limit {'' if ' is not' in shown else 'is '}{shown} a number of seconds above 0 and at most 30."
    )
    assert caught.value.advice == "Give a number, like 5 or 0.5."
    assert caught.value.exit_status == ExitStatus.USAGE


@given(st.floats() | st.integers() | st.text(max_size=30))
def test_every_wish_is_taken_within_bounds_or_refused(wish: object) -> None:
    try:
        seconds = checked_deadline(STDLIB, wish)
    except OptionError:
        return
    assert 0 < seconds <= STDLIB.longest_deadline_seconds


# The settings


def test_the_policy_cannot_be_changed_or_widened() -> None:
    with pytest.raises(ValidationError):
        STDLIB.memory_bytes = 1  # type: ignore[misc]
    with pytest.raises(ValidationError):
        type(STDLIB).model_validate({**STDLIB.model_dump(), "network": "bridge"})


def test_the_numbers_are_those_of_the_design() -> None:
    assert STDLIB.memory_bytes == 128 << 20
    assert STDLIB.cpu_cores == 0.5
    assert STDLIB.tasks == 32
    assert (STDLIB.deadline_seconds, STDLIB.longest_deadline_seconds) == (2.0, 30.0)
    assert (STDLIB.open_files, STDLIB.core_bytes) == (128, 1)
    assert STDLIB.work_bytes + STDLIB.temporary_bytes == 16 << 20
    assert STDLIB.shared_memory_bytes == 1 << 20
    assert STDLIB.source_bytes == STDLIB.kept_bytes == 64 << 10
    assert (UID_FIRST, UID_LAST) == (10000, 59999)
    python = ("PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED")
    assert STDLIB.environment_names == ("HOME", "LANG", "PATH", *python, "TMPDIR", "TZ", "USER")


# The box with data libraries


def test_a_data_box_differs_from_a_stdlib_box_in_these_settings_only() -> None:
    changed = {name for name, value in DATA if getattr(STDLIB, name) != value}
    assert changed == {
        "image", "memory_bytes", "cpu_cores", "tasks", "work_bytes", "temporary_bytes", "environment"
    }  # fmt: skip
    assert (DATA.memory_bytes, DATA.cpu_cores, DATA.tasks) == (512 * MIB, 1.0, 64)
    assert DATA.work_bytes + DATA.temporary_bytes == 64 * MIB


def test_a_data_boxs_environment_is_a_stdlib_boxs_and_one_thread_for_each_numerical_library() -> None:
    more = dict(DATA.environment)
    assert list(DATA.environment) == sorted(more.items())
    assert more.items() > dict(STDLIB.environment).items()
    assert {name: value for name, value in more.items() if name.endswith("_NUM_THREADS")} == {
        f"{name}_NUM_THREADS": "1" for name in ("MKL", "NUMEXPR", "OMP", "OPENBLAS")
    }
    assert more["MPLBACKEND"] == "agg"


def test_every_image_but_stdlib_has_the_settings_of_a_data_box() -> None:
    assert policy_for("stdlib") is STDLIB
    assert policy_for("data") == DATA
    assert policy_for("mine") == DATA.model_copy(update={"image": "mine"})
