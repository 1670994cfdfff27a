"""What is wrong on this computer, and what to do about it. Reads only: makes, starts and removes nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from jupyter_client.kernelspec import KernelSpecManager

from pybox_kernel.boxes.journal import give_back, left_entries
from pybox_kernel.boxes.number_settings import MOST_DIGITS, misread
from pybox_kernel.boxes.refused_boxes import failed_lately, refused_lately
from pybox_kernel.boxes.turns import at_once
from pybox_kernel.boxes.waiting_places import Places, bounds_of_user
from pybox_kernel.engine import Engine, EngineFacts, EngineVersions, Place
from pybox_kernel.errors import EngineError, OptionError, PyBoxError
from pybox_kernel.images import offers as image_offers
from pybox_kernel.images import store as image_store
from pybox_kernel.images.store import ImageStore
from pybox_kernel.machines.machine import kind_in_words
from pybox_kernel.machines.packages import install_line, may_unpack, missing_to_build
from pybox_kernel.machines.qemu import QemuMachine
from pybox_kernel.ownership import doubt
from pybox_kernel.render.amounts import counted
from pybox_kernel.safe_display.text import safe_name
from pybox_kernel.seal.runtimes import runtime_in_words, runtime_of, usable
from pybox_kernel.signing.keys import SigningKeys

__all__ = ["Finding", "examine", "in_short"]

State = Literal["ok", "warning", "wrong"]


class Finding(NamedTuple):
    """One thing that was looked at. ``advice`` is empty where there is nothing to do."""

    what: str
    state: State
    found: str
    advice: str


def examine(engine_of: Callable[[], Engine], home: Path, kernel_name: str) -> tuple[Finding, ...]:
    """Looks at everything a run needs, in the order in which it needs it. Raises nothing."""
    findings = list(of_engine(engine_of))
    usable = all(finding.state != "wrong" for finding in findings)
    findings += of_folder(home)
    findings += of_images(engine_of() if usable else None, home)
    findings.append(of_kernelspec(kernel_name))
    findings.append(of_leftovers(home))
    findings.append(of_boxes_in_advance(home))
    findings += of_numbers()
    findings += of_key(home)
    if sys.platform == "linux":
        findings.append(of_machine(home))
    return tuple(findings)


def of_key(home: Path) -> Iterator[Finding]:
    """Nothing where there is nothing to say: the first receipt makes the key."""
    try:
        SigningKeys(home).ring()
    except PyBoxError as error:
        yield Finding(
            "key for receipts",
            "warning",
            f"Receipts cannot be signed, or not be checked. {error.message}",
            error.advice,
        )


def in_short(findings: Sequence[Finding]) -> str:
    """The sum of them, as a sentence without its end."""
    states = [finding.state for finding in findings]
    if wrong := states.count("wrong"):
        return f"{counted(wrong, 'thing')} to mend"
    if warned := states.count("warning"):
        return f"Ready, with {counted(warned, 'warning')}"
    return "All is ready"


def of_engine(engine_of: Callable[[], Engine]) -> Iterator[Finding]:
    try:
        engine = engine_of()
        facts = engine.facts()
    except (EngineError, OptionError) as error:
        yield Finding("container engine", "wrong", error.message, error.advice)
        return
    what = "container engine"
    kind = "" if engine.place.name == what else f"{engine.place.name}, "
    yield Finding(
        what,
        "ok",
        f"version {facts.version} at {facts.address} (Linux {facts.kernel}, cgroup v{facts.cgroup_version}): "
        f"{kind}{engine.place.chosen}",
        "",
    )
    yield of_place(engine.place)
    yield from of_limits(facts)
    yield of_filter(facts)
    yield of_runtime(facts, engine.versions, in_vm=engine.place.vm is not None)


def of_place(place: Place) -> Finding:
    """What is to stand around a box. Only the receipt of one says what did."""
    if place.vm is not None:
        vm = place.vm()
        if vm is None:
            return Finding("boundary", "wrong", "PyBox's virtual machine does not run", "Run `pybox-kernel vm start`.")
        return Finding("boundary", "ok", f"{vm.words}, to be seen again in each box", "")
    if place.on_a_network:
        return Finding("boundary", "warning", "another machine: what you run goes there, with its files", "")
    return Finding("boundary", "ok", "no private virtual machine of PyBox: each receipt says which kernel was seen", "")


def of_limits(facts: EngineFacts) -> Iterator[Finding]:
    """An engine that cannot enforce a limit drops it with no more than a warning (Engine API, SystemInfo)."""
    limits = (
        ("memory limit", facts.memory_limit, "Start the kernel with cgroup_enable=memory."),
        ("swap limit", facts.swap_limit, "Start the kernel with swapaccount=1 (or with cgroup v2)."),
        ("processor limit", facts.cpu_limit, "Use a kernel with CFS bandwidth control, not a rootless engine."),
        ("task limit", facts.pids_limit, "Use a kernel with the pids cgroup; rootless engines need it delegated."),
    )  # fmt: skip
    missing = [(name, advice) for name, can, advice in limits if can is not True]
    for name, advice in missing:
        yield Finding(name, "wrong", "this engine cannot enforce it", f"{advice} Or use another engine.")
    if not missing:
        yield Finding("limits", "ok", "memory, swap, processor and tasks can be enforced", "")


def of_filter(facts: EngineFacts) -> Finding:
    if any("seccomp" in option for option in facts.security):
        return Finding("system call filter", "ok", "supported", "")
    return Finding("system call filter", "wrong", "this engine has no seccomp", "Use an engine built with seccomp.")


def of_runtime(facts: EngineFacts, versions: EngineVersions | None, *, in_vm: bool = False) -> Finding:
    name = facts.runtime or "runc"
    if not usable(name):
        found = f"{runtime_in_words(name)}. Boxes of it are not sealed as required"
        return Finding("container runtime", "wrong", found, "Set the engine's default runtime to runc or crun.")
    runtime = runtime_of(name, versions)
    if name == "crun":
        return Finding("container runtime", "ok", "crun, whose version the engine does not tell", "")
    if runtime.version is None:
        return Finding("container runtime", "warning", "its version is not known", "Keep the engine up to date.")
    if runtime.warning is not None:
        advice = (
            "Update it, where there is a newer one (`apt-get install --only-upgrade runc`),"
            " or put a private virtual machine around it."
        )
        if in_vm:
            advice = "It is in the private virtual machine, which is a second wall around it."
        return Finding("container runtime", "warning", f"{name} {runtime.version}: {runtime.warning}", advice)
    return Finding("container runtime", "ok", f"{name} {runtime.version}", "")


def of_folder(home: Path) -> Iterator[Finding]:
    try:
        home.stat()
    except FileNotFoundError:
        yield Finding("records", "ok", f"{home} is made at first use", "")
        return
    except OSError as error:
        advice = "Make it readable for this user, or set PYBOX_HOME to another folder."
        yield Finding("records", "wrong", f"{home}: {error.strerror}", advice)
        return
    if why := doubt(home.resolve()):
        yield Finding("records", "wrong", f"not this user's alone: {why}", give_back(home))
    else:
        yield Finding("records", "ok", f"kept in {home}", "")


def of_images(engine: Engine | None, home: Path) -> Iterator[Finding]:
    """``stdlib`` has to be there; of the others it is said which there are, and how to have ``data``."""
    yield of_image(engine, home)
    try:
        known = ImageStore(home).load()
    except PyBoxError:
        return
    for name, recorded in known.items():
        if name == "stdlib" or recorded.recipe.offer is None:
            continue
        what, offered = f"box image {name}", image_offers.in_words(recorded.recipe.offer)
        try:
            if engine is not None:
                image_store.require(engine, ImageStore(home), name)
            yield Finding(what, "ok", f"Python {recorded.python}; {offered}", "")
        except PyBoxError as error:
            yield Finding(what, "warning", error.message, error.advice)
    if "data" not in known:
        yield Finding(
            "box image data",
            "ok",
            "not made, and needed only for numpy, pandas and matplotlib",
            image_store.how_to_make("data"),
        )


def of_image(engine: Engine | None, home: Path) -> Finding:
    store = ImageStore(home)
    try:
        if engine is not None:
            recorded = image_store.require(engine, store, "stdlib")
            return Finding("box image", "ok", f"Python {recorded.python}, from {recorded.base}", "")
        if "stdlib" not in store.load():
            return Finding("box image", "wrong", "it has not been made yet", "Run `pybox-kernel setup --yes`.")
        return Finding("box image", "warning", "recorded; whether the engine has it is not known", "")
    except PyBoxError as error:
        return Finding("box image", "wrong", error.message, error.advice)


def of_kernelspec(name: str) -> Finding:
    try:
        found = KernelSpecManager().find_kernel_specs()
    except (OSError, RuntimeError):  # it looks in this user's home folder
        what = "its kernels cannot be looked for: this user has no home folder that can be read"
        return Finding("Jupyter", "warning", what, "Set HOME to a folder of this user's.")
    if name in found:
        return Finding("Jupyter", "ok", "the kernel “PyBox (sealed)” is installed for this environment", "")
    return Finding(
        "Jupyter",
        "warning",
        "the kernel “PyBox (sealed)” is not installed for this environment",
        "Run `pybox-kernel install --sys-prefix` (or --user).",
    )


def of_leftovers(home: Path) -> Finding:
    left = left_entries(home)
    if left:
        return Finding(
            "leftovers",
            "warning",
            f"{counted(left, 'box', 'boxes')} of dead sessions may be left",
            "Run `pybox-kernel cleanup`.",
        )
    return Finding("leftovers", "ok", "no box of a dead session", "")


def of_boxes_in_advance(home: Path) -> Finding:
    bounds = bounds_of_user()
    if refused := refused_lately(home):
        last = refused[-1]
        return Finding(
            "boxes in advance",
            "warning",
            f"{counted(len(refused), 'box', 'boxes')} that waited for a program had changed and got none; the last, "
            f"on {last.at:%Y-%m-%d}: {safe_name(last.why, 300)}",
            "Something else on this computer acts on PyBox's boxes: find out what.",
        )
    if failed := failed_lately(home):
        last = failed[-1]
        return Finding(
            "boxes in advance",
            "warning",
            f"something kept PyBox from making them {counted(len(failed), 'time')}; the last, on {last.at:%Y-%m-%d}: "
            f"{safe_name(last.why, 300)}",
            "Cells run all the same, and each waits for its own box. Restart the kernel if that goes on.",
        )
    if bounds.boxes == 0:
        return Finding("boxes in advance", "ok", "none are made (PYBOX_POOL=0)", "")
    held = Places(home, bounds).held()
    found = f"{held.boxes} of at most {bounds.boxes} wait now, with {held.mib} of at most {bounds.mib} MB"
    return Finding("boxes in advance", "ok", found, "")


def of_numbers() -> Iterator[Finding]:
    """Nothing where all that is set can be read."""
    bounds = bounds_of_user()
    for name, used in (("PYBOX_POOL", bounds.boxes), ("PYBOX_POOL_MB", bounds.mib), ("PYBOX_AT_ONCE", at_once())):
        if (text := misread(name)) is not None:
            yield Finding(
                name,
                "warning",
                f"it is set to “{safe_name(text, 40)}”, which is no whole number, so {used} is used",
                f"Set it to a whole number, 0 or more, of at most {MOST_DIGITS} digits, or not at all.",
            )


def of_machine(home: Path) -> Finding:
    """A private machine is one's choice: that there is none is no fault, and what it would take is said."""
    what, facts = "private machine", QemuMachine(home / "vm").status()
    if facts.state == "running":
        remark = f"; {facts.remark}" if facts.remark else ""
        return Finding(what, "ok", f"{kind_in_words(facts)} runs, with Linux {facts.kernel}{remark}", "")
    if facts.state == "unreachable":
        return Finding(what, "warning", facts.remark, "Run `pybox-kernel vm start`.")
    if facts.state == "stopped":
        return Finding(what, "ok", "it does not run; `pybox-kernel vm start` starts it", "")
    missing = missing_to_build()
    if missing:
        return Finding(
            what, "ok", f"there is none, and for one this lacks: {', '.join(missing)}", install_line(missing)
        )
    if not may_unpack():
        return Finding(what, "ok", "there is none, and this user has no subordinate ids (/etc/subuid) to make one", "")
    return Finding(what, "ok", "there is none; `pybox-kernel vm build` makes one", "")
