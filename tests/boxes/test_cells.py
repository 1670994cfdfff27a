"""What a Python cell does in a box: as in a notebook, and said where it cannot."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Callable

import pytest

from pybox_kernel.render.text import render_short
from pybox_kernel.running.display_door import MOST_DISPLAYS
from pybox_kernel.sessions.session import Session
from tests.boxes.watching import Watched, watched
from tests.cases import case, snippet

pytestmark = pytest.mark.engine

Run = Callable[..., Watched]


@pytest.fixture(scope="module")
def run(session: Session) -> Run:
    return lambda source, deadline=5.0: watched(session, source, deadline)


# The last value


@case("src-last-expr")
@pytest.mark.parametrize(
    ("source", "value"),
    [
        (snippet("src-last-expr"), "42"),
        ("6*7;", None),
        ("6*7; # not shown", None),
        ("6*7  ;  \n# a comment\n", None),
        ("(6*7); \n", None),
        ("6*7  # ; shown", "42"),
        ("';'", "';'"),
        ("x = 1; x", "1"),
        ("None", None),
        ("x = 5", None),
        ("1\n2", "2"),
        ("if True:\n    3", None),
        ("'é;' * 2", "'é;é;'"),
        ("(\n1,\n'a'\n)", "(1, 'a')"),
        ("'''only a text'''", "'only a text'"),
        ("", None),
        ("# nothing", None),
        ("\x0c\n7", "7"),
        ("x = 1\r\nx + 1\r", "2"),
    ],
)
def test_the_value_of_the_last_expression_is_shown(source: str, value: str | None, run: Run) -> None:
    ran = run(source)
    assert ran.ok
    assert ran.value == value


def test_a_value_is_laid_out_as_in_a_notebook(run: Run) -> None:
    ran = run("{'word' * 5: list(range(12)), 'b': {3, 1, 2}, 'c': ('x' * 30, 'y' * 30)}")
    assert ran.value is not None
    assert ran.value.splitlines()[1] == " 'b': {1, 2, 3},"


@case("src-huge-repr")
def test_a_giant_value_is_bounded_and_quick(run: Run) -> None:
    ran = run("list(range(10**6))")
    assert ran.ok
    assert ran.value is not None
    assert len(ran.value) < 15000
    assert (ran.result.receipt.observed.meters.ran_seconds or 9) < 1.0
    assert run(snippet("src-huge-repr")).ok
    assert run("'x' * (60 << 20)").ok


@case("src-bad-repr")
def test_a_repr_that_raises_is_the_cells_error(run: Run) -> None:
    ran = run(snippet("src-bad-repr"))
    assert ran.error.name == "ZeroDivisionError"
    assert "Your code, line 2, in __repr__\n    def __repr__(s): return 1/0" in ran.traceback
    assert ran.value == "<A object; its text could not be made: ZeroDivisionError>"


# Python as it is


@case("src-bom", "src-cookie", "src-main", "src-stdin-source", "src-introspection", "src-mp-spawn")
@pytest.mark.parametrize(
    ("name", "out"),
    [
        ("src-bom", "ok\n"),
        ("src-cookie", "True\n"),
        ("src-main", "main\n"),
        ("src-stdin-source", "''\nafter\n"),
        ("src-mp-spawn", "[2, 4]\n"),
    ],
)
def test_a_cell_is_a_program(name: str, out: str, run: Run) -> None:
    ran = run(snippet(name))
    assert (ran.out, ran.ok) == (out, True)


@case("src-introspection")
def test_no_way_of_python_is_closed(run: Run) -> None:
    assert int(run(snippet("src-introspection")).out) > 100


@case("src-future")
def test_the_future_is_the_cells_own(run: Run) -> None:
    assert run(snippet("src-future")).out == "{'x': 'not_defined'}\n"
    assert run("def f(x: int): pass\nf.__annotations__").value == "{'x': int}"
    both = "from __future__ import annotations\nexec('def f(x: y): pass')\ndef g(x: y): pass\ng.__annotations__"
    assert run(both).value == "{'x': 'y'}"
    assert run("x = 1\nfrom __future__ import annotations").error.name == "SyntaxError"


@case("src-await")
@pytest.mark.parametrize(
    ("source", "out", "value"),
    [
        (snippet("src-await"), "ok\n", None),
        ("import asyncio\nawait asyncio.sleep(0, 5)", "", "5"),
        ("async def g():\n    yield 1\n    yield 2\nasync for x in g():\n    print(x)\nx", "1\n2\n", "2"),
        ("async def g():\n    yield 1\n[x async for x in g()]", "", "[1]"),
        (
            "from contextlib import asynccontextmanager\n@asynccontextmanager\nasync def c():\n    yield 3\n"
            "async with c() as x:\n    print(x)",
            "3\n",
            None,
        ),
        (
            "import asyncio\nasync def f():\n    return 7\nt = asyncio.create_task(f())\nawait t",
            "",
            "7",
        ),
        ("import asyncio\nasync def f():\n    return 8\nasyncio.run(f())", "", "8"),
    ],
)
def test_a_cell_may_await(source: str, out: str, value: str | None, run: Run) -> None:
    ran = run(source)
    assert (ran.out, ran.value, ran.ok) == (out, value, True)


def test_an_error_in_what_is_awaited_is_told_without_the_loop(run: Run) -> None:
    traceback = run("async def f():\n    1/0\nawait f()").traceback
    assert [line.split(",")[1] for line in traceback.splitlines() if "Your code" in line] == [" line 3", " line 2"]
    assert "asyncio" not in traceback


@case("src-warnings")
def test_warnings_stand_on_stderr_with_the_cells_line(run: Run) -> None:
    ran = run("x = 1\n" + snippet("src-warnings"))
    assert (ran.ok, ran.out) == (True, "ok\n")
    assert "Your code:2: UserWarning: careful\n  import warnings; warnings.warn('careful')" in ran.err
    assert "/tmp" not in run("import warnings\nwarnings.warn('a')\nx = '\\d'\nx is 3").err


# Errors


@case("src-line-numbers")
def test_a_traceback_has_the_cells_own_lines(run: Run) -> None:
    traceback = run(snippet("src-line-numbers")).traceback
    assert "Your code, line 3\n    raise KeyError('third line')\nKeyError: 'third line'" in traceback


def test_marks_stand_under_what_failed_and_the_runner_is_not_seen(run: Run) -> None:
    ran = run("def f(a):\n    return a + 1/0\nf(3)")
    assert "Your code, line 2, in f\n    return a + 1/0\n               ~^~\nZeroDivision" in ran.traceback
    assert "pybox" not in ran.traceback
    assert "\x1b[32mYour code, line 2, in f\x1b[0m" in ran.error.traceback
    assert "\x1b[1;31mZeroDivisionError\x1b[0m: division by zero" in ran.error.traceback


def test_frames_of_libraries_keep_their_file(run: Run) -> None:
    ran = run("import json\njson.loads('{')")
    assert "json/decoder.py" in ran.traceback
    assert ran.traceback.index("Your code, line 2") < ran.traceback.index("decoder.py")


def test_chains_notes_and_groups_are_told_as_python_tells_them(run: Run) -> None:
    source = """
