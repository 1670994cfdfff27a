"""What each witness's comparison finds. One fact changed at a time gives exactly that difference; what cannot be read
is a difference; nothing that is read makes a comparison fail. The facts are of a real box (``box_texts``)."""

# ruff: noqa: E501 - the kernel's lines are as long as they are

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybox_kernel.policy import MIB, STDLIB
from pybox_kernel.seal import seccomp
from pybox_kernel.seal.by_engine import engine_look
from pybox_kernel.seal.by_kernel import REQUIRED_MOUNTS, cgroup_version, kernel_look
from pybox_kernel.seal.by_warden import inside_look
from pybox_kernel.seal.spec import Comparison, Identity, Look, command, container_config, shown
from tests.unit.box_texts import ID, UID, V1, V2, V2_SYSTEMD_CGROUP

IDENTITY = Identity(
    "pybox-" + "0" * 32, UID, "sha256:" + "1" * 64, {"org.pybox.session": "2" * 32, "org.pybox.uid": "9"}
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=20), inner, max_size=5),
    max_leaves=15,
)


def kernel(texts: Mapping[str, str | None], container_id: str | None = ID) -> Look:
    return kernel_look(STDLIB, IDENTITY, texts, container_id)


def changed(texts: Mapping[str, str], name: str, old: str, new: str) -> dict[str, str | None]:
    assert texts[name].count(old) >= 1, f"{old!r} is not in {name}"
    return {**texts, name: texts[name].replace(old, new)}


# (b) The kernel's files


@pytest.mark.parametrize("texts", [V1, V2, {**V2, "cgroup": V2_SYSTEMD_CGROUP}], ids=["v1", "v2", "v2 systemd"])
def test_a_sealed_box_shows_no_difference(texts: dict[str, str]) -> None:
    look = kernel(texts)
    assert look.differences == ()
    assert look.checked > 60 if texts is V1 else look.checked > 50


def test_the_box_may_read_itself_inside_its_own_namespaces() -> None:
    texts = {**V1, "status": V1["status"].replace("\t23685", ""), "cgroup": V1["cgroup"].replace(f"docker/{ID}", "")}
    assert kernel(texts, None).differences == ()
    assert "own process space" in {each.setting for each in kernel(texts).differences}


def test_without_ipv6_in_the_kernel_there_is_nothing_to_reach() -> None:
    assert kernel({**V1, "net/if_inet6": None, "net/ipv6_route": None}).differences == ()


