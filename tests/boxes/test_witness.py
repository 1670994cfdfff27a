"""Each witness on the real engine: who read the kernel's files, and that the witness itself can do nothing else."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from pybox_kernel.boxes.journal import Journal
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.policy import STDLIB
from pybox_kernel.render.text import render_full
from pybox_kernel.sessions.session import Session
from tests.boxes.conftest import Installation
from tests.boxes.engine_between import EngineBetween, Fault
from tests.conftest import Outside

pytestmark = pytest.mark.engine

KILLS = "import os\nif os.fork() == 0:\n  x = [bytearray(1 << 20) for _ in range(300)]\nos.wait()\nprint('alive')"


def use(own: Installation, way: str, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("PYBOX_HOME", str(own.home))
    patch.setenv("PYBOX_WITNESS", way)


def witnesses(own: Installation, outside: Outside) -> list[str]:
    return outside.boxes(installation=own.id, role="witness")


@pytest.mark.parametrize(
    ("way", "source"), [("", "this computer"), ("container", "witness container"), ("box", "the box's own reading")]
)
def test_each_witness_verifies_the_seal_and_says_who_it_was(
    way: str, source: str, own: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(own, way, monkeypatch)
    with Session.open() as session:
        result = session.run(KILLS)
    receipt = result.receipt
    seal, meters = receipt.observed.seal, receipt.observed.meters
    assert result.stdout == "alive\n"
    assert seal.before_start
    assert seal.kernel.source == source
    assert seal.kernel.checked > 20
    assert receipt.observed.boundary.kind == "this_kernel"
    assert receipt.observed.box.removed is True
    unknown = {item.what for item in receipt.unknown}
    counted = set(type(meters).model_fields) - {"final", "ran_seconds"}
    if way == "box":
        assert not meters.final
        assert unknown == counted | {"cgroups"}
        assert "read from within the box" in render_full(receipt)
    else:
        assert meters.final
        assert not unknown & (counted | {"cgroups"})
        assert meters.oom_kills == 1
        assert meters.memory_peak_bytes is not None
        assert meters.memory_peak_bytes > STDLIB.memory_bytes * 0.9
    assert own.entries() == []


def test_the_looks_of_this_computer_and_of_a_container_compare_the_same_settings(
    own: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = []
    for way in ("", "container"):
        use(own, way, monkeypatch)
        with Session.open() as session:
            checked.append(session.run("print(1)").receipt.observed.seal.kernel.checked)
    assert checked[0] == checked[1]


def test_a_witness_container_can_read_and_nothing_else(
    own: Installation, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(own, "container", monkeypatch)
    with Session.open() as session:
        assert session.run("print(1)").receipt.ok
        (witness,) = witnesses(own, outside)
        record = outside.api.inspect_container(witness)
        pid = record["State"]["Pid"]
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        mounts = [line.split() for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
        links = {line.split(":")[0].strip() for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]}
        routes = Path(f"/proc/{pid}/net/route").read_text().splitlines()[1:]
        assert session.run("print(1)").receipt.ok
        assert witnesses(own, outside) == [witness], "one serves the whole session"
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert set(status["Uid"].split()) == {"9999"}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert links <= {"lo", "tunl0", "sit0", "ip6tnl0"}
    assert routes == []
    assert next(mount for mount in mounts if mount[4] == "/")[5].split(",")[0] == "ro"
    assert next(mount for mount in mounts if mount[4] == "/host-cgroup")[5].split(",")[0] == "ro"
    host = record["HostConfig"]
    assert (host["Privileged"], host["AutoRemove"], host["RestartPolicy"]["Name"] in ("", "no")) == (False, True, True)
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (64 << 20, 64 << 20, 8)
    assert host["Binds"] == ["/sys/fs/cgroup:/host-cgroup:ro"]
    assert record["NetworkSettings"]["Networks"].keys() == {"none"}
    outside.wait_gone(witness, 0.1)
    assert own.sessions() == []


def test_a_witness_that_was_removed_between_two_runs_is_started_again(
    own: Installation, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(own, "container", monkeypatch)
    with Session.open() as session:
        session.run("print(1)")
        (first,) = witnesses(own, outside)
        outside.api.remove_container(first, force=True)
        receipt = session.run("print(1)").receipt
        assert receipt.ok
        assert receipt.observed.seal.kernel.source == "witness container"
        assert receipt.observed.meters.final
        (second,) = witnesses(own, outside)
        assert second != first
        assert len(own.entries()) == 1
    assert own.boxes() == []
    assert own.sessions() == []


def test_a_witness_that_is_stopped_holds_nobody_up_and_is_replaced(
    own: Installation, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(own, "container", monkeypatch)
    monkeypatch.setattr("pybox_kernel.seal.witness.ANSWER_SECONDS", 0.5)
    monkeypatch.setattr("pybox_kernel.seal.witness.START_SECONDS", 0.5)
    with Session.open() as session:
        session.run("print(1)")
        (first,) = witnesses(own, outside)
        outside.api.pause(first)
        receipt = session.run("print(1)").receipt
        assert receipt.ok
        assert receipt.observed.seal.kernel.source == "witness container"
        outside.wait_gone(first, 0.1)


@pytest.mark.parametrize("way", ["container", "box"])
def test_where_a_witness_container_cannot_be_made_the_weaker_source_is_named(
    way: str, own: Installation, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an engine that refuses the host's process numbers to a container."""

    def refused(image_id: str, labels: dict[str, str]) -> dict[str, object]:
        return {
            "Image": image_id,
            "Labels": labels,
            "HostConfig": {"PidMode": "container:none-such", "AutoRemove": True},
        }

    use(own, way, monkeypatch)
    monkeypatch.setattr("pybox_kernel.sessions.witness.witness_config", refused)
    with Session.open() as session:
        for _ in range(2):
            receipt = session.run("print(1)").receipt
            assert receipt.ok
            assert receipt.observed.seal.kernel.source == "the box's own reading"
            assert receipt.observed.box.removed is True
        assert witnesses(own, outside) == []
        assert own.entries() == []


