"""HTML from boxes: reduced to text, lists and tables by a worker that can be killed, whatever the HTML does to it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybox_kernel.safe_display.displays import Refused
from pybox_kernel.safe_display.html_cleaner import MOST_BYTES, SECONDS, WORKER, HtmlCleaner
from pybox_kernel.safe_display.html_worker import DEEPEST_CLEAN, TAGS, WIDEST_SPAN, examine

VOID = ("br", "hr")


class Inert(HTMLParser):
    """Fails at anything but balanced elements of the list, with sane spans. ``text`` is what a reader sees."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text = ""
        self.deepest = 0
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        for name, value in attrs:
            assert tag in ("td", "th")
            assert name in ("colspan", "rowspan")
            assert re.fullmatch("[0-9]+", value or "")
            assert 1 <= int(value or "") <= WIDEST_SPAN
        if tag not in VOID:
            self.open.append(tag)
        self.deepest = max(self.deepest, len(self.open))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


@pytest.fixture(scope="module")
def cleaner() -> Iterator[HtmlCleaner]:
    found = HtmlCleaner()
    yield found
    found.close()


def refused(cleaner: HtmlCleaner, source: str) -> str:
    with pytest.raises(Refused) as found:
        cleaner.clean(source)
    return str(found.value)


def pid(cleaner: HtmlCleaner) -> int:
    assert cleaner._worker is not None
    return cleaner._worker.pid


def is_alive(process: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


# What is left


def test_text_lists_and_tables_are_kept(cleaner: HtmlCleaner) -> None:
    source = (
        "<div><h1>A</h1><p>one <b>two</b> <i>three</i><br><code>four</code></p><ul><li>five</li></ul>"
        '<table><thead><tr><th colspan="2">six</th></tr></thead>'
        '<tbody><tr><td rowspan="100">7</td><td>8</td></tr></tbody>'
        "</table><dl><dt>nine</dt><dd>ten</dd></dl><pre>a\n\tb</pre><blockquote>&lt;&amp;</blockquote></div>"
    )
    assert cleaner.clean(source) == (source, False)
    for tag in TAGS:
        found, left_out = cleaner.clean(f"<table><tr><td><{tag}>x")
        assert not left_out
        assert f"<{tag}>" in found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("a<script>alert(1)</script>b", "ab"),
        ("a<style>*{display:none}</style>b", "ab"),
        ("a<svg onload=alert(1)><script>1</script></svg>b", "ab"),
        ("a<math><mtext></math>b", "ab"),
        ("<img src=x onerror=document.title=1>x", "x"),
        ("<a href='javascript:alert(1)'>click</a>", "click"),
        ("<a href='https://example.org'>click</a>", "click"),
        ("<iframe srcdoc='<script>1</script>'></iframe>x", "x"),
        ("<form action=/x><input autofocus onfocus=alert(1)><button>go</button></form>", "go"),
        ("<object data=x></object><embed src=x><video src=x></video>x", "x"),
        ("<base href=//x><meta http-equiv=refresh content=0><link rel=stylesheet href=//x>x", "x"),
        ("<b onclick=alert(1)>x</b>", "<b>x</b>"),
    ],
)
def test_what_could_act_or_fetch_is_left_out_and_that_is_said(cleaner: HtmlCleaner, source: str, found: str) -> None:
    assert cleaner.clean(source) == (found, True)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<b style='position:fixed' class=jp-Cell id=x title=y data-x=1>x</b>", "<b>x</b>"),
        ("a<!-- a comment -->b", "ab"),
        ("<!doctype html><html><body>x</body></html>", "x"),
        ("<?php x ?>y", "y"),
        ("<table border=1 class=dataframe><tr><td>1", "<table><tbody><tr><td>1</td></tr></tbody></table>"),
        ("<td>outside", "outside"),
        ("</figure></div></details>x", "x"),
        ("<table><tr><td colspan=101 rowspan=0>1", "<table><tbody><tr><td>1</td></tr></tbody></table>"),
        ("<table><tr><td colspan='1e1' rowspan='-1'>1", "<table><tbody><tr><td>1</td></tr></tbody></table>"),
        ("<table><tr><td colspan=' 7 '>1", '<table><tbody><tr><td colspan="7">1</td></tr></tbody></table>'),
        ("<p rowspan=3>x", "<p>x</p>"),
    ],
)
def test_looks_and_mistakes_are_mended_without_a_word(cleaner: HtmlCleaner, source: str, found: str) -> None:
    html, left_out = cleaner.clean(source)
    assert html == found
    assert left_out is ("figure" in source)


