"""The one door for untrusted text: what it lets through, what it shows escaped, what it drops."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pybox_kernel.safe_display.characters import STACK
from pybox_kernel.safe_display.text import (
    LONGEST_LINE,
    LONGEST_SEQUENCE,
    StreamCleaner,
    safe_name,
    safe_text,
    without_colour,
)
from tests.timing import processor_time

FRAGMENTS = (
    b"abc", b"\n", b"\r", b"\r\n", b"\b", b"\t", b"\0", b"\x7f", b"\x18", b"\x07", b" ", b"\\",
    b"\x1b", b"[", b"]", b"m", b"K", b"0", b"1;31", b"8", b";", b"?25l", b"\x1bP", b"\x1b[2K",
    b"\x1b[38;5;8m", b"\x1b[0m", b"\x1b[1;8;44m", b"\xc2\x9b", b"\xc2\x9c", b"\xc2\x9d",
    b"\xc3", b"\xe2\x82", b"\xff", b"\xed\xa0\x80", b"a" * (LONGEST_LINE - 2), b"0" * (LONGEST_SEQUENCE - 2),
    *(c.encode() for c in "é€❤👩ی\u0301\u202e\u200b\u200c\u200d\ufe0f\u2028\ufeff\U000e0041"),
)  # fmt: skip
HOSTILE = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=4), max_size=30).map(b"".join)
COLOUR = re.compile(r"\x1b\[[0-9]{1,3}(;[0-9]{1,3})*m")
VISIBLE_FORMATS = "\u200c\u200d" + "".join(map(chr, [*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2]))
"""Joiners, where they join; Arabic and Syriac signs that are drawn; like two more scripts' below."""
VISIBLE_FORMATS += "\U000110bd\U000110cd" + "".join(map(chr, range(0x13430, 0x13440)))


def cleaned(*parts: bytes) -> str:
    stream = StreamCleaner()
    return "".join([*(stream.feed(part) for part in parts), stream.close()])


def invisible(text: str) -> set[str]:
    """What of ``text`` no reader could see, or changes the order of the rest; colour set aside."""
    return {
        character
        for character in COLOUR.sub("", text)
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") + ("Cf",) * (character not in VISIBLE_FORMATS)
        and character not in "\n\t"
    }


@pytest.mark.parametrize(
    ("given_bytes", "shown"),
    [
        pytest.param(b"a\tb\nc", "a\tb\nc", id="newline and tab stay"),
        pytest.param(b"a\0b\0c\n", "a\\x00b\\x00c\n", id="NUL is a visible mark"),
        pytest.param(b"\x0b\x0c\x7f\x07", "\\x0b\\x0c\\x7f\\x07", id="C0 controls"),
        pytest.param("\x85\x9c".encode(), "\\x85\\x9c", id="C1 controls that open nothing"),
        pytest.param("\u202etxt.exe\u202c\u200b".encode(), "\\u202etxt.exe\\u202c\\u200b", id="bidirectional"),
        pytest.param("a\u2066b\u061cc\u180ed\ufeffe".encode(), "a\\u2066b\\u061cc\\u180ed\\ufeffe", id="more of them"),
        pytest.param("\u2060\u2064\u200e\u2028\u2029".encode(), "\\u2060\\u2064\\u200e\\u2028\\u2029", id="zero width"),
        pytest.param("x\U000e0041\U000e007f".encode(), "x\\U000e0041\\U000e007f", id="tags"),
        pytest.param("pass\u00adword \u3164\u115f".encode(), "pass\\xadword \\u3164\\u115f", id="soft hyphen, fillers"),
        pytest.param(
            "👩\u200d🚀 ❤\ufe0f\u200d🔥 1\ufe0f⃣".encode(),
            "👩\u200d🚀 ❤\ufe0f\u200d🔥 1\ufe0f⃣",
            id="emoji are whole",
        ),
        pytest.param("می\u200cخواهم क्\u200dष".encode(), "می\u200cخواهم क्\u200dष", id="joining scripts are whole"),
        pytest.param("a\u200db\u200cc\ufe0fd".encode(), "a\\u200db\\u200cc\\ufe0fd", id="joiners that join nothing"),
        pytest.param("👩\u200d\u200d\u200d".encode(), "👩\u200d\\u200d\\u200d", id="one joiner, not a hidden message"),
        pytest.param("❤\ufe0f\ufe0f\ufe0e".encode(), "❤\ufe0f\\ufe0f\\ufe0e", id="one selector"),
        pytest.param("o\u0308\u0304".encode(), "o\u0308\u0304", id="marks on a letter"),
        pytest.param(
            ("o" + "\u0301" * (STACK + 2)).encode(),
            "o" + "\u0301" * STACK + "\\u0301" * 2,
            id="no towers of marks",
        ),
    ],
)
def test_characters(given_bytes: bytes, shown: str) -> None:
    assert cleaned(given_bytes) == shown
    assert cleaned(*(bytes([byte]) for byte in given_bytes)) == shown
    assert safe_text(given_bytes) == shown


