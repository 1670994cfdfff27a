"""``%%pybox`` and ``%pybox`` in an ordinary Python kernel."""

from __future__ import annotations

import ast
import time
from typing import Any

import pytest

from pybox_kernel.receipt.model import Receipt
from pybox_kernel.signing.keys import SigningKeys
from pybox_kernel.signing.receipt_check import CellCheck, check_cells

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("boxes")]

STOP_SECONDS = 0.5


def value(kernel: Any, expression: str) -> str:
    [result] = kernel.run(expression).of("execute_result")
    return str(result["data"]["text/plain"])


def test_a_cell_is_sealed_and_its_output_stands_above_its_receipt(ordinary: Any) -> None:
    cell = ordinary.run("%%pybox\nimport os\nprint(os.getcwd())\nmine = os.getpid()\n6 * 7")
    assert cell.reply["content"]["status"] == "ok"
    assert cell.text("stdout") == "/box\n"
    assert cell.kinds == ["stream", "display_data", "display_data"]
    assert cell.of("display_data")[0]["data"]["text/plain"] == "42"
    assert cell.receipt_text.startswith("✓ Ended normally")
    assert "<details" in cell.of("display_data")[-1]["data"]["text/html"]
    assert ordinary.run("mine").error["ename"] == "NameError"


def test_a_failing_cell_raises_after_its_receipt_and_shows_no_frame_of_pybox(ordinary: Any) -> None:
    cell = ordinary.run("%%pybox --receipt r\ndef f():\n    1 / 0\nf()")
    assert cell.kinds == ["stream", "display_data", "error"]
    assert "Your code, line 3, in f" in cell.text("stderr")
    assert cell.error["ename"] == "PyBoxCellError"
    assert cell.error["evalue"] == "ZeroDivisionError: division by zero"
    assert cell.error["traceback"] == ["PyBoxCellError: ZeroDivisionError: division by zero"]
    assert value(ordinary, "r.said.error") == "'ZeroDivisionError'"
    receipt = Receipt.from_json(ast.literal_eval(value(ordinary, "r.to_json()")))
    assert receipt.observed.end.exit_code == 1
    [shown] = ordinary.run("r").of("execute_result")
    assert shown["data"]["text/plain"].startswith("✗ Ended with an error")
    assert "<details" in shown["data"]["text/html"]


def test_a_cell_that_is_not_to_raise_does_not_and_a_quiet_one_has_no_receipt(ordinary: Any) -> None:
    cell = ordinary.run("%%pybox --no-raise --quiet\n1 / 0")
    assert cell.reply["content"]["status"] == "ok"
    assert cell.kinds == ["stream", "display_data"]
    assert ordinary.run("%%pybox --quiet\nprint(1)").kinds == ["stream"]


def test_nothing_of_the_notebook_is_put_into_the_line(ordinary: Any) -> None:
    ordinary.run("seconds = '5'")
    for written in ("{seconds}", "$seconds"):
        error = ordinary.run(f"%%pybox --timeout {written}\nprint(1)").error
        assert f"'{written}'" in "".join(error["traceback"])


@pytest.mark.parametrize(
    "cell",
    [
        "%pybox\nleft = 1",
        "x = 1\n%%pybox\nleft = 1",
        "%% pybox\nleft = 1",
        "\ufeff%%pybox\nleft = 1",
        "%%PyBox\nleft = 1",
        "%%time\n%pybox\nleft = 1",
        "%%pybox --timout 5\nleft = 1",
        "%%pybox?\nleft = 1",
    ],
)
def test_a_near_miss_runs_nothing(ordinary: Any, boxes: Any, cell: str) -> None:
    start = time.time()
    refused = ordinary.run(cell)
    assert [kind for kind in refused.kinds if kind != "display_data"] == ["error"]
    assert refused.error["ename"] == "PyBoxCellError"
    assert ordinary.run("(x, left)").error["ename"] == "NameError"
    assert boxes.made_since(start) == 0


