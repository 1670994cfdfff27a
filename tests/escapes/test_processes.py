"""Processes are bounded, reaped and told apart: what a program's exit says is never taken for more than it is."""

from __future__ import annotations

import pytest

from pybox_kernel.policy import STDLIB
from pybox_kernel.session import Session
from tests.cases import case, snippet
from tests.escapes.running import Ran, run_attack, with_calls

pytestmark = pytest.mark.engine

SECONDS = 5.0


def run(session: Session, source: str, seconds: float = SECONDS) -> Ran:
    return run_attack(session, source, seconds)


@case("proc-fork-bomb")
def test_a_fork_bomb_meets_the_task_limit_and_ends_at_the_deadline(session: Session) -> None:
    ran = run(session, snippet("proc-fork-bomb"), 1.0)
    ran.assert_deadline()
    assert ran.meters.tasks_peak == STDLIB.tasks
    assert (ran.meters.task_limit_hits or 0) > 0


@case("proc-zombies")
def test_orphans_are_reaped_and_use_up_nothing(session: Session) -> None:
    ran = run(session, snippet("proc-zombies"))
    assert ran.printed == "all 60 went through\n"
    ran.assert_exited(0, completed=True)


@case("proc-segv")
def test_a_crash_in_native_code_is_the_programs_signal(session: Session) -> None:
    run(session, snippet("proc-segv")).assert_signal("SIGSEGV", 139)
    run(session, "print(1)").assert_exited(0, completed=True)


@pytest.mark.parametrize("name", ["SIGABRT", "SIGTERM", "SIGKILL", "SIGBUS"])
def test_a_signal_to_oneself_is_shown_as_that_signal(session: Session, name: str) -> None:
    ran = run(session, f"import os, signal\nos.kill(os.getpid(), signal.{name})\nimport time; time.sleep(9)")
    assert ran.end.how == "signal"
    assert ran.end.signal == name
    assert ran.meters.oom_kills == 0


@case("proc-exit-300")
def test_exit_codes_wrap_at_256(session: Session) -> None:
    run(session, snippet("proc-exit-300")).assert_exited(44, completed=False)


@case("proc-exit-124", "proc-exit-137-forged")
@pytest.mark.parametrize("code", [1, 70, 71, 124, 125, 126, 127, 130, 137, 139, 143, 255])
def test_a_chosen_exit_code_is_an_exit_code_and_nothing_more(session: Session, code: int) -> None:
    ran = run(session, f"import os; os._exit({code})")
    ran.assert_exited(code, completed=False)
    assert ran.meters.oom_kills == 0
    assert ran.receipt.problem is None


def test_leaving_with_zero_before_the_last_line_is_no_success(session: Session) -> None:
    run(session, "import os; os._exit(0)").assert_exited(0, completed=False)
    run(session, "import os; os.execv('/bin/true', ['true'])").assert_exited(0, completed=False)
    run(session, "import sys\ndef leave(): sys.exit(0)\nleave()\n").assert_exited(0, completed=False)
    run(session, "import sys\nsys.exit(0)\nprint('the rest')").assert_exited(0, completed=False)


def test_ending_with_sys_exit_as_the_last_statement_is_reaching_it(session: Session) -> None:
    run(session, "import sys\nif __name__ == '__main__':\n    sys.exit(0)").assert_exited(0, completed=True)


@case("proc-exit-text")
def test_exit_with_a_text_says_it_and_is_code_1(session: Session) -> None:
    ran = run(session, snippet("proc-exit-text"))
    assert ran.result.stderr == "bad input\n"
    ran.assert_exited(1, completed=True)


@case("proc-exit-builtin")
def test_the_exit_builtin_ends_the_box_only(session: Session) -> None:
    ran = run(session, snippet("proc-exit-builtin"))
    assert ran.printed == "bye\n"
    ran.assert_exited(3, completed=True)


@case("proc-userns")
def test_no_new_namespace_of_any_kind(session: Session) -> None:
    kinds = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000, "cgroup": 0x02000000}
    source = f"import json\nprint(json.dumps({{k: errno_of('unshare', v) for k, v in {kinds}.items()}}))"
    assert set(run(session, with_calls(source.replace("'unshare'", '"unshare"'))).answer.values()) == {1}


@case("proc-io-uring")
def test_io_uring_is_refused(session: Session) -> None:
    assert run(session, snippet("proc-io-uring")).printed == "-1 1\n"


def test_threads_meet_the_task_limit_as_an_error_and_not_as_a_crash(session: Session) -> None:
    source = (
        "import threading, time\nmade = 0\ntry:\n  while True:\n"
        "    threading.Thread(target=time.sleep, args=(0.3,), daemon=True).start(); made += 1\n"
        "except RuntimeError as error: print(made)"
    )
    ran = run(session, source)
    assert 20 <= int(ran.printed) < STDLIB.tasks
    assert (ran.meters.task_limit_hits or 0) > 0


def test_a_box_sees_no_process_but_its_own(session: Session) -> None:
    ran = run(session, "import os, json; print(json.dumps([n for n in os.listdir('/proc') if n.isdigit()]))")
    assert "1" in ran.answer
    assert len(ran.answer) == 2
