"""A box that is not made as asked never gets the program: each setting in turn, on the real engine.

The engine between (``AlteredEngine``) makes a real container that differs in one setting. First it owns up to it, and
its record shows it. Then it lies about it, and the kernel's files, or the tries inside the box, show it all the same.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pybox_kernel.boxes.journal import Journal
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.images.store import RecordedImage
from pybox_kernel.policy import MIB, STDLIB
from pybox_kernel.receipt.model import NotAsRequired, Receipt
from pybox_kernel.seal import seccomp
from pybox_kernel.seal.spec import Identity, container_config
from pybox_kernel.sessions.session import Session
from tests.boxes.altered import AlteredEngine, Change
from tests.conftest import Outside

pytestmark = pytest.mark.engine

MARK = b"b1f7 bytes of the program"
SOURCE = b"print('" + MARK + b"')"
NETWORK = f"pybox-test-network-{os.getpid()}"
NEIGHBOUR = f"pybox-test-neighbour-{os.getpid()}"
OWN_FILTER = f"seccomp={seccomp.PROFILE_JSON}"


class Case(NamedTuple):
    """One setting changed, and what must be said of it: ``{uid}`` stands for the box's own."""

    name: str
    change: Change
    setting: str
    wanted: str
    found: str


# Changes


def host(**settings: Any) -> Change:
    return lambda config: config["HostConfig"].update(settings)


def top(**settings: Any) -> Change:
    return lambda config: config.update(settings)


def without(name: str) -> Change:
    return lambda config: (config if name in config else config["HostConfig"]).pop(name)


def both(*changes: Change) -> Change:
    def change(config: dict[str, Any]) -> None:
        for each in changes:
            each(config)

    return change


def folder(place: str, old: str, new: str) -> Change:
    """Changes one option of a folder in memory."""

    def change(config: dict[str, Any]) -> None:
        options = config["HostConfig"]["Tmpfs"][place].split(",")
        at = next(number for number, option in enumerate(options) if option.partition("=")[0] == old)
        options[at : at + 1] = [new] if new else []
        config["HostConfig"]["Tmpfs"][place] = ",".join(options)

    return change


def folders(**places: str | None) -> Change:
    def change(config: dict[str, Any]) -> None:
        for name, options in places.items():
            place = "/" + name.replace("_", "/")
            if options is None:
                del config["HostConfig"]["Tmpfs"][place]
            else:
                config["HostConfig"]["Tmpfs"][place] = options

    return change


def limit(name: str, value: int | None) -> Change:
    """Sets one limit of a process, or drops it."""

    def change(config: dict[str, Any]) -> None:
        kept = [each for each in config["HostConfig"]["Ulimits"] if each["Name"] != name]
        own = [] if value is None else [{"Name": name, "Soft": value, "Hard": value}]
        config["HostConfig"]["Ulimits"] = kept + own

    return change


def label(name: str, value: str | None) -> Change:
    def change(config: dict[str, Any]) -> None:
        config["Labels"]["org.pybox." + name] = value
        if value is None:
            del config["Labels"]["org.pybox." + name]

    return change


def filtered(profile: str, *, no_new_privileges: bool = True) -> Change:
    options = ["no-new-privileges"] * no_new_privileges + ([f"seccomp={profile}"] if profile else [])
    return host(SecurityOpt=options)


def allowing(*names: str) -> str:
    """PyBox's profile with these calls allowed as well, whatever their arguments."""
    profile = seccomp.profile()
    bound = [rule for rule in profile["syscalls"] if set(names) & set(rule["names"])]
    free = {name for rule in bound for name in rule["names"]} | set(names)
    profile["syscalls"] = [rule for rule in profile["syscalls"] if rule not in bound]
    profile["syscalls"].append({"names": sorted(free), "action": "SCMP_ACT_ALLOW"})
    return json.dumps(profile)


# (a) The engine's own record

PLACES = ("/box", "/tmp", "/dev/shm")
ASKED_FOLDERS = container_config(STDLIB, Identity("", 4242, "", {}))["HostConfig"]["Tmpfs"]
OTHER_OPTIONS = {
    "rw": "ro",
    "nosuid": "suid",
    "nodev": "dev",
    "noexec": "exec",
    "size": "size=33554432",
    "nr_inodes": "nr_inodes=2048",
    "uid": "uid=0",
    "gid": "gid=0",
    "mode": "mode=1777",
}