def test_its_text_is_made_safe_like_any_text(cleaner: HtmlCleaner) -> None:
    html, _ = cleaner.clean("\x1b[31m&#27;]0;t&#7;<b>&#x202e;evil&#x200b;</b>&#0;\r\n\tend&#x85;")
    page = Inert(html)
    assert page.text == "\\x1b[31m\\x1b]0;t\\x07\\u202eevil\\u200b\ufffd\n\tend…"


def test_no_mathematics_is_left_for_a_page_to_typeset(cleaner: HtmlCleaner) -> None:
    html, _ = cleaner.clean(r"$\href{javascript:1}{x}$ <b>\(x\)</b> \begin{x} &#36;&#92;")
    rest = html.replace("<span>$</span>", "").replace("<span>\\</span>", "")
    assert "$" not in rest
    assert "\\" not in rest
    assert Inert(html).text == r"$\href{javascript:1}{x}$ \(x\) \begin{x} $" + "\\"


PIECES = st.sampled_from(
    [f"<{tag}>" for tag in sorted(TAGS)]
    + [f"</{tag}>" for tag in sorted(TAGS)]
    + ["<script>", "</script>", "<svg>", "</svg>", "<math>", "<style>", "</style>", "<title>", "<noscript>", "<select>"]
    + [
        "<a href=x>",
        "<img src=x>",
        "<form>",
        "<button>",
        "<template>",
        "<foreignObject>",
        "<mglyph>",
        "<annotation-xml>",
    ]
    + ["<!--", "-->", "<![CDATA[", "]]>", "<?", "<!", "<", ">", "&", '"', "'", "=", "/", "$", "\\", "\0", "\x1b", " "]
    + ["<td colspan=", "<td rowspan='", "<b onclick=", "&lt;", "&#60;script&#62;", "\u202e", "\ud800", "é", "x"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES | st.text(max_size=10), max_size=30).map("".join))
def test_whatever_comes_is_inert_balanced_text_or_refused(cleaner: HtmlCleaner, source: str) -> None:
    try:
        html, _ = cleaner.clean(source)
    except Refused:
        return
    page = Inert(html)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u200b\ud800-\udfff]", html)
    assert page.deepest <= DEEPEST_CLEAN


@pytest.mark.parametrize(
    "source",
    [
        "",
        " ",
        "<img src=x onerror=document.title=1>",
        "<script>alert(1)</script>",
        "<svg><text>x</svg>",
        "<hr>",
        "<ul><li>",
    ],
)
def test_html_of_which_nothing_is_left_is_refused(cleaner: HtmlCleaner, source: str) -> None:
    assert refused(cleaner, source) == "nothing of it can be shown"


# Bounds


def test_depth_is_bounded_before_and_after(cleaner: HtmlCleaner) -> None:
    assert "<ul><li>" * 64 in cleaner.clean("<ul><li>" * 64 + "x").html
    for source in (
        "<ul><li>" * 65,
        "<b>" * 65,
        "<div>" * 10000,
        "<svg><g>" * 5000,
        "<font>" * 5000,
        "<table><td>" * 65,
    ):
        assert refused(cleaner, source) == "more than 64 elements in one another"
    hidden = '<div x="</div>">' * 1000
    assert examine(hidden)[0] == 1
    assert refused(cleaner, hidden) == "more than 64 elements in one another"
    assert cleaner.clean("<p>x<li>y<tr><td>z<br>" * 2000).html