IN_BOTH = [
    ("status", f"Uid:\t{UID}", "Uid:\t0", "user", f"0, {UID}, {UID}, {UID}"),
    ("status", f"Uid:\t{UID}\t{UID}\t{UID}\t{UID}", f"Uid:\t{UID}\t{UID}\t{UID}\t0", "user", f"{UID}, {UID}, {UID}, 0"),
    ("status", f"Gid:\t{UID}", "Gid:\t0", "group", f"0, {UID}, {UID}, {UID}"),
    ("status", f"Groups:\t{UID} ", f"Groups:\t0 {UID} ", "more groups", f"0, {UID}"),
    ("status", "CapInh:\t0000000000000000", "CapInh:\t0000000000000400", "privileges", "0000000000000400"),
    ("status", "CapPrm:\t0000000000000000", "CapPrm:\t0000000000000400", "privileges", "0000000000000400"),
    ("status", "CapEff:\t0000000000000000", "CapEff:\t0000000000000400", "privileges", "0000000000000400"),
    ("status", "CapBnd:\t0000000000000000", "CapBnd:\t000001ffffffffff", "privileges", "000001ffffffffff"),
    ("status", "CapAmb:\t0000000000000000", "CapAmb:\t0000000000000400", "privileges", "0000000000000400"),
    ("status", "CapBnd:\t0000000000000000\n", "", "privileges", "nothing"),
    ("status", "State:\tS (sleeping)", "State:\tT (stopped)", "running", "T (stopped)"),
    ("status", "NoNewPrivs:\t1", "NoNewPrivs:\t0", "no new privileges", "0"),
    ("status", "NoNewPrivs:\t1\n", "", "no new privileges", "nothing"),
    ("status", "Seccomp:\t2", "Seccomp:\t0", "system call filter on", "0"),
    ("status", "Seccomp:\t2", "Seccomp:\t1", "system call filter on", "1"),
    ("status", "NSpid:\t23685\t1", "NSpid:\t23685", "own process space", "23685"),
    ("status", "NSpid:\t23685\t1", "NSpid:\t23685\t7", "own process space", "23685, 7"),
    ("limits", "files            128                  128", "files            128                  4096", "open files",
     "128, 4096"),
    ("limits", "core file size        1                    1", "core file size        unlimited            unlimited",
     "core dumps", "unlimited, unlimited"),
    ("limits", "core file size        1", "core file size        0", "core dumps", "0, 1"),
    ("limits", "locked memory         65536                65536", "locked memory         unlimited            unlimited",
     "locked memory", "unlimited, unlimited"),
    ("limits", "msgqueue size         0                    0", "msgqueue size         819200               819200",
     "message queues", "819200, 819200"),
    ("limits", "nice priority         0                    0", "nice priority         0                    40", "priority",
     "0, 40"),
    ("limits", "realtime priority     0                    0", "realtime priority     99                   99", "priority",
     "99, 99"),
    ("net/dev", "    lo:", "  eth0:       0       0    0    0    0     0          0         0        0       0    0\n    lo:",
     "network", "eth0"),
    ("net/route", "IRTT", "IRTT\neth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0", "network routes", "eth0"),
    ("net/route", "Iface", "", "network routes", "not readable: the kernel's file about it is missing"),
    ("net/ipv6_route", "00200200       lo", "00200200     eth0", "network routes (IPv6)", "eth0"),
    ("net/fib_trie", "     |-- 127.255.255.255", "     |-- 172.17.0.2\n        /32 host LOCAL\n     |-- 127.255.255.255",
     "network addresses", "172.17.0.2"),
    ("mountinfo", "/ / ro,relatime", "/ / rw,relatime", "mount /", "overlay, relatime, rw"),
    ("mountinfo", "overlay overlay", "tmpfs overlay", "mount /", "tmpfs, relatime, ro"),
    ("mountinfo", "/proc rw,nosuid,nodev,noexec", "/proc rw,nosuid,nodev", "mount /proc", "proc, nodev, nosuid, relatime, rw"),
    ("mountinfo", "/ /sys ro,nosuid,nodev,noexec", "/ /sys rw,nosuid,nodev,noexec", "mount /sys",
     "sysfs, nodev, noexec, nosuid, relatime, rw"),
    ("mountinfo", "/proc/sys ro,", "/proc/sys rw,", "mount /proc/sys", "proc, nodev, noexec, nosuid, relatime, rw"),
    ("mountinfo", "/box rw,nosuid,nodev,noexec", "/box rw,nosuid,nodev", "mount /box", "tmpfs, nodev, nosuid, relatime, rw"),
    ("mountinfo", "/tmp rw,nosuid,nodev,noexec", "/tmp rw,nosuid,noexec", "mount /tmp", "tmpfs, noexec, nosuid, relatime, rw"),
    ("mountinfo", "/dev/shm rw,nosuid", "/dev/shm rw", "mount /dev/shm", "tmpfs, nodev, noexec, relatime, rw"),
    ("mountinfo", "/ /proc/acpi ro", "/ /proc/acpi rw", "mount /proc/acpi", "tmpfs, relatime, rw"),
    ("mountinfo", f"{ID}/hosts", "other/hosts", "source of /etc/hosts", "/var/lib/docker/containers/other/hosts"),
    ("mountinfo", f"/var/lib/docker/containers/{ID}/resolv.conf", "/etc/resolv.conf", "source of /etc/resolv.conf",
     "/etc/resolv.conf"),
]  # fmt: skip

IN_V1 = [
    ("cgroup:memory/memory.limit_in_bytes", "134217728", "268435456", "memory", "256 MB"),
    ("cgroup:memory/memory.limit_in_bytes", "134217728", "9223372036854771712", "memory", "no limit"),
    ("cgroup:memory/memory.limit_in_bytes", "134217728", "-1", "memory",
     "not readable: memory.limit_in_bytes is not a number"),
    ("cgroup:memory/memory.memsw.limit_in_bytes", "134217728", "9223372036854771712", "memory with swap", "no limit"),
    ("cgroup:pids/pids.max", "32", "max", "number of tasks", "no limit"),
    ("cgroup:pids/pids.max", "32", "64", "number of tasks", "64"),
    ("cgroup:pids/pids.max", "32", "٣٢", "number of tasks", "not readable: pids.max is not a number"),
    ("cgroup:cpu/cpu.cfs_quota_us", "50000", "-1", "processor share", "no limit"),
    ("cgroup:cpu/cpu.cfs_quota_us", "50000", "100000", "processor share", "1.0"),
    ("cgroup:cpu/cpu.cfs_quota_us", "50000", "²", "processor share", "not readable: its quota or period is not a number"),
    ("cgroup:cpu/cpu.cfs_period_us", "100000", "0", "processor share", "no limit"),
    ("cgroup", f"/docker/{ID}", "/", "its own cgroup", "/"),
    ("mountinfo", "cgroup/memory ro,", "cgroup/memory rw,", "mount /sys/fs/cgroup/memory",
     "cgroup, nodev, noexec, nosuid, relatime, rw"),
    ("mountinfo", "- cgroup cgroup rw,memory", "- ext4 /dev/sda rw", "mount /sys/fs/cgroup/memory",
     "ext4, nodev, noexec, nosuid, relatime, ro"),
]  # fmt: skip