RECORDED = [
    Case("not removed at its end", without("AutoRemove"), "removed when it ends", "yes", "no"),
    Case("privileges kept", without("CapDrop"), "privileges dropped", "ALL", "nothing"),
    Case("one privilege dropped", host(CapDrop=["NET_RAW"]), "privileges dropped", "ALL", "NET_RAW"),
    Case("cgroups shown", host(CgroupnsMode="host"), "view of other cgroups", "private", "host"),
    Case("ipc shared", host(IpcMode="shareable"), "shared memory with others", "private", "shareable"),
    Case("ipc of the host", host(IpcMode="host"), "shared memory with others", "private", "host"),
    Case("engine log", host(LogConfig={"Type": "json-file"}), "engine log", "Type: none", "Type: json-file"),
    Case("no memory limit", both(without("Memory"), without("MemorySwap")), "memory", "128 MB", "no limit"),
    Case("more memory", host(Memory=256 * MIB, MemorySwap=256 * MIB), "memory", "128 MB", "256 MB"),
    Case("default swap", without("MemorySwap"), "memory with swap", "128 MB", "256 MB"),
    Case("swap without limit", host(MemorySwap=-1), "memory with swap", "128 MB", "no limit"),
    Case("no processor limit", without("NanoCpus"), "processor share", "0.5", "no limit"),
    Case("more processor", host(NanoCpus=10**9), "processor share", "0.5", "1.0"),
    Case("a network", host(NetworkMode=NETWORK), "network", "none", NETWORK),
    Case("the host's network", host(NetworkMode="host"), "networks", "none", "host"),
    Case(
        "a neighbour's network",
        both(without("Hostname"), without("Dns"), host(NetworkMode=f"container:{NEIGHBOUR}")),
        "network",
        "none",
        "container:",
    ),
    Case("no task limit", without("PidsLimit"), "number of tasks", "32", "no limit"),
    Case("more tasks", host(PidsLimit=64), "number of tasks", "32", "64"),
    Case("writable system folder", without("ReadonlyRootfs"), "read-only system folder", "yes", "no"),
    Case(
        "restarted",
        both(without("AutoRemove"), host(RestartPolicy={"Name": "always"})),
        "restart",
        "Name: no",
        "Name: always",
    ),
    Case("more shared memory", host(ShmSize=64 * MIB), "shared memory size", "1 MB", "64 MB"),
    Case("default shared memory", without("ShmSize"), "shared memory size", "1 MB", "64 MB"),
    Case(
        "new privileges", filtered(seccomp.PROFILE_JSON, no_new_privileges=False), "system call filter", "no-new", "Py"
    ),
    Case("no filter", filtered("unconfined"), "system call filter", "PyBox's own filter", "seccomp=unconfined"),
    Case("the engine's filter", filtered(""), "system call filter", "PyBox's own filter", "no-new-privileges"),
    Case("one more call", filtered(allowing("io_uring_enter")), "system call filter", "PyBox's own", "another filter"),
    Case("default first call", filtered(allowing("keyctl")), "system call filter", "PyBox's own", "another filter"),
    Case(
        "one more option",
        host(SecurityOpt=["no-new-privileges", OWN_FILTER, "label=disable"]),
        "system call filter",
        "PyBox's own filter, no-new-privileges",
        "PyBox's own filter, label=disable, no-new-privileges",
    ),
    *(
        Case(f"{place} without {option}", folder(place, option, ""), f"folder in memory {place}", option, "rw,nosuid")
        for place in PLACES
        for option in OTHER_OPTIONS
        if option not in ("rw", "nosuid")
    ),
    *(
        Case(f"{place} with {other}", folder(place, option, other), f"folder in memory {place}", option, other)
        for place in PLACES
        for option, other in OTHER_OPTIONS.items()
    ),
    *(
        Case(
            f"no {place}", folders(**{place[1:].replace("/", "_"): None}), f"folder in memory {place}", "rw", "nothing"
        )
        for place in PLACES
    ),
    Case("one more folder in memory", folders(more=""), "folder in memory /more", "nothing", "no options"),
    *(
        Case(f"no limit {name}", limit(name, None), f"limit of a process {name}", str(wanted), "nothing")
        for name, wanted in (
            ("core", STDLIB.core_bytes),
            ("memlock", STDLIB.locked_memory_bytes),
            ("msgqueue", STDLIB.message_queue_bytes),
            ("nofile", STDLIB.open_files),
        )
    ),
    Case("no core", limit("core", 0), "limit of a process core", "1, 1", "0, 0"),
    Case("more open files", limit("nofile", 1024), "limit of a process nofile", "128, 128", "1024, 1024"),
    Case("more locked memory", limit("memlock", MIB), "limit of a process memlock", "65536, 65536", "1 MB, 1 MB"),
    Case("message queues", limit("msgqueue", 819200), "limit of a process msgqueue", "0, 0", "819200, 819200"),
    Case("one more limit", limit("nproc", 10), "limit of a process nproc", "nothing", "10, 10"),
    Case("a folder", host(Binds=["/etc:/srv:ro"]), "folders of this computer", "nothing", "/etc:/srv:ro"),
    Case(
        "a mount",
        host(Mounts=[{"Type": "bind", "Source": "/etc", "Target": "/srv", "ReadOnly": True}]),
        "folders of this computer",
        "nothing",
        "Source: /etc",
    ),
    Case(
        "a mount of memory", host(Mounts=[{"Type": "tmpfs", "Target": "/more"}]), "folders of this", "nothing", "/more"
    ),
    Case("a volume", top(Volumes={"/data": {}}), "volumes", "nothing", "/data"),
    Case("a neighbour's volumes", host(VolumesFrom=[NEIGHBOUR]), "folders of other containers", "nothing", NEIGHBOUR),
    Case("a volume driver", host(VolumeDriver="local"), "VolumeDriver", "nothing", "local"),
    Case("a privilege", host(CapAdd=["NET_ADMIN"]), "privileges added", "nothing", "NET_ADMIN"),
    Case("a group", host(GroupAdd=["4243"]), "more groups", "nothing", "4243"),
    Case("this computer's name servers", without("Dns"), "name server", "127.0.0.1", "nothing"),
    Case("this computer's name server options", without("DnsOptions"), "DnsOptions", "attempts:1", "nothing"),
    Case("this computer's domains", without("DnsSearch"), "DnsSearch", ".", "nothing"),
    Case("a name server", host(Dns=["192.0.2.1"]), "name server", "127.0.0.1", "192.0.2.1"),
    Case("name server options", host(DnsOptions=["ndots:3"]), "DnsOptions", "attempts:1", "ndots:3"),
    Case("a search domain", host(DnsSearch=["example.org"]), "DnsSearch", ".", "example.org"),
    Case("a host", host(ExtraHosts=["db:192.0.2.1"]), "more hosts", "nothing", "db:192.0.2.1"),
    Case("a link", host(Links=[f"{NEIGHBOUR}:db"]), "links to other containers", "nothing", f"/{NEIGHBOUR}:"),
    Case("a port", host(PortBindings={"80/tcp": [{}]}), "published ports", "nothing", "80/tcp"),
    Case("all ports", host(PublishAllPorts=True), "published ports", "nothing", "yes"),
    Case("an exposed port", top(ExposedPorts={"80/tcp": {}}), "published ports", "nothing", "80/tcp"),
    Case("another process 1", host(Init=True), "another process 1", "nothing", "yes"),
    Case("the host's processes", host(PidMode="host"), "view of other processes", "nothing", "host"),
    Case(
        "a neighbour's processes",
        host(PidMode=f"container:{NEIGHBOUR}"),
        "view of other processes",
        "nothing",
        "container:",
    ),
    Case("the host's name", both(without("Hostname"), host(UTSMode="host")), "host name shared", "nothing", "host"),
    Case("the host's users", host(UsernsMode="host"), "user namespace shared", "nothing", "host"),
    Case("privileged", host(Privileged=True), "privileged", "nothing", "yes"),
    Case(
        "a device",
        host(Devices=[{"PathOnHost": "/dev/zero", "PathInContainer": "/dev/mem0", "CgroupPermissions": "rwm"}]),
        "devices",
        "nothing",
        "/dev/mem0",
    ),
    Case("a device rule", host(DeviceCgroupRules=["c 1:1 rwm"]), "DeviceCgroupRules", "nothing", "c 1:1 rwm"),
    Case("a graphics card", host(DeviceRequests=[{"Capabilities": [["gpu"]]}]), "devices", "nothing", "gpu"),
    Case("a kernel setting", host(Sysctls={"net.ipv4.ip_forward": "1"}), "kernel settings", "nothing", "ip_forward"),
    Case("harder to kill", host(OomScoreAdj=-500), "OomScoreAdj", "nothing", "-500"),
    Case("a little harder to kill", host(OomScoreAdj=-1), "OomScoreAdj", "nothing", "-1"),
    Case("never killed", host(OomKillDisable=True), "OomKillDisable", "nothing", "yes"),
    Case("more processor than others", host(CpuShares=4096), "CpuShares", "nothing", "4096"),
    Case("one processor", host(CpusetCpus="0"), "CpusetCpus", "nothing", "0"),
    Case("one memory node", host(CpusetMems="0"), "CpusetMems", "nothing", "0"),
    Case("another period", host(NanoCpus=0, CpuPeriod=10**6, CpuQuota=5 * 10**5), "CpuPeriod", "nothing", "1000000"),
    Case("soft memory", host(MemoryReservation=64 * MIB), "MemoryReservation", "nothing", "64 MB"),
    Case("another parent", host(CgroupParent="/pybox-test"), "cgroup above its own", "nothing", "/pybox-test"),
    Case("nothing hidden", host(MaskedPaths=[]), "hidden kernel files", "/proc/kcore", "nothing"),
    Case("one hidden less", host(MaskedPaths=["/proc/keys"]), "hidden kernel files", "/proc/kcore", "/proc/keys"),
    Case("nothing read-only", host(ReadonlyPaths=[]), "read-only kernel files", "/proc/sys", "nothing"),
    Case("another entry", top(Entrypoint=["/usr/bin/env"]), "first program", "nothing", "/usr/bin/env"),
    Case(
        "another command",
        lambda config: config["Cmd"].append("PYTHONPATH=/tmp"),
        "first program",
        "…",
        "…, PYTHONPATH=/tmp",
    ),
    Case("a variable", top(Env=["LD_PRELOAD=/x.so"]), "environment LD_PRELOAD", "nothing", "/x.so"),
    Case("another path", top(Env=["PATH=/tmp", "LANG=C.UTF-8"]), "environment PATH", "/usr/local/bin", "/tmp"),
    Case("another locale", top(Env=["LANG=tr_TR"]), "environment LANG", "C.UTF-8", "tr_TR"),
    Case("a health check", top(Healthcheck={"Test": ["CMD", "true"]}), "health check", "NONE", "CMD, true"),
    Case("the image's health check", without("Healthcheck"), "health check", "NONE", "nothing"),
    Case("another host name", top(Hostname="other"), "host name", "box", "other"),
    Case("a domain", top(Domainname="example.org"), "domain name", "nothing", "example.org"),
    Case("attached in", top(AttachStdin=True), "AttachStdin", "no", "yes"),
    Case("attached out", top(AttachStdout=True), "AttachStdout", "no", "yes"),
    Case("attached err", top(AttachStderr=True), "AttachStderr", "no", "yes"),
    Case("no stdin", top(OpenStdin=False), "ends with its supervisor", "yes", "no"),
    Case("stdin stays", top(StdinOnce=False), "ends with its supervisor", "yes", "no"),
    Case("a terminal", top(Tty=True), "terminal", "no", "yes"),
    Case("root", top(User="0:0"), "user", "{uid}:{uid}", "0:0"),
    Case("the image's user", without("User"), "user", "{uid}:{uid}", "nothing"),
    Case("root's group", lambda c: c.update(User=c["User"].partition(":")[0]), "user", "{uid}:{uid}", "{uid}"),
    Case("another folder", top(WorkingDir="/"), "working directory", "/box", "/"),
    Case("a stop signal", top(StopSignal="SIGKILL"), "StopSignal", "nothing", "SIGKILL"),
    Case("a stop time", top(StopTimeout=30), "StopTimeout", "nothing", "30"),
    Case("a shell", top(Shell=["/bin/bash"]), "Shell", "nothing", "/bin/bash"),
    Case("no session label", label("session", None), "label org.pybox.session", "", "nothing"),
    Case("another expiry", label("expires", "99999999999"), "label org.pybox.expires", "1", "99999999999"),
]


