"""The driver for macOS, against a stand-in for the ``colima`` command: no Mac has been seen by this project."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pybox_kernel.engine_choice import Wish, choose
from pybox_kernel.errors import EngineTimeout, SetupError, VMMissing
from pybox_kernel.machines import colima
from pybox_kernel.machines.colima import ColimaMachine
from pybox_kernel.machines.machine import MachineFacts, kind_in_words
from tests.cases import case

BOOT_ID = "0b8e7a3c-5d24-4a8e-9c0e-2f6f1f3a9b11"


class Mac:
    """A home folder, the commands in a folder of tools, and where the machine's engine would listen."""

    def __init__(self, folder: Path) -> None:
        self.home, self.tools, self.kept = folder / "home", folder / "bin", folder / "kept"
        for each in (self.home, self.tools):
            each.mkdir(mode=0o755)
        source = (Path(__file__).parent / "colima_stand_in.py").read_text().partition("\n")[2]
        for name in ("colima", "limactl"):
            (self.tools / name).write_text(f"#!{sys.executable} -I\n{source}")
            (self.tools / name).chmod(0o755)
        self.does()
        self.machine = ColimaMachine(self.kept, self.home, [self.tools])
        self._engine: socket.socket | None = None

    def does(self, **behaviour: str) -> None:
        """What it does otherwise than it is asked."""
        (self.tools / "behaviour.json").write_text(json.dumps({"boot_id": BOOT_ID, **behaviour}))

    def calls(self) -> list[dict[str, Any]]:
        path = self.tools / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def words(self) -> list[str]:
        return [" ".join(call["arguments"][:2]) for call in self.calls()]

    def listen(self) -> None:
        """As the machine's engine does once it is up."""
        self.machine.socket.parent.mkdir(parents=True, exist_ok=True)
        self._engine = socket.socket(socket.AF_UNIX)
        self._engine.bind(str(self.machine.socket))
        self._engine.listen(64)

    def start(self) -> MachineFacts:
        self.listen()
        return self.machine.start(lambda _: None)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()

    def rewrite(self, file: str, **changes: Any) -> None:
        """As an upgrade of Colima, or a person, might."""
        path = self.home / ".colima" / file
        found = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump({**found, **changes}))


@pytest.fixture
def mac() -> Iterator[Mac]:
    folder = Path(tempfile.mkdtemp(prefix="mac-"))  # short, as a socket stands in it
    made = Mac(folder)
    yield made
    made.close()
    shutil.rmtree(folder)


def test_it_is_started_in_a_profile_of_its_own_that_shares_nothing(mac: Mac) -> None:
    assert mac.machine.status().state == "not made"
    facts = mac.start()
    [start, ask] = mac.calls()
    assert start["arguments"][:3] == ["start", "--profile", "pybox"]
    asked = " ".join(start["arguments"])
    for flag in (
        "--vm-type vz", "--mount none", "--port-forwarder none", "--activate=false", "--ssh-config=false",
        "--ssh-agent=false", "--network-address=false", "--runtime docker",
    ):  # fmt: skip
        assert flag in asked
    assert ask["arguments"][:3] == ["ssh", "--profile", "pybox"]
    assert facts.state == "running"
    assert (facts.boot_id, facts.accelerator) == (BOOT_ID, "vz")
    assert facts.endpoint == f"unix://{mac.home}/.colima/pybox/docker.sock"
    assert kind_in_words(facts) == "private VM (Colima, Apple Virtualization)"
    assert "no shared folders" in facts.remark


