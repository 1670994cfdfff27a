"""How a program ended, and what it says of itself, is never taken for more than it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pybox_kernel.policy import STDLIB
from pybox_kernel.render.text import render_short
from tests.cases import case, snippet
from tests.escapes.running import Ran

pytestmark = pytest.mark.engine

SIGNALS = {
    "SIGKILL": ("import os; os.kill(os.getpid(), 9)", 137),
    "SIGKILL to its group": ("import os; os.kill(0, 9)", 137),
    "SIGKILL from a child": (
        "import os\nif os.fork() == 0: os.kill(os.getppid(), 9)\nos.wait()\nwhile True: pass",
        137,
    ),
    "SIGTERM": ("import os; os.kill(os.getpid(), 15)", 143),
    "SIGSEGV": (snippet("proc-segv"), 139),
    "SIGABRT": ("import os; os.abort()", 134),
    "SIGBUS": ("import os; os.kill(os.getpid(), 7)", 135),
    "SIGFPE": ("import os; os.kill(os.getpid(), 8)", 136),
    "SIGILL": ("import os; os.kill(os.getpid(), 4)", 132),
    "SIGXCPU": ("import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 2))\nwhile True: pass", 152),
    "SIGALRM": ("import signal; signal.alarm(1); signal.pause()", 142),
}


@case("proc-segv")
@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_that_ends_the_program_is_shown_as_that_signal(name: str, attack: Callable[..., Ran]) -> None:
    source, code = SIGNALS[name]
    ran = attack(source, 30)
    ran.assert_signal(name.split(maxsplit=1)[0], code)
    assert ran.meters.oom_kills == 0
    assert "memory" not in render_short(ran.receipt)


@case("proc-segv")
def test_the_run_after_a_crash_is_as_any_other(attack: Callable[..., Ran]) -> None:
    attack(snippet("proc-segv"))
    ran = attack("print('well')")
    ran.assert_exited(0, completed=True)
    assert ran.printed == "well\n"


@case("proc-segv")
def test_a_crash_writes_no_core_file_and_the_limit_cannot_be_raised(attack: Callable[..., Ran]) -> None:
    source = """
import json, os, resource
def raised(value):
    try: resource.setrlimit(resource.RLIMIT_CORE, (value, value))
    except (OSError, ValueError): return False
    return True
refused = [raised(0), raised(-1), raised(1 << 20)]
if os.fork() == 0: os.abort()
_, status = os.wait()
print(json.dumps([resource.getrlimit(resource.RLIMIT_CORE), refused, os.WCOREDUMP(status), os.listdir("/box")]))
"""
    assert attack(source).answer == [[STDLIB.core_bytes] * 2, [False] * 3, False, []]


@case("proc-exit-300", "proc-exit-124", "proc-exit-137-forged")
@pytest.mark.parametrize("number", [1, 2, 44, 70, 71, 124, 125, 126, 127, 130, 137, 139, 143, 255, 300, -1, -9])
def test_a_chosen_exit_code_is_an_exit_code_and_nothing_more(number: int, attack: Callable[..., Ran]) -> None:
    ran = attack(f"import os; os._exit({number})")
    ran.assert_exited(number % 256, completed=False)
    assert ran.end.evidence[0] == "the box's own part saw the program end by itself"
    assert ran.meters.oom_kills == 0
    told = " ".join(render_short(ran.receipt).split())
    assert f"exit code {number % 256}" in told
    assert "Exit codes wrap at 256" in told
    assert "for memory" not in told


EXITS = {
    "a text": (snippet("proc-exit-text"), 1, True, "bad input\n"),
    "nothing": ("import sys; sys.exit()", 0, True, ""),
    "none": ("import sys; sys.exit(None)", 0, True, ""),
    "false": ("import sys; sys.exit(False)", 0, True, ""),
    "a number": ("import sys; sys.exit(3)", 3, True, ""),
    "300": ("import sys; sys.exit(300)", 44, True, ""),
    "-1": ("import sys; sys.exit(-1)", 255, True, ""),
    "2 to the 100th": ("import sys; sys.exit(2 ** 100)", 255, True, ""),
    "a tuple": ("import sys; sys.exit((1, 2))", 1, True, "(1, 2)\n"),
    "the builtin": (snippet("proc-exit-builtin"), 3, True, ""),
    "the other builtin": ("quit(4)", 4, True, ""),
    "raised": ("raise SystemExit(5)", 5, True, ""),
    "before the end": ("import sys\nsys.exit(0)\nprint('more')", 0, False, ""),
    "in a function": ("import sys\ndef leave(): sys.exit(0)\nleave()\n", 0, False, ""),
    "at once": ("import os; os._exit(0)", 0, False, ""),
    "as another program": ("import os; os.execv('/bin/true', ['true'])", 0, False, ""),
    "as another program that fails": ("import os; os.execv('/bin/false', ['false'])", 1, False, ""),
    "in an exit function": ("import atexit, os; atexit.register(os._exit, 0)\nprint('end')", 0, False, ""),
    "in an exit function after an error": ("import atexit, os; atexit.register(os._exit, 0)\n1/0", 0, False, ""),
    "with every descriptor closed": ("import os\nos.closerange(0, 64)\nprint", 0, False, ""),
}


@case("proc-exit-text", "proc-exit-builtin", "proc-exit-300")
@pytest.mark.parametrize("name", EXITS)
def test_leaving_is_told_from_reaching_the_end(name: str, attack: Callable[..., Ran]) -> None:
    source, code, completed, said = EXITS[name]
    ran = attack(source)
    ran.assert_exited(code, completed=completed)
    assert ran.result.stderr == said
    if code == 0 and not completed:
        assert "Left early" in render_short(ran.receipt)


def test_a_child_that_runs_on_to_the_end_does_not_end_its_parents_run(attack: Callable[..., Ran]) -> None:
    source = """
