"""A machine that somebody else could have changed is neither used nor started, nor is it passed by in silence."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pybox_kernel.doctor import of_machine
from pybox_kernel.engine_choice import Wish, choose
from pybox_kernel.errors import SetupError, VMMissing
from pybox_kernel.machines import baking
from pybox_kernel.machines.qemu import QemuMachine


def linked(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")


def given_away(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(folder, 65534, 65534)


def above_given_away(folder: Path) -> None:
    given_away(folder.parent)


WAYS = [
    (linked, "is a link"),
    (given_away, "belongs to another user"),
    (lambda folder: folder.chmod(0o770), "others may change"),
    (lambda folder: folder.chmod(0o702), "others may change"),
    (lambda folder: folder.parent.chmod(0o777), "in the place of"),
    (above_given_away, "in the place of"),
]


@pytest.mark.parametrize(("spoil", "why"), WAYS)
def test_a_machine_that_others_could_have_changed_is_not_used(
    spoil: Callable[[Path], None], why: str, tmp_path: Path
) -> None:
    folder = tmp_path / "home" / "vm"
    folder.mkdir(mode=0o700, parents=True)
    (folder / "disk.json").write_text("{}")
    machine = QemuMachine(folder)
    assert machine.status().state == "stopped"
    spoil(folder)
    facts = machine.status()
    assert facts.state == "unreachable"
    assert why in facts.remark
    for wish in (Wish(), Wish("vm"), Wish(require_vm=True)):
        with pytest.raises(VMMissing, match=why):
            choose(wish, lambda: machine, {})
    with pytest.raises(SetupError, match=why):
        machine.start(print)
    with pytest.raises(SetupError, match=why):
        machine.stop()
    with pytest.raises(SetupError, match=why):
        baking.replace(machine, lambda _: None, [], pytest.fail, print)


def test_a_folder_open_to_all_in_which_each_has_his_own_will_do(tmp_path: Path) -> None:
    folder = tmp_path / "vm"
    folder.mkdir(mode=0o700)
    (folder / "disk.json").write_text("{}")
    tmp_path.chmod(0o1777)
    assert QemuMachine(folder).status().state == "stopped"


def test_a_machine_that_cannot_be_looked_at_is_told_as_such_and_nothing_is_raised(tmp_path: Path) -> None:
    folder = tmp_path / "vm"
    folder.mkdir(mode=0o700)
    (folder / "disk.json").write_text("{}")
    (folder / "lock").mkdir()
    facts = QemuMachine(folder).status()
    assert (facts.state, facts.remark) == ("unreachable", "it could not be looked at (Is a directory)")
    assert facts.remark in of_machine(tmp_path).found
