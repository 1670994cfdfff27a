"""The kernel as a Jupyter client sees it: real kernels, the real engine, every message validated."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.jsonutil import json_default
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from pybox_kernel.notebook.outbox import MESSAGE_SECONDS
from pybox_kernel.policy import KIB, MIB, STDLIB
from tests.cases import case, snippet

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("boxes")]

ENDLESS = "print('begun', flush=True)\nwhile True: pass"


# Output


def test_output_comes_while_the_cell_runs(kernel: Any) -> None:
    cell = kernel.run("import time\nprint('first', flush=True)\ntime.sleep(1)\nprint('second')")
    first = next(t for m, t in zip(cell.messages, cell.times, strict=True) if m["msg_type"] == "stream")
    assert cell.text("stdout") == "first\nsecond\n"
    assert cell.reply_time - first > 0.9


def test_each_stream_keeps_its_name(kernel: Any) -> None:
    cell = kernel.run("import sys\nprint('out')\nprint('err', file=sys.stderr)")
    assert (cell.text("stdout"), cell.text("stderr")) == ("out\n", "err\n")
    assert cell.reply["content"]["status"] == "ok"


def test_display_is_plain_text_and_the_receipt_comes_last(kernel: Any) -> None:
    cell = kernel.run("display({'a': 1})")
    shown, receipt = cell.of("display_data")
    assert shown["data"] == {"text/plain": "{'a': 1}"}
    assert set(receipt["data"]) == {"text/plain", "text/html"}
    assert "Ended normally" in receipt["data"]["text/plain"]


def test_the_last_value_is_the_cells_result_and_displays_stand_between_the_lines(kernel: Any) -> None:
    cell = kernel.run("print('a'); display(1); print('b'); display(2); print('c')\n6*7")
    assert cell.kinds == [
        "stream",
        "display_data",
        "stream",
        "display_data",
        "stream",
        "execute_result",
        "display_data",
    ]
    [result] = cell.of("execute_result")
    assert result["data"] == {"text/plain": "42"}
    assert result["execution_count"] == cell.reply["content"]["execution_count"]
    assert kernel.run("6*7;").of("execute_result") == []


def test_a_picture_and_a_table_come_in_the_hosts_frame_and_nothing_else_does(kernel: Any) -> None:
    cell = kernel.run(
        "class Table:\n"
        "    def _repr_html_(self): return '<table><tr><td>1</td></tr></table><script>alert(1)</script>'\n"
        "    def _repr_svg_(self): return '<svg onload=alert(1)>'\n"
        "Table()"
    )
    [result] = cell.of("execute_result")
    assert set(result["data"]) == {"text/plain", "text/html"}
    assert result["data"]["text/html"].startswith("<figure ")
    assert "<td>1</td>" in result["data"]["text/html"]
    assert "script" not in result["data"]["text/html"]
    assert "withheld" in cell.receipt_text


def test_output_error_and_receipt_come_in_this_order(kernel: Any) -> None:
    assert kernel.run("print('out')\n1/0").kinds == ["stream", "error", "display_data"]


def test_a_flood_comes_in_few_messages_and_bounded(kernel: Any) -> None:
    cell = kernel.run("while True: print('tick ' * 12)")
    sizes = [len(content["text"].encode()) for content in cell.of("stream")]
    assert max(sizes) <= 64 * 1024
    assert sum(sizes) <= STDLIB.kept_bytes + 200
    assert len(sizes) <= (STDLIB.deadline_seconds + 1) / MESSAGE_SECONDS
    assert cell.error["ename"] == "PyBoxDeadline"


@case("out-flood-lines", "out-flood-no-newline")
@pytest.mark.parametrize("flood", ["out-flood-lines", "out-flood-no-newline"])
def test_a_flood_does_not_grow_the_kernel_and_its_receipt_says_what_was_seen_and_what_was_kept(
    start_kernel: Any, flood: str
) -> None:
    with start_kernel() as kernel:
        kernel.run("print(1)")
        for _ in range(3):
            cell = kernel.run(snippet(flood))
            assert resident(kernel.pid) < 150 * MIB
        said = html.unescape(re.sub("<[^>]*>", "", cell.of("display_data")[-1]["data"]["text/html"]))
    assert re.search(r"[\d.]+ [MG]B of output, of which the beginning and the end are kept \(64 kB\)", said), said


def resident(pid: int) -> int:
    """Bytes of memory that a process has in use (proc(5), VmRSS)."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * KIB


def test_control_sequences_do_not_reach_the_client(kernel: Any) -> None:
    cell = kernel.run("print('\\x1b]52;c;b3Bz\\x07\\x1b[2Jdone')\nraise ValueError('\\x1b[2Jcleared')")
    assert cell.text("stdout") == "done\n"
    assert "\x1b[2J" not in json.dumps([message["content"] for message in cell.messages], ensure_ascii=False)