def fails(text):
    error = ValueError(text)
    error.add_note("a note on " + text)
    raise error
errors = []
for text in "ab":
    try:
        fails(text)
    except ValueError as error:
        errors.append(error)
try:
    1/0
except ZeroDivisionError as error:
    raise ExceptionGroup("both", errors) from error
"""
    ran = run(source)
    assert ran.error.name == "ExceptionGroup"
    assert "direct cause of the following exception" in ran.traceback
    assert "  +-+---------------- 1 ----------------" in ran.traceback
    assert "    | ValueError: b\n    | a note on b" in ran.traceback
    assert "    |   Your code, line 5, in fails" in ran.traceback


@case("src-recursion")
def test_endless_recursion_is_folded(run: Run) -> None:
    ran = run(snippet("src-recursion"))
    assert ran.error.name == "RecursionError"
    assert "more times]" in ran.traceback
    assert len(ran.traceback) < 2000


@case("src-long-line")
def test_a_long_line_is_cut_where_it_failed(run: Run) -> None:
    ran = run(snippet("src-long-line"))
    assert len(ran.traceback) < 1000
    line = "x = '" + "y" * 30000 + "' + str(1/0) + '" + "z" * 20000 + "'"
    assert "str(1/0)" in run(line).traceback
    syntax = run("x = '" + "y" * 30000 + "' + ) + '" + "z" * 20000 + "'")
    assert len(syntax.traceback) < 1000
    assert "' + ) + '" in syntax.traceback


@case("src-exc-str", "src-exc-long")
def test_what_an_exception_says_is_bounded_and_guarded(run: Run) -> None:
    ran = run(snippet("src-exc-str"))
    assert ran.error.value == "<E str() failed>"
    assert "E: <exception str() failed>" in ran.traceback
    returns_bytes = run("class E(Exception):\n  def __str__(s): return b'x'\nraise E()")
    assert returns_bytes.error.name == "E"
    long = run(snippet("src-exc-long") + "\n#")
    assert long.traceback.endswith("mmm\n")
    assert len(long.traceback) < 40000


@pytest.mark.parametrize(
    ("source", "line", "marked"),
    [
        ("x = 1\nif x\n  y", 2, "    if x\n        ^\n"),
        ("x = (\n", 1, "    x = (\n        ^\n"),
        ("return 3", 1, "    return 3\n    ^^^^^^^^\n"),
        ("def f():\n  x\n y", 3, " y"),
        ("a b", 1, "    a b\n      ^\n"),
    ],
)
def test_a_syntax_error_shows_its_line(source: str, line: int, marked: str, run: Run) -> None:
    ran = run(source)
    assert ran.error.value.endswith(f"(line {line})")
    assert f"Your code, line {line}\n" in ran.traceback
    assert marked in ran.traceback
    assert "Traceback" not in ran.traceback


@pytest.mark.parametrize(
    "hostile",
    [
        "__class__", "__traceback__", "__notes__", "exceptions", "__dict__", "reason", "__cause__", "__context__",
        "__suppress_context__", "args", "with_traceback",
    ],
)  # fmt: skip
def test_an_exception_that_lies_about_itself_is_told_all_the_same(hostile: str, run: Run) -> None:
    source = f"class E(Exception):\n    @property\n    def {hostile}(self): raise SystemError('no')\nraise E('here')"
    ran = run(source)
    assert ran.error.name == "E"
    assert not ran.ok


# Magics


@case("src-magic")
def test_a_line_of_a_shell_refuses_the_whole_cell(run: Run) -> None:
    ran = run("print('no')\n" + snippet("src-magic"))
    assert ran.out == ""
    assert (ran.error.name, ran.about) == ("UsageError", ("magic", "%pip install x"))
    assert "Nothing can be installed in a box" in ran.error.value
    assert "  Your code, line 2\n    %pip install x\nUsageError: " in ran.traceback


def test_harmless_magics_do_nothing(run: Run) -> None:
    source = "%matplotlib inline\n%config InlineBackend.figure_format = 'svg'\n%load_ext autoreload\n%autoreload 2\n1/0"
    assert "Your code, line 5\n    1/0" in run(source).traceback


def test_time_is_told(run: Run) -> None:
    ran = run("import time\n%time x = time.sleep(0.02) or 5\n%time x * 2")
    assert ran.value == "10"
    assert ran.out.count("CPU times: user ") == 2
    assert "Wall time: 2" in ran.out
    whole = run("%%time\nx = 3\nx")
    assert (whole.value, whole.ok) == ("3", True)
    assert "Wall time: " in whole.out


def test_loops_are_timed(run: Run) -> None:
    ran = run(
        "def f():\n    y = 3\n    %timeit -n 10 -r 2 y + 1\nf()\nr = %timeit -q -o sum(range(10))\nprint(r.best > 0)"
    )
    assert "per loop (mean ± std. dev. of 2 runs, 10 loops each)\nTrue\n" in ran.out
    cell = run("%%timeit y = 5\nz = y * 2\n")
    assert cell.ok
    assert "ns per loop" in cell.out
    assert (cell.result.receipt.observed.meters.ran_seconds or 9) < 3
    slow = run("import time\n%timeit time.sleep(0.4)")
    assert "1 loop each" in slow.out
    failing = run("x = 1\n%timeit x / 0")
    assert "Your code, line 2, in inner\n    %timeit x / 0\n            ~~^~~" in failing.traceback


def test_captured_output_stays_in_the_box(run: Run) -> None:
    ran = run("%%capture kept\nprint('hidden')\ndisplay(3)\n4")
    assert (ran.shown, ran.ok) == ([], True)
    source = "%%capture\nimport atexit, sys\nprint('hidden', file=sys.stderr)\n1/0"
    assert run(source).err == ""
    shown = "%%capture kept\nimport atexit\nprint('kept')\ndisplay(3)\natexit.register(lambda: kept.show());"
    assert run(shown).order == ["kept\n", "3"]


def test_a_file_can_be_written_by_a_cell(run: Run) -> None:
    ran = run("%%writefile notes.txt\n!not python\n%at all")
    assert (ran.out, ran.ok) == ("Writing notes.txt\n", True)


def test_a_question_shows_help_in_its_place(run: Run) -> None:
    ran = run("def f(a, b=2):\n    'Adds.'\nprint('before')\nf?\nprint('after')\n?nothing.like.it")
    assert ran.order[0] == "before\n"
    assert ran.order[1].splitlines() == ["Signature: f(a, b=2)", "Type:      function", "Docstring: Adds."]
    assert ran.order[2] == "after\n"
    assert "no such name" in ran.order[3]


# Walls

WALLS = {
    "a module": ("import numpy.linalg", ("module", "numpy")),
    "a name": ("nothing_of_the_kind", ("name", "nothing_of_the_kind")),
    "a file": ("open('data/table.csv')", ("file", "data/table.csv")),
    "a program": ("import subprocess\nsubprocess.run(['grep2'])", ("file", "grep2")),
    "a read-only folder": ("open('/usr/x', 'w')", ("read_only", "/usr/x")),
    "a folder of another": ("open('/proc/1/mem')", ("read_only", "/proc/1/mem")),
    "a full disk": ("with open('x', 'wb') as f:\n  while True: f.write(bytes(1 << 20))", ("full", "")),
    "a connection": ("import socket\nsocket.socket().connect(('192.0.2.1', 80))", ("network", "")),
    "a named connection": (
        "import socket\nsocket.create_connection(('example.com', 80))",
        ("network", "example.com"),
    ),
    "a name of a host": ("import socket\nsocket.getaddrinfo('example.com', 80)", ("network", "example.com")),
    "a page": (
        "import urllib.request\nurllib.request.urlopen('http://example.org/a')",
        ("network", "example.org"),
    ),
    "a page by http": (
        "import http.client\nhttp.client.HTTPConnection('example.net').request('GET', '/')",
        ("network", "example.net"),
    ),
    "an error about an error": (
        "import urllib.request\ntry: urllib.request.urlopen('http://a.example')\n"
        "except OSError as e: raise RuntimeError('no data') from e",
        ("network", "a.example"),
    ),
    "a group of errors": (
        "raise ExceptionGroup('g', [ValueError(1), ModuleNotFoundError('x', name='x')])",
        ("module", "x"),
    ),
    "a keyboard": (snippet("src-input"), ("input", "")),
    "a password": ("import getpass\ngetpass.getpass()", ("input", "")),
    "memory": ("bytearray(10**13)", ("memory", "")),
    "threads": (
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(2,), daemon=True).start()",
        ("tasks", ""),
    ),
    "processes": (
        "import subprocess\nall = []\nwhile True: all.append(subprocess.Popen(['sleep', '3']))",
        ("tasks", ""),
    ),
    "forks": ("import os, time\nwhile True:\n    if os.fork() == 0:\n        time.sleep(9)", ("tasks", "")),
    "open files": ("all = []\nwhile True: all.append(open('/dev/null'))", ("files_open", "")),
    "a system call": ("import os\nos.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))", ("forbidden", "")),
    "another system call": ("import socket\nsocket.socket(38, socket.SOCK_SEQPACKET)", ("forbidden", "")),
}


@case("src-input")
@pytest.mark.parametrize("name", WALLS)
def test_the_wall_that_an_error_met_is_named(name: str, run: Run) -> None:
    source, about = WALLS[name]
    ran = run(source)
    assert ran.about == about
    assert ran.traceback


@pytest.mark.parametrize(
    "source",
    [
        "1/0",
        "x = y = {}\nx['a']",
        "def f():\n    x += 1\nf()",
        "raise EOFError('end of the data')",
        "from os import nothing",
        "import os\nos.read(os.pipe2(os.O_NONBLOCK)[0], 1)",
        "raise ValueError('no') from None",
    ],
)
def test_an_error_of_the_program_itself_met_no_wall(source: str, run: Run) -> None:
    assert run(source).about is None


# What is shown


def png(width: int = 1, height: int = 1) -> bytes:
    """A black picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    lines = bytes(1 + 3 * width) * height
    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\0\0\0"
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def test_displays_come_in_their_place_among_what_is_printed(run: Run) -> None:
    source = """
import sys
for number in range(15):
    print("before", number)
    display(number)
    print("after", number, file=sys.stderr)
    display(-number)
"""
    expected = [part for n in range(15) for part in (f"before {n}\n", str(n), f"after {n}\n", str(-n))]
    assert run(source).order == expected


