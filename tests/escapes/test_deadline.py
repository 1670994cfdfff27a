"""No program outlives its deadline, whatever it does to its timer. ``test_no_supervisor.py`` goes on from here."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pybox_kernel.boxes.box import EXPIRY_MARGIN_SECONDS
from pybox_kernel.boxes.journal import installation_id
from pybox_kernel.policy import STDLIB
from pybox_kernel.sessions.session import Session, Stop
from tests.cases import case, snippet
from tests.conftest import Outside
from tests.escapes.floods import EVERYTHING_AT_ONCE, IN_VAIN
from tests.escapes.running import LATE, REMOVAL, Clock, Ran, with_calls

pytestmark = pytest.mark.engine

SHORT = 0.5
EPERM, ENOENT, EACCES, EROFS = 1, 2, 13, 30

# What goes on until it is ended.
FOR_EVER = {
    "sleeps": snippet("time-sleep"),
    "computes": "while True: pass",
    "computes in one call that lets no other thread in": "list(range(10**6)); (7 ** (10 ** 8)) % 11",
    "stops itself": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "waits for a lock that it holds itself": "import threading; a = threading.Lock(); a.acquire(); a.acquire()",
    "ignores every signal": snippet("time-ignore-term"),
    "blocks every signal": "import signal, time\nsignal.pthread_sigmask(0, range(1, 65))\ntime.sleep(60)",
    "becomes another program": "import os; os.execv('/bin/sleep', ['sleep', '60'])",
    "leads a session of its own": "import os, time\nif os.fork() == 0:\n  os.setsid()\n  time.sleep(60)\nos.wait()",
    "waits in an exit function": "import atexit, time; atexit.register(time.sleep, 60)",
    "waits for a thread at its end": "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()",
    "waits for a signal that does not come": "import signal; signal.sigwait([signal.SIGUSR1])",
    "catches its own interrupts": "while True:\n  try: input()\n  except BaseException: pass",
    "opens a pipe that no one writes to": "import os; os.mkfifo('/tmp/f'); open('/tmp/f').read()",
    "closes all that is open": "import os\nos.closerange(0, 128)\nwhile True: pass",
    "SIGALRM to the timer": snippet("time-alarm-pid1"),
    "attaches to the timer": snippet("time-ptrace-timer"),
}

# Many tasks at once, and floods of all that the timer reads.
FLOODS = {
    "forks without end": "while True: in_vain(os.fork)",
    "forks to the limit, each computing": "for _ in range(5): in_vain(os.fork)\nwhile True: pass",
    "forks and lets go, without end": """
in_children(2, lambda: os.fork() or os.fork() or os._exit(0))
while True:
    if in_vain(os.fork) == 0: os._exit(0)
""",
    "threads without end": """
import threading
def compute():
    while True: pass
while True:
    try: threading.Thread(target=compute).start()
    except RuntimeError: pass
""",
    "SIGCHLD to the timer from every task": "in_children(30, lambda: os.kill(1, signal.SIGCHLD))\ntime.sleep(60)",
    "every signal to the timer from every task": """
in_children(30, lambda: [in_vain(os.kill, 1, number) for number in range(1, 65)])
time.sleep(60)
""",
    "fills the timer's queue of signals": """
import ctypes
libc = ctypes.CDLL(None)
while True:
    for number in range(34, 65):
        libc.sigqueue(1, number, ctypes.c_void_p(7))
""",
    "signals to the timer by its handle": """
handle = os.pidfd_open(1)
in_children(8, lambda: [in_vain(signal.pidfd_send_signal, handle, number) for number in range(1, 65)])
time.sleep(60)
""",
    "prints without a newline": "while True: os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)",
    "prints byte by byte, each in a packet of its own": """
import fcntl
fcntl.fcntl(1, fcntl.F_SETFL, os.O_DIRECT | os.O_WRONLY)
while True: os.write(1, b'x')
""",
    "prints through the largest pipes it can get": """
import fcntl
for descriptor in (1, 2, 3): in_vain(fcntl.fcntl, descriptor, 1031, 1 << 20)  # F_SETPIPE_SZ
while True: os.write(1, b'x' * (1 << 20)); os.write(2, b'y' * (1 << 20))
""",
    "reads its own output back": """