# How a cell fails


def test_an_exception_is_the_cells_error(kernel: Any) -> None:
    error = kernel.run("def divide():\n    1/0\ndivide()").error
    assert (error["ename"], error["evalue"]) == ("ZeroDivisionError", "division by zero")
    assert "line 2, in divide" in "\n".join(error["traceback"])


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import sys\nsys.exit(3)", "PyBoxExitCode"),
        ("import sys\nsys.exit(0)\nprint('never')", "PyBoxLeftEarly"),
        ("import os\nprint('out')\nos._exit(0)", "PyBoxLeftEarly"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "PyBoxKilled"),
        ("while True: pass", "PyBoxDeadline"),
    ],
    ids=["exit code", "exit 0 halfway", "os._exit(0)", "signal", "deadline"],
)
def test_a_cell_that_did_not_run_to_its_end_is_an_error(kernel: Any, code: str, name: str) -> None:
    cell = kernel.run(code)
    assert cell.error["ename"] == name
    assert cell.error["evalue"] in cell.receipt_text


def test_an_exit_at_the_end_is_no_error(kernel: Any) -> None:
    assert kernel.run("print('all')\nraise SystemExit").reply["content"]["status"] == "ok"


@case("src-nul", "src-too-big")
@pytest.mark.parametrize(
    ("code", "word"),
    [("#" * (STDLIB.source_bytes + 1), "65,536"), ("print('a\0b')", "NUL"), ("print('\ud800')", "half of a character")],
    ids=["too long", "NUL", "lone surrogate"],
)
def test_a_bad_program_is_an_error_with_advice_and_nothing_runs(kernel: Any, boxes: Any, code: str, word: str) -> None:
    start = time.time()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel.client.session, "pack", as_a_page_does)
        cell = kernel.run(code)
    assert cell.kinds == ["error", "display_data"]
    assert cell.receipt_text == "PyBox: Nothing was run."
    assert cell.error["ename"] == "PyBoxNotRun"
    assert word in cell.error["evalue"]
    assert len("\n".join(cell.error["traceback"])) > len(cell.error["evalue"])
    assert boxes.made_since(start) == 0
    assert kernel.run("print('alive')").text("stdout") == "alive\n"


def as_a_page_does(message: object) -> bytes:
    """Half a character as an escape, which Jupyter's own client would not send."""
    return json.dumps(message, default=json_default).encode()


def test_without_an_engine_a_cell_is_an_error_with_a_receipt(start_kernel: Any) -> None:
    with start_kernel(DOCKER_HOST="unix:///nowhere/docker.sock") as kernel:
        cell = kernel.run("print(1)")
    assert cell.error["ename"] == "PyBoxNotRun"
    assert "Not run" in cell.receipt_text


def test_where_a_private_vm_is_required_and_none_runs_no_cell_runs(start_kernel: Any) -> None:
    with start_kernel(PYBOX_REQUIRE_VM="yes") as kernel:
        cell = kernel.run("print('ran')")
        status = kernel.run("%pybox").of("display_data")[0]["data"]["text/plain"]
    assert cell.error["ename"] == "PyBoxNotRun"
    assert "no private virtual machine can be used" in cell.receipt_text
    assert "pybox-kernel vm start" in cell.receipt_text
    assert cell.text("stdout") == ""
    assert "pybox-kernel vm start" in status


def test_cells_after_a_failed_one_are_aborted_and_later_ones_run(kernel: Any) -> None:
    queued = [kernel.client.execute(code) for code in ("1/0", "print('no')", "print('no')")]
    cells = [kernel.wait(msg_id) for msg_id in queued]
    assert [cell.reply["content"]["status"] for cell in cells] == ["error", "aborted", "aborted"]
    assert [cell.kinds for cell in cells[1:]] == [[], []]
    assert kernel.run("print('yes')").text("stdout") == "yes\n"


def test_cells_sent_one_after_the_other_are_aborted_even_if_the_first_fails_at_once(kernel: Any) -> None:
    queued = []
    for code in ("print('a\0b')", "print('no')", "print('no')", "print('no')"):
        queued.append(kernel.client.execute(code))
        time.sleep(0.03)
    replies = [kernel.wait(msg_id).reply["content"]["status"] for msg_id in queued]
    assert replies == ["error", "aborted", "aborted", "aborted"]


# Interrupts


def by_message(kernel: Any) -> None:
    assert kernel.ask("interrupt_request", {}, "control") == {"status": "ok"}


def by_signal(kernel: Any) -> None:
    os.kill(kernel.pid, signal.SIGINT)


