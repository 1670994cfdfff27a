"""What cells of one notebook find of what earlier ones had, in real boxes: many values in few boxes."""

from __future__ import annotations

import contextlib
import io
import random

import pytest

from pybox_kernel.images.store import RecordedImage
from pybox_kernel.policy import DATA, STDLIB, Policy
from pybox_kernel.sessions.session import Carry, RunResult, Session

pytestmark = pytest.mark.engine


class Cells:
    """The cells of one notebook."""

    def __init__(self, session: Session, policy: Policy = STDLIB) -> None:
        self.session = session
        self.policy = policy
        self.carry = Carry()
        self.number = 0

    def run(self, source: str, deadline: float = 20.0) -> RunResult:
        self.number += 1
        result = self.session.run(
            source, deadline_seconds=deadline, carry=self.carry, cell=self.number, policy=self.policy
        )
        assert result.receipt.problem is None
        assert result.receipt.observed.box.removed is True
        return result

    def ok(self, source: str) -> str:
        result = self.run(source)
        assert result.receipt.ok, (result.error, result.receipt.observed.end)
        return str(result.stdout)

    def lost(self, result: RunResult) -> dict[str, str]:
        return {item.name: item.why for item in result.receipt.said.lost}

    @property
    def names(self) -> list[str]:
        return sorted(name for group in self.carry.listing().groups for name in group.names)

    @property
    def kinds(self) -> list[str]:
        return sorted(group.kind for group in self.carry.listing().groups if group.kind)


VALUES = """
import array, collections, datetime, decimal, enum, fractions, functools, ipaddress, itertools, math, operator, os
import pathlib, queue, random, re, string, sys, types, uuid, xml.etree.ElementTree as ET
from dataclasses import dataclass
number, large, real, many = 42, 10**400, 1.5, [1, 2.5, "three", b"four", None, True, 5j, ...]
odd = [float("nan"), float("inf"), -0.0, "\\ud800", "e\\u0301", "\\U0001f600", "", b"\\0\\xff"]
nested = {"a": [{"b": ({1, 2}, frozenset("ab"))}], (1, 2): range(3), None: slice(1, 2)}
containers = [collections.Counter("aab"), collections.deque([1], 3), collections.OrderedDict(b=1, a=2),
    collections.defaultdict(list, a=[1]), collections.ChainMap({}, {"a": 1}), types.SimpleNamespace(a=1),
    array.array("d", [1, 2]), bytearray(b"ab"), types.MappingProxyType({"a": 1})]
moments = [datetime.date(2024, 2, 29), datetime.timedelta(1, 2),
    datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)]
others = [decimal.Decimal("1.10"), fractions.Fraction(1, 3), uuid.UUID(int=5), pathlib.Path("a/b"),
    re.compile("(a+)", re.I), ipaddress.ip_address("10.0.0.1"), string.Template("$a"), operator.itemgetter(1),
    functools.partial(int, base=2)]
one = other = []
ring = [one]; ring.append(ring)
def power(base, exponent=2, *rest, key=None, **more):
    "Raises."
    return base**exponent + offset
offset = 0
square = lambda n: power(n)
def numbers():
    yield from range(3)
def counting():
    n = 0
    def count():
        nonlocal n
        n += 1
        return n
    return count, lambda: n
count, counted = counting(); count()
@functools.lru_cache(maxsize=None)
def fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
def noisy(function):
    @functools.wraps(function)
    def inner(*arguments): return ["noisy", function(*arguments)]
    return inner
@noisy
def greet(name): return f"Hello {name}"
class Shape:
    made = 0
    def __init__(self, side): self.side = side; Shape.made += 1
    @property
    def area(self): return self.side**2
    @classmethod
    def unit(cls): return cls(1)
    def __eq__(self, other): return isinstance(other, Shape) and self.side == other.side
class Cube(Shape):
    def __init__(self, side): super().__init__(side); self.faces = 6
shape, cube = Shape(2), Cube(3)
@dataclass(order=True)
class Point:
    x: int
    y: int = 0
class Colour(enum.Enum):
    RED = 1
    GREEN = enum.auto()
Pair = collections.namedtuple("Pair", "left right")
point, colour, pair = Point(1), Colour.GREEN, Pair(1, [2])
class Trouble(Exception):
    pass
trouble = Trouble("a", 1)
tree = ET.fromstring("<a><b c='1'/></a>")
dice = random.Random(7); dice.random()
"""
CHECKS = """
number == 42 and large == 10**400 and real == 1.5 and many == [1, 2.5, "three", b"four", None, True, 5j, ...]
odd[0] != odd[0] and odd[1:] == [float("inf"), 0.0, "\\ud800", "e\\u0301", "\\U0001f600", "", b"\\0\\xff"]
math.copysign(1, odd[2]) < 0
nested == {"a": [{"b": ({1, 2}, frozenset("ab"))}], (1, 2): range(3), None: slice(1, 2)}
containers[0] == {"a": 2, "b": 1} and containers[1].maxlen == 3 and list(containers[2]) == ["b", "a"]
containers[3]["new"] == [] and containers[4]["a"] == 1 and containers[5].a == 1 and list(containers[6]) == [1, 2]
containers[7] == bytearray(b"ab") and containers[8]["a"] == 1
moments[0].year == 2024 and moments[1].days == 1 and moments[2].tzinfo is datetime.timezone.utc
str(others[0]) == "1.10" and others[1] * 3 == 1 and others[2].int == 5 and others[3].name == "b"
others[4].match("AA")
str(others[5]) == "10.0.0.1" and others[6].substitute(a=1) == "1" and others[7]("ab") == "b" and others[8]("11") == 3
one is other is ring[0] and ring[1] is ring
power(3) == square(3) == 9 and power.__doc__ == "Raises." and power.__defaults__ == (2,)
list(numbers()) == [0, 1, 2] and count() == 2 == counted()
fibonacci(80) == 23416728348467685 and greet("you") == ["noisy", "Hello you"] and greet.__name__ == "greet"
Shape.made == 2 and cube.area == 9 and cube.faces == 6 and isinstance(cube, Shape) and type(shape) is Shape
shape == Shape(2) and Shape.unit().side == 1 and Shape.made == 4
point == Point(1) < Point(2) and colour is Colour.GREEN and Colour(1) is Colour.RED
pair == (1, [2]) and type(pair) is Pair and pair._replace(left=3).left == 3
type(trouble) is Trouble and trouble.args == ("a", 1) and tree[0].attrib == {"c": "1"}
dice.random() == (lambda same: (same.random(), same.random())[1])(random.Random(7))
os.sep == "/" and ET.Element("a").tag == "a" and sys.modules["__main__"].number == 42
power.__globals__ is globals() and Shape.__module__ == "__main__"
"""


