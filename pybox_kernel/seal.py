"""What a sealed box must look like, to three witnesses, and how what they found differs from it.

One table for each witness: the engine's own record, the Linux kernel's files as read from outside, the warden inside.
Each function returns how many settings it compared and the differences; a setting that could not be read is a
difference. Nothing here talks to anything: facts in, differences out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from pybox_kernel import seccomp
from pybox_kernel.counters import V1_UNLIMITED, Unread, number
from pybox_kernel.errors import Difference
from pybox_kernel.policy import MIB, Policy

__all__ = [
    "Identity",
    "Look",
    "cgroup_version",
    "container_config",
    "engine_look",
    "inside_look",
    "kernel_look",
]

PYTHON: Final = "/usr/local/bin/pybox-python"
WARDEN: Final = "/usr/local/lib/pybox/warden.py"
LABEL: Final = "org.pybox."


class Identity(NamedTuple):
    """Which box this is, told apart from every other. ``labels`` are complete, with their ``org.pybox.`` prefix."""

    name: str
    uid: int
    image_id: str
    labels: Mapping[str, str]


class Look(NamedTuple):
    """One witness's comparison."""

    checked: int
    differences: tuple[Difference, ...]


class Comparison:
    """Collects differences; every ``require`` is one setting compared."""

    def __init__(self) -> None:
        self.checked = 0
        self.differences: list[Difference] = []

    def require(self, setting: str, wanted: object, found: object, met: bool | None = None) -> None:
        self.checked += 1
        if not (wanted == found if met is None else met):
            self.differences.append(Difference(setting, shown(wanted), shown(found)))

    def look(self) -> Look:
        return Look(self.checked, tuple(self.differences))


def shown(value: object) -> str:
    """A value in a person's words, short."""
    if value is None or value == "" or value == [] or value == {} or value == ():
        return "nothing"
    if isinstance(value, Unread):
        return f"not readable: {value.why}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and value >= MIB and value % MIB == 0:
        return f"{value // MIB} MB"
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(item) for item in value)[:300]
    return str(value)[:300]


# What is asked of the engine


def tmpfs_options(policy: Policy, identity: Identity) -> dict[str, str]:
    common = "rw,nosuid,nodev,noexec"
    own = f"uid={identity.uid},gid={identity.uid},mode=0700"
    return {
        "/box": f"{common},size={policy.work_bytes},nr_inodes={policy.inodes},{own}",
        "/tmp": f"{common},size={policy.temporary_bytes},nr_inodes={policy.inodes},{own}",  # noqa: S108
        # Over the private /dev/shm that the engine makes, which would be bounded in bytes but not in inodes.
        "/dev/shm": f"{common},size={policy.shared_memory_bytes},nr_inodes={policy.inodes},{own}",  # noqa: S108
    }


def command(policy: Policy) -> list[str]:
    pairs = [f"{name}={value}" for name, value in policy.environment]
    return [PYTHON, "-I", "-S", WARDEN, str(policy.kept_bytes), str(policy.release_seconds), *pairs]


def host_config(policy: Policy, identity: Identity) -> dict[str, Any]:
    """Every setting that is not empty. What is not named here must read back as empty: see ``engine_look``."""
    return {
        "AutoRemove": True,
        "CapDrop": ["ALL"],
        "CgroupnsMode": "private",
        "IpcMode": "private",
        "LogConfig": {"Type": "none", "Config": {}},
        "Memory": policy.memory_bytes,
        "MemorySwap": policy.memory_bytes,
        "NanoCpus": round(policy.cpu_cores * 1e9),
        "NetworkMode": "none",
        "PidsLimit": policy.tasks,
        "ReadonlyRootfs": True,
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "SecurityOpt": ["no-new-privileges", f"seccomp={seccomp.PROFILE_JSON}"],
        "ShmSize": policy.shared_memory_bytes,
        "Tmpfs": tmpfs_options(policy, identity),
        "Ulimits": [
            {"Name": "core", "Soft": policy.core_bytes, "Hard": policy.core_bytes},
            {"Name": "memlock", "Soft": policy.locked_memory_bytes, "Hard": policy.locked_memory_bytes},
            {"Name": "msgqueue", "Soft": policy.message_queue_bytes, "Hard": policy.message_queue_bytes},
            {"Name": "nofile", "Soft": policy.open_files, "Hard": policy.open_files},
        ],
    }


