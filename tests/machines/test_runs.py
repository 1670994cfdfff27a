"""Runs in boxes inside the private machine: witnesses, final counts, files, and the first tour notebook."""

from __future__ import annotations

import pytest

from pybox_kernel.box_files import InputFile
from pybox_kernel.machines.qemu import QemuMachine
from pybox_kernel.session import Session
from pybox_kernel.witness import own_boot_id

pytestmark = pytest.mark.engine


def test_a_run_is_seen_by_all_three_witnesses_with_the_machines_kernel_and_counts_are_final(
    inside: Session, made: QemuMachine
) -> None:
    result = inside.run("print(6 * 7)")
    assert result.stdout == "42\n"
    receipt = result.receipt
    assert receipt.ok
    assert receipt.observed.seal.before_start
    assert receipt.observed.meters.final
    assert receipt.observed.meters.memory_peak_bytes
    assert receipt.observed.meters.cpu_seconds is not None
    assert receipt.observed.box.removed is True
    facts = made.status()
    assert facts.boot_id is not None
    assert facts.boot_id != own_boot_id()


def test_files_go_in_and_come_out(inside: Session) -> None:
    result = inside.run(
        "open('b.txt', 'w').write(open('a.txt').read() * 2)", inputs=[InputFile("a.txt", b"ab")], output=True
    )
    assert [(file.name, file.data) for file in result.files] == [("b.txt", b"abab")]
