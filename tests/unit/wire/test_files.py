"""A box's files as its frames bring them: whatever is out of bounds, or out of turn, ends it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.errors import BoxError
from pybox_kernel.files.box_files import InputFile, OutputFile
from pybox_kernel.policy import MIB, STDLIB
from pybox_kernel.wire.files import FilesFromBox, put_in
from pybox_kernel.wire.frames import Frame, FrameReader
from tests.cases import case

ACCOUNT = {"found": 0, "skipped": [], "not_listed": 0, "cut": None}


def header(name: str, size: int) -> Frame:
    return Frame(b"D", json.dumps({"name": name, "size": size}).encode())


def account(**changes: Any) -> Frame:
    return Frame(b"T", json.dumps({**ACCOUNT, **changes}).encode())


def brought(*frames: Frame, inputs: tuple[InputFile, ...] = (), bring: bool = True) -> FilesFromBox:
    files = FilesFromBox(STDLIB, inputs, bring=bring)
    for frame in frames:
        files.take(frame)
    return files


def test_a_file_comes_out_of_its_parts_whole() -> None:
    files = brought(header("a/b", 5), Frame(b"d", b"123"), Frame(b"d", b"45"), header("empty", 0), account(found=2))
    assert files.files == [OutputFile("a/b", b"12345"), OutputFile("empty", b"")]
    assert (files.found, files.not_brought, files.incomplete, files.told) == (2, [], None, True)


@pytest.mark.parametrize(
    "frames",
    [
        (Frame(b"d", b"x"),),
        (header("a", 1), header("b", 1)),
        (header("a", 1), account()),
        (account(), account()),
        (account(), header("a", 0)),
        (header("a", 0), Frame(b"d", b"")),
    ],
)
def test_a_frame_out_of_turn_ends_it(frames: tuple[Frame, ...]) -> None:
    with pytest.raises(BoxError, match="wrong order"):
        brought(*frames)


def test_more_of_a_file_than_was_told_ends_it() -> None:
    with pytest.raises(BoxError, match="more of a file"):
        brought(header("a", 1), Frame(b"d", b"xy"))


def test_more_files_than_were_asked_for_end_it() -> None:
    whole = [header(f"{number}", 0) for number in range(STDLIB.files)]
    assert len(brought(*whole).files) == STDLIB.files
    with pytest.raises(BoxError, match="more files than"):
        brought(*whole, header("one more", 0))
    with pytest.raises(BoxError, match="more files than"):
        brought(header("a", 8 * MIB + 1))
    with pytest.raises(BoxError, match="more files than"):
        brought(header("a", 1), Frame(b"d", b"x"), header("b", 8 * MIB))


def test_files_that_were_not_asked_for_end_it() -> None:
    with pytest.raises(BoxError, match="wrong order"):
        brought(header("a", 0), bring=False)
    assert brought(account(found=3), bring=False).found == 3


@case("fs-out-dotdot")
@pytest.mark.parametrize("name", ["../../escape", "/etc/passwd", "a/../../b", "", "a//b", "CON", ".bashrc", "a\nb"])
def test_a_name_that_is_not_to_be_written_is_listed_and_not_taken(name: str) -> None:
    files = brought(header(name, 1), Frame(b"d", b"x"), header("good", 0), account())
    assert files.files == [OutputFile("good", b"")]
    (left,) = files.not_brought
    assert left.bytes == 1
    assert left.why.startswith("its name ")
    assert "\n" not in left.name


def test_of_names_that_meet_the_first_is_taken() -> None:
    files = brought(header("Plot.png", 0), header("plot.PNG", 0), header("plot.png/x", 0), account())
    assert files.files == [OutputFile("Plot.png", b"")]
    assert {left.why for left in files.not_brought} == {"some computers take its name for that of another file"}


def test_a_file_that_was_put_in_and_not_changed_is_none_of_the_programs() -> None:
    inputs = (InputFile("a", b"1"), InputFile("b", b"2"))
    files = brought(header("a", 1), Frame(b"d", b"1"), header("b", 1), Frame(b"d", b"3"), account(), inputs=inputs)
    assert files.files == [OutputFile("b", b"3")]


def test_what_stays_in_the_box_is_listed_with_its_reason() -> None:
    skipped = [{"name": "l", "size": None, "why": "link"}, {"name": "\x1b[2J", "size": 9, "why": "big"}]
    files = brought(account(skipped=skipped, not_listed=7, cut="entries"))
    assert [left.name for left in files.not_brought] == ["l", "\\x1b[2J"]
    assert files.not_brought[0].why == "it is a link, and links are not followed"
    assert files.not_brought[1].why == "it is larger than the 8 MB that all files together may have"
    assert files.not_listed == 7
    assert files.incomplete == "there are more than 1,024 files and folders"


def test_a_file_that_time_cut_is_not_taken() -> None:
    files = brought(header("a", 2), Frame(b"d", b"x"), account(cut="time"))
    assert files.files == []
    assert files.not_brought[0].why == "the 2 s for taking files out were over"
    assert files.incomplete == "looking through them took longer than 2 s"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b"[]",
        b'{"name":"a"}',
        b'{"name":"a","size":-1}',
        b'{"name":"a","size":1.5}',
        b'{"name":"a","size":"1"}',
        b'{"name":"a","size":1,"mode":511}',
        b'{"name":null,"size":1}',
        b'{"name":"\\ud800","size":1}',
        b'{"name":"\xff","size":1}',
        b'{"name":"' + b"x" * 9000 + b'","size":1}',
        b"[" * 60000,
    ],
)
def test_a_header_out_of_its_form_ends_it(payload: bytes) -> None:
    with pytest.raises(BoxError, match="cannot be read"):
        brought(Frame(b"D", payload))


@pytest.mark.parametrize(
    "change",
    [
        {"found": -1},
        {"found": "1"},
        {"cut": "tired"},
        {"not_listed": None},
        {"more": 1},
        {"skipped": [{"name": "a", "size": None, "why": "<b>"}]},
        {"skipped": [{"name": "a", "size": None}]},
        {"skipped": [{"name": "a", "size": None, "why": "link"}] * 65},
    ],
)
def test_an_account_out_of_its_form_ends_it(change: dict[str, Any]) -> None:
    with pytest.raises(BoxError, match="cannot be read"):
        brought(account(**change))


FRAMES = st.one_of(
    st.builds(Frame, st.sampled_from([b"D", b"d", b"T", b"P"]), st.binary(max_size=20)),
    st.builds(header, st.text(max_size=8), st.integers(-1, 6)),
    st.builds(lambda data: Frame(b"d", data), st.binary(max_size=6)),
    st.builds(account),
)


@given(st.lists(FRAMES, max_size=12))
def test_whatever_comes_is_taken_or_ends_it(frames: list[Frame]) -> None:
    files = FilesFromBox(STDLIB, (), bring=True)
    try:
        for frame in frames:
            files.take(frame)
    except BoxError:
        pass
    assert sum(len(file.data) for file in files.files) <= STDLIB.file_bytes
    assert all(".." not in file.name.split("/") for file in files.files)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.binary(max_size=200_000)))
def test_files_go_in_as_frames_of_the_channel(files: dict[str, bytes]) -> None:
    inputs = [InputFile(name, data) for name, data in files.items()]
    found: list[tuple[dict[str, Any], bytearray]] = []
    data = put_in(inputs)
    position = 0
    while position < len(data):
        length = int.from_bytes(data[position + 1 : position + 5], "big")
        assert length <= 65536
        payload = data[position + 5 : position + 5 + length]
        if data[position : position + 1] == b"I":
            found.append((json.loads(payload), bytearray()))
        else:
            found[-1][1].extend(payload)
        position += 5 + length
    assert [InputFile(told["name"], bytes(body)) for told, body in found] == inputs
    assert all(told["size"] == len(body) for told, body in found)
    assert [told["to_come"] for told, _ in found] == list(range(len(inputs)))[::-1]


def test_the_reader_takes_all_that_files_can_bring_and_no_more() -> None:
    reader = FrameReader(100)
    reader.feed(b"O\0\0\0\x50" + b"x" * 80)
    with pytest.raises(BoxError, match="more than 100 bytes"):
        reader.feed(b"O\0\0\0\x50" + b"x" * 80)