# (b) The Linux kernel, (c) the inside of the box

TMP_SIZE = f"size={STDLIB.temporary_bytes // 1024}k"

SEEN_BY_THE_KERNEL = [
    Case("no memory limit", both(without("Memory"), without("MemorySwap")), "memory", "128 MB", "no limit"),
    Case("more memory", host(Memory=256 * MIB, MemorySwap=256 * MIB), "memory", "128 MB", "256 MB"),
    Case("swap", host(MemorySwap=256 * MIB), "memory with swap", "128 MB", "256 MB"),
    Case("swap without limit", host(MemorySwap=-1), "memory with swap", "128 MB", "no limit"),
    Case("no processor limit", without("NanoCpus"), "processor share", "0.5", "no limit"),
    Case("more processor", host(NanoCpus=10**9), "processor share", "0.5", "1.0"),
    Case("no task limit", without("PidsLimit"), "number of tasks", "32", "no limit"),
    Case("more tasks", host(PidsLimit=64), "number of tasks", "32", "64"),
    Case("root", top(User="0:0"), "user", "{uid}", "0, 0, 0, 0"),
    Case("another user", top(User="4242:4242"), "user", "{uid}", "4242"),
    Case("root's group", lambda c: c.update(User=c["User"].partition(":")[0]), "group", "{uid}", "0, 0, 0, 0"),
    Case("a group", host(GroupAdd=["4243"]), "more groups", "{uid}", "4243"),
    Case("privileges kept", without("CapDrop"), "privileges", "none", "a80425fb"),
    Case("a privilege", host(CapAdd=["NET_ADMIN"]), "privileges", "none", "1000"),
    # With PyBox's own filter the runtime cannot even start a box that may gain privileges.
    Case("new privileges", filtered("", no_new_privileges=False), "no new privileges", "1", "0"),
    Case("no filter", filtered("unconfined"), "system call filter on", "2", "0"),
    Case("privileged", host(Privileged=True), "privileges", "none", "ffff"),
    Case("a network", host(NetworkMode=NETWORK), "network", "no network connection", "eth0"),
    Case("the host's network", host(NetworkMode="host"), "network", "no network connection", "e"),
    Case(
        "a neighbour's network",
        both(without("Hostname"), without("Dns"), host(NetworkMode=f"container:{NEIGHBOUR}")),
        "network",
        "no network connection",
        "eth0",
    ),
    Case("a folder", host(Binds=["/etc:/srv:ro"]), "mounts", "only the box's own", "/srv"),
    Case(
        "a folder over a file", host(Binds=["/etc/passwd:/etc/hosts:ro"]), "source of /etc/hosts", "own", "/etc/passwd"
    ),
    Case(
        "a folder among the cgroups",
        host(Binds=["/etc:/sys/fs/cgroup/etc:ro"]),
        "mount /sys/fs/cgroup/etc",
        "cgroup",
        "relatime",
    ),
    Case("a folder as /box", both(folders(box=None), host(Binds=["/srv:/box"])), "mount /box", "tmpfs", "relatime"),
    Case("forty folders", folders(**{f"more{n}": "" for n in range(40)}), "mounts", "only the box's own", "/more"),
    Case("a volume", top(Volumes={"/data": {}}), "mounts", "only the box's own", "/data"),
    Case("a neighbour's volumes", host(VolumesFrom=[NEIGHBOUR]), "mounts", "only the box's own", "/data"),
    Case("another process 1", host(Init=True), "mounts", "only the box's own", "init"),
    Case("nothing hidden", host(MaskedPaths=[]), "mounts missing", "nothing", "/sys/firmware"),
    Case("nothing read-only", host(ReadonlyPaths=[]), "mounts missing", "nothing", "/proc/sys"),
    Case("no /box", folders(box=None), "mounts missing", "nothing", "/box"),
    Case("no /tmp", folders(tmp=None), "mounts missing", "nothing", "/tmp"),
    Case("the engine's /dev/shm", folders(dev_shm=None), "size of /dev/shm", "nr_inodes=1024", "size=1024k"),
    Case("/tmp with exec", folder("/tmp", "noexec", "exec"), "mount /tmp", "noexec", "tmpfs, nodev, nosuid"),
    Case("/tmp with suid", folder("/tmp", "nosuid", "suid"), "mount /tmp", "nosuid", "tmpfs, nodev, noexec"),
    Case("/tmp with dev", folder("/tmp", "nodev", "dev"), "mount /tmp", "nodev", "tmpfs, noexec, nosuid"),
    Case("/tmp without size", folder("/tmp", "size", ""), "size of /tmp", TMP_SIZE, "nr_inodes=1024, rw, uid="),
    Case(
        "/tmp without inodes", folder("/tmp", "nr_inodes", ""), "size of /tmp", "nr_inodes=1024", "mode=700, rw, size="
    ),
    Case(
        "/tmp of another mode", folder("/tmp", "mode", "mode=1777"), "size of /tmp", "mode=700", "gid={uid}, nr_inodes"
    ),
    Case("/tmp of root", folder("/tmp", "uid", ""), "size of /tmp", "uid={uid}", "gid={uid}"),
    Case("writable system folder", without("ReadonlyRootfs"), "mount /", "ro", "rw"),
    Case("default open files", limit("nofile", None), "open files", "128, 128", ","),
    Case("more open files", limit("nofile", 1024), "open files", "128, 128", "1024, 1024"),
    Case("default core", limit("core", None), "core dumps", "1, 1", "unlimited"),
    Case("no core", limit("core", 0), "core dumps", "1, 1", "0, 0"),
    Case("more locked memory", limit("memlock", MIB), "locked memory", "65536, 65536", "1048576, 1048576"),
    Case("default message queues", limit("msgqueue", None), "message queues", "0, 0", "819200, 819200"),
    Case("the host's processes", host(PidMode="host"), "own process space", "process 1", ""),
    Case("a neighbour's processes", host(PidMode=f"container:{NEIGHBOUR}"), "own process space", "process 1", ", "),
]

