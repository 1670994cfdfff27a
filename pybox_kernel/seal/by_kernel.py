"""The seal by the Linux kernel's own files about the box's PID 1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from pybox_kernel.counters import V1_UNLIMITED, Unread, number
from pybox_kernel.policy import Policy
from pybox_kernel.seal.spec import Comparison, Identity, Look

__all__ = ["cgroup_version", "kernel_look"]

INERT_INTERFACES: Final = frozenset(
    {"tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"}
)
"""Tunnel ends that some kernels put, down and without an address, into every network namespace
(net.core.fb_tunnels_only_for_init_net)."""


class Mount(NamedTuple):
    """What is allowed at one mount point: file system types, and options the mount must have."""

    types: frozenset[str]
    options: frozenset[str]


def of(types: str, options: str) -> Mount:
    return Mount(frozenset(types.split()), frozenset(options.split()))


ANY_DISK: Final = ""
KERNEL_MADE: Final = frozenset({"proc", "sysfs", "tmpfs", "devtmpfs", "cgroup", "cgroup2"})
HIDDEN: Final = "tmpfs devtmpfs"
MOUNTS: Final[Mapping[str, Mount]] = {
    "/": of(ANY_DISK, "ro"),
    "/proc": of("proc", "nosuid nodev noexec"),
    "/dev": of("tmpfs", "nosuid"),
    "/dev/pts": of("devpts", "nosuid noexec"),
    "/dev/mqueue": of("mqueue", "nosuid nodev noexec"),
    "/dev/shm": of("tmpfs", "nosuid nodev noexec"),  # noqa: S108
    "/box": of("tmpfs", "nosuid nodev noexec"),
    "/tmp": of("tmpfs", "nosuid nodev noexec"),  # noqa: S108
    "/sys": of("sysfs", "ro nosuid nodev noexec"),
    "/sys/firmware": of("tmpfs", "ro"),
    "/sys/devices/virtual/powercap": of("tmpfs", "ro"),
    "/sys/fs/cgroup": of("tmpfs", "nosuid nodev noexec"),
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
    "/proc/interrupts": of(HIDDEN, "nosuid"),
    "/proc/kcore": of(HIDDEN, "nosuid"),
    "/proc/keys": of(HIDDEN, "nosuid"),
    "/proc/latency_stats": of(HIDDEN, "nosuid"),
    "/proc/timer_list": of(HIDDEN, "nosuid"),
    "/proc/timer_stats": of(HIDDEN, "nosuid"),
    "/proc/sched_debug": of(HIDDEN, "nosuid"),
}
"""Every mount a box may have: those of the OCI runtime's default, the three bounded folders, the engine's three
read-only files, and the kernel files that engines hide. Files hidden behind /dev/null are mounts of the box's /dev."""

V1_CGROUP_MOUNT: Final = re.compile(r"/sys/fs/cgroup/[a-z_,=]{1,40}\Z")
CGROUP_MOUNT: Final = of("cgroup cgroup2", "ro nosuid nodev noexec")
REQUIRED_MOUNTS: Final = ("/", "/proc", "/proc/sys", "/dev", "/sys", "/sys/firmware", "/box", "/tmp", "/dev/shm")  # noqa: S108
ENGINE_FILES: Final = ("/etc/resolv.conf", "/etc/hostname", "/etc/hosts")


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
    compare_mounts(compare, policy, identity, texts.get("mountinfo"), container_id)
    return compare.look()


def fields(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}


def compare_status(compare: Comparison, identity: Identity, text: str | None, nested: bool) -> None:
    found = fields(text or "")
    state = found.get("State", "")
    compare.require("running", "yes", state, met=state[:1] in ("R", "S", "D"))
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
        compare.require("memory", policy.memory_bytes, limit(files, "memory.max"))
        compare.require("swap", 0, limit(files, "memory.swap.max"))
        compare.require("number of tasks", policy.tasks, limit(files, "pids.max"))
        quota, _, period = (files.get("cpu.max") or "").strip().partition(" ")
    else:
        compare.require("memory", policy.memory_bytes, limit(files, "memory/memory.limit_in_bytes"))
        compare.require("memory with swap", policy.memory_bytes, limit(files, "memory/memory.memsw.limit_in_bytes"))
        compare.require("number of tasks", policy.tasks, limit(files, "pids/pids.max"))
        quota = (files.get("cpu/cpu.cfs_quota_us") or "").strip()
        period = (files.get("cpu/cpu.cfs_period_us") or "").strip()
    compare.require("processor share", policy.cpu_cores, share(quota, period))


def limit(files: Mapping[str, str | None], name: str) -> int | str | Unread:
    value = number(files, name)
    unlimited = value >= V1_UNLIMITED if isinstance(value, int) else (files.get(name) or "").strip() == "max"
    return "no limit" if unlimited else value


def share(quota: str, period: str) -> float | str | Unread:
    """How many cores, of a quota in microseconds for each period."""
    if quota in ("max", "-1"):
        return "no limit"
    whole = {"quota": quota, "period": period}
    some, each = number(whole, "quota"), number(whole, "period")
    if isinstance(some, Unread) or isinstance(each, Unread):
        return Unread("its quota or period is not a number")
    return some / each if each else "no limit"