@pytest.mark.alone
@pytest.mark.parametrize("interrupt", [by_message, by_signal])
def test_an_interrupt_ends_the_cell_within_half_a_second(kernel: Any, interrupt: Callable[[Any], None]) -> None:
    msg_id = kernel.client.execute(ENDLESS)
    kernel.until("stream", msg_id)
    start = time.monotonic()
    interrupt(kernel)
    cell = kernel.wait(msg_id)
    assert cell.reply_time - start < 0.5
    assert cell.error["ename"] == "PyBoxStopped"
    assert kernel.run("print('alive')").text("stdout") == "alive\n"


@pytest.mark.alone
def test_an_interrupt_before_the_program_started_ends_the_cell_as_well(kernel: Any) -> None:
    msg_id = kernel.client.execute("print('no')")
    kernel.until("execute_input", msg_id)
    start = time.monotonic()
    by_message(kernel)
    cell = kernel.wait(msg_id)
    assert cell.reply_time - start < 0.5
    assert cell.error["ename"] == "PyBoxStopped"
    assert cell.text("stdout") == ""


@pytest.mark.parametrize("interrupt", [by_message, by_signal])
def test_an_interrupt_of_an_idle_kernel_does_nothing(kernel: Any, interrupt: Callable[[Any], None]) -> None:
    interrupt(kernel)
    assert kernel.run("print('alive')").text("stdout") == "alive\n"


def test_many_signals_at_once_stop_the_cell_once(kernel: Any) -> None:
    msg_id = kernel.client.execute(ENDLESS)
    kernel.until("stream", msg_id)
    for _ in range(200):
        by_signal(kernel)
    assert kernel.wait(msg_id).error["ename"] == "PyBoxStopped"
    assert kernel.run("print('alive')").text("stdout") == "alive\n"


# The life of a kernel


def test_a_shutdown_during_a_cell_leaves_no_box(start_kernel: Any, boxes: Any) -> None:
    with start_kernel() as kernel:
        kernel.until("stream", kernel.client.execute(ENDLESS))
        assert len(boxes.living()) == 1
        start = time.monotonic()
        kernel.manager.shutdown_kernel()
        assert time.monotonic() - start < 4
        assert boxes.living() == []


def test_a_restart_during_a_cell_leaves_no_box_and_the_new_kernel_works(start_kernel: Any, boxes: Any) -> None:
    with start_kernel() as kernel:
        kernel.until("stream", kernel.client.execute(ENDLESS))
        former = kernel.pid
        kernel.manager.restart_kernel()
        assert boxes.living() == []
        kernel.client.wait_for_ready(timeout=20)
        kernel.forget()
        assert kernel.pid != former
        assert kernel.run("print('new')").text("stdout") == "new\n"


@pytest.mark.alone
def test_a_killed_kernel_takes_its_box_with_it_at_once(start_kernel: Any, boxes: Any) -> None:
    with start_kernel() as kernel:
        kernel.until("stream", kernel.client.execute(ENDLESS))
        os.kill(kernel.pid, signal.SIGKILL)
        start = time.monotonic()
        while boxes.living():
            assert time.monotonic() - start < 1.0
            time.sleep(0.02)


def test_two_kernels_run_at_the_same_time_and_do_not_meet(start_kernel: Any, kernel: Any) -> None:
    with start_kernel() as other:
        mark = "import time\nopen('mark', 'w').write('here')\ntime.sleep(1.5)\nprint(open('mark').read())"
        first = kernel.client.execute(mark)
        second = other.client.execute("import time, os\ntime.sleep(0.5)\nprint(os.listdir())")
        cells = [kernel.wait(first), other.wait(second)]
    assert [cell.text("stdout") for cell in cells] == ["here\n", "[]\n"]
    ended = [cell.reply["header"]["date"] for cell in cells]
    assert ended[1] < ended[0], "the second began while the first was on, and did not wait for it"


def test_twenty_cells_leave_no_thread_and_no_descriptor_behind(kernel: Any) -> None:
    def held() -> tuple[int, int]:
        process = Path("/proc", str(kernel.pid))
        return len(list((process / "task").iterdir())), len(list((process / "fd").iterdir()))

    counts = []
    for _ in range(3 + 20):
        kernel.run("print(1)")
        counts.append(held())
    assert max(counts[-3:]) <= max(counts[:3])


def test_files_beside_the_notebook_are_not_imported(start_kernel: Any, tmp_path: Path) -> None:
    trap = "import pathlib\npathlib.Path(__file__).with_name('SPRUNG').touch()\n"
    for name in ("docker", "ipywidgets", "json", "psutil", "nh3", "sitecustomize", "ipykernel"):
        (tmp_path / f"{name}.py").write_text(trap)
    (tmp_path / "pybox_kernel").mkdir()
    for name in ("__init__", "__main__"):
        (tmp_path / "pybox_kernel" / f"{name}.py").write_text(trap.replace("(__file__)", "(__file__).parent"))
    with start_kernel(tmp_path) as kernel:
        assert kernel.run("print('alive')").text("stdout") == "alive\n"
    assert not (tmp_path / "SPRUNG").exists()


