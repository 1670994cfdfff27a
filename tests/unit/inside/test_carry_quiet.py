"""Quiet states: read where they differ from a fresh box's, and set again, at once or when their module is loaded."""

from __future__ import annotations

import decimal
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.random.mtrand  # numpy itself loads it when it is first asked for
import pytest

from tests.unit.carrying_inside import carry_folder, carry_pickle, carry_quiet


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As at the start of a box; all is as it was afterwards."""
    for name in ("fresh_values", "fresh_states", "to_come"):
        monkeypatch.setattr(carry_quiet, name, {})
    before = carry_quiet.states()
    environment = dict(os.environ)
    with warnings.catch_warnings(), decimal.localcontext():
        yield
        for kind, state in before.items():
            if state:
                carry_quiet.restore(kind, payload(state))
        os.environ.clear()
        os.environ.update(environment)


def payload(state: object) -> bytearray:
    written = carry_pickle.dump(state, 1 << 20, {}, {})
    return bytearray(b"".join(map(bytes, written.payload())))


def set_environment() -> None:
    os.environ["PYBOX_TEST_ADDED"] = "1"


def set_filters() -> None:
    warnings.simplefilter("ignore", ResourceWarning)


def set_context() -> None:
    decimal.getcontext().prec = 7


def set_python() -> None:
    sys.setrecursionlimit(sys.getrecursionlimit() + 1)


def set_numpy() -> None:
    np.set_printoptions(precision=2)
    np.seterr(divide="ignore")


CHANGES = {
    "environ": (set_environment, lambda: os.environ.get("PYBOX_TEST_ADDED")),
    "warnings": (set_filters, lambda: warnings.filters[0][2]),
    "decimal": (set_context, lambda: str(decimal.Decimal(1) / 3)),
    "python": (set_python, sys.getrecursionlimit),
    "numpy": (set_numpy, lambda: (str(np.ones(1) / 3), np.geterr()["divide"])),
    "random": (lambda: random.seed(5), lambda: random.getstate()),
    "numpy.random": (lambda: np.random.seed(5), lambda: np.random.get_state()[1].tolist()),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_only_what_changed_is_carried_and_it_is_set_again(kind: str, fresh: None) -> None:
    change, look = CHANGES[kind]
    carry_quiet.remember_fresh()
    assert kind not in carry_quiet.changed()
    before = payload(carry_quiet.states()[kind]) if carry_quiet.states()[kind] else None
    as_before = look()
    change()
    state: dict[str, Any] = carry_quiet.changed()
    assert list(state) == [kind]
    as_changed = look()
    assert as_changed != as_before
    carried = payload(state[kind])
    if before is not None:
        carry_quiet.restore(kind, before)
    carry_quiet.restore(kind, carried)
    assert look() == as_changed


def test_a_state_waits_for_its_module_and_is_carried_on_where_that_never_comes() -> None:
    program = """
import sys
from tests.unit.carrying_inside import carry_pickle, carry_quiet
for name in [name for name in sys.modules if name.partition(".")[0] in ("random", "numpy", "decimal")]:
    del sys.modules[name]
import random
random.seed(5)
state = random.getstate()
written = carry_pickle.dump(state, 1 << 20, {}, {})
payload = bytearray(b"".join(map(bytes, written.payload())))
del sys.modules["random"]
carry_quiet.remember_fresh()
carry_quiet.restore("random", payload)
carry_quiet.restore("decimal", bytearray(b"never read"))
assert "random" not in sys.modules
assert set(carry_quiet.to_come) == {"random", "decimal"}
from random import getstate
assert getstate() == state
assert sys.modules["random"].__spec__.loader is sys.modules["random"].__loader__
assert type(sys.modules["random"].__loader__).__name__ == "SourceFileLoader"
assert set(carry_quiet.to_come) == {"decimal"}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def in_the_next_process(kind: str, change: str, look: str) -> str:
    """What ``look`` prints after the state was carried there."""
    first = f"""
from tests.unit.carrying_inside import carry_pickle, carry_quiet
carry_quiet.remember_fresh()
assert {kind!r} not in carry_quiet.changed()
{change}
written = carry_pickle.dump(carry_quiet.changed()[{kind!r}], 1 << 20, {{}}, {{}})
sys.__stdout__.write(b"".join(map(bytes, written.payload())).hex())
"""
    done = subprocess.run([sys.executable, "-c", f"import sys\n{first}"], capture_output=True, text=True, check=True)
    second = f"""
from tests.unit.carrying_inside import carry_quiet
carry_quiet.remember_fresh()
carry_quiet.restore({kind!r}, bytearray.fromhex({done.stdout!r}))
{look}
"""
    done = subprocess.run([sys.executable, "-c", second], capture_output=True, text=True, check=True)
    return done.stdout


