"""The system calls a box may make: the project's own default-deny seccomp profile.

``PROFILE_JSON`` goes to the engine as ``seccomp=<json>``; ``PROFILE_SHA256`` names it in receipts. Boxes
and the witness run under the same one. A call that is not listed gives EPERM.

Three rules keep it sound:

- Rules only ever allow. The filter compares whole 64-bit registers, while the kernel cuts an ``int`` to 32
  bits: "anything but 40" lets 2**32 + 40 through, which the kernel takes for 40. So every ``int`` is
  compared under a mask, with the values that are wanted.
- One architecture, the machine's own. The other ways into the same kernel (x32, ``int 0x80``) have other
  numbers for the same calls; the filter ends whoever uses one.
- A call that reaches another process of the box, the warden above all, is allowed on the caller only.

Harmless at first sight and yet not listed: ``splice``, ``tee``, ``vmsplice`` (page-cache pages in pipes,
behind several escapes), ``sync``, ``syncfs`` (they flush the host's disks), ``mincore``, ``cachestat``
(they show what others read), ``seccomp``, ``landlock_*``, ``personality``, ``setuid`` and kin (nothing here
needs them).
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PROBES", "PROFILE_JSON", "PROFILE_SHA256", "profile"]

EPERM = 1
ENOSYS = 38

CALLS = {
    "descriptors": """
        read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek sendfile
        copy_file_range openat openat2 close close_range dup dup3 fcntl flock pipe2
    """,
    "files": """
        fstat newfstatat statx statfs fstatfs getdents64 faccessat faccessat2 readlinkat getcwd chdir fchdir
        umask mkdirat unlinkat renameat renameat2 linkat symlinkat mknodat truncate ftruncate fallocate
        fadvise64 fsync fdatasync fchmod fchmodat fchmodat2 fchown fchownat utimensat getxattr lgetxattr
        fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr fsetxattr removexattr lremovexattr
        fremovexattr inotify_init1 inotify_add_watch inotify_rm_watch
    """,
    "memory": "munmap mremap mprotect madvise msync brk",
    "waiting": """
        epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 ppoll pselect6 eventfd2 signalfd4 timerfd_create
        timerfd_settime timerfd_gettime
    """,
    "sockets": """
        bind connect listen accept accept4 shutdown getsockname getpeername getsockopt setsockopt sendto
        recvfrom sendmsg recvmsg sendmmsg recvmmsg
    """,
    "processes": """
        execve execveat exit exit_group wait4 waitid kill tkill tgkill pidfd_open pidfd_send_signal getpid
        getppid gettid getpgid setpgid getsid setsid getuid geteuid getgid getegid getresuid getresgid
        getgroups futex futex_waitv set_tid_address set_robust_list rseq restart_syscall
    """,
    "scheduling": """
        sched_yield sched_getaffinity sched_getscheduler sched_getparam sched_rr_get_interval
        sched_get_priority_max sched_get_priority_min getpriority getcpu getrlimit getrusage
    """,
    "signals": """
        rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack
    """,
    "time": """
        setitimer getitimer timer_create timer_settime timer_gettime timer_getoverrun timer_delete nanosleep
        clock_nanosleep clock_gettime clock_getres gettimeofday times
    """,
    "other": "getrandom uname sysinfo",
}
"""Allowed whatever the arguments. The same names on both architectures."""

LEGACY_CALLS = """
    open creat stat lstat access readlink mkdir rmdir unlink rename link symlink mknod chmod chown lchown
    utime utimes futimesat getdents dup2 pipe eventfd signalfd inotify_init fork vfork getpgrp poll select
    epoll_create epoll_wait alarm pause time arch_prctl
"""
"""The same things under the older names that only x86-64 has, and its own ``arch_prctl``."""

INT = 0xFFFF_FFFF
POINTER = 0xFFFF_FFFF_FFFF_FFFF
AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SOCK_STREAM, SOCK_DGRAM, SOCK_KIND = 1, 2, 0xF
IPPROTO_TCP, IPPROTO_UDP = 6, 17
LIMITS = [*range(4), *range(5, 16)]  # all but RLIMIT_CORE, 4
PRIO_PROCESS = 0

MAP_HUGETLB, MFD_HUGETLB = 0x4_0000, 0x4
"""Huge pages that a computer keeps in reserve are not counted in a box's memory."""

NEW_NAMESPACES = 0x7E02_0000
"""CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET. Not NEWTIME: clone takes its bit for a signal's."""

PRCTLS = {
    "PR_SET_PDEATHSIG": 1,
    "PR_GET_PDEATHSIG": 2,
    "PR_GET_DUMPABLE": 3,
    "PR_SET_DUMPABLE": 4,  # the warden
    "PR_SET_NAME": 15,  # names of threads
    "PR_GET_NAME": 16,
    "PR_GET_SECCOMP": 21,
    "PR_CAPBSET_READ": 23,
    "PR_SET_TIMERSLACK": 29,
    "PR_GET_TIMERSLACK": 30,
    "PR_SET_NO_NEW_PRIVS": 38,
    "PR_GET_NO_NEW_PRIVS": 39,
}

