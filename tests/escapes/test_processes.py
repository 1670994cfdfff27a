"""Processes are bounded, reaped, without a way to more rights, and apart from those of other boxes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.policy import STDLIB, UID_FIRST, UID_LAST
from pybox_kernel.render.text import render_short
from pybox_kernel.sessions.session import RunResult, Session, Stop
from tests.cases import case, snippet
from tests.escapes.floods import IN_VAIN
from tests.escapes.running import CALLS, FILES, Clock, Ran, with_calls

pytestmark = pytest.mark.engine

EPERM, EMFILE = 1, 24


# Many


@case("proc-fork-bomb")
def test_a_fork_bomb_meets_the_task_limit_and_ends_at_the_deadline(attack: Callable[..., Ran]) -> None:
    ran = attack(snippet("proc-fork-bomb"), 0.5)
    ran.assert_deadline()
    assert ran.meters.tasks_peak == STDLIB.tasks
    assert (ran.meters.task_limit_hits or 0) > 0
    assert f"{STDLIB.tasks}" in render_short(ran.receipt)


@case("proc-fork-bomb")
def test_the_engine_answers_at_once_while_a_fork_bomb_is_on(session: Session, engine: DockerEngine) -> None:
    bombing, over = threading.Event(), threading.Event()
    answered: list[float] = []

    class Bombing(Clock):
        def output(self, stream: str, text: str) -> None:
            bombing.set()

    def ask() -> None:
        assert bombing.wait(20)
        while not over.is_set():
            asked = time.monotonic()
            engine.facts()
            answered.append(time.monotonic() - asked)

    asker = threading.Thread(target=ask)
    asker.start()
    result = session.run("print('up', flush=True)\n" + snippet("proc-fork-bomb"), deadline_seconds=1, watcher=Bombing())
    over.set()
    asker.join(20)
    assert result.receipt.observed.end.how == "deadline"
    assert len(answered) > 3
    assert max(answered) < 1


def test_threads_meet_the_task_limit_as_an_error_and_not_as_a_crash(attack: Callable[..., Ran]) -> None:
    source = """
import threading
end = threading.Event()
made = 0
try:
    while True:
        threading.Thread(target=end.wait).start()
        made += 1
except RuntimeError:
    end.set()
print(made)
"""
    ran = attack(source)
    ran.assert_exited(0, completed=True)
    assert int(ran.printed) == STDLIB.tasks - 2  # but the warden's, and the program's first
    assert ran.meters.tasks_peak == STDLIB.tasks
    assert (ran.meters.task_limit_hits or 0) > 0


@case("proc-zombies")
def test_orphans_are_reaped_and_use_up_nothing(attack: Callable[..., Ran]) -> None:
    ran = attack(snippet("proc-zombies"))
    ran.assert_exited(0, completed=True)
    assert ran.printed == "all 60 went through\n"


@case("proc-zombies")
@pytest.mark.parametrize(
    "leave",
    ["os.setsid()", "os.setpgid(0, 0)", "signal.pthread_sigmask(0, range(1, 65))", "os.kill(os.getpid(), 9)"],
)
def test_orphans_of_every_kind_are_reaped(leave: str, attack: Callable[..., Ran]) -> None:
    source = f"""
made = 0
while made < 100:
    child = in_vain(os.fork)
    if child == 0:
        if in_vain(os.fork) == 0:
            {leave}
        os._exit(0)
    if child is not None:  # else the last ones are still being reaped
        os.waitpid(child, 0)
        made += 1
print(made)
"""
    ran = attack(IN_VAIN + source, 10)
    ran.assert_exited(0, completed=True)
    assert ran.printed == "100\n"


@case("proc-zombies")
def test_children_that_the_program_itself_does_not_reap_meet_the_limit_and_the_receipt_shows_it(
    attack: Callable[..., Ran],
) -> None:
    source = """
import os
made = 0
try:
    while True:
        if os.fork() == 0: os._exit(0)
        made += 1
except BlockingIOError: print(made)
"""
    ran = attack(source)
    ran.assert_exited(0, completed=True)
    assert int(ran.printed) == STDLIB.tasks - 2
    assert ran.meters.tasks_peak == STDLIB.tasks
    assert ran.meters.task_limit_hits == 1


DAEMON = (
    IN_VAIN
    + """
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(1, 65): in_vain(signal.signal, number, signal.SIG_IGN)
        os.write(1, b"daemon\\n")
        os.write(writer, b"!")
        while True: os.write(1, b"x" * 4096)
    os._exit(0)
