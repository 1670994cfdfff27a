"""Places for waiting boxes: bounded over all who share a state folder, and given back by whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pybox_kernel.boxes.waiting_places import HIGHEST, MOST_BOXES, MOST_MIB, Bounds, Place, Places, bounds_of_user


def test_no_more_boxes_than_the_bound_and_a_place_given_back_is_free_again(tmp_path: Path) -> None:
    first, second = Places(tmp_path, Bounds(2, 100)), Places(tmp_path, Bounds(2, 100))
    one, two = first.take(16), second.take(16)
    assert one is not None
    assert two is not None
    assert first.take(16) is None
    assert first.held() == Bounds(2, 32)
    one.release()
    one.release()
    assert second.held() == Bounds(1, 16)
    three = second.take(16)
    assert three is not None
    assert sorted(path.name for path in (tmp_path / "waiting").iterdir()) == ["0", "1", "lock"]
    two.release()
    three.release()


def test_no_more_mib_than_the_bound_whatever_the_number(tmp_path: Path) -> None:
    places = Places(tmp_path, Bounds(10, 100))
    large = places.take(90)
    assert large is not None
    assert places.take(16) is None
    small = places.take(10)
    assert small is not None
    large.release()
    small.release()
    assert places.held() == Bounds(0, 0)


def test_what_a_box_was_found_to_take_counts_and_too_much_is_told(tmp_path: Path) -> None:
    places = Places(tmp_path, Bounds(10, 100))
    one, two = places.take(90), places.take(10)
    assert one is not None
    assert two is not None
    assert places.count(one, 9)
    assert Places(tmp_path, Bounds(0, 0)).held() == Bounds(2, 19)
    assert places.count(two, 91)
    assert not places.count(one, 10)
    one.release()
    assert places.held() == Bounds(1, 91)
    two.release()
    assert not places.count(two, 1), "it is given back"
    assert places.have(100)
    assert not places.have(101)
    assert not Places(tmp_path, Bounds(0, 100)).have(1)


def test_who_wants_more_leaves_a_quarter_to_those_who_have_none(tmp_path: Path) -> None:
    places = Places(tmp_path, Bounds(8, 100))
    held = [places.take(10, more=True) for _ in range(7)]
    assert sum(place is not None for place in held) == 6
    assert places.take(20, more=True) is None
    held.append(places.take(20))
    assert held[-1] is not None
    for place in held:
        if place is not None:
            place.release()
    large = places.take(70, more=True)
    assert large is not None
    assert places.take(10, more=True) is None
    large.release()


def test_a_session_that_is_killed_gives_its_places_back(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from pybox_kernel.boxes.waiting_places import *\n"
        "held = [Places(Path(sys.argv[1]), Bounds(2, 99)).take(9) for _ in range(3)]\n"
        "print(sum(place is not None for place in held), flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], **pipes) as other:  # type: ignore[call-overload]
        assert other.stdout.readline() == b"2\n"
        places = Places(tmp_path, Bounds(2, 99))
        assert places.held() == Bounds(2, 18)
        assert places.take(1) is None
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert places.held() == Bounds(0, 0)
        place = places.take(1)
        assert place is not None
        place.release()


def test_many_who_take_at_once_never_get_more_than_there_are(tmp_path: Path) -> None:
    got: list[Place] = []

    def take() -> None:
        place = Places(tmp_path, Bounds(5, 1000)).take(1)
        if place is not None:
            got.append(place)

    threads = [threading.Thread(target=take) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 5
    for place in got:
        place.release()


def test_a_folder_that_cannot_be_used_has_no_places(tmp_path: Path) -> None:
    (tmp_path / "waiting").write_text("not a folder")
    places = Places(tmp_path, Bounds(2, 99))
    assert places.take(1) is None
    assert places.held() == Bounds(0, 0)
    places.ask_back()
    assert places.asked_back() == 0


def test_what_stands_in_a_place_is_only_ever_a_number(tmp_path: Path) -> None:
    places = Places(tmp_path, Bounds(2, 99))
    place = places.take(5)
    assert place is not None
    (tmp_path / "waiting" / "0").write_text("-7 and more")
    assert places.held() == Bounds(1, 0)
    place.release()


def test_boxes_are_asked_back_from_everyone(tmp_path: Path) -> None:
    places = Places(tmp_path, Bounds(2, 99))
    before = places.asked_back()
    Places(tmp_path, Bounds(0, 0)).ask_back()
    assert places.asked_back() != before


@pytest.mark.parametrize(
    ("boxes", "mib", "wanted"),
    [
        ("", "", Bounds(MOST_BOXES, MOST_MIB)),
        ("0", "64", Bounds(0, 64)),
        ("3", "-1", Bounds(3, MOST_MIB)),
        ("many", "1e9", Bounds(MOST_BOXES, MOST_MIB)),
        ("99999", "9" * 30, Bounds(HIGHEST, MOST_MIB)),
        ("\u0663", " 7 ", Bounds(MOST_BOXES, 7)),
    ],
)
def test_the_bounds_are_set_by_two_variables(
    boxes: str, mib: str, wanted: Bounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "PYBOX_POOL", boxes)
    monkeypatch.setitem(os.environ, "PYBOX_POOL_MB", mib)
    assert bounds_of_user() == wanted
