"""Which engine a session uses: never a weaker one than was asked for, and never another machine unless named."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pybox_kernel import engine_choice
from pybox_kernel.engine import Place
from pybox_kernel.engine_choice import DEFAULT_ADDRESS, LONGEST, Wish, choose, ended_with, wish_of
from pybox_kernel.errors import EngineElsewhere, EngineError, EngineRefused, OptionError, PyBoxError, VMMissing
from pybox_kernel.machines.machine import Clock, MachineFacts, Progress
from tests.cases import case

SOCKET = "unix:///run/pybox-vm/engine.sock"


class KnownMachine:
    """A machine in one state."""

    def __init__(self, **facts: Any) -> None:
        self.facts = MachineFacts("qemu", "pybox", "running", SOCKET, "tcg", "vm-boot")._replace(**facts)
        self.measured, self.reading = 0, Clock(-3.2, 0.01)

    def status(self) -> MachineFacts:
        return self.facts

    def start(self, progress: Progress) -> MachineFacts:
        raise AssertionError("whoever chooses starts nothing")

    def stop(self) -> bool:
        raise AssertionError

    def clock(self) -> Clock | None:
        self.measured += 1
        return self.reading


RUNS, STOPPED = KnownMachine(), KnownMachine(state="stopped")


def chosen(wish: Wish, machine: KnownMachine | None = STOPPED, **environment: str) -> Place:
    return choose(wish, lambda: machine, environment)


def refused(wish: Wish, machine: KnownMachine | None = STOPPED, **environment: str) -> PyBoxError:
    with pytest.raises(EngineError) as caught:
        chosen(wish, machine, **environment)
    return caught.value


# The order


def test_where_nothing_is_said_a_vm_that_runs_comes_before_this_computers_engine() -> None:
    assert chosen(Wish(), RUNS).address == SOCKET
    assert chosen(Wish(), RUNS, DOCKER_HOST="unix:///run/other.sock").address == SOCKET
    assert chosen(Wish(), STOPPED).address == DEFAULT_ADDRESS
    assert chosen(Wish(), None).address == DEFAULT_ADDRESS
    assert chosen(Wish(), None, DOCKER_HOST="unix:///run/other.sock").address == "unix:///run/other.sock"


def test_what_a_person_names_comes_first() -> None:
    assert chosen(Wish("local"), RUNS).address == DEFAULT_ADDRESS
    assert chosen(Wish("unix:///run/mine.sock"), RUNS).address == "unix:///run/mine.sock"
    assert chosen(Wish("vm"), RUNS).address == SOCKET
    assert chosen(Wish("vm"), RUNS).require_vm, "what was asked for is held, not only looked for"


def test_the_place_says_why_it_was_chosen() -> None:
    assert "machine runs" in chosen(Wish(), RUNS).chosen
    assert "DOCKER_HOST" in chosen(Wish(), None, DOCKER_HOST="unix:///run/other.sock").chosen
    assert "usual one" in chosen(Wish(), None).chosen


@pytest.mark.parametrize("machine", [STOPPED, KnownMachine(state="not made"), None])
@pytest.mark.parametrize("wish", [Wish("vm"), Wish(require_vm=True), Wish("vm", require_vm=True)])
def test_no_vm_no_run(wish: Wish, machine: KnownMachine | None) -> None:
    error = refused(wish, machine)
    assert isinstance(error, VMMissing)
    assert "pybox-kernel vm start" in error.advice


@pytest.mark.parametrize("engine", ["local", "unix:///run/mine.sock", "tcp://192.0.2.1:1"])
def test_a_vm_is_required_and_another_engine_named_is_a_contradiction(engine: str) -> None:
    error = refused(Wish(engine, require_vm=True, another_machine=True), RUNS)
    assert isinstance(error, VMMissing), "no engine was asked, so that none refused"
    assert error.message.endswith(f": {engine}."), "as the person said it"
    assert "Leave one of the two out" in error.advice


def test_a_vm_whose_engine_cannot_be_reached_is_no_reason_for_a_weaker_one() -> None:
    error = refused(Wish(), KnownMachine(state="unreachable"))
    assert isinstance(error, VMMissing)
    assert "vm start" in error.advice
    assert chosen(Wish("local"), KnownMachine(state="unreachable")).address == DEFAULT_ADDRESS


def test_what_is_known_of_the_vm_is_asked_anew_each_time() -> None:
    machine = KnownMachine()
    place = chosen(Wish(), machine)
    assert place.vm is not None
    found = place.vm()
    assert found is not None
    assert found[:3] == ("private VM (QEMU, emulated)", "vm-boot", "")
    machine.facts = machine.facts._replace(boot_id="after a restart")
    found = place.vm()
    assert found is not None
    assert found.boot_id == "after a restart"
    for change in ({"state": "stopped"}, {"endpoint": "unix:///elsewhere"}, {"boot_id": None}):
        machine.facts = KnownMachine(**change).facts
        assert place.vm() is None, change


@pytest.mark.parametrize(
    ("facts", "gone"),
    [
        ({"state": "stopped"}, True),
        ({"state": "not made"}, True),
        ({"state": "running", "started_at": datetime.fromtimestamp(2000, UTC)}, True),
        ({"state": "running", "started_at": datetime.fromtimestamp(500, UTC)}, False),
        ({"state": "running", "started_at": None}, False),
        ({"state": "unreachable", "started_at": datetime.fromtimestamp(500, UTC)}, False),
        ({"state": "stopped", "endpoint": "unix:///another.sock"}, False),
        ({"state": "stopped", "driver": "colima"}, False),
    ],
)
def test_what_was_in_a_vm_that_keeps_nothing_has_ended_with_it(facts: dict[str, Any], gone: bool) -> None:
    assert ended_with(KnownMachine(**facts), SOCKET, 1000.0) == gone
    assert not ended_with(None, SOCKET, 1000.0)


# Another machine

REMOTE = [
    "tcp://192.0.2.1:2375",
    "ssh://user@192.0.2.1",
    "http://localhost",
    "unix://docker.sock",
    "fd://",
    "npipe:////./pipe/x",
]


@case("eng-remote")
@pytest.mark.parametrize("address", REMOTE)
def test_dockers_own_settings_are_not_followed_to_another_machine(address: str, docker_context: Any) -> None:
    for environment in ({"DOCKER_HOST": address}, docker_context(address)):
        error = refused(Wish(), None, **environment)
        assert isinstance(error, EngineElsewhere)
        assert repr(address) in error.message
        assert ("--another-machine" in error.advice) == address.startswith("tcp:")
        assert refused(Wish(another_machine=True), None, **environment), "a yes is to an engine that was named"
        assert chosen(Wish("local"), None, **environment).address == DEFAULT_ADDRESS


@case("eng-remote")
def test_an_address_on_a_network_needs_a_yes() -> None:
    address = "tcp://192.0.2.1:2376"
    error = refused(Wish(address))
    assert "your" not in error.message or address in error.message
    assert "PYBOX_ALLOW_REMOTE_ENGINE=yes" in error.advice
    place = chosen(Wish(address, another_machine=True))
    assert (place.address, place.on_a_network) == (address, True)


def test_ssh_is_told_how_to_be_brought_here() -> None:
    assert "ssh -N -L" in refused(Wish("ssh://user@192.0.2.1", another_machine=True)).advice


# Docker's contexts


@pytest.fixture
def docker_context(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Writes the files of Docker's own command (docker/cli, ``cli/context/store``) for a context that is in use."""

    def write(host: str, name: str = "mine") -> dict[str, str]:
        (tmp_path / "config.json").write_text(json.dumps({"auths": {}, "currentContext": name}))
        folder = tmp_path / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
        folder.mkdir(parents=True, exist_ok=True)
        endpoint = {"Host": host, "SkipTLSVerify": False}
        (folder / "meta.json").write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": {"docker": endpoint}}))
        return {"DOCKER_CONFIG": str(tmp_path)}

    return write