os.wait()
os.read(reader, 1)
"""
)


def test_a_daemon_that_holds_the_output_open_ends_with_the_program(attack: Callable[..., Ran]) -> None:
    ran = attack(DAEMON, 20)
    ran.assert_exited(0, completed=True)
    assert ran.printed.startswith("daemon\n")
    assert ran.seconds < 5
    assert ran.meters.final


@pytest.mark.parametrize(
    "thread", ["daemon=True, target=while_true", "daemon=True, target=time.sleep, args=(60,)"], ids=["busy", "asleep"]
)
def test_a_daemon_thread_keeps_nothing_alive(thread: str, attack: Callable[..., Ran]) -> None:
    source = f"""
import threading, time
def while_true():
    while True: pass
threading.Thread({thread}).start()
print("end")
"""
    ran = attack(source, 20)
    ran.assert_exited(0, completed=True)
    assert ran.seconds < 5


def test_open_files_meet_the_limit_as_an_error(attack: Callable[..., Ran]) -> None:
    source = """
import json, os, resource
made = 0
try:
    while True: os.dup(0); made += 1
except OSError as error: code = error.errno
os.closerange(4, 200)
try: resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)); raised = True
except (OSError, ValueError): raised = False
print(json.dumps([code, made, raised]))
"""
    ran = attack(source)
    assert ran.answer == [EMFILE, STDLIB.open_files - 4, False]


# Ways to more

WAYS = """
import json
ways = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000, "cgroup": 0x02000000,
        "ipc": 0x08000000, "uts": 0x04000000, "time": 0x80}
found = {"unshare " + name: errno_of("unshare", flag) for name, flag in ways.items()}
found |= {"clone " + name: errno_of("clone", flag | 17, 0, 0, 0, 0) for name, flag in ways.items() if name != "time"}
found |= {
    "setns": errno_of("setns", 0, 0),
    "mount": errno_of("mount", b"none\\0", b"/tmp\\0", b"tmpfs\\0", 0, 0),
    "umount": errno_of("umount2", b"/tmp\\0", 0),
    "fsopen": errno_of("fsopen", b"tmpfs\\0", 0),
    "open_tree": errno_of("open_tree", -100, b"/\\0", 1),
    "move_mount": errno_of("move_mount", -1, b"\\0", -100, b"/tmp\\0", 4),
    "pivot_root": errno_of("pivot_root", b"/tmp\\0", b"/tmp\\0"),
    "chroot": errno_of("chroot", b"/tmp\\0"),
    "open by handle": errno_of("open_by_handle_at", -100, bytes(64), 0),
    "block device": tried(os.mknod, "/tmp/block", 0o60600, os.makedev(254, 0)),
    "memory device": tried(os.mknod, "/tmp/memory", 0o20600, os.makedev(1, 1)),
    "owner": tried(os.chown, "/tmp", 0, 0),
    "setuid": errno_of("setuid", 0),
    "setgroups": errno_of("setgroups", 0, 0),
    "capabilities": errno_of("capset", bytes(8), bytes(24)),
    "keyring": errno_of("keyctl", 0, -3, 1),
    "add_key": errno_of("add_key", b"user\\0", b"a\\0", b"b\\0", 1, -3),
    "request_key": errno_of("request_key", b"user\\0", b"a\\0", 0, 0),
    "bpf": errno_of("bpf", 0, bytes(64), 64),
    "userfaultfd": errno_of("userfaultfd", 1),
    "io_uring": errno_of("io_uring_setup", 4, bytes(256)),
    "io_uring_enter": errno_of("io_uring_enter", 0, 1, 0, 0, 0, 0),
    "io_uring_register": errno_of("io_uring_register", -1, 0, 0, 0),
    "modules": errno_of("finit_module", 0, b"\\0", 0),
    "kexec": errno_of("kexec_load", 0, 0, 0, 0),
    "reboot": errno_of("reboot", 0xfee1dead, 672274793, 0, 0),
    "swap": errno_of("swapoff", b"/tmp\\0"),
    "kernel log": errno_of("syslog", 3, bytes(8), 8),
    "accounting": errno_of("acct", 0),
    "host name": errno_of("sethostname", b"x", 1),
    "personality": errno_of("personality", 0x0040000),
    "another filter": errno_of("seccomp", 0, 0, 0),
    "shared memory": errno_of("shmget", 0, 4096, 0o1600),
    "message queue": errno_of("msgget", 0, 0o1600),
    "semaphores": errno_of("semget", 0, 1, 0o1600),
    "POSIX queue": errno_of("mq_open", b"x\\0", 0o102, 0o600, 0),
    "queue file": tried(lambda: os.close(os.open("/dev/mqueue/x", 0o102))),
    "subreaper": errno_of("prctl", 36, 1, 0, 0, 0),
    "huge splice": errno_of("vmsplice", 1, bytes(16), 1, 0),
}
if os.getpid() != before: os._exit(0)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def ways(attack: Callable[..., Ran]) -> dict[str, int]:
    return dict(attack(with_calls("import os; before = os.getpid()\n" + WAYS)).answer)


