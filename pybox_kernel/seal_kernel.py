"""The seal by the Linux kernel's own files about the box's PID 1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from pybox_kernel.counters import V1_UNLIMITED, Unread, number
from pybox_kernel.policy import Policy
from pybox_kernel.seal import Comparison, Identity, Look

__all__ = ["cgroup_version", "kernel_look"]

V1_CONTROLLERS: Final = ("memory", "pids", "cpu")

INERT_INTERFACES: Final = frozenset(
    {"tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"}
)
"""Tunnel ends that some kernels put, down and without an address, into every network namespace
(net.core.fb_tunnels_only_for_init_net)."""


class Mount(NamedTuple):
    """What is allowed at one mount point: file system types, options each mount must have, and whether it may be
    written to by its owner."""

    types: frozenset[str]
    options: frozenset[str]
    writable: bool = False


def of(types: str, options: str, writable: bool = False) -> Mount:
    return Mount(frozenset(types.split()), frozenset(options.split()), writable)


ANY_DISK: Final = ""
HIDDEN: Final = "tmpfs devtmpfs"
MOUNTS: Final[Mapping[str, Mount]] = {
    "/": of(ANY_DISK, "ro"),
    "/proc": of("proc", "nosuid nodev noexec", writable=True),
    "/dev": of("tmpfs", "nosuid", writable=True),
    "/dev/pts": of("devpts", "nosuid noexec", writable=True),
    "/dev/mqueue": of("mqueue", "nosuid nodev noexec", writable=True),
    "/dev/shm": of("tmpfs", "nosuid nodev noexec", writable=True),  # noqa: S108
    "/box": of("tmpfs", "nosuid nodev noexec", writable=True),
    "/tmp": of("tmpfs", "nosuid nodev noexec", writable=True),  # noqa: S108
    "/sys": of("sysfs", "ro nosuid nodev noexec"),
    "/sys/firmware": of("tmpfs", "ro"),
    "/sys/devices/virtual/powercap": of("tmpfs", "ro"),
    "/sys/fs/cgroup": of("tmpfs cgroup2", "nosuid nodev noexec", writable=True),
    "/etc/resolv.conf": of(ANY_DISK, "ro"),
    "/etc/hostname": of(ANY_DISK, "ro"),
    "/etc/hosts": of(ANY_DISK, "ro"),
    "/proc/bus": of("proc", "ro nosuid nodev noexec"),
    "/proc/fs": of("proc", "ro nosuid nodev noexec"),
    "/proc/irq": of("proc", "ro nosuid nodev noexec"),
    "/proc/sys": of("proc", "ro nosuid nodev noexec"),
    "/proc/sysrq-trigger": of("proc", "ro nosuid nodev noexec"),
    "/proc/asound": of(HIDDEN, "ro"),
    "/proc/acpi": of(HIDDEN, "ro"),
    "/proc/scsi": of(HIDDEN, "ro"),
    "/proc/interrupts": of(HIDDEN, "nosuid", writable=True),
    "/proc/kcore": of(HIDDEN, "nosuid", writable=True),
    "/proc/keys": of(HIDDEN, "nosuid", writable=True),
    "/proc/latency_stats": of(HIDDEN, "nosuid", writable=True),
    "/proc/timer_list": of(HIDDEN, "nosuid", writable=True),
    "/proc/timer_stats": of(HIDDEN, "nosuid", writable=True),
    "/proc/sched_debug": of(HIDDEN, "nosuid", writable=True),
}
"""Every mount a box may have: those of the OCI runtime's default, the three bounded folders, the engine's three
read-only files, and the kernel files that engines hide. Files hidden behind /dev/null are mounts of the box's /dev."""

V1_CGROUP_MOUNT: Final = re.compile(r"/sys/fs/cgroup/[a-z_,=]{1,40}\Z")
REQUIRED_MOUNTS: Final = ("/", "/proc", "/dev", "/sys", "/box", "/tmp", "/dev/shm")  # noqa: S108