SEEN_BY_ANY_READER = [
    case
    for case in SEEN_BY_THE_KERNEL
    if case.name
    in ("more memory", "more tasks", "more processor", "root's group", "a privilege", "a network", "forty folders",
        "/tmp without size", "more open files", "the host's processes")
]  # fmt: skip


def leaking(config: dict[str, Any]) -> None:
    """One more open file for the first program."""
    config["Cmd"] = ["/bin/sh", "-c", 'exec 5</dev/null; exec "$0" "$@"', *config["Cmd"]]


SEEN_INSIDE = [
    *(
        Case(
            f"{probe[0]} allowed",
            filtered(allowing(probe[0].partition("(")[0])),
            f"forbidden call {probe[0]}",
            "error",
            "",
        )
        for probe in seccomp.PROBES
    ),
    Case("no filter", filtered("unconfined"), "forbidden call unshare(nothing)", "error 1", "allowed"),
    Case("the engine's filter", filtered(""), "forbidden call socket(AF_NETLINK)", "error 1", "allowed"),
    Case("an open file", leaking, "open files at start", "0, 1, 2, 3", "0, 1, 2, 3, 5"),
    Case(
        "a device",
        host(Devices=[{"PathOnHost": "/dev/zero", "PathInContainer": "/dev/mem0", "CgroupPermissions": "rwm"}]),
        "devices",
        "only the plain ones",
        "mem0",
    ),
    Case("a network", host(NetworkMode=NETWORK), "network connections up", "nothing", "eth0"),
    Case("cgroups shown", host(CgroupnsMode="host"), "view of other cgroups", "/", "/"),
    Case("writable system folder", without("ReadonlyRootfs"), "writing to /etc", "read-only", "error 13"),
    Case("root", top(User="0:0"), "writing to /dev", "refused", "allowed"),
    Case("read-only /tmp", folder("/tmp", "rw", "ro"), "writing to /tmp", "allowed", "error 30"),
    Case("more room", folder("/box", "size", "size=33554432"), "room in /box", "bytes: 8 MB", "bytes: 32 MB"),
    Case("more inodes", folder("/dev/shm", "nr_inodes", "nr_inodes=4096"), "room in /dev/shm", "1024", "4096"),
]