# What is no cell


@pytest.mark.parametrize("options", [{"silent": True}, {"store_history": False}])
def test_an_editors_own_code_is_not_run(kernel: Any, boxes: Any, options: dict[str, bool]) -> None:
    count = kernel.run("print(1)").reply["content"]["execution_count"]
    start = time.time()
    probe = kernel.run("print('run')", **options)
    assert probe.kinds == []
    assert probe.reply["content"]["status"] == "ok"
    assert boxes.made_since(start) == 0
    assert kernel.run("print(1)").reply["content"]["execution_count"] == count + 1


def test_the_count_of_boxes_in_these_tests_counts(kernel: Any, boxes: Any) -> None:
    start = time.time()
    kernel.run("print(1)")
    assert boxes.made_since(start) == 1


def test_vs_code_learns_the_version_of_ipywidgets(kernel: Any) -> None:
    mark = "e976ee50-99ed-4aba-9b6b-9dcd5634d07d:IPyWidgets:"
    code = f'import ipywidgets as _VSCODE_ipywidgets\nprint("{mark}" + _VSCODE_ipywidgets.__version__)'
    assert kernel.run(code, store_history=False).text("stdout").startswith(f"{mark}8.")


def test_an_empty_cell_needs_no_box(kernel: Any, boxes: Any) -> None:
    start = time.time()
    assert kernel.run(" \n").reply["content"]["status"] == "ok"
    assert boxes.made_since(start) == 0


def test_the_kernel_says_what_it_is(kernel: Any) -> None:
    told = kernel.ask("kernel_info_request", {})
    assert told["implementation"] == "pybox"
    assert told["language_info"]["name"] == "python"
    assert told["supported_features"] == []
    assert "what it defines is carried to the next" in told["banner"]


@pytest.mark.parametrize("kind", ["execute_request", "complete_request", "inspect_request", "create_subshell_request"])
def test_the_control_channel_takes_no_code(kernel: Any, kind: str) -> None:
    client = kernel.client
    message = client.session.msg(kind, {"code": "print(1)", "cursor_pos": 1})
    kernel.asked.add(message["header"]["msg_id"])
    client.control_channel.send(message)
    assert kernel.ask("interrupt_request", {}, "control") == {"status": "ok"}  # in its order, and nothing before it


def test_names_of_earlier_cells_are_completed_and_told_of(kernel: Any, boxes: Any) -> None:
    kernel.run("def shelve_books(count):\n    'Puts books on a shelf.'\n    1/0\nshelve_books(1)")
    start = time.time()
    asked = {"code": "shelve_b", "cursor_pos": 8}
    assert kernel.ask("complete_request", asked)["matches"] == ["shelve_books"]
    told = kernel.ask("inspect_request", {"code": "shelve_books", "cursor_pos": 3, "detail_level": 0})
    assert "Puts books on a shelf." in told["data"]["text/plain"]
    asked = {"hist_access_type": "tail", "n": 1, "output": False, "raw": True}
    assert "shelve_books" in kernel.ask("history_request", asked)["history"][0][2]
    assert boxes.made_since(start) == 0


def test_a_cells_first_line_may_ask_for_another_limit(kernel: Any) -> None:
    cell = kernel.run("%%pybox --timeout 0.5\nwhile True: pass")
    assert cell.error["evalue"] == "Stopped at its 0.5 s limit"
    assert "must be" in kernel.run("%%pybox --timeout 31\n1").error["evalue"]
    assert "no option" in kernel.run("%%pybox --memory 1\n1").error["evalue"]


def test_code_is_checked_for_completeness_without_running_it(kernel: Any) -> None:
    def status(code: str) -> str:
        return str(kernel.ask("is_complete_request", {"code": code})["status"])

    assert status("for i in x:") == "incomplete"
    assert status("[" * 200) == "unknown"
    assert status("x = 1\n" * 20_000) == "unknown"


# As a notebook


def test_a_notebook_run_by_nbclient_stops_at_the_cell_that_left_early(kernelspec: str) -> None:
    code = ["print('one')", "import os\nos._exit(0)", "print('three')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in code])
    with pytest.raises(CellExecutionError, match="PyBoxLeftEarly"):
        NotebookClient(notebook, kernel_name=kernelspec, timeout=30).execute()
    kinds = [[output["output_type"] for output in cell["outputs"]] for cell in notebook.cells]
    assert kinds == [["stream", "display_data"], ["error", "display_data"], []]
    nbformat.validate(notebook)