def checked(cells: Cells, checks: str) -> None:
    lines = [line for line in checks.strip().split("\n") if line]
    out = cells.ok("".join(f"print(bool({line}))\n" for line in lines))
    assert dict(zip(lines, out.split(), strict=True)) == dict.fromkeys(lines, "True")


def test_values_of_the_standard_library_are_the_same_in_the_next_cell(session: Session) -> None:
    cells = Cells(session)
    assert cells.lost(cells.run(VALUES)) == {}
    names = cells.names
    checked(cells, CHECKS)
    assert cells.names == names
    cells.ok("offset = 100")
    assert cells.ok("print(square(2), power(1))") == "104 101\n"


DATA_VALUES = """
import numpy as np, pandas as pd, matplotlib.pyplot as plt
from numpy.random import rand
arrays = [np.arange(6).reshape(2, 3), np.array(["a", "bc"]), np.array([1, None], object), np.zeros((2, 0)),
    np.float32(1.5),
    np.array([1.5 + 2j]), np.array(["2024-01-01"], "M8[D]"), np.array([(1, 2.0)], [("x", "i4"), ("y", "f8")]),
    np.ma.array([1, 2], mask=[0, 1]), np.asfortranarray(np.eye(3)), np.matrix("1 2"), np.array([1], ">i2")]
wide = np.arange(200_000.0); part = wide[10:20]; fixed = np.arange(3); fixed.flags.writeable = False
rng = np.random.default_rng(3); first = rng.random(); np.random.seed(5); np.random.rand()
frame = pd.DataFrame({"n": [1, 2, None], "t": ["a", "b", None], "d": pd.date_range("2024-01-01", periods=3),
    "c": pd.Categorical(["x", "y", "x"]), "b": [True, False, True]}, index=pd.Index([3, 4, 5], name="id"))
column, copied, levels = frame["n"], frame.copy(), frame.set_index("t", append=True)
kinds = [pd.Timestamp("2024-01-01", tz="UTC"), pd.Timedelta("1D"), pd.Period("2024"), pd.Interval(0, 1), pd.NA,
    pd.NaT, pd.Series([1, None], dtype="Int64"), pd.Series(["a", None], dtype="string"),
    pd.date_range("2024", periods=2, tz="UTC")]
grouped = frame.groupby("c", observed=True)["n"]
poly, vectorised = np.poly1d([1, 2]), np.vectorize(lambda n: n + 1)
pd.set_option("display.max_rows", 7); np.set_printoptions(precision=2); plt.rcParams["figure.figsize"] = (3, 2)
figure, axes = plt.subplots(); line, = axes.plot([1, 2], label="seen")
"""
DATA_CHECKS = """
(arrays[0] == [[0, 1, 2], [3, 4, 5]]).all() and arrays[1].dtype == "U2" and arrays[2].tolist() == [1, None]
arrays[3].shape == (2, 0) and type(arrays[4]) is np.float32 and arrays[5][0] == 1.5 + 2j
str(arrays[6][0]) == "2024-01-01"
arrays[7]["y"][0] == 2.0 and arrays[8].mask.tolist() == [False, True] and arrays[9].flags.f_contiguous
type(arrays[10]) is np.matrix and arrays[11].dtype == ">i2"
wide.sum() == 19999900000.0 and wide.flags.writeable and not fixed.flags.writeable and part[0] == 10
part.__setitem__(0, -1) is None and wide[10] == -1
rng.random() == (lambda same: (same.random(), same.random())[1])(np.random.default_rng(3))
np.random.rand() == (lambda same: (same.rand(), same.rand())[1])(np.random.RandomState(5)) and rand() != rand()
frame.equals(copied) and frame.dtypes.equals(copied.dtypes) and frame.index.name == "id" and column.equals(frame["n"])
levels.index.names == ["id", "t"] and list(frame["c"].cat.categories) == ["x", "y"] and frame.loc[4, "t"] == "b"
kinds[0].tz is not None and kinds[1].days == 1 and kinds[2].year == 2024 and 0.5 in kinds[3]
kinds[4] is pd.NA and kinds[5] is pd.NaT and kinds[8].tz is not None
kinds[6].dtype == "Int64" and kinds[6].isna().tolist() == [False, True] and kinds[7].dtype == "string"
grouped.sum().to_dict() == {"x": 1.0, "y": 2.0} and poly(1) == 3 and vectorised([1])[0] == 2
pd.get_option("display.max_rows") == 7 and str(np.array([1 / 3])) == "[0.33]"
list(plt.rcParams["figure.figsize"]) == [3.0, 2.0]
line.axes is axes and axes.figure is figure and line.get_label() == "seen" and figure.get_axes() == [axes]
not plt.get_fignums()
"""


