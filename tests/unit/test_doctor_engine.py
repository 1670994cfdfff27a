"""What ``doctor`` says of an engine, from what the engine says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pybox_kernel.doctor import Finding, State, examine, in_short, of_limits, of_place, of_runtime
from pybox_kernel.engine import Engine, EngineFacts, EngineVersions, Place, PrivateVM
from pybox_kernel.engine_choice import wish_of
from tests.cases import case

GOOD = EngineFacts(
    "unix:///run/docker.sock",
    "27.5",
    "1.47",
    "6.12",
    "x86_64",
    "2",
    "1.2.9",
    "runc",
    True,
    True,
    True,
    True,
    ("seccomp",),
)
PLACE = Place("unix:///run/docker.sock", "container engine", "the usual one")


def test_a_name_that_is_no_engine_is_told_beside_all_the_rest(tmp_path: Path) -> None:
    def engine() -> Engine:
        wish_of(environment={"PYBOX_ENGINE": "junk"})
        raise AssertionError

    findings = examine(engine, tmp_path / "home", "pybox-sealed")
    assert (findings[0].what, findings[0].state) == ("container engine", "wrong")
    assert "PYBOX_ENGINE is 'junk'" in findings[0].found
    assert {"records", "box image", "Jupyter", "leftovers"} <= {finding.what for finding in findings}


def test_an_engine_that_can_all_is_no_trouble() -> None:
    assert [finding.state for finding in of_limits(GOOD)] == ["ok"]
    assert of_runtime(GOOD, EngineVersions("27.5", "1.2.9", "")).state == "ok"


@case("eng-rootless-cpu")
@pytest.mark.parametrize("says", [False, None])
@pytest.mark.parametrize("limit", ["memory_limit", "swap_limit", "cpu_limit", "pids_limit"])
def test_a_limit_that_an_engine_cannot_hold_is_told_before_a_box_is_refused_for_it(limit: str, says: Any) -> None:
    [finding] = of_limits(GOOD._replace(**{limit: says}))
    assert finding.state == "wrong"
    assert "cannot enforce" in finding.found
    assert finding.advice


@case("eng-runc-old")
def test_an_old_runc_is_warned_about_with_its_version_and_what_to_do() -> None:
    finding = of_runtime(GOOD, EngineVersions("20.10", "1.1.5+ds1", "1.1.5+ds1-1+deb12u1"))
    assert finding.state == "warning"
    assert "runc 1.1.5+ds1-1+deb12u1" in finding.found
    assert "put a private virtual machine around it" in finding.advice
    within = of_runtime(GOOD, EngineVersions("26.1", "1.1.15+ds1", "1.1.15+ds1-2+deb13u1"), in_vm=True)
    assert within.state == "warning"
    assert "apt-get" not in within.advice, "that would change this computer, and not what is in the machine"


@pytest.mark.parametrize("runtime", ["runsc", "kata-runtime", "sysbox-runc"])
def test_a_runtime_that_holds_no_seal_is_named_with_the_reason(runtime: str) -> None:
    finding = of_runtime(GOOD._replace(runtime=runtime), EngineVersions("27.5", "1.2.9", ""))
    assert finding.state == "wrong"
    assert finding.found.startswith(f"{runtime}: ")


def test_crun_is_used_and_its_version_not_made_up() -> None:
    finding = of_runtime(GOOD._replace(runtime="crun"), EngineVersions("27.5", "1.1.5", ""))
    assert finding.state == "ok"
    assert "1.1.5" not in finding.found


def test_where_boxes_are_to_be_is_told() -> None:
    assert "no private virtual machine" in of_place(PLACE).found
    vm = PLACE._replace(vm=lambda: PrivateVM("private VM (QEMU, KVM)", "boot"))
    assert "private VM (QEMU, KVM)" in of_place(vm).found
    assert of_place(PLACE._replace(vm=lambda: None)).state == "wrong"
    assert of_place(PLACE._replace(address="tcp://192.0.2.1:2376")).state == "warning"


@pytest.mark.parametrize(
    ("states", "told"),
    [
        (("ok", "ok"), "All is ready"),
        (("ok", "warning"), "Ready, with 1 warning"),
        (("warning", "wrong", "wrong"), "2 things to mend"),
    ],
)
def test_the_sum_of_what_was_found_hides_no_warning(states: tuple[State, ...], told: str) -> None:
    assert in_short([Finding("", state, "", "") for state in states]) == told
