"""Memory is bounded wherever it may be taken, and a kill for memory is said only where the kernel counted one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

import pytest

from pybox_kernel.images.store import RecordedImage
from pybox_kernel.policy import MIB, STDLIB
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.text import render_short
from pybox_kernel.seal.by_kernel import kernel_look
from pybox_kernel.seal.spec import Identity, container_config
from pybox_kernel.seal.witness import DirectWitness
from tests.cases import case, snippet
from tests.conftest import Outside
from tests.escapes.running import CALLS, Ran

pytestmark = pytest.mark.engine

ENOSPC = 28
FOLDERS = {
    "/box": STDLIB.work_bytes,
    "/tmp": STDLIB.temporary_bytes,
    "/dev/shm": STDLIB.shared_memory_bytes,
}


def assert_said(receipt: Receipt) -> None:
    """The receipt shows a kill for memory, or says that it is not known whether there was one."""
    kills = receipt.observed.meters.oom_kills
    if kills is None:
        assert "oom_kills" in {item.what for item in receipt.unknown}
    else:
        assert kills > 0
        assert any("killed for memory" in line for line in receipt.observed.end.evidence)
        assert "for memory" in render_short(receipt)


# All that a program has in hand


@case("mem-bomb")
def test_a_memory_bomb_is_killed_and_the_cause_is_the_kernels_count(attack: Callable[..., Ran]) -> None:
    ran = attack(snippet("mem-bomb"), 10)
    ran.assert_signal("SIGKILL", 137)
    assert ran.meters.oom_kills == 1
    assert ran.meters.memory_peak_bytes == STDLIB.memory_bytes
    assert_said(ran.receipt)


@case("mem-child-oom-exit0")
def test_exit_0_after_a_kill_for_memory_shows_both(attack: Callable[..., Ran]) -> None:
    ran = attack(snippet("mem-child-oom-exit0"), 10)
    ran.assert_exited(0, completed=True)
    assert ran.printed == "child status 9\nfine\n"
    assert_said(ran.receipt)


@case("mem-child-oom-exit0")
@pytest.mark.parametrize(
    "start",
    [
        "if os.fork() == 0: eat()\nos.wait()",
        "if os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: eat()\n  os._exit(0)",
    ],
    ids=["a child", "a process that no one waits for"],
)
def test_whichever_process_was_killed_the_receipt_of_a_clean_exit_says_so(
    start: str, attack: Callable[..., Ran]
) -> None:
    source = f"""
import os, time
reader, writer = os.pipe()
def eat():
    kept = []
    while True: kept.append(bytearray(1 << 20))
{start}
os.close(writer)
os.read(reader, 1)  # until all of them are dead
"""
    ran = attack(source, 10)
    ran.assert_exited(0, completed=True)
    assert_said(ran.receipt)


# Ways of taking memory that no process's own size shows. What the kernel picks then is not ours to say: the program,
# another of its processes, or the warden. All that is wanted is that the bound holds and the receipt is honest.
KEPT_ELSEWHERE = {
    "memory files": "f = os.memfd_create('a')\nwhile True: os.write(f, MEGABYTE)",
    "memory files, worth as much as any other": """
open('/proc/self/oom_score_adj', 'w').write('0')
f = os.memfd_create('a')
while True: os.write(f, MEGABYTE)
""",
    "memory shared and mapped": """
import mmap
kept = []
while True:
    kept.append(mmap.mmap(-1, 1 << 20))
    kept[-1].write(MEGABYTE)
""",
    "buffers of sockets": """
import socket
kept = []
while True:
    os.fork()
    for _ in range(50):
        pair = socket.socketpair()
        kept.append(pair)
        for end in pair:
            end.setblocking(False)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            try:
                while True: end.send(bytes(4096))
            except BlockingIOError: pass
""",
    "tables of pages": """
import mmap
area = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE
for place in range(0, 1 << 40, 1 << 21): area[place]
""",
    "many processes, a little each": """
import time
open('/proc/self/oom_score_adj', 'w').write('0')
while True:
    if os.fork() == 0:
        kept = bytearray(b'x') * (8 << 20)
        time.sleep(60)
""",
}


PIPES = """
import fcntl
while True:
    os.fork()
    for _ in range(20):
        _, end = os.pipe()
        os.set_blocking(end, False)
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 1 << 18)
        try:
            while True: os.write(end, bytes(4096))
        except BlockingIOError: pass
