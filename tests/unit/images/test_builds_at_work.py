"""The marks of builds: who is at work is left alone, and who was killed is found, in any order."""

from __future__ import annotations

from pathlib import Path

from pybox_kernel.images.builds_at_work import at_work, killed_ones

ONE, OTHER = "data-0123456789ab", "mine-0123456789ab"
HERE, THERE = "unix:///run/docker.sock", "unix:///run/other.sock"


def test_a_build_that_is_at_work_and_one_that_has_ended_are_none_that_was_killed(tmp_path: Path) -> None:
    assert list(killed_ones(tmp_path, HERE)) == []
    with at_work(tmp_path, ONE, HERE):
        assert list(killed_ones(tmp_path, HERE)) == []
        assert (tmp_path / "builds" / ONE).exists()
    assert list((tmp_path / "builds").iterdir()) == []


def test_a_mark_that_nobody_holds_is_of_a_killed_build_of_its_engine_and_told_until_it_is_dealt_with(
    tmp_path: Path,
) -> None:
    (tmp_path / "builds").mkdir()
    for name, engine in ((ONE, HERE), (OTHER, THERE), ("../x", ""), ("Not-a-build", HERE)):
        if "/" not in name:
            (tmp_path / "builds" / name).write_text(engine)
    assert next(killed_ones(tmp_path, HERE)) == ONE  # and then it failed
    assert list(killed_ones(tmp_path, HERE)) == [ONE]
    assert list(killed_ones(tmp_path, HERE)) == []
    (tmp_path / "builds" / ONE).write_text("")  # of a build that is just about to begin
    assert list(killed_ones(tmp_path, THERE)) == [OTHER]