IN_V2 = [
    ("cgroup:memory.max", "134217728", "max", "memory", "no limit"),
    ("cgroup:memory.max", "134217728", "268435456", "memory", "256 MB"),
    ("cgroup:memory.swap.max", "0", "max", "swap", "no limit"),
    ("cgroup:memory.swap.max", "0", "4096", "swap", "4096"),
    ("cgroup:pids.max", "32", "max", "number of tasks", "no limit"),
    ("cgroup:cpu.max", "50000 100000", "max 100000", "processor share", "no limit"),
    ("cgroup:cpu.max", "50000 100000", "100000 100000", "processor share", "1.0"),
    ("cgroup:cpu.max", "50000 100000", "50000", "processor share", "not readable: its quota or period is not a number"),
    ("cgroup", f"/docker/{ID}", "/user.slice", "its own cgroup", "/user.slice"),
    ("mountinfo", "/sys/fs/cgroup ro,", "/sys/fs/cgroup rw,", "mount /sys/fs/cgroup",
     "cgroup2, nodev, noexec, nosuid, relatime, rw"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "setting", "found"), [*IN_BOTH, *IN_V1])
def test_one_line_changed_is_one_difference_v1(name: str, old: str, new: str, setting: str, found: str) -> None:
    differences = kernel(changed(V1, name, old, new)).differences
    assert [(each.setting, each.found) for each in differences] == [(setting, found)]


@pytest.mark.parametrize(("name", "old", "new", "setting", "found"), [*IN_BOTH, *IN_V2])
def test_one_line_changed_is_one_difference_v2(name: str, old: str, new: str, setting: str, found: str) -> None:
    differences = kernel(changed(V2, name, old, new)).differences
    assert [(each.setting, each.found) for each in differences] == [(setting, found)]


def test_an_ipv6_address_is_a_difference() -> None:
    texts = {**V1, "net/if_inet6": "fe80000000000000004211fffe110002 05 40 20 80     eth0\n"}
    assert [(each.setting, each.found) for each in kernel(texts).differences] == [("network addresses (IPv6)", "eth0")]


@pytest.mark.parametrize("place", ["/box", "/tmp", "/dev/shm"])
@pytest.mark.parametrize(
    ("option", "other"),
    [
        (r"size=\d+k", "size=65536k"),
        (r"size=\d+k,", ""),
        ("nr_inodes=1024", "nr_inodes=0"),
        ("nr_inodes=1024,", ""),
        ("mode=700", "mode=1777"),
        (f"uid={UID}", "uid=0"),
        (f",uid={UID}", ""),
        (f"gid={UID}", "gid=0"),
    ],
)
def test_each_bound_of_a_folder_in_memory_counts(place: str, option: str, other: str) -> None:
    lines = V1["mountinfo"].splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if f" {place} rw" in line)
    before, lines[at] = lines[at], re.sub(f"(?<!g){option}" if option.startswith("uid") else option, other, lines[at])
    assert lines[at] != before
    differences = kernel({**V1, "mountinfo": "".join(lines)}).differences
    assert [each.setting for each in differences] == [f"size of {place}"]


def named_files(texts: Mapping[str, str]) -> list[str]:
    """The files that say something of the seal: not the meters."""
    meters = ("usage", "usage_in_bytes", "oom_control", "peak", "events", "stat")
    return [name for name in texts if not name.endswith(meters)]


@pytest.mark.parametrize("name", named_files(V1))
def test_a_file_that_is_missing_is_a_difference_v1(name: str) -> None:
    assert kernel({**V1, name: None}).differences != ()
    assert kernel({key: text for key, text in V1.items() if key != name}).differences != ()