def test_a_large_picture_comes_in_its_place(run: Run) -> None:
    source = "import os, zlib\n" + PNG + "print('before')\ndisplay(Drawn())\nprint('after')\nDrawn()"
    ran = run(source)
    assert ran.ok
    assert ran.withheld == {}
    assert [one if isinstance(one, tuple) else one.picture is not None for one in ran.shown] == [
        ("stdout", "before\n"),
        True,
        ("stdout", "after\n"),
        True,
    ]
    assert ran.displays[0].picture is not None
    assert len(ran.displays[0].picture.data) > 900_000


PNG = """
def chunk(kind, data):
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
lines = b"".join(b"\\0" + os.urandom(1500) for _ in range(600))
data = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", b"\\0\\0\\1\\xf4\\0\\0\\2\\x58\\x08\\2\\0\\0\\0")
data += chunk(b"IDAT", zlib.compress(lines, 0)) + chunk(b"IEND", b"")
class Drawn:
    def _repr_png_(self): return data
"""


@pytest.mark.parametrize(
    "given",
    ["data", "__import__('base64').b64encode(data).decode()", "__import__('base64').encodebytes(data).decode()"],
)
def test_a_picture_may_be_bytes_or_base64(given: str, run: Run) -> None:
    source = f"data = {png()!r}\nclass Drawn:\n    def _repr_png_(self): return {given}\nDrawn()"
    (shown,) = run(source).displays
    assert shown.picture is not None
    assert (shown.picture.mime, shown.picture.width) == ("image/png", 1)


