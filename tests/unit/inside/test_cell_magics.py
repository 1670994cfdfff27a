"""Magics become Python on their own lines; what is Python stays as it is; what does not work is said."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.inside.cell_magics import UsageError, translate
from pybox_kernel.inside.magic_advice import COMMANDS, MAGICS, advice_on_command, advice_on_magic


def translated(source: str) -> str:
    found = translate(source)
    assert found is not None
    assert found.refusal is None, found.refusal
    return found.text


def refusal(source: str) -> UsageError:
    found = translate(source)
    assert found is not None
    assert found.refusal is not None
    return found.refusal


@pytest.mark.parametrize(
    "line",
    [
        "%matplotlib inline", "%matplotlib notebook", "%matplotlib widget", "%matplotlib agg", "%matplotlib",
        "%config InlineBackend.figure_format = 'retina'", "%load_ext autoreload", "%reload_ext autoreload",
        "%autoreload 2", "  %matplotlib inline",
    ],
)  # fmt: skip
def test_harmless_lines_do_nothing(line: str) -> None:
    assert translated(line).strip() == "pass"


def test_other_lines_and_their_columns_are_as_they_were() -> None:
    source = "x = 1\n%matplotlib inline\nif x:\n    %time f(x)\n    y = x  # 5 % 3?\nr = %timeit -o f()\nlen?\n"
    lines = translated(source).split("\n")
    assert lines == [
        "x = 1",
        "pass",
        "if x:",
        "    get_ipython().run_line_magic('time', 'f(x)')",
        "    y = x  # 5 % 3?",
        "r = get_ipython().run_line_magic('timeit', '-o f()')",
        "get_ipython().run_line_magic('pinfo', 'len')",
        "",
    ]


def test_a_magic_over_several_lines_keeps_their_number() -> None:
    text = translated("%time f(1, \\\n    2)\nx = 3")
    assert text == "get_ipython().run_line_magic('time', 'f(1,     2)')\n\nx = 3"


@pytest.mark.parametrize("line", ["?len", "??len", "len?", "len??", "os.path.join?", "len? ;", "  len?"])
def test_a_question_asks_for_help(line: str) -> None:
    assert "run_line_magic('pinfo', " in translated(line)


@pytest.mark.parametrize(
    "source",
    [
        "s = '''\n%time x\n!ls\nlen?\n'''\n(",
        'f("a",\n  %time\n',
        "x = [1,\n!ls\n",
        "x = 5 \\\n% 3 (",
        "y = x  # why?\n(",
        "x ! y",
        "a = b ? c : d",
        "print('hello)\n",
        "class A:\n  def f(self)\n    pass",
    ],
)
def test_what_only_looks_like_a_magic_is_left_alone(source: str) -> None:
    assert translate(source) is None


@pytest.mark.parametrize(
    ("source", "lineno", "line", "words"),
    [
        ("%pip install x\n!echo hi", 1, "%pip install x", "image"),
        ("x = 1\n!pip install x", 2, "!pip install x", "image"),
        ("pip install numpy", 1, "pip install numpy", "image"),
        ("!python -m pip install numpy", 1, "!python -m pip install numpy", "image"),
        ("%conda install x", 1, "%conda install x", "image"),
        ("if 1:\n    !ls -l\n", 2, "!ls -l", "os.listdir"),
        ("files = !ls", 1, "files = !ls", "os.listdir"),
        ("a, b = !ls", 1, "a, b = !ls", "os.listdir"),
        ("!!ls", 1, "!!ls", "os.listdir"),
        ("!cat x.txt", 1, "!cat x.txt", "open("),
        ("!wget http://x", 1, "!wget http://x", "no network"),
        ("!curl http://x", 1, "!curl http://x", "no network"),
        ("!git clone x", 1, "!git clone x", "no network"),
        ("%run x.py", 1, "%run x.py", "Only this cell"),
        ("%load x.py", 1, "%load x.py", "Only this cell"),
        ("%%bash\nls", 1, "%%bash", "Shell commands"),
        ("%%html\n<b>", 1, "%%html", "display(HTML("),
        ("%env A=1", 1, "%env A=1", "os.environ"),
        ("%set_env A 1", 1, "%set_env A 1", "os.environ"),
        ("%matplotlib qt", 1, "%matplotlib qt", "no screen"),
        ("%pylab inline", 1, "%pylab inline", "numpy"),
        ("%load_ext sql", 1, "%load_ext sql", "sql"),
        ("%cd ..", 1, "%cd ..", "os.chdir"),
        ("%who", 1, "%who", "dir()"),
        ("%nonsense", 1, "%nonsense", "%nonsense does not work in a box"),
        ("%%nonsense\n", 1, "%%nonsense", "%%nonsense does not work in a box"),
        ("x = 1\n%%time\ny", 2, "%%time", "first line"),
        ("x = 1\n%pybox summary", 2, "%pybox summary", "a cell of its own"),
        ("%%pybox --deadline 5\n1", 1, "%%pybox --deadline 5", "first line"),
        ("!", 1, "!", "do not work"),
        ("%", 1, "%", "does not work"),
    ],
)
def test_what_does_not_work_is_told_in_one_sentence(source: str, lineno: int, line: str, words: str) -> None:
    told = refusal(source)
    assert (told.lineno, told.line) == (lineno, line)
    assert words in str(told)
    assert str(told).endswith(".")
    assert "\n" not in str(told)


def test_every_advice_is_one_plain_sentence() -> None:
    told = [advice_on_command(name) for name in COMMANDS] + [advice_on_magic(name, "") for name in MAGICS]
    assert all(advice[0].isupper() and advice.endswith(".") and len(advice) < 130 for advice in told)


def test_magics_of_the_whole_cell_nest_and_leave_the_lines_below_in_place() -> None:
    found = translate("\n# about\n%%capture out\n%%time\nx = 1\n1/0")
    assert found is not None
    assert [(magic.name, magic.rest, magic.lineno) for magic in found.magics] == [
        ("capture", "out", 3),
        ("time", "", 4),
    ]
    assert found.text == "\n# about\n\n\nx = 1\n1/0"


def test_a_file_to_write_is_not_read_as_python() -> None:
    found = translate("%%writefile a.txt\n!ls\n%pip\n(")
    assert found is not None
    assert found.refusal is None
    assert found.magics[0].body == "!ls\n%pip\n("
    assert found.text == "\n\n\n"


PIECES = [
    "%time ", "%%time", "%pip install x", "!ls", "?", "??", "len?", "x = ", "'", '"', "'''", '"""', "(", ")", "[", "{",
    "}", "\\", "\n", "\n", "\n", "    ", "#", "a", "f'{a}'",
    "\\\n", "\x0c", "\t", "é", "%%writefile a", "!", "%", "if a:",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=200))
