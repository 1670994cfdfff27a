from __future__ import annotations

import pytest

from pybox_kernel.source.completion import Completer
from pybox_kernel.source.inspection import inspect
from pybox_kernel.source.stdlib_index import stdlib_index

EARLIER = '''
from pathlib import Path
class Dog:
    """A dog.

    It barks."""
    def __init__(self, name: str,
                 age: int = 1):  # years
        self.name = name
rex = Dog("Rex")
def area(radius: float) -> float:
    """The area of a circle."""
    return 3 * radius**2
async def wait(): return 1
'''
PYTHON = ".".join(stdlib_index().python.split(".")[:2])
INDEX = f"from the standard library's index (Python {PYTHON})"
CELL = "from a cell of this notebook"
PRINT = f"""print(*args, sep=' ', end='\\n', file=None, flush=False)

Prints the values to a stream, or to sys.stdout by default.

{INDEX}"""


@pytest.fixture(scope="module")
def completer() -> Completer:
    made = Completer()
    made.add_cell(EARLIER)
    return made


def told(completer: Completer, marked: str, detail_level: int = 0) -> str | None:
    """What is told where the ``|`` is."""
    place = marked.index("|")
    return inspect(marked[:place] + marked[place + 1 :], place, detail_level, completer)


@pytest.mark.parametrize(
    "marked",
    [
        "print|",
        "|print",
        "pri|nt(1)",
        "print(|",
        "print(unknown|)",
        "print(1, 'a|b')",
        "print([1, (2|",
        "print(  # now|",
    ],
)
def test_a_function_is_told_at_its_name_and_in_its_brackets(completer: Completer, marked: str) -> None:
    assert told(completer, marked) == PRINT


@pytest.mark.parametrize(
    ("marked", "title"),
    [
        ("import os\nos.path.jo|in('a')", "os.path.join(a, *p)"),
        ("import os\no|s.path", "module os"),
        ("len(unknown(|", "len(obj, /)"),
        ("print(len(|", "len(obj, /)"),
        ("range(|", "class range(stop)\nrange(start, stop[, step])"),
        ("Path('a').read_te|xt()", "pathlib.Path.read_text(encoding=None, errors=None)"),
        ("Path.cw|d", "pathlib.Path.cwd()"),
        ("'a'.join(|", "str.join(iterable, /)"),
        ("x = []\nx.appe|nd", "list.append(object, /)"),
        ("x = []\nx|", "x: list"),
        ("import re\nx = re.compile('a')\nx.sear|ch", "re.Pattern.search(string, pos=0, endpos=9223372036854775807)"),
        ("from collections import Counter\nCounter().ke|ys", "dict.keys()"),
    ],
)
def test_the_library_is_told_from_the_index(completer: Completer, marked: str, title: str) -> None:
    text = told(completer, marked)
    assert text is not None
    assert text.startswith(title + "\n\n")
    assert text.endswith(INDEX)


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ("area(|", "def area(radius: float) -> float\n\nThe area of a circle."),
        ("Do|g", "class Dog\ndef __init__(self, name: str, age: int = 1)\n\nA dog.\n\nIt barks."),
        ("re|x", "rex: Dog\n\nA dog.\n\nIt barks."),
        ("wait(|", "async def wait(): return 1"),
        ("def here(a,\n        b=2):\n    '''Mine.'''\nher|e()", "def here(a, b=2)\n\nMine."),
        ("f(\ndef area(other): pass\nare|a", "def area(other): pass"),
    ],
)
def test_what_a_cell_defines_is_told_from_its_text(completer: Completer, marked: str, text: str) -> None:
    assert told(completer, marked) == f"{text}\n\n{CELL}"


@pytest.mark.parametrize(
    "marked", ["nothing|", "|", "# print|", "'print|'", "unknown(|", "rex.na|me", "def print|", "1|2"]
)
def test_what_is_not_known_is_not_told(completer: Completer, marked: str) -> None:
    assert told(completer, marked) is None


def test_more_detail_names_the_members(completer: Completer) -> None:
    assert "append, clear" in (told(completer, "list|", 1) or "")
    assert "append, clear" not in (told(completer, "list|", 0) or "")
    assert (told(completer, "import os\nos|", 1) or "").count(", ") <= 45


def test_what_is_told_is_bounded(completer: Completer) -> None:
    code = f"def f(a='{'x' * 2000}'):\n    '''{'d' * 2000}'''\nf("
    text = inspect(code, len(code), 1, completer)
    assert text is not None
    assert len(text) < 1100