# The tests


@pytest.fixture(scope="module", autouse=True)
def neighbours(box_image: RecordedImage, outside: Outside) -> Iterator[None]:
    """A network and a container that a box must have nothing to do with."""
    outside.api.create_network(NETWORK, driver="bridge", internal=True)
    config = {
        "Image": box_image.id,
        "Cmd": ["/bin/sleep", "600"],
        "Volumes": {"/data": {}},
        "HostConfig": {"NetworkMode": NETWORK, "AutoRemove": True},
    }
    try:
        container = outside.api.create_container_from_config(config, NEIGHBOUR)["Id"]
        outside.api.start(container)
        yield
    finally:
        outside.api.remove_container(NEIGHBOUR, force=True, v=True)
        outside.api.remove_network(NETWORK)


@pytest.fixture
def run(home: Path, outside: Outside) -> Callable[[AlteredEngine], Receipt]:
    """Runs the program by an engine; nothing of the box may be left afterwards, whatever it was."""

    def run_by(engine: AlteredEngine) -> Receipt:
        with Session(Journal(home), engine) as session:
            receipt = session.run(SOURCE).receipt
        assert receipt.observed.box.removed is True
        assert receipt.observed.box.id == engine.box
        assert outside.boxes(run=receipt.run.id) == []
        assert outside.api.containers(all=True, filters={"id": engine.box}) == []
        assert outside.cgroups(engine.box) == []
        return receipt

    return run_by


