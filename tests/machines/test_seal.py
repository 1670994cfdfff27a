"""The private machine from outside: what QEMU was given, what it listens on, who may talk to it, what it keeps."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.machines import control, monitor
from pybox_kernel.machines.qemu import QemuMachine
from pybox_kernel.sessions import machine as session_machine

pytestmark = pytest.mark.engine

KINDS = {
    0x0600: "host bridge",
    0x0601: "ISA bridge",
    0x0106: "SATA controller",
    0x0C05: "SMBus",
    0x0100: "disk",
    0x0780: "serial lines",
}
"""PCI classes: the board's own parts, one disk, one bundle of serial lines. 0x02.. would be a network."""


def processes(machine: QemuMachine) -> list[int]:
    """QEMU, and whoever works in the machine's folder: ssh and socat."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").resolve() == machine.run:
                found.append(int(entry.name))
        except OSError:
            continue
    assert monitor.owner(machine.run / "qmp.sock") in found
    return found


def test_it_has_a_disk_and_serial_lines_and_no_other_device(machine: QemuMachine) -> None:
    buses, tree = monitor.questions(
        machine.run / "qmp.sock", ("query-pci", {}), ("human-monitor-command", {"command-line": "info qtree"})
    )
    classes = [device["class_info"]["class"] for bus in buses for device in bus["devices"]]
    assert {KINDS.get(number, hex(number)) for number in classes} <= set(KINDS.values())
    assert classes.count(0x0100) == 1
    assert classes.count(0x0780) == 1
    devices = {line.split("dev: ")[1].split(",")[0] for line in tree.splitlines() if line.strip().startswith("dev: ")}
    others = ("net", "9p", "vhost", "virtio-fs", "usb", "vga", "e1000", "rtl")
    assert not [name for name in devices if any(word in name for word in others)]
    assert {"virtio-blk-pci", "virtio-serial-pci", "virtconsole", "virtserialport"} <= devices


def test_nothing_of_it_listens_on_or_is_connected_to_a_network(machine: QemuMachine) -> None:
    held = set()
    for pid in processes(machine):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = str(descriptor.readlink())
            except FileNotFoundError:  # closed since it was listed
                continue
            if target.startswith("socket:["):
                held.add(target[8:-1])
    assert held
    columns = {"tcp": 9, "tcp6": 9, "udp": 9, "udp6": 9, "raw": 9, "raw6": 9, "packet": 8}
    for kind, column in columns.items():
        lines = Path(f"/proc/net/{kind}").read_text().splitlines()[1:]
        assert not held & {line.split()[column] for line in lines}, kind


def test_its_kernel_has_no_network_interface_but_its_own_loopback(machine: QemuMachine) -> None:
    said = subprocess.run(
        ["ssh", "-F", "none", "-S", "ctl", "pybox", "ls /sys/class/net; grep -c . /proc/net/route; cat /proc/mounts"],
        cwd=machine.run,
        env=control.environment(machine.run),
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    assert said[:2] == ["lo", "1"]
    assert {line.split()[2] for line in said[2:]} <= {
        "ext4", "proc", "sysfs", "devtmpfs", "devpts", "tmpfs", "cgroup2", "overlay", "rootfs", "nsfs",
    }  # fmt: skip


def test_where_its_memory_is_used_up_boxes_go_before_the_engine_and_the_line_to_it(machine: QemuMachine) -> None:
    question = "for p in $(busybox pidof dockerd containerd sshd) 1; do cat /proc/$p/oom_score_adj; done"
    with control.asked(machine.run, question) as talk:
        said = talk.communicate(timeout=60)[0].split()
    assert len(said) >= 4
    assert set(said) == {"-900"}


def test_what_ends_a_terminals_programs_does_not_reach_it(machine: QemuMachine) -> None:
    """Ctrl-C and a terminal that is closed are told to a session's processes; this test's is where it was started."""
    found = processes(machine)
    assert len(found) == 3
    assert os.getsid(0) not in {os.getsid(pid) for pid in found}


def test_only_its_user_may_enter(machine: QemuMachine) -> None:
    assert stat.S_IMODE(machine.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(machine.run.stat().st_mode) == 0o700
    sockets = [path for path in machine.run.iterdir() if path.is_socket()]
    assert len(sockets) == 4
    for path in (*sockets, machine.folder / "key", machine.folder / "disk.img"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o177 == 0, path
        assert path.stat().st_uid == os.geteuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user to try")
@pytest.mark.parametrize("name", ["docker.sock", "ssh.sock", "qmp.sock", "ctl"])
def test_another_user_is_refused_by_the_socket_itself(machine: QemuMachine, name: str, tmp_path: Path) -> None:
    """Reached past the folder: by a descriptor of it that is handed over."""
    folder = os.open(machine.run, os.O_RDONLY | os.O_DIRECTORY)
    program = f"import os, socket\nos.fchdir({folder})\nsocket.socket(socket.AF_UNIX).connect({name!r})"
    machine.run.chmod(0o711)
    try:
        done = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-I", "-S", "-c", program],
            pass_fds=[folder], capture_output=True, text=True, cwd="/", check=False,
        )  # fmt: skip
    finally:
        machine.run.chmod(0o700)
        os.close(folder)
    assert "PermissionError" in done.stderr, done.stderr


def test_each_start_finds_it_as_it_was_made(made: QemuMachine) -> None:
    first = session_machine.start_machine(print)
    before = (made.folder / "disk.img").stat()
    engine = DockerEngine(made.endpoint)
    images = {record.id for record in engine.images()}
    engine.create("left-behind", {"Image": max(images), "Cmd": ["true"]})
    engine.close()
    assert made.stop()
    assert not made.run.exists()
    again = session_machine.start_machine(print)
    assert again.boot_id != first.boot_id
    engine = DockerEngine(made.endpoint)
    assert engine.containers() == []
    assert {record.id for record in engine.images()} == images
    engine.close()
    after = (made.folder / "disk.img").stat()
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)
