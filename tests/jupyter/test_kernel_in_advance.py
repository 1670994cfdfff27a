"""A kernel whose boxes are made in advance, as they are where nobody says otherwise."""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import docker
import pytest

from pybox_kernel.boxes.turns import at_once
from pybox_kernel.sessions.session import Session

pytestmark = pytest.mark.engine

WAIT = 30.0


@pytest.fixture
def kernel(start_kernel: Any, boxes: Any) -> Iterator[Any]:
    """With a box that waits; with it, and not before, all of its boxes are gone."""
    with start_kernel(PYBOX_POOL="2") as started:
        waits(boxes)
        yield started


def waits(boxes: Any, number: int = 1) -> list[str]:
    """The boxes of the kernel, once ``number`` of them have their runner up, and no other is on its way."""
    limit = time.monotonic() + WAIT
    while True:
        living = boxes.living()
        if len(living) >= number and all(two_processes(boxes, box) for box in living):
            return list(living)
        assert time.monotonic() < limit
        time.sleep(0.05)


def two_processes(boxes: Any, box: str) -> bool:
    try:
        return len(boxes.api.top(box)["Processes"]) == 2
    except docker.errors.APIError:  # not started yet, or gone
        return False


def in_advance(cell: Any) -> bool:
    return "made in advance" in cell.of("display_data")[-1]["data"]["text/html"]


def test_the_first_cell_and_the_next_get_a_box_that_waited_and_each_a_new_one(kernel: Any, boxes: Any) -> None:
    used: set[str] = set()
    for number in range(3):
        (waiting,) = waits(boxes)[:1]
        time.sleep(0.5)  # until its seal is checked as well
        cell = kernel.run(f"seen = {number}\nprint({number})" if number == 0 else f"print(seen, {number})")
        assert cell.text("stdout") == ("0\n" if number == 0 else f"0 {number}\n")
        assert in_advance(cell)
        assert waiting not in used
        used.add(waiting)


def test_a_cell_in_it_is_stopped_like_any_other_and_the_next_runs(kernel: Any) -> None:
    msg_id = kernel.client.execute("print('up', flush=True)\nwhile True: pass")
    kernel.until("stream", msg_id)
    os.kill(kernel.pid, signal.SIGINT)
    assert kernel.wait(msg_id).error["ename"] == "PyBoxStopped"
    assert kernel.run("print('alive')").text("stdout") == "alive\n"


def test_a_kernel_that_is_shut_down_leaves_none(kernel: Any, boxes: Any) -> None:
    kernel.run("print(1)")
    waits(boxes)
    kernel.manager.shutdown_kernel()
    assert boxes.living() == []


def test_a_kernel_that_is_killed_leaves_none(kernel: Any, boxes: Any) -> None:
    os.kill(kernel.pid, signal.SIGKILL)
    limit = time.monotonic() + 5
    while boxes.living():
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_a_kernel_that_is_restarted_has_others(kernel: Any, boxes: Any) -> None:
    before = set(waits(boxes))
    kernel.manager.restart_kernel()
    kernel.client.wait_for_ready(timeout=20)
    kernel.forget()
    limit = time.monotonic() + WAIT
    while before & set(boxes.living()) or not boxes.living():
        assert time.monotonic() < limit
        time.sleep(0.05)
    assert kernel.run("print('new')").text("stdout") == "new\n"


@pytest.mark.parametrize("boxes_ended", [False, True])
def test_a_kernel_that_was_halted_with_its_boxes_runs_the_next_cell_and_keeps_nobody_else_from_theirs(
    boxes_ended: bool, kernel: Any, boxes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a suspend, or a debugger. Boxes that wait for long end by themselves meanwhile."""
    kernel.run("seen = 1")
    waiting = waits(boxes)
    time.sleep(0.5)  # until its seal is checked as well: one that ends before is not tried again for a while
    with halted(kernel.pid):
        monkeypatch.setenv("PYBOX_POOL", str(len(waiting)))  # which it holds all
        with Session.open(in_advance=True) as other:
            began = time.monotonic()
            assert [other.run(f"print({number})").stdout for number in range(3)] == ["0\n", "1\n", "2\n"]
            assert time.monotonic() - began < WAIT
        if boxes_ended:
            for box in waiting:
                boxes.api.kill(box)
    cell = kernel.run("print(seen)")
    assert cell.text("stdout") == "1\n"
    assert "sealed" in cell.receipt_text
    waits(boxes)


@contextmanager
def halted(pid: int) -> Iterator[None]:
    """A kernel with all of its processes; on it goes at the end."""
    os.killpg(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(pid, signal.SIGCONT)


def test_a_kernel_that_was_halted_while_a_cell_ran_says_how_that_ended_and_runs_the_next(kernel: Any) -> None:
    msg_id = kernel.client.execute("print('up', flush=True)\nwhile True: pass")
    kernel.until("stream", msg_id)
    with halted(kernel.pid):
        time.sleep(3.0)  # past the time limit, which is kept in the box
    cell = kernel.wait(msg_id)
    assert cell.error["ename"] == "PyBoxDeadline"
    assert kernel.run("print('alive')").text("stdout") == "alive\n"


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_thirty_kernels_at_once_are_served_in_order_and_no_more_boxes_live_than_may(
    start_kernel: Any, boxes: Any
) -> None:
    """As of a class whose notebooks are run at the same time."""
    everyone, cells, bound = 30, 4, 8
    living: list[int] = []
    waits: list[float] = []
    with ExitStack() as running:
        kernels = [running.enter_context(start_kernel(PYBOX_POOL=str(bound))) for _ in range(everyone)]
        left = dict.fromkeys(range(everyone), cells)
        asked: dict[int, float] = {}
        while left:
            for number in list(left):
                channel = kernels[number].client.shell_channel
                if number not in asked:
                    kernels[number].client.execute(f"print({number})")
                    asked[number] = time.monotonic()
                elif channel.msg_ready():
                    assert channel.get_msg(timeout=1)["content"]["status"] == "ok"
                    waits.append(time.monotonic() - asked.pop(number))
                    left[number] -= 1
                    if not left[number]:
                        del left[number]
            living.append(len(boxes.living()))
            time.sleep(0.02)
    assert len(waits) == everyone * cells
    assert 0 < max(living) <= at_once() + bound
    # Served in order, nobody waits for much longer than it takes to serve everyone once.
    assert max(waits) < 4 * statistics.median(waits)