def test_values_of_numpy_pandas_and_matplotlib_are_the_same_in_the_next_cell(
    session: Session, data_image: RecordedImage
) -> None:
    cells = Cells(session, DATA)
    assert cells.lost(cells.run(DATA_VALUES)) == {}
    assert cells.kinds == ["lines", "matplotlib", "numpy", "numpy.random", "pandas"]
    checked(cells, DATA_CHECKS)
    assert cells.ok("axes.set_title('later'); figure.canvas.draw(); print(axes.get_title())") == "later\n"


SEEDED = [
    "import random\nrandom.seed(11)\nprint(random.random())",
    "from random import randint, shuffle\nprint([randint(1, 6) for _ in range(5)])",
    "order = list(range(8))\nshuffle(order)\nprint(order, random.gauss(0, 1))",
    "import random as r\nprint(r.choice('abc'), random.gauss(0, 1), r.getrandbits(64))",
]


def test_a_seeded_notebook_gives_the_numbers_that_one_process_gives(session: Session) -> None:
    cells, namespace, state = Cells(session), {"__name__": "__main__"}, random.getstate()
    try:
        for source in SEEDED:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(source, namespace)
            assert cells.ok(source) == out.getvalue()
    finally:
        random.setstate(state)


def test_quiet_states_are_carried_where_they_differ_and_go_with_their_difference(session: Session) -> None:
    cells = Cells(session)
    cells.ok("x = 1")
    assert cells.kinds == []
    cells.ok("""
import decimal, os, sys, warnings
warnings.simplefilter("ignore"); os.environ["MINE"] = "1"; del os.environ["USER"]
decimal.getcontext().prec = 5; sys.path.append("/box/lib"); sys.setrecursionlimit(3000); os.makedirs("lib/deep")
open("lib/tool.py", "w").write("def tell(): return 'told'")
left_open = open("notes.txt", "w"); left_open.write("a note")
os.chdir("lib/deep")
""")
    assert cells.kinds == ["decimal", "environ", "folder", "python", "warnings"]
    assert cells.ok("""
import tool, warnings, os
warnings.warn("not shown")
print(tool.tell(), os.getcwd(), os.environ["MINE"], "USER" in os.environ, open("/box/notes.txt").read())
""") == "told /box/lib/deep 1 False a note\n"  # fmt: skip
    assert cells.ok("import decimal, sys; print(decimal.Decimal(1) / 3, sys.getrecursionlimit())") == "0.33333 3000\n"
    cells.ok("""
import os, shutil, decimal, warnings, sys
os.chdir("/box"); shutil.rmtree("lib"); os.remove("notes.txt")
decimal.setcontext(decimal.DefaultContext.copy()); del os.environ["MINE"]; os.environ["USER"] = "box"
sys.setrecursionlimit(1000); sys.path.remove("/box/lib")
""")
    assert cells.kinds == ["warnings"]


