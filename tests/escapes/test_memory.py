"""Memory is bounded wherever it may be taken, and a kill for memory is said only where the kernel counted one."""

from __future__ import annotations

import pytest

from pybox_kernel.policy import KIB, MIB, STDLIB
from pybox_kernel.seal import Identity
from pybox_kernel.seal_kernel import kernel_look
from pybox_kernel.session import Session
from tests.cases import case, snippet
from tests.escapes.running import Ran, run_attack

pytestmark = pytest.mark.engine


def run(session: Session, source: str, seconds: float = 10.0) -> Ran:
    return run_attack(session, source, seconds)


@case("mem-bomb")
def test_a_memory_bomb_is_killed_and_the_kernel_counted_it(session: Session) -> None:
    ran = run(session, snippet("mem-bomb"))
    assert ran.end.how in ("signal", "box_lost")
    if ran.end.how == "signal":
        assert (ran.meters.oom_kills or 0) >= 1
        assert ran.meters.memory_peak_bytes == STDLIB.memory_bytes


@case("mem-child-oom-exit0")
def test_exit_0_after_a_kill_for_memory_shows_both(session: Session) -> None:
    ran = run(session, snippet("mem-child-oom-exit0"))
    assert ran.printed == "child status 9\nfine\n"
    ran.assert_exited(0, completed=True)
    assert (ran.meters.oom_kills or 0) >= 1


FILL = """
made = 0
try:
  while True:
    open('{place}/%d' % made, 'w').close(); made += 1
except OSError as error: print(error.errno)
print(made)
"""


@case("mem-inodes")
@pytest.mark.parametrize("place", ["/tmp", "/box", "/dev/shm"])
def test_empty_files_without_end_meet_a_full_folder_and_no_kill(session: Session, place: str) -> None:
    ran = run(session, FILL.format(place=place))
    code, made = ran.printed.split()
    assert code == "28", "no space left on device"
    assert int(made) < STDLIB.inodes
    assert ran.meters.oom_kills == 0


@case("mem-shm")
@pytest.mark.parametrize(
    ("place", "size"),
    [("/dev/shm", STDLIB.shared_memory_bytes), ("/box", STDLIB.work_bytes), ("/tmp", STDLIB.temporary_bytes)],
)
def test_each_place_to_write_to_is_bounded_as_the_policy_says(session: Session, place: str, size: int) -> None:
    source = f"""
written = 0
try:
  with open('{place}/a', 'wb', buffering=0) as file:
    while True: written += file.write(bytes(4096))
except OSError as error: print(error.errno, written)
"""
    code, written = run(session, source).printed.split()
    assert code == "28"
    assert size - 64 * KIB <= int(written) <= size


def test_there_is_no_other_place_to_write_to(session: Session) -> None:
    source = """
import os, json
found = []
for folder, folders, _ in os.walk('/'):
    if folder == '/': folders.remove('proc')
    if os.access(folder, os.W_OK): found.append(folder)
print(json.dumps(sorted(found)))
"""
    found = run(session, source, 20.0).answer
    assert [place for place in found if place not in ("/box", "/tmp", "/dev/shm", "/dev/mqueue")] == []


def test_message_queues_cannot_be_made(session: Session) -> None:
    source = (
        "try: open('/dev/mqueue/a', 'w')\nexcept OSError as error: print(type(error).__name__)\nelse: print('made')"
    )
    assert run(session, source).printed != "made\n"


@pytest.mark.parametrize(
    "source",
    [
        "import os\nf = os.memfd_create('a')\nwhile True: os.write(f, bytes(1 << 20))",
        "import mmap\nkept = []\nwhile True:\n  m = mmap.mmap(-1, 1 << 20); m.write(bytes(1 << 20)); kept.append(m)",
        "import os\nwhile os.fork(): pass\nkept = [bytearray(1 << 20) for _ in range(10**6)]",
    ],
    ids=["memory files", "mapped memory", "many children"],
)
def test_memory_taken_in_other_ways_counts_too(session: Session, source: str) -> None:
    ran = run(session, source, 3.0)
    assert ran.end.how != "exited" or not ran.receipt.ok
    assert (ran.meters.memory_peak_bytes or STDLIB.memory_bytes) <= STDLIB.memory_bytes


@case("mem-no-swap-limit")
def test_a_kernel_that_does_not_count_swap_is_a_difference() -> None:
    identity = Identity(name="", uid=1, image_id="", labels={})
    texts = {"cgroup": "4:memory:/docker/x", "cgroup:memory/memory.limit_in_bytes": str(STDLIB.memory_bytes)}
    found = [difference.setting for difference in kernel_look(STDLIB, identity, texts, None).differences]
    assert "memory with swap" in found
    assert "memory" not in found


@case("mem-openblas")
def test_a_thread_pool_as_large_as_numerical_libraries_make_fits_the_task_limit(session: Session) -> None:
    source = "from concurrent.futures import ThreadPoolExecutor\nprint(sum(ThreadPoolExecutor(8).map(int, range(99))))"
    run(session, source).assert_exited(0, completed=True)


def test_the_limit_is_that_of_the_policy(session: Session) -> None:
    assert STDLIB.memory_bytes == 128 * MIB
    ran = run(session, f"kept = bytearray({STDLIB.memory_bytes // 2}); print(len(kept))")
    ran.assert_exited(0, completed=True)
    assert (ran.meters.memory_peak_bytes or 0) > STDLIB.memory_bytes // 2
