"""What a program prints, from the box to the text that is shown: bounded, decoded, and unable to act."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from pybox_kernel.policy import STDLIB
from pybox_kernel.render.text import render_full, render_short
from pybox_kernel.sessions.session import Session
from tests.boxes.watching import Watched, watched
from tests.cases import case, snippet

pytestmark = pytest.mark.engine

Run = Callable[..., Watched]

NOT_KEPT = re.compile(r"\n… ([\d,]+) bytes not kept …\n")
COLOURS = re.compile("\x1b\\[[0-9;]*m")


@pytest.fixture(scope="module")
def run(session: Session) -> Run:
    return lambda source, deadline=5.0: watched(session, source, deadline)


def not_kept(text: str) -> int:
    [found] = NOT_KEPT.findall(text)
    return int(found.replace(",", ""))


# How much


@case("out-cap-keeps-nothing")
def test_of_too_much_output_the_beginning_and_the_end_are_kept_and_the_error_at_the_end_is_told(run: Run) -> None:
    ran = run(snippet("out-cap-keeps-nothing"))
    assert ran.out.startswith("line 0\nline 1\n")
    assert ran.out.endswith("line 59999\n")
    whole = sum(len(f"line {number}\n") for number in range(60000))
    stream = ran.result.receipt.said.stdout
    assert (stream.bytes, stream.kept) == (whole, STDLIB.kept_bytes)
    assert not_kept(ran.out) == whole - STDLIB.kept_bytes
    assert ran.error.value == "the reason is at the end"


@case("out-cap-counts-chars")
@pytest.mark.parametrize("character", ["€", "é", "👩"])
def test_output_is_counted_in_bytes_and_cut_between_characters(run: Run, character: str) -> None:
    source = snippet("out-cap-counts-chars").replace("\\u20ac", character)
    assert character in source
    ran = run(source)
    assert ran.ok
    stream = ran.result.receipt.said.stdout
    assert stream.bytes == 90000 * len(character.encode()) + 1
    assert STDLIB.kept_bytes - 8 <= stream.kept <= STDLIB.kept_bytes
    assert stream.bad_bytes == 0
    assert set(NOT_KEPT.sub("", ran.out)) == {character, "\n"}
    assert not_kept(ran.out) == stream.bytes - stream.kept


# Characters


@case("out-split-multibyte")
def test_a_character_that_comes_in_two_parts_is_one(run: Run) -> None:
    ran = run(snippet("out-split-multibyte"))
    assert (ran.out, ran.result.receipt.said.stdout.bad_bytes) == ("café\n", 0)


@case("out-invalid-utf8")
def test_bytes_that_are_no_text_are_marked_and_counted(run: Run) -> None:
    ran = run(snippet("out-invalid-utf8"))
    assert ran.ok
    assert ran.out == "\ufffd" * 34 + "\n"
    assert ran.result.receipt.said.stdout.bad_bytes == 34


@case("out-lone-surrogate")
def test_half_a_character_is_an_ordinary_error_of_the_program(run: Run) -> None:
    ran = run(snippet("out-lone-surrogate"))
    assert ran.out == "before\n"
    assert ran.error.name == "UnicodeEncodeError"
    ran.result.receipt.to_json().encode("ascii")
    ran.traceback.encode("utf-8")


@case("out-nul")
def test_a_nul_is_shown_and_cuts_nothing(run: Run) -> None:
    assert run(snippet("out-nul")).out == "a\\x00b\\x00c\n"


@case("out-bidi")
def test_characters_that_turn_text_round_or_hide_are_shown_escaped(run: Run) -> None:
    assert run(snippet("out-bidi")).out == "\\u202etxt.exe\\u202c\\u200b\n"
    ran = run("raise type('\\u202eexe', (Exception,), {})('\\u200b\\u202e')")
    assert not {"\u202e", "\u200b"} & set(f"{ran.error.name}{ran.error.value}{ran.traceback}")
    assert "\u202e" not in render_full(ran.result.receipt)


# Escape sequences


@case("out-ansi-screen")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_of_escape_sequences_only_colours_are_left(run: Run, stream: str) -> None:
    ran = run("import sys\nsys.stdout = sys." + stream + "\n" + snippet("out-ansi-screen"))
    shown = getattr(ran.result, stream)
    assert shown == "\x1b[32mall limits verified\x1b[0m\n"


@case("out-osc52")
@pytest.mark.parametrize("end", ["\\x07", "\\x1b\\\\", "\\xc2\\x9c"])
def test_the_clipboard_is_not_reached_however_the_sequence_is_cut_and_ended(run: Run, end: str) -> None:
    source = snippet("out-osc52").replace("\\x07", end)
    assert run(source).out == "done\n"


@case("out-unterminated-escape")
def test_a_sequence_without_an_end_takes_nothing_along(run: Run) -> None:
    ran = run(snippet("out-unterminated-escape") + "\nprint('next line')\nimport sys\nprint('\\x1b]0;', end='')")
    assert ran.ok
    assert "next line\n" in ran.out
    assert "\x1b" not in ran.out
    assert "Ended normally" in render_short(ran.result.receipt)


# Forgeries


@case("out-fake-receipt")
def test_a_receipt_that_is_printed_stays_output(run: Run) -> None:
    source = snippet("out-fake-receipt") + "\nprint('✓ Ended normally · sealed')\nraise SystemExit(3)"
    ran = run(source)
    assert "limits verified" in ran.out
    assert ran.result.receipt.observed.end.exit_code == 3
    assert "Ended normally" not in render_full(ran.result.receipt)


@case("out-forge-transfer")
def test_no_mark_that_a_program_could_print_opens_another_way_out(run: Run) -> None:
    """It walks the frames, and prints what looks like events and frames of every kind, on every descriptor it has."""
    ran = run(
        snippet("out-forge-transfer")
        + "\nimport os, struct\n"
        + 'payload = b\'{"name":"a","bytes":1}\'\n'
        + "for kind in b'ROEVvXFoe':\n"
        + "    frame = struct.pack('>cI', bytes([kind]), len(payload)) + payload\n"
        + "    os.write(1, frame); os.write(2, frame)\n"
        + "print()\nprint('end')"
    )
    said = ran.result.receipt.said
    assert ran.ok
    assert (said.files, said.displays, said.error) == ((), 0, None)
    assert ran.out.count('{"name":"a","bytes":1}') == 9
    assert ran.out.endswith("end\n")


# The end


@case("out-daemon-holds-pipe")
def test_a_process_that_is_left_behind_and_holds_the_output_ends_with_the_program(run: Run) -> None:
    ran = run(snippet("out-daemon-holds-pipe"))
    assert ran.ok
    assert ran.out == "parent done\n"
    assert (ran.result.receipt.observed.meters.ran_seconds or 9) < 2.0
    assert ran.result.receipt.observed.box.removed is True


@case("out-order")
def test_the_order_of_the_two_streams_is_listed_as_not_known(run: Run) -> None:
    ran = run(snippet("out-order"))
    assert ran.out == "".join(f"o {number}\n" for number in range(20))
    assert ran.err == "".join(f"e {number}\n" for number in range(20))
    assert "output_order" in {entry.what for entry in ran.result.receipt.unknown}


@case("out-kept-on-timeout")
def test_what_was_printed_before_the_limit_is_shown_and_called_incomplete(run: Run) -> None:
    ran = run(snippet("out-kept-on-timeout"), deadline=1.0)
    assert ran.out == "step 1 of 2\n"
    assert ran.result.receipt.observed.end.how == "deadline"
    assert "output so far kept" in render_short(ran.result.receipt)
