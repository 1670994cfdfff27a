"""``display()``, and the value of a cell's last expression: what of an object is offered to the host, and what is not.

Of each object its text is sent; besides, at most one of a table, a picture and HTML. All else that it offers is named
with its size and held back: scripts, SVG, markdown, whatever is too big. A figure of matplotlib is always a picture.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time

from pybox_kernel.inside.events import EVENTS, LARGEST, TEXT, as_json, begin, cut, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Bundle = dict[str, Any]

REPRESENTATIONS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_latex_", "text/latex"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_javascript_", "application/javascript"),
    ("_repr_json_", "application/json"),
    ("_repr_pdf_", "application/pdf"),
)
PICTURES = ("image/png", "image/jpeg")
HTML_BYTES = 65536
PICTURE_BYTES = 1 << 20
MOST_WITHHELD = 32
MOST_SHOWN = 30
"""Displays that the warden takes of one cell. Those after them wait for nothing."""
WAIT_SECONDS = 0.05
CANARY = "_ipython_canary_method_should_not_exist_"


class Shown:
    """What one display offers, by MIME type; kept by ``%%capture``, otherwise sent."""

    def __init__(self, data: Bundle, result: bool = False, table: dict[str, Any] | None = None) -> None:
        self.data = data
        self.result = result
        self.table = table

    def display(self) -> None:
        send(self)

    def _repr_mimebundle_(self, **_options: object) -> Bundle:
        return self.data


captured: list[list[Shown]] = []
"""The innermost ``%%capture`` takes what is shown."""
counted = 0


def display(
    *objects: object,
    include: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
    display_id: str | bool | None = None,
    raw: bool = False,
    **_options: object,
) -> DisplayHandle | None:
    """Shows objects below the cell. ``raw=True`` shows a dict of MIME types as it is. What a page could run is
    held back, and the receipt says so. Metadata and the like are taken and have no effect."""
    for item in objects:
        if raw and isinstance(item, dict):
            send(Shown(bundle_of(item)))
        else:
            error = show(item, include=include, exclude=exclude)
            if error is not None:
                tell(error)
    if not display_id:
        return None
    return DisplayHandle(display_id if isinstance(display_id, str) else os.urandom(16).hex())


def update_display(item: object, *, display_id: str, **options: Any) -> None:
    """Shows the object again: what stands on the page is not taken back."""
    display(item, display_id=display_id, **options)


class DisplayHandle:
    def __init__(self, display_id: str | None = None) -> None:
        self.display_id = display_id or os.urandom(16).hex()

    def display(self, item: object, **options: Any) -> None:
        display(item, **options)

    def update(self, item: object, **options: Any) -> None:
        display(item, **options)

    def __repr__(self) -> str:
        return "<DisplayHandle display_id=%s>" % self.display_id


def tell(error: BaseException) -> None:
    from pybox_kernel.inside.tracebacks import print_traceback

    print_traceback(error)


def method_of(item: object, name: str) -> Callable[..., Any] | None:
    """The object's own method; none of a class, and none of what has every attribute that is asked for."""
    if isinstance(item, type):
        return None
    try:
        if getattr(item, CANARY, None) is not None:
            return None
        found: Any = getattr(item, name, None)
    except Exception:
        return None
    return found if callable(found) else None


def result_of(method: Callable[..., Any], **options: object) -> Any:
    """What a representation method offers; its traceback on stderr where it fails, and nothing."""
    try:
        found = method(**options)
    except NotImplementedError:
        return None
    except Exception as error:
        tell(error)
        return None
    return found[0] if isinstance(found, tuple) and found else found


def bundle_of(offered: dict[Any, Any]) -> Bundle:
    return {key: value for key, value in offered.items() if isinstance(key, str) and value is not None}