def test_an_engine_that_made_no_witness_is_asked_again_a_while_later(
    own: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(own, "container", monkeypatch)
    once = Fault(
        "POST /containers/create", "answer", skip=1, body={"message": "busy"}, status="503 Service Unavailable"
    )
    with (
        EngineBetween(tmp_path / "engine.sock", once) as between,
        Session(Journal(own.home), DockerEngine(between.address)) as session,
    ):
        first, second = (session.run("print(1)").receipt for _ in range(2))
        assert {each.observed.seal.kernel.source for each in (first, second)} == {"the box's own reading"}
        session._boxes._witness._not_before = 0.0  # type: ignore[union-attr]  # that while is over
        assert session.run("print(1)").receipt.observed.seal.kernel.source == "witness container"
    assert own.boxes() == []


def test_a_witness_whose_making_was_never_answered_is_not_left_in_the_session(
    own: Installation, outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(own, "container", monkeypatch)
    lost = Fault("POST /containers/create", "lose", skip=1)
    with (
        EngineBetween(tmp_path / "engine.sock", lost) as between,
        Session(Journal(own.home), DockerEngine(between.address)) as session,
    ):
        assert session.run("print(1)").receipt.observed.seal.kernel.source == "the box's own reading"
        assert witnesses(own, outside) == []
        assert own.entries() == []


def test_the_witness_of_a_killed_session_is_gone_at_once(own: Installation, outside: Outside) -> None:
    program = """
import sys
from pybox_kernel.sessions.session import Session
with Session.open() as session:
    session.run("print(1)")
    print("up", flush=True)
    sys.stdin.read()
"""
    process = own.python(program, PYBOX_WITNESS="container")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    (witness,) = witnesses(own, outside)
    (entry,) = own.entries()
    process.send_signal(signal.SIGKILL)
    assert outside.wait_gone(witness, 2.0) < 2.0
    process.communicate()
    assert own.cleanup()["already_gone"] == [entry.stem]