def container_config(policy: Policy, identity: Identity) -> dict[str, Any]:
    """The body of the engine's ``POST /containers/create``."""
    return {
        "AttachStderr": False,
        "AttachStdin": False,
        "AttachStdout": False,
        "Cmd": command(policy),
        "Env": [],
        "Healthcheck": {"Test": ["NONE"]},
        "Hostname": "box",
        "Image": identity.image_id,
        "Labels": dict(identity.labels),
        "OpenStdin": True,
        "StdinOnce": True,
        "Tty": False,
        "User": f"{identity.uid}:{identity.uid}",
        "WorkingDir": "/box",
        "HostConfig": host_config(policy, identity),
    }


# (a) The engine's own record

ENGINE_MASKED: Final = frozenset({"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"})
ENGINE_READ_ONLY: Final = frozenset({"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"})
RUNTIMES: Final = frozenset({"runc", "io.containerd.runc.v2", "crun"})
PLAIN_NAMES: Final = {
    "Memory": "memory",
    "MemorySwap": "memory with swap",
    "NanoCpus": "processor share",
    "NetworkMode": "network",
    "PidsLimit": "number of tasks",
    "ReadonlyRootfs": "read-only system folder",
    "CapDrop": "privileges dropped",
    "CapAdd": "privileges added",
    "SecurityOpt": "system call filter",
    "Tmpfs": "folders in memory",
    "Ulimits": "limits of a process",
    "Binds": "folders of this computer",
    "Mounts": "folders of this computer",
    "IpcMode": "shared memory with others",
    "PidMode": "view of other processes",
    "UTSMode": "host name shared",
    "UsernsMode": "user namespace shared",
    "CgroupnsMode": "view of other cgroups",
    "Devices": "devices",
    "DeviceRequests": "devices",
    "Privileged": "privileged",
    "RestartPolicy": "restart",
    "AutoRemove": "removed when it ends",
    "LogConfig": "engine log",
    "ShmSize": "shared memory size",
    "PortBindings": "published ports",
    "PublishAllPorts": "published ports",
    "GroupAdd": "more groups",
    "ExtraHosts": "more hosts",
    "Runtime": "container runtime",
    "MaskedPaths": "hidden kernel files",
    "ReadonlyPaths": "read-only kernel files",
    "User": "user",
    "OpenStdin": "ends with its supervisor",
    "StdinOnce": "ends with its supervisor",
    "Tty": "terminal",
    "Env": "environment",
    "Cmd": "first program",
    "Entrypoint": "first program",
    "Image": "image",
    "Labels": "labels",
    "WorkingDir": "working directory",
    "Hostname": "host name",
    "Volumes": "volumes",
    "ExposedPorts": "published ports",
    "Healthcheck": "health check",
}


def is_empty(value: object) -> bool:
    """Whether an engine's field says "not set": engines write that in many ways."""
    if isinstance(value, (list, tuple)):
        return all(is_empty(item) for item in value)
    if isinstance(value, dict):
        return not value
    return value is None or value is False or value in ("", 0, "default", -1)


def sorted_limits(value: object) -> object:
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return sorted(value, key=lambda item: str(item.get("Name")))
    return value


def engine_look(policy: Policy, identity: Identity, record: Mapping[str, Any]) -> Look:
    """Compares an engine's ``GET /containers/ID/json`` with what was asked, field by field.

    Every field of ``HostConfig`` that the policy does not set must be empty, also one no version of PyBox has heard of.
    """
    compare = Comparison()
    wanted = host_config(policy, identity)
    host: Mapping[str, Any] = record.get("HostConfig") or {}
    for name in sorted(wanted.keys() | host.keys()):
        plain = PLAIN_NAMES.get(name, name)
        found = host.get(name)
        if name in wanted:
            compare.require(plain, *same_form(name, wanted[name], found))
        elif name == "Runtime":
            compare.require(plain, "runc or crun", found, met=found in RUNTIMES)
        elif name == "MaskedPaths":
            compare.require(plain, sorted(ENGINE_MASKED), found, met=ENGINE_MASKED <= frozenset(found or ()))
        elif name == "ReadonlyPaths":
            compare.require(plain, sorted(ENGINE_READ_ONLY), found, met=ENGINE_READ_ONLY <= frozenset(found or ()))
        elif name == "Isolation" and found == "default":
            compare.require(plain, None, None)
        else:
            compare.require(plain, None, found, met=is_empty(found))
    compare_config(compare, policy, identity, record.get("Config") or {})
    networks = (record.get("NetworkSettings") or {}).get("Networks") or {}
    compare.require("networks", ["none"], sorted(networks))
    compare.require("published ports", None, (record.get("NetworkSettings") or {}).get("Ports") or None)
    compare.require("folders of this computer", None, record.get("Mounts") or None)
    compare.require("image", identity.image_id, record.get("Image"))
    compare.require("name", "/" + identity.name, record.get("Name"))
    compare.require("first program", command(policy), [record.get("Path"), *(record.get("Args") or ())])
    compare.require("other programs started in it", None, record.get("ExecIDs") or None)
    return compare.look()