def assert_not_started(receipt: Receipt, engine: AlteredEngine) -> None:
    assert receipt.observed.end.how == "not_started"
    assert MARK not in engine.sent
    assert receipt.said.stdout.bytes == 0
    assert not receipt.observed.seal.before_start


def assert_refused(receipt: Receipt, engine: AlteredEngine, case: Case, look: str) -> None:
    """The program never came near the box, and the receipt says why: what, wanted, found, and what to do."""
    assert_not_started(receipt, engine)
    assert receipt.problem is not None
    assert receipt.problem.code == "not_sealed"
    assert receipt.problem.advice == "Run `pybox-kernel doctor`. Do not switch kernels to get round this."
    seal = receipt.observed.seal
    first = (*seal.engine.differences, *seal.kernel.differences, *seal.inside.differences)[0]
    assert f"{first.setting}: wanted {first.wanted}, found {first.found}" in receipt.problem.message
    found: tuple[NotAsRequired, ...] = getattr(seal, look).differences
    uid = str(receipt.asked.uid)
    wanted_text, found_text = case.wanted.replace("{uid}", uid), case.found.replace("{uid}", uid)
    assert any(
        difference.setting.startswith(case.setting)
        and wanted_text in difference.wanted
        and found_text in difference.found
        and difference.wanted != difference.found
        for difference in found
    ), found


def named(case: Case) -> str:
    return case.name


def test_a_box_made_as_asked_gets_the_program(engine: DockerEngine, run: Callable[[AlteredEngine], Receipt]) -> None:
    """The engine between is not itself the reason why the others are refused."""
    for lies in (False, True):
        altered = AlteredEngine(engine, lies=lies)
        receipt = run(altered)
        assert receipt.ok
        assert receipt.observed.seal.before_start
        assert MARK in altered.sent