mine = os.open('/proc/self/fd/1', os.O_RDONLY)
in_children(4, lambda: os.read(mine, 65536))
while True: os.write(1, b'x' * 65536)
""",
    "displays without end": "while True: display('x' * 20000)",
    "displays nothing, without end": "while True: os.write(3, b'd\\0\\0\\0\\0' * 3000)",
    "raises without end": "while True: os.write(3, b'x\\0\\0\\0\\0' * 3000)",
    "says it is ready and done without end": "while True: os.write(3, b'r\\0\\0\\0\\0c\\0\\0\\0\\0' * 3000)",
    "writes garbage to its events": "while True: os.write(3, b'\\xff' * 65536)",
    "announces an event of 4 GiB": "os.write(3, b'd\\xff\\xff\\xff\\xff')\nwhile True: os.write(3, b'{' * 65536)",
    "begins an event and never ends it": "os.write(3, b'd\\0\\0\\xea\\x00{')\ntime.sleep(60)",
}


@case("time-sleep", "time-ignore-term", "time-alarm-pid1", "time-ptrace-timer")
@pytest.mark.parametrize("name", FOR_EVER)
def test_what_would_go_on_for_ever_ends_at_the_deadline(name: str, attack: Callable[..., Ran]) -> None:
    attack(FOR_EVER[name], SHORT).assert_deadline()


@case("proc-fork-bomb")
@pytest.mark.parametrize("name", FLOODS)
def test_no_flood_puts_the_deadline_off(name: str, attack: Callable[..., Ran]) -> None:
    ran = attack(IN_VAIN + FLOODS[name], SHORT)
    ran.assert_deadline()
    said = ran.receipt.said
    assert said.stdout.kept <= STDLIB.kept_bytes
    assert said.stderr.kept <= STDLIB.kept_bytes


def test_all_attacks_at_once_do_not_put_the_deadline_off(attack: Callable[..., Ran]) -> None:
    ran = attack(EVERYTHING_AT_ONCE, SHORT)
    ran.assert_deadline()
    assert ran.printed.startswith("up\n")


def test_a_stop_is_obeyed_under_all_attacks_at_once(session: Session) -> None:
    stop = Stop()
    asked: list[float] = []

    class StopAtOnce(Clock):
        def output(self, stream: str, text: str) -> None:
            if not stop.is_set():
                asked.append(time.monotonic())
                stop.set()

    receipt = session.run(EVERYTHING_AT_ONCE, deadline_seconds=20, watcher=StopAtOnce(), stop=stop).receipt
    assert receipt.observed.end.how == "stopped"
    assert receipt.observed.box.removed is True
    assert time.monotonic() - asked[0] < STDLIB.stop_seconds + LATE + REMOVAL


@pytest.mark.parametrize("kind", ["d", "x"])
def test_events_of_no_length_are_bounded_like_any_other(kind: str, attack: Callable[..., Ran]) -> None:
    ran = attack(f"import os\nwhile True: os.write(3, b'{kind}\\0\\0\\0\\0' * 3000)", SHORT)
    ran.assert_deadline()
    assert "more than a cell may display" in {held.what for held in ran.receipt.said.withheld}


@pytest.mark.parametrize("seconds", [0.05, 1.0])
def test_the_deadline_is_the_one_that_was_asked_for(seconds: float, attack: Callable[..., Ran]) -> None:
    ran = attack("while True: pass", seconds)
    ran.assert_deadline()


def test_displays_without_end_are_bounded_and_what_was_dropped_is_said(attack: Callable[..., Ran]) -> None:
    ran = attack("while True: display('x' * 20000)", SHORT)
    ran.assert_deadline()
    assert 0 < ran.receipt.said.displays <= 100
    assert any(held.what == "more than a cell may display" and held.bytes > 0 for held in ran.receipt.said.withheld)


def test_a_flood_of_one_kind_hides_no_other(attack: Callable[..., Ran]) -> None:
    source = """
class Drawn:
    def __init__(self, number): self._repr_svg_ = lambda: "x" * number
