"""What comes out of a machine is bounded on this computer: a box may have taken it over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pybox_kernel.errors import SetupError
from pybox_kernel.machines import kept_images
from pybox_kernel.machines.kept_images import KeptImages
from tests.unit.images.test_plan import recorded


class Endless:
    def save(self, reference: str) -> Iterator[bytes]:
        while True:
            yield b"x" * 100


def test_an_image_without_end_is_not_kept_and_fills_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_images, "MOST_BYTES", 1000)
    kept = KeptImages(tmp_path / "images")
    with pytest.raises(SetupError, match="was not kept"):
        kept.keep(recorded(), Endless())
    assert list((tmp_path / "images").iterdir()) == []
    assert kept.holder(recorded()) is None
