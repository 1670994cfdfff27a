"""Reads the Linux kernel's files about one box, from outside it. Trusted; standard library only.

``look``, ``meters``, ``standing`` and ``host`` are called on this computer where the engine's kernel is its own, and
run as a container's program otherwise (``main``): host pid and cgroup namespaces, no capabilities, its own uid,
read-only, no network. There it answers one line of JSON for each line of JSON, and ends at the end of stdin.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    Folders = Mapping[str, str]

PROC_FILES = (
    "status", "limits", "mountinfo", "cgroup",
    "net/dev", "net/route", "net/if_inet6", "net/ipv6_route", "net/fib_trie",
)  # fmt: skip
LIMIT_FILES = {
    1: (
        "memory/memory.limit_in_bytes", "memory/memory.memsw.limit_in_bytes", "pids/pids.max",
        "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us",
    ),
    2: ("memory.max", "memory.swap.max", "pids.max", "cpu.max"),
}  # fmt: skip
METER_FILES = {
    1: (
        "memory/memory.max_usage_in_bytes", "memory/memory.oom_control", "pids/pids.peak", "pids/pids.events",
        "cpuacct/cpuacct.usage", "cpu/cpu.stat",
    ),
    2: ("memory.peak", "memory.events", "pids.peak", "pids.events", "cpu.stat"),
}  # fmt: skip
HOST_FILES = {
    "boot_id": "proc/sys/kernel/random/boot_id",
    "release": "proc/sys/kernel/osrelease",
    "vendor": "sys/class/dmi/id/sys_vendor",
    "product": "sys/class/dmi/id/product_name",
    "hypervisor": "sys/hypervisor/type",
}
"""What tells one kernel from another, and what the machine below it says that it is."""
LARGEST = 65536


def read(path: str) -> str | None:
    """The whole text: one read of a kernel file may stop after a page. None too for one that is larger than any
    sealed box has, since what a part of it does not show may stand in the rest."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError:
        return None
    return data.decode("utf-8", "replace") if len(data) <= LARGEST else None


def start_time(proc: str, pid: int) -> str | None:
    """Field 22 of /proc/PID/stat; the command in field 2 may hold anything, so count from its closing bracket."""
    text = read(f"{proc}/{pid}/stat")
    return None if text is None else text.rpartition(")")[2].split()[19]


def cgroup_folders(text: str | None, container_id: str) -> dict[str, str]:
    """Controller ("" for v2) to the box's folder under the cgroup mount; only paths that hold the container's id."""
    folders = {}
    for line in (text or "").splitlines():
        _number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if container_id not in path or ".." in path.split("/"):
            continue
        for controller in controllers.split(","):
            folders[controller.removeprefix("name=")] = path
    return folders


def version_of(folders: Folders) -> int:
    return 1 if "memory" in folders else 2


def cgroup_texts(names: Iterable[str], folders: Folders, cgroups: str) -> dict[str, str | None]:
    texts = {}
    for name in names:
        controller, slash, file = name.rpartition("/")
        folder = folders.get(controller if slash else "")
        texts["cgroup:" + name] = None if folder is None else read(f"{cgroups}/{controller}{folder}/{file}")
    return texts


def look(pid: int, container_id: str, proc: str = "/proc", cgroups: str = "/sys/fs/cgroup") -> dict[str, Any] | None:
    """All the files about the process ``pid``, which must be in the cgroup of ``container_id``, and its folders.

    Returns None where there is no such process, or it is another one than it was when the reading began.
    """
    began = start_time(proc, pid)
    texts = {name: read(f"{proc}/{pid}/{name}") for name in PROC_FILES}
    folders = cgroup_folders(texts["cgroup"], container_id)
    if began is None or not folders:
        return None
    version = version_of(folders)
    texts.update(cgroup_texts(LIMIT_FILES[version] + METER_FILES[version], folders, cgroups))
    if start_time(proc, pid) != began:
        return None
    boot_id = read(f"{proc}/sys/kernel/random/boot_id")
    return {"texts": texts, "folders": folders, "boot_id": boot_id, "started": began}


def meters(folders: Folders, cgroups: str = "/sys/fs/cgroup") -> dict[str, str | None]:
    """The meters of the cgroup in ``folders``, as texts."""
    return cgroup_texts(METER_FILES[version_of(folders)], folders, cgroups)


def standing(folders: Folders, cgroups: str = "/sys/fs/cgroup") -> list[str]:
    """Which of the cgroup folders still exist."""
    version = version_of(folders)
    checked = folders.items() if version == 1 else [("", folders.get("", ""))]
    return sorted(c for c, path in checked if path and os.path.isdir(f"{cgroups}/{c}{path}"))


def host(root: str = "/") -> dict[str, str | None]:
    """The texts of ``HOST_FILES``, and under "flag" whether the first processor says that it is a virtual machine's
    ("yes", "no"; None where it does not say, as on arm64)."""
    texts = {name: read(root + path) for name, path in HOST_FILES.items()}
    try:
        with open(root + "proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            flags = file.read(8192).partition("\nflags")[2].partition("\n")[0].split()
    except OSError:
        flags = []
    return {**texts, "flag": None if not flags else "yes" if "hypervisor" in flags else "no"}


def main() -> None:
    cgroups = sys.argv[1]
    for line in sys.stdin:
        request = json.loads(line)
        answer: object
        if request["do"] == "look":
            answer = look(int(request["pid"]), request["id"], "/proc", cgroups)
        elif request["do"] == "meters":
            answer = meters(request["folders"], cgroups)
        elif request["do"] == "host":
            answer = host()
        else:
            answer = standing(request["folders"], cgroups)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