@case("proc-userns", "proc-io-uring")
def test_every_way_to_more_is_refused(ways: dict[str, int]) -> None:
    assert len(ways) > 50
    assert ways.pop("queue file") == EMFILE  # RLIMIT_MSGQUEUE is 0
    assert {name: errno for name, errno in ways.items() if errno != EPERM} == {}


@case("proc-userns", "proc-io-uring")
def test_the_cases_own_programs_are_refused(attack: Callable[..., Ran]) -> None:
    assert attack(snippet("proc-userns")).printed.startswith("refused ")
    assert attack(snippet("proc-io-uring")).printed == f"-1 {EPERM}\n"


def test_no_program_in_a_box_gives_another_users_rights(attack: Callable[..., Ran]) -> None:
    source = """
import json
found = [path for path, mode in files() if mode & 0o6000]
print(json.dumps([found, open("/proc/self/status").read()]))
"""
    found, status = attack(FILES + source, 10).answer
    fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert found == []
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == "2"
    assert {fields[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}


# Two boxes at once

BUSY = """
import fcntl, os, time
def pipe_of_a_megabyte():
    ends = os.pipe()
    try: return fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, 1 << 20)
    except PermissionError: return 0
done, say = os.pipe()
if os.fork() == 0:
    for _ in range(40): pipe_of_a_megabyte()
    os.write(say, b"!")
    time.sleep(60)
os.read(done, 1)
while pipe_of_a_megabyte(): pass
print("used up", sorted(int(name) for name in os.listdir("/proc") if name.isdigit()), flush=True)
time.sleep(60)
"""

NEIGHBOUR = (
    CALLS
    + """
import fcntl, json
reader, writer = os.pipe()
room = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 1 << 20)
others = [name for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]
everyone = tried(os.kill, -1, 9)
for number in range(2, 5000):
    if number != os.getpid(): tried(os.kill, number, 9)
print(json.dumps([room, others, everyone, os.getuid()]))
"""
)


@pytest.fixture(scope="module")
def neighbours(session: Session) -> tuple[RunResult, Ran]:
    ready, stop = threading.Event(), Stop()
    beside: list[Ran] = []

    class Ready(Clock):
        def output(self, stream: str, text: str) -> None:
            ready.set()

    def attack_from_beside() -> None:
        assert ready.wait(20)
        began = time.monotonic()
        beside.append(Ran(session.run(NEIGHBOUR), STDLIB.deadline_seconds, time.monotonic() - began))
        stop.set()

    other = threading.Thread(target=attack_from_beside)
    other.start()
    result = session.run(BUSY, deadline_seconds=20, watcher=Ready(), stop=stop)
    other.join(20)
    return result, beside[0]


def test_boxes_see_none_of_one_anothers_processes(neighbours: tuple[RunResult, Ran]) -> None:
    one, beside = neighbours
    assert one.stdout.startswith("used up [1, ")
    assert beside.answer[1] == []


def test_boxes_do_not_reach_one_another_with_signals(neighbours: tuple[RunResult, Ran]) -> None:
    one, beside = neighbours
    assert beside.answer[2] == 3  # ESRCH: there was no one
    assert one.receipt.observed.end.how == "stopped"
    assert one.receipt.observed.box.removed is True


def test_boxes_have_a_user_each_so_that_one_cannot_use_up_anothers_share(neighbours: tuple[RunResult, Ran]) -> None:
    one, beside = neighbours
    uids = [one.receipt.asked.uid, beside.receipt.asked.uid]
    assert uids[0] != uids[1]
    assert all(UID_FIRST <= (uid or 0) <= UID_LAST for uid in uids)
    assert beside.answer[3] == uids[1]
    assert beside.answer[0] == 1 << 20  # the kernel's pages for pipes are counted by user


def test_boxes_one_after_another_have_users_of_their_own(attack: Callable[..., Ran]) -> None:
    users = [attack("pass").receipt.asked.uid for _ in range(3)]
    assert all(one != other for one, other in pairwise(users))
