"""Names of files that go into a box or come out of it: what is refused, everywhere."""

from __future__ import annotations

import unicodedata
from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pybox_kernel.errors import OptionError
from pybox_kernel.files.box_files import InputFile, Spellings, checked_inputs, fault, reserved
from pybox_kernel.policy import MIB, STDLIB
from tests.cases import case

GOOD = (
    "a",
    "data/x.csv",
    "Übung 1.txt",
    "日本.csv",
    "a b",
    "a-rf",
    "~x",
    "x'y",
    "$(x)",
    "a.tar.gz",
    "😀.png",
    "1" * 255,
)


@pytest.mark.parametrize("name", GOOD)
def test_a_plain_name_is_taken(name: str) -> None:
    assert (fault(STDLIB, name), reserved(name)) == (None, None)


@case("fs-out-dotdot")
@pytest.mark.parametrize(
    "name", ["", "/", "/etc/passwd", "..", "../x", "a/../x", "a/..", "./x", "a/./x", "a//x", "a/", "//x", "a/../../x"]
)
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    assert fault(STDLIB, name) == "leads somewhere else"


@pytest.mark.parametrize(
    "name",
    ["a\nb", "a\tb", "a\0", "\x1b[2J", "\x7f", "\x85", "photo\u202egpj.exe", "a\u200bb", "a\u2028b", "\ud800",
     "\udcc3(", "a\ufeff", "a/b\r", "x\u00ad", "e" + "\u0301" * 40],
)  # fmt: skip
def test_a_character_that_cannot_be_shown_is_refused(name: str) -> None:
    assert fault(STDLIB, name) == "has a character that cannot be shown"


def test_depth_and_length_are_bounded() -> None:
    deepest = "/".join(["d"] * STDLIB.file_depth + ["x"])
    assert fault(STDLIB, deepest) is None
    assert fault(STDLIB, "d/" + deepest) == f"has more than {STDLIB.file_depth} folders in it"
    assert fault(STDLIB, "ü" * 127) is None
    assert fault(STDLIB, "ü" * 128) == "has a part of more than 255 bytes"


@case("fs-out-reserved")
@pytest.mark.parametrize(
    "name",
    ["CON", "con", "nul.txt", "NUL .txt", "aux.tar.gz", "Com1", "lpt9.csv", "COM¹", "CONIN$", "prn", "a/CON/b", "a:b",
     "x.", "x ", " x", "x. ", "a/x./b", "a?b", "a*b", 'a"b', "a<b", "a>b", "a|b", "a\\b", "C:\\x", ".bashrc",
     ".ipynb_checkpoints/x", "a/.git/config", "...", "-rf", "a/--delete", "desktop.ini", "a/Desktop.INI", "autorun.inf",
     "x.lnk", "x.URL", "a/x.scf", "x.library-ms", "x.searchConnector-ms", "HEAD", "a/Head",
     "x.theme", "x.website", "x.desktop"],
)  # fmt: skip
def test_a_name_that_some_computer_reserves_is_refused(name: str) -> None:
    assert reserved(name) is not None


@pytest.mark.parametrize(
    "name",
    ["console", "com10", "contact.csv", "null", "auxiliary.txt", "lpt", "a.con", "desktop.txt", "my.desktop.ini", "url",
     "x.urls", "HEAD.csv", "head/x"],
)  # fmt: skip
def test_a_name_that_only_resembles_a_reserved_one_is_taken(name: str) -> None:
    assert reserved(name) is None


@case("fs-out-case", "fs-out-nfc-nfd")
@pytest.mark.parametrize(
    "names",
    [
        ("Plot.png", "plot.PNG"),
        ("straße", "STRASSE"),
        (unicodedata.normalize("NFC", "café"), unicodedata.normalize("NFD", "café")),
        ("Å", "\u212b"),
        ("ΣΑΣ", "σας"),
        ("Data/x", "data/y"),
        ("a", "a/b"),
        ("a", "A/b"),
        ("a/b/c", "a/B"),
        ("x", "x"),
    ],
)
def test_names_that_some_disk_takes_for_the_same_meet(names: tuple[str, str]) -> None:
    for first, second in permutations(names):
        spellings = Spellings()
        assert spellings.meets(first) is None
        assert spellings.meets(second) is not None
        assert spellings.meets("other") is None


def test_names_in_the_same_folder_do_not_meet() -> None:
    spellings = Spellings()
    assert [spellings.meets(name) for name in ("a/b", "a/c", "a/d/e", "a/d/f", "b")] == [None] * 5


PARTS = st.text(st.sampled_from("aAäÄßsS\u0308.É\u0301"), min_size=1, max_size=3)


@given(st.lists(st.lists(PARTS, min_size=1, max_size=3).map("/".join), max_size=6))
@example(["a/b", "A", "a/c"])
def test_of_the_names_that_are_taken_none_meets_another_however_a_disk_compares(names: list[str]) -> None:
    spellings = Spellings()
    taken = [name for name in names if spellings.meets(name) is None]
    for compare in (
        str.lower,
        str.upper,
        str.casefold,
        lambda name: unicodedata.normalize("NFC", name),
        lambda name: unicodedata.normalize("NFD", name).lower(),
    ):
        assert len({compare(name) for name in taken}) == len(taken)
        files = {compare(name) for name in taken}
        folders = {compare(name[:place]) for name in taken for place, letter in enumerate(name) if letter == "/"}
        assert not files & folders


@given(st.text(max_size=40))
def test_any_text_is_a_name_or_is_refused(name: str) -> None:
    if fault(STDLIB, name) is None:
        assert all(part not in ("", ".", "..") for part in name.split("/"))
        assert name.encode().decode() == name
        assert "\0" not in name
        assert "\n" not in name
    reserved(name)


# As input


def refused(*files: InputFile) -> str:
    with pytest.raises(OptionError) as caught:
        checked_inputs(STDLIB, files)
    assert caught.value.advice
    return caught.value.message


@case("fs-in-names")
def test_inputs_out_of_bounds_are_refused_with_the_name_and_the_limit() -> None:
    assert refused(InputFile("../x", b"")) == "The file ../x cannot be put into a box: its name leads somewhere else."
    many = [InputFile(str(number), b"") for number in range(65)]
    assert refused(*many) == "There are more than 64 files: a box takes no more."
    assert checked_inputs(STDLIB, many[:64]) == tuple(many[:64])
    whole = InputFile("a", bytes(8 * MIB))
    assert checked_inputs(STDLIB, [whole]) == (whole,)
    assert (
        refused(whole, InputFile("b.csv", b"x"))
        == "With b.csv the files have 8,388,609 bytes; a box takes 8,388,608 in all."
    )
    assert "cannot both be put into a box" in refused(InputFile("a", b""), InputFile("A", b""))


def test_a_box_that_takes_no_files_says_so() -> None:
    with pytest.raises(OptionError, match="The box 'stdlib' takes no files"):
        checked_inputs(STDLIB.model_copy(update={"files": 0}), [InputFile("a", b"")])
