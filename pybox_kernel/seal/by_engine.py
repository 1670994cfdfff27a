"""The seal by the engine's own record of a container, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pybox_kernel.policy import Policy
from pybox_kernel.seal import seccomp
from pybox_kernel.seal.runtimes import runtime_in_words, usable
from pybox_kernel.seal.spec import Comparison, Identity, Look, command, container_config, part

__all__ = ["engine_look"]

ENGINE_MASKED: Final = frozenset({"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"})
ENGINE_READ_ONLY: Final = frozenset({"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"})
IMAGE_VARIABLES: Final = frozenset({"GPG_KEY", "PYTHON_SHA256", "PYTHON_VERSION"})
"""What the official Python images put into the environment; it stays with the warden."""
LIMITS: Final = frozenset({"Memory", "MemorySwap", "NanoCpus", "PidsLimit"})
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
    "Tmpfs": "folder in memory",
    "Ulimits": "limit of a process",
    "Binds": "folders of this computer",
    "Mounts": "folders of this computer",
    "IpcMode": "shared memory with others",
    "PidMode": "view of other processes",
    "UTSMode": "host name shared",
    "UsernsMode": "user namespace shared",
    "CgroupParent": "cgroup above its own",
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
    "Dns": "name server",
    "Links": "links to other containers",
    "VolumesFrom": "folders of other containers",
    "Sysctls": "kernel settings",
    "Init": "another process 1",
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
    "Labels": "label",
    "WorkingDir": "working directory",
    "Hostname": "host name",
    "Domainname": "domain name",
    "Volumes": "volumes",
    "ExposedPorts": "published ports",
    "Healthcheck": "health check",
}


def engine_look(policy: Policy, identity: Identity, record: Mapping[str, Any]) -> Look:
    """Compares an engine's ``GET /containers/ID/json`` with what was asked, field by field.

    Every field of ``HostConfig`` and ``Config`` that is not asked for must be empty, also one no version of PyBox has
    heard of.
    """
    compare = Comparison()
    wanted = container_config(policy, identity)
    compare_host(compare, wanted.pop("HostConfig"), part(record, "HostConfig"))
    compare_config(compare, wanted, part(record, "Config"))
    network = part(record, "NetworkSettings")
    compare.require("networks", ["none"], sorted(part(network, "Networks")))
    compare.require("published ports", None, network.get("Ports") or None)
    compare.require("folders of this computer", None, record.get("Mounts") or None)
    compare.require("image", identity.image_id, record.get("Image"))
    compare.require("name", "/" + identity.name, record.get("Name"))
    arguments = record.get("Args")
    started = [record.get("Path"), *(arguments if isinstance(arguments, list) else ())]
    compare.require("first program", command(policy), started)
    compare.require("other programs started in it", None, record.get("ExecIDs") or None)
    return compare.look()


def runtime_in(record: Mapping[str, Any]) -> str | None:
    """The name of the container runtime, as an engine's record has it."""
    name = part(record, "HostConfig").get("Runtime")
    return name if isinstance(name, str) else None


def compare_host(compare: Comparison, wanted: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    for name in sorted(wanted.keys() | host.keys() | {"MaskedPaths", "ReadonlyPaths", "Runtime"}):
        plain, found = PLAIN_NAMES.get(name, name), host.get(name)
        if name == "Tmpfs":
            found = {place: options or "no options" for place, options in part(host, name).items()}
            compare_each(compare, plain, wanted[name], found)
        elif name == "Ulimits":
            compare_each(compare, plain, process_limits(wanted[name]), process_limits(found))
        elif name == "SecurityOpt":
            compare.require(plain, filters(wanted[name]), filters(found))
        elif name == "LogConfig":
            compare.require(plain, wanted[name], {**part(host, name), "Config": part(host, name).get("Config") or {}})
        elif name in LIMITS:
            compare.require(plain, amount(name, wanted[name]), amount(name, found))
        elif name in wanted:
            compare.require(plain, wanted[name], found)
        elif name == "Runtime":
            compare.require(plain, "runc or crun", runtime_in_words(found), met=usable(found))
        elif name == "MaskedPaths":
            compare.require(plain, sorted(ENGINE_MASKED), found, met=has_all(ENGINE_MASKED, found))
        elif name == "ReadonlyPaths":
            compare.require(plain, sorted(ENGINE_READ_ONLY), found, met=has_all(ENGINE_READ_ONLY, found))
        else:
            compare.require(plain, None, found, met=is_empty(found) or (name == "MemorySwappiness" and found == -1))


def compare_config(compare: Comparison, wanted: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    for name in sorted(wanted.keys() | config.keys()):
        plain, found = PLAIN_NAMES.get(name, name), config.get(name)
        if name == "Env":
            theirs = variables(found)
            ours = {key: value for key, value in theirs.items() if key not in IMAGE_VARIABLES}
            compare_each(compare, plain, variables(wanted[name]), ours)
        elif name == "Labels":
            labels = part(config, name)  # the image has some of its own
            compare_each(compare, plain, wanted[name], {key: labels.get(key) for key in wanted[name]})
        elif name in wanted:
            compare.require(plain, wanted[name], found)
        else:
            compare.require(plain, None, found, met=is_empty(found))


def compare_each(compare: Comparison, plain: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    for key in sorted(wanted.keys() | found.keys()):
        compare.require(f"{plain} {key}", wanted.get(key), found.get(key))


def is_empty(value: object) -> bool:
    """Whether an engine's field says "not set": engines write that in many ways."""
    if isinstance(value, (list, tuple)):
        return all(is_empty(item) for item in value)
    if isinstance(value, dict):
        return not value
    return value is None or value is False or value in ("", 0, "default")


def has_all(wanted: frozenset[str], found: object) -> bool:
    return isinstance(found, list) and all(path in found for path in wanted)


def amount(name: str, value: object) -> object:
    if value in (None, 0, -1):
        return "no limit"
    return value / 1e9 if name == "NanoCpus" and isinstance(value, int) else value


def process_limits(value: object) -> dict[str, list[object]]:
    """A limit's name to its soft and hard value, and to more than these where it is given more than once."""
    found: dict[str, list[object]] = {}
    for item in value if isinstance(value, list) else ():
        if isinstance(item, Mapping):
            found.setdefault(str(item.get("Name")), []).extend((item.get("Soft"), item.get("Hard")))
    return found


def filters(options: object) -> list[str]:
    """The security options in few words: a profile is too long to show."""
    words = []
    for item in map(str, options if isinstance(options, list) else ()):
        if item == f"seccomp={seccomp.PROFILE_JSON}":
            words.append("PyBox's own filter")
        elif item.startswith("seccomp={"):
            words.append("another filter")
        else:
            words.append(item.removesuffix(":true")[:60])
    return sorted(words)


def variables(value: object) -> dict[str, str]:
    entries = map(str, value if isinstance(value, list) else ())
    return {name: text for name, _, text in (entry.partition("=") for entry in entries)}
