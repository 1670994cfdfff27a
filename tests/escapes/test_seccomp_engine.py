"""The seccomp profile on a real engine: what it refuses, what cannot be got round, what must still run."""

import json
import platform
import signal
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import docker
import pytest

from pybox_kernel.images.store import RecordedImage
from pybox_kernel.seal.seccomp import PROBES, PROFILE_JSON, profile

pytestmark = pytest.mark.engine

OURS = [f"seccomp={PROFILE_JSON}"]
ENGINES_OWN: list[str] = []
NO_FILTER = ["seccomp=unconfined"]

EPERM, EFAULT, EINVAL, ENOTTY, ENOSYS = 1, 14, 22, 25, 38
HIGH = 1 << 32

Call = tuple[str, int, tuple[int, ...]]
"""A label, the number of the call, its arguments."""

# What answers with something else than EPERM was let through to the kernel.
ANSWERS: dict[str, tuple[str, tuple[int, ...], int]] = {
    **{f"socket({n})": ("socket", (n, 1, 0), EPERM) for n in range(46) if n not in (1, 2, 10)},
    **{f"socket(2**32 + {n})": ("socket", (HIGH | n, 1, 0), EPERM) for n in range(46) if n not in (1, 2, 10)},
    **{f"socket({n})": ("socket", (n, 1, 0), 0) for n in (1, 2, 10)},
    **{f"socket(2**32 + {n})": ("socket", (HIGH | n, HIGH | 1, HIGH), 0) for n in (1, 2, 10)},
    "socket: tcp, no waiting": ("socket", (2, 0x80801, 6), 0),
    "socket: udp": ("socket", (10, 2, 17), 0),
    "socket: raw": ("socket", (2, 3, 1), EPERM),
    "socket: raw, under a high bit": ("socket", (2, HIGH | 3, 1), EPERM),
    "socket: ping": ("socket", (2, 2, 1), EPERM),
    "socket: sctp": ("socket", (2, 1, 132), EPERM),
    "socket: sctp by its kind": ("socket", (2, 5, 0), EPERM),
    "socket: mptcp": ("socket", (2, 1, 262), EPERM),
    "socket: packets by the old way": ("socket", (2, 10, 0), EPERM),
    "socketpair: tipc": ("socketpair", (30, 1, 0, 1), EPERM),
    "socketpair: unix": ("socketpair", (1, 1, 0, 1), EFAULT),
    "mmap: a page": ("mmap", (0, 4096, 3, 0x22, 2**64 - 1, 0), 0),
    "mmap: huge pages": ("mmap", (0, 2 << 20, 3, 0x40022, 2**64 - 1, 0), EPERM),
    "mmap: huge pages of 1 GiB": ("mmap", (0, 1 << 30, 3, 30 << 26 | 0x40022, 2**64 - 1, 0), EPERM),
    "mmap: huge pages, high bits": ("mmap", (0, 2 << 20, 3, HIGH | 0x40022, 2**64 - 1, 0), EPERM),
    "memfd_create": ("memfd_create", (1, 0), EFAULT),
    "memfd_create: huge pages": ("memfd_create", (1, 4), EPERM),
    "memfd_create: huge pages, high bits": ("memfd_create", (1, HIGH | 4), EPERM),
    # CLONE_SIGHAND without CLONE_VM is no valid request: EINVAL means that the kernel was asked.
    "clone: no namespace": ("clone", (0x800,), EINVAL),
    **{f"clone: namespace bit {n}": ("clone", (1 << n | 0x800,), EPERM) for n in (17, *range(25, 31))},
    **{f"clone: high bits, namespace bit {n}": ("clone", (HIGH | 1 << n | 0x800,), EPERM) for n in (17, 28)},
    "clone3": ("clone3", (0, 0), ENOSYS),
    **{f"prlimit64: read own {n}": ("prlimit64", (0, n, 0, 0), 0) for n in range(16)},
    **{f"prlimit64: set own {n}": ("prlimit64", (0, n, 1, 0), EFAULT) for n in range(16) if n != 4},
    "prlimit64: set own, high bits": ("prlimit64", (HIGH, HIGH | 7, 1, 0), EFAULT),
    "prlimit64: set core": ("prlimit64", (0, 4, 1, 0), EPERM),
    "prlimit64: set core, high bits": ("prlimit64", (HIGH, HIGH | 4, 1, 0), EPERM),
    "prlimit64: set core, address above 32 bits": ("prlimit64", (0, 4, HIGH, 0), EPERM),
    "prlimit64: read of process 1": ("prlimit64", (1, 7, 0, 0), EPERM),
    "prlimit64: read of process 1, high bits": ("prlimit64", (HIGH | 1, 7, 0, 0), EPERM),
    "prlimit64: set on process 1": ("prlimit64", (1, 7, 1, 0), EPERM),
    "setpriority: own": ("setpriority", (0, 0, 0), 0),
    "setpriority: own, high bits": ("setpriority", (HIGH, HIGH, 0), 0),
    "setpriority: process 1": ("setpriority", (0, 1, 0), EPERM),
    "setpriority: process 1, high bits": ("setpriority", (HIGH, HIGH | 1, 0), EPERM),
    "setpriority: group": ("setpriority", (1, 0, 0), EPERM),
    "setpriority: user": ("setpriority", (2, 0, 0), EPERM),
    "sched_setaffinity: own": ("sched_setaffinity", (0, 8, 1), EFAULT),
    "sched_setaffinity: process 1": ("sched_setaffinity", (1, 8, 1), EPERM),
    "sched_setaffinity: process 1, high bits": ("sched_setaffinity", (HIGH | 1, 8, 1), EPERM),
    "prctl: be not dumpable": ("prctl", (4, 0), 0),
    "prctl: set a filter": ("prctl", (22, 2, 0), EPERM),
    "prctl: set a filter, high bits": ("prctl", (HIGH | 22, 2, 0), EPERM),
    "prctl: let others trace": ("prctl", (0x59616D61, -1 % 2**64), EPERM),
    "prctl: core scheduling": ("prctl", (62, 1, 1, 1, 0), EPERM),
    "ioctl: is it a terminal": ("ioctl", (1, 0x5401, 1), ENOTTY),
    "ioctl: is it a terminal, high bits": ("ioctl", (1, HIGH | 0x5401, 1), ENOTTY),
    "ioctl: type into a terminal": ("ioctl", (1, 0x5412, 1), EPERM),
    "ioctl: type into a terminal, high bits": ("ioctl", (1, HIGH | 0x5412, 1), EPERM),
    "ioctl: line discipline": ("ioctl", (1, 0x5423, 1), EPERM),
    "ioctl: interfaces": ("ioctl", (1, 0x8912, 1), EPERM),
}

