"""Figures of matplotlib, each shown once: where the cell asks for it, or else at its end.

Drawn as PNG, as a notebook's inline backend draws them: at the figure's own resolution, and cut to what is on it. What
would be larger than a display may be is drawn at a lower one, which is known before memory is taken for it.
"""

from __future__ import annotations

import io
import math
import sys
import warnings
import weakref

from pybox_kernel.inside import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST_SIDE = 8192
MOST_PIXELS = 1 << 24
"""As the host's ``pictures`` has them."""
QUICK_PIXELS = 1 << 20
"""Of more than these, time counts more than bytes."""
TRIES = 4
"""A picture may take so many to have its size in bytes."""

last: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
"""The hash of the picture that a figure was last shown as; 0 where it was shown as a text."""


def prepare() -> Callable[[], None]:
    """Puts PyBox's ``show`` in the place of pyplot's, which has nowhere to show anything. Gives what shows the rest at
    the end of the cell."""
    sys.modules["matplotlib.pyplot"].show = show  # type: ignore[attr-defined]
    return show_open


def show(*_arguments: object, **_options: object) -> None:
    """Shows the open figures here, and closes them."""
    show_open()


def show_open() -> None:
    """In order of their numbers. One that was shown by itself, and is still as it was, is not shown again."""
    helpers: Any = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None:
        return
    try:
        for manager in sorted(helpers.Gcf.get_all_fig_managers(), key=lambda manager: int(manager.num)):
            try:
                show_changed(manager.canvas.figure)
            except Exception as error:
                shown.tell(error)
            finally:
                helpers.Gcf.destroy(manager)
    except BaseException as error:
        try:
            shown.tell(error)
        except Exception:  # the program has no stderr any more
            pass


def show_changed(figure: Any) -> None:
    before = last.get(figure)
    if before is not None and not figure.stale:
        return
    offered = bundle_of(figure)
    if before is None or last.get(figure) != before:
        shown.send(shown.Shown(offered))


def is_figure(item: object) -> bool:
    kind = getattr(sys.modules.get("matplotlib.figure"), "Figure", None)
    return isinstance(kind, type) and isinstance(item, kind)


def bundle_of(figure: Any) -> dict[str, Any]:
    """The figure's text and, unless nothing is on it, its picture. Why it cannot be drawn is told on stderr."""
    text = shown.plain_text(figure)[0]
    last[figure] = 0
    # An empty figure is no picture, as elsewhere; and what the warden would not take is not worth the time.
    if len(figure.get_children()) <= 1 or (shown.counted >= shown.MOST_SHOWN and not shown.captured):
        return {"text/plain": text}
    asked = figure.dpi
    try:
        data, dpi = drawn(figure)
    except Exception as error:
        error.add_note("%s could not be drawn." % text)
        shown.tell(error)
        return {"text/plain": text}
    last[figure] = hash(data)
    if dpi < asked:
        text += "\ndrawn at %.3g dpi instead of %.3g to fit" % (dpi, asked)
    return {"text/plain": text, "image/png": data}


def drawn(figure: Any) -> tuple[bytes, float]:
    """The PNG, and at how many dots per inch it was drawn. The figure is left as it was."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas_before, asked = figure.canvas, figure.dpi
    canvas = FigureCanvasAgg(figure)  # the pixels go with it
    try:
        width, height = figure.get_size_inches()
        dpi = fitting(width, height, asked)
        for _ in range(TRIES):
            data, dpi = drawn_at(dpi, figure, canvas)
            if len(data) <= shown.PICTURE_BYTES:
                break
            dpi *= 0.95 * math.sqrt(shown.PICTURE_BYTES / len(data))
        return data, dpi
    finally:
        # Texts keep what drew them, and all its pixels with it.
        for artist in figure.findobj(lambda artist: getattr(artist, "_renderer", None) is not None):
            artist._renderer = None
        figure.dpi = asked
        figure.set_canvas(canvas_before)
        figure.stale = False


def fitting(width: float, height: float, dpi: float) -> float:
    """``dpi``, or as many as a picture of so many inches may have."""
    if width * dpi < 1 or height * dpi < 1:
        return dpi  # matplotlib's to say
    return min(dpi, (MOST_SIDE - 2) / max(width, height), math.sqrt(MOST_PIXELS / (width * height)) * 0.999)


def drawn_at(dpi: float, figure: Any, canvas: Any) -> tuple[bytes, float]:
    """Once over the whole figure, and cut; only where something stands outside it, once more for that."""
    from matplotlib import rcParams
    from matplotlib.transforms import Bbox

    figure.dpi = dpi
    canvas.draw()
    box = figure.get_tightbbox(canvas.get_renderer())
    sides = [float(side) for side in box.padded(rcParams["savefig.pad_inches"]).extents]
    if not all(map(math.isfinite, sides)):
        sides = [0.0, 0.0, *figure.get_size_inches()]
    left, bottom, right, top = sides
    width, height = figure.get_size_inches()
    file = io.BytesIO()
    if left < 0 or bottom < 0 or right > width or top > height:
        dpi = fitting(right - left, top - bottom, dpi)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the first drawing has said it
            canvas.print_figure(
                file,
                format="png",
                dpi=dpi,
                facecolor=figure.get_facecolor(),
                edgecolor=figure.get_edgecolor(),
                bbox_inches=Bbox.from_extents(*sides),
                pil_kwargs=compression((right - left) * (top - bottom) * dpi * dpi),
            )
        return file.getvalue(), dpi
    from PIL import Image

    columns, rows = canvas.get_width_height()
    whole = Image.frombuffer("RGBA", (columns, rows), canvas.buffer_rgba(), "raw", "RGBA", 0, 1)
    cut = whole.crop(
        (
            math.floor(left * dpi),
            max(0, rows - math.ceil(top * dpi)),
            min(columns, math.ceil(right * dpi)),
            min(rows, rows - math.floor(bottom * dpi)),
        )
    )
    cut.save(file, "png", **compression(cut.width * cut.height))
    return file.getvalue(), dpi


def compression(pixels: float) -> dict[str, int]:
    return {"compress_level": 6 if pixels <= QUICK_PIXELS else 1}
