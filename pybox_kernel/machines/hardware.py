"""The virtual machine that QEMU is asked for: a processor, memory, a disk, serial lines, and nothing else.

There is no network device and no shared folder, so neither has to be shut off; what is written to the disk is thrown
away when the machine ends. Whether Linux's KVM can run it is tried, since ``/dev/kvm`` may be there and not do: nested
virtualisation is often of that kind.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pybox_kernel.not_outlived import with_this_process

__all__ = ["PROCESSORS", "QEMU", "SHIELD", "Choice", "choose", "command"]

QEMU: Final = "qemu-system-x86_64"
KVM: Final = Path("/dev/kvm")
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
SHIELD: Final = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
"""QEMU's own system call filter: a guest that took QEMU over could start no program."""
TEST_SECONDS: Final = 10.0
"""A kernel that KVM runs says so in under one."""
TEST_MARK: Final = b"pybox: booted"
PROCESSORS: Final = {"kvm": 2, "tcg": 1}
"""Under emulation two crashed the guest in 1 of 9 boots."""
MODELS: Final = {"kvm": "host", "tcg": "max"}

Kind = Literal["kvm", "tcg"]


class Choice(NamedTuple):
    accelerator: Kind
    remark: str
    """Why it is not KVM, for a person; empty if it is."""


def command(accelerator: Kind, memory_mib: int, *, keep: bool) -> list[str]:
    """QEMU's command line, to be run in the machine's ``run``: each path is relative to it, so that no folder's name
    has to be quoted for QEMU. ``keep`` has what is written to the disk stay there."""
    snapshot = "off" if keep else "on"
    return [
        *bare(accelerator, memory_mib, "rw console=hvc0 quiet panic=-1"),
        *("-drive", f"file=../disk.img,if=none,id=disk,format=raw,snapshot={snapshot}"),
        *("-device", "virtio-blk-pci,drive=disk"),
        # In memory and of a fixed size: a guest that talks without end fills no disk here.
        *("-chardev", "ringbuf,id=console,size=65536", "-device", "virtconsole,chardev=console"),
        *("-chardev", "socket,id=ssh,path=ssh.sock,server=on,wait=off"),
        *("-device", "virtserialport,chardev=ssh,name=org.pybox.ssh"),
        *("-chardev", "socket,id=qmp,path=qmp.sock,server=on,wait=off", "-mon", "chardev=qmp,mode=control"),
    ]


def bare(accelerator: Kind, memory_mib: int, append: str) -> list[str]:
    return [
        *(QEMU, "-name", "pybox", "-M", f"q35,accel={accelerator}", "-cpu", MODELS[accelerator]),
        *("-smp", str(PROCESSORS[accelerator]), "-m", str(memory_mib)),
        *("-nodefaults", "-no-user-config", "-display", "none", "-nic", "none", "-no-reboot"),
        *("-kernel", "../kernel", "-initrd", "../initrd", "-append", append),
        *("-device", "virtio-serial-pci", "-sandbox", SHIELD),
    ]


def choose(folder: Path) -> Choice:
    """KVM if it boots this machine's kernel, as tried once in each boot of this computer, and with each QEMU."""
    if not KVM.exists():
        return Choice("tcg", "this computer offers no KVM (/dev/kvm), so the machine is emulated and slow")
    if not os.access(KVM, os.R_OK | os.W_OK):
        return Choice(
            "tcg",
            "this user may not use KVM, so the machine is emulated and slow; to mend it: "
            "`sudo adduser $USER kvm`, and log in anew",
        )
    record, tried_on = folder / "accelerator.json", tried_key()
    try:
        found = json.loads(record.read_text())
        if found["tried_on"] == tried_on and found["accelerator"] in PROCESSORS:
            return Choice(found["accelerator"], str(found["remark"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    why = tried(folder)
    choice = Choice("kvm", "")
    if why:
        again = "it is tried again when this computer has been started anew, and with another QEMU"
        choice = Choice("tcg", f"the machine is emulated and slow: KVM is there, but {why}; {again}")
    remember(folder, choice)
    return choice


def remember(folder: Path, choice: Choice) -> None:
    (folder / "accelerator.json").write_text(json.dumps({"tried_on": tried_key(), **choice._asdict()}))


def tried_key() -> str:
    """What the outcome of a test boot depends on; but for how busy this computer was, so that it does not stand for
    ever."""
    try:
        boot = BOOT_ID.read_text().strip()
    except OSError:
        boot = ""
    found = shutil.which(QEMU)
    changed = Path(found).stat().st_mtime_ns if found else 0
    return f"{boot} {found} {changed}"


def tried(folder: Path) -> str:
    """Boots the kernel with KVM up to its first program: empty if that went well, else what happened instead."""
    # It may hang for ever, and must not outlive this process, however that ends.
    line = with_this_process(bare("kvm", 256, "console=hvc0 panic=-1 pybox.test"), "KILL")
    line += ["-chardev", "stdio,id=console,signal=off", "-device", "virtconsole,chardev=console"]
    try:
        done = subprocess.run(
            line, cwd=folder / "run", stdin=subprocess.DEVNULL, capture_output=True, timeout=TEST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"a test did not boot with it within {TEST_SECONDS:.0f} s"
    if TEST_MARK in done.stdout:
        return ""
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return f"a test did not boot with it ({said[-1][:200]})" if said else "a test ended early with it"