def compare_network(compare: Comparison, texts: Mapping[str, str | None]) -> None:
    lines = (texts.get("net/dev") or "").splitlines()[2:]
    names = [line.partition(":")[0].strip() for line in lines]
    extra = [name for name in names if name != "lo" and name not in INERT_INTERFACES]
    compare.require("network", "no network connection", extra or names, met=names != [] and not extra)
    compare.require("network addresses", "none but its own", addresses_v4(texts.get("net/fib_trie")))
    compare.require("network routes", [], routes_v4(texts.get("net/route")))
    addresses, routes = texts.get("net/if_inet6"), texts.get("net/ipv6_route")
    if addresses is None and routes is None:
        # Without IPv6 in the kernel neither file exists, and there is nothing to reach.
        addresses = routes = ""
    compare.require("network addresses (IPv6)", [], interfaces_v6(addresses))
    compare.require("network routes (IPv6)", [], interfaces_v6(routes))


NOT_READ: Final = Unread("the kernel's file about it is missing")


def addresses_v4(text: str | None) -> object:
    if text is None:
        return NOT_READ
    found = re.findall(r"\|-- ([0-9.]+)\n\s+/32 host LOCAL", text)
    outside = sorted({address for address in found if not address.startswith("127.")})
    return outside or "none but its own"


def routes_v4(text: str | None) -> object:
    if text is None or not text.startswith("Iface"):
        return NOT_READ
    return sorted({line.split()[0] for line in text.splitlines()[1:] if line.split()})


def interfaces_v6(text: str | None) -> object:
    """The interfaces, but ``lo``, that have a line in one of the two IPv6 files: it ends in the interface's name."""
    if text is None:
        return NOT_READ
    return sorted({line.split()[-1] for line in text.splitlines() if line.split()} - {"lo"})


def unescaped(field: str) -> str:
    r"""mountinfo writes space, tab, newline and backslash as ``\040`` and so on (proc_pid_mountinfo(5))."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)


class Mounted(NamedTuple):
    """One line of mountinfo: what of its file system is mounted, that one's type, the mount's options, its own."""

    root: str
    kind: str
    options: frozenset[str]
    own: frozenset[str]


def compare_mounts(
    compare: Comparison, policy: Policy, identity: Identity, text: str | None, container_id: str | None
) -> None:
    seen: dict[str, Mounted] = {}
    wrong: list[str] = []
    for line in (text or "").splitlines():
        left, _, right = line.partition(" - ")
        before, after = left.split(" "), right.split(" ")
        if len(before) < 6 or len(after) < 3:
            wrong.append("a line that cannot be read")
            continue
        point = unescaped(before[4])
        if point in seen or rule(point, after[0]) is None:
            wrong.append(point)
        options, own = frozenset(before[5].split(",")), frozenset(after[2].split(","))
        seen[point] = Mounted(unescaped(before[3]), after[0], options, own)
    compare.require("mounts", "only the box's own", wrong, met=not wrong)
    compare.require("mounts missing", [], [point for point in REQUIRED_MOUNTS if point not in seen])
    sizes = bounded_folders(policy, identity)
    for point, found in sorted(seen.items()):
        allowed = rule(point, found.kind)
        if allowed is None:
            continue
        kinds = found.kind in allowed.types if allowed.types else found.kind not in KERNEL_MADE
        compare.require(
            f"mount {point}",
            [*sorted(allowed.types), *sorted(allowed.options)],
            [found.kind, *sorted(found.options)],
            met=kinds and allowed.options <= found.options,
        )
        if point in sizes:
            compare.require(f"size of {point}", sorted(sizes[point]), sorted(found.own), met=sizes[point] <= found.own)
        if point in ENGINE_FILES:
            # The engine keeps these three for each container, in a folder named after it.
            met = found.root.endswith(point.removeprefix("/etc")) and (container_id or "") in found.root
            compare.require(f"source of {point}", "the engine's own file", found.root, met)


def rule(point: str, kind: str) -> Mount | None:
    """With cgroup v2 the one cgroup tree itself is at the place of v1's folder of trees."""
    if V1_CGROUP_MOUNT.match(point) or (point == "/sys/fs/cgroup" and kind == "cgroup2"):
        return CGROUP_MOUNT
    return MOUNTS.get(point)


def bounded_folders(policy: Policy, identity: Identity) -> dict[str, frozenset[str]]:
    """What tmpfs shows of itself (mm/shmem.c, shmem_show_options): size in KiB, inodes, owner, mode without a 0."""
    own = {f"uid={identity.uid}", f"gid={identity.uid}", f"nr_inodes={policy.inodes}", "mode=700"}
    return {
        "/box": frozenset({f"size={policy.work_bytes // 1024}k", *own}),
        "/tmp": frozenset({f"size={policy.temporary_bytes // 1024}k", *own}),  # noqa: S108
        "/dev/shm": frozenset({f"size={policy.shared_memory_bytes // 1024}k", *own}),  # noqa: S108
    }