def show(
    item: object,
    *,
    result: bool = False,
    include: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
) -> Exception | None:
    """Shows one object; the exception of its ``repr`` where that failed, and something else stands for its text."""
    own = method_of(item, "_ipython_display_")
    if own is not None:
        result_of(own)
        return None
    table = None
    offered: Bundle = {}
    bundle = method_of(item, "_repr_mimebundle_")
    if bundle is not None:
        found = result_of(bundle, include=include, exclude=exclude)
        if isinstance(found, dict):
            offered = bundle_of(found)
    if "matplotlib.figure" in sys.modules:
        from pybox_kernel.inside.figures import bundle_of as bundle_of_figure
        from pybox_kernel.inside.figures import is_figure

        if is_figure(item):
            offered = bundle_of_figure(item)
    if str(type(item).__module__).startswith(("pandas", "polars")):
        from pybox_kernel.inside.tables import table_of

        table = table_of(item)
    for name, mime in REPRESENTATIONS:
        method = None if mime in offered or (table is not None and mime == "text/html") else method_of(item, name)
        if method is not None:
            found = result_of(method)
            if found is not None:
                offered[mime] = found
    text, error = (offered["text/plain"], None) if "text/plain" in offered else plain_text(item)
    kept = {
        mime: value
        for mime, value in offered.items()
        if (include is None or mime in include) and (exclude is None or mime not in exclude)
    }
    send(Shown({**kept, "text/plain": text}, result, table))
    return error


def plain_text(item: object) -> tuple[str, Exception | None]:
    try:
        from pybox_kernel.inside.pretty import pretty

        return pretty(item), None
    except Exception as error:
        return "<%s object; its text could not be made: %s>" % (type(item).__name__, type(error).__name__), error


def size_of(value: object) -> int:
    try:
        if isinstance(value, str):
            return len(value.encode("utf-8", "backslashreplace"))
        return len(value) if isinstance(value, (bytes, bytearray)) else len(as_json(value))
    except Exception:
        return 0


def picture(value: object) -> tuple[str, int] | None:
    """A picture as base64, and its size; it may be given as bytes or as base64."""
    from binascii import b2a_base64

    if isinstance(value, (bytes, bytearray)):
        if len(value) > PICTURE_BYTES:
            return None
        return b2a_base64(value, newline=False).decode(), len(value)
    if isinstance(value, str):
        text = "".join(value.split())
        size = len(text) * 3 // 4 - text[-2:].count("=")
        return (text, size) if text.isascii() and size <= PICTURE_BYTES else None
    return None


def send(shown: Shown) -> None:
    """Sends it, in its place among what is printed."""
    if captured:
        captured[-1].append(shown)
        return
    payload = as_event(shown)
    global counted  # noqa: PLW0603 - one process, one count
    counted += 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    if counted <= MOST_SHOWN:
        wait_until_read(1, 2)
    try:
        say(b"d", payload)
    except OSError:  # the program has closed the pipe: nothing can be shown any more
        return
    if counted <= MOST_SHOWN:
        wait_until_read(EVENTS)


def as_event(shown: Shown) -> bytes:
    text = shown.data.get("text/plain", "")
    data = {"text/plain": cut(text if isinstance(text, str) else str(text), TEXT)}
    withheld: dict[str, int] = {}
    rich = shown.table is not None
    for mime in sorted(shown.data, key=order):
        value = shown.data[mime]
        if mime == "text/plain" or (mime == "text/html" and shown.table is not None):
            continue
        if mime in PICTURES and rich:
            continue  # the same thing once more
        if mime in PICTURES:
            found = picture(value)
            if found is not None:
                data[mime] = found[0]
                rich = True
                continue
        elif mime == "text/html" and isinstance(value, str) and size_of(value) <= HTML_BYTES:
            data[mime] = value
            continue
        if len(withheld) < MOST_WITHHELD:
            withheld[begin(mime, 190)] = size_of(value)
    event = {"result": shown.result, "data": data, "table": shown.table, "withheld": withheld}
    payload = as_json(event)
    if len(payload) > LARGEST and "text/html" in data:
        withheld["text/html"] = size_of(data.pop("text/html"))
        payload = as_json(event)
    return payload


def order(mime: str) -> tuple[int, str]:
    return (PICTURES.index(mime) if mime in PICTURES else len(PICTURES)), mime


def wait_until_read(*descriptors: int) -> None:
    """Until what was written is taken by the warden, so that order holds across the three pipes; not for long."""
    limit = time.monotonic() + WAIT_SECONDS
    for descriptor in descriptors:
        try:
            while int.from_bytes(fcntl.ioctl(descriptor, FIONREAD, b"\0\0\0\0"), sys.byteorder):
                if time.monotonic() > limit:
                    return
                time.sleep(0.0002)
        except OSError:
            continue


FIONREAD = 0x541B
