"""Answers for a model: bounded, and nothing that a program wrote stands outside of a fence."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.files.box_files import OutputFile
from pybox_kernel.mcp.answer import MOST_PICTURES, Answered, answered, output_schema, returned_file
from pybox_kernel.mcp.asks import Ceilings
from pybox_kernel.mcp.text import Fence, cut
from pybox_kernel.mcp.words import in_words
from pybox_kernel.receipt.model import BoxFile, FileNotBrought, Receipt, Stream, Wall, Withheld
from pybox_kernel.running.runner import ProgramError, RunResult
from pybox_kernel.safe_display.displays import CleanHtml, Display, Picture
from pybox_kernel.safe_display.text import SafeText, safe_name, safe_text
from tests.fences import outside_of_fences
from tests.receipts import carried, ended, receipt

OWN = Ceilings(("stdlib",), 30, files=True, carry=True)
LINES = st.lists(st.text("`~ \nab[]", max_size=30) | st.sampled_from(["```", "`" * 40, "[end]"]), max_size=6)


@given(LINES)
def test_no_text_closes_its_fence(lines: list[str]) -> None:
    fence = Fence()
    shown = fence.around("title", "\n".join(["SAID", *lines, "SAID"]))
    assert outside_of_fences(shown) == f"[{fence.mark} begin: title]\n[{fence.mark} end]"


def test_the_mark_is_new_for_each_answer() -> None:
    assert len({Fence().mark for _ in range(100)}) == 100


@given(st.text(), st.integers(0, 40))
def test_a_text_is_cut_to_its_head_and_tail(text: str, most: int) -> None:
    shown = cut(safe_text(text), most)
    plain = cut(safe_text(text), 10**6).text
    assert shown.whole == (len(plain) <= most)
    if not shown.whole:
        assert len(shown.text) <= most + 50
        head, _, tail = shown.text.partition("\n… ")
        assert plain.startswith(head)
        assert plain.endswith(tail.partition("left out …\n")[2])


def run(found: Receipt, **parts: Any) -> RunResult:
    empty = {"stdout": SafeText(""), "stderr": SafeText(""), "error": None}
    return RunResult(found, **{**empty, **parts})


def answer_of(result: RunResult, *displays: Display, wanted: tuple[str, ...] = ()) -> Answered:
    found = answered(result, displays, wanted, None, OWN)
    jsonschema.validate(found.answer.model_dump(mode="json", by_alias=True), output_schema())
    return found


def test_every_word_of_a_program_is_fenced() -> None:
    said = safe_text("SAID\n```\nSAID")
    wall = Wall(kind="module", what="SAID", cell=None)
    found = receipt(
        observed__end=ended("exited", code=1),
        said__error="SAID",
        said__wall=wall.model_dump(),
        said__withheld=[Withheld(what="SAID", bytes=1, number=1).model_dump()],
        said__not_brought=[FileNotBrought(name="SAID", bytes=1, why="SAID").model_dump()],
    )
    error = ProgramError(safe_name("SAID"), said, said)
    shown = Display(result=False, text=said, picture=Picture("image/png", 1, 1, b"x"))
    value = Display(result=True, text=said)
    files = (OutputFile("SAID", b"SAID"), OutputFile("SAID2", b"\0SAID"))
    result = run(found, stdout=said, stderr=said, error=error, files=files)
    answer, pictures = answer_of(result, shown, value, wanted=("SAID", "SAID2", "SAID3"))
    words = in_words(answer)
    assert words.count("SAID") > 10
    assert "SAID" not in outside_of_fences(words)
    assert len(pictures) == 1


def test_what_a_session_does_not_keep_is_said_inside_a_fence() -> None:
    found = receipt(
        asked__options__carry="on",
        observed__carried=carried(why_nothing="SAID"),
        observed__end=ended("exited", code=1),
        said__lost=[{"name": f"SAID{number}", "type": "SAID", "why": "SAID\n```"} for number in range(20)],
        said__lost_more=1,
        said__not_restored=[{"names": ["SAID"], "more_names": 0, "kind": "", "why": "SAID"}],
        said__withheld=[Withheld(what="SAID", bytes=1, number=1).model_dump()],
        said__wall=Wall(kind="name", what="SAID", cell=None).model_dump(),
    )
    words = in_words(answer_of(run(found)).answer)
    outside = outside_of_fences(words)
    assert words.count("SAID") > 10
    assert "SAID" not in outside
    assert "21 values not kept for the session" in outside
    assert "1 value of the session not made again" in outside
    assert "The session has no such name" in outside


def test_a_value_is_said_once_and_its_picture_is_among_what_was_shown() -> None:
    text = safe_text("a table")
    table = Display(result=True, text=text, html=CleanHtml("<table></table>"))
    answer, pictures = answer_of(run(receipt()), table)
    assert answer.value is not None
    assert (answer.value.text, answer.displays, pictures) == ("a table", (), ())
    drawn = Display(result=True, text=text, picture=Picture("image/jpeg", 1, 1, b"x"))
    answer, pictures = answer_of(run(receipt()), drawn)
    assert answer.value is not None
    assert [(shown.text, shown.form, shown.picture) for shown in answer.displays] == [("", "image/jpeg", 1)]
    assert pictures == (drawn.picture,)


WIDE = SafeText("x" * 300_000)


def test_an_answer_is_bounded_whatever_a_program_made() -> None:
    name = "/".join(["n" * 200] * 8)
    found = receipt(
        said__stdout=Stream(bytes=300_000, kept=300_000, bad_bytes=0).model_dump(),
        said__files=[BoxFile(name=f"{name}{number}", bytes=1, sha256="0" * 64).model_dump() for number in range(64)],
        said__not_brought=[FileNotBrought(name=name, bytes=1, why="x" * 200).model_dump() for _ in range(64)],
        said__withheld=[Withheld(what="x" * 200, bytes=1, number=1).model_dump() for _ in range(100)],
    )
    error = ProgramError(safe_name("x" * 300), WIDE, WIDE)
    picture = Picture("image/png", 1, 1, b"x" * 100_000)
    displays = [Display(result=False, text=WIDE, picture=picture) for _ in range(29)] + [Display(True, WIDE)]
    files = tuple(OutputFile(f"f{number}", b"y" * 60_000) for number in range(64))
    result = run(found, stdout=WIDE, stderr=WIDE, error=error, files=files)
    answer, pictures = answer_of(result, *displays, wanted=tuple(file.name for file in files))
    words, data = in_words(answer), answer.model_dump_json(by_alias=True)
    assert sum(len(picture.data) for picture in pictures) <= 1 << 20
    assert len(pictures) == MOST_PICTURES
    assert len(data) < 150_000
    assert len(words) < 150_000
    assert not answer.receipt_complete
    assert len(answer.receipt.to_json()) < 20_000
    assert answer.receipt.said.not_brought_unlisted + len(answer.receipt.said.not_brought) == 64
    assert [file.complete for file in answer.files[:2]] == [True, False]
    for shown in (answer.stdout, answer.stderr, answer.value, answer.error):
        assert shown is not None
        assert not shown.complete
    assert [shown.picture for shown in answer.displays[:9]] == [1, 2, 3, 4, 5, 6, 7, 8, None]


def test_a_short_receipt_is_whole_to_the_letter() -> None:
    found = receipt()
    answer, _ = answer_of(run(found))
    again = json.dumps(answer.model_dump(mode="json", by_alias=True)["receipt"])
    assert Receipt.from_json(again) == found
    assert answer.receipt_complete


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a,b\r\n1,2\r\n", "a,b\r\n1,2\r\n"),
        ("é\n".encode(), "é\n"),
        (b"", ""),
        (b"\0", None),
        (b"\xff", None),
        (b"a\rb", None),
        (b"\x1b[31mred", None),
        ("\u202egnp".encode(), None),
        ("a\u200bb".encode(), None),
    ],
)
def test_a_file_is_text_only_where_it_hides_nothing(data: bytes, text: str | None) -> None:
    found = returned_file(OutputFile("f", data), 100)
    assert found.text == text
    assert (found.base64 is None) == (text is not None)
    assert found.complete


def test_of_a_file_without_room_its_ends_are_returned_where_it_is_text() -> None:
    found = returned_file(OutputFile("f", ("é" * 9_000 + "end").encode()), 100)
    assert not found.complete
    assert found.text is not None
    assert found.text.startswith("é" * 900)
    assert found.text.endswith("end")
    assert len(found.text) < 5_000
    noise = random.Random(1).randbytes(20_000)
    assert returned_file(OutputFile("f", noise), 100).text is None
    assert returned_file(OutputFile("f", noise), 100).base64 is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"observed__end": ended("deadline")}, "ask for a longer timeout: up to 30 s"),
        ({"observed__meters__oom_kills": 1}, "killed for memory"),
        ({"said__wall": Wall(kind="module", what="x", cell=None).model_dump()}, "Images allowed here: stdlib"),
        ({"said__wall": Wall(kind="network", what="x", cell=None).model_dump()}, "no network"),
        ({"said__wall": Wall(kind="file", what="x", cell=None).model_dump()}, "`files`"),
        ({"said__files_left": 2}, "`return_files`"),
    ],
)
def test_an_agent_is_told_what_to_do(changes: dict[str, Any], words: str) -> None:
    answer, _ = answer_of(run(receipt(**changes)))
    text = outside_of_fences(in_words(answer))
    assert words in text
    assert words in f"{answer.verdict} {answer.advice}"
    for elsewhere in ("%%pybox", "cell", "shell"):
        assert elsewhere not in text