for number in range(20): display(Drawn(1))
os = __import__("os")
_ = os.write(3, b"d\\0\\0\\0\\5{{{{{")
"""
    ran = attack(source)
    found = [(held.what, held.bytes) for held in ran.receipt.said.withheld]
    assert found == [("image/svg+xml", 20), ("displays that could not be read", 5)]
    assert ran.receipt.said.displays == 20


@pytest.mark.parametrize(
    ("written", "withheld"),
    [
        (b"\xff" * 100, [("displays that could not be read", 0)]),
        (b"d\0\0\xea\0{", [("displays that could not be read", 0)]),
        (b"d\0\0\0\5{{{{{", [("displays that could not be read", 5)]),
        (b"x\0\0\0\2[]", [("displays that could not be read", 2)]),
        (b"d\xff\xff\xff\xff" + b"{" * 995, [("more than a cell may display", 995)]),
    ],
)
def test_what_is_no_event_is_counted_as_it_came_and_never_believed(
    written: bytes, withheld: list[tuple[str, int]], attack: Callable[..., Ran]
) -> None:
    ran = attack(f"import os\nos.write(3, {written!r})\nos._exit(0)")
    ran.assert_exited(0, completed=False)
    found = [(item.what, item.bytes) for item in ran.receipt.said.withheld]
    assert found[:1] == withheld
    assert ran.receipt.said.displays == 0
    assert ran.receipt.said.error is None


# What can be tried on the timer, and what it gets

TRIED = """
import json
def opened(path, flags):
    os.close(os.open(path, flags))
def written(path, data=b"1"):
    handle = os.open(path, os.O_WRONLY)
    try: os.write(handle, data)
    finally: os.close(handle)
W, R = os.O_WRONLY, os.O_RDONLY
handle = os.pidfd_open(1)
print(json.dumps({
    "attach": errno_of("ptrace", 16, 1, 0, 0),
    "seize": errno_of("ptrace", 0x4206, 1, 0, 0),
    "read its memory": errno_of("process_vm_readv", 1, bytes(16), 1, bytes(16), 1, 0),
    "write its memory": errno_of("process_vm_writev", 1, bytes(16), 1, bytes(16), 1, 0),
    "take its descriptors": errno_of("pidfd_getfd", handle, 0, 0),
    "take its memory away": errno_of("process_madvise", handle, bytes(16), 1, 21, 0),
    "compare with it": errno_of("kcmp", 1, os.getpid(), 0, 0, 0),
    "move its memory": errno_of("migrate_pages", 1, 8, bytes(8), bytes(8)),
    "run it when idle only": errno_of("sched_setscheduler", 1, 5, bytes(4)),
    "its scheduling": errno_of("sched_setparam", 1, bytes(4)),
    "its attributes": errno_of("sched_setattr", 1, bytes([48]) + bytes(47), 0),
    "its processors": errno_of("sched_setaffinity", 1, 8, bytes([1]) + bytes(7)),
    "its priority": errno_of("setpriority", 0, 1, 19),
    "its group's priority": errno_of("setpriority", 1, 1, 19),
    "its user's priority": errno_of("setpriority", 2, os.getuid(), 19),
    "its open files": errno_of("prlimit64", 1, 7, bytes(16), 0),
    "its input and output": errno_of("ioprio_set", 1, 1, 0x6007),
    "watch it": errno_of("perf_event_open", bytes(128), 1, -1, -1, 0),
    "set the clock": tried(__import__("time").clock_settime, 0, 1.0),
    "slow the clock": errno_of("adjtimex", bytes(208)),
    "its memory, as a file": tried(opened, "/proc/1/mem", os.O_RDWR),
    "its memory, read": tried(opened, "/proc/1/mem", R),
    "its descriptors": tried(os.listdir, "/proc/1/fd"),
    "its environment": tried(opened, "/proc/1/environ", R),
    "its program": tried(os.readlink, "/proc/1/exe"),
    "its folder": tried(os.listdir, "/proc/1/cwd/"),
    "its root": tried(os.listdir, "/proc/1/root/"),
    "its namespaces": tried(os.readlink, "/proc/1/ns/pid"),
    "its stack": tried(opened, "/proc/1/stack", R),
    "its system call": tried(lambda: open("/proc/1/syscall").read()),
    "its timers": tried(opened, "/proc/1/timers", R),
    "its timers' slack": tried(written, "/proc/1/timerslack_ns", b"1000000000000"),
    "its worth when memory is short": tried(written, "/proc/1/oom_score_adj", b"1000"),
    "its share of the processor": tried(written, "/proc/1/autogroup", b"19"),
    "its core dump": tried(written, "/proc/1/coredump_filter"),
    "its name": tried(written, "/proc/1/comm"),
    "core dumps": tried(written, "/proc/sys/kernel/core_pattern", b"|/box/x"),
    "the largest pid": tried(written, "/proc/sys/kernel/ns_last_pid"),
    "the keyboard": tried(written, "/proc/sysrq-trigger", b"c"),
}))
__import__("time").sleep(60)
"""

BY_PROFILE = """
attach; seize; read its memory; write its memory; take its descriptors; take its memory away; compare with it;
move its memory; run it when idle only; its scheduling; its attributes; its processors; its priority;
its group's priority; its user's priority; its open files; its input and output; watch it; set the clock; slow the clock
"""
NOT_DUMPABLE = """
its memory, as a file; its memory, read; its descriptors; its environment; its program; its folder; its root;
its namespaces; its worth when memory is short; its core dump; its name
"""
NOT_DUMPABLE_IF_THERE = "its stack; its system call; its timers; its share of the processor"


def named(text: str, *errnos: int) -> dict[str, set[int]]:
    return {" ".join(name.split()): set(errnos) for name in text.split(";")}


REFUSED = {
    **named(BY_PROFILE, EPERM),
    **named(NOT_DUMPABLE, EACCES),
    **named(NOT_DUMPABLE_IF_THERE, EACCES, ENOENT),
    **named("its timers' slack", EPERM),
    **named("core dumps; the largest pid; the keyboard", EROFS, EACCES, ENOENT),
}


@pytest.fixture(scope="module")
def tried(attack: Callable[..., Ran]) -> dict[str, int]:
    ran = attack(with_calls(TRIED), SHORT)
    ran.assert_deadline()
    return dict(ran.answer)


@case("time-ptrace-timer", "time-proc1-mem", "time-set-clock")
@pytest.mark.parametrize("what", REFUSED)
def test_the_timer_is_out_of_reach(what: str, tried: dict[str, int]) -> None:
    assert tried[what] in REFUSED[what]


def test_all_that_is_tried_is_looked_at(tried: dict[str, int]) -> None:
    assert tried.keys() == REFUSED.keys()


WRITE_EVERYWHERE = """
import json, os
taken, tried = [], 0
for top in ("/proc/1", "/proc/sys", "/proc/fs", "/proc/irq", "/proc/bus", "/proc/acpi", "/sys"):
    for folder, _, names in os.walk(top):
        for name in names:
            path = folder + "/" + name
            tried += 1
            try:
                handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                os.write(handle, b"0")
                taken.append(path)
            except OSError:
                pass
