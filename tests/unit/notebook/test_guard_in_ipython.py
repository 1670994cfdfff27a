"""The guard in a real IPython: whatever a cell looks like, nothing of it runs on this computer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from pybox_kernel.notebook.guard import plain
from pybox_kernel.notebook.input_guard import GUARDED, InputGuard
from tests.unit.notebook.test_guard import NEAR, UNSEEN

BODY = "ran.append('here')"


class Shell:
    """IPython with the guard. Its magics run nothing, and keep what they are given."""

    def __init__(self, folder: Path) -> None:
        config = Config()
        config.HistoryManager.enabled = False
        self.shell: Any = InteractiveShell(config=config, ipython_dir=str(folder), colors="nocolor")
        self.guard = InputGuard(lambda name: name in ("time", "capture", "html"), lambda _: None)
        self.shell.input_transformers_cleanup.append(self.guard)
        self.shell.events.register("pre_execute", self.guard.begun)
        self.shell.events.register("post_execute", self.guard.ended)
        self.sealed: list[str] = []
        for name in ("pybox", GUARDED):
            self.shell.register_magic_function(lambda _, cell: self.sealed.append(cell), "cell", name)
        self.shell.register_magic_function(lambda _: None, "line", "pybox")

    def run(self, cell: str) -> list[str]:
        """What ran outside of a box."""
        self.sealed.clear()
        self.shell.user_ns["ran"] = ran = []
        self.shell.run_cell(cell)
        return ran


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    made = Shell(tmp_path_factory.mktemp("ipython"))
    yield made
    made.shell.restore_sys_module_state()


@pytest.mark.parametrize("line", NEAR)
@pytest.mark.parametrize("above", ["", "ran.append('before')\n", "%%time\n", "%%capture\n", "%%html\n"])
@pytest.mark.parametrize("on", [False, True])
def test_below_a_near_miss_nothing_runs(shell: Shell, line: str, above: str, on: bool) -> None:
    if line.lstrip().startswith("#") and above:
        return  # a comment in a program
    shell.guard.on = on
    ran = shell.run(f"{above}{line}\n{BODY}")
    assert "here" not in ran
    if plain(line).count("%") > 1:
        assert ran == []  # a single one may be a sign of Python's, where it is not in the first line


@pytest.mark.parametrize("above", ["", "\n", "# a comment\n", "%%time\n", "%%capture\n", "%%time\n\n# a comment\n"])
@pytest.mark.parametrize("on", [False, True])
def test_below_the_magic_all_is_sealed(shell: Shell, above: str, on: bool) -> None:
    shell.guard.on = on
    assert shell.run(f"{above}%%pybox --timeout 5\n{BODY}") == []
    assert BODY in "".join(shell.sealed)


@pytest.mark.parametrize("below", ["%%pybox\n1", "%pybox", "%%capture\n%%pybox\n1"])
@pytest.mark.parametrize("on", [False, True])
def test_behind_a_magic_above_it_nothing_is_computed_here(shell: Shell, below: str, on: bool) -> None:
    shell.guard.on = on
    assert shell.run("%%capture {" + BODY + "}\n" + below) == []


@pytest.mark.parametrize("before", ["%time", "%%time", "%%capture", "%%capture out", "%%timeit -n1 -r1", "%%host"])
@pytest.mark.parametrize("mark", ["%pybox", "%%pybox", "%%PyBox"])
def test_below_a_magic_with_the_mark_in_its_own_line_nothing_runs(shell: Shell, before: str, mark: str) -> None:
    shell.guard.on = False
    assert shell.run(f"{before} {mark}\n{BODY}") == []


@pytest.mark.parametrize("above", ["", "%%time\n", "%%capture\n", "# a comment\n", "x = 1\n", "%precision 3\n"])
def test_with_the_guard_on_no_cell_runs_here_but_those_that_say_so(shell: Shell, above: str) -> None:
    shell.guard.on = True
    assert shell.run(f"{above}{BODY}") == []
    assert BODY in "".join(shell.sealed)
    assert shell.run(f"%%host\n{above}{BODY}") == ["here"]
    assert shell.run(f"{above}{BODY}") == []


@settings(max_examples=200)
@given(
    before=st.text(alphabet=" \t!>\n\r\f\x1c\x85\u2028" + UNSEEN, max_size=5),
    marks=st.lists(st.text(alphabet=" \uff05" + UNSEEN, max_size=2), min_size=1, max_size=3),
    name=st.sampled_from(["pybox", "PyBox", "py box", "pybx", "pybox:", "pybox\u2028", "pybox\x0b"]),
    on=st.booleans(),
)
def test_however_it_is_written_nothing_runs_here(
    shell: Shell, before: str, marks: list[str], name: str, on: bool
) -> None:
    shell.guard.on = on
    assert shell.run(f"{before}%{'%'.join(marks)}%{name}\n{BODY}") == []
