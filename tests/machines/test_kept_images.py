"""Box images of the machine's own, as files: whole or not at all, for this user, and no longer than they count."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybox_kernel.errors import EngineTimeout, SetupError
from pybox_kernel.machines.kept_images import KeptImages
from tests.unit.images.test_plan import recorded


class Engine:
    """What it gives of an image, and then ends with ``error``."""

    def __init__(self, *parts: bytes, error: Exception | None = None) -> None:
        self._parts, self._error = parts, error

    def save(self, reference: str) -> Iterator[bytes]:
        yield from self._parts
        if self._error is not None:
            raise self._error


def given(kept: KeptImages, name: str = "stdlib") -> bytes | None:
    holder = kept.holder(recorded(name=name))
    return None if holder is None else b"".join(holder.save("pybox:stdlib"))


def test_what_is_kept_is_given_again(tmp_path: Path) -> None:
    kept = KeptImages(tmp_path / "images")
    assert given(kept) is None
    kept.keep(recorded(), Engine(b"one", b"two"))
    assert given(kept) == b"onetwo"
    [file] = (tmp_path / "images").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_what_breaks_off_is_not_kept_and_the_one_before_stays(tmp_path: Path) -> None:
    kept = KeptImages(tmp_path / "images")
    with pytest.raises(EngineTimeout):
        kept.keep(recorded(), Engine(b"half", error=EngineTimeout("it does not answer", "")))
    assert given(kept) is None
    assert list((tmp_path / "images").iterdir()) == []
    kept.keep(recorded(), Engine(b"whole"))
    with pytest.raises(EngineTimeout):
        kept.keep(recorded(), Engine(b"half", error=EngineTimeout("it does not answer", "")))
    assert given(kept) == b"whole"


def test_one_that_is_recorded_no_more_goes(tmp_path: Path) -> None:
    kept = KeptImages(tmp_path / "images")
    kept.forget_others([])
    kept.keep(recorded(), Engine(b"whole"))
    kept.forget_others([recorded()])
    assert given(kept) == b"whole"
    kept.forget_others([])
    assert given(kept) is None


def test_a_place_that_does_not_take_it_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "images").write_text("in the way")
    with pytest.raises(SetupError, match="could not be kept") as caught:
        KeptImages(tmp_path / "images").keep(recorded(), Engine(b"whole"))
    assert "room" in caught.value.advice
