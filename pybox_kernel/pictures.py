"""Pictures from a box."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["Picture"]


class Picture(NamedTuple):
    """A picture that may stand on a page."""

    mime: Literal["image/png", "image/jpeg"]
    width: int
    height: int
    data: bytes
