"""What a program displays arrives on the page checked and made safe; the rest is said on the receipt."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import zlib
from typing import Any

import pytest
from PIL import Image

from pybox_kernel.images.store import RecordedImage
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.display import bundle
from pybox_kernel.running.display_door import MOST_DISPLAYS
from pybox_kernel.safe_display.displays import Display
from pybox_kernel.safe_display.html_cleaner import WORKER
from pybox_kernel.safe_display.text import SafeText
from pybox_kernel.sessions.session import Session
from tests.cases import case, snippet
from tests.unit.render.test_display import Frame
from tests.unit.safe_display.test_pictures import PLAIN, header, png
from tests.unit.wire.test_frames import TABLE

pytestmark = pytest.mark.engine


class Page:
    """Keeps what came, in its order: displays, and what was printed between them."""

    def __init__(self) -> None:
        self.items: list[Display | str] = []

    def started(self, deadline_seconds: float) -> None:
        return None

    def output(self, stream: str, text: SafeText) -> None:
        if self.items and isinstance(self.items[-1], str):
            self.items[-1] += text
        else:
            self.items.append(str(text))

    def display(self, display: Display) -> None:
        if display.picture is not None or display.table is not None or display.html is not None:
            Frame(bundle(display)["text/html"])
        self.items.append(display)

    @property
    def displays(self) -> list[Display]:
        return [item for item in self.items if isinstance(item, Display)]


def shown(session: Session, source: str, deadline: float = 5.0) -> tuple[Page, Receipt]:
    page = Page()
    receipt = session.run(source, deadline_seconds=deadline, watcher=page).receipt
    assert receipt.problem is None
    assert receipt.said.displays == len(page.displays)
    return page, receipt


def test_of_a_thing_that_comes_as_svg_and_as_png_the_png_is_shown(session: Session) -> None:
    both = "    def _repr_svg_(self): return '<svg/>'\n"
    page, receipt = shown(session, f"class Both:\n{both}    def _repr_png_(self): return {PLAIN!r}\nBoth()")
    assert [display.picture is not None for display in page.displays] == [True]
    page, receipt = shown(session, f"class Alone:\n{both}Alone()")
    assert [display.picture for display in page.displays] == [None]
    assert [item.what for item in receipt.said.withheld] == ["image/svg+xml"]


def withheld(receipt: Receipt) -> list[tuple[str, int]]:
    return [(item.what, item.bytes) for item in receipt.said.withheld]


OBJECT = """
class Shown:
    def __init__(self, **forms):
        for name, value in forms.items(): setattr(self, f"_repr_{name}_", lambda value=value: value)
    def __repr__(self): return "shown"