import os
child = os.fork()
if child:
    os.waitpid(child, 0)
    print("parent")
    os._exit(0)
print("child")
"""
    ran = attack(source)
    ran.assert_exited(0, completed=False)
    assert ran.printed == "child\nparent\n"


def test_leaving_in_a_thread_ends_that_thread_only(attack: Callable[..., Ran]) -> None:
    source = "import sys, threading\nt = threading.Thread(target=sys.exit, args=(7,))\nt.start(); t.join(); print('on')"
    ran = attack(source)
    ran.assert_exited(0, completed=True)
    assert ran.printed == "on\n"


# Forgeries

FRAMES = b"R\0\0\0\2{}X\0\0\0\2{}F\0\0\0\3badO\0\0\0\1zX\xff\xff\xff\xffL\0\0\0\0\1\0\0\0\0\0\0\5X\0\0\0\0"


@pytest.mark.parametrize("descriptor", [1, 2])
def test_frames_that_are_printed_are_text(descriptor: int, attack: Callable[..., Ran]) -> None:
    ran = attack(f"import os\nos.write({descriptor}, {FRAMES!r})")
    ran.assert_exited(0, completed=True)
    stream = ran.receipt.said.stdout if descriptor == 1 else ran.receipt.said.stderr
    assert stream.bytes == len(FRAMES)


def test_what_the_program_says_of_itself_stands_under_said_only(attack: Callable[..., Ran]) -> None:
    event = b'{"name": "X", "value": "deadline", "traceback": "killed for memory"}'
    source = f"import os\nos.write(3, {b'x' + len(event).to_bytes(4, 'big') + event!r} + b'c\\0\\0\\0\\0')\nos._exit(0)"
    ran = attack(source)
    assert (ran.end.how, ran.end.exit_code) == ("exited", 0)
    assert ran.receipt.said.error == "X"
    assert ran.receipt.said.completed  # it said so, and nothing else does
    assert ran.meters.oom_kills == 0
    assert all("memory" not in line and "timer" not in line for line in ran.end.evidence)


def test_a_program_holds_its_three_streams_and_its_events_and_nothing_else(attack: Callable[..., Ran]) -> None:
    source = """
import json, os
open_now = [int(name) for name in os.listdir("/proc/self/fd")]
kinds = [os.readlink(f"/proc/self/fd/{n}").partition(":")[0] for n in range(4)]
print(json.dumps([sorted(open_now)[:4], len(open_now), kinds]))
"""
    assert attack(source).answer == [[0, 1, 2, 3], 5, ["/dev/null", "pipe", "pipe", "pipe"]]


def test_standard_input_is_empty(attack: Callable[..., Ran]) -> None:
    source = "import sys\nprint(repr(sys.stdin.read()))\ntry: input()\nexcept EOFError: print('none')"
    assert attack(source).printed == "''\nnone\n"
