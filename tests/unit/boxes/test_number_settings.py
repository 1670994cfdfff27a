"""Whole numbers in the environment; what is set and is none is told by ``doctor``, with what is used instead."""

from __future__ import annotations

import pytest

from pybox_kernel.boxes.number_settings import misread, number_setting
from pybox_kernel.doctor import of_numbers


@pytest.mark.parametrize(
    ("text", "number"), [("", 7), ("  ", 7), ("0", 0), (" 12 ", 12), ("007", 7), ("999999999", 999_999_999)]
)
def test_a_number_counts_and_nothing_stands_for_the_usual(
    text: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBOX_POOL", text)
    assert number_setting("PYBOX_POOL", 7) == number
    assert misread("PYBOX_POOL") is None
    assert list(of_numbers()) == []


@pytest.mark.parametrize("text", ["junk", "-1", "off", "1e3", "1.5", "\u0663", "1" * 10])
@pytest.mark.parametrize(
    ("name", "used"), [("PYBOX_POOL", "16 is used"), ("PYBOX_POOL_MB", "512 is used"), ("PYBOX_AT_ONCE", "is used")]
)
def test_what_is_no_number_is_not_used_and_doctor_says_what_was_wanted(
    name: str, used: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("PYBOX_POOL", "PYBOX_POOL_MB", "PYBOX_AT_ONCE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, text)
    assert number_setting(name, 7) == 7
    [finding] = of_numbers()
    assert (finding.what, finding.state) == (name, "warning")
    assert f"“{text}”" in finding.found
    assert used in finding.found
    assert "whole number" in finding.advice


def test_what_doctor_quotes_is_short_and_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBOX_POOL", "\x1b[2J\u202e" + "x" * 5000)
    [finding] = of_numbers()
    assert "\x1b" not in finding.found
    assert "\u202e" not in finding.found
    assert len(finding.found) < 200
