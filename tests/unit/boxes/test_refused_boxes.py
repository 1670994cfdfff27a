"""What is remembered of boxes that waited and got no program: the last few, for a while, and only what can be read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pybox_kernel.boxes.refused_boxes import (
    LATELY,
    LONGEST_WHY,
    MOST,
    Note,
    failed_lately,
    note_failed,
    note_refused,
    refused_lately,
)
from pybox_kernel.errors import BoxError


def test_the_last_ones_are_remembered_in_order_and_no_more(tmp_path: Path) -> None:
    assert refused_lately(tmp_path) == ()
    for number in range(MOST + 5):
        note_refused(tmp_path, BoxError(f"{number}", ""))
    assert [one.why for one in refused_lately(tmp_path)] == [str(number) for number in range(5, MOST + 5)]


def test_what_is_told_of_one_is_bounded(tmp_path: Path) -> None:
    note_refused(tmp_path, BoxError("x" * 10_000, ""))
    assert [len(one.why) for one in refused_lately(tmp_path)] == [LONGEST_WHY]


def test_what_is_old_or_of_the_future_or_cannot_be_read_is_not_told(tmp_path: Path) -> None:
    note_refused(tmp_path, BoxError("now", ""))
    now = datetime.now(UTC)
    old = Note(at=now - LATELY - timedelta(minutes=1), why="old")
    future = Note(at=now + timedelta(hours=1), why="future")
    path = tmp_path / "waiting" / "refused"
    lines = [old.model_dump_json(), "{", '{"at": 1}', future.model_dump_json(), path.read_text()]
    path.write_text("\n".join(lines))
    assert [one.why for one in refused_lately(tmp_path)] == ["now"]
    path.write_bytes(b"\xff" * 100_000)
    assert refused_lately(tmp_path) == ()
    note_refused(tmp_path, BoxError("again", ""))
    assert [one.why for one in refused_lately(tmp_path)] == ["again"]


def test_what_kept_boxes_from_being_made_is_remembered_apart(tmp_path: Path) -> None:
    note_failed(tmp_path, OSError(24, "Too many open files"))
    assert [one.why for one in failed_lately(tmp_path)] == ["OSError: [Errno 24] Too many open files"]
    assert refused_lately(tmp_path) == ()


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "waiting").write_text("not a folder")
    note_refused(tmp_path, BoxError("lost", ""))
    assert refused_lately(tmp_path) == ()