def test_every_form_that_is_not_let_out_is_named_with_its_size(run: Run) -> None:
    source = """
class Everything:
    def _repr_html_(self): return "<b>html</b>"
    def _repr_markdown_(self): return "**md**"
    def _repr_latex_(self): return "$x$"
    def _repr_svg_(self): return "<svg/>"
    def _repr_javascript_(self): return "alert(1)"
    def _repr_json_(self): return {"a": 1}, {"expanded": True}
    def _repr_pdf_(self): return b"%PDF"
    def _repr_png_(self): return bytes(1 << 20) + b"x"
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"application/x-own": "own", "text/plain": "text"}, {}
Everything()
"""
    ran = run(source)
    assert (ran.value, ran.displays[0].html) == ("text", "<b>html</b>")
    assert ran.withheld == {
        "text/markdown": 6,
        "text/latex": 3,
        "image/svg+xml": 6,
        "application/javascript": 8,
        "application/json": 8,
        "application/pdf": 4,
        "image/png": (1 << 20) + 1,
        "application/x-own": 3,
    }


def test_a_form_that_fails_leaves_the_others_and_its_traceback(run: Run) -> None:
    source = "class Bad:\n    def _repr_html_(self): 1/0\nfor n in range(2): display(Bad())\nprint('on')"
    ran = run(source)
    assert ran.ok
    assert len(ran.displays) == 2
    assert ran.err.count("Your code, line 2, in _repr_html_") == 2
    assert ran.out == "on\n"