def test_loggers_write_on_as_they_were_told_to(tmp_path: Path) -> None:
    change = f"""
import logging
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="{{name}}:{{message}}", style="{{")
logging.getLogger("mine").setLevel(logging.DEBUG)
logging.getLogger("mine").addHandler(logging.FileHandler({str(tmp_path / "log")!r}))
"""
    look = "import logging; logging.debug('a'); logging.info('b'); logging.getLogger('mine').debug('c')"
    assert in_the_next_process("logging", change, look) == "root:b\nmine:c\n"
    assert (tmp_path / "log").read_text() == "c\n"


def test_the_time_zone_that_was_set_is_the_zone() -> None:
    change = "import os, time; os.environ['TZ'] = 'XYZ-5'; time.tzset()"
    assert in_the_next_process("environ", change, "import time; print(time.tzname[0], time.timezone)") == "XYZ -18000\n"


# The folder


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(carry_folder, "ROOT", str(tmp_path / "box"))
    (tmp_path / "box").mkdir()
    monkeypatch.chdir(tmp_path / "box")
    return tmp_path / "box"


def test_files_and_folders_are_the_same_in_the_next_box(root: Path) -> None:
    put_in = carry_folder.look()
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b").chmod(0o750)
    (root / "a" / "b" / "data.bin").write_bytes(b"\0\1")
    (root / ".hidden").write_text("h")
    (root / ".hidden").chmod(0o400)
    os.chdir("a")
    state, lost = carry_folder.state(carry_folder.look(), put_in)
    assert lost == []
    modified = (root / ".hidden").stat().st_mtime_ns
    os.chdir(root)
    for command in ("rm -r a", "rm -f .hidden"):
        subprocess.run(command.split(), check=True)
    carry_folder.restore(state)
    assert Path.cwd() == root / "a"
    assert (root / "a" / "b" / "data.bin").read_bytes() == b"\0\1"
    assert (root / "a" / "b").stat().st_mode & 0o777 == 0o750
    assert ((root / ".hidden").stat().st_mode & 0o777, (root / ".hidden").stat().st_mtime_ns) == (0o400, modified)
    assert carry_folder.state(carry_folder.look(), put_in)[0] == state


def test_copies_of_a_persons_files_are_not_carried_and_changes_to_them_are_told(root: Path) -> None:
    for name in ("same", "changed"):
        (root / name).write_text("put in")
    put_in = carry_folder.look()
    (root / "changed").write_text("other")
    state, lost = carry_folder.state(carry_folder.look(), put_in)
    assert state == {}
    assert [(path, kind) for path, kind, _ in lost] == [("changed", "file")]


def test_a_file_that_a_cell_asks_for_is_not_replaced_by_one_of_an_earlier_cell(root: Path) -> None:
    put_in = carry_folder.look()
    (root / "a").write_text("an earlier cell's")
    state, _ = carry_folder.state(carry_folder.look(), put_in)
    (root / "a").write_text("the person's")
    carry_folder.restore(state)
    assert (root / "a").read_text() == "the person's"


def test_links_and_what_is_too_large_are_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carry_folder, "MOST_BYTES", 10)
    put_in = carry_folder.look()
    (root / "a").write_text("12345678")
    (root / "b").write_text("1234")
    (root / "link").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe")
    state, lost = carry_folder.state(carry_folder.look(), put_in)
    assert [path for path, *_ in state["files"]] == ["a"]
    assert {(path, kind) for path, kind, _ in lost} == {("b", "file"), ("link", "link"), ("pipe", "special file")}


def test_a_folder_as_it_was_is_no_state(root: Path) -> None:
    (root / "input").write_text("put in")
    assert carry_folder.state(carry_folder.look(), carry_folder.look()) == ({}, [])
