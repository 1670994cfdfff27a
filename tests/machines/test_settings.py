"""What QEMU says of a machine that it was given, by QEMU itself: the machines here never run a program."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pybox_kernel.engine import MachineSettings
from pybox_kernel.machines import monitor, packages
from pybox_kernel.machines.hardware import QEMU


@contextmanager
def halted(folder: Path, *devices: str) -> Iterator[Path]:
    """The control socket of a machine with ``devices`` that is made and not begun with."""
    if missing := packages.missing_to_run():
        pytest.skip(f"the private machine needs packages that this computer lacks: {', '.join(missing)}")
    line = [QEMU, "-S", "-M", "q35,accel=tcg", "-m", "128", "-smp", "2", "-nodefaults", "-display", "none"]
    line += ["-chardev", "socket,id=qmp,path=qmp.sock,server=on,wait=off", "-mon", "chardev=qmp,mode=control"]
    with subprocess.Popen([*line, *devices], cwd=folder) as process:
        try:
            limit = time.monotonic() + 60
            while monitor.owner(folder / "qmp.sock") is None:
                assert process.poll() is None
                assert time.monotonic() < limit
                time.sleep(0.02)
            yield folder / "qmp.sock"
        finally:
            process.kill()


def test_a_network_device_behind_a_bridge_and_a_shared_folder_are_counted(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    with halted(
        tmp_path,
        *("-device", "pcie-root-port,id=bridge,chassis=1", "-netdev", "socket,id=net,listen=127.0.0.1:0"),
        *("-device", "virtio-net-pci,netdev=net,bus=bridge"),
        *("-virtfs", f"local,path={shared},mount_tag=home,security_model=none"),
    ) as path:
        assert monitor.settings(path) == MachineSettings("tcg", 128, 2, 1, 1)


def test_none_is_seen_as_none(tmp_path: Path) -> None:
    with halted(tmp_path, "-nic", "none") as path:
        assert monitor.settings(path) == MachineSettings("tcg", 128, 2, 0, 0)


def test_of_a_machine_that_does_not_answer_nothing_is_known(tmp_path: Path) -> None:
    assert monitor.settings(tmp_path / "qmp.sock") == MachineSettings()