@pytest.mark.parametrize("name", named_files(V2))
def test_a_file_that_is_missing_is_a_difference_v2(name: str) -> None:
    assert kernel({**V2, name: None}).differences != ()


def test_where_nothing_can_be_read_every_setting_is_a_difference_but_what_only_a_line_could_show() -> None:
    look = kernel({})
    unmet = {each.setting for each in look.differences}
    assert unmet >= {"user", "group", "more groups", "privileges", "no new privileges", "system call filter on"}
    assert unmet >= {"open files", "core dumps", "locked memory", "message queues", "priority", "own process space"}
    assert unmet >= {"memory", "memory with swap", "number of tasks", "processor share", "its own cgroup"}
    assert unmet >= {"network", "network addresses", "network routes", "mounts missing"}


def test_a_kernel_without_swap_accounting_is_named() -> None:
    v1 = kernel({**V1, "cgroup:memory/memory.memsw.limit_in_bytes": None}).differences
    v2 = kernel({**V2, "cgroup:memory.swap.max": None}).differences
    assert v1 == (("memory with swap", "128 MB", "not readable: this kernel offers no memory.memsw.limit_in_bytes"),)
    assert v2 == (("swap", "0", "not readable: this kernel offers no memory.swap.max"),)


@pytest.mark.parametrize("inert", ["tunl0", "sit0", "ip6tnl0"])
def test_a_tunnel_end_that_every_namespace_has_is_no_network(inert: str) -> None:
    assert kernel(changed(V1, "net/dev", "    lo:", f" {inert}:       0       0    0\n    lo:")).differences == ()


@pytest.mark.parametrize("point", REQUIRED_MOUNTS)
def test_a_mount_that_must_be_there_is_missed(point: str) -> None:
    kept = [line for line in V1["mountinfo"].splitlines(keepends=True) if line.split()[4] != point]
    look = kernel({**V1, "mountinfo": "".join(kept)})
    assert [(each.setting, each.found) for each in look.differences] == [("mounts missing", point)]


@pytest.mark.parametrize(
    "line",
    [
        "99 75 254:0 /srv /srv ro,relatime - ext4 /dev/vda rw",
        r"99 75 254:0 /a\040b /mnt/a\040b ro,relatime - ext4 /dev/vda rw",
        r"99 75 254:0 / /bo\170 ro,relatime - ext4 /dev/vda rw",
        r"99 75 254:0 / /etc/hosts\040 ro,relatime - ext4 /dev/vda rw",
        "99 75 0:47 / /box rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,size=8192k",
        "99 75 254:0 / / ro,relatime - overlay overlay rw",
        "99 75 254:0 / /sys/fs/cgroup/../../../srv ro,nosuid,nodev,noexec - cgroup cgroup rw",
        "99 75 254:0 / /sys/fs/cgroup/memory/x ro,nosuid,nodev,noexec - cgroup cgroup rw",
        "99 75 254:0 / /sys/fs/cgroup/MEM ro,nosuid,nodev,noexec - cgroup cgroup rw",
        "99 75 254:0 / /dev/console rw - devpts devpts rw",
        "99 75 254:0 / /BOX ro - tmpfs tmpfs rw",
        "99 75 254:0 / /box/ ro - tmpfs tmpfs rw",
        "99 75",
        "-",
        " - ",
        "\x00",
        "99 75 254:0 / /srv\u2028x ro - ext4 /dev/vda rw",
        "99 75 254:0 / \ufffd\ufffd ro - ext4 /dev/vda rw",
    ],
)
@pytest.mark.parametrize("texts", [V1, V2], ids=["v1", "v2"])
@pytest.mark.parametrize("at_the_end", [True, False])
def test_one_line_more_in_the_mounts_is_a_difference(line: str, texts: dict[str, str], at_the_end: bool) -> None:
    old = texts["mountinfo"]
    look = kernel({**texts, "mountinfo": old + line + "\n" if at_the_end else line + "\n" + old})
    assert "mounts" in {each.setting for each in look.differences}


def test_a_thousand_mounts_are_told_in_few_words() -> None:
    more = "".join(f"{n} 75 254:0 / /more/{n} ro - ext4 /dev/vda rw\n" for n in range(1000))
    look = kernel({**V1, "mountinfo": V1["mountinfo"] + more})
    assert [each.setting for each in look.differences] == ["mounts"]
    assert look.differences[0].found.startswith("/more/0, /more/1, ")
    assert len(look.differences[0].found) <= 200


