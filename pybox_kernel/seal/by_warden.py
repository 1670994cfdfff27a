"""The seal by what the warden finds inside the box, before the program's first byte."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pybox_kernel.policy import Policy
from pybox_kernel.seal import seccomp
from pybox_kernel.seal.spec import PROGRAMS, Comparison, Look, part

__all__ = ["inside_look"]

EROFS: Final = 30
EACCES: Final = 13
FOLDERS: Final = ("/box", "/tmp", "/dev/shm")  # noqa: S108
DEVICES: Final = frozenset(
    {"console", "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout",
     "tty", "urandom", "zero"}
)  # fmt: skip


def inside_look(policy: Policy, report: Mapping[str, Any]) -> Look:
    """Compares what the warden found in the box, before the program's first byte, with the policy."""
    compare = Comparison()
    calls, write, room = part(report, "calls"), part(report, "write"), part(report, "room")
    for probe in seccomp.PROBES:
        name, wanted = probe[0], probe[3]
        compare.require(f"forbidden call {name}", f"error {wanted}", answer(calls.get(name)))
    for place in ("/", "/etc", PROGRAMS):
        compare.require(f"writing to {place}", "read-only", answer(write.get(place)), met=write.get(place) == EROFS)
    compare.require("writing to /dev", "refused", answer(write.get("/dev")), met=write.get("/dev") == EACCES)
    for place in ("/box", "/tmp"):  # noqa: S108
        compare.require(f"writing to {place}", "allowed", answer(write.get(place)))
    sizes = (policy.work_bytes, policy.temporary_bytes, policy.shared_memory_bytes)
    for place, size in zip(FOLDERS, sizes, strict=True):
        compare.require(f"room in {place}", {"bytes": size, "inodes": policy.inodes}, room.get(place))
    paths = sorted({line.rpartition(":")[2] for line in str(part(report, "files").get("cgroup")).splitlines()})
    compare.require("view of other cgroups", ["/"], paths)
    interfaces = part(report, "interfaces")
    up = sorted(name for name, flags in interfaces.items() if name != "lo" and not is_down(flags))
    compare.require("network connections up", [], up, met="lo" in interfaces and not up)
    compare.require("open files at start", [0, 1, 2, 3], report.get("descriptors"))
    devices = report.get("devices")
    compare.require("devices", "only the plain ones", unknown_devices(devices), met=unknown_devices(devices) == [])
    compare_rest(compare, report)
    compare.require("timer out of the program's reach", 0, report.get("dumpable"))
    return compare.look()


def compare_rest(compare: Comparison, report: Mapping[str, Any]) -> None:
    """What must be as it was when the box got ready: ``report`` has under "again" what it is now, if it has waited."""
    rest = part(report, "rest")
    now = part(report, "again") if "again" in report else rest
    newest, newest_now = rest.get("newest"), now.get("newest")
    same = isinstance(newest, str) and newest == newest_now
    compare.require("programs begun in it", "none since it was ready", "some" if newest_now else None, met=same)
    taken, taken_now = part(rest, "taken"), part(now, "taken")
    for place in FOLDERS:
        found = taken_now.get(place)
        compare.require(
            f"taken in {place}", taken.get(place), found, met=found is not None and found == taken.get(place)
        )
    state = now.get("runner")
    found = "halted" if state in ("T", "t") else state
    compare.require("the process for the program", "waiting", found, met=state in ("R", "S", "D"))


def answer(number: object) -> object:
    """How the kernel answered a try, in words; ``number`` is 0 or an errno."""
    if isinstance(number, int):
        return f"error {number}" if number else "allowed"
    return number


def is_down(flags: object) -> bool:
    """``/sys/class/net/NAME/flags`` is hexadecimal; bit 0 is IFF_UP (netdevice(7))."""
    try:
        return int(str(flags), 16) & 1 == 0
    except ValueError:
        return False


def unknown_devices(devices: object) -> list[str] | None:
    if not isinstance(devices, list):
        return None
    return sorted(name for name in map(str, devices) if name not in DEVICES)
