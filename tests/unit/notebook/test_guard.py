"""What a cell is taken for, from its text alone. Nothing near ``%%pybox`` may be taken for an ordinary cell."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.inputtransformer2 import TransformerManager

from pybox_kernel.notebook.guard import NearMiss, Verdict, inspect_cell

OTHERS = ("time", "capture", "load_ext", "mybox", "matplotlib")
BODY = "import os\nos.getcwd()"


def judged(cell: str) -> Verdict | NearMiss:
    """As IPython would have it judged: cut into lines and cleaned up."""
    lines = cell.splitlines(keepends=True)
    for transform in TransformerManager().cleanup_transforms:
        lines = transform(lines)
    return inspect_cell(lines, OTHERS.__contains__)


@pytest.mark.parametrize(
    "cell",
    [
        f"%%pybox\n{BODY}",
        f"%%pybox --timeout 5\n{BODY}",
        f"%%pybox\t--timeout 5\n{BODY}",
        f"\n  \n%%pybox\n{BODY}",
        f"# a comment\n\n# another\n%%pybox\n{BODY}",
        "  %%pybox\n  1",
        "%%pybox",
        f">>> %%pybox\n>>> {BODY}",
        f"%%pybox\n%%pybox\n{BODY}",
        f"%%pybox\r\n{BODY}",
        f"%%pybox\u2028{BODY}",
    ],
)
def test_the_first_line_that_is_no_comment_seals_a_cell(cell: str) -> None:
    verdict = judged(cell)
    assert isinstance(verdict, Verdict)
    assert verdict.kind == "sealed"


@pytest.mark.parametrize("above", ["%%time", "%%capture out", "%%time\n%%capture", "%%time\n# a comment"])
def test_a_cell_may_be_timed_and_captured(above: str) -> None:
    assert judged(f"{above}\n%%pybox\n{BODY}") == Verdict("wrapped")


NEAR = (
    "%pybox",
    "%pybox --timeout 5",
    "%pybox guard on",
    "%%PyBox",
    "%%PYBOX",
    "%% pybox",
    "% %pybox",
    "%%%pybox",
    "%pybox;",
    "% pybox",
    "%PyBox",
    "%%pybox:",
    "%%pybox;",
    "%%pybox--timeout 5",
    "%%pybox?",
    "?%%pybox",
    "%%pybx",
    "%%pyybox",
    "%%pyobx",
    "%%pyboy",
    "%%py_box",
    "%%py-box",
    "%%py box",
    "%%pyboxes",
    "%%pybox_",
    "\ufeff%%pybox",
    "\u200b%%pybox",
    "%\u200b%pybox",
    "%%\u00adpybox",
    "%%p\u0443box",
    "%%pyb\u03bfx",
    "%%pyb0x",
    "\uff05\uff05pybox",
    "\ufe6a\ufe6apybox",
    "\u066a\u066apybox",
    "%%\uff50\uff59\uff42\uff4f\uff58",
    "%%p\u0301ybox",
    "\u00a0%%pybox",
    "\u3000%%pybox",
    "# %%pybox",
    "#%%pybox --timeout 5",
    "#!%%pybox",
    "!%%pybox",
    "`%%pybox`",
    "$ %%pybox",
    "-> %%pybox",
    "    %%pybox",
)


@pytest.mark.parametrize("line", NEAR)
def test_a_near_miss_on_top_of_a_program_is_refused(line: str) -> None:
    verdict = judged(f"{line}\n{BODY}")
    if line == "    %%pybox" and isinstance(verdict, Verdict):  # IPython before 9 takes its indent off
        assert verdict.kind == "sealed"
        return
    assert isinstance(verdict, NearMiss), verdict
    assert verdict.message.startswith("Nothing was run. ")
    assert "%%pybox" in verdict.advice


@pytest.mark.parametrize("line", [*(line for line in NEAR if line.strip().startswith("%%")), "%%pybox"])
@pytest.mark.parametrize("above", ["x = 1", "%load_ext pybox_kernel", "%%html", "'''\n", "# c\nx = 1\n\n\n"])
def test_below_other_lines_it_is_refused_too(line: str, above: str) -> None:
    assert isinstance(judged(f"{above}\n{line}\n{BODY}"), NearMiss)


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "\n\n",
        "# only a comment",
        BODY,
        "x = 5 %pybox",
        "x = (5\n  % pybox)\nx",
        "print('%%pybox')",
        "text = '%%pybox on top of a cell'",
        f"# put %%pybox on top\n{BODY}",
        f"{BODY}\n# %%pybox",
        "%matplotlib inline\nx = 1",
        "%%mybox\n1",
        "%mybox\n1",
        "%%pybox?",
        "?%%pybox",
        "%load_ext pybox_kernel\nx = 1",
        "import pybox_kernel",
        "pybox = 1\npybox % 2",
        "%%time\nx = 1",
        "%%python\n1",
        "%time %pybox",
        "%timeit -n 5 7 %3\nx = 1",
        "%%pypy\n1",
    ],
)
def test_other_cells_are_left_alone(cell: str) -> None:
    assert judged(cell) == Verdict("plain")


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("%pybox", "command"),
        ("# how is it?\n%pybox doctor\n\n%pybox receipts", "command"),
        ("%pybox \uff50", "command"),
        ("%%host\n%%pybox\n1", "host"),
        ("\n%%host\n# %%pybox", "host"),
        ("%load_ext pybox_kernel\n%pybox guard on", "plain"),
    ],
)
def test_commands_and_cells_of_this_computer(cell: str, kind: str) -> None:
    verdict = judged(cell)
    assert isinstance(verdict, Verdict)
    assert verdict.kind == kind


@pytest.mark.parametrize(
    "cell",
    [
        "%load_ext pybox_kernel\n%pybox guard on\nimport os",
        "%pybox\n%run stranger.py",
        "%pybox\n!ls",
        "%%time\n%pybox\nx = 1",
        "%%time\n%%host\nx = 1",
        "%%timeit\n%%pybox\nx = 1",
        "%%bash\n%%pybox\nls",
        "# c\n%%time\n%%pybox\n1",
        "%time %pybox\n1",
        "%time %%pybox\n1",
        "%%capture %%pybox\n1",
        "%%capture out%%pybox\n1",
        "x = %pybox\n1",
        "x, y =%%pybox\n1",
        "%%capture out %%pybox --timeout 5\n1",
        "%%capture \uff05%PyBox\n1",
        "%%bash %%pybox\nls",
        "%%capture %% pybox\n1",
        "%%host %%pybox\n1",
        "%%time\n%%capture %%pybox\n1",
        "%%capture {print(1)}\n%%pybox\n1",
        "%%time\n%%capture out {print(1)}\n%%pybox\n1",
        "%%capture {print(1)}\n%pybox",
        "%%capture $out\n%%pybox\n1",
    ],
)
def test_a_program_below_a_command_and_magics_that_do_not_go_together_are_refused(cell: str) -> None:
    assert isinstance(judged(cell), NearMiss)


UNSEEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u202e\u0301"
SPACES = " \t\u00a0\u2003"
PERCENT = st.sampled_from("%\uff05\ufe6a\u066a")


@given(
    above=st.sampled_from(["", "# c\n", "x = 1\n", "\n\n"]),
    before=st.text(alphabet=SPACES + UNSEEN + "#!>`", max_size=4),
    percents=st.tuples(PERCENT, st.text(alphabet=" " + UNSEEN, max_size=2), PERCENT).map("".join),
    name=st.tuples(st.sampled_from(["py", "PY", "p\u0443"]), st.text(alphabet=UNSEEN, max_size=2)).map("".join),
    after=st.sampled_from(["", " --timeout 5", "\t", " \\", " #"]),
)
def test_no_way_to_write_it_runs_unsealed(above: str, before: str, percents: str, name: str, after: str) -> None:
    line = f"{before}{percents}{name}box{after}"
    verdict = judged(f"{above}{line}\n{BODY}")
    if above == "x = 1\n" and line.lstrip().startswith("#"):
        return  # a comment in a program
    if isinstance(verdict, Verdict):
        assert verdict.kind == "sealed"
        assert line.split(maxsplit=1)[0] == "%%pybox"


@given(st.text(max_size=200) | st.text(alphabet="%pybox \n#?!'\"\u2028", max_size=40))
def test_any_text_is_judged(cell: str) -> None:
    judged(cell)


@given(st.text(alphabet="pyboxz", min_size=3, max_size=7))
def test_a_name_within_one_slip_of_it_is_near(name: str) -> None:
    slips = {name} | {name[:at] + name[at + 1 :] for at in range(len(name))}
    goal = {"pybox"} | {"pybox"[:at] + "pybox"[at + 1 :] for at in range(5)}
    if name == "pybox" or "pybox" in slips or name in goal:
        verdict = judged(f"%%{name}\n1")
        assert isinstance(verdict, NearMiss) or name == "pybox"


def test_a_megabyte_is_judged_at_once() -> None:
    """0.4 s here."""
    began = time.process_time()
    judged("x = '%'\n" * 125_000)
    judged("%" * 1_000_000)
    assert time.process_time() - began < 10