MAY_BE_EMPTY = ("net/if_inet6", "net/ipv6_route", "net/fib_trie")
"""An empty one of these says that there is no address and no route."""


@pytest.mark.parametrize("name", [name for name in named_files(V1) if name not in MAY_BE_EMPTY])
def test_a_file_that_is_empty_is_a_difference(name: str) -> None:
    assert kernel({**V1, name: ""}).differences != ()


@settings(deadline=None, max_examples=300)
@given(st.sampled_from([name for name in named_files(V1) if name not in MAY_BE_EMPTY]), st.text(max_size=300))
def test_a_file_of_any_text_is_a_difference_and_no_failure(name: str, text: str) -> None:
    assert kernel({**V1, name: text}).differences != () or text.strip() == V1[name].strip()


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(named_files(V2)), st.binary(max_size=300), st.integers(0, 4000))
def test_no_bytes_anywhere_in_a_file_make_the_comparison_fail(name: str, junk: bytes, at: int) -> None:
    text = V2[name]
    kernel({**V2, name: text[:at] + junk.decode("utf-8", "replace") + text[at:]})


def test_the_version_of_cgroups_is_told_from_the_process() -> None:
    assert cgroup_version(V1) == 1
    assert cgroup_version(V2) == 2
    assert cgroup_version({}) is None


# (a) The engine's record


def record() -> dict[str, Any]:
    """The record of a box made as asked, in the form that Docker 20.10 gives it."""
    asked = container_config(STDLIB, IDENTITY)
    host = asked.pop("HostConfig")
    unset: dict[str, Any] = {
        **dict.fromkeys(
            ("CgroupParent", "ContainerIDFile", "Cgroup", "CpusetCpus", "CpusetMems", "Isolation", "PidMode"), ""
        ),
        **dict.fromkeys(("UTSMode", "UsernsMode", "VolumeDriver"), ""),
        **dict.fromkeys(("BlkioWeight", "CpuCount", "CpuPercent", "CpuPeriod", "CpuQuota", "CpuRealtimePeriod"), 0),
        **dict.fromkeys(("CpuRealtimeRuntime", "CpuShares", "IOMaximumBandwidth", "IOMaximumIOps", "KernelMemory"), 0),
        **dict.fromkeys(("KernelMemoryTCP", "MemoryReservation", "OomScoreAdj"), 0),
        **dict.fromkeys(("OomKillDisable", "Privileged", "PublishAllPorts"), False),
        **dict.fromkeys(("Binds", "BlkioDeviceReadBps", "BlkioDeviceReadIOps", "BlkioDeviceWriteBps", "CapAdd"), None),
        **dict.fromkeys(("BlkioDeviceWriteIOps", "BlkioWeightDevice", "DeviceCgroupRules", "DeviceRequests"), None),
        **dict.fromkeys(("Devices", "ExtraHosts", "GroupAdd", "Links"), None),
        **dict.fromkeys(("MemorySwappiness", "PortBindings", "VolumesFrom"), None),
    }
    return {
        "Id": ID,
        "Name": "/" + IDENTITY.name,
        "Path": command(STDLIB)[0],
        "Args": command(STDLIB)[1:],
        "Image": IDENTITY.image_id,
        "ExecIDs": None,
        "Mounts": [],
        "State": {"Running": True, "Pid": 23685},
        "NetworkSettings": {"Networks": {"none": {}}, "Ports": {}},
        "Config": {
            **asked,
            "Domainname": "",
            "Entrypoint": None,
            "Env": [*asked["Env"], "PYTHON_VERSION=3.13.1", "PYTHON_SHA256=0", "GPG_KEY=0"],
            "Labels": {**asked["Labels"], "org.pybox.image": "stdlib"},
            "OnBuild": None,
            "Volumes": None,
        },
        "HostConfig": {
            **host,
            **unset,
            "ConsoleSize": [0, 0],
            "MaskedPaths": ["/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
                            "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"],
            "ReadonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
            "Runtime": "runc",
        },
    }  # fmt: skip


def engine(found: Mapping[str, Any]) -> Look:
    return engine_look(STDLIB, IDENTITY, found)


def test_a_record_as_asked_shows_no_difference() -> None:
    look = engine(record())
    assert look.differences == ()
    assert look.checked > 80


