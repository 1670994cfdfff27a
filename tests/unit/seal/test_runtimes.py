"""Which container runtimes can hold a seal, and what is known against a version of runc."""

from __future__ import annotations

import pytest

from pybox_kernel.engine import EngineVersions
from pybox_kernel.seal.runtimes import known_weakness, runtime_in_words, runtime_of, usable
from tests.cases import case


@case("eng-runc-old")
@pytest.mark.parametrize(
    ("version", "ways_out"),
    [
        ("1.0.3", "2024 2025"),
        ("1.1.11", "2024 2025"),
        ("1.1.12", "2025"),
        ("1.1.15", "2025"),
        ("1.2.7", "2025"),
        ("1.2.8", ""),
        ("1.3.2", "2025"),
        ("1.3.3", ""),
        ("1.4.0-rc.2", "2025"),
        ("1.4.0-rc.3", ""),
        ("1.4.0", ""),
        ("v1.4.1+dev", ""),
        ("2.0.0", ""),
    ],
)
def test_what_is_known_against_a_runc_is_said(version: str, ways_out: str) -> None:
    said = known_weakness(version) or ""
    assert [year for year in ("2024", "2025") if f" {year} " in said] == ways_out.split()
    assert ("unless its maker has mended" in said) == bool(ways_out)


@case("eng-runc-old")
def test_what_debian_has_mended_in_its_own_is_said_and_no_more() -> None:
    said = known_weakness("1.1.5+ds1", "1.1.5+ds1-1+deb12u1") or ""
    assert "CVE-2025-52881" in said
    assert "Debian has mended that of 2024" in said
    assert "unless" not in said


def test_a_version_in_another_form_is_not_known() -> None:
    assert known_weakness("unknown-version") == "its version is not known"


@pytest.mark.parametrize("name", ["runc", "io.containerd.runc.v2", "crun"])
def test_a_runtime_that_holds_the_rules_is_used(name: str) -> None:
    assert usable(name)
    assert runtime_in_words(name) == name


@case("eng-gvisor-pids", "eng-gvisor-oom", "eng-kata-oom")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("runsc", "a kernel of its own"),
        ("io.containerd.runsc.v1", "a kernel of its own"),
        ("kata-runtime", "a virtual machine for each box"),
        ("io.containerd.kata.v2", "a virtual machine for each box"),
        ("sysbox-runc", "more than it is asked for"),
        ("nvidia", "devices"),
        ("something", "something"),
        ("", "nothing"),
        (None, "nothing"),
        (7, "nothing"),
    ],
)
def test_another_is_refused_with_the_reason(name: object, reason: str) -> None:
    assert not usable(name)
    assert reason in runtime_in_words(name)


def test_the_version_of_runc_is_not_taken_for_that_of_another_runtime() -> None:
    versions = EngineVersions("27.0", "1.1.5", "")
    assert runtime_of("crun", versions) == ("crun", None, None)
    assert runtime_of("runc", versions).version == "1.1.5"
    assert runtime_of("runc", None) == ("runc", None, None)