@pytest.mark.parametrize("case", RECORDED, ids=named)
def test_a_difference_in_the_engines_record_is_found_before_the_start(
    case: Case, engine: DockerEngine, run: Callable[[AlteredEngine], Receipt]
) -> None:
    altered = AlteredEngine(engine, case.change)
    receipt = run(altered)
    assert_refused(receipt, altered, case, "engine")
    assert "started" not in [step.name for step in receipt.observed.steps]
    assert altered.sent == b""


def test_another_image_is_found_before_the_start(
    engine: DockerEngine, box_image: RecordedImage, run: Callable[[AlteredEngine], Receipt]
) -> None:
    other = box_image.base_image.id
    altered = AlteredEngine(engine, top(Image=other))
    assert_refused(run(altered), altered, Case("", top(), "image", box_image.id, other), "engine")


@pytest.mark.parametrize("case", SEEN_BY_THE_KERNEL, ids=named)
def test_the_kernel_shows_what_the_engine_hides(
    case: Case, engine: DockerEngine, run: Callable[[AlteredEngine], Receipt]
) -> None:
    altered = AlteredEngine(engine, case.change, lies=True)
    receipt = run(altered)
    assert_refused(receipt, altered, case, "kernel")
    assert receipt.observed.seal.engine.differences == ()
    assert receipt.observed.seal.kernel.source == "this computer"