def test_engines_may_write_the_same_thing_in_other_ways() -> None:
    found = record()
    host, config = found["HostConfig"], found["Config"]
    host |= {"Runtime": "io.containerd.runc.v2", "Isolation": "default", "MemorySwappiness": -1, "Binds": []}
    host["SecurityOpt"] = [host["SecurityOpt"][1], "no-new-privileges:true"]
    host["Ulimits"].reverse()
    host["LogConfig"] = {"Type": "none", "Config": None}
    config |= {"Entrypoint": [], "Volumes": {}, "ExposedPorts": {}, "StopSignal": ""}
    found["NetworkSettings"]["Ports"] = None
    found["Mounts"] = None
    assert engine(found).differences == ()


@pytest.mark.parametrize("part", ["HostConfig", "Config"])
def test_every_field_counts(part: str) -> None:
    """Each field missing or different is one difference (two where the record has it twice), one unheard of as well."""
    for name, value in record()[part].items():
        for other in ("other", {"other": 1}, ["other"], 77, True):
            if other == value or (part == "Config" and name == "Labels"):
                continue
            found = record()
            found[part][name] = other
            assert engine(found).differences != (), (name, other)
    for name in container_config(STDLIB, IDENTITY)["HostConfig"] if part == "HostConfig" else ():
        found = record()
        del found[part][name]
        assert engine(found).differences != (), name
    found = record()
    found[part]["NeverHeardOf"] = ["x"]
    assert [tuple(each) for each in engine(found).differences] == [("NeverHeardOf", "nothing", "x")]


@pytest.mark.parametrize("name", ["MaskedPaths", "ReadonlyPaths", "Runtime"])
def test_what_the_engine_adds_by_itself_must_be_there(name: str) -> None:
    found = record()
    del found["HostConfig"][name]
    assert len(engine(found).differences) == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda r: r["HostConfig"].update(Memory=0), ("memory", "128 MB", "no limit")),
        (lambda r: r["HostConfig"].update(NanoCpus=2 * 10**9), ("processor share", "0.5", "2.0")),
        (lambda r: r["HostConfig"].update(PidsLimit=-1), ("number of tasks", "32", "no limit")),
        (lambda r: r["HostConfig"].update(OomScoreAdj=-1), ("OomScoreAdj", "nothing", "-1")),
        (lambda r: r["HostConfig"].update(CpuRealtimeRuntime=950000), ("CpuRealtimeRuntime", "nothing", "950000")),
        (lambda r: r["HostConfig"].update(Runtime="kata"), ("container runtime", "runc or crun", "kata")),
        (lambda r: r["HostConfig"].update(StorageOpt={"size": "1G"}), ("StorageOpt", "nothing", "size: 1G")),
        (
            lambda r: r["HostConfig"]["Ulimits"].append({"Name": "nofile", "Soft": 9, "Hard": 9}),
            ("limit of a process nofile", "128, 128", "128, 128, 9, 9"),
        ),
        (
            lambda r: r["HostConfig"].update(SecurityOpt=["no-new-privileges"]),
            ("system call filter", "PyBox's own filter, no-new-privileges", "no-new-privileges"),
        ),
        (
            lambda r: r["HostConfig"].update(
                SecurityOpt=["no-new-privileges:false", *r["HostConfig"]["SecurityOpt"][1:]]
            ),
            (
                "system call filter",
                "PyBox's own filter, no-new-privileges",
                "PyBox's own filter, no-new-privileges:false",
            ),
        ),
        (
            lambda r: r["HostConfig"].update(SecurityOpt=["no-new-privileges", "seccomp={}"]),
            ("system call filter", "PyBox's own filter, no-new-privileges", "another filter, no-new-privileges"),
        ),
        (
            lambda r: r["Config"]["Env"].append("HTTPS_PROXY=http://x"),
            ("environment HTTPS_PROXY", "nothing", "http://x"),
        ),
        (
            lambda r: r["Config"]["Env"].append("PATH=/evil"),
            ("environment PATH", "/usr/local/bin:/usr/bin:/bin", "/evil"),
        ),
        (lambda r: r["Config"]["Labels"].pop("org.pybox.uid"), ("label org.pybox.uid", "9", "nothing")),
        (lambda r: r["Config"].update(OnBuild=["RUN x"]), ("OnBuild", "nothing", "RUN x")),
        (lambda r: r["NetworkSettings"].update(Networks={"none": {}, "x": {}}), ("networks", "none", "none, x")),
        (lambda r: r["NetworkSettings"].update(Networks={}), ("networks", "none", "nothing")),
        (
            lambda r: r["NetworkSettings"].update(Ports={"80/tcp": None}),
            ("published ports", "nothing", "80/tcp: nothing"),
        ),
        (lambda r: r.update(Mounts=[{"Source": "/srv"}]), ("folders of this computer", "nothing", "Source: /srv")),
        (lambda r: r.update(Image="sha256:2"), ("image", IDENTITY.image_id, "sha256:2")),
        (lambda r: r.update(Name="/other"), ("name", "/" + IDENTITY.name, "/other")),
        (lambda r: r.update(Path="/bin/sh"), ("first program", ", ".join(command(STDLIB))[:60], "/bin/sh, -I")),
        (lambda r: r.update(Args=r["Args"][:-1]), ("first program", "…, USER=box", "…")),
        (lambda r: r.update(ExecIDs=["5"]), ("other programs started in it", "nothing", "5")),
    ],
)
def test_a_difference_says_what_was_wanted_and_found(change: Any, expected: tuple[str, str, str]) -> None:
    found = record()
    change(found)
    (difference,) = engine(found).differences
    assert difference.setting == expected[0]
    assert difference.wanted.startswith(expected[1])
    assert difference.found.startswith(expected[2])


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(sorted(record())), JSON)
def test_a_part_of_the_record_of_any_form_is_a_difference_and_no_failure(name: str, value: object) -> None:
    looked = engine({**record(), name: value})
    free = name in ("Id", "State") or value == record()[name] or (name in ("Mounts", "ExecIDs") and not value)
    assert looked.differences != () or free


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(["HostConfig", "Config", "NetworkSettings"]), st.data(), JSON)
def test_a_field_of_any_form_makes_no_failure(part: str, data: st.DataObject, value: object) -> None:
    found = copy.deepcopy(record())
    found[part][data.draw(st.sampled_from(sorted(found[part])))] = value
    engine(found)


