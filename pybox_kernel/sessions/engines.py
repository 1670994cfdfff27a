"""Which engines and which machine this user has: one for the images, one for what stands in no machine of PyBox's."""

from __future__ import annotations

import sys

from pybox_kernel.boxes.journal import Entry, home_path
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.engine import Engine
from pybox_kernel.engine_choice import Wish, choose, ended_with, wish_of
from pybox_kernel.errors import EngineDenied, EngineError, EngineMissing
from pybox_kernel.machines.colima import ColimaMachine
from pybox_kernel.machines.machine import Machine
from pybox_kernel.machines.qemu import QemuMachine

__all__ = ["ended_since", "outside_engine", "own_engine", "own_machine"]


def own_machine() -> Machine | None:
    """This user's private virtual machine, which may not run, nor be made; None where there is no driver for one."""
    if sys.platform == "darwin":
        return ColimaMachine(home_path())
    return QemuMachine(home_path() / "vm") if sys.platform == "linux" else None


def ended_since(entry: Entry) -> bool:
    return ended_with(own_machine(), entry.engine, entry.written_at)


def own_engine() -> DockerEngine:
    """The engine whose images are made and removed: the one that was named, else this computer's, from which QEMU's
    machine gets its images; the machine's own where it was asked for and runs, or is the only one that there is.
    Colima's keeps its own, and is the only one a Mac may have. Raises EngineError."""
    wish, found = wish_of(), own_machine()
    if sys.platform == "darwin":
        return DockerEngine(choose(wish, own_machine))
    engine = outside_engine()
    state = found.status().state if found is not None and wish.engine in ("", "vm") else "not made"
    wanted = (wish.engine == "vm" or wish.require_vm) and state != "stopped"
    if state != "not made" and (wanted or no_use(engine)):
        return DockerEngine(choose(Wish("vm"), own_machine))
    return engine


def outside_engine() -> DockerEngine:
    """The one that was named, else this computer's: in no machine of PyBox's. Raises EngineError."""
    wish = wish_of()
    named = wish.engine if wish.engine != "vm" else ""
    return DockerEngine(choose(Wish(named or "local", another_machine=wish.another_machine), own_machine))


def no_use(engine: Engine) -> bool:
    """Whether there is none, or it is not for this user."""
    try:
        engine.facts()
    except (EngineMissing, EngineDenied):
        return True
    except EngineError:
        return False
    return False