"""


def again_and_again(source: str) -> str:
    """The program, begun anew whenever the system refuses it something."""
    indented = "".join(f"        {line}\n" for line in source.splitlines())
    return f"import os\nMEGABYTE = bytes(1 << 20)\nwhile True:\n    try:\n{indented}    except OSError: pass\n"


@case("mem-bomb")
@pytest.mark.parametrize("name", KEPT_ELSEWHERE)
def test_memory_kept_where_no_process_shows_it_is_bounded_too(name: str, attack: Callable[..., Ran]) -> None:
    ran = attack(again_and_again(KEPT_ELSEWHERE[name]), 1.5)
    assert ran.end.how in ("signal", "deadline", "box_lost")
    assert not ran.receipt.ok
    assert_said(ran.receipt)
    assert ran.meters.memory_peak_bytes in (STDLIB.memory_bytes, None)


def test_buffers_of_pipes_meet_the_kernels_own_bound_for_a_user(attack: Callable[..., Ran]) -> None:
    attack(again_and_again(PIPES), 1.0).assert_deadline()


def test_memory_that_is_not_counted_cannot_be_had(attack: Callable[..., Ran]) -> None:
    source = """
import json, mmap
def mapped(size, flag):
    return tried(lambda: mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | flag))
locked, huge = 0x2000, 0x40000
fits, over = mapped(4096, locked), mapped(1 << 20, locked)
print(json.dumps([fits, over, mapped(2 << 20, huge), tried(os.memfd_create, "h", 4)]))
"""
    # More than the limit of locked memory: EAGAIN (mmap(2)). Huge pages, of which a computer may hold some in reserve,
    # are in no cgroup's count of memory.
    assert attack(CALLS + source).answer == [0, 11, 1, 1]


def test_a_program_cannot_put_itself_below_the_timer_in_the_kernels_choice(attack: Callable[..., Ran]) -> None:
    source = """
import json, os
handle = os.open('/proc/self/oom_score_adj', os.O_RDWR)
began = os.read(handle, 9).decode()
print(json.dumps([int(began), tried(os.write, handle, b'-1'), tried(os.write, handle, b'-1000')]))
"""
    began, *lower = attack(CALLS + source).answer
    assert began == 1000
    assert lower == [13, 13]


# The folders in memory

FILL = """
import json, os, socket

def count(make):
    made = 0
    try:
        while True:
            make(PLACE + "/%d" % made)
            made += 1
    except OSError as error:
        code = error.errno
    for name in os.listdir(PLACE):
        path = PLACE + "/" + name
        os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    return [code, made]

def empty_file(path): os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
def listener(path):
    with socket.socket(socket.AF_UNIX) as end: end.bind(path)
def bytes_of_a_file():
    handle = os.open(PLACE + "/big", os.O_CREAT | os.O_WRONLY)
    written = 0
    try:
        while True: written += os.write(handle, bytes(4096))
    except OSError as error:
        return [error.errno, written]
    finally:
        os.unlink(PLACE + "/big")
        os.close(handle)
def bytes_beside_a_file():
    empty_file(PLACE + "/noted")
    noted = 0
    try:
        while True:
            os.setxattr(PLACE + "/noted", "user.%d" % noted, bytes(60000))
            noted += 1
    except OSError:
        return noted * 60000
    finally:
        os.unlink(PLACE + "/noted")
