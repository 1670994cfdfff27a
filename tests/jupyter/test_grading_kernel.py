"""The kernel where nbgrader started it: whoever waits for a reply gets none where there is nothing to score."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from queue import Empty
from typing import Any

import pytest

from pybox_kernel.errors import ExitStatus

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("boxes")]

GRADED = {"NBGRADER_EXECUTION": "autograde"}
ENDS_SECONDS = 20.0


def ends_without_a_reply(kernel: Any) -> bool:
    end = time.monotonic() + ENDS_SECONDS
    while (status := asyncio.run(kernel.manager.provisioner.poll())) is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    with pytest.raises(Empty):
        kernel.client.get_shell_msg(timeout=0.2)
    return bool(status == ExitStatus.PYBOX_FAILED)


def test_files_that_whoever_grades_names_and_are_not_there_cost_nobody_a_point(
    start_kernel: Any, tmp_path: Path
) -> None:
    with start_kernel(tmp_path, arguments=["--PyBoxKernel.input=nowhere.csv"], **GRADED) as kernel:
        kernel.client.execute("1 + 1")
        assert ends_without_a_reply(kernel)


def test_a_cell_that_nbgrader_stops_costs_nobody_a_point(start_kernel: Any, tmp_path: Path) -> None:
    with start_kernel(tmp_path, arguments=["--PyBoxKernel.timeout=30"], **GRADED) as kernel:
        asked = kernel.client.execute("print('begun', flush=True)\nwhile True: pass")
        kernel.until("stream", asked)
        kernel.manager.interrupt_kernel()
        assert ends_without_a_reply(kernel)


def test_when_a_notebooks_time_is_up_no_cell_is_run_and_each_says_so(
    start_kernel: Any, boxes: Any, tmp_path: Path
) -> None:
    with start_kernel(tmp_path, arguments=["--PyBoxKernel.total_time=1"], **GRADED) as kernel:
        kernel.run("import time\ntime.sleep(1)")
        start = time.time()
        late = kernel.run("1 + 1")
        assert (late.error["ename"], late.error["evalue"]) == ("PyBoxNotRun", "Not run: the notebook's time is up.")
        assert "had 1 s together" in "".join(late.error["traceback"])
        assert late.receipt_text.startswith("■ Not run: the notebook's time is up.")
        assert not late.of("execute_result")
        assert "had 1 s together" in kernel.run("%pybox doctor").error["evalue"]
        assert boxes.made_since(start) == 0


def test_where_nothing_is_graded_a_kernel_outlives_both(start_kernel: Any, tmp_path: Path) -> None:
    arguments = ["--PyBoxKernel.timeout=30", "--PyBoxKernel.input=nowhere.csv"]
    with start_kernel(tmp_path, arguments=arguments) as kernel:
        assert kernel.run("1 + 1").error["ename"] == "PyBoxNotRun"
        (tmp_path / "nowhere.csv").write_text("1")
        asked = kernel.client.execute("print(open('nowhere.csv').read(), flush=True)\nwhile True: pass")
        assert kernel.until("stream", asked)["content"]["text"] == "1\n"
        kernel.ask("interrupt_request", {}, "control")
        assert kernel.wait(asked).error["ename"] == "PyBoxStopped"
