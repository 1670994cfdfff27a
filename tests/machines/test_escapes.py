"""Attacks in boxes inside the private machine: the seal is the same there, and read by the same witnesses."""

from __future__ import annotations

import pytest

from tests.escapes.test_deadline import (
    test_all_attacks_at_once_do_not_put_the_deadline_off,
    test_only_signals_reach_the_timer_and_none_of_them_does_anything,
)
from tests.escapes.test_endings import (
    test_a_program_holds_its_three_streams_and_its_events_and_nothing_else,
)
from tests.escapes.test_environment import (
    test_each_run_begins_in_empty_folders,
    test_the_environment_has_exactly_the_documented_names,
)
from tests.escapes.test_memory import (
    test_a_memory_bomb_is_killed_and_the_cause_is_the_kernels_count,
    test_exit_0_after_a_kill_for_memory_shows_both,
)
from tests.escapes.test_network import test_only_the_loopback_is_up_inside
from tests.escapes.test_processes import (
    test_boxes_one_after_another_have_users_of_their_own,
)

pytestmark = pytest.mark.engine

__all__ = [
    "test_a_memory_bomb_is_killed_and_the_cause_is_the_kernels_count",
    "test_a_program_holds_its_three_streams_and_its_events_and_nothing_else",
    "test_all_attacks_at_once_do_not_put_the_deadline_off",
    "test_boxes_one_after_another_have_users_of_their_own",
    "test_each_run_begins_in_empty_folders",
    "test_exit_0_after_a_kill_for_memory_shows_both",
    "test_only_signals_reach_the_timer_and_none_of_them_does_anything",
    "test_only_the_loopback_is_up_inside",
    "test_the_environment_has_exactly_the_documented_names",
]