@pytest.mark.parametrize("reader", ["witness container", "the box's own reading"])
@pytest.mark.parametrize("case", SEEN_BY_ANY_READER, ids=named)
def test_each_reader_of_the_kernels_files_shows_it(
    case: Case,
    reader: str,
    engine: DockerEngine,
    run: Callable[[AlteredEngine], Receipt],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYBOX_WITNESS", "container" if reader == "witness container" else "box")
    altered = AlteredEngine(engine, case.change, lies=True)
    receipt = run(altered)
    assert receipt.observed.seal.kernel.source == reader
    assert_refused(receipt, altered, case, "kernel")


@pytest.mark.parametrize("case", SEEN_INSIDE, ids=named)
def test_the_inside_of_the_box_shows_what_the_engine_hides(
    case: Case, engine: DockerEngine, run: Callable[[AlteredEngine], Receipt]
) -> None:
    altered = AlteredEngine(engine, case.change, lies=True)
    receipt = run(altered)
    assert_refused(receipt, altered, case, "inside")
    assert receipt.observed.seal.engine.differences == ()


def test_a_filter_with_one_call_more_is_told_from_the_own_by_the_inside_alone(
    engine: DockerEngine, run: Callable[[AlteredEngine], Receipt]
) -> None:
    altered = AlteredEngine(engine, filtered(allowing("ptrace")), lies=True)
    seal = run(altered).observed.seal
    assert seal.engine.differences == seal.kernel.differences == ()
    assert [each.setting for each in seal.inside.differences] == ["forbidden call ptrace(PTRACE_PEEKTEXT, 0)"]


# A box that is altered on its way


class Act(NamedTuple):
    name: str
    act: Callable[[Outside, str], None]
    recorded: Case
    kernel: Case | None


def update(**settings: int) -> Callable[[Outside, str], None]:
    def act(outside: Outside, box: str) -> None:
        api = outside.api
        answer = api.post(f"{api.base_url}/v1.41/containers/{box}/update", json=settings, timeout=10)
        answer.raise_for_status()

    return act


def connect(outside: Outside, box: str) -> None:
    outside.api.disconnect_container_from_network(box, "none")
    outside.api.connect_container_to_network(box, NETWORK)


def begin_another(outside: Outside, box: str) -> None:
    outside.api.exec_start(outside.api.exec_create(box, ["/bin/sleep", "60"])["Id"], detach=True)


def case(setting: str, wanted: str, found: str) -> Case:
    return Case("", top(), setting, wanted, found)


ACTS = [
    Act(
        "more memory",
        update(Memory=256 * MIB, MemorySwap=256 * MIB),
        case("memory", "128 MB", "256 MB"),
        case("memory", "128 MB", "256 MB"),
    ),
    Act(
        "more processor",
        update(NanoCpus=10**9),
        case("processor share", "0.5", "1.0"),
        case("processor share", "0.5", "1.0"),
    ),
    Act("more tasks", update(PidsLimit=64), case("number of tasks", "32", "64"), case("number of tasks", "32", "64")),
    Act("a network", connect, case("networks", "none", NETWORK), case("network", "no network connection", "eth0")),
]
WHILE_IT_LIVES = [
    *ACTS,
    Act("another program", begin_another, case("other programs started in it", "nothing", ""), None),
]
BEFORE_IT_LIVES = [
    *ACTS,
    Act(
        "another name",
        lambda outside, box: outside.api.rename(box, f"{NEIGHBOUR}-2"),
        case("name", "/pybox-", f"/{NEIGHBOUR}-2"),
        None,
    ),
]


@pytest.mark.parametrize("act", BEFORE_IT_LIVES, ids=lambda act: act.name)
def test_a_box_altered_between_create_and_start_is_refused(
    act: Act, engine: DockerEngine, outside: Outside, run: Callable[[AlteredEngine], Receipt]
) -> None:
    altered = AlteredEngine(engine, before_start=lambda box: act.act(outside, box))
    assert_refused(run(altered), altered, act.recorded, "engine")


@pytest.mark.parametrize("act", WHILE_IT_LIVES, ids=lambda act: act.name)
def test_a_box_altered_between_start_and_the_program_is_refused(
    act: Act, engine: DockerEngine, outside: Outside, run: Callable[[AlteredEngine], Receipt]
) -> None:
    altered = AlteredEngine(engine, after_start=lambda box: act.act(outside, box))
    assert_refused(run(altered), altered, act.recorded, "engine")


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
def test_a_box_altered_after_the_engine_was_asked_is_refused_by_the_kernels_word(
    act: Act, engine: DockerEngine, outside: Outside, run: Callable[[AlteredEngine], Receipt]
) -> None:
    assert act.kernel is not None
    altered = AlteredEngine(engine, after_record=lambda box: act.act(outside, box))
    receipt = run(altered)
    assert_refused(receipt, altered, act.kernel, "kernel")
    assert receipt.observed.seal.engine.differences == ()


# That nothing is left out


def settings_of(config: dict[str, Any]) -> dict[str, Any]:
    """Every single setting of a ``create``, by its path."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        if name == "HostConfig":
            found |= settings_of(value)
        elif name == "Tmpfs":
            for place, options in value.items():
                for option in options.split(","):
                    key, _, rest = option.partition("=")
                    found[f"{place} {key}"] = rest or key
        elif name == "Ulimits":
            found |= {f"limit {each['Name']}": (each["Soft"], each["Hard"]) for each in value}
        elif name == "SecurityOpt":
            found |= {f"option {each.partition('=')[0]}": each for each in value}
        elif name == "Env":
            found |= {f"variable {each.partition('=')[0]}": each for each in value}
        else:
            found[name] = value
    return found


def test_every_setting_that_is_asked_for_is_missing_or_different_in_some_test() -> None:
    asked = container_config(
        STDLIB, Identity("pybox-x", 4242, "sha256:0", {"org.pybox.session": "s", "org.pybox.expires": "1"})
    )
    before = settings_of(asked)
    changed: set[str] = {"Image"}  # test_another_image_is_found_before_the_start
    for each in RECORDED:
        config = copy.deepcopy(asked)
        each.change(config)
        after = settings_of(config)
        changed |= {name for name in before if after.get(name) != before[name]}
    assert set(before) - changed == set()


# Fields of HostConfig that no engine on Linux lets anyone set.
NOT_ON_LINUX = {
    "ConsoleSize",
    "ContainerIDFile",
    "CpuCount",
    "CpuPercent",
    "IOMaximumBandwidth",
    "IOMaximumIOps",
    "Isolation",
}
# Not here: this kernel has no such controller, or the engine no such feature. ``test_seal`` alters each in a record.
NOT_HERE = {
    "BlkioDeviceReadBps", "BlkioDeviceReadIOps", "BlkioDeviceWriteBps", "BlkioDeviceWriteIOps", "BlkioWeight",
    "BlkioWeightDevice", "Cgroup", "CpuRealtimePeriod", "CpuRealtimeRuntime", "KernelMemory", "KernelMemoryTCP",
    "MemorySwappiness", "Runtime", "StorageOpt",
}  # fmt: skip


def test_every_field_that_this_engine_records_is_altered_in_some_test(
    engine: DockerEngine, box_image: RecordedImage
) -> None:
    identity = Identity(f"{NEIGHBOUR}-3", 4242, box_image.id, {})
    asked = container_config(STDLIB, identity)
    made = engine.create(identity.name, asked)
    try:
        record = engine.inspect(made)
    finally:
        engine.remove(made)
    changed: set[str] = set()
    for each in RECORDED:
        config = copy.deepcopy(asked)
        config["Labels"] = {"org.pybox.session": "s", "org.pybox.expires": "1"}
        each.change(config)
        changed |= {name for name, value in config["HostConfig"].items() if value != asked["HostConfig"].get(name)}
        changed |= set(asked["HostConfig"]) - set(config["HostConfig"])
        changed |= {name for name, value in config.items() if value != asked.get(name)}
        changed |= set(asked) - set(config)
    assert set(record["HostConfig"]) - changed - NOT_ON_LINUX - NOT_HERE == set()
    assert set(record["Config"]) - changed - {"Image", "OnBuild"} == set()
