"""The line to a box's own part."""

from __future__ import annotations

import resource

import pytest

from pybox_kernel.boxes.line import Line
from pybox_kernel.errors import BoxError


def test_where_no_descriptor_is_left_the_line_is_refused_in_words() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        with pytest.raises(BoxError, match="no room for another connection: Too many open files"):
            Line(None)  # type: ignore[arg-type]  # it is not looked at
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
