"""What may be shown of what a program asks to show: the first form that passes. What does not is said."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybox_kernel.running import display_door
from pybox_kernel.running.display_door import HTML_SECONDS, MOST_DISPLAYS, MOST_EVENT_BYTES, OVER, DisplayDoor
from pybox_kernel.running.transcript import Transcript
from pybox_kernel.safe_display.displays import CleanHtml, Display, Refused
from pybox_kernel.safe_display.html_cleaner import CleanedHtml
from pybox_kernel.safe_display.pictures import checked_jpeg, checked_png
from pybox_kernel.safe_display.text import SafeText
from pybox_kernel.wire.frames import DisplayEvent, read_event
from tests.unit.safe_display.test_pictures import IEND, PLAIN, chunk, header, jpeg, png
from tests.unit.wire.test_frames import TABLE


def shouted(source: str) -> CleanedHtml:
    """Stands for the cleaner, which has tests of its own."""
    if "refuse" in source:
        raise Refused("for a reason")
    return CleanedHtml(CleanHtml(source.upper()), left_out="part" in source)


class Door(DisplayDoor):
    def __init__(self) -> None:
        self.withheld: list[tuple[str, int]] = []
        super().__init__(shouted, lambda what, size: self.withheld.append((what, size)))

    def given(
        self,
        *,
        result: bool = False,
        table: object = None,
        withheld: dict[str, int] | None = None,
        **data: str | bytes,
    ) -> Display | None:
        """What comes of an event with these forms: ``png=``, ``jpeg=``, ``html=``, ``text=``."""
        mimes = {"text": "text/plain", "html": "text/html", "png": "image/png", "jpeg": "image/jpeg"}
        forms = {
            mimes[name]: base64.b64encode(value).decode() if isinstance(value, bytes) else value
            for name, value in {"text": "T", **data}.items()
        }
        body = {"result": result, "data": forms, "table": table, "withheld": withheld or {}}
        payload = b"d" + json.dumps(body).encode()
        event = read_event(payload)
        assert isinstance(event, DisplayEvent)
        return self.pass_on(event, len(payload))


def test_text_alone_is_shown_as_text_made_safe() -> None:
    door = Door()
    assert door.given(text="\x1b[2J\x1b[31mred\u202e") == Display(False, SafeText("\x1b[31mred\\u202e\x1b[0m"))
    assert door.withheld == []
    assert door.shown == {"text": 1}


def test_of_several_forms_the_best_is_shown_alone() -> None:
    door = Door()
    table = door.given(table=TABLE, png=PLAIN, html="<b>")
    picture = door.given(png=PLAIN, jpeg=jpeg(), html="<b>")
    second = door.given(jpeg=jpeg(), html="<b>")
    html = door.given(html="<b>")
    assert table is not None
    assert table.table is not None
    assert (table.picture, table.html) == (None, None)
    assert picture == Display(False, SafeText("T"), picture=checked_png(PLAIN))
    assert second == Display(False, SafeText("T"), picture=checked_jpeg(jpeg()))
    assert html == Display(False, SafeText("T"), html=CleanHtml("<B>"))
    assert door.shown == {"table": 1, "picture": 2, "html": 1}
    assert door.withheld == [("text/html: its table is shown", 3), *[("text/html: its picture is shown", 3)] * 2]


def test_a_form_that_is_refused_gives_way_to_the_next_and_is_said_with_its_size() -> None:
    door = Door()
    second = door.given(png=b"not a png", jpeg=jpeg())
    text = door.given(png=b"not a png", jpeg=b"nor a jpeg", html="refuse")
    assert second == Display(False, SafeText("T"), picture=checked_jpeg(jpeg()))
    assert text == Display(False, SafeText("T"))
    assert door.withheld == [
        ("image/png: not a PNG", 9),
        ("image/png: not a PNG", 9),
        ("image/jpeg: not a JPEG", 10),
        ("text/html: for a reason", 6),
    ]


@pytest.mark.parametrize("encoded", ["*", "AAA", "é", "\0", "data:image/png;base64,AAAA", "A" * 5])
def test_what_is_not_base64_is_refused(encoded: str) -> None:
    door = Door()
    assert door.given(png=encoded) == Display(False, SafeText("T"))
    assert [what for what, _ in door.withheld] == ["image/png: not base64"]


def test_base64_may_have_lines() -> None:
    found = Door().given(png=base64.encodebytes(PLAIN).decode())
    assert found is not None
    assert found.picture == checked_png(PLAIN)


def test_what_the_box_held_back_is_said_by_its_name_if_that_is_one() -> None:
    door = Door()
    for mime in ("image/svg+xml", "\x1b[2J\n", "image/png: PyBox found it safe", OVER, "a/b/c", "text/" + "x" * 100):
        door.given(withheld={mime: 5})
    assert door.withheld == [("image/svg+xml", 5), *[("something without a proper name", 5)] * 5]


def test_a_cell_has_one_value() -> None:
    door = Door()
    shown = [door.given(result=result) for result in (False, True, True, False, True)]
    assert [display is not None and display.result for display in shown] == [False, True, False, False, False]


def test_html_of_which_parts_were_left_out_says_so() -> None:
    door = Door()
    assert door.given(html="in part") is not None
    assert door.withheld == [("parts of text/html", 0)]


def test_the_cells_of_a_table_are_names_made_safe() -> None:
    found = Door().given(table={**TABLE, "rows": [["\x1b[31m<b>", "a\nb"], ["\u202e", "$x$"], ["", "x" * 200]]})
    assert found is not None
    assert found.table is not None
    assert found.table.rows == (("\\x1b[31m<b>", "a\\nb"), ("\\u202e", "$x$"), ("", "x" * 200))
    assert found.table.shape == (1000, 2)


def test_a_table_that_would_fill_a_page_is_refused() -> None:
    wide: dict[str, Any] = {
        "columns": [["c"] * 20],
        "index_names": [],
        "index": [[]] * 60,
        "rows": [["$" * 200] * 20] * 60,
        "numeric": [False] * 20,
        "shape": [60, 20],
        "row_gap": None,
        "column_gap": None,
    }
    door = Door()
    assert door.given(table=wide) == Display(False, SafeText("T"))
    assert door.withheld == [("table: a table of more than 262,144 characters", 240020)]
    plain = door.given(table={**wide, "rows": [["x" * 200] * 20] * 60})
    assert plain is not None
    assert plain.table is not None


# The bounds of a cell


def test_a_hundred_displays_are_shown_and_the_rest_is_counted() -> None:
    door = Door()
    found = [door.given(withheld={"image/svg+xml": 5}) for _ in range(MOST_DISPLAYS + 7)]
    assert sum(display is not None for display in found) == MOST_DISPLAYS
    assert [what for what, _ in door.withheld].count("more than a cell may display") == 7
    assert ("image/svg+xml", 5) in door.withheld


def test_six_megabytes_of_displays_are_taken() -> None:
    door = Door()
    size = MOST_EVENT_BYTES // 5  # of base64, which takes four characters for three bytes
    found = [door.given(png=b"x" * (size * 3 // 4)) for _ in range(6)]
    assert [display is not None for display in found] == [True] * 4 + [False] * 2


def test_pictures_of_one_cell_have_a_size_and_a_number_of_pixels_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display_door, "MOST_PICTURE_BYTES", 2 * len(PLAIN))
    door = Door()
    shown = [door.given(png=PLAIN) for _ in range(3)]
    assert [bool(display and display.picture) for display in shown] == [True, True, False]
    door = Door()
    large = png(header(4096, 4096, depth=1), chunk(b"IDAT", zlib.compress(bytes(513 * 4096), 9)), IEND)
    monkeypatch.setattr(display_door, "MOST_PICTURE_BYTES", 4 << 20)
    shown = [door.given(png=large) for _ in range(5)]
    assert [bool(display and display.picture) for display in shown] == [True] * 4 + [False]
    assert door.withheld == [("image/png: more than 67,108,864 pixels of pictures in one cell", len(large))]


def test_html_of_one_cell_is_cleaned_for_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(display_door.time, "monotonic", lambda: float(next(clock)))
    door = Door()
    shown = [door.given(html="x") for _ in range(5)]
    assert [bool(display and display.html) for display in shown] == [True] * 2 + [False] * 3
    assert f"more than {HTML_SECONDS:g} s" in door.withheld[0][0]


# Anything at all

FORMS = st.fixed_dictionaries(
    {"text/plain": st.text(max_size=30)},
    optional={
        "text/html": st.text(max_size=30),
        "image/png": st.text(max_size=30) | st.binary(max_size=60).map(lambda data: base64.b64encode(data).decode()),
        "image/jpeg": st.text(max_size=30) | st.just(base64.b64encode(jpeg()).decode()),
    },
)
TABLES = st.none() | st.fixed_dictionaries({name: st.just(value) | st.none() for name, value in TABLE.items()})
BODIES = st.fixed_dictionaries(
    {
        "result": st.booleans(),
        "data": FORMS,
        "table": TABLES,
        "withheld": st.dictionaries(st.text(max_size=10), st.integers(-1, 1 << 63), max_size=3),
    }
)


class Page:
    """A watcher that keeps what it is shown."""

    def __init__(self) -> None:
        self.shown: list[Display] = []

    def started(self, deadline_seconds: float) -> None:
        return None

    def output(self, stream: str, text: str) -> None:
        return None

    def display(self, display: Display) -> None:
        self.shown.append(display)


@settings(max_examples=200)
@given(st.lists(BODIES.map(lambda body: b"d" + json.dumps(body).encode()) | st.binary(max_size=80), max_size=5))
def test_every_event_is_shown_or_said_and_none_raises(payloads: list[bytes]) -> None:
    page = Page()
    transcript = Transcript(page, shouted)
    for payload in payloads:
        transcript.event(payload)
    assert len(page.shown) == sum(transcript.displays.values())
    said = sum(item.number for item in transcript.withheld)
    assert len(page.shown) + said + (transcript.error is not None) >= len([p for p in payloads if p[:1] != b"x"])
    for display in page.shown:
        assert sum(form is not None for form in (display.picture, display.table, display.html)) <= 1