if os.path.exists("/tmp/cell.py"): os.unlink("/tmp/cell.py")
print(json.dumps({
    "files": count(empty_file),
    "folders": count(os.mkdir),
    "links": count(lambda path: os.symlink("x" * 4000, path)),
    "pipes": count(os.mkfifo),
    "sockets": count(listener),
    "bytes": bytes_of_a_file(),
    "beside": bytes_beside_a_file(),
}))
"""


@pytest.fixture(scope="module", params=FOLDERS)
def filled(request: pytest.FixtureRequest, attack: Callable[..., Ran]) -> tuple[str, Ran]:
    return request.param, attack(f"PLACE = {request.param!r}\n{FILL}", 10)


@case("mem-inodes")
@pytest.mark.parametrize("kind", ["files", "folders", "links", "pipes", "sockets"])
def test_files_of_any_kind_meet_a_full_folder_and_no_kill(kind: str, filled: tuple[str, Ran]) -> None:
    _, ran = filled
    code, made = ran.answer[kind]
    assert code == ENOSPC
    assert 0 < made < STDLIB.inodes
    assert ran.meters.oom_kills == 0


@case("mem-shm")
def test_each_folder_is_bounded_as_the_policy_says(filled: tuple[str, Ran]) -> None:
    place, ran = filled
    assert ran.answer["bytes"] == [ENOSPC, FOLDERS[place]]
    assert ran.answer["beside"] <= MIB
    assert ran.meters.oom_kills == 0


@case("mem-inodes", "mem-shm")
@pytest.mark.parametrize("name", ["mem-inodes", "mem-shm"])
def test_the_cases_own_programs_end_with_a_full_folder(name: str, attack: Callable[..., Ran]) -> None:
    ran = attack(snippet(name), 10)
    ran.assert_exited(0, completed=True)
    assert "[Errno 28]" in ran.printed


@case("mem-shm")
def test_the_receipt_lists_every_folder_that_can_be_written_to_with_its_size(attack: Callable[..., Ran]) -> None:
    policy = json.loads(attack("pass").receipt.to_json())["asked"]["policy"]
    asked = [policy["work_bytes"], policy["temporary_bytes"], policy["shared_memory_bytes"]]
    assert asked == list(FOLDERS.values())


def test_there_is_no_other_place_to_write_to(attack: Callable[..., Ran]) -> None:
    source = """
import json, os
made = []
for folder, folders, _ in os.walk("/"):
    if folder == "/": folders.remove("proc")
    for make in (os.mkdir, lambda path: os.close(os.open(path, os.O_CREAT | os.O_WRONLY))):
        try: make(folder + "/.made")
        except OSError: continue
        made.append(folder)
        try: os.rmdir(folder + "/.made")
        except OSError: os.unlink(folder + "/.made")
print(json.dumps(sorted(set(made))))
"""
    assert attack(source, 10).answer == sorted(FOLDERS)


def test_a_file_that_is_all_hole_takes_nothing(attack: Callable[..., Ran]) -> None:
    ran = attack(
        "import os\nopen('/tmp/a', 'w').close(); os.truncate('/tmp/a', 1 << 40); print(os.stat('/tmp/a').st_blocks)"
    )
    assert ran.printed == "0\n"
    ran.assert_exited(0, completed=True)


# Swap

Altered = Callable[[Mapping[str, int]], str]


@pytest.fixture
def started(box_image: RecordedImage, outside: Outside) -> Iterator[Altered]:
    """Starts a box's container with other limits of memory; its full id."""
    made: list[str] = []

    def start(limits: Mapping[str, int]) -> str:
        config = container_config(STDLIB, Identity("pybox-test-swap", 23456, box_image.id, {}))
        config["HostConfig"] |= {**limits, "AutoRemove": False}
        made.append(outside.api.create_container_from_config(config, "pybox-test-swap")["Id"])
        outside.api.start(made[-1])
        return made[-1]

    yield start
    for container in made:
        outside.api.remove_container(container, force=True, v=True)


@case("mem-no-swap-limit")
@pytest.mark.parametrize(
    ("swap", "wanted"),
    [(STDLIB.memory_bytes, []), (-1, ["memory with swap"]), (2 * STDLIB.memory_bytes, ["memory with swap"])],
    ids=["swap counted", "no limit", "another limit"],
)
def test_a_swap_limit_that_the_kernel_does_not_hold_is_a_difference(
    swap: int, wanted: list[str], started: Altered, outside: Outside
) -> None:
    container = started({"MemorySwap": swap})
    pid = outside.api.inspect_container(container)["State"]["Pid"]
    sight = DirectWitness().look(pid, container)
    assert sight is not None
    look = kernel_look(STDLIB, Identity("", 23456, "", {}), sight.texts, container)
    assert [difference.setting for difference in look.differences] == wanted


@case("mem-no-swap-limit")
def test_a_kernel_without_a_count_of_swap_is_a_difference() -> None:
    texts = {"cgroup": "4:memory:/docker/x", "cgroup:memory/memory.limit_in_bytes": str(STDLIB.memory_bytes)}
    look = kernel_look(STDLIB, Identity("", 1, "", {}), texts, None)
    settings = {difference.setting for difference in look.differences}
    assert "memory with swap" in settings
    assert "memory" not in settings