@pytest.mark.parametrize(
    ("given_bytes", "shown"),
    [
        pytest.param(b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m", id="colour stays"),
        pytest.param(
            b"\x1b[1;4;38;5;208;48;2;1;2;3mx\x1b[m",
            "\x1b[1;4;38;5;208;48;2;1;2;3mx\x1b[0m",
            id="long colours",
        ),
        pytest.param(b"\x1b[32mfor ever\n", "\x1b[32mfor ever\n\x1b[0m", id="colour ends with the text"),
        pytest.param(b"\x1b[8msecret", "secret", id="conceal"),
        pytest.param(b"\x1b[31;8;1msecret", "\x1b[1;31msecret\x1b[0m", id="conceal in a list"),
        pytest.param(b"\x1b[008;0031mx", "\x1b[31mx\x1b[0m", id="conceal with zeros before it"),
        pytest.param(b"\x1b[38;5;8mgrey", "\x1b[38;5;8mgrey\x1b[0m", id="8 as the number of a colour"),
        pytest.param(b"\x1b[38;8mx\x1b[38;5mx\x1b[48;2;1;2mx\x1b[38;5;256mx", "xxxx", id="broken long colours"),
        pytest.param(b"\x1b[5;6;10;26;999mx", "x", id="blink, fonts and others"),
        pytest.param(b"\x1b[1;2;3mx\x1b[22;23my", "\x1b[1;2;3mx\x1b[0my", id="taken back one by one"),
        pytest.param(b"\x1b[31mr\x1b[32mg", "\x1b[31mr\x1b[0;32mg\x1b[0m", id="from one to another"),
        pytest.param(b"\x1b[" + b"1;" * 32 + b"1mx", "x", id="a list too long"),
        pytest.param(b"\x1b[4:3mx\x1b[>4;2mx\x1b[?1mx\x1b[1 mx", "xxxx", id="what only looks like colour"),
        pytest.param(b"\x1b[31m" * 50, "", id="colour of nothing"),
    ],
)
def test_colours(given_bytes: bytes, shown: str) -> None:
    assert cleaned(given_bytes) == shown


@pytest.mark.parametrize(
    "sequence",
    [
        b"\x1b[2J", b"\x1b[H", b"\x1b[1;1H", b"\x1b[5A", b"\x1b[?1049h", b"\x1b[6n", b"\x1b[3;4;5t", b"\x1b[!p",
        b"\x1b[1 q", b"\x1bc", b"\x1b7", b"\x1bM", b"\x1b(0", b"\x1b#8", b"\x1b %G", b"\x1b=",
        b"\x1b]52;c;b3Bz\x07", b"\x1b]52;c;b3Bz\x1b\\", b"\x1b]0;title\x07", b"\x1b]8;;http://example.org\x1b\\",
        b"\x1bP1$r0m\x1b\\", b"\x1b_Gf=100;AAAA\x1b\\", b"\x1b^private\x1b\\", b"\x1bXstring\x1b\\",
        "\x9b2J".encode(), "\x9d52;c;b3Bz\x9c".encode(), "\x90q#0\x9c".encode(), "\x98s\x9c".encode(),
        "\x9es\x07".encode(), "\x9fs\x1b\\".encode(), b"\x1b]0;\x18", b"\x1b\x1b[2J",
    ],
)  # fmt: skip
def test_other_sequences_are_dropped_whole_wherever_they_are_cut(sequence: bytes) -> None:
    whole = b"before" + sequence + b"after"
    assert cleaned(whole) == "beforeafter"
    for cut in range(len(whole)):
        assert cleaned(whole[:cut], whole[cut:]) == "beforeafter"


@pytest.mark.parametrize("opening", [b"\x1b]0;", b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX", "\x9d".encode()])
def test_a_string_that_never_ends_takes_the_rest_of_its_line(opening: bytes) -> None:
    assert cleaned(b"a" + opening + b"t" * 2000 + b"\nshown") == "a\nshown"


@pytest.mark.parametrize("opening", [b"\x1b]", b"\x1bP", b"\x1b[", b"\x1b("])
def test_no_sequence_swallows_more_than_its_bound(opening: bytes) -> None:
    filler = b"(" if opening == b"\x1b(" else b"1"
    shown = cleaned(opening + filler * (LONGEST_SEQUENCE + 100) + b"the end")
    assert shown.endswith("the end")
    assert 100 <= len(shown) - len("the end") <= 102


@pytest.mark.parametrize(
    "unfinished", [b"\x1b", b"\x1b[", b"\x1b[31", b"\x1b]0;x", b"\x1b(", "\x9b".encode(), b"\x1bP\x1b"]
)
def test_an_unfinished_sequence_ends_with_its_stream(unfinished: bytes) -> None:
    stream = StreamCleaner()
    assert stream.feed(b"a" + unfinished) + stream.close() == "a"
    assert stream.feed(b"0mb\x07") + stream.close() == "0mb\\x07"


@pytest.mark.parametrize("after", ["\n", "é", "\x00"])
def test_a_character_that_cannot_belong_to_a_sequence_ends_it_and_is_shown(after: str) -> None:
    shown = {"\x00": "\\x00"}.get(after, after)
    assert cleaned(b"a\x1b[31" + after.encode() + b"b") == f"a{shown}b"
    assert cleaned(b"a\x1b" + after.encode() + b"b") == f"a{shown}b"


@pytest.mark.parametrize(
    ("given_bytes", "shown"),
    [
        pytest.param(b"one\r\ntwo\r\n", "one\ntwo\n", id="CRLF is newline"),
        pytest.param(b"one\r\r\ntwo", "one\ntwo", id="and with one more CR"),
        pytest.param(b"\r 10%\r 50%\r100%\ndone", "100%\ndone", id="a progress bar leaves its last state"),
        pytest.param(b"10%\r50%\r100%", "10%\n100%", id="what was shown is not taken back"),
        pytest.param(b"abcdef\rXY\n", "abcdef\nXYcdef\n", id="overwriting, as in a terminal"),
        pytest.param(b"abcdef\r\x1b[KXY\n", "abcdef\nXY\n", id="erasing to the end of the line"),
        pytest.param(b"abcdef\x1b[2KXY\n", "abcdef\nXY\n", id="erasing the line"),
        pytest.param(b"abcdef\x1b[1KXY\n", "abcdefXY\n", id="erasing to its beginning is dropped"),
        pytest.param(b"|\b/\b-\b\\\b done\n", "|\n done\n", id="backspace"),
        pytest.param(b"ab\b\b\b\b\bc\n", "ab\ncb\n", id="backspace stops at the line's beginning"),
        pytest.param(b"abc\r\n", "abc\n", id="a line that did not change is not repeated"),
        pytest.param(b"abc\rabc\n", "abc\n", id="nor one overwritten with itself"),
        pytest.param(b"\x1b[31mabc\rX\x1b[32mY\n", "\x1b[31mabc\nX\x1b[0;32mY\x1b[0;31mc\n\x1b[0m", id="colours too"),
        pytest.param(b"\r\0\n", "\\x00\n", id="an escaped character is one character"),
        pytest.param(
            b"a" * (LONGEST_LINE + 1) + b"\rb\n",
            "a" * (LONGEST_LINE + 1) + "\nb\n",
            id="a line too long to change",
        ),
        pytest.param(
            b"\r" + b"a" * (LONGEST_LINE + 1) + b"\rb\n",
            "a" * (LONGEST_LINE + 1) + "\nb\n",
            id="or grown too long",
        ),
        pytest.param(
            b"a" * (LONGEST_LINE + 1) + b"\r\nb",
            "a" * (LONGEST_LINE + 1) + "\nb",
            id="CRLF after such a line",
        ),
    ],
)
def test_lines(given_bytes: bytes, shown: str) -> None:
    assert cleaned(given_bytes) == shown
    assert cleaned(*(bytes([byte]) for byte in given_bytes)) == shown


def test_a_line_without_its_newline_is_shown_at_once() -> None:
    assert StreamCleaner().feed(b"Working ...") == "Working ..."


def test_a_character_cut_in_two_is_one_character() -> None:
    assert cleaned(b"caf\xc3", b"\xa9\n") == "café\n"


def test_bytes_that_are_not_text_are_marked_and_counted() -> None:
    stream = StreamCleaner()
    shown = stream.feed(bytes(range(0x80, 0xA0)) + b"\xfe\xff\n") + stream.feed(b"\xe2\x82") + stream.close()
    assert shown == "\ufffd" * 34 + "\n" + "\ufffd" * 2
    assert stream.bad_bytes == 36


def test_a_lone_surrogate_in_text_is_shown_escaped() -> None:
    assert safe_text("\udc80 \ud83d") == "\\udc80 \\ud83d"


@settings(deadline=None, max_examples=400)
@given(HOSTILE, st.lists(st.integers(0, 200), max_size=8))
@example(b"\x1b]" + b"a" * LONGEST_SEQUENCE + b"\x1b[31mx", [3])
def test_the_result_does_not_depend_on_how_the_bytes_were_cut(data: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    parts = [data[start:stop] for start, stop in pairwise(edges)]
    assert cleaned(*parts) == cleaned(data)


@settings(deadline=None, max_examples=400)
@given(HOSTILE)
def test_only_what_can_be_seen_comes_out_and_colour_is_closed(data: bytes) -> None:
    shown = cleaned(data)
    assert invisible(shown) == set()
    colours = [found[0] for found in COLOUR.finditer(shown)]
    assert not colours or colours[-1] == "\x1b[0m"
    assert not any("8" in colour[2:-1].split(";") and "38" not in colour and "48" not in colour for colour in colours)
    shown.encode()


@settings(deadline=None, max_examples=400)
@given(HOSTILE | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")), st.integers(60, 300))
def test_cleaning_what_is_clean_changes_nothing(data: bytes, most: int) -> None:
    shown = safe_text(data)
    assert safe_text(shown) == shown
    short = safe_text(data, most)
    assert len(short) <= most
    assert safe_text(short, most) == short
    assert invisible(short) == set()


@settings(deadline=None)
@given(st.text(st.characters()), st.integers(2, 80))
def test_a_name_is_one_visible_line(text: str, most: int) -> None:
    shown = safe_name(text, most)
    assert len(shown) <= most
    assert "\n" not in shown
    assert "\t" not in shown
    assert "\x1b" not in shown
    assert invisible(shown) == set()
    assert not set(shown) & {"\u200c", "\u200d", "\ufe0e", "\ufe0f"}
    assert safe_name(shown, most) == shown


def test_a_name_drops_nothing() -> None:
    assert safe_name("ok\r\n\t\x1b[2J\u202eexe.txt") == "ok\\r\\n\\t\\x1b[2J\\u202eexe.txt"
    assert safe_name("x" * 300) == "x" * 199 + "…"


def test_a_text_that_was_cut_says_so_and_closes_its_colour() -> None:
    assert safe_text("\x1b[31m" + "x" * 500, 60) == "\x1b[31m" + "x" * 26 + "\x1b[0m\n… the rest is left out …"


@pytest.mark.parametrize(
    "unit",
    [
        b"x\ry\n", b"\ra", b"a\b", b"\x1b", b"\x1b[", b"\x1b[1ma\x1b[m", b"\x1b]", b"\xc2\x9b", b"\0", b"\xff",
        "\u202e".encode(), "\u0301".encode(), "\u200d".encode(), b"\x1b[2Ka", b"\x1b[K", b"\x1b]" + b"a" * 4000,
        b"\x1b[" + b"1;" * 31 + b"m",
    ],
)  # fmt: skip
def test_hostile_text_takes_no_longer_than_other_text(unit: bytes) -> None:
    """Four times what is kept of a stream; generous, so that only time that grows faster than the text fails."""
    data = b"a" * 4000 + unit * (256 * 1024 // len(unit))
    with processor_time(below=1.5):
        cleaned(data)


def test_colour_can_be_taken_out_of_what_is_safe() -> None:
    text = safe_text("\x1b[1;31mred\x1b[0m and \x1b[38;5;200mpink\x1b[0m")
    assert "\x1b" in text
    assert without_colour(text) == "red and pink"