def test_size_is_bounded_before_and_after(cleaner: HtmlCleaner) -> None:
    assert cleaner.clean("x" * MOST_BYTES).html == "x" * MOST_BYTES
    assert refused(cleaner, "x" * (MOST_BYTES + 1)) == "larger than 64 kB"
    assert refused(cleaner, "é" * MOST_BYTES) == "larger than 64 kB"
    for grows in ("&" * MOST_BYTES, "$" * MOST_BYTES, "<" * MOST_BYTES, "\u202e" * (MOST_BYTES // 3)):
        assert refused(cleaner, grows) == "larger than 64 kB once it is clean"


@pytest.mark.parametrize(
    "source",
    [
        "<" * MOST_BYTES,
        "<a " * 20000,
        "<a x='" * 10000,
        "<b " + "\ton" * 20000,
        "<b>" * 60 + "<p>x</b>" * 8000,
        "".join(f"<p><b a={n}>x</p>" for n in range(3500)),
        "".join(f"<p><b a={n} x='</b>'>x</p>" for n in range(2500)),
        "".join(f"<b a={n} x='</b>'>" for n in range(1500)) + "<p>x</p>" * 4000,
        '<ul x="</ul>"><li>' * 3500,
        "<table><tr>" + "<td>x" * 13000,
        "&#x202e;" * 8000,
        "<!--" * 16000,
        "</b>" * 16000,
    ],
    ids=lambda source: source[:12],
)
def test_html_made_to_be_slow_is_over_within_the_limit(cleaner: HtmlCleaner, source: str) -> None:
    began = time.monotonic()
    with suppress(Refused):
        Inert(cleaner.clean(source[:MOST_BYTES]).html)
    assert time.monotonic() - began < SECONDS + 1


# The worker


@pytest.fixture
def own() -> Iterator[HtmlCleaner]:
    found = HtmlCleaner()
    yield found
    if found._worker is not None:
        os.kill(pid(found), signal.SIGCONT)
    found.close()


def test_it_is_started_when_needed_and_serves_the_whole_session(own: HtmlCleaner) -> None:
    assert own._worker is None
    own.clean("a")
    first = pid(own)
    own.clean("b")
    assert pid(own) == first
    own.close()
    own.close()
    assert not is_alive(first)
    assert refused(own, "c") == "the session is over"


def test_one_that_takes_too_long_is_killed_and_the_next_text_gets_another(own: HtmlCleaner) -> None:
    own.clean("a")
    stuck = pid(own)
    os.kill(stuck, signal.SIGSTOP)
    began = time.monotonic()
    assert refused(own, "b") == f"cleaning it took longer than {SECONDS:g} s"
    assert SECONDS <= time.monotonic() - began < SECONDS + 1
    assert not is_alive(stuck)
    assert own.clean("c").html == "c"
    assert pid(own) != stuck


def test_one_that_died_costs_one_text(own: HtmlCleaner) -> None:
    own.clean("a")
    os.kill(pid(own), signal.SIGKILL)
    assert refused(own, "b") == "it could not be cleaned"
    assert own.clean("c").html == "c"


def test_one_that_is_stuck_does_not_hold_up_the_end(own: HtmlCleaner) -> None:
    own.clean("a")
    stuck = pid(own)
    os.kill(stuck, signal.SIGSTOP)
    own.close()
    assert not is_alive(stuck)


def test_it_serves_threads_one_after_the_other(cleaner: HtmlCleaner) -> None:
    texts = [f"<b>{number}</b>" for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert [found.html for found in pool.map(cleaner.clean, texts)] == texts


def test_it_has_limits_of_its_own_and_nothing_of_the_kernels(own: HtmlCleaner) -> None:
    own.clean("a")
    process = Path(f"/proc/{pid(own)}")
    limits = (process / "limits").read_text()
    assert re.search(r"Max address space +536870912 +536870912 ", limits)
    assert re.search(r"Max cpu time +4 ", limits)
    assert re.search(r"Max file size +0 +0 ", limits)
    assert re.search(r"Max core file size +0 +0 ", limits)
    assert (process / "environ").read_bytes() == b""
    assert (process / "cwd").readlink() == Path("/")
    assert len(list((process / "fd").iterdir())) <= 4


def test_nothing_of_the_notebooks_folder_is_imported(
    own: HtmlCleaner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("nh3", "struct", "re", "socket", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert own.clean("<b>x").html == "<b>x</b>"
    assert not (tmp_path / "imported").exists()


def test_it_ends_with_a_kernel_that_is_killed() -> None:
    program = (
        "import os, signal\nfrom pybox_kernel.safe_display.html_cleaner import HtmlCleaner\n"
        "cleaner = HtmlCleaner()\ncleaner.clean('x')\nprint(cleaner._worker.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    worker = int(done.stdout)
    began = time.monotonic()
    while is_alive(worker):
        assert time.monotonic() - began < 5
        time.sleep(0.01)


def test_the_parser_is_not_in_the_kernels_own_process() -> None:
    assert WORKER.exists()
    program = "import sys, pybox_kernel.sessions.session\nprint('nh3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
