"""Which boundary is said, from which evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pybox_kernel import engine
from pybox_kernel.engine import Place, PrivateVM
from pybox_kernel.receipt.model import Boundary, MachineSettings
from pybox_kernel.seal import boundary as module
from pybox_kernel.seal.boundary import boundary_look, observe
from pybox_kernel.seal.witness import Host, Sight, Source
from tests.cases import case

OWN = Host("own-boot", "6.1.0", "Dell Inc.", "XPS", None, "no")
GUEST = Host("vm-boot", "6.12.1", "QEMU", "Standard PC", None, "yes")
HERE = Place("unix:///run/docker.sock", "an engine", "it is the usual one")
HAS = engine.MachineSettings("kvm", 1536, 2, 0, None)
VM = PrivateVM(
    "private VM (QEMU, KVM)", "vm-boot", clock="the machine's clock is 3.200 s ahead of this computer's", settings=HAS
)


def in_vm(vm: PrivateVM | None = VM, **changes: Any) -> Place:
    return HERE._replace(vm=lambda: vm, **changes)


class Beside:
    """A witness that reads this host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def host(self, boot_id: str) -> Host | None:
        return self._host if self._host.boot_id == boot_id else None

    def look(self, pid: int, container_id: str) -> Sight | None:
        raise AssertionError

    def meters(self, folders: Mapping[str, str]) -> None:
        raise AssertionError

    def standing(self, folders: Mapping[str, str]) -> None:
        raise AssertionError

    def named_after(self, container_id: str) -> None:
        raise AssertionError

    def close(self) -> None: ...


def sight(boot_id: str | None, source: Source = "witness container") -> Sight:
    return Sight(source, {}, {"": "/box"}, boot_id)


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "own_host", lambda: OWN)


def seen(place: Place, boot_id: str | None = "vm-boot", source: Source = "witness container") -> Boundary:
    return observe(place, sight(boot_id, source), Beside(GUEST if boot_id == "vm-boot" else OWN))


def test_one_boot_id_is_one_kernel() -> None:
    found = seen(HERE, "own-boot")
    assert found.kind == "this_kernel"
    assert found.facts == (
        "this computer's kernel is Linux 6.1.0",
        "this computer's machine calls itself Dell Inc. XPS",
    )
    assert found.settings is None
    assert "settings" not in found.model_dump()


@case("vm-nested")
def test_a_private_vm_is_said_with_what_it_runs_on_and_its_evidence() -> None:
    found = seen(in_vm())
    assert (found.kind, found.machine) == ("private_vm", "private VM (QEMU, KVM)")
    assert "boot id that PyBox's virtual machine has" in found.evidence
    assert found.settings == MachineSettings(**HAS._asdict())
    assert "the machine's clock is 3.200 s ahead of this computer's" in found.facts
    assert "the box's kernel is Linux 6.12.1" in found.facts
    assert "the box's machine calls itself QEMU Standard PC" in found.facts
    assert "the box's processor says that it is a virtual machine's" in found.facts


@pytest.mark.parametrize(
    ("place", "boot_id", "source"),
    [
        (HERE, "vm-boot", "witness container"),
        (in_vm(None), "vm-boot", "witness container"),
        (in_vm(PrivateVM("private VM", "before its restart")), "vm-boot", "witness container"),
        (in_vm(), "another", "witness container"),
        (in_vm(), "vm-boot", "the box's own reading"),
    ],
    ids=["not its engine", "it does not run", "it was started anew", "another kernel", "seen from within alone"],
)
def test_what_calls_itself_a_vm_and_is_not_seen_to_be_ours_is_not_identified(
    place: Place, boot_id: str, source: Source
) -> None:
    assert seen(place, boot_id, source).kind == "other_kernel"


def test_the_engine_of_a_vm_that_runs_boxes_on_this_kernel_is_told() -> None:
    assert seen(in_vm(), "own-boot").kind == "this_kernel"


@case("eng-remote")
def test_another_machine_is_one_on_a_network_with_another_kernel() -> None:
    there = HERE._replace(address="tcp://192.0.2.1:2376")
    assert seen(there).kind == "another_machine"
    assert "tcp://192.0.2.1:2376" in " ".join(seen(there).facts)
    assert seen(there, "own-boot").kind == "this_kernel", "a network that leads back here"


def test_a_kernel_without_a_boot_id_is_not_known() -> None:
    assert seen(in_vm(), None).kind is None


def test_another_system_than_linux_shares_no_kernel_with_a_box(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "own_host", Host)
    found = seen(HERE)
    assert found.kind == "other_kernel"
    assert "this computer's is not" in found.evidence


def test_what_a_machine_says_of_itself_is_made_safe() -> None:
    host = GUEST._replace(vendor="\x1b[2J<script>\u202e", product=None)
    found = observe(HERE, sight("vm-boot"), Beside(host))
    assert "\x1b" not in " ".join(found.facts)
    assert "\u202e" not in " ".join(found.facts)


@pytest.mark.parametrize("kind", ["this_kernel", "other_kernel", "another_machine", None])
def test_where_a_vm_is_required_nothing_else_will_do(kind: Any) -> None:
    place = in_vm(require_vm=True)
    [difference] = boundary_look(place, Boundary(kind=kind, evidence="")).differences
    assert difference.setting == "boundary"
    assert not boundary_look(place, Boundary(kind="private_vm", evidence="")).differences
    assert not boundary_look(HERE, Boundary(kind=kind, evidence="")).differences
