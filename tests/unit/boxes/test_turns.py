"""Turns over all sessions that share a state folder: so many at once, in order, given back by whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pybox_kernel.boxes import turns
from pybox_kernel.boxes.turns import LEAST_AT_ONCE, Turns, at_once
from pybox_kernel.errors import BoxError, Stopped
from pybox_kernel.stop import Stop


def test_no_more_have_a_turn_at_once_than_may_and_all_get_one_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    running: list[int] = []
    most: list[int] = []
    order: list[int] = []

    def go(number: int) -> None:
        with Turns(tmp_path, 2).turn(Stop()):
            running.append(number)
            order.append(number)
            most.append(len(running))
            time.sleep(0.05)
            running.remove(number)

    threads = []
    for number in range(10):
        threads.append(threading.Thread(target=go, args=(number,)))
        threads[-1].start()
        limit = time.monotonic() + 10
        while not (tmp_path / "turns").exists():
            assert time.monotonic() < limit
        time.sleep(0.01)
    for thread in threads:
        thread.join(20)
    assert max(most) == 2
    assert sorted(order) == list(range(10))
    # Two who run at once may note themselves in either order.
    assert all(abs(place - number) <= 1 for place, number in enumerate(order))
    assert [path.name for path in (tmp_path / "turns").iterdir()] == ["lock"]


def test_who_waits_is_told_how_many_are_before(tmp_path: Path) -> None:
    told: list[int] = []
    queue = Turns(tmp_path, 1)
    first = queue.turn(Stop())
    second = threading.Thread(target=lambda: wait(queue, told))
    with first:
        second.start()
        limit = time.monotonic() + 10
        while not told:
            assert time.monotonic() < limit
            time.sleep(0.005)
        assert queue.all_taken()
    second.join(10)
    assert told == [1, 0]
    assert not queue.all_taken()


def wait(queue: Turns, told: list[int]) -> None:
    with queue.turn(Stop(), told.append):
        pass


def test_a_turn_of_whoever_is_killed_comes_back(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from pybox_kernel.stop import Stop\n"
        "from pybox_kernel.boxes.turns import Turns\n"
        "with Turns(Path(sys.argv[1]), 1).turn(Stop()): print('mine', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"mine\n"
        queue = Turns(tmp_path, 1)
        assert queue.all_taken()
        stop = Stop()
        stop.set()
        with pytest.raises(Stopped), queue.turn(stop):
            pass
        other.send_signal(signal.SIGKILL)
        other.wait()
        with queue.turn(stop):
            assert queue.all_taken()
    assert [path.name for path in (tmp_path / "turns").iterdir()] == ["lock"]


HALTED = """
import os, signal, sys
from pathlib import Path
from pybox_kernel.file_lock import file_lock
from pybox_kernel.stop import Stop
from pybox_kernel.boxes.turns import Turns
home, what = Path(sys.argv[1]), sys.argv[2]
def halt(_=0):
    print("now", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
if what == "lock":
    with file_lock(home / "turns" / "lock"): halt()
with Turns(home, 1).turn(Stop(), halt if what == "waits" else None): halt()
"""


@pytest.mark.parametrize("what", ["runs", "waits", "lock"])
def test_who_is_halted_stands_in_the_way_of_the_others_only_for_a_while(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("WAITING_SECONDS", 0.2), ("RUNNING_SECONDS", 0.4), ("LOCK_SECONDS", 0.2)):
        monkeypatch.setattr(turns, name, seconds)
    setting = f"from pybox_kernel.boxes import turns\nturns.WAITING_SECONDS, turns.RUNNING_SECONDS = 0.2, 0.4\n{HALTED}"
    queue = Turns(tmp_path, 1)
    first = queue.turn(Stop())
    first.__enter__()
    command = [sys.executable, "-c", setting, str(tmp_path), what]
    if what == "runs":
        first.__exit__(None, None, None)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == b"now\n"
            if what == "waits":
                first.__exit__(None, None, None)
            began = time.monotonic()
            with queue.turn(Stop()):
                assert time.monotonic() - began < 10
        finally:
            other.kill()
    if what == "lock":
        first.__exit__(None, None, None)
    with queue.turn(Stop()):
        assert queue.all_taken()


def test_who_has_waited_too_long_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONGEST_SECONDS", 0.05)
    queue = Turns(tmp_path, 1)
    with queue.turn(Stop()):
        with pytest.raises(BoxError, match="Too many other programs"), queue.turn(Stop()):
            pass
        assert len(list((tmp_path / "turns").iterdir())) == 2


def test_nobody_waits_where_any_number_may_run_or_the_folder_cannot_be_used(tmp_path: Path) -> None:
    queue = Turns(tmp_path, 0)
    with queue.turn(Stop()), queue.turn(Stop()):
        assert not queue.all_taken()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "turns").write_text("not a folder")
    queue = Turns(tmp_path, 1)
    with queue.turn(Stop()), queue.turn(Stop()):
        assert not queue.all_taken()


@pytest.mark.parametrize(("wish", "wanted"), [("1", 1), ("0", 0), (" 12 ", 12), ("-1", None), ("many", None)])
def test_how_many_at_once_is_set_by_a_variable(wish: str, wanted: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "PYBOX_AT_ONCE", wish)
    if wanted is None:
        assert at_once() >= LEAST_AT_ONCE
    else:
        assert at_once() == wanted