def test_the_translation_of_any_text_has_its_number_of_lines(source: str) -> None:
    found = translate(source)
    if found is not None:
        assert found.text.count("\n") == source.count("\n")


def is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join).filter(is_python))
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_what_is_python_is_left_alone(source: str) -> None:
    assert translate(source) is None


def test_the_standard_library_is_left_alone() -> None:
    files = sorted(Path(ast.__file__).parent.glob("*.py"))
    assert len(files) > 100
    changed = [file.name for file in files if translate(file.read_text(encoding="utf-8", errors="replace"))]
    assert changed == []


OTHER_PYTHON = """
import sys
sys.path.insert(0, sys.argv[1])
from pybox_kernel.inside.cell_magics import translate
found = translate("%time x\\ny = !ls")
print(found.refusal.lineno, translate("%matplotlib inline\\nf\\"{x!r:{'%'}}\\"\\n").text.splitlines()[0])
"""


def test_it_needs_nothing_but_the_standard_library() -> None:
    root = Path(__file__).parents[3] / "pybox_kernel" / "inside"
    package = (
        f"import sys, types\nfor name, path in (('pybox_kernel', []), ('pybox_kernel.inside', [{str(root)!r}])):\n"
    )
    package += "    sys.modules[name] = types.ModuleType(name); sys.modules[name].__path__ = path\n"
    command = [sys.executable, "-I", "-S", "-c", package + OTHER_PYTHON, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "2 pass\n"
