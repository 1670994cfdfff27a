"""Cells of one notebook, each in a real box of its own: what they get of one another, and what the receipts say."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from textwrap import indent
from typing import NamedTuple

import pytest

from pybox_kernel.carry.chain import breaks, link_of
from pybox_kernel.carry.groups import Group, Mode
from pybox_kernel.files.box_files import InputFile
from pybox_kernel.receipt.carried import Carried, CarriedGroup
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.text import render_full
from pybox_kernel.sessions.session import Carry, RunResult, Session

pytestmark = pytest.mark.engine


class Notebook:
    """Runs cells, and keeps their receipts."""

    def __init__(self, session: Session, mode: Mode = "on") -> None:
        self.session = session
        self.carry = Carry(mode)
        self.receipts: list[Receipt] = []

    def run(self, source: str, deadline: float = 10.0, mode: Mode | None = None) -> RunResult:
        number = len(self.receipts) + 1
        result = self.session.run(
            source, deadline_seconds=deadline, carry=self.carry, cell=number, carry_mode=mode, earlier={"gone": 1}
        )
        self.receipts.append(result.receipt)
        assert result.receipt.observed.seal.before_start
        assert result.receipt.observed.box.removed is True
        return result

    def ok(self, source: str) -> str:
        result = self.run(source)
        assert result.receipt.ok, result.error
        return str(result.stdout)

    @property
    def names(self) -> set[str]:
        return {name for group in self.carry.listing().groups for name in group.names}


@pytest.fixture
def notebook(session: Session) -> Notebook:
    return Notebook(session)


def carried(receipt: Receipt) -> Carried:
    assert receipt.observed.carried is not None
    return receipt.observed.carried


def named(groups: tuple[CarriedGroup, ...]) -> dict[str, CarriedGroup]:
    return {name: group for group in groups for name in (group.names or (f"({group.kind})",))}


def test_cells_build_on_each_other_and_their_receipts_form_a_chain(notebook: Notebook) -> None:
    notebook.ok("import random; random.seed(1); x = 1; big = bytes(3_000_000)\ndef f(): return x\na = b = []")
    assert notebook.ok("x = 5; a.append(f()); print(b, random.random())") == "[5] 0.13436424411240122\n"
    result = notebook.run("print(len(b)); fail")
    assert (result.stdout, result.receipt.ok) == ("1\n", False)
    assert notebook.ok("del f; print(b, x)") == "[5] 5\n"
    assert "Carried in, and not left for later cells: f." in " ".join(render_full(notebook.receipts[-1]).split())
    assert "not left for later" not in " ".join(map(render_full, notebook.receipts[:-1]))

    first, second, failed, last = map(carried, notebook.receipts)
    assert first.put_in == ()
    assert {"x", "big", "f", "a", "b", "(random)"} <= set(named(first.taken_out))
    assert named(first.taken_out)["a"] is named(first.taken_out)["b"]
    assert named(first.taken_out)["x"].run == notebook.receipts[0].run.id
    assert named(second.put_in)["x"] == named(first.taken_out)["x"]
    assert "big" not in named(second.put_in)
    assert second.kept_back_bytes > 3_000_000
    assert named(second.taken_out)["x"].cell == 2
    assert (failed.taken_out, failed.why_nothing) == ((), "the cell did not run to its end")
    assert named(last.put_in)["x"] == named(second.taken_out)["x"]
    assert notebook.names == {"random", "x", "big", "a", "b"}
    held = {group.sha256 for group in notebook.carry.listing().groups}
    assert held == {hashlib.sha256(group.data).hexdigest() for group in notebook.carry.listing().groups}

    links = [link for link in map(link_of, notebook.receipts) if link is not None]
    assert breaks(links) == []
    assert {found.run for found in breaks(links[1:])} >= {notebook.receipts[1].run.id}
    told = render_full(notebook.receipts[1])
    assert "Carried in: random, x, f, a, b" in told
    assert "from cell [1]" in told
    assert "earlier programs chose it" in " ".join(told.split())


def test_a_name_that_is_not_there_is_told_of_with_the_reason(notebook: Notebook) -> None:
    notebook.ok("f = open('n.txt', 'w'); kept = 1")
    assert [(item.name, item.type) for item in notebook.receipts[0].said.lost] == [("f", "TextIOWrapper")]
    notebook.run("g = 1; never = undefined")
    notebook.carry.drop(["kept"])
    for name, why in [("f", "lost"), ("g", "failed"), ("kept", "dropped")]:
        wall = notebook.run(name).receipt.said.wall
        assert wall is not None
        assert (wall.what, wall.cell, wall.why_missing) == (name, 2 if name == "g" else 1, why)
    assert notebook.run("gone").receipt.said.wall is None  # an ordinary mistake
    notebook.ok("hidden = 1")
    wall = notebook.run("raise NameError(name='hid' + 'den')").receipt.said.wall
    assert wall is not None
    assert (wall.what, wall.cell, wall.why_missing) == ("hidden", 7, "kept_back")
    off = notebook.run("gone", mode="off").receipt
    assert off.said.wall is not None
    assert (off.said.wall.why_missing, off.asked.options.carry, off.observed.carried) == ("off", "off", None)
    notebook.ok("late = 1")
    notebook.carry.back()
    undone = notebook.run("late").receipt
    assert undone.said.wall is not None
    assert (undone.said.wall.cell, undone.said.wall.why_missing) == (10, "undone")


def test_where_what_was_carried_in_may_be_why_a_cell_fails_its_receipt_says_how_to_do_without_it(
    notebook: Notebook,
) -> None:
    """Here a setting that an earlier cell left, which no cell below can do without."""
    notebook.ok("import sys\nsys.setrecursionlimit(60)")
    failed = notebook.run("import json.tool, unittest.mock").receipt
    assert not failed.ok
    assert "%pybox carry clear drops it all" in " ".join(render_full(failed).split())
    notebook.carry.clear()
    assert "%pybox carry" not in render_full(notebook.run("import json.tool, unittest.mock").receipt)


def test_what_a_failed_cell_defined_is_kept_where_that_is_asked_for(session: Session) -> None:
    notebook = Notebook(session, "keep")
    assert not notebook.run("a = 1; b = 2; 1/0; c = 3").receipt.ok
    assert notebook.names == {"a", "b"}
    assert notebook.run("a = 7\nwhile True: pass", deadline=0.5).receipt.observed.end.how == "deadline"
    assert notebook.run("a = 8\nimport os; os._exit(1)").receipt.said.completed is False
    assert notebook.ok("print(a + b)") == "3\n"


def test_files_and_the_folder_are_carried_and_not_told_of_again(notebook: Notebook) -> None:
    notebook.ok("import os; os.mkdir('d'); os.chdir('d'); open('a.txt', 'w').write('one')")
    assert notebook.receipts[0].said.files_left == 1
    assert notebook.ok("print(open('a.txt').read(), os.getcwd())") == "one /box/d\n"
    assert notebook.receipts[1].said.files_left == 0
    result = notebook.session.run("open('b.txt', 'w').write('two')", carry=notebook.carry, cell=3, output=True)
    assert [file.name for file in result.files] == ["d/b.txt"]
    result = notebook.session.run("open('a.txt', 'a').write('!')", carry=notebook.carry, cell=4, output=True)
    assert [(file.name, file.data) for file in result.files] == [("d/a.txt", b"one!")]
    stopped = "open('c.txt', 'w').close()\nwhile True: pass"
    result = notebook.session.run(stopped, deadline_seconds=0.5, carry=notebook.carry, cell=5, output=True)
    assert [file.name for file in result.files] == ["d/c.txt"]
    assert notebook.run("while True: pass", deadline=0.5).receipt.said.files_left == 0


def test_a_copy_of_a_persons_file_is_always_as_their_file_is_now(notebook: Notebook) -> None:
    for content in (b"old", b"new"):
        inputs = [InputFile("a.txt", content)]
        source = "print(open('a.txt').read()); open('a.txt', 'w').write('changed')"
        result = notebook.session.run(source, carry=notebook.carry, cell=1, inputs=inputs)
        assert (result.stdout, result.receipt.ok) == (f"{content.decode()}\n", True)
        assert [value.name for value in result.receipt.said.lost] == ["a.txt"]


# Hostile values

BOMBS = {
    "printing": "print('I am an earlier cell')",
    "raising": "raise KeyboardInterrupt('mine')",
    "looping": "while True: pass",
    "leaving": "import os; os._exit(0)",
    "eating": "x = []\nwhile True: x.append(bytes(1 << 20))",
    "killing": "import os, signal; [os.kill(1, n) for n in (9, 15, 19)]; os.kill(-1, 19)",
    "forging": """
