"""The system calls a box may make: the project's own default-deny seccomp profile.

``PROFILE_JSON`` goes to the engine as ``seccomp=<json>`` and ``PROFILE_SHA256`` names it in receipts. A call that is
not listed gives EPERM, and whoever runs under the profile finds out from that errno. Boxes and the witness share it.

Three rules keep it sound:

- Rules only ever allow. The filter compares whole 64-bit registers while the kernel cuts an ``int`` to 32 bits, so
  "anything but 40" lets 2**32 + 40 through, which the kernel takes for 40. So every ``int`` is compared under a mask,
  with the values that are wanted.
- One architecture, the machine's own. The other ways into the same kernel (x32, ``int 0x80``) have other numbers for
  the same calls; the filter ends whoever uses one.
- A call that reaches another process of the box, the warden above all, is allowed on the caller only.

Not listed on purpose, although harmless at first sight: ``splice``, ``tee``, ``vmsplice`` (page-cache pages in pipes,
behind several escapes), ``sync``, ``syncfs`` (they flush the host's disks), ``mincore``, ``cachestat`` (they show what
others read), ``seccomp``, ``landlock_*``, ``personality``, ``setuid`` and kin (nothing here needs them).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

__all__ = ["PROBES", "PROFILE_JSON", "PROFILE_SHA256", "profile"]

EPERM = 1
ENOSYS = 38

CALLS = """
    read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek sendfile copy_file_range
    openat openat2 close close_range dup dup3 fcntl flock pipe2 memfd_create
    fstat newfstatat statx statfs fstatfs getdents64 faccessat faccessat2 readlinkat getcwd chdir fchdir umask
    mkdirat unlinkat renameat renameat2 linkat symlinkat mknodat truncate ftruncate fallocate fadvise64 fsync fdatasync
    fchmod fchmodat fchmodat2 fchown fchownat utimensat
    getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
    setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
    inotify_init1 inotify_add_watch inotify_rm_watch

    mmap munmap mremap mprotect madvise msync brk

    epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 ppoll pselect6 eventfd2 signalfd4
    timerfd_create timerfd_settime timerfd_gettime
    bind connect listen accept accept4 shutdown getsockname getpeername getsockopt setsockopt
    sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg

    execve execveat exit exit_group wait4 waitid kill tkill tgkill pidfd_open pidfd_send_signal
    getpid getppid gettid getpgid setpgid getsid setsid
    getuid geteuid getgid getegid getresuid getresgid getgroups
    futex futex_waitv set_tid_address set_robust_list rseq restart_syscall
    sched_yield sched_getaffinity sched_getscheduler sched_getparam sched_rr_get_interval
    sched_get_priority_max sched_get_priority_min getpriority getcpu getrlimit getrusage

    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack
    setitimer getitimer timer_create timer_settime timer_gettime timer_getoverrun timer_delete
    nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday times
    getrandom uname sysinfo
""".split()
"""Allowed whatever the arguments; there on both architectures."""

LEGACY_CALLS = """
    open creat stat lstat access readlink mkdir rmdir unlink rename link symlink mknod chmod chown lchown
    utime utimes futimesat getdents dup2 pipe eventfd signalfd inotify_init
    fork vfork getpgrp poll select epoll_create epoll_wait alarm pause time arch_prctl
""".split()
"""The same things under the older names that only x86-64 has, and its own ``arch_prctl``."""

INT = 0xFFFF_FFFF
POINTER = 0xFFFF_FFFF_FFFF_FFFF
AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SOCK_STREAM, SOCK_DGRAM, SOCK_KIND = 1, 2, 0xF
IPPROTO_TCP, IPPROTO_UDP = 6, 17
RLIMIT_CORE = 4
PRIO_PROCESS = 0

NEW_NAMESPACES = 0x7E02_0000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. ``clone`` has no NEWTIME: there it is a signal."""

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
    "FICLONE": 0x4004_9409,  # pathlib's copy takes "not here" for an answer, but not EPERM
}
"""The same numbers on both architectures. Not among them: TIOCSTI, TIOCSETD (loads line disciplines), SIOC*."""