def same_form(name: str, wanted: Any, found: Any) -> tuple[Any, Any]:
    """Both values in one form, where engines differ in how they write the same thing."""
    if name == "Ulimits":
        return sorted_limits(wanted), sorted_limits(found)
    if name == "LogConfig" and isinstance(found, dict):
        return wanted, {**found, "Config": found.get("Config") or {}}
    if name == "SecurityOpt" and isinstance(found, list):
        plain = ["no-new-privileges" if item == "no-new-privileges:true" else item for item in found]
        if sorted(plain) != sorted(wanted):
            # The profile is long: what differs is said by its length, not shown whole.
            return "no-new-privileges and PyBox's own filter", [str(item)[:60] for item in plain]
        return wanted, wanted
    return wanted, found


def compare_config(compare: Comparison, policy: Policy, identity: Identity, config: Mapping[str, Any]) -> None:
    wanted = container_config(policy, identity)
    for name in ("Cmd", "Hostname", "Image", "OpenStdin", "StdinOnce", "Tty", "User", "WorkingDir", "Healthcheck"):
        compare.require(PLAIN_NAMES[name], wanted[name], config.get(name))
    for name in ("Entrypoint", "Volumes", "ExposedPorts"):
        compare.require(PLAIN_NAMES[name], None, config.get(name) or None)
    # The engine adds nothing here but what the image says; the program's own environment is set by the warden.
    names = sorted(str(entry).partition("=")[0] for entry in config.get("Env") or ())
    allowed = {"PATH", "LANG", "PYTHON_VERSION", "PYTHON_SHA256", "GPG_KEY"}
    compare.require("environment", sorted(allowed), names, met=set(names) <= allowed)
    labels = config.get("Labels") or {}
    ours = {key: labels.get(key) for key in identity.labels}
    compare.require("labels", dict(identity.labels), ours)


# (b) The Linux kernel, about the living box

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
        compare.require(f"mount {point}", [*sorted(allowed.types), *sorted(allowed.options)], [kind, *sorted(options)], met)
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


# (c) The warden, inside

EROFS: Final = 30
EACCES: Final = 13
DEVICES: Final = frozenset(
    {"console", "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout",
     "tty", "urandom", "zero"}
)  # fmt: skip


def inside_look(policy: Policy, report: Mapping[str, Any]) -> Look:
    """Compares what the warden found in the box, before the program's first byte, with the policy."""
    compare = Comparison()
    calls: Mapping[str, Any] = report.get("calls") or {}
    for probe in seccomp.PROBES:
        name, wanted = probe[0], probe[3]
        compare.require(f"forbidden call {name}", f"refused ({wanted})", calls.get(name), met=calls.get(name) == wanted)
    write: Mapping[str, Any] = report.get("write") or {}
    for place in ("/", "/etc", "/usr/local/lib/pybox"):
        compare.require(f"writing to {place}", "read-only", write.get(place), met=write.get(place) == EROFS)
    compare.require("writing to /dev", "refused", write.get("/dev"), met=write.get("/dev") == EACCES)
    room: Mapping[str, Any] = report.get("room") or {}
    for place, size in (
        ("/box", policy.work_bytes),
        ("/tmp", policy.temporary_bytes),  # noqa: S108
        ("/dev/shm", policy.shared_memory_bytes),  # noqa: S108
    ):
        compare.require(f"room in {place}", {"bytes": size, "inodes": policy.inodes}, room.get(place))
    interfaces: Mapping[str, Any] = report.get("interfaces") or {}
    up = sorted(name for name, flags in interfaces.items() if name != "lo" and not is_down(flags))
    compare.require("network connections up", [], up, met="lo" in interfaces and not up)
    compare.require("open files at start", [0, 1, 2, 3], report.get("descriptors"))
    devices = report.get("devices")
    compare.require("devices", "only the plain ones", unknown_devices(devices), met=unknown_devices(devices) == [])
    compare.require("timer out of the program's reach", 0, report.get("dumpable"))
    return compare.look()


def is_down(flags: object) -> bool:
    """``/sys/class/net/NAME/flags`` is hexadecimal; bit 0 is IFF_UP (netdevice(7))."""
    try:
        return int(str(flags), 16) & 1 == 0
    except ValueError:
        return False


def unknown_devices(devices: object) -> list[str] | None:
    if not isinstance(devices, Iterable):
        return None
    return sorted(str(name) for name in devices if name not in DEVICES)
