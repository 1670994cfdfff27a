"""What a box looks like from inside, before any byte of the program has arrived. Trusted; standard library only."""

from __future__ import annotations

import ctypes
import errno
import os
import sys

TYPE_CHECKING = False  # importing typing costs a box milliseconds
if TYPE_CHECKING:
    from typing import Any

# The same tuple stands in pybox_kernel/seal/seccomp.py; a test keeps the two equal.
# Each: name, (number on x86_64, on aarch64), arguments, the errno that PyBox's own profile gives.
PROBES = (
    ("socket(AF_NETLINK)", (41, 198), (16, 3, 0, 0, 0, 0), 1),
    ("socket(2**32 + AF_VSOCK)", (41, 198), (2**32 + 40, 1, 0, 0, 0, 0), 1),
    ("io_uring_setup", (425, 425), (0, 0, 0, 0, 0, 0), 1),
    ("ptrace(PTRACE_PEEKTEXT, 0)", (101, 117), (1, 0, 0, 0, 0, 0), 1),
    ("shmget(size 0)", (29, 194), (0, 0, 0, 0, 0, 0), 1),
    ("sched_setscheduler(no parameters)", (144, 119), (0, 0, 0, 0, 0, 0), 1),
    ("prlimit64(1, RLIMIT_NOFILE)", (302, 261), (1, 7, 0, 0, 0, 0), 1),
    ("prlimit64(RLIMIT_CORE, bad address)", (302, 261), (0, 4, 1, 0, 0, 0), 1),
    ("unshare(nothing)", (272, 97), (0, 0, 0, 0, 0, 0), 1),
    ("clone3(size 0)", (435, 435), (0, 0, 0, 0, 0, 0), 38),
)

# What the box shows of itself, under the names that the outside witness uses for the same files.
OWN_FILES = (
    "status", "limits", "mountinfo", "cgroup", "stat",
    "net/dev", "net/route", "net/if_inet6", "net/ipv6_route", "net/fib_trie",
)  # fmt: skip
OWN_CGROUP_FILES = (
    "memory/memory.limit_in_bytes", "memory/memory.memsw.limit_in_bytes", "pids/pids.max",
    "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us",
    "memory.max", "memory.swap.max", "pids.max", "cpu.max",
)  # fmt: skip
FOLDERS = ("/box", "/tmp", "/dev/shm")
LARGEST = 16384
"""Of one file, in bytes: several times what a sealed box has, and small enough for all in one frame."""


def read_text(path: str) -> str | dict[str, int | None]:
    """The whole text, or why there is none: a part of it would not show what stands in the rest."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        return {"errno": error.errno}
    return data.decode("utf-8", "replace") if len(data) <= LARGEST else {"errno": errno.EFBIG}


def try_forbidden_calls(libc: ctypes.CDLL) -> dict[str, int]:
    libc.syscall.restype = ctypes.c_long
    column = {"x86_64": 0, "aarch64": 1}[os.uname().machine]
    found = {}
    for name, numbers, arguments, _wanted in PROBES:
        ctypes.set_errno(0)
        result = libc.syscall(numbers[column], *(ctypes.c_ulong(a % (1 << 64)) for a in arguments))
        found[name] = ctypes.get_errno() if result == -1 else 0
    return found


def try_to_write(directory: str) -> int | None:
    path = directory + "/.pybox-probe"
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        return error.errno
    os.unlink(path)
    return 0


def room(path: str) -> dict[str, int | None]:
    try:
        found = os.statvfs(path)
    except OSError as error:
        return {"errno": error.errno}
    return {"bytes": found.f_blocks * found.f_frsize, "inodes": found.f_files}


def taken(path: str) -> list[int] | None:
    """Blocks and inodes."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return [found.f_blocks - found.f_bfree, found.f_files - found.f_ffree]


def look_at_rest(runner: int) -> dict[str, Any]:
    """What stays as it is while nobody does anything in the box, from when its runner waits.

    The last word of /proc/loadavg is the newest process id of the reader's own process namespace (proc_loadavg(5)):
    whatever is begun in the box, by ``exec`` too, and has ended since, leaves it changed.
    """
    load, stat = read_text("/proc/loadavg"), read_text("/proc/%d/stat" % runner)
    return {
        "newest": load.split()[-1] if isinstance(load, str) else None,
        "runner": stat.rpartition(")")[2].split()[0] if isinstance(stat, str) else None,
        "taken": {place: taken(place) for place in FOLDERS},
    }


def look_inside(libc: ctypes.CDLL, descriptors: list[int]) -> dict[str, Any]:
    """What the box looks like from inside, before any byte of the program has arrived."""
    files = {name: read_text("/proc/self/" + name) for name in OWN_FILES}
    files.update({"cgroup:" + name: read_text("/sys/fs/cgroup/" + name) for name in OWN_CGROUP_FILES})
    interfaces = {}
    for name in sorted(os.listdir("/sys/class/net"))[:64]:
        interfaces[name] = read_text("/sys/class/net/" + name + "/flags")
    return {
        "files": files,
        "interfaces": interfaces,
        "calls": try_forbidden_calls(libc),
        "write": {
            place: try_to_write(place) for place in ("/", "/etc", "/dev", "/usr/local/lib/pybox", "/box", "/tmp")
        },
        "room": {place: room(place) for place in FOLDERS},
        "descriptors": descriptors,
        "devices": sorted(os.listdir("/dev"))[:64],
        "boot_id": read_text("/proc/sys/kernel/random/boot_id"),
        "python": "%d.%d.%d" % sys.version_info[:3],
    }