PROBES: tuple[tuple[str, tuple[int, int], tuple[int, int, int, int, int, int], int], ...] = (
    # What Docker's own profile or no filter at all answers instead stands behind each.
    ("socket(AF_NETLINK)", (41, 198), (16, 3, 0, 0, 0, 0), EPERM),  # a descriptor, under both
    ("socket(2**32 + AF_VSOCK)", (41, 198), (2**32 + 40, 1, 0, 0, 0, 0), EPERM),  # a descriptor or EAFNOSUPPORT
    ("io_uring_setup", (425, 425), (0, 0, 0, 0, 0, 0), EPERM),  # EINVAL or EFAULT; Docker from 25 on: EPERM
    ("ptrace(PTRACE_PEEKTEXT, 0)", (101, 117), (1, 0, 0, 0, 0, 0), EPERM),  # ESRCH
    ("shmget(size 0)", (29, 194), (0, 0, 0, 0, 0, 0), EPERM),  # EINVAL
    ("sched_setscheduler(no parameters)", (144, 119), (0, 0, 0, 0, 0, 0), EPERM),  # EINVAL
    ("prlimit64(1, RLIMIT_NOFILE, read)", (302, 261), (1, 7, 0, 0, 0, 0), EPERM),  # 0
    ("prlimit64(RLIMIT_CORE, bad address)", (302, 261), (0, RLIMIT_CORE, 1, 0, 0, 0), EPERM),  # EFAULT
    ("unshare(nothing)", (272, 97), (0, 0, 0, 0, 0, 0), EPERM),  # 0 without a filter
    ("clone3(size 0)", (435, 435), (0, 0, 0, 0, 0, 0), ENOSYS),  # EINVAL without a filter
)
"""Ten forbidden calls: name, number on (x86-64, arm64), arguments, the errno this profile gives.

None does anything where it is allowed. The warden tries them before the source arrives: "Seccomp: 2" proves a filter,
not which one. The warden carries a copy, because it imports nothing of this package.
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
            _allow(CALLS),
            _allow(LEGACY_CALLS) | {"includes": {"arches": ["amd64"]}},
            *_sockets(),
            _allow(["clone"], _equal(0, 0, NEW_NAMESPACES)),
            # The flags of clone3 lie in memory, where no filter can read them; glibc falls back to clone on ENOSYS.
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS},
            _allow(["prlimit64"], _equal(0, 0), _equal(2, 0, POINTER)),
            *(_allow(["prlimit64"], _equal(0, 0), _equal(1, limit)) for limit in range(16) if limit != RLIMIT_CORE),
            _allow(["setpriority"], _equal(0, PRIO_PROCESS), _equal(1, 0)),
            _allow(["sched_setaffinity"], _equal(0, 0)),
            *(_allow(["prctl"], _equal(0, option)) for option in PRCTLS.values()),
            *(_allow(["ioctl"], _equal(1, request)) for request in IOCTLS.values()),
        ],
    }


def _sockets() -> Iterable[dict[str, Any]]:
    """Unix sockets, and TCP and UDP: with other protocols the kernel loads modules that nothing here needs."""
    yield _allow(["socket", "socketpair"], _equal(0, AF_UNIX))
    for family in (AF_INET, AF_INET6):
        for kind, protocol in ((SOCK_STREAM, IPPROTO_TCP), (SOCK_DGRAM, IPPROTO_UDP)):
            for number in (0, protocol):
                yield _allow(["socket"], _equal(0, family), _equal(1, kind, SOCK_KIND), _equal(2, number))


def _allow(names: Iterable[str], *conditions: dict[str, Any]) -> dict[str, Any]:
    """Allowed where every condition holds. Several rules for one name: where any of them holds."""
    return {"names": sorted(names), "action": "SCMP_ACT_ALLOW"} | ({"args": list(conditions)} if conditions else {})


def _equal(argument: int, wanted: int, mask: int = INT) -> dict[str, Any]:
    return {"index": argument, "value": mask, "valueTwo": wanted, "op": "SCMP_CMP_MASKED_EQ"}


PROFILE_JSON = json.dumps(profile(), sort_keys=True, separators=(",", ":"))
PROFILE_SHA256 = hashlib.sha256(PROFILE_JSON.encode()).hexdigest()
