"""The seal: what is asked of the engine for one box, and the form in which three witnesses compare it.

``by_engine``, ``by_kernel`` and ``by_warden`` hold one table each: the engine's own record, the Linux kernel's
files as read from outside, the warden inside. Each returns how many settings it compared and the differences; a
setting that could not be read is a difference. Nothing here talks to anything: facts in, differences out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pybox_kernel.counters import Unread
from pybox_kernel.errors import Difference
from pybox_kernel.policy import MIB, Policy
from pybox_kernel.seal import seccomp

__all__ = [
    "LABEL",
    "PROGRAMS",
    "PYTHON",
    "WAITING_SECONDS",
    "Comparison",
    "Identity",
    "Look",
    "command",
    "container_config",
    "part",
]

PYTHON: Final = "/usr/local/bin/pybox-python"
"""The interpreter of a box, on whatever base its image is made."""
PROGRAMS: Final = "/usr/local/lib/pybox"
"""Where the programs of ``inside`` lie in a box."""
WARDEN: Final = f"{PROGRAMS}/warden.py"
LABEL: Final = "org.pybox."
LONGEST: Final = 200
"""Characters of a value that are shown of a difference."""
SHOWN_SAME: Final = 4
WAITING_SECONDS: Final = 600.0
"""How long a box waits for its program at the most, whatever became of its supervisor and its engine."""


class Identity(NamedTuple):
    """Which box this is, told apart from every other. ``labels`` are complete, with their ``org.pybox.`` prefix."""

    name: str
    uid: int
    image_id: str
    labels: Mapping[str, str]
    cgroup_parent: str = ""
    """A cgroup of the run's own, where the engine has a place for such: it keeps its counts when the box has gone."""


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
            if isinstance(wanted, list) and isinstance(found, list):
                wanted, found = apart(wanted, found)
            self.differences.append(Difference(setting, shown(wanted), shown(found)))

    def look(self) -> Look:
        return Look(self.checked, tuple(self.differences))


def shown(value: object) -> str:
    """A value in a person's words, short."""
    text = in_words(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 2] + " …"


def in_words(value: object) -> str:
    if value is None or value in ("", [], {}, ()):
        return "nothing"
    if isinstance(value, Unread):
        return f"not readable: {value.why}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and value >= MIB and value % MIB == 0:
        return f"{value // MIB} MB"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {in_words(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(in_words(item) for item in value)
    return str(value)


def apart(wanted: list[Any], found: list[Any]) -> tuple[list[Any], list[Any]]:
    """Two long lists without what both begin with, so that what differs is among what is shown."""
    same = 0
    while same < min(len(wanted), len(found)) and wanted[same] == found[same]:
        same += 1
    return (["…", *wanted[same:]], ["…", *found[same:]]) if same > SHOWN_SAME else (wanted, found)


def part(facts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object under ``name``; an empty one where there is none, so that all that is wanted of it is missed."""
    found = facts.get(name)
    return found if isinstance(found, Mapping) else {}


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
    bounds = (policy.kept_bytes, policy.release_seconds, WAITING_SECONDS)
    return [PYTHON, "-I", "-S", WARDEN, *map(str, bounds), *pairs]


def engine_environment(policy: Policy) -> list[str]:
    """Given to the engine as well, though the warden alone sets the program's: else it puts in a PATH of its own."""
    return [f"{name}={value}" for name, value in policy.environment if name in ("LANG", "PATH")]


def host_config(policy: Policy, identity: Identity) -> dict[str, Any]:
    """Every setting that is not empty. What is not named must read back as empty: see ``engine_look``."""
    return {
        "AutoRemove": True,
        "CapDrop": ["ALL"],
        "CgroupnsMode": "private",
        **({"CgroupParent": identity.cgroup_parent} if identity.cgroup_parent else {}),
        # Where none are named the engine copies this computer's own name servers and domains into the box.
        "Dns": ["127.0.0.1"],
        "DnsOptions": ["attempts:1"],
        "DnsSearch": ["."],
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
        "Env": engine_environment(policy),
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