@pytest.mark.parametrize("source", ["%%pybox --timout 5\nleft = 1", "%pybox recipts"])
def test_that_a_cell_was_refused_can_be_checked_later(ordinary: Any, source: str) -> None:
    refused = ordinary.run(source)
    assert "Did you mean" in "".join(refused.error["traceback"])
    [found] = checked(refused, source)
    assert (found.verdict, found.is_refusal) == ("unchanged", True)
    [altered] = checked(refused, source + " ")
    assert altered.found == ("the cell is not the program that ran",)


def checked(cell: Any, source: str) -> list[CellCheck]:
    """As it stands in a file."""
    shown = [
        {"output_type": message["msg_type"], **message["content"]}
        for message in cell.messages
        if message["msg_type"] in cell.kinds
    ]
    number = cell.reply["content"]["execution_count"]
    there = {"cell_type": "code", "source": source, "execution_count": number, "outputs": shown}
    return check_cells({"cells": [there], "metadata": {}}, SigningKeys().ring())


def test_it_may_be_timed_and_captured(ordinary: Any) -> None:
    timed = ordinary.run("%%time\n%%pybox\nprint('in a box')")
    assert timed.text("stdout").startswith("in a box\n")
    assert "Wall time" in timed.text("stdout")
    captured = ordinary.run("%%capture out\n# a comment\n%%pybox\nprint('in a box')")
    assert captured.kinds == []
    assert value(ordinary, "out.stdout, len(out.outputs)") == r"('in a box\n', 1)"
    [error] = ordinary.run("%%time\n%%pybox\n1 / 0").of("error")
    assert error["ename"] == "PyBoxCellError"


def test_the_guard_seals_every_cell_but_those_of_this_computer_and_says_so(ordinary: Any) -> None:
    told = ordinary.run("%pybox guard on")
    assert "every cell is sealed" in told.of("display_data")[0]["data"]["text/plain"]
    try:
        sealed = ordinary.run("import os\nprint(os.getcwd())")
        assert "Sealed, for the guard is on" in sealed.of("display_data")[0]["data"]["text/plain"]
        assert sealed.text("stdout") == "/box\n"
        assert ordinary.run("%%time\nprint('kept')").text("stdout").startswith("kept\n")
        here = ordinary.run("%%host\nimport os\nprint(os.getpid())")
        assert "Not sealed" in here.of("display_data")[0]["data"]["text/plain"]
        assert here.text("stdout") == f"{ordinary.pid}\n"
        assert "Wall time" in ordinary.run("%%host\n%%time\nhere = 1").text("stdout")
        assert "The guard is on" in ordinary.run("%pybox").of("display_data")[0]["data"]["text/plain"]
    finally:
        ordinary.run("%pybox guard off")
    assert value(ordinary, "here") == "1"


@pytest.mark.alone
def test_an_interrupt_ends_the_box_at_once_and_the_receipt_says_so(ordinary: Any) -> None:
    msg_id = ordinary.client.execute("%%pybox --timeout 30\nprint('begun', flush=True)\nwhile True: pass")
    ordinary.until("stream", msg_id)
    began = time.monotonic()
    ordinary.manager.interrupt_kernel()
    cell = ordinary.wait(msg_id)
    ended = next(at for at, message in zip(cell.times, cell.messages, strict=True) if message["msg_type"] == "stream")
    assert ended - began < 3 * STOP_SECONDS  # with the box removed
    assert "Stopped by you" in cell.of("display_data")[-1]["data"]["text/plain"]
    assert cell.error["evalue"].startswith("PyBoxStopped")
    assert value(ordinary, "1 + 1") == "2"


def test_defaults_are_shown_and_set_and_never_leave_the_policy(ordinary: Any) -> None:
    assert "PyBoxMagics.timeout" in ordinary.run("%config PyBoxMagics").text("stdout")
    for name, wrong, why in (("timeout", "31", "must be"), ("image", "../x", "no name of an image")):
        usual = value(ordinary, f"get_ipython().magics_manager.registry['PyBoxMagics'].{name}")
        assert why in ordinary.run(f"%config PyBoxMagics.{name} = {wrong!r}").text("stderr")
        assert value(ordinary, f"get_ipython().magics_manager.registry['PyBoxMagics'].{name}") == usual
        ordinary.run(f"%config PyBoxMagics.{name} = {usual}")
    ordinary.run("%config PyBoxMagics.timeout = '0.5'")
    try:
        assert "Stopped at its 0.5 s limit" in ordinary.run("%%pybox\nwhile True: pass").error["evalue"]
    finally:
        ordinary.run("%config PyBoxMagics.timeout = ''")