def test_display_takes_what_people_give_it(run: Run) -> None:
    source = """
handle = display("first", display_id="here")
handle.update("second")
update_display("third", display_id=handle.display_id)
display({"text/plain": "raw", "text/html": "<i>raw</i>"}, raw=True, metadata={"a": 1}, transient={}, clear=False)
display("a", "b", include=["text/plain"], exclude=["image/png"])
display(display_id=True) is not None
"""
    ran = run("from IPython.display import update_display" + source)
    assert ran.order == ["'first'", "'second'", "'third'", "raw", "'a'", "'b'", "True"]
    assert ran.displays[3].html == "<i>raw</i>"


@case("out-many-displays")
def test_displays_over_the_bound_are_counted_and_an_error_after_them_arrives(run: Run) -> None:
    ran = run("for i in range(5000): display({'fake display': i})\n1/0")
    assert len(ran.displays) == MOST_DISPLAYS
    assert ran.error.name == "ZeroDivisionError"
    (held,) = ran.result.receipt.said.withheld
    assert (held.what, held.number) == ("more than a cell may display", 5000 - MOST_DISPLAYS)
    assert run(snippet("out-many-displays")).ok


def test_large_displays_are_bounded_together(run: Run) -> None:
    ran = run("import os, zlib\n" + PNG + "for _ in range(20): display(Drawn())\nprint('end')")
    assert ran.ok
    assert ran.out == "end\n"
    assert "more than a cell may display" in ran.withheld


