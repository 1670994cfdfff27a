"""Figures, tables and arrays of a data box: shown as in a notebook, each once, and never larger than a page takes."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from PIL import Image

from pybox_kernel.policy import MIB
from pybox_kernel.running.display_door import MOST_DISPLAYS, OVER
from pybox_kernel.safe_display.pictures import MOST_BYTES, MOST_PIXELS, MOST_SIDE
from pybox_kernel.sessions.session import Session
from tests.boxes.watching import Watched, watched
from tests.cases import case, snippet

pytestmark = pytest.mark.engine

Run = Callable[..., Watched]
LIBRARIES = "import matplotlib.pyplot as plt, numpy as np, pandas as pd\n"


@pytest.fixture(scope="module")
def run(session: Session, data_image: object) -> Run:
    """Runs a cell that has the three libraries, in a data box."""

    def run(source: str, deadline: float = 20.0, before: str = LIBRARIES) -> Watched:
        return watched(session, before + source, deadline, image="data")

    return run


def order(ran: Watched) -> list[str]:
    """What was shown: the texts, and the width of each picture's figure in pixels."""
    found = []
    for text in ran.order:
        size = text.partition("<Figure size ")[2]
        found.append(f"figure {size.partition('x')[0]}" if size else text.strip())
    return found


def pictures(ran: Watched) -> list[Image.Image]:
    return [Image.open(io.BytesIO(one.picture.data)) for one in ran.displays if one.picture is not None]


def plot(number: int) -> str:
    """A figure that is known by its width: ``number`` hundred pixels."""
    return f"plt.figure({number}, figsize=({number}, 2)); plt.plot([1, 2]);\n"


# Figures, in their places


def test_open_figures_are_shown_at_the_end_in_order_of_their_numbers(run: Run) -> None:
    ran = run(plot(5) + plot(3) + "print('printed')\n" + plot(4))
    assert ran.ok
    assert order(ran) == ["printed", "figure 300", "figure 400", "figure 500"]
    assert len(pictures(ran)) == 3
    assert ran.err == ""
    assert ran.withheld == {}


def test_show_shows_in_place_what_is_open_and_closes_it(run: Run) -> None:
    ran = run(f"{plot(4)}plt.show()\nprint('between', plt.get_fignums())\n{plot(3)}plt.show()\nprint('after')")
    assert order(ran) == ["figure 400", "between []", "figure 300", "after"]
    assert len(pictures(ran)) == 2
    assert ran.err == ""


@case("src-plots")
def test_show_in_a_loop_shows_each(run: Run) -> None:
    ran = run("for n in range(2, 7):\n    plt.figure(figsize=(n, 2)); plt.plot([n, 1]); plt.show(block=False)")
    assert order(ran) == [f"figure {n}00" for n in range(2, 7)]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("display(fig)", ["figure 400"]),
        ("display(fig)\nprint(1)\nfig", ["figure 400", "1", "figure 400"]),
        ("fig", ["figure 400"]),
        ("display(fig)\nplt.show()", ["figure 400"]),
        ("display(fig)\nfig.savefig('x.png', dpi=50, facecolor='red')", ["figure 400"]),
        ("display(fig)\nplt.plot([9, 1]);", ["figure 400", "figure 400"]),
        ("display(fig)\nplt.plot([9, 1])\nplt.show()\nfig", ["figure 400"] * 3),
        ("plt.close()", []),
        ("import matplotlib; matplotlib.use('Agg'); plt.show(); print(1)", ["figure 400", "1"]),
        ("plt.gca()", ["<Axes: >", "figure 400"]),
        ("plt.ion(); plt.pause(0.01); print(1)", ["figure 400", "1"]),
        ("fig.show()", ["figure 400"]),
    ],
)
def test_a_figure_is_shown_once_and_again_only_where_asked_or_changed(source: str, shown: list[str], run: Run) -> None:
    ran = run(f"{plot(4)}fig = plt.gcf()\n{source}")
    assert ran.ok
    assert order(ran) == shown
    assert ran.err == ""


def test_a_figure_as_the_last_value_is_the_result(run: Run) -> None:
    [display] = run(f"{plot(4)}plt.gcf()").displays
    assert display.result
    assert display.picture is not None


@pytest.mark.parametrize("end", ["1 / 0", "import sys; sys.exit(3)"])
def test_of_a_cell_that_fails_the_open_figures_are_shown(end: str, run: Run) -> None:
    ran = run(plot(4) + end)
    assert not ran.ok
    assert order(ran) == ["figure 400"]