def test_options_are_completed_and_help_is_there(ordinary: Any) -> None:
    def matches(code: str) -> list[str]:
        content = {"code": code, "cursor_pos": len(code)}
        return list(ordinary.ask("complete_request", content)["matches"])

    assert matches("%%pybox --ti") == ["--timeout"]
    assert "receipts" in matches("%pybox re")
    assert "--no-raise" in ordinary.run("%%pybox --help").of("display_data")[0]["data"]["text/plain"]
    asked = ordinary.run("%%pybox?").reply["content"]["payload"][0]["data"]["text/plain"]
    assert "--no-raise" in asked


def test_a_process_that_was_forked_leaves_the_boxes_of_the_first_alone(ordinary: Any) -> None:
    ordinary.run("%%pybox\n1")
    ordinary.run(
        "import os\nchild = os.fork()\nif child == 0:\n"
        "    get_ipython().magics_manager.registry['PyBoxMagics'].close()\n    os._exit(0)\nos.waitpid(child, 0);"
    )
    assert ordinary.run("%%pybox\nprint(1)").text("stdout") == "1\n"


def test_a_restart_in_the_middle_of_a_cell_leaves_no_box(start_kernel: Any, boxes: Any) -> None:
    with start_kernel(name="python3") as kernel:
        kernel.run("%load_ext pybox_kernel")
        msg_id = kernel.client.execute("%%pybox --timeout 30\nprint('begun', flush=True)\nwhile True: pass")
        kernel.until("stream", msg_id)
        assert boxes.living()
        kernel.manager.restart_kernel()
        end = time.monotonic() + 3
        while boxes.living():
            assert time.monotonic() < end
            time.sleep(0.05)


def test_the_extension_can_be_unloaded_and_imports_nothing_heavy_before(ordinary: Any) -> None:
    code = "import sys, pybox_kernel; print({'docker', 'ipykernel', 'IPython', 'pydantic'} & set(sys.modules))"
    ordinary.run(f"import subprocess, sys\nout = subprocess.run([sys.executable, '-c', {code!r}], capture_output=True)")
    assert value(ordinary, "out.stdout") == r"b'set()\n'"
    ordinary.run("%pybox guard on")
    unloaded = ordinary.run("%%host\n%unload_ext pybox_kernel")
    assert "The guard is off" in unloaded.of("display_data")[-1]["data"]["text/plain"]
    assert "not found" in ordinary.run("%%pybox\n1").text("stderr")
    assert ordinary.run("%pybox\n1").reply["content"]["status"] == "error"
    ordinary.run("%load_ext pybox_kernel")
    assert ordinary.run("%%pybox\nprint(1)").text("stdout") == "1\n"


def test_values_go_in_and_come_back_under_names_that_are_free(ordinary: Any) -> None:
    ordinary.run("given = [1, {'k': (1, 2)}]\ntaken = 'mine'")
    cell = ordinary.run("%%pybox -i given -o back half\nback = given + [len(given)]\nhalf = 0.5")
    assert cell.reply["content"]["status"] == "ok"
    assert value(ordinary, "back, half") == "([1, {'k': (1, 2)}, 2], 0.5)"
    assert "The name ‘taken’ is taken already" in ordinary.run("%%pybox -o taken\ntaken = 1").error["evalue"]
    assert "The name ‘given’ is taken already" in ordinary.run("%%pybox --receipt given\n1").error["evalue"]
    assert value(ordinary, "taken") == "'mine'"
    assert "the receipt" in ordinary.run("%%pybox -o free --receipt free\nfree = 1").error["evalue"]
    ordinary.run("%%pybox -o taken --replace\ntaken = 1")
    assert value(ordinary, "taken") == "1"
    ordinary.run("%%pybox -o taken --replace --no-raise\ntaken = 2\n1 / 0")
    assert value(ordinary, "taken") == "1"
    for name in ("__name__", "class", "not-a-name", "print"):
        assert ordinary.run(f"%%pybox -o {name}\n1").error["ename"] == "PyBoxCellError"
    lost = ordinary.run("%%pybox -o never --quiet\n1")
    assert lost.error["evalue"].startswith("PyBoxNoValue")
    assert "1 value not brought back" in lost.of("display_data")[-1]["data"]["text/plain"]
    missed = ordinary.run("%%pybox\ngiven")
    assert "`%%pybox -i given` copies it into the box" in missed.of("display_data")[0]["data"]["text/plain"]
    assert "no ‘missing’ here to copy" in ordinary.run("%%pybox -i missing\n1").error["evalue"]