def test_what_cannot_be_carried_is_lost_alone_with_the_reason(session: Session) -> None:
    cells = Cells(session)
    result = cells.run("""
import sys, threading, sqlite3, socket
class Odd:
    def __reduce__(self): raise ValueError("not me")
class Exits:
    def __getstate__(self): raise SystemExit(3)
class Own(BaseException): pass
class Raises:
    def __reduce_ex__(self, version): raise Own
class Shown:
    def __reduce__(self): print("looked at"); return int, (7,)
good, also = [1], {}
generator = (n for n in good); opened = open("/dev/null"); lock = threading.Lock()
database = sqlite3.connect(":memory:"); connection = socket.socket(); holder = [also, lock]
odd, exits, raises, shown = Odd(), Exits(), Raises(), Shown()
large = bytes(40 << 20); deep = []
for _ in range(100_000): deep = [deep]
globals()["not a name"] = 1; globals()["class"] = 2; out = sys.stdout
""")
    assert result.receipt.ok
    assert result.stdout == "looked at\n"
    lost = cells.lost(result)
    for name, why in {
        "generator": "a list of what it gives can",
        "opened": "open it in the cell",
        "lock": "locks and threads",
        "holder": "locks and threads",
        "database": "open database",
        "connection": "open connection",
        "odd": "ValueError: not me",
        "exits": "SystemExit: 3",
        "raises": "Own",
        "large": "32 MB",
        "deep": "nested too deeply",
        "not a name": "no name",
        "class": "no name",
    }.items():
        assert why in lost.pop(name), name
    assert lost == {}
    assert cells.ok("print(good, also, shown, Odd.__name__, out is sys.stdout)") == "[1] {} 7 Odd True\n"


def test_a_function_of_an_earlier_cell_is_named_by_it_in_a_traceback(session: Session) -> None:
    cells = Cells(session)
    cells.ok("x = 1\n\ndef divide(a, b):\n    return a / b  # here\n")
    cells.ok("y = 2")
    result = cells.run("z = 3\ndivide(x, 0)")
    assert result.error is not None
    assert "Cell 1, line 4, in divide" in result.error.traceback
    assert "return a / b  # here" in result.error.traceback
    assert "Your code, line 2" in result.error.traceback


HOSTILE = [
    "import builtins; builtins.len = builtins.isinstance = builtins.type = None",
    "import sys; sys.modules.clear()",
    "import gc; gc.get_referents = None",
    "class Bad:\n def __reduce__(self): import os; os._exit(0)\nbad = Bad()",
    "class Bad:\n def __reduce__(self):\n  globals().clear(); return int, ()\nfirst, second = Bad(), Bad()",
    "import os\nos.close(3)",
    "import os\nif os.fork() == 0: before = 'of the child'\nelse: os.wait()",
    "globals().update({f'n{n}': n for n in range(100_000)})",
]


def test_whatever_a_cell_does_to_what_carries_it_the_others_are_as_they_were(session: Session) -> None:
    cells = Cells(session)
    cells.ok("before = 'there'")
    for source in HOSTILE:
        assert cells.run(source).receipt.observed.end.how == "exited", source
    assert cells.ok("print(before, n0)") == "there 0\n"
    cells.ok("del before")
    assert "before" not in cells.names


def test_pickling_without_end_is_ended_at_the_deadline_and_changes_nothing(session: Session) -> None:
    cells = Cells(session)
    cells.ok("kept = 1")
    result = cells.run("kept = 2\nclass Endless:\n def __getstate__(self):\n  while True: pass\ne = Endless()", 1.0)
    assert result.receipt.observed.end.how == "deadline"
    assert cells.ok("print(kept)") == "1\n"


def test_a_hash_is_the_same_in_each_cell_and_a_set_has_its_order(session: Session) -> None:
    cells = Cells(session)
    cells.ok("words = set('the quick brown fox jumps over the lazy dog'.split()); order = list(words); h = hash('fox')")
    assert cells.ok("print(order == list(words), h == hash('fox'))") == "True True\n"


def test_a_class_that_another_cell_changed_is_not_changed_back_by_what_names_it(session: Session) -> None:
    cells = Cells(session)
    cells.ok("class T: n = 0\nclass Base:\n def __init_subclass__(cls, tag): cls.tag = tag\nclass A(Base, tag=1): pass")
    cells.ok("def f(x: T): return x")
    cells.ok("T.n = 5; A.tag = 2")
    assert cells.ok("f(1); print(f.__annotations__['x'].n, T.n, A.tag)") == "5 5 2\n"


def test_a_cell_that_puts_something_in_place_of_what_pybox_uses_too_leaves_its_values(session: Session) -> None:
    cells = Cells(session)
    cells.ok("import json; json.dumps = lambda *_, **__: 'mine'; x = 1")
    assert cells.ok("import json; print(x, json.dumps([]))") == "1 []\n"
