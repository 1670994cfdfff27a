"""``pybox-kernel mcp`` before it serves: its options, its pipes, its log, and where its package is missing."""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
import threading
from typing import Any

import pytest

from pybox_kernel.cli import main
from pybox_kernel.errors import OptionError
from pybox_kernel.mcp.command import PatientLog, SafeFormatter, checked_number, usual_at_once
from pybox_kernel.mcp.wire import LONGEST_LINE, TooLong, lines


@pytest.mark.parametrize("text", ["0", "65", "-1", "1.5", "x", "", "٣", "9" * 5000])
def test_calls_at_once_are_a_number_there_is_room_for(text: str) -> None:
    with pytest.raises(OptionError, match="1 to 64"):
        checked_number(text)


def test_calls_at_once_follow_what_this_user_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBOX_AT_ONCE", "3")
    assert (checked_number(None), checked_number("64")) == (3, 64)
    monkeypatch.setenv("PYBOX_AT_ONCE", "0")
    assert usual_at_once() == 64


def python(program: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_without_its_package_one_command_is_named() -> None:
    missing = "import sys\nsys.modules['mcp_types'] = sys.modules['mcp'] = None\n"
    done = python(missing + "from pybox_kernel.cli import main\nmain(['mcp'])", stdin=subprocess.DEVNULL)
    assert done.stdout == ""
    assert f"Run `{sys.executable} -m pip install 'pybox-kernel[mcp]'`." in done.stderr
    assert "Traceback" not in done.stderr


def test_what_it_may_not_be_given_is_said_before_it_serves(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--images", "no such"]) == 2
    assert main(["mcp", "--max-timeout", "31"]) == 2
    out, told = capfd.readouterr()
    assert out == ""
    assert "at most 30" in told


GUARDED = """
import os, subprocess, sys
from pybox_kernel.mcp.command import take_pipes
requests, answers = take_pipes()
print("printed", flush=True)
os.write(1, b"written\\n")
subprocess.run(["echo", "of a child"], check=True)
sys.stdout.write(repr(sys.stdin.read()) + "\\n")
sys.stdout.flush()
os.write(answers, os.read(requests, 100))
"""


def test_nothing_but_answers_reaches_the_client_and_nothing_else_reads_its_requests() -> None:
    done = subprocess.run([sys.executable, "-c", GUARDED], input=b"a request", capture_output=True, check=True)
    assert done.stdout == b"a request"
    assert done.stderr == b"printed\nwritten\nof a child\n''\n"


def test_a_missing_pipe_is_an_error_in_words() -> None:
    done = python("import os\nos.close(1)\nfrom pybox_kernel.cli import main\nmain(['mcp'])")
    assert "are not all there" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_record_in_the_log_cannot_act_on_a_terminal() -> None:
    record = logging.LogRecord(
        "x", logging.ERROR, "x", 1, "%s", ("\x1b]0;x\x07\x1b[2J\x1b[31m\u202e" + "y" * 9000,), None
    )
    shown = SafeFormatter().format(record)
    assert shown.startswith("pybox-kernel: \\u202ey")
    assert len(shown) <= 4000


def test_lines_are_whole_and_bounded_however_they_arrive() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    sent = [chance.randbytes(chance.choice([0, 1, 10, 70_000])).replace(b"\n", b"") for _ in range(40)]
    sent.insert(20, b"x" * (LONGEST_LINE + 1))
    sent.insert(30, b"y" * LONGEST_LINE)
    data = b"\n".join([*sent, b"no end"])
    reading, writing = os.pipe()

    def feed() -> None:
        position = 0
        while position < len(data):
            position += os.write(writing, data[position : position + chance.choice([1, 100, 65_536, 1_000_000])])
        os.close(writing)

    thread = threading.Thread(target=feed)
    thread.start()
    found = list(lines(reading))
    thread.join()
    os.close(reading)
    ends = TooLong(b"x" * 1024, b"x" * 1024)
    assert found == [ends if len(line) > LONGEST_LINE else line for line in sent]


def test_a_log_that_nobody_reads_holds_nothing_up() -> None:
    reading, writing = os.pipe()
    log = PatientLog(writing)
    for number in range(2000):
        log.emit(logging.LogRecord("x", logging.ERROR, "x", 1, "%s", (f"{number} {'é' * 500}",), None))
    told = os.read(reading, 1 << 20).decode("utf-8", "ignore").splitlines()
    os.close(reading)
    log.emit(logging.LogRecord("x", logging.ERROR, "x", 1, "nobody is there", (), None))
    os.close(writing)
    assert told[0] == f"pybox-kernel: 0 {'é' * 500}"
    assert 20 < len(told) < 200