import os
for kind, payload in ((b"c", b""), (b"X", b"{}"), (b"x", b"{}"), (b"k", b"m" + bytes(8)), (b"r", b"")):
    try: os.write(3, kind + len(payload).to_bytes(4, "big") + payload)
    except OSError: pass
""",
    "builtin": "import os; own = print.__self__; own.print = lambda *a: os._exit(0); own.len = None",
}
"""What each of these names does when it is made again."""

SETS_THEM = "\n".join(
    f"class {name.title()}:\n  def __reduce__(self):\n    def bomb():\n{indent(code, '      ')}\n    return bomb, ()\n"
    f"{name} = {name.title()}()"
    for name, code in BOMBS.items()
)


class Bombs(NamedTuple):
    notebook: Notebook
    groups: tuple[Group, ...]


@pytest.fixture(scope="module")
def bombs(session: Session) -> Bombs:
    notebook = Notebook(session)
    notebook.ok(f"{SETS_THEM}\ngood = 42")
    assert notebook.names == {*BOMBS, *map(str.title, BOMBS), "good"}
    return Bombs(notebook, notebook.carry.listing().groups)


def ends_with(how: str, completed: bool) -> Callable[[Receipt], bool]:
    return lambda receipt: (receipt.observed.end.how, receipt.said.completed) == (how, completed)


@pytest.mark.parametrize(
    ("name", "true"),
    [
        ("printing", ends_with("exited", True)),
        ("raising", lambda receipt: any("raising" in item.names for item in receipt.said.not_restored)),
        ("looping", ends_with("deadline", False)),
        ("leaving", ends_with("exited", False)),
        ("eating", lambda receipt: receipt.said.not_restored or receipt.observed.meters.oom_kills),
        ("killing", lambda receipt: receipt.observed.end.how in ("exited", "deadline")),
        ("forging", lambda receipt: receipt.observed.end.how == "exited"),
        ("builtin", lambda receipt: receipt.observed.end.how == "exited"),
    ],
)
def test_a_hostile_value_harms_its_own_box_and_the_receipt_stays_true(
    bombs: Bombs, name: str, true: Callable[[Receipt], bool]
) -> None:
    notebook = bombs.notebook
    result = notebook.run(f"{name}; done = 1", deadline=3.0)
    receipt = result.receipt
    assert true(receipt), receipt.observed.end
    assert receipt.problem is None
    put_in = named(carried(receipt).put_in)
    assert {"good", *BOMBS}.intersection(put_in) == {name}
    [known] = [group for group in bombs.groups if name in group.names]
    assert (put_in[name].sha256, put_in[name].run) == (known.sha256, notebook.receipts[0].run.id)
    if name == "printing":
        assert result.stdout == "I am an earlier cell\n"


def test_the_other_values_are_as_they_were(bombs: Bombs) -> None:
    assert bombs.notebook.ok("print(good, len('four'))") == "42 4\n"


@pytest.mark.parametrize(
    "code",
    [
        "groups=[dict(names=['__name__'], types=['x'], size=1)]",
        "groups=[dict(names=['a', 'a'], types=['x', 'x'], size=1)]",
        "groups=[dict(names=['../../etc/passwd'], types=['x'], size=1)]",
        "groups=[dict(names=['a'], types=['x'], size=1, same=True)]",
    ],
)
def test_a_forged_account_carries_nothing_and_is_no_error_of_the_run(bombs: Bombs, code: str) -> None:
    notebook = bombs.notebook
    before = notebook.carry.listing().groups
    result = notebook.run(f"""
import json, os
def say(payload): os.write(3, b"k" + len(payload).to_bytes(4, "big") + payload)
def record(kind, payload): return kind + len(payload).to_bytes(8, "big") + payload
say(record(b"m", json.dumps(dict({code})).encode()) + record(b"g", b"1"))
""")
    assert result.receipt.ok
    assert carried(result.receipt).why_nothing
    assert notebook.carry.listing().groups is before