@pytest.mark.usefixtures("data_image")
def test_a_table_goes_in_and_another_comes_back(ordinary: Any) -> None:
    ordinary.run("import pandas as pd\nsales = pd.DataFrame({'who': ['a', 'b', 'a'], 'n': [1, 2, 3]})")
    source = "totals = sales.groupby('who').sum()\nlabels = {who: int(n) for who, n in totals['n'].items()}"
    cell = ordinary.run(f"%%pybox --image data --timeout 20 -i sales -o totals labels\n{source}")
    assert cell.reply["content"]["status"] == "ok", cell.text("stderr")
    assert value(ordinary, "labels, totals.equals(sales.groupby('who').sum())") == "({'a': 4, 'b': 2}, True)"
    refused = ordinary.run("%%pybox -i sales\nprint(sales)").error["evalue"]
    assert refused == "PyBoxNotRun: sales needs numpy and pandas, which the box 'stdlib' does not have."


def test_a_value_that_does_not_come_is_an_error_and_the_others_come(ordinary: Any) -> None:
    cell = ordinary.run("%%pybox -o kept gone fault --replace\nkept, fault = 1, open")
    receipt = cell.of("display_data")[-1]["data"]["text/plain"]
    assert receipt.startswith("✓ Ended normally · 1 value brought back · 2 values not brought back")
    assert cell.error["evalue"] == (
        "PyBoxNoValue: Not brought back: gone is not there: the cell did not define it; "
        "fault is of the type builtin_function_or_method."
    )
    assert value(ordinary, "kept") == "1"


def test_a_value_that_is_too_large_is_refused_with_a_part_that_is_not(ordinary: Any) -> None:
    ordinary.run("large = bytes(20 << 20)")
    refused = "".join(ordinary.run("%%pybox -i large\n1").error["traceback"])
    assert "large has 20 MB. All values that go into a box may have 8 MB together." in refused
    assert "large_part = large[:6000000]" in refused


def test_sealed_cells_share_what_they_make_where_they_ask_for_it(ordinary: Any) -> None:
    ordinary.run("%%pybox --carry\ndef double(x):\n    return 2 * x\nn = 21")
    assert ordinary.run("%%pybox --carry\nprint(double(n))").text("stdout") == "42\n"
    assert ordinary.run("%%pybox --no-raise\nprint(n)").text("stdout") == ""
    assert "double" in ordinary.run("%pybox carry").of("display_data")[0]["data"]["text/plain"]
    assert ordinary.run("double").error["ename"] == "NameError"


def test_the_engine_of_a_notebooks_sealed_cells_is_said_before_the_first_and_stays(ordinary: Any) -> None:
    assert "is no engine" in ordinary.run("%config PyBoxMagics.engine = 'remote'").text("stderr")
    assert ordinary.run("%%pybox\n1").reply["content"]["status"] == "ok"
    for wish in ("engine = 'local'", "require_vm = True"):
        told = ordinary.run(f"%config PyBoxMagics.{wish}").text("stderr")
        assert "have an engine by now. Restart its kernel first." in told
    assert value(ordinary, "get_ipython().find_line_magic('pybox').__self__.require_vm") == "False"