def test_an_empty_figure_is_a_text_shown_once(run: Run) -> None:
    for source in ("plt.figure();", "plt.figure()"):
        ran = run(source)
        assert [(one.text, one.picture) for one in ran.displays] == [("<Figure size 640x480 with 0 Axes>", None)]


def test_a_figure_that_cannot_be_drawn_says_why_and_the_others_are_shown(run: Run) -> None:
    ran = run(f"{plot(3)}plt.title('$\\\\frac{{1}}$')\n{plot(4)}")
    assert ran.ok
    assert [(one.text, one.picture is not None) for one in ran.displays] == [
        ("<Figure size 300x200 with 1 Axes>", False),
        ("<Figure size 400x200 with 1 Axes>", True),
    ]
    assert "ValueError" in ran.err
    assert "<Figure size 300x200 with 1 Axes> could not be drawn." in ran.err
    ran = run(f"{plot(3)}plt.gcf().get_children = lambda: 1 / 0\n{plot(4)}")
    assert [one.text for one in ran.displays] == ["<Figure size 400x200 with 1 Axes>"]
    assert "ZeroDivisionError" in ran.err


def test_settings_of_the_inline_backend_are_taken_and_have_no_effect(run: Run) -> None:
    ran = run(
        "%config InlineBackend.figure_format = 'retina'\n%matplotlib inline\n"
        "from matplotlib_inline.backend_inline import set_matplotlib_formats\nset_matplotlib_formats('svg')\n" + plot(4)
    )
    assert (ran.ok, ran.err, order(ran)) == (True, "", ["figure 400"])


def test_captured_figures_are_kept_and_can_be_shown(run: Run) -> None:
    assert run(f"%%capture\n{LIBRARIES}{plot(4)}", before="").shown == []
    assert order(run(f"%%capture --no-display\n{LIBRARIES}{plot(4)}", before="")) == ["figure 400"]


def test_a_picture_is_the_figure_cut_to_what_is_on_it(run: Run) -> None:
    source = """
fig, axes = plt.subplots(facecolor="yellow")
axes.plot([1, 2])
import io
file = io.BytesIO()
fig.savefig(file, bbox_inches="tight", facecolor="yellow", dpi=fig.dpi)
import struct
print(*struct.unpack(">II", file.getvalue()[16:24]))
"""
    ran = run(source)
    [picture] = pictures(ran)
    wanted = [int(number) for number in ran.out.split()]
    assert all(abs(a - b) <= 1 for a, b in zip(picture.size, wanted, strict=True))
    assert picture.convert("RGB").getpixel((0, 0)) == (255, 255, 0)


@pytest.mark.parametrize("layout", ["None", "'constrained'"])
def test_what_stands_outside_its_figure_is_shown(layout: str, run: Run) -> None:
    ran = run(f"plt.figure(figsize=(3, 2), layout={layout}); plt.plot([1, 2]); plt.text(3, 1, 'far', color='red');")
    [picture] = pictures(ran)
    assert picture.width > 400
    red = [pixel for pixel in picture.convert("RGB").get_flattened_data() if pixel[0] > 200 and pixel[1] < 60]
    assert red
    assert ran.err.startswith("UserWarning: constrained_layout not applied" if layout != "None" else "")
    assert ran.err.count("\n") == (layout != "None")


def test_a_figure_is_saved_to_a_file_of_the_box(run: Run) -> None:
    ran = run("plt.plot([1, 2]); plt.savefig('x.png'); plt.savefig('x.svg'); plt.savefig('x.pdf'); plt.close()\n"
              "import os; print(sorted(os.listdir()), open('x.png', 'rb').read(4))")  # fmt: skip
    assert ran.out == "['x.pdf', 'x.png', 'x.svg'] b'\\x89PNG'\n"
    assert ran.displays == []
    assert ran.err == ""


def test_plots_of_pandas_are_shown_in_order(run: Run) -> None:
    ran = run(
        "frame = pd.DataFrame({'a': [1, 2]})\nframe.plot(figsize=(3, 2))\nprint('x')\nframe.plot.bar(figsize=(4, 2))"
    )
    assert order(ran) == ["x", "<Axes: >", "figure 300", "figure 400"]


# Figures, bounded


