"""What stands between a box and this computer beside its container, by what was seen of the box's kernel.

Two kernels are the same only where their boot ids are. That the other one is that of PyBox's own virtual machine is
said only where three things agree: the engine was chosen as the machine's, the machine runs there now, and the boot id
that the witness read beside the box is the one that the machine's driver read over a connection of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pybox_kernel import engine
from pybox_kernel.engine import Place
from pybox_kernel.errors import Difference
from pybox_kernel.receipt.model import Boundary, BoundaryKind, MachineSettings
from pybox_kernel.safe_display.text import safe_name
from pybox_kernel.seal.spec import Look
from pybox_kernel.seal.witness import Host, Sight, Witness, own_host

__all__ = ["NOT_LOOKED_AT", "boundary_look", "observe"]

NOT_LOOKED_AT = Boundary(kind=None, evidence="not looked at")
FOUND: dict[BoundaryKind | None, str] = {
    "this_kernel": "this computer's own kernel",
    "other_kernel": "another kernel, not identified",
    "another_machine": "another machine",
    "private_vm": "a private VM",
    None: "not known",
}


def observe(place: Place, sight: Sight, witness: Witness | None) -> Boundary:
    """Of the box that ``sight`` is of, at the engine in ``place``."""
    if sight.boot_id is None:
        return Boundary(kind=None, evidence="no boot id")
    own, outside = own_host(), sight.source != "the box's own reading"
    host = witness.host(sight.boot_id) if witness is not None and outside else None
    found = judged(place, sight, own)
    theirs = () if found.kind == "this_kernel" else host_facts("the box's", host or Host(sight.boot_id))
    facts = (*theirs, *host_facts("this computer's", own))
    listed = tuple(safe_name(fact, 200) for fact in (found.evidence, *found.more, *facts))
    settings = MachineSettings.model_validate(found.settings._asdict()) if found.settings is not None else None
    return Boundary(kind=found.kind, evidence=listed[0], machine=found.machine, settings=settings, facts=listed[1:])


class Judged(NamedTuple):
    kind: BoundaryKind
    evidence: str
    more: tuple[str, ...] = ()
    machine: str | None = None
    settings: engine.MachineSettings | None = None


def judged(place: Place, sight: Sight, own: Host) -> Judged:
    if sight.boot_id == own.boot_id:
        return Judged("this_kernel", "the same boot id")
    differs = "the box's kernel has another boot id than this computer's"
    if own.boot_id is None:
        differs = "the box's kernel is Linux, and this computer's is not, or does not say its boot id"
    if place.on_a_network:
        return Judged("another_machine", differs, (f"the engine is reached over a network, at {place.address}",))
    vm = place.vm() if place.vm is not None else None
    if place.vm is not None and vm is None:
        return Judged("other_kernel", differs, ("PyBox's virtual machine does not run, or its boot id is not known",))
    if vm is None:
        return Judged("other_kernel", differs)
    if vm.boot_id != sight.boot_id:
        return Judged("other_kernel", differs, ("nor is it that of PyBox's virtual machine",))
    same = "the box's kernel has the boot id that PyBox's virtual machine has by its own connection"
    if sight.source == "the box's own reading":
        return Judged("other_kernel", differs, (same, "but that was read within the box, and by no witness beside it"))
    more = tuple(filter(None, (differs, vm.clock, vm.remark.rstrip("."))))
    return Judged("private_vm", same, more, vm.words, vm.settings)


def host_facts(whose: str, host: Host) -> Iterator[str]:
    if host.release is not None:
        yield f"{whose} kernel is Linux {host.release}"
    if host.vendor is not None or host.product is not None:
        yield f"{whose} machine calls itself {' '.join(filter(None, (host.vendor, host.product)))}"
    if host.hypervisor is not None:
        yield f"{whose} kernel runs under {host.hypervisor}"
    if host.flag == "yes":
        yield f"{whose} processor says that it is a virtual machine's"


def boundary_look(place: Place, boundary: Boundary) -> Look:
    """Where a private virtual machine is required, nothing else will do, nor one that could not be seen."""
    if not place.require_vm:
        return Look(0, ())
    if boundary.kind == "private_vm":
        return Look(1, ())
    return Look(1, (Difference("boundary", "a private VM of PyBox", FOUND[boundary.kind]),))