# IPython's names


def test_what_cells_import_of_ipython_is_there(run: Run) -> None:
    source = """
import IPython
from IPython import get_ipython as own
from IPython.display import (Audio, Code, DisplayHandle, FileLink, HTML, IFrame, Image, JSON, Javascript, Latex,
    Markdown, Math, Pretty, ProgressBar, SVG, Video, YouTubeVideo, clear_output, display, update_display)
from IPython.core.display import display as other
assert own() is get_ipython() and IPython.get_ipython() is own()
assert "stand" in IPython.__version__ and "stand-in" in IPython.__doc__
clear_output(wait=True)
display(HTML("<b>bold</b>"), Markdown("*text*"), Math("x^2"), SVG("<svg/>"), JSON({"a": [1]}), Javascript("alert(1)"))
display(Code("x < 1"), Pretty("pretty"), IFrame("http://x", 1, 2), YouTubeVideo("abc"), FileLink("a.txt"), Audio(url="http://x/y"))
Image(url="http://example.org/a.png")
"""
    ran = run(source)
    assert ran.ok, ran.traceback
    texts = [one.text for one in ran.displays]
    assert texts[:5] == [
        "<IPython.core.display.HTML object>",
        "*text*",
        "x^2",
        "<IPython.core.display.SVG object>",
        "{'a': [1]}",
    ]
    assert texts[7] == "pretty"
    assert texts[10] == "a.txt"
    assert ran.value is not None
    assert "not fetched, as a box has no network" in ran.value
    assert set(ran.withheld) == {
        "text/markdown",
        "text/latex",
        "image/svg+xml",
        "application/json",
        "application/javascript",
    }


def test_an_image_reads_the_boxs_own_file(run: Run) -> None:
    source = f"open('a.png', 'wb').write({png(3, 2)!r})\nfrom IPython.display import Image\nImage(filename='a.png')"
    (shown,) = run(source).displays
    assert shown.picture is not None
    assert (shown.picture.width, shown.picture.height) == (3, 2)
    assert run("from IPython.display import Image\nImage('not there.png')").about == ("file", "not there.png")


def test_the_shell_object_does_what_works_and_says_what_does_not(run: Run) -> None:
    ran = run("s = get_ipython()\ns.run_line_magic('matplotlib', 'inline')\ns.magic('%time 1')\ns.system('ls')")
    assert ran.about == ("magic", "!ls")
    assert "Wall time" in ran.out
    assert "Your code, line 4" in ran.traceback


def test_a_program_meets_none_of_the_runners_modules(run: Run) -> None:
    source = """
import sys
for name in ("tables", "cell", "events", "pretty", "shown", "diagnosis", "runner", "timing", "capture"):
    open(name + ".py", "w").write("mine = True")
    assert __import__(name).mine
sorted(name for name in sys.modules if "IPython" in name)
"""
    assert run(source).value == "[]"


def test_of_a_program_that_empties_the_list_of_modules_its_end_is_told(run: Run) -> None:
    assert run("import sys\nsys.modules.clear()\n6 * 7").value == "42"
    ran = run("import sys\nsys.modules.clear()\n1 / 0")
    assert ran.error.name == "ZeroDivisionError"
    assert "Your code, line 3" in ran.traceback
    assert "/usr/local/lib/pybox" not in ran.traceback + ran.err


# What comes back is text


@case("src-unpickle")
def test_nothing_from_a_box_is_unpickled(run: Run) -> None:
    assert run(snippet("src-unpickle")).ok
    program = "import sys, pybox_kernel.kernel\nprint('pybox_kernel.inside.cell' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_receipt_of_an_error_is_short(run: Run) -> None:
    assert "ZeroDivisionError" in render_short(run("1/0").result.receipt)


@pytest.mark.parametrize(
    ("source", "completed"),
    [
        ("print(1); raise SystemExit", True),
        ("raise SystemExit; print(2)", False),
        ("import sys; sys.exit(); print('b')", False),
        ("import sys; print('é'); sys.exit(0)", True),
        ("if True:\n    exit()", True),
    ],
)
def test_an_exit_is_the_end_only_where_the_last_statement_asks_for_it(run: Run, source: str, completed: bool) -> None:
    assert run(source).result.receipt.said.completed is completed