def test_nothing_of_the_environment_reaches_the_command(mac: Mac, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLIMA_HOME", "/elsewhere")
    monkeypatch.setenv("LIMA_HOME", "/elsewhere")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/agent")
    mac.start()
    for call in mac.calls():
        assert call["environment"].keys() - {"LC_CTYPE", "__CF_USER_TEXT_ENCODING"} == {"HOME", "USER", "PATH"}
        assert call["environment"]["PATH"].split(":")[0] == str(mac.tools)


def test_one_that_runs_is_not_started_again(mac: Mac) -> None:
    mac.start()
    before = len([word for word in mac.words() if word.startswith("start")])
    assert mac.machine.start(lambda _: None).state == "running"
    assert len([word for word in mac.words() if word.startswith("start")]) == before


IGNORED: list[tuple[dict[str, str], str]] = [
    ({"mount": "~"}, "folders are shared"),
    ({"mount": ""}, "folders are shared"),
    ({"port-forwarder": "ssh"}, "ports are forwarded"),
    ({"port-forwarder": "grpc"}, "ports are forwarded"),
    ({"vm-type": "qemu"}, "type is not vz"),
    ({"runtime": "containerd"}, "engine is not Docker"),
    ({"activate": "true"}, "active context"),
    ({"ssh-config": "true"}, "~/.ssh/config"),
    ({"ssh-agent": "true"}, "keys are passed on"),
    ({"network-address": "true"}, "has an address"),
]


@case("mac-config-ignored", "mac-mounts", "mac-virtiofs")
@pytest.mark.parametrize(("behaviour", "why"), IGNORED)
def test_a_setting_that_was_not_taken_ends_the_machine_and_is_named(
    behaviour: dict[str, str], why: str, mac: Mac
) -> None:
    mac.does(**behaviour)
    with pytest.raises(SetupError, match=why) as caught:
        mac.start()
    assert "colima delete --profile pybox" in caught.value.advice
    assert mac.words()[-1] == "stop --profile"
    assert mac.machine.status().state == "stopped"


CHANGED: list[tuple[str, dict[str, Any], str]] = [
    ("pybox/colima.yaml", {"mounts": [{"location": "~", "writable": True}]}, "folders are shared"),
    ("pybox/colima.yaml", {"mounts": []}, "folders are shared"),
    ("pybox/colima.yaml", {"docker": {"hosts": ["tcp://0.0.0.0:2375"]}}, "engine has settings of its own"),
    ("pybox/colima.yaml", {"provision": [{"mode": "system", "script": "id"}]}, "scripts run in it"),
    ("pybox/colima.yaml", {"kubernetes": {"enabled": True}}, "Kubernetes"),
    ("pybox/colima.yaml", {"env": {"HTTP_PROXY": "x"}}, "variables"),
    ("pybox/colima.yaml", {"diskImage": "/tmp/other.raw"}, "disk is another"),
    ("pybox/colima.yaml", {"network": {"hostAddresses": True}}, "has an address"),
    ("_lima/colima-pybox/colima.yaml", {"mounts": []}, "folders are shared"),
    ("_lima/colima-pybox/lima.yaml", {"mounts": [{"location": "~"}]}, "folders are shared (Lima)"),
    ("_lima/colima-pybox/lima.yaml", {"vmType": "qemu"}, "not vz (Lima)"),
    ("_lima/colima-pybox/lima.yaml", {"networks": [{"vzNAT": True}]}, "has an address (Lima)"),
    ("_lima/colima-pybox/lima.yaml", {"ssh": {"forwardAgent": True}}, "keys are passed on (Lima)"),
    ("_lima/colima-pybox/lima.yaml", {"ssh": {}}, "ssh keys open it (Lima)"),
    ("_lima/colima-pybox/lima.yaml", {"portForwards": [{"guestPort": 80}]}, "ports are forwarded (Lima)"),
    (
        "_lima/colima-pybox/lima.yaml",
        {"portForwards": [{"guestSocket": "/var/run/docker.sock", "hostSocket": "/tmp/engine.sock"}]},
        "ports are forwarded (Lima)",
    ),
]


@case("mac-config-ignored")
@pytest.mark.parametrize(("file", "changes", "why"), CHANGED)
def test_settings_changed_since_are_seen_before_the_next_use(
    file: str, changes: dict[str, Any], why: str, mac: Mac
) -> None:
    mac.start()
    mac.rewrite(file, **changes)
    facts = mac.machine.status()
    assert facts.state == "unreachable"
    assert why in facts.remark
    with pytest.raises(VMMissing) as caught:
        choose(Wish(), lambda: mac.machine, {})
    assert why in caught.value.message


@case("mac-config-ignored")
@pytest.mark.parametrize("name", ["override.yaml", "default.yaml"])
def test_what_lima_adds_for_all_its_machines_is_seen_too(name: str, mac: Mac) -> None:
    folder = mac.home / ".colima" / "_lima" / "_config"
    folder.mkdir(parents=True)
    (folder / name).write_text("# nothing is set\n\n")
    assert mac.start().state == "running"
    (folder / name).write_text("mounts:\n- location: ~\n  writable: true\n")
    assert mac.machine.status().state == "unreachable"
    with pytest.raises(SetupError, match=name):
        mac.machine.start(lambda _: None)


@pytest.mark.parametrize(
    "content", [b"", b"[", b"- 1", b"a: &a [*a]", b"\xff\xfe", b"!!python/object/apply:os.getcwd []"]
)
def test_a_file_that_is_none_is_no_setting_as_asked(content: bytes, mac: Mac) -> None:
    mac.start()
    (mac.home / ".colima" / "pybox" / "colima.yaml").write_bytes(content)
    assert mac.machine.status().state == "unreachable"


def test_the_machine_is_chosen_and_known_by_its_boot_id(mac: Mac) -> None:
    mac.start()
    place = choose(Wish("vm"), lambda: mac.machine, {})
    assert place.vm is not None
    vm = place.vm()
    assert vm is not None
    assert (vm.words, vm.boot_id) == ("private VM (Colima, Apple Virtualization)", BOOT_ID)
    assert "no forwarded ports" in vm.remark


def test_a_machine_that_says_no_boot_id_is_not_one_to_be_known(mac: Mac) -> None:
    mac.does(boot_id="nonsense")
    with pytest.raises(EngineTimeout, match="did not say which kernel"):
        mac.start()
    assert mac.machine.status().state == "stopped"


@case("mac-sleep")
@pytest.mark.parametrize("word", ["start", "ssh"])
def test_a_machine_half_dead_after_a_sleep_is_waited_for_a_while_and_the_repairing_command_named(
    word: str, mac: Mac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(colima, "START_SECONDS", 1.0)
    monkeypatch.setattr(colima, "ASK_SECONDS", 1.0)
    mac.does(hangs=word)
    began = time.monotonic()
    with pytest.raises(EngineTimeout, match="within 1 s") as caught:
        mac.start()
    assert time.monotonic() - began < 10
    assert "colima stop --force --profile pybox" in caught.value.advice


def test_what_prints_without_end_in_the_machine_does_not_fill_this_computers_memory(
    mac: Mac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(colima, "ASK_SECONDS", 1.0)
    mac.does(floods="ssh")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(EngineTimeout, match="within 1 s"):
        mac.start()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_what_colima_says_last_is_passed_on(mac: Mac) -> None:
    mac.does(fails="start")
    with pytest.raises(SetupError, match="error starting vm: exit status 1"):
        mac.start()


def test_one_that_will_not_be_ended_is_ended_by_force(mac: Mac) -> None:
    mac.start()
    mac.does(fails="stop")
    with pytest.raises(SetupError):
        mac.machine.stop()
    assert mac.words()[-2:] == ["stop --profile", "stop --force"]
    assert mac.machine.status().state != "running", "what is asked to end is not used any more"


def test_its_clock_is_measured(mac: Mac) -> None:
    mac.start()
    clock = mac.machine.clock()
    assert clock is not None
    assert abs(clock.ahead_seconds - 3) <= clock.within_seconds + 0.01
    mac.does(fails="ssh")
    assert mac.machine.clock() is None


@case("mac-socket-path")
def test_a_home_folder_with_a_long_name_is_told_before_anything_is_started(mac: Mac) -> None:
    long = mac.home / ("x" * 90)
    machine = ColimaMachine(mac.kept, long, [mac.tools])
    length = len(os.fsencode(machine.socket))
    with pytest.raises(SetupError, match=f"has {length} bytes, and a socket's may have 103") as caught:
        machine.start(lambda _: None)
    assert "shorter" in caught.value.advice
    assert mac.calls() == []


@pytest.mark.parametrize("changed", ["colima", "limactl", "the folder"])
def test_a_tool_that_others_can_change_is_not_run(changed: str, mac: Mac) -> None:
    path = mac.tools if changed == "the folder" else mac.tools / changed
    path.chmod(0o777)
    with pytest.raises(SetupError, match="not this user's alone to change"):
        mac.start()
    assert mac.calls() == []


def test_where_there_is_no_colima_it_is_said_how_to_have_it(mac: Mac) -> None:
    (mac.tools / "colima").unlink()
    with pytest.raises(SetupError, match="There is no colima") as caught:
        mac.start()
    assert "brew install colima" in caught.value.advice