@case("src-plots")
def test_thirty_open_figures_are_shown_once(run: Run) -> None:
    ran = run(snippet("src-plots"), before="")
    assert ran.ok
    assert len(pictures(ran)) == len(ran.displays) == 30
    assert ran.err.startswith("Your code:2: RuntimeWarning: More than 20 figures have been opened.")
    assert ran.err.count("Warning") == 1
    assert (ran.result.receipt.observed.meters.memory_peak_bytes or 0) < 256 * MIB


@case("src-plots")
def test_of_hundreds_of_figures_a_few_are_shown_and_the_rest_is_neither_drawn_nor_forgotten(run: Run) -> None:
    ran = run("plt.rcParams['figure.max_open_warning'] = 0\nfor n in range(250):\n"
              "    plt.figure(figsize=(1, 1)).add_artist(plt.Rectangle((0.4, 0.4), 0.2, 0.2))")  # fmt: skip
    assert ran.ok
    assert len(pictures(ran)) == MOST_DISPLAYS
    [over] = [item for item in ran.result.receipt.said.withheld if item.what == OVER]
    assert over.number == 250 - MOST_DISPLAYS
    assert over.bytes < 250 * 1000


@case("src-plots")
def test_figures_that_are_not_drawn_at_the_deadline_are_lost_and_those_before_are_kept(run: Run) -> None:
    ran = run(f"{plot(3)}plt.figure(4)\nimport time\n"
              "class Slow(plt.Rectangle):\n    def draw(self, renderer): time.sleep(60)\n"
              "plt.gcf().add_artist(Slow((0, 0), 1, 1));", deadline=3)  # fmt: skip
    assert ran.result.receipt.observed.end.how == "deadline"
    assert order(ran) == ["figure 300"]


@pytest.mark.parametrize("size", [(200, 200), (2000, 2), (2, 2000)])
def test_a_figure_of_too_many_pixels_is_drawn_smaller_and_says_so(size: tuple[int, int], run: Run) -> None:
    ran = run(f"plt.figure(figsize={size}); plt.plot([1, 2]);")
    assert ran.ok
    [display] = ran.displays
    assert display.picture is not None, (display.text, ran.err, ran.withheld)
    assert "dpi instead of 100 to fit" in display.text
    assert max(display.picture.width, display.picture.height) <= MOST_SIDE
    assert display.picture.width * display.picture.height <= MOST_PIXELS
    assert (ran.result.receipt.observed.meters.memory_peak_bytes or 0) < 384 * MIB


def test_a_text_far_outside_its_figure_makes_no_giant_picture(run: Run) -> None:
    ran = run("plt.plot([1, 2]); plt.text(5000, 5000, 'far');")
    assert ran.ok
    [display] = ran.displays
    assert display.picture is not None, (display.text, ran.err, ran.withheld)
    assert "dpi instead of 100 to fit" in display.text


def test_a_picture_that_would_be_too_many_bytes_is_drawn_smaller(run: Run) -> None:
    ran = run("plt.figure(figsize=(15, 15))\nplt.imshow(np.random.default_rng(1).random((1200, 1200)), cmap='prism');")
    assert ran.ok
    [display] = ran.displays
    assert display.picture is not None, (display.text, ran.err, ran.withheld)
    assert MOST_BYTES // 4 < len(display.picture.data) <= MOST_BYTES
    assert "dpi instead of 100 to fit" in display.text


def test_large_figures_one_after_the_other_do_not_add_up(run: Run) -> None:
    ran = run("kept = [plt.figure(figsize=(40, 40)) for n in range(10)]\n"
              "for figure in kept: figure.gca().plot([1, 2]); figure.legend(['a'])", deadline=30)  # fmt: skip
    assert ran.ok
    assert (ran.result.receipt.observed.meters.memory_peak_bytes or 0) < 384 * MIB


def test_a_figure_of_what_is_not_a_number_is_drawn(run: Run) -> None:
    ran = run("plt.plot([np.nan] * 3); plt.figure(); plt.imshow(np.full((3, 3), np.nan)); plt.colorbar();")
    assert ran.ok
    assert len(pictures(ran)) == 2


# Tables and arrays


def test_a_frame_is_a_table_with_its_index_and_its_types(run: Run) -> None:
    ran = run("pd.DataFrame({'n': [1, 2], 'x': [0.5, None], 's': ['a', 'b']}, index=pd.Index(['p', 'q'], name='key'))")
    [display] = ran.displays
    assert display.result
    assert display.html is None
    assert display.table is not None
    assert display.table.dtypes == ("int64", "float64", "str")
    assert display.table.index_names == ("key",)
    assert display.table.rows == (("1", "0.5", "a"), ("2", "NaN", "b"))
    assert display.text.splitlines()[1:] == ["key           ", "p    1  0.5  a", "q    2  NaN  b"]
    assert ran.withheld == {}


