"""Runs in boxes inside the private machine: witnesses, final counts, boxes made in advance, files."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pybox_kernel.boxes.journal import Journal
from pybox_kernel.engine_choice import Wish
from pybox_kernel.files.box_files import InputFile
from pybox_kernel.machines.machine import kind_in_words
from pybox_kernel.machines.qemu import QemuMachine
from pybox_kernel.policy import STDLIB
from pybox_kernel.render.text import render_short
from pybox_kernel.seal.witness import own_host
from pybox_kernel.sessions.session import Session

pytestmark = pytest.mark.engine


def test_a_run_is_seen_by_all_three_witnesses_with_the_machines_kernel_and_counts_are_final(
    inside: Session, made: QemuMachine
) -> None:
    result = inside.run("print(6 * 7)", deadline_seconds=10)
    receipt = result.receipt
    assert result.stdout == "42\n", receipt.problem or receipt.observed.end
    assert receipt.ok
    assert receipt.observed.seal.before_start
    assert receipt.observed.meters.final
    assert receipt.observed.meters.memory_peak_bytes
    assert receipt.observed.meters.cpu_seconds is not None
    assert receipt.observed.box.removed is True
    facts = made.status()
    assert facts.boot_id is not None
    assert facts.boot_id != own_host().boot_id
    boundary = receipt.observed.boundary
    assert boundary.kind == "private_vm"
    assert boundary.machine == kind_in_words(facts)
    assert f"the box's kernel is Linux {facts.kernel}" in boundary.facts
    assert any("QEMU" in fact for fact in boundary.facts), "as the witness read it in the machine"
    assert render_short(receipt).replace("\n  ", " ").endswith(f"in a {boundary.machine}")
    assert receipt.asked.options.engine == "vm"
    assert receipt.observed.engine_used is not None
    assert receipt.observed.engine_used.runtime == "runc"


def test_a_box_that_waited_in_the_machine_is_verified_again_and_its_counts_are_final(
    inside: Session, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBOX_POOL", "1")
    with Session(Journal(home), in_advance=True, wish=Wish("vm")) as session:
        session.expect(STDLIB.image)
        limit = time.monotonic() + 120
        while not session.waiting():
            assert time.monotonic() < limit, "no box was made in advance"
            time.sleep(0.05)
        result = session.run("print(6 * 7)", deadline_seconds=10)
    receipt = result.receipt
    assert result.stdout == "42\n", receipt.problem or receipt.observed.end
    box, made = receipt.observed.box, inside.run("print(1)", deadline_seconds=10).receipt
    assert box.waited is not None
    assert receipt.observed.seal.before_start
    assert receipt.observed.boundary.kind == "private_vm"
    assert receipt.observed.meters.final
    assert box.removed is True
    assert receipt.observed.seal.kernel.source == "witness container"
    for look in ("engine", "kernel", "inside"):
        assert getattr(receipt.observed.seal, look).checked == getattr(made.observed.seal, look).checked > 0


def test_files_go_in_and_come_out(inside: Session) -> None:
    result = inside.run(
        "open('b.txt', 'w').write(open('a.txt').read() * 2)", inputs=[InputFile("a.txt", b"ab")], output=True
    )
    assert [(file.name, file.data) for file in result.files] == [("b.txt", b"abab")]