# Prints {label: errno, or 0} for [[label, number, arguments], ...].
TRY_CALLS = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
found = {}
for label, number, arguments in json.loads(sys.argv[1]):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_ulong(a) for a in arguments))
    found[label] = ctypes.get_errno() if result == -1 else 0
print(json.dumps(found))
"""

# Prints {name: [exit status, the end of its output]} for {name: program}, each run as a process of its own.
RUN_PROGRAMS = """
import json, subprocess, sys
found = {}
for name, program in json.loads(sys.argv[1]).items():
    ran = subprocess.run([sys.executable, "-c", program], cwd="/tmp", stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    found[name] = [ran.returncode, ran.stdout.decode(errors="replace")[-2000:]]
print(json.dumps(found))
"""

# Prints, for each way into the kernel, what a child that asks for its own pid that way ends with.
FOREIGN_CALLS = """
import ctypes, json, mmap, os
libc = ctypes.CDLL(None, use_errno=True)

def x32():
    return libc.syscall(ctypes.c_long(0x40000000 | 39))

def int_0x80():
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex("b814000000" "cd80" "c3"))  # mov eax, 20 (getpid of i386); int 0x80; ret
    return ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()

found = {}
for way in (x32, int_0x80):
    child = os.fork()
    if child == 0:
        os._exit(0 if way() == os.getpid() else 1)
    found[way.__name__] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(found))
