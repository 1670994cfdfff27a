"""The seal by the engine's own record of a container, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pybox_kernel.policy import Policy
from pybox_kernel.seal import Comparison, Identity, Look, command, container_config, host_config

__all__ = ["engine_look"]

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
            compare.require(plain, sorted(ENGINE_MASKED), found, met=frozenset(found or ()) >= ENGINE_MASKED)
        elif name == "ReadonlyPaths":
            compare.require(plain, sorted(ENGINE_READ_ONLY), found, met=frozenset(found or ()) >= ENGINE_READ_ONLY)
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
    for name in (
        "Cmd",
        "Hostname",
        "Image",
        "OpenStdin",
        "StdinOnce",
        "Tty",
        "User",
        "WorkingDir",
        "Healthcheck",
    ):
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