def kernel_look(policy: Policy, identity: Identity, texts: Mapping[str, str | None], container_id: str | None) -> Look:
    """Compares the kernel's files about the box's PID 1 with the policy.

    ``texts`` holds ``/proc/PID/NAME`` under ``NAME`` and cgroup files under ``cgroup:NAME``; None where unreadable.
    ``container_id`` is the full id that the cgroup path must hold; None where the reader sees only its own namespace.
    """
    compare = Comparison()
    compare_status(compare, identity, texts.get("status"), nested=container_id is not None)
    compare_limits(compare, policy, texts.get("limits"))
    compare_cgroup(compare, policy, texts, container_id)
    compare_network(compare, texts)
    compare_mounts(compare, policy, identity, texts.get("mountinfo"))
    return compare.look()


def fields(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}


def compare_status(compare: Comparison, identity: Identity, text: str | None, nested: bool) -> None:
    found = fields(text or "")
    own = [str(identity.uid)] * 4
    compare.require("user", own, found.get("Uid", "").split())
    compare.require("group", own, found.get("Gid", "").split())
    groups = found.get("Groups", "?").split()
    compare.require("more groups", str(identity.uid), groups, met=set(groups) <= {str(identity.uid)})
    for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        value = found.get(key, "")
        compare.require("privileges", "none", value, met=value != "" and set(value) == {"0"})
    compare.require("no new privileges", "1", found.get("NoNewPrivs"))
    compare.require("system call filter on", "2", found.get("Seccomp"))
    space = found.get("NSpid", "").split()
    compare.require("own process space", "process 1", space, met=space[-1:] == ["1"] and (len(space) > 1 or not nested))


LIMIT_NAMES: Final = {
    "Max open files": "open files",
    "Max core file size": "core dumps",
    "Max locked memory": "locked memory",
    "Max msgqueue size": "message queues",
    "Max nice priority": "priority",
    "Max realtime priority": "priority",
}


def compare_limits(compare: Comparison, policy: Policy, text: str | None) -> None:
    wanted = {
        "Max open files": policy.open_files,
        "Max core file size": policy.core_bytes,
        "Max locked memory": policy.locked_memory_bytes,
        "Max msgqueue size": policy.message_queue_bytes,
        "Max nice priority": 0,
        "Max realtime priority": 0,
    }
    found: dict[str, list[str]] = {}
    for line in (text or "").splitlines():
        found[line[:26].strip()] = line[26:].split()[:2]
    for key, value in wanted.items():
        compare.require(LIMIT_NAMES[key], [str(value)] * 2, found.get(key))


def cgroup_version(texts: Mapping[str, str | None]) -> int | None:
    """1 or 2, from ``/proc/PID/cgroup``: 1 where a memory controller is named there."""
    text = texts.get("cgroup")
    if not text:
        return None
    return 1 if any(line.split(":")[1:2] == ["memory"] for line in text.splitlines()) else 2


def compare_cgroup(
    compare: Comparison, policy: Policy, texts: Mapping[str, str | None], container_id: str | None
) -> None:
    files = {name.removeprefix("cgroup:"): text for name, text in texts.items() if name.startswith("cgroup:")}
    version = cgroup_version(texts)
    if container_id is not None:
        paths = [line.split(":", 2)[-1] for line in (texts.get("cgroup") or "").splitlines()]
        ours = [path for path in paths if container_id in path]
        compare.require("its own cgroup", "the box's", paths[:1], met=bool(ours))
    if version == 2:
        compare.require("memory", policy.memory_bytes, number(files, "memory.max"))
        compare.require("swap", 0, number(files, "memory.swap.max"))
        compare.require("number of tasks", policy.tasks, number(files, "pids.max"))
        share = (files.get("cpu.max") or "").split()
        quota, period = (share[0], share[1]) if len(share) == 2 else ("", "")
    else:
        compare.require("memory", policy.memory_bytes, limit_v1(files, "memory/memory.limit_in_bytes"))
        compare.require("memory with swap", policy.memory_bytes, limit_v1(files, "memory/memory.memsw.limit_in_bytes"))
        compare.require("number of tasks", policy.tasks, number(files, "pids/pids.max"))
        quota = (files.get("cpu/cpu.cfs_quota_us") or "").strip()
        period = (files.get("cpu/cpu.cfs_period_us") or "").strip()
    cores = int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None
    compare.require("processor share", policy.cpu_cores, "no limit" if cores is None else cores)


def limit_v1(files: Mapping[str, str | None], name: str) -> int | str | Unread:
    value = number(files, name)
    return "no limit" if isinstance(value, int) and value >= V1_UNLIMITED else value