def test_an_empty_record_has_every_difference() -> None:
    look = engine({})
    assert look.checked == len(look.differences) + 3  # ports, folders, other programs: of these none are wanted


# (c) The inside of the box


def report() -> dict[str, Any]:
    """What the warden tells of a sealed box."""
    return {
        "files": {"cgroup": "9:name=systemd:/\n4:memory:/\n0::/\n"},
        "interfaces": {"lo": "0x9\n"},
        "calls": {probe[0]: probe[3] for probe in seccomp.PROBES},
        "write": {"/": 30, "/etc": 30, "/dev": 13, "/usr/local/lib/pybox": 30, "/box": 0, "/tmp": 0},
        "room": {
            "/box": {"bytes": STDLIB.work_bytes, "inodes": STDLIB.inodes},
            "/tmp": {"bytes": STDLIB.temporary_bytes, "inodes": STDLIB.inodes},
            "/dev/shm": {"bytes": STDLIB.shared_memory_bytes, "inodes": STDLIB.inodes},
        },
        "descriptors": [0, 1, 2, 3],
        "devices": ["fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
                    "urandom", "zero"],
        "boot_id": "x",
        "python": "3.13.1",
        "dumpable": 0,
        "rest": rest(),
    }  # fmt: skip


def rest(**changes: Any) -> dict[str, Any]:
    """What the warden tells again of a box that has waited."""
    return {"newest": "7", "runner": "S", "taken": {"/box": [0, 1], "/tmp": [0, 1], "/dev/shm": [0, 1]}, **changes}


def test_a_report_of_a_sealed_box_shows_no_difference() -> None:
    look = inside_look(STDLIB, report())
    assert look.differences == ()
    assert look.checked >= 24
    again = inside_look(STDLIB, {**report(), "again": rest(runner="R")})
    assert again == look


def test_a_down_interface_is_no_connection() -> None:
    found = report()
    found["interfaces"]["tunl0"] = "0x80\n"
    assert inside_look(STDLIB, found).differences == ()


@pytest.mark.parametrize("probe", seccomp.PROBES, ids=lambda probe: probe[0])
@pytest.mark.parametrize("answer", [0, 22, None, "1", True])
def test_each_forbidden_call_must_be_refused_as_pybox_refuses_it(probe: Any, answer: object) -> None:
    found = report()
    found["calls"][probe[0]] = answer
    (difference,) = inside_look(STDLIB, found).differences
    assert difference.setting == f"forbidden call {probe[0]}"
    assert difference.wanted == f"error {probe[3]}"