def test_a_context_that_is_a_socket_here_is_followed_and_named(docker_context: Any) -> None:
    environment = docker_context("unix:///run/context.sock", "colima")
    place = chosen(Wish(), None, **environment)
    assert place.address == "unix:///run/context.sock"
    assert "'colima'" in place.chosen
    assert chosen(Wish(), None, **environment, DOCKER_HOST="unix:///run/host.sock").address == "unix:///run/host.sock"
    assert chosen(Wish(), None, **environment, DOCKER_CONTEXT="default").address == DEFAULT_ADDRESS


def test_a_context_that_cannot_be_read_is_not_taken_for_the_usual_engine(docker_context: Any) -> None:
    environment = docker_context("unix:///run/context.sock")
    error = refused(Wish(), None, **environment, DOCKER_CONTEXT="gone")
    assert "'gone'" in error.message


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"currentContext": null}', '{"currentContext": ""}'])
def test_a_configuration_that_names_no_context_leads_to_the_usual_engine(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    assert chosen(Wish(), None, DOCKER_CONFIG=str(tmp_path)).address == DEFAULT_ADDRESS


# Names, and paths


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (".docker/run/docker.sock", "Docker Desktop"),
        (".docker/desktop/docker.sock", "Docker Desktop"),
        (".orbstack/run/docker.sock", "OrbStack"),
        (".rd/docker.sock", "Rancher Desktop"),
        (".colima/default/docker.sock", "Colima"),
        (".local/share/containers/podman/machine/podman.sock", "Podman machine"),
        ("other.sock", "container engine"),
    ],
)
def test_the_engines_of_other_makers_are_recognised_by_their_sockets(
    path: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pybox_kernel.engine_choice.LONGEST", 1000)
    monkeypatch.setenv("HOME", str(tmp_path))
    there, usual = tmp_path / path, tmp_path / "docker.sock"
    assert chosen(Wish(f"unix://{there}")).name == name
    there.parent.mkdir(parents=True, exist_ok=True)
    there.touch()
    usual.symlink_to(there)
    assert chosen(Wish(f"unix://{usual}")).name == name, "as they put a link to it in the usual place"


@case("mac-socket-path")
def test_a_path_that_no_socket_can_have_is_refused_before_it_is_used() -> None:
    fits = "/" + "x" * (LONGEST - 1)
    assert chosen(Wish(f"unix://{fits}")).address == f"unix://{fits}"
    error = refused(Wish(f"unix://{fits}é"))
    assert isinstance(error, EngineRefused)
    assert f"has {LONGEST + 2} bytes, and a socket's may have {LONGEST}" in error.message
    assert "shorter" in error.advice
    assert refused(Wish(), KnownMachine(endpoint=f"unix://{fits}xx"))


# What was said


def test_what_is_said_here_comes_before_what_the_environment_says() -> None:
    environment = {"PYBOX_ENGINE": "vm", "PYBOX_REQUIRE_VM": "yes"}
    assert wish_of(environment=environment) == Wish("vm", require_vm=True)
    assert wish_of("local", environment=environment) == Wish("local", require_vm=True), "only the engine is another"
    assert wish_of(environment={}) == Wish()


@pytest.mark.parametrize(("value", "required"), [("", False), ("0", False), ("no", False), ("1", True), ("ja", True)])
def test_a_vm_is_required_unless_the_variable_is_a_plain_no(value: str, required: bool) -> None:
    assert wish_of(environment={"PYBOX_REQUIRE_VM": value}).require_vm == required


@pytest.mark.parametrize(("value", "allowed"), [("", False), ("1", False), ("true", False), ("yes", True)])
def test_another_machine_is_allowed_by_a_yes_alone(value: str, allowed: bool) -> None:
    assert wish_of(environment={"PYBOX_ALLOW_REMOTE_ENGINE": value}).another_machine == allowed


@pytest.mark.parametrize("engine", ["remote", "VM", "unix://relative", "http://x", "/run/docker.sock", "localhost"])
def test_an_engine_that_is_none_is_refused(engine: str) -> None:
    with pytest.raises(OptionError, match="is no engine"):
        wish_of(engine, environment={})
    with pytest.raises(OptionError, match=r"PYBOX_ENGINE is .* is no engine"):
        wish_of(environment={"PYBOX_ENGINE": engine})


def test_the_machines_clock_is_measured_and_stands_for_a_while_and_not_over_a_leap_of_this_computers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = KnownMachine()
    place = choose(Wish("vm"), lambda: machine, {})
    assert place.vm is not None
    told = [found.clock for _ in range(3) if (found := place.vm()) is not None]
    assert told == ["the machine's clock is 3.200 s behind this computer's, give or take 0.010 s"] * 3
    assert machine.measured == 1
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600)  # as after a sleep
    machine.reading = None
    found = place.vm()
    assert found is not None
    assert found.clock == "the machine's clock could not be read"
    place.vm()
    assert machine.measured == 2
    monkeypatch.setattr(engine_choice, "CLOCK_SECONDS", 0.0)
    place = choose(Wish("vm"), lambda: machine, {})
    assert place.vm is not None
    for _ in range(2):
        place.vm()
    assert machine.measured == 4
