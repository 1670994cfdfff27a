"""The real private machine, booted once: of the same make as a user's, in the folder of this test run.

It is emulated where KVM does not do, and then a run takes seconds: so only what a machine can change is tested in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from pybox_kernel.boxes.journal import Journal
from pybox_kernel.engine_choice import Wish
from pybox_kernel.images.store import RecordedImage
from pybox_kernel.machines import disk
from pybox_kernel.machines.packages import missing_to_build
from pybox_kernel.machines.qemu import QemuMachine
from pybox_kernel.sessions import machine as session_machine
from pybox_kernel.sessions.session import Session
from tests.escapes import running
from tests.escapes.running import Ran, run_attack

ON_DEMAND: Final = frozenset(
    {
        "test_a_full_disk_in_the_machine_is_told_with_what_to_do_and_the_next_start_has_room",
        "test_a_halted_machine_is_ended_all_the_same",
        "test_a_machine_killed_during_a_run_is_told_as_it_is_and_starts_anew",
        "test_a_machine_that_was_halted_for_a_while_is_usable_and_tells_its_clock",
        "test_a_wrong_clock_neither_ends_a_box_that_lives_nor_keeps_one_of_the_dead_and_is_told",
        "test_all_attacks_at_once_do_not_put_the_deadline_off",
        "test_an_engine_that_starts_anew_in_the_machine_ends_the_run_and_takes_the_next",
        "test_boxes_one_after_another_have_users_of_their_own",
        "test_each_run_begins_in_empty_folders",
        "test_files_go_in_and_come_out",
        "test_sockets_that_a_dead_machine_left_are_no_obstacle",
    }
)
"""Run by `make test-vm` and `make soak`: each takes many seconds where the machine is emulated."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(900))
        if here in item.path.parents and getattr(item, "originalname", item.name) in ON_DEMAND:
            item.add_marker(pytest.mark.soak)
        # In one process, so that one machine does for all of them; emulated it takes a core of its own.
        if here in item.path.parents and {"made", "machine", "inside"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.alone)


@pytest.fixture(scope="package")
def made(home: Path, box_image: RecordedImage) -> Iterator[QemuMachine]:
    """A copy of the machine that ``pybox-kernel vm build`` made, if that is of this version; else one made now. It runs
    for the tests of this folder alone: those that come after them would have their boxes in it."""
    if missing := missing_to_build():
        pytest.skip(f"the private machine needs packages that this computer lacks: {', '.join(missing)}")
    own, machine = QemuMachine(Path(os.environ["PYBOX_OWN_HOME"]) / "vm"), session_machine.qemu_machine()
    record = disk.read_record(own.folder)
    if record is not None and record.recipe_sha256 == disk.recipe_sha256():
        disk.copy(own.folder, machine.folder)
    else:
        session_machine.build_machine(print)
    yield machine
    machine.stop()


@pytest.fixture
def machine(made: QemuMachine) -> QemuMachine:
    """It runs; what a test before this one did to it is undone."""
    session_machine.start_machine(print)
    return made


@pytest.fixture(scope="package")
def inside(made: QemuMachine, home: Path) -> Iterator[Session]:
    """A session whose boxes are in the machine."""
    session_machine.start_machine(print)
    with Session(Journal(home), wish=Wish("vm")) as opened:
        yield opened


@pytest.fixture(scope="package")
def attack(inside: Session) -> Iterator[Callable[..., Ran]]:
    def run(source: str, deadline: float = 2.0) -> Ran:
        return run_attack(inside, source, deadline)

    with pytest.MonkeyPatch.context() as patch:
        # What is killed on an emulated processor takes longer to be dead.
        patch.setattr(running, "LATE", 3.0)
        patch.setattr(running, "REMOVAL", 10.0)
        yield run