def test_a_long_and_wide_frame_is_shown_by_its_ends(run: Run) -> None:
    ran = run("frame = pd.DataFrame(np.arange(5_000_000).reshape(100_000, 50))\nframe", deadline=5)
    [display] = ran.displays
    assert display.table is not None
    assert (display.table.shape, display.table.row_gap, display.table.column_gap) == ((100_000, 50), 5, 10)
    assert display.table.rows[-1][-1] == "4999999"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("np.arange(3)", "array([0, 1, 2])"),
        ("np.eye(2)", "array([[1., 0.],\n       [0., 1.]])"),
        ("[np.arange(2), np.float64(0.5)]", "[array([0, 1]), np.float64(0.5)]"),
        ("np.zeros(10**6)", "array([0., 0., 0., ..., 0., 0., 0.], shape=(1000000,))"),
        ("pd.Index([1])", "Index([1], dtype='int64')"),
        ("pd.Timestamp('2030-01-01')", "Timestamp('2030-01-01 00:00:00')"),
    ],
)
def test_an_array_is_a_text_as_in_a_notebook(source: str, text: str, run: Run) -> None:
    ran = run(source)
    assert ran.value == text
    assert [one.table for one in ran.displays] == [None]


def test_groups_are_a_text(run: Run) -> None:
    value = run("pd.DataFrame({'a': [1]}).groupby('a')").value
    assert value is not None
    assert value.startswith("<pandas.api.typing.DataFrameGroupBy object at 0x")


@case("src-frame")
def test_a_frame_with_an_odd_index_is_shown_all_the_same(run: Run) -> None:
    ran = run(snippet("src-frame"), before="")
    [display] = ran.displays
    assert display.table is not None
    assert display.table.rows == (("0",), ("1",), ("2",))


@case("src-frame")
def test_of_a_frame_that_cannot_be_printed_the_error_is_told_and_what_can_be_read_is_shown(run: Run) -> None:
    ran = run("class Bad:\n    def __repr__(self): raise ValueError('no text')\npd.DataFrame({'a': [Bad(), 1]})")
    [display] = ran.displays
    assert display.text == "<DataFrame object; its text could not be made: ValueError>"
    assert display.table is not None
    assert display.table.rows == (("<Bad: ValueError>",), ("1",))
    assert (ran.error.name, ran.error.value) == ("ValueError", "no text")
    assert "Your code, line 3, in __repr__" in ran.traceback


def test_warnings_of_the_libraries_name_the_line_of_the_cell(run: Run) -> None:
    ran = run("x = np.zeros(2)\n1 / x\nframe = pd.DataFrame({'a': [1]})\nframe['a'][0] = 5\n")
    places = [line.partition(": ")[0::2] for line in ran.err.splitlines() if line.startswith("Your code:")]
    assert [(place, what.partition(":")[0]) for place, what in places] == [
        ("Your code:3", "RuntimeWarning"),
        ("Your code:5", "ChainedAssignmentError"),
    ]


def test_warnings_of_drawing_name_the_line_that_asked_for_it_or_none(run: Run) -> None:
    ran = run("plt.title('漢')\nplt.show()")
    assert ran.err.startswith("Your code:3: UserWarning: Glyph 28450")
    assert ran.err.splitlines()[1:] == ["  plt.show()"]
    ran = run("plt.title('漢');")
    assert ran.err.startswith("UserWarning: Glyph 28450")
    assert ran.err.count("\n") == 1


def test_a_cell_with_the_three_libraries_and_a_plot_takes_a_fraction_of_its_time(run: Run) -> None:
    ran = run("import time; began = time.process_time()\nplt.plot([1, 2]); plt.show()\n"
              "display(pd.DataFrame({'a': [1]}))\nprint(time.process_time() - began)", deadline=2)  # fmt: skip
    assert ran.ok
    assert float(ran.out) < 0.5


def test_a_box_without_matplotlib_does_not_wait_for_what_draws(session: Session) -> None:
    ran = watched(session, "import sys\nprint([n for n in sys.modules if 'figures' in n or 'matplotlib' in n])")
    assert ran.out == "[]\n"