def compare_network(compare: Comparison, texts: Mapping[str, str | None]) -> None:
    lines = (texts.get("net/dev") or "").splitlines()[2:]
    names = [line.partition(":")[0].strip() for line in lines]
    extra = [name for name in names if name != "lo" and name not in INERT_INTERFACES]
    compare.require("network", "no network connection", extra or names, met=names != [] and not extra)
    compare.require("network addresses", "none but its own", addresses_v4(texts.get("net/fib_trie")), met=None)
    compare.require("network routes", [], routes_v4(texts.get("net/route")))
    # Without IPv6 in the kernel these two files do not exist, and there is nothing to reach.
    compare.require("network addresses (IPv6)", [], addresses_v6(texts.get("net/if_inet6")))
    compare.require("network routes (IPv6)", [], routes_v6(texts.get("net/ipv6_route")))


def addresses_v4(text: str | None) -> object:
    if text is None:
        return None
    found = re.findall(r"\|-- ([0-9.]+)\n\s+/32 host LOCAL", text)
    outside = [address for address in found if not address.startswith("127.")]
    return outside or "none but its own"


def routes_v4(text: str | None) -> object:
    if text is None:
        return None
    return [line.split()[0] for line in text.splitlines()[1:] if line.split()]


def addresses_v6(text: str | None) -> list[str]:
    return [line.split()[-1] for line in (text or "").splitlines() if line.split() and line.split()[-1] != "lo"]


def routes_v6(text: str | None) -> list[str]:
    return [line.split()[-1] for line in (text or "").splitlines() if line.split() and line.split()[-1] != "lo"]


def unescaped(field: str) -> str:
    r"""mountinfo writes space, tab, newline and backslash as ``\040`` and so on (proc_pid_mountinfo(5))."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)


def compare_mounts(compare: Comparison, policy: Policy, identity: Identity, text: str | None) -> None:
    seen: dict[str, tuple[str, frozenset[str], frozenset[str]]] = {}
    stacked: list[str] = []
    for line in (text or "").splitlines():
        left, _, right = line.partition(" - ")
        before, after = left.split(" "), right.split(" ")
        if len(before) < 6 or len(after) < 3:
            stacked.append("a line that cannot be read")
            continue
        point = unescaped(before[4])
        if point in seen:
            stacked.append(point)
        seen[point] = (after[0], frozenset(before[5].split(",")), frozenset(after[2].split(",")))
    extra = [point for point in seen if point not in MOUNTS and not V1_CGROUP_MOUNT.match(point)]
    compare.require("mounts", "only the box's own", extra + stacked, met=not extra and not stacked)
    compare.require("mounts present", list(REQUIRED_MOUNTS), [p for p in REQUIRED_MOUNTS if p in seen])
    for point, (kind, options, own) in sorted(seen.items()):
        allowed = MOUNTS.get(point)
        if allowed is None:
            if V1_CGROUP_MOUNT.match(point):
                wanted = frozenset({"ro", "nosuid", "nodev", "noexec"})
                compare.require(f"mount {point}", sorted(wanted), sorted(options), met=wanted <= options)
            continue
        met = allowed.options <= options and (not allowed.types or kind in allowed.types)
        if allowed.types == frozenset() and kind in ("proc", "sysfs", "tmpfs", "cgroup", "cgroup2"):
            met = False
        compare.require(
            f"mount {point}",
            [*sorted(allowed.types), *sorted(allowed.options)],
            [kind, *sorted(options)],
            met,
        )
        if point in (sizes := bounded_folders(policy, identity)):
            compare.require(f"size of {point}", sorted(sizes[point]), sorted(own), met=sizes[point] <= own)


def bounded_folders(policy: Policy, identity: Identity) -> dict[str, frozenset[str]]:
    """What tmpfs shows of itself (mm/shmem.c, shmem_show_options): size in KiB, inodes, owner, mode without a 0."""
    own = {f"uid={identity.uid}", f"gid={identity.uid}", f"nr_inodes={policy.inodes}", "mode=700"}
    return {
        "/box": frozenset({f"size={policy.work_bytes // 1024}k", *own}),
        "/tmp": frozenset({f"size={policy.temporary_bytes // 1024}k", *own}),  # noqa: S108
        "/dev/shm": frozenset({f"size={policy.shared_memory_bytes // 1024}k", *own}),  # noqa: S108
    }
