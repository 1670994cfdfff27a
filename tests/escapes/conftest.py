"""Attacks run in boxes of one session."""

from collections.abc import Callable

import pytest

from pybox_kernel.session import Session
from tests.escapes.running import Ran, run_attack


@pytest.fixture(scope="session")
def attack(session: Session) -> Callable[..., Ran]:
    def run(source: str, deadline: float = 2.0) -> Ran:
        return run_attack(session, source, deadline)

    return run
