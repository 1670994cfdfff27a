"""Where a private virtual machine is required nothing else runs a program; another machine has to be said yes to."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pybox_kernel.boxes.journal import Journal
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.engine import Place, PrivateVM
from pybox_kernel.engine_choice import DEFAULT_ADDRESS, Wish
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.text import render_full, render_short
from pybox_kernel.seal.witness import own_host
from pybox_kernel.sessions.session import Session
from tests.boxes.conftest import Installation
from tests.cases import case

pytestmark = pytest.mark.engine


def session_at(place: Place, own: Installation, wish: Wish | None = None) -> Session:
    return Session(Journal(own.home), DockerEngine(place), wish=wish)


@pytest.mark.parametrize("boot_id", [own_host().boot_id, "0b8e7a3c-5d24-4a8e-9c0e-2f6f1f3a9b11", None])
def test_an_engine_that_is_said_to_be_in_a_vm_and_is_not_gets_no_program(
    boot_id: str | None, own: Installation
) -> None:
    """Whatever the machine's driver says: the box is seen to share this computer's kernel."""
    vm = PrivateVM("private VM (QEMU, KVM)", boot_id) if boot_id is not None else None
    place = Place(DEFAULT_ADDRESS, "PyBox's own private VM", "asked for", lambda: vm, require_vm=True)
    with session_at(place, own) as session:
        result = session.run("print('ran')")
    receipt = result.receipt
    assert result.stdout == ""
    assert receipt.observed.end.how == "not_started"
    assert receipt.problem is not None
    assert receipt.problem.code == "not_sealed"
    assert [each.setting for each in receipt.observed.seal.kernel.differences] == ["boundary"]
    assert "wanted a private VM of PyBox, found this computer's own kernel" in receipt.problem.message
    assert receipt.observed.boundary.kind == "this_kernel"
    assert receipt.observed.box.removed is True
    assert own.boxes() == []


def test_where_none_is_required_the_same_engine_runs_it_and_the_receipt_says_what_was_seen(own: Installation) -> None:
    place = Place(DEFAULT_ADDRESS, "PyBox's own private VM", "it runs", lambda: PrivateVM("private VM", "other"))
    with session_at(place, own) as session:
        receipt = session.run("print('ran')").receipt
    assert receipt.ok
    assert receipt.observed.boundary.kind == "this_kernel"
    assert render_short(receipt).endswith("this computer's kernel")


@pytest.mark.parametrize("patience", [1.0, 1000.0])
def test_on_a_slow_machine_pyboxs_own_parts_are_given_more_time(
    patience: float, own: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Emulated, a box takes seconds until it is ready, and a witness container too; one that took longer was lost."""
    monkeypatch.setattr("pybox_kernel.boxes.waiting_box.READY_SECONDS", 0.03)
    monkeypatch.setattr("pybox_kernel.seal.witness.START_SECONDS", 0.03)
    monkeypatch.setenv("PYBOX_WITNESS", "container")
    with session_at(Place(DEFAULT_ADDRESS, "container engine", "asked for", patience=patience), own) as session:
        receipt = session.run("print('ran')").receipt
    if patience > 1:
        assert receipt.ok
        assert receipt.observed.seal.kernel.source == "witness container"
    else:
        assert receipt.problem is not None
        assert "not ready within 0.03 s" in receipt.problem.message
    assert own.boxes() == []


def pybox(own: Installation, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pybox_kernel.cli", "run", "-", "--json", *arguments]
    given = {**own.environment, **environment}
    return subprocess.run(command, input="print(6 * 7)", env=given, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("--require-vm",), {}),
        ((), {"PYBOX_REQUIRE_VM": "yes"}),
        (("--engine", "vm"), {}),
        ((), {"PYBOX_ENGINE": "vm"}),
    ],
)
def test_no_vm_no_run_and_the_receipt_says_so(
    arguments: tuple[str, ...], environment: dict[str, str], own: Installation
) -> None:
    done = pybox(own, *arguments, **environment)
    receipt = Receipt.from_json(done.stdout)
    assert done.returncode == 125
    assert receipt.observed.end.how == "not_started"
    assert receipt.problem is not None
    assert receipt.problem.code == "vm_missing"
    asked = receipt.asked.options
    assert (asked.require_vm, asked.engine) in ((True, None), (False, "vm"))
    assert "no private virtual machine can be used" in render_short(receipt)
    assert own.boxes() == []


class OnANetwork:
    """This computer's engine at an address on a network, as another machine's would be."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(DEFAULT_ADDRESS.removeprefix("unix://"))
                for here, there in ((near, far), (far, near)):
                    threading.Thread(target=passed_on, args=(here, there), daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def passed_on(here: socket.socket, there: socket.socket) -> None:
    with suppress(OSError):
        while data := here.recv(65536):
            there.sendall(data)
    for end in (here, there):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


@pytest.fixture
def far() -> Iterator[OnANetwork]:
    opened = OnANetwork()
    yield opened
    opened.close()


@case("eng-remote")
def test_an_engine_on_a_network_is_used_only_where_it_was_named_and_said_yes_to(
    far: OnANetwork, own: Installation
) -> None:
    for arguments, environment in (
        ((), {"DOCKER_HOST": far.address}),
        (("--another-machine",), {"DOCKER_HOST": far.address}),
        (("--engine", far.address), {}),
    ):
        receipt = Receipt.from_json(pybox(own, *arguments, **environment).stdout)
        assert receipt.problem is not None
        assert receipt.problem.code == "engine_elsewhere"
        assert far.address in receipt.problem.message
    done = pybox(own, "--engine", far.address, "--another-machine")
    receipt = Receipt.from_json(done.stdout)
    assert done.returncode == 0, done.stderr
    assert receipt.said.stdout.text == "42\n"
    assert receipt.observed.meters.final
    assert receipt.observed.box.removed is True
    assert receipt.observed.engine_used is not None
    assert receipt.observed.engine_used.address == far.address
    assert (receipt.asked.options.engine, receipt.asked.options.another_machine) == (far.address, True)
    assert receipt.observed.boundary.kind == "this_kernel", "this network leads back here, which is seen"
    assert "somebody said yes to that" in render_full(receipt).replace("\n", " ")


def test_a_context_of_dockers_that_is_a_socket_here_is_followed_and_named(own: Installation, tmp_path: Path) -> None:
    config = tmp_path / "docker"
    name = "colima-work"
    meta = config / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
    meta.mkdir(parents=True)
    (meta / "meta.json").write_text(json.dumps({"Name": name, "Endpoints": {"docker": {"Host": DEFAULT_ADDRESS}}}))
    (config / "config.json").write_text(json.dumps({"currentContext": name}))
    own.environment.pop("DOCKER_HOST", None)
    receipt = Receipt.from_json(pybox(own, DOCKER_CONFIG=str(config), HOME=os.environ.get("HOME", "/")).stdout)
    assert receipt.ok
    assert receipt.observed.engine_used is not None
    assert receipt.observed.engine_used.chosen == f"named by the Docker context '{name}'"