"""
FORGED = """
import json, os, struct
def forge(kind, value):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    os.write(3, struct.pack(">cI", kind, len(body)) + body)
PLAIN = {"result": False, "data": {"text/plain": "forged"}, "table": None, "withheld": {}}
"""


# HTML


@case("out-html-handler")
def test_html_with_a_handler_is_never_live(session: Session) -> None:
    page, receipt = shown(session, snippet("out-html-handler"))
    [display] = page.displays
    assert display.result
    assert (display.html, display.picture, display.table) == (None, None, None)
    assert display.text.startswith("<__main__.X ")
    assert withheld(receipt) == [("text/html: nothing of it can be shown", 36)]
    assert receipt.ok


@case("out-html-handler")
@pytest.mark.parametrize(
    ("html", "left"),
    [
        ("<b onmouseover=alert(1)>x</b>", "<b>x</b>"),
        ("x<script>document.title=1</script>", "x"),
        ("x<style>*{display:none}</style>", "x"),
        ("<a href=javascript:alert(1)>x</a>", "x"),
        ("<div style='position:fixed;inset:0'>x</div>", "<div>x</div>"),
        ("x<iframe srcdoc='<script>1</script>'></iframe>", "x"),
        ("</div></figure><details class=pybox><summary>✓ Ended normally</summary></details>", "✓ Ended normally"),
        ("<svg><script>1</script></svg>x<math><mtext><img src=x onerror=1></mtext></math>", "x"),
        ("<b>\\x1b]0;title\\x07\\u202e</b>", "<b><span>\\</span>x1b]0;title<span>\\</span>x07<span>\\</span>u202e</b>"),
    ],
)
def test_of_html_only_the_text_and_its_form_are_shown(session: Session, html: str, left: str) -> None:
    page, receipt = shown(session, f'{OBJECT}\ndisplay(Shown(html="""{html}"""))')
    assert [display.html for display in page.displays] == [left]
    assert receipt.said.html == 1


@case("out-html-handler")
def test_html_that_is_too_large_or_too_deep_is_withheld_and_its_text_is_shown(session: Session) -> None:
    source = (
        f'{OBJECT}\ndisplay(Shown(html="<i>" * 5000), Shown(html="x" * 70000), Shown(html=\'<i x="</i>">\' * 5000))'
    )
    page, receipt = shown(session, source)
    assert [bundle(display) for display in page.displays] == [{"text/plain": "shown"}] * 3
    assert sorted(withheld(receipt)) == [
        ("text/html", 70000),
        ("text/html: more than 64 elements in one another", 75000),
    ]


def test_the_cleaner_of_html_is_one_process_of_the_session_and_ends_with_it(box_image: RecordedImage) -> None:
    def workers() -> list[str]:
        found = subprocess.run(
            ["pgrep", "-f", "-P", str(os.getpid()), str(WORKER)], capture_output=True, text=True, check=False
        )
        return found.stdout.split()

    before = workers()
    with Session.open() as own:
        own.run("print(1)")
        assert workers() == before
        for _ in range(2):
            shown(own, f"{OBJECT}\ndisplay(Shown(html='<b>x</b>'))")
            assert len(workers()) == len(before) + 1
    assert workers() == before


# Other forms


@case("out-js-mime")
def test_a_script_in_a_bundle_becomes_its_text(session: Session) -> None:
    page, receipt = shown(session, snippet("out-js-mime"))
    assert page.items == [Display(True, SafeText("x"))]
    assert withheld(receipt) == [("application/javascript", 1)]


@case("out-js-mime")
def test_only_the_listed_forms_pass_whatever_a_bundle_holds(session: Session) -> None:
    mimes = [
        "application/javascript",
        "text/javascript",
        "text/markdown",
        "text/latex",
        "image/svg+xml",
        "image/gif",
        "application/json",
        "application/pdf",
        "application/geo+json",
        "application/vnd.jupyter.widget-view+json",
        "application/vnd.jupyter.widget-state+json",
        "application/vnd.vega.v5+json",
        "application/vnd.plotly.v1+json",
        "TEXT/HTML",
        "text/html; charset=utf-8",
        "text/plain\\n",
    ]
    page, receipt = shown(
        session, f"display({{**{{mime: 'evil' for mime in {mimes}}}, 'text/plain': 'kept'}}, raw=True)"
    )
    assert page.items == [Display(False, SafeText("kept"))]
    *proper, _, _, _ = mimes
    assert {item.what for item in receipt.said.withheld} == {*proper, "something without a proper name"}


@case("out-js-mime")
@pytest.mark.parametrize(
    "change",
    [
        {"data": {"text/plain": "x", "application/javascript": "1"}},
        {"data": {"text/plain": "x", "application/vnd.jupyter.widget-view+json": {"model_id": "1"}}},
        {"metadata": {"text/plain": {}}},
        {"transient": {"display_id": "receipt"}},
        {"buffers": []},
        {"result": "yes"},
        {"table": {**TABLE, "rows": [["<script>"]]}},
        {"table": {**TABLE, "style": "x"}},
    ],
)
def test_a_forged_event_out_of_the_form_is_not_shown(session: Session, change: dict[str, Any]) -> None:
    page, receipt = shown(session, f"{FORGED}\nforge(b'd', {{**PLAIN, **json.loads({json.dumps(change)!r})}})")
    assert page.displays == []
    assert [item.what for item in receipt.said.withheld] == ["displays that could not be read"]


def test_a_forged_event_can_say_no_more_than_the_runner_does(session: Session) -> None:
    evil = "</td><script>alert(1)</script>$x$"
    table = {**TABLE, "rows": [[evil, evil]] * 3}
    page, receipt = shown(session, f"{FORGED}\nforge(b'd', {{**PLAIN, 'table': json.loads({json.dumps(table)!r})}})")
    [display] = page.displays
    assert display.table is not None
    assert display.table.rows == ((evil, evil),) * 3
    assert receipt.said.tables == 1


@pytest.mark.parametrize(
    "body",
    ['b"[" * 1000000', "b'{\"result\":' * 100000", "b'9' * 1400000", 'b"\\xff" * 1000', 'b"null"', 'b""', 'b"{}" * 9'],
)
def test_an_event_that_is_no_json_of_ours_costs_only_itself(session: Session, body: str) -> None:
    page, receipt = shown(
        session, f"{FORGED}\nforge(b'd', {body})\nforge(b'x', {body})\nforge(b'd', PLAIN)\ndisplay('after')"
    )
    assert [display.text for display in page.displays][-1] == "'after'"
    assert receipt.said.error is None
    assert receipt.observed.end.how == "exited"


# Pictures


@case("out-fake-png")
def test_what_is_called_a_png_and_is_none_is_withheld(session: Session) -> None:
    page, receipt = shown(session, snippet("out-fake-png"))
    [display] = page.displays
    assert display.result
    assert display.picture is None
    assert display.text.startswith("<__main__.X ")
    assert withheld(receipt) == [("image/png: not a PNG", 9)]


HUGE = png(header(60000, 60000), struct.pack(">I", 0) + b"IEND" + struct.pack(">I", zlib.crc32(b"IEND")))


@case("out-fake-png")
@pytest.mark.parametrize(
    ("made", "why"),
    [
        (repr(HUGE), "60,000 × 60,000 pixels; at most 8,192 each way, 16,777,216 in all"),
        ("b'<html><script>alert(1)</script>'", "not a PNG"),
        ("b'GIF89a' + bytes(100)", "not a PNG"),
        ("b'\\x89PNG\\r\\n\\x1a\\n' + bytes(1000)", "a damaged PNG"),
        ("b'\\x89PNG\\r\\n\\x1a\\n' + b'\\xff' * 1000000", "a damaged PNG"),
    ],
)
def test_a_picture_that_is_not_as_it_should_be_is_withheld(session: Session, made: str, why: str) -> None:
    page, receipt = shown(session, f"{OBJECT}\ndisplay(Shown(png={made}))")
    assert [bundle(display) for display in page.displays] == [{"text/plain": "shown"}]
    assert [item.what for item in receipt.said.withheld] == [f"image/png: {why}"]


@case("out-fake-png")
def test_a_picture_over_a_megabyte_is_withheld_with_its_size(session: Session) -> None:
    page, receipt = shown(session, f"{OBJECT}\ndisplay(Shown(png=bytes(1048577)))")
    assert [bundle(display) for display in page.displays] == [{"text/plain": "shown"}]
    assert withheld(receipt) == [("image/png", 1048577)]


DRAWN = """
import struct, zlib
def chunk(kind, body): return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
def png(width, height, grey, text=b""):
    rows = (b"\\0" + bytes([grey]) * width) * height
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\\x89PNG\\r\\n\\x1a\\n" + head + text + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
"""


def test_a_picture_made_in_a_box_arrives_with_its_pixels_and_nothing_else(session: Session) -> None:
    made = 'png(64, 48, 200, chunk(b"tEXt", b"Comment\\0<script>")) + b"<script>"'
    page, receipt = shown(session, f"{OBJECT}{DRAWN}\ndisplay(Shown(png={made}))")
    [display] = page.displays
    assert display.picture is not None
    assert b"script" not in display.picture.data
    with Image.open(io.BytesIO(display.picture.data)) as picture:
        assert (picture.size, picture.tobytes()) == ((64, 48), b"\xc8" * 64 * 48)
    assert bundle(display)["text/plain"] == "shown\n[Picture from the program: 64 × 48, PNG]"
    assert (receipt.said.pictures, receipt.said.withheld) == (1, ())


def test_a_picture_of_nearly_a_megabyte_comes_through_in_its_place(session: Session) -> None:
    noise = "import random; noise = random.Random(1)"
    made = (
        'b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1039, 1000, 8, 0, 0, 0, 0))'
        ' + chunk(b"IDAT", zlib.compress(b"".join(b"\\0" + noise.randbytes(1039) for n in range(1000))))'
        ' + chunk(b"IEND", b"")'
    )
    source = f"{OBJECT}{DRAWN}\n{noise}\nprint('before')\ndisplay(Shown(png={made}))\nprint('after')\ndisplay(2)"
    page, receipt = shown(session, source, deadline=10)
    before, picture, after, last = page.items
    assert (before, after) == ("before\n", "after\n")
    assert isinstance(picture, Display)
    assert picture.picture is not None
    assert len(picture.picture.data) > 1_000_000
    assert last == Display(False, SafeText("2"))
    assert receipt.ok


# Very many


@case("out-many-displays")
def test_thousands_of_lines_that_look_like_displays_are_lines(session: Session) -> None:
    page, receipt = shown(session, snippet("out-many-displays"))
    assert page.displays == []
    assert receipt.said.stdout.bytes > receipt.said.stdout.kept
    assert receipt.said.withheld == ()


@case("out-many-displays")
@pytest.mark.parametrize("made", ["number", "Shown(html='<b>x</b>')", "Shown(png=small)", "Shown(javascript='1')"])
def test_of_thousands_of_displays_a_few_are_shown_and_the_rest_is_counted(session: Session, made: str) -> None:
    source = f"{OBJECT}{DRAWN}\nsmall = png(1, 1, 0)\nfor number in range(5000): display({made})"
    page, receipt = shown(session, source, deadline=20)
    assert len(page.displays) == MOST_DISPLAYS
    [over] = [item for item in receipt.said.withheld if item.what == "more than a cell may display"]
    assert over.number == 5000 - MOST_DISPLAYS
    assert over.bytes > 0
    assert receipt.ok


@case("out-many-displays")
def test_large_pictures_without_end_are_bounded_in_bytes(session: Session) -> None:
    source = (
        f"{OBJECT}{DRAWN}\nimport random; noise = random.Random(1)\n"
        "rows = b''.join(b'\\0' + noise.randbytes(900) for _ in range(900))\n"
        "picture = (b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 900, 900, 8, 0, 0, 0, 0))"
        " + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))\n"
        "for _ in range(30): display(Shown(png=picture))"
    )
    page, receipt = shown(session, source, deadline=20)
    pictures = [display.picture for display in page.displays if display.picture is not None]
    assert 3 <= len(pictures) <= 5
    assert sum(len(picture.data) for picture in pictures) <= 4 << 20
    assert "more than a cell may display" in {item.what for item in receipt.said.withheld}


# Text


@case("out-text-as-html")
def test_text_with_angle_brackets_is_text(session: Session) -> None:
    text = "<img src=x onerror=1>"
    page, _ = shown(session, f"{snippet('out-text-as-html')}\ndisplay({text!r})")
    printed, display = page.items
    assert printed == f"{text}\n"
    assert isinstance(display, Display)
    assert bundle(display) == {"text/plain": repr(text)}


def test_of_a_thing_that_is_two_pictures_one_is_shown_and_nothing_is_withheld(session: Session) -> None:
    source = f"{OBJECT}{DRAWN}\nsmall = png(1, 1, 0)\nShown(png=small, jpeg=b'\\xff\\xd8\\xff')"
    page, receipt = shown(session, source)
    assert [display.picture is not None for display in page.displays] == [True]
    assert receipt.said.withheld == ()
