"""The warden's turns, where what they meet depends on how quick it and the program are."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

import pytest


def after_one_turn(monkeypatch: pytest.MonkeyPatch, *, brings_all: bool) -> Any:
    """A warden whose next turn brings the last byte of the program or not, and whose runner has then ended."""
    monkeypatch.setattr(sys, "path", list(sys.path))  # which the warden changes, since it runs alone in a box
    kind: Any = importlib.import_module("pybox_kernel.inside.warden").Warden
    warden = object.__new__(kind)
    warden.runner_status = warden.how = warden.started = None

    def turn(_until: float) -> None:
        warden.started = time.monotonic() if brings_all else None

    def reap() -> bool:
        warden.runner_status = 0
        return True

    warden.turn, warden.reap = turn, reap
    return warden


def test_a_program_that_has_ended_before_a_throttled_warden_looks_is_no_failure_of_the_box(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    after_one_turn(monkeypatch, brings_all=True).idle_turn(time.monotonic())


def test_a_runner_that_ends_before_the_program_came_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="ended before the program came"):
        after_one_turn(monkeypatch, brings_all=False).idle_turn(time.monotonic())
