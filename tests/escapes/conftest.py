"""Attacks run in boxes of one session that waited for them, as most cells of a notebook do, and some in boxes made for
them too.

``PYBOX_TEST_BOXES="made now"`` runs all of them in boxes made for them, and in no others: `make soak` does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from pybox_kernel.boxes.journal import Journal
from pybox_kernel.images.store import ImageStore, RecordedImage
from pybox_kernel.sessions.session import Session
from tests.escapes.running import Ran, run_attack

IN_BOTH: Final = frozenset(
    {
        "test_a_crash_writes_no_core_file_and_the_limit_cannot_be_raised",
        "test_a_daemon_that_holds_the_output_open_ends_with_the_program",
        "test_a_fork_bomb_meets_the_task_limit_and_ends_at_the_deadline",
        "test_a_memory_bomb_is_killed_and_the_cause_is_the_kernels_count",
        "test_a_program_holds_its_three_streams_and_its_events_and_nothing_else",
        "test_all_attacks_at_once_do_not_put_the_deadline_off",
        "test_boxes_one_after_another_have_users_of_their_own",
        "test_displays_without_end_are_bounded_and_what_was_dropped_is_said",
        "test_each_run_begins_in_empty_folders",
        "test_exit_0_after_a_kill_for_memory_shows_both",
        "test_no_file_of_the_timers_or_the_kernels_takes_a_write",
        "test_only_signals_reach_the_timer_and_none_of_them_does_anything",
        "test_only_the_loopback_is_up_inside",
        "test_the_environment_has_exactly_the_documented_names",
    }
)
MADE_NOW, WAITED = "made now", "waited"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "attack" in metafunc.fixturenames:
        if os.environ.get("PYBOX_TEST_BOXES") == MADE_NOW:
            boxes = [MADE_NOW]
        else:
            boxes = [MADE_NOW, WAITED] if metafunc.function.__name__ in IN_BOTH else [WAITED]
        metafunc.parametrize("attack", boxes, indirect=True, scope="session")


@pytest.fixture(scope="session")
def in_advance(box_image: RecordedImage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Of an installation of its own: its box waits for minutes, and other tests count theirs."""
    home = tmp_path_factory.mktemp("home-in-advance")
    home.chmod(0o700)
    ImageStore(home).record(box_image)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYBOX_POOL", "3")  # the next attack's is made while this one's is looked at
        opened = Session(Journal(home), in_advance=True)
    with opened:
        yield opened


@pytest.fixture(scope="session")
def attack(request: pytest.FixtureRequest) -> Callable[..., Ran]:
    waited = request.param == WAITED
    session: Session = request.getfixturevalue("in_advance" if waited else "session")

    def run(source: str, deadline: float = 2.0) -> Ran:
        if waited:
            await_box(session)
        ran = run_attack(session, source, deadline)
        assert (ran.receipt.observed.box.waited is not None) == waited
        return ran

    return run


def await_box(session: Session) -> None:
    session.expect("stdlib")
    limit = time.monotonic() + 30
    while not session.waiting():
        assert time.monotonic() < limit, "no box waits"
        time.sleep(0.01)