@pytest.mark.parametrize(
    ("change", "setting", "found"),
    [
        (lambda r: r.update(again=rest(newest="8")), "programs begun in it", "some"),
        (lambda r: r.update(again=rest(newest=None)), "programs begun in it", "nothing"),
        (lambda r: r["rest"].update(newest=None), "programs begun in it", "nothing"),
        (lambda r: r["rest"].update(runner="T"), "the process for the program", "halted"),
        (lambda r: r.update(again=rest(runner="Z")), "the process for the program", "Z"),
        (lambda r: r.update(again=rest(taken={**rest()["taken"], "/tmp": [1, 2]})), "taken in /tmp", "1, 2"),
        (lambda r: r["rest"]["taken"].update({"/box": None}), "taken in /box", "nothing"),
        (lambda r: r["write"].update({"/": 0}), "writing to /", "allowed"),
        (lambda r: r["write"].update({"/etc": 13}), "writing to /etc", "error 13"),
        (lambda r: r["write"].update({"/usr/local/lib/pybox": None}), "writing to /usr/local/lib/pybox", "nothing"),
        (lambda r: r["write"].update({"/dev": 0}), "writing to /dev", "allowed"),
        (lambda r: r["write"].update({"/tmp": 28}), "writing to /tmp", "error 28"),
        (lambda r: r["write"].pop("/box"), "writing to /box", "nothing"),
        (lambda r: r["room"]["/box"].update(bytes=64 * MIB), "room in /box", "bytes: 64 MB, inodes: 1024"),
        (lambda r: r["room"].update({"/tmp": {"errno": 2}}), "room in /tmp", "errno: 2"),
        (lambda r: r["room"]["/dev/shm"].update(inodes=0), "room in /dev/shm", "bytes: 1 MB, inodes: 0"),
        (lambda r: r["interfaces"].update(eth0="0x1003"), "network connections up", "eth0"),
        (lambda r: r["interfaces"].update(eth0={"errno": 2}), "network connections up", "eth0"),
        (lambda r: r["interfaces"].clear(), "network connections up", "nothing"),
        (lambda r: r["descriptors"].append(7), "open files at start", "0, 1, 2, 3, 7"),
        (lambda r: r["devices"].append("mem"), "devices", "mem"),
        (lambda r: r.pop("devices"), "devices", "nothing"),
        (lambda r: r.update(dumpable=1), "timer out of the program's reach", "1"),
        (lambda r: r["files"].update(cgroup="0::/docker/x"), "view of other cgroups", "/docker/x"),
        (lambda r: r["files"].update(cgroup={"errno": 13}), "view of other cgroups", ""),
    ],
)
def test_each_try_inside_counts(change: Any, setting: str, found: str) -> None:
    facts = report()
    change(facts)
    (difference,) = inside_look(STDLIB, facts).differences
    assert difference.setting == setting
    assert found in difference.found


@settings(deadline=None, max_examples=300)
@given(st.dictionaries(st.sampled_from(sorted(report())) | st.text(max_size=5), JSON, max_size=8))
def test_a_report_of_any_form_is_a_difference_and_no_failure(facts: dict[str, Any]) -> None:
    assert inside_look(STDLIB, facts).differences != ()


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(["files", "interfaces", "calls", "write", "room"]), st.data(), JSON)
def test_a_fact_of_any_form_makes_no_failure(part: str, data: st.DataObject, value: object) -> None:
    facts = report()
    facts[part][data.draw(st.sampled_from(sorted(facts[part])))] = value
    inside_look(STDLIB, facts)


# In words


def test_values_are_shown_in_few_plain_words() -> None:
    assert shown(None) == shown("") == shown([]) == shown({}) == "nothing"
    assert shown(True) == "yes"
    assert shown(False) == "no"
    assert shown(0) == "0"
    assert shown(128 * MIB) == "128 MB"
    assert shown(128 * MIB + 1) == "134217729"
    assert shown({"Type": "none", "Config": {}}) == "Type: none, Config: nothing"
    assert shown("x" * 500) == "x" * 198 + " …"


def test_long_lists_are_shown_from_where_they_differ() -> None:
    compare = Comparison()
    compare.require("command", [*"abcdefg"], [*"abcdefx"])
    compare.require("few", [*"abc"], [*"abx"])
    assert [tuple(each) for each in compare.look().differences] == [
        ("command", "…, g", "…, x"),
        ("few", "a, b, c", "a, b, x"),
    ]