"""

POOL = """
import concurrent.futures, math, multiprocessing, os
context = multiprocessing.get_context({method!r})
with context.Pool(2) as pool:
    assert pool.map(math.factorial, range(6)) == [1, 1, 2, 6, 24, 120]
with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
    assert list(pool.map(abs, (-1, -2))) == [1, 2]
queue, lock, value = context.Queue(), context.Lock(), context.Value("i", 7)
process = context.Process(target=queue.put, args=("sent",))
process.start()
assert queue.get(timeout=20) == "sent"
process.join()
assert process.exitcode == 0
with lock:
    assert value.value == 7
"""

WORKING_SET = {
    "threads": """
import concurrent.futures, threading
local, lock, done = threading.local(), threading.Lock(), threading.Barrier(5)
for n in range(4):
    threading.Thread(target=done.wait, name=f"worker-{n}").start()
done.wait(10)
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    assert sum(pool.map(len, ["ab"] * 100)) == 200
""",
    "multiprocessing by fork": POOL.format(method="fork"),
    "multiprocessing by spawn": POOL.format(method="spawn"),
    "multiprocessing by forkserver": POOL.format(method="forkserver"),
    "thread pool and shared memory": """
import multiprocessing.pool, multiprocessing.shared_memory
with multiprocessing.pool.ThreadPool(3) as pool:
    assert pool.map(abs, [-1]) == [1]
block = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
block.buf[0] = 9
block.close()
block.unlink()
""",
    "subprocess": """
import os, signal, subprocess, sys
assert subprocess.run(["echo", "hi"], capture_output=True, text=True).stdout == "hi\\n"
assert subprocess.check_output("echo $((6 * 7)) | cat", shell=True) == b"42\\n"
subprocess.run(["true"], check=True, start_new_session=True, close_fds=True, umask=0o77, cwd="/")
subprocess.run(["true"], check=True, close_fds=False)
child = os.posix_spawn(sys.executable, ["python3", "-c", "raise SystemExit(3)"], os.environ, setsid=True)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
sleeper = subprocess.Popen(["sleep", "60"])
handle = os.pidfd_open(sleeper.pid)
signal.pidfd_send_signal(handle, signal.SIGTERM)
assert os.waitid(os.P_PIDFD, handle, os.WEXITED).si_status == signal.SIGTERM
sleeper.returncode = -15
""",
    "asyncio": """
import asyncio, sys
async def answer(reader, writer):
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
async def ask(reader, writer):
    writer.write(b"hello\\n")
    assert await reader.read() == b"HELLO\\n"
    writer.close()
    await writer.wait_closed()
async def main():
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    assert (await process.communicate(b"x"))[0] == b"x"
    assert await asyncio.to_thread(sum, (1, 2)) == 3
    async with await asyncio.start_unix_server(answer, "/tmp/asyncio.sock"):
        await ask(*await asyncio.open_unix_connection("/tmp/asyncio.sock"))
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        await ask(*await asyncio.open_connection(*server.sockets[0].getsockname()))
    await asyncio.wait_for(asyncio.sleep(0.01), 5)
asyncio.run(main())
""",
    "sockets": """
import array, os, socket
a, b = socket.socketpair()
a.settimeout(5)
socket.send_fds(a, [b"x"], [0])
assert socket.recv_fds(b, 1, 1)[0] == b"x"
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("127.0.0.1", 0))
u.sendto(b"y", u.getsockname())
assert u.recvfrom(9)[0] == b"y"
assert socket.getaddrinfo("127.0.0.1", 80)
for s in (a, b, u):
    s.close()
""",
    "waiting": """
import os, select, time
r, w = os.pipe()
os.write(w, b"x")
assert select.select([r], [], [], 1)[0] == [r]
poll = select.poll()
poll.register(r)
assert poll.poll(10)
with select.epoll() as epoll:
    epoll.register(r, select.EPOLLIN)
    assert epoll.poll(1) == [(r, select.EPOLLIN)]
