"""``pybox-kernel vm build | start | stop | status``: a private virtual machine around the boxes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from pybox_kernel.errors import ExitStatus
from pybox_kernel.image_commands import interruptible
from pybox_kernel.machines.machine import MachineFacts, clock_in_words, kind_in_words
from pybox_kernel.progress import Steps
from pybox_kernel.render.amounts import counted, sentence
from pybox_kernel.safe_display.text import safe_text
from pybox_kernel.sessions import machine as session_machine

__all__ = ["add_machine_parser", "machine"]


def add_machine_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "vm", help="a private virtual machine around the boxes: build, start, stop, status", allow_abbrev=False
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    build = actions.add_parser("build", help="make it, or make it anew", allow_abbrev=False)
    build.add_argument("--yes", action="store_true", help="do it; without, only say what would be done")
    actions.add_parser("start", help="start it; its engine is the one in use from then on", allow_abbrev=False)
    actions.add_parser("stop", help="end it, with all boxes in it", allow_abbrev=False)
    status = actions.add_parser("status", help="what is known of it", allow_abbrev=False)
    status.add_argument("--json", action="store_true", help="the same as JSON")


def machine(options: argparse.Namespace) -> int:
    actions = {"build": build, "start": start, "stop": stop, "status": status}
    return actions[options.action](options)


def build(options: argparse.Namespace) -> int:
    if not options.yes:
        print("A private virtual machine will be made: Debian packages (about 150 MB are fetched), 0.5 GB on the disk.")
        print("It takes some minutes. While the machine runs, it has 1.5 GB of memory.")
        print("Nothing was done. To do it: pybox-kernel vm build --yes")
        return ExitStatus.OK
    with interruptible(), Steps() as steps:
        names = session_machine.build_machine(steps)
    held = f"with the box images {', '.join(names)}" if names else "without box images: `pybox-kernel setup --yes`"
    print(f"The private machine is made, {held}. To start it: pybox-kernel vm start")
    return ExitStatus.OK


def start(_: argparse.Namespace) -> int:
    with interruptible(), Steps() as steps:
        facts = session_machine.start_machine(steps)
    show(facts)
    return ExitStatus.OK


def stop(_: argparse.Namespace) -> int:
    with Steps() as steps:
        ended = session_machine.machine().stop(steps)
    print("The private machine has ended." if ended else "The private machine was not running.")
    return ExitStatus.OK


def status(options: argparse.Namespace) -> int:
    found = session_machine.machine()
    facts = found.status()
    if facts.state == "running":
        facts = facts._replace(clock=found.clock())
    if options.json:
        clock = facts.clock._asdict() if facts.clock is not None else None
        print(json.dumps({**facts._asdict(), "clock": clock}, default=str, indent=2))
    else:
        show(facts)
    return ExitStatus.OK if facts.state == "running" else ExitStatus.PROGRAM_FAILED


def has(facts: MachineFacts) -> Iterator[str]:
    """What is known of it."""
    if facts.memory_mib is not None:
        yield f"{facts.memory_mib:,} MB of memory"
    if facts.processors is not None:
        yield counted(facts.processors, "processor")
    for number, what in ((facts.network_devices, "network device"), (facts.shared_folders, "shared folder")):
        if number is not None:
            yield counted(number, what) if number else f"no {what}"


def show(facts: MachineFacts) -> None:
    if facts.state == "running":
        print(safe_text(f"Running: {kind_in_words(facts)}, Linux {facts.kernel}."))
        if known := ", ".join(has(facts)):
            print(f"It has {known}.")
        print(safe_text(f"Its engine: {facts.endpoint}"))
        print(sentence(clock_in_words(facts.clock)))
    else:
        said = {
            "not made": "There is none.",
            "stopped": "It does not run.",
            "unreachable": "It cannot be used so.",
        }
        print(said[facts.state])
    if facts.remark:
        print(safe_text(f"{facts.remark[:1].upper()}{facts.remark[1:]}"))
    elif facts.state == "stopped":
        print("To start it: pybox-kernel vm start")
    if facts.state == "unreachable":
        print("To mend that: pybox-kernel vm start")
