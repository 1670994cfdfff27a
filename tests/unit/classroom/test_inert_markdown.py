"""Markdown of a stranger's: nothing in it is markup, whoever reads it, and what is harmless stays as it is."""

from __future__ import annotations

import re
from time import process_time

import mistune
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pybox_kernel.classroom.formula_words import COMMANDS, ENVIRONMENTS
from pybox_kernel.classroom.inert_markdown import LONGEST, dense, inert
from tests.hostile_notebooks import FILES

ACTIVE = re.compile(r"<[A-Za-z/!?]|!\[|\][(:]|://\S|www\.\S|[\w.+@-]@|&[#A-Za-z]", re.IGNORECASE)
READERS = {
    "CommonMark": MarkdownIt("commonmark", {"html": True}).render,
    "with tables": MarkdownIt("commonmark", {"html": True, "breaks": True}).enable(["table", "strikethrough"]).render,
    "mistune": mistune.create_markdown(
        escape=False, plugins=["table", "url", "footnotes", "def_list", "strikethrough"]
    ),
}
PIECES = (
    *("<", ">", "!", "[", "]", "(", ")", ":", "//", "http://a.b", "www.", "@", "&", "#60;", "lt;", "\\", "`", "```"),
    *("~~~", "$", "$$", "\\(", "\\[", "\\href", "\\begin{x}", "\\frac", "mermaid", "img src=x", "a", " ", "\n", "\t"),
    *("\r", "\b", "\0", "\x1b[0m"),
    *("\u200b", "\u202e", "\ud800", "|", "-", "*", "_", ">", "    ", "=", "^", "'", '"', "{", "}"),
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


def elements(page: str) -> list[str]:
    return re.findall(
        r"<(?:img|a|script|iframe|svg|style|(?![bh]r )[a-z]+ (?!class=\"language|start=|style=\"text-align))[^>]*>",
        page,
    )


@settings(max_examples=400, deadline=None)
@given(texts)
def test_nothing_is_left_that_could_begin_markup(text: str) -> None:
    assert not ACTIVE.search(inert(text).text)


@settings(max_examples=200, deadline=None)
@given(texts)
def test_a_text_that_is_inert_stays_as_it_is(text: str) -> None:
    once = inert(text).text
    assert inert(once).text == once


@settings(max_examples=200, deadline=None)
@given(texts)
def test_no_reader_of_markdown_makes_a_link_or_an_element_of_it(text: str) -> None:
    once = inert(text).text
    for name, reader in READERS.items():
        assert elements(str(reader(once))) == [], name


def test_the_readers_would_find_what_there_is() -> None:
    active = "<b onclick=x>x</b> ![p](http://a.b/c) <script>1</script>"
    for name, reader in READERS.items():
        assert len(elements(str(reader(active)))) >= 3, name


def test_the_corpus_is_markup_before_and_not_after() -> None:
    sources = [file for file in FILES if file.name.startswith("markdown-") and "math" not in file.name]
    assert len(sources) > 25
    for file in sources:
        text = file.data().decode(errors="replace").encode().decode("unicode_escape", "replace")[:50_000]
        assert not ACTIVE.search(inert(text).text), file.name


HONEST = (
    "# Title\n\n*Emphasis*, **more**, `code`, ~~gone~~ & more; a < b, 3 <= 4, x > y.\n\n1. one\n2. two\n   - three\n",
    "| a | b |\n|:--|--:|\n| 1 | 2 |\n\n> quoted\n\n---\n\n- [ ] a task\n- [x] done\n",
    "```python\nfor x in range(10):\n    print(x, y[0], {'a': 1})\n```\n\n~~~\ntext\n~~~\n",
    "$\\frac{a}{b} \\leq \\sqrt{x}$ and $$\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}$$",
    "Grüße, 日本語, नमस्ते, שלום, 🎉\n",
)


@pytest.mark.parametrize("text", HONEST)
def test_what_is_harmless_stays_as_it_is(text: str) -> None:
    assert inert(text) == (text, [])


def test_code_in_a_block_means_the_same() -> None:
    block = "f = d[k](x)\nv[1:2]: int = a@b\nif a <b: c = d &e\n"
    names: dict[str, str] = {}
    assert compile(inert(block).text, names.get("", "x"), "exec").co_code == compile(block, "x", "exec").co_code


@pytest.mark.parametrize(
    ("text", "shown", "kind"),
    [
        ("![p](http://a/b.png)", "! [p] (http:// a/b.png)", "pictures"),
        ("[x](javascript:1)", "[x] (javascript:1)", "links"),
        ("[a]: x", "[a] : x", "links"),
        ("<img src=x>", "< img src=x>", "html"),
        ("</p", "< /p", "html"),
        ("www.a.b", "www. a.b", "addresses"),
        ("me@a.b", "me @a.b", "addresses"),
        ("&lt;b&gt;", "& lt;b& gt;", "codes"),
        ("```mermaid\nx\n```", "```text mermaid\nx\n```", "diagrams"),
        ("~~~~ Mermaid\nx", "~~~~text  Mermaid\nx", "diagrams"),
        ("$\\href{x}{y}$", "$\\ href{x}{y}$", "formulas"),
        ("\\\\(\\\\href{x}", "\\\\(\\\\ href{x}", "formulas"),
        ("\\begin{tex-html}", "\\ begin{tex-html}", "formulas"),
    ],
)
def test_what_could_act_gets_a_space_and_is_told(text: str, shown: str, kind: str) -> None:
    made = inert(text)
    assert made.text == shown
    assert kind in [found[0] for found in made.found]


def test_a_path_or_an_escape_where_no_formula_can_be_stays_as_it_is() -> None:
    assert inert("`C:\\Users` and `print('\\nName')`").text == "`C:\\Users` and `print('\\nName')`"


def test_hidden_characters_are_shown() -> None:
    assert inert("a\u202eb\u200bc\x1b[31md\0").text == "a\\u202eb\\u200bcd\\x00"


def test_a_text_that_is_too_long_is_cut_and_said() -> None:
    made = inert("x" * (LONGEST + 5))
    assert len(made.text) == LONGEST
    assert [kind for kind, _ in made.found] == ["cut"]


SLOW = (
    *(
        "- " * 19,
        " ",
        "\t",
        "~~~a",
        "```a",
        "![",
        "](",
        "]:",
        "<a",
        "\\ab",
        "\\begin{",
        "$\\a",
        "> ",
        "1. ",
        "*a_",
        "\n",
    ),
    *(
        "http://",
        "a@",
        "&a",
        "www.",
        "\x1b[",
        "\b",
        "\r",
        "e\u0301\u0301",
        "\u200d",
        "[a]: ",
        "-" * 19 + "\n",
        ">" * 19 + "\n",
    ),
)


@pytest.mark.parametrize("piece", SLOW, ids=ascii)
def test_no_text_takes_long(piece: str) -> None:
    text = (piece * LONGEST)[:LONGEST]
    before = process_time()
    dense(inert(text).text)
    assert process_time() - before < 3


@pytest.mark.parametrize(
    "text", ["*a_" * 800, ">" * 25 + " a", "- " * 25 + "a", " " * 80 + "- a", "x\n\n" + "[" * 1600]
)
def test_marks_without_end_are_dense(text: str) -> None:
    assert dense(text)


@pytest.mark.parametrize(
    "text", [*HONEST, "> > > a", "- a\n  - b\n    - c", "| `a` | *b* |\n" * 300, "-" * 80, "* * *", "1. a\n" * 900]
)
def test_what_people_write_is_not(text: str) -> None:
    assert not dense(text)


def test_no_formula_may_link_style_define_or_load() -> None:
    acting = "href url class cssId style data require unicode def let newcommand renewcommand newenvironment csname mmlToken bbox includegraphics enclose mathtip texttip toggle action htmlData htmlClass htmlId htmlStyle"  # noqa: E501
    assert not COMMANDS & set(acting.split())
    assert not {"tex-html", "html", "verbatim"} & ENVIRONMENTS
