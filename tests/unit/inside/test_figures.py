"""How large a figure is drawn: as it asks, or as large as the host takes. Figures themselves need a data box."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.inside import figures, shown
from pybox_kernel.safe_display import pictures

INCHES = st.floats(0.02, 1e4)
DPI = st.floats(50, 2000)


def test_the_bounds_are_the_hosts_own() -> None:
    assert (figures.MOST_SIDE, figures.MOST_PIXELS) == (pictures.MOST_SIDE, pictures.MOST_PIXELS)
    assert shown.PICTURE_BYTES == pictures.MOST_BYTES


@given(INCHES, INCHES, DPI)
def test_a_figure_has_its_own_resolution_or_the_largest_that_fits(width: float, height: float, dpi: float) -> None:
    found = figures.fitting(width, height, dpi)
    wide, high = math.ceil(width * found) + 1, math.ceil(height * found) + 1
    assert max(wide, high) <= pictures.MOST_SIDE
    assert wide * high <= pictures.MOST_PIXELS
    fits = max(width, height) * dpi < 8190 and width * height * dpi * dpi < 0.99 * pictures.MOST_PIXELS
    assert found == dpi if fits else 0 < found <= dpi
    if found < dpi:
        assert max(width, height) * found > 8100 or width * height * found * found > 0.95 * pictures.MOST_PIXELS


def test_a_figure_of_twenty_thousand_pixels_a_side_is_drawn_at_a_fifth() -> None:
    assert 20 < figures.fitting(200, 200, 100) < 20.5


def test_without_matplotlib_nothing_is_a_figure_and_nothing_is_open() -> None:
    assert not figures.is_figure(figures)
    figures.show_open()