event = os.eventfd(1)
assert os.eventfd_read(event) == 1
os.set_blocking(r, False)
os.set_inheritable(r, True)
os.set_inheritable(r, False)
time.sleep(0.01)
time.clock_gettime(time.CLOCK_MONOTONIC)
""",
    "signals": """
import faulthandler, signal, threading, time
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append("alarm"))
signal.signal(signal.SIGUSR1, lambda *_: seen.append("user"))
signal.setitimer(signal.ITIMER_REAL, 0.05)
signal.raise_signal(signal.SIGUSR1)
signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
time.sleep(0.2)
assert seen == ["user", "user", "alarm"], seen
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
signal.raise_signal(signal.SIGUSR2)
assert signal.sigtimedwait([signal.SIGUSR2], 1).si_signo == signal.SIGUSR2
signal.alarm(1)
signal.pause()
faulthandler.enable()
faulthandler.dump_traceback_later(60)
faulthandler.cancel_dump_traceback_later()
""",
    "files": """
import fcntl, os, pathlib, shutil, tempfile
with tempfile.TemporaryDirectory() as place, tempfile.TemporaryFile() as file:
    file.write(b"x" * 100000)
    file.flush()
    one, two = pathlib.Path(place, "one"), pathlib.Path(place, "two")
    one.write_bytes(b"z" * 100000)
    with one.open("rb") as source, two.open("wb") as target:
        assert os.sendfile(target.fileno(), source.fileno(), 0, 100000) == 100000
        assert os.copy_file_range(source.fileno(), target.fileno(), 10) == 10
        fcntl.flock(target, fcntl.LOCK_EX)
        fcntl.lockf(target, fcntl.LOCK_EX)
        os.posix_fallocate(target.fileno(), 0, 200000)
        os.posix_fadvise(source.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        os.fsync(target.fileno())
        os.pwritev(target.fileno(), [b"a", b"b"], 0)
        os.fchmod(target.fileno(), 0o600)
    shutil.copyfile(one, place + "/three")
    shutil.copy2(one, place + "/four")
    shutil.copytree(place, place + "-copy")
    shutil.move(place + "-copy", place + "/moved")
    os.chown(one, -1, -1)
    os.chmod(one, 0o640, follow_symlinks=True)
    os.utime(one, (1, 2))
    os.symlink("one", place + "/link")
    os.link(one, place + "/hard")
    os.mkfifo(place + "/fifo")
    os.truncate(two, 5)
    os.listxattr(one)
    assert os.readlink(place + "/link") == "one"
    assert shutil.disk_usage("/tmp").total
    assert len(list(os.walk(place))) == 2
""",
    "mapped memory": """
import ctypes, mmap, os
with open("/tmp/mapped", "w+b") as file:
    file.truncate(8192)
    with mmap.mmap(file.fileno(), 8192) as area:
        area[:2] = b"ok"
        area.flush()
        area.resize(16384)
        area.madvise(mmap.MADV_WILLNEED)
with mmap.mmap(-1, 4096) as area:
    child = os.fork()
    if child == 0:
        area[0] = 7
        os._exit(0)
    os.waitpid(child, 0)
    assert area[0] == 7
handle = os.memfd_create("x")
os.write(handle, b"y")
assert bytearray(50_000_000)[-1] == 0
""",
    "sqlite": """
import sqlite3
for mode in ("delete", "wal"):
    with sqlite3.connect(f"/tmp/{mode}.db") as base:
        base.execute(f"pragma journal_mode={mode}")
        base.execute("create table t (x)")
        base.executemany("insert into t values (?)", [(n,) for n in range(1000)])
        assert base.execute("select sum(x) from t").fetchone() == (499500,)
    base.close()
""",
    "archives": """
import bz2, gzip, io, lzma, shutil, tarfile, zipfile
with zipfile.ZipFile("/tmp/a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.write("/etc/passwd")
with zipfile.ZipFile("/tmp/a.zip") as archive:
    archive.extractall("/tmp/unzipped")
with tarfile.open("/tmp/a.tar.xz", "w:xz") as archive:
    archive.add("/etc/passwd")
shutil.unpack_archive("/tmp/a.zip", "/tmp/unpacked")
""",
    "randomness, encryption, locale, own identity": """
import getpass, grp, hashlib, locale, os, platform, random, secrets, ssl, sysconfig, time, uuid
assert len(secrets.token_bytes(16)) == len(os.getrandom(16)) == 16
ssl.create_default_context()
hashlib.scrypt(b"a", salt=b"b", n=16, r=1, p=1)
locale.setlocale(locale.LC_ALL, "")
time.tzset()
uuid.uuid1()
assert os.getuid() == os.geteuid() == os.getresuid()[0] == 12345
assert os.getpgid(0) and os.getsid(0) and os.getgroups() is not None
assert os.sysconf("SC_PHYS_PAGES") and os.cpu_count() and os.getloadavg() and platform.platform()
""",
    "own limits and priority": """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (64, 64)
assert resource.getrlimit(resource.RLIMIT_CORE)
assert os.nice(3) == 3
os.sched_setaffinity(0, os.sched_getaffinity(0))
assert os.sched_getscheduler(0) == os.SCHED_OTHER
resource.getrusage(resource.RUSAGE_CHILDREN)
os.times()
""",
    "a terminal of one's own": """
import os, pty
child, master = pty.fork()
if child == 0:
    os.execvp("sh", ["sh", "-c", "test -t 0 && test -t 1 && echo yes"])
assert b"yes" in os.read(master, 100)
assert os.waitpid(child, 0)[1] == 0
os.get_terminal_size(master)
""",
}


class Boxes:
    """Containers made as PyBox makes them in what matters here; each is removed when it has been used."""

    def __init__(self, client: docker.APIClient, image: str) -> None:
        self.client = client
        self.image = image
        self.column = {"amd64": 0, "arm64": 1}[client.version()["Arch"]]
        table = Path(__file__).parents[1] / "unit" / "syscalls.tsv"
        rows = [line.split("\t") for line in table.read_text().splitlines()[3:]]
        self.numbers = {name: int(numbers[self.column]) for name, *numbers in rows if numbers[self.column] != "-"}

    def start(self, security: list[str], uid: int, *arguments: str, **host: Any) -> str:
        config = self.client.create_host_config(
            cap_drop=["ALL"],
            security_opt=["no-new-privileges:true", *security],
            network_mode="none",
            read_only=True,
            tmpfs={"/tmp": "rw,nosuid,nodev,noexec,size=67108864"},
            shm_size=1 << 20,
            mem_limit=256 << 20,
            pids_limit=64,
            **host,
        )
        made = self.client.create_container(
            self.image,
            ["-c", *arguments],
            entrypoint=["python3"],
            user=f"{uid}:{uid}",
            environment={"HOME": "/tmp"},
            name=f"pybox-test-seccomp-{uuid.uuid4().hex}",
            host_config=config,
        )["Id"]
        try:
            self.client.start(made)
        except BaseException:
            self.remove(made)
            raise
        return str(made)

    def remove(self, container: str) -> None:
        self.client.remove_container(container, force=True, v=True)

    def run(self, security: list[str], *arguments: str, uid: int = 12345, **host: Any) -> Any:
        """What the program printed, read as JSON. It must exit with 0."""
        container = self.start(security, uid, *arguments, **host)
        try:
            status = self.client.wait(container, timeout=100)["StatusCode"]
            printed = self.client.logs(container, stdout=True, stderr=False)
            assert status == 0, self.client.logs(container).decode()
            return json.loads(printed)
        finally:
            self.remove(container)

    def answers(self, security: list[str], calls: Sequence[Call]) -> dict[str, int]:
        return dict(self.run(security, TRY_CALLS, json.dumps(calls)))

    def probes(self, security: list[str]) -> dict[str, int]:
        return self.answers(
            security, [(name, numbers[self.column], arguments) for name, numbers, arguments, _ in PROBES]
        )


@pytest.fixture(scope="module")
def boxes(box_image: RecordedImage) -> Iterator[Boxes]:
    client = docker.APIClient(base_url="unix:///var/run/docker.sock", timeout=110)
    try:
        yield Boxes(client, box_image.id)
    finally:
        client.close()


@pytest.fixture(scope="module")
def answers(boxes: Boxes) -> dict[str, int]:
    calls = [(label, boxes.numbers[call], arguments) for label, (call, arguments, _) in ANSWERS.items()]
    return boxes.answers(OURS, calls)


@pytest.fixture(scope="module")
def ran(boxes: Boxes) -> dict[str, list[Any]]:
    return dict(boxes.run(OURS, RUN_PROGRAMS, json.dumps(WORKING_SET)))


def test_every_call_that_is_not_listed_is_refused(boxes: Boxes) -> None:
    listed = {name for rule in profile()["syscalls"] for name in rule["names"]}
    unlisted = [(name, number, (2**64 - 1,) * 6) for name, number in boxes.numbers.items() if name not in listed]
    assert len(unlisted) > 130
    found = boxes.answers(OURS, unlisted)
    # runc gives ENOSYS to calls that are newer than its libseccomp.
    newest = boxes.numbers["clone3"]
    wanted = {name: {EPERM} if number <= newest else {EPERM, ENOSYS} for name, number, _ in unlisted}
    assert {name: errno for name, errno in found.items() if errno not in wanted[name]} == {}


@pytest.mark.parametrize("label", ANSWERS)
def test_the_engine_reads_the_conditions_as_they_are_meant(label: str, answers: dict[str, int]) -> None:
    assert answers[label] == ANSWERS[label][2]


def test_the_ten_probes_get_their_errnos_under_the_profile(boxes: Boxes) -> None:
    assert boxes.probes(OURS) == {name: errno for name, _, _, errno in PROBES}


def test_the_probes_tell_the_profile_from_the_engines_own(boxes: Boxes) -> None:
    found = boxes.probes(ENGINES_OWN)
    told = {name for name, _, _, errno in PROBES if found[name] != errno}
    # Of these no version of Docker's profile refuses any; the other three depend on the version.
    assert told >= {
        "socket(AF_NETLINK)",
        "socket(2**32 + AF_VSOCK)",
        "ptrace(PTRACE_PEEKTEXT, 0)",
        "shmget(size 0)",
        "sched_setscheduler(no parameters)",
        "prlimit64(1, RLIMIT_NOFILE)",
        "prlimit64(RLIMIT_CORE, bad address)",
    }


def test_every_probe_tells_the_profile_from_no_filter(boxes: Boxes) -> None:
    found = boxes.probes(NO_FILTER)
    # Some hosts switch io_uring off for everyone, with the same errno.
    assert {name for name, _, _, errno in PROBES if found[name] == errno} <= {"io_uring_setup"}


if platform.machine() == "x86_64":

    def test_the_other_ways_into_the_kernel_end_the_process(boxes: Boxes) -> None:
        assert boxes.run(OURS, FOREIGN_CALLS) == {"x32": -signal.SIGSYS, "int_0x80": -signal.SIGSYS}


@pytest.mark.parametrize("name", WORKING_SET)
def test_what_programs_do_still_works(name: str, ran: dict[str, list[Any]]) -> None:
    status, printed = ran[name]
    assert status == 0, printed


def test_the_witness_can_read_another_containers_first_process_under_the_profile(boxes: Boxes) -> None:
    hidden = "import ctypes, time; assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0; time.sleep(60)"
    read = """
import json, sys
names = ("status", "cgroup", "limits", "mountinfo", "net/dev", "net/route")
print(json.dumps({name: open(f"/proc/{sys.argv[1]}/{name}").read() for name in names}))
"""
    box = boxes.start(OURS, 12345, hidden)
    try:
        pid = boxes.client.inspect_container(box)["State"]["Pid"]
        found = boxes.run(OURS, read, str(pid), uid=23456, pid_mode="host")
    finally:
        boxes.remove(box)
    assert "Uid:\t12345\t12345\t12345\t12345\n" in found["status"]
    assert "Seccomp:\t2\n" in found["status"]
    assert "Max core file size" in found["limits"]
    assert " / / " in found["mountinfo"]
    assert "lo:" in found["net/dev"]