null = os.stat("/dev/null")
for name in os.listdir("/proc"):
    try:
        handle = os.open("/proc/" + name, os.O_WRONLY | os.O_NONBLOCK)
        os.write(handle, b"0")
        if not os.path.samestat(os.fstat(handle), null):  # what engines hide a file behind
            taken.append(name)
    except OSError:
        pass
print(json.dumps([tried, taken]))
"""


def test_no_file_of_the_timers_or_the_kernels_takes_a_write(attack: Callable[..., Ran]) -> None:
    ran = attack(WRITE_EVERYWHERE, 10)
    tried, taken = ran.answer
    assert tried > 1000
    assert taken == []


def test_only_signals_reach_the_timer_and_none_of_them_does_anything(attack: Callable[..., Ran]) -> None:
    ran = attack("import os\nfor n in range(1, 65):\n  if n not in (32, 33): os.kill(1, n)\nprint('sent', flush=True)")
    ran.assert_exited(0, completed=True)
    assert ran.printed == "sent\n"


# Clocks


@case("time-set-clock", "time-vm-clock-drift")
def test_a_jump_of_the_wall_clock_changes_no_duration(
    session: Session, home: Path, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Jump(Clock):
        def started(self, deadline_seconds: float) -> None:
            super().started(deadline_seconds)
            real = time.time
            monkeypatch.setattr(time, "time", lambda: real() - 7200)

    receipt = session.run("import time; time.sleep(60)", deadline_seconds=SHORT, watcher=Jump()).receipt
    monkeypatch.undo()
    assert receipt.observed.end.how == "deadline"
    assert receipt.observed.box.removed is True
    steps = receipt.observed.steps
    assert [step.offset_ms for step in steps] == sorted(step.offset_ms for step in steps)
    assert all(0 <= step.duration_ms < 30_000 for step in steps)


@case("time-vm-clock-drift")
def test_a_boxs_expiry_is_by_this_computers_clock_with_a_margin(session: Session, home: Path, outside: Outside) -> None:
    found: list[float] = []

    class Look(Clock):
        def started(self, deadline_seconds: float) -> None:
            (box,) = outside.boxes(installation=installation_id(home))
            labels = outside.api.inspect_container(box)["Config"]["Labels"]
            found.append(float(labels["org.pybox.expires"]) - time.time())

    session.run("pass", deadline_seconds=SHORT, watcher=Look())
    assert SHORT + EXPIRY_MARGIN_SECONDS - 10 <= found[0] <= SHORT + EXPIRY_MARGIN_SECONDS