IOCTLS = {
    "TCGETS": 0x5401,  # isatty
    "TCSETS": 0x5402,
    "TCSETSW": 0x5403,
    "TCSETSF": 0x5404,
    "TIOCSCTTY": 0x540E,
    "TIOCGPGRP": 0x540F,
    "TIOCSPGRP": 0x5410,
    "TIOCGWINSZ": 0x5413,
    "TIOCSWINSZ": 0x5414,
    "FIONREAD": 0x541B,
    "FIONBIO": 0x5421,  # socket.settimeout, os.set_blocking
    "TIOCNOTTY": 0x5422,
    "TIOCGSID": 0x5429,
    "TCGETS2": 0x802C_542A,  # isatty since glibc 2.42
    "TCSETS2": 0x402C_542B,
    "TCSETSW2": 0x402C_542C,
    "TCSETSF2": 0x402C_542D,
    "TIOCGPTN": 0x8004_5430,  # pty.openpty
    "TIOCSPTLCK": 0x4004_5431,
    "TIOCGPTPEER": 0x5441,
    "FIONCLEX": 0x5450,  # os.set_inheritable
    "FIOCLEX": 0x5451,
    "FICLONE": 0x4004_9409,  # pathlib's copy falls back on EOPNOTSUPP, but not on EPERM
}
"""The same numbers on both architectures. Left out: TIOCSTI, TIOCSETD (loads line disciplines), SIOC*."""

PROBES: tuple[tuple[str, tuple[int, int], tuple[int, int, int, int, int, int], int], ...] = (
    # Docker's own profile and no filter at all: a descriptor.
    ("socket(AF_NETLINK)", (41, 198), (16, 3, 0, 0, 0, 0), 1),
    # Both: a descriptor, or EAFNOSUPPORT. Docker from 23 on refuses the number without the high bit.
    ("socket(2**32 + AF_VSOCK)", (41, 198), (2**32 + 40, 1, 0, 0, 0, 0), 1),
    # Both: EFAULT or EINVAL. Docker from 25 on: EPERM.
    ("io_uring_setup", (425, 425), (0, 0, 0, 0, 0, 0), 1),
    # Both: ESRCH.
    ("ptrace(PTRACE_PEEKTEXT, 0)", (101, 117), (1, 0, 0, 0, 0, 0), 1),
    # Both: EINVAL.
    ("shmget(size 0)", (29, 194), (0, 0, 0, 0, 0, 0), 1),
    ("sched_setscheduler(no parameters)", (144, 119), (0, 0, 0, 0, 0, 0), 1),
    # Both: it is read.
    ("prlimit64(1, RLIMIT_NOFILE)", (302, 261), (1, 7, 0, 0, 0, 0), 1),
    # Both: EFAULT.
    ("prlimit64(RLIMIT_CORE, bad address)", (302, 261), (0, 4, 1, 0, 0, 0), 1),
    # Docker: the same. No filter: 0, and EINVAL.
    ("unshare(nothing)", (272, 97), (0, 0, 0, 0, 0, 0), 1),
    ("clone3(size 0)", (435, 435), (0, 0, 0, 0, 0, 0), 38),
)
"""Ten forbidden calls: name, number on (x86-64, arm64), arguments, the errno that this profile gives.

None does anything where it is allowed. The warden tries them before the source arrives, since "Seccomp: 2"
proves a filter, not which one. It carries a copy of this tuple, because it imports nothing of this package.
"""


def profile() -> dict[str, Any]:
    """The profile as a new value, in the format that engines read."""
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": EPERM,
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": [
            _allow(" ".join(CALLS.values())),
            _allow(LEGACY_CALLS) | {"includes": {"arches": ["amd64"]}},
            *_sockets(),
            _allow("mmap", _equal(3, 0, MAP_HUGETLB)),
            _allow("memfd_create", _equal(1, 0, MFD_HUGETLB)),
            _allow("clone", _equal(0, 0, NEW_NAMESPACES)),
            # The flags of clone3 lie in memory, where no filter can read them. On ENOSYS glibc takes clone.
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS},
            _allow("prlimit64", _equal(0, 0), _equal(2, 0, POINTER)),
            *(_allow("prlimit64", _equal(0, 0), _equal(1, limit)) for limit in LIMITS),
            _allow("setpriority", _equal(0, PRIO_PROCESS), _equal(1, 0)),
            _allow("sched_setaffinity", _equal(0, 0)),
            *(_allow("prctl", _equal(0, option)) for option in PRCTLS.values()),
            *(_allow("ioctl", _equal(1, request)) for request in IOCTLS.values()),
        ],
    }


def _sockets() -> Iterator[dict[str, Any]]:
    """Unix sockets, TCP and UDP. Others make the kernel load modules that nothing here needs."""
    yield _allow("socket socketpair", _equal(0, AF_UNIX))
    for family in (AF_INET, AF_INET6):
        for kind, protocol in ((SOCK_STREAM, IPPROTO_TCP), (SOCK_DGRAM, IPPROTO_UDP)):
            for number in (0, protocol):
                yield _allow("socket", _equal(0, family), _equal(1, kind, SOCK_KIND), _equal(2, number))


def _allow(names: str, *conditions: dict[str, Any]) -> dict[str, Any]:
    """Allowed where every condition holds. Several rules for one name: where any of them holds."""
    rule: dict[str, Any] = {"names": sorted(names.split()), "action": "SCMP_ACT_ALLOW"}
    return rule | {"args": list(conditions)} if conditions else rule


def _equal(argument: int, wanted: int, mask: int = INT) -> dict[str, Any]:
    return {"index": argument, "value": mask, "valueTwo": wanted, "op": "SCMP_CMP_MASKED_EQ"}


PROFILE_JSON = json.dumps(profile(), sort_keys=True, separators=(",", ":"))
PROFILE_SHA256 = hashlib.sha256(PROFILE_JSON.encode()).hexdigest()
