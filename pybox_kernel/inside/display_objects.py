"""The classes of ``IPython.display``, as far as cells commonly use them. They say what they are, and show what may be.

Markdown, SVG, scripts, players and frames are named on the receipt and held back, like anything of that kind.
"""

from __future__ import annotations

import html
import os

from pybox_kernel.inside.shown import DisplayHandle, display, update_display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class DisplayObject:
    """Something of one MIME type. ``data`` may also be read from a file of the box; nothing is fetched."""

    mime = "text/plain"
    binary = False
    fetches = False

    def __init__(
        self,
        data: Any = None,
        url: str | None = None,
        filename: str | None = None,
        metadata: object = None,
        **options: Any,
    ) -> None:
        if isinstance(data, str) and data.startswith(("http://", "https://")) and self.fetches:
            data, url = None, data
        elif self.is_path(data):
            data, filename = None, os.fspath(data)
        self.url = url
        self.filename = filename
        self.metadata = metadata
        self.options = options
        self.data = data
        if filename is not None:
            self.reload()

    def is_path(self, data: Any) -> bool:
        return self.binary and isinstance(data, (str, os.PathLike)) and os.path.exists(data)

    def reload(self) -> None:
        if self.filename is not None:
            with open(self.filename, "rb") as file:
                read = file.read()
            self.data = read if self.binary else read.decode("utf-8", "replace")

    def _repr_mimebundle_(self, **_options: object) -> dict[str, Any]:
        return {} if self.data is None else {self.mime: self.data}

    def __repr__(self) -> str:
        if self.data is None and self.url is not None:
            return "<%s of %s: not fetched, as a box has no network>" % (type(self).__name__, self.url)
        return "<IPython.core.display.%s object>" % type(self).__name__


class TextDisplayObject(DisplayObject):
    """Whose data is text that can be read as it is."""

    def __repr__(self) -> str:
        return self.data if isinstance(self.data, str) else super().__repr__()


class HTML(DisplayObject):
    mime = "text/html"

    def _repr_html_(self) -> Any:
        return self.data


class Markdown(TextDisplayObject):
    mime = "text/markdown"


class Latex(TextDisplayObject):
    mime = "text/latex"


class Math(Latex):
    def _repr_mimebundle_(self, **_options: object) -> dict[str, Any]:
        return {self.mime: "$\\displaystyle %s$" % str(self.data).strip("$")}


class SVG(DisplayObject):
    mime = "image/svg+xml"
    fetches = True


class JSON(DisplayObject):
    mime = "application/json"

    def __repr__(self) -> str:
        from pybox_kernel.inside.pretty import pretty

        return pretty(self.data)


class GeoJSON(JSON):
    mime = "application/geo+json"


class Javascript(DisplayObject):
    mime = "application/javascript"


class Pretty(TextDisplayObject):
    def __repr__(self) -> str:
        return str(self.data)


class Code(TextDisplayObject):
    def __init__(self, data: Any = None, url: str | None = None, filename: str | None = None, **options: Any) -> None:
        super().__init__(data, url, filename, **options)

    def _repr_html_(self) -> str:
        return "<pre><code>%s</code></pre>" % html.escape(str(self.data))

    def _repr_mimebundle_(self, **_options: object) -> dict[str, Any]:
        return {}


class Image(DisplayObject):
    """A PNG or JPEG, from bytes or a file of the box."""

    binary = True
    fetches = True

    def is_path(self, data: Any) -> bool:
        return isinstance(data, (str, os.PathLike))

    def _repr_mimebundle_(self, **_options: object) -> dict[str, Any]:
        data = self.data
        if not isinstance(data, (bytes, bytearray)):
            return {}
        if data[:3] == b"\xff\xd8\xff":
            return {"image/jpeg": data}
        if data[:3] == b"GIF":
            return {"image/gif": data}
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return {"image/webp": data}
        return {"image/png": data}


class Framed(DisplayObject):
    """What is a page or a player on a page: named and held back."""

    mime = "text/html"
    binary = True
    fetches = True
    what = "page"

    def _repr_mimebundle_(self, **_options: object) -> dict[str, Any]:
        return {}

    def __repr__(self) -> str:
        source = self.filename or self.url or self.options.get("src") or ""
        return "<%s %s: %s is not shown in PyBox>" % (type(self).__name__, source, self.what)


class Audio(Framed):
    what = "sound"


class Video(Framed):
    what = "a film"


class IFrame(Framed):
    what = "another page"

    def __init__(self, src: str = "", *_size: object, **options: Any) -> None:
        super().__init__(None, url=src, **options)


class YouTubeVideo(IFrame):
    what = "a film"


class VimeoVideo(IFrame):
    what = "a film"


class ScribdDocument(IFrame):
    what = "another page"


class FileLink(Framed):
    """Names a file of the box, which goes away with it."""

    def __init__(self, path: object = "", **options: Any) -> None:
        super().__init__(None, **options)
        self.path = str(path)

    def __repr__(self) -> str:
        return self.path


class FileLinks(FileLink):
    pass


class ProgressBar:
    """Iterates over ``range(total)``; shown at its beginning and its end."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.progress = 0

    def __repr__(self) -> str:
        done = 0 if not self.total else self.progress * 60 // self.total
        return "[%-60s] %d/%d" % ("=" * done, self.progress, self.total)

    def display(self) -> None:
        display(self)

    update = display

    def __iter__(self) -> Iterator[int]:
        self.display()
        for done in range(self.total):
            self.progress = done
            yield done
        self.progress = self.total
        self.display()


def clear_output(wait: bool = False) -> None:
    """Does nothing: what a cell has shown stays."""


def displayer(kind: type[DisplayObject]) -> Callable[..., None]:
    def show(*objects: object, raw: bool = False, **_options: object) -> None:
        for item in objects:
            display(kind(item) if raw else item)

    return show


NAMES = {
    **{
        kind.__name__: kind
        for kind in (
            HTML, Markdown, Latex, Math, SVG, JSON, GeoJSON, Javascript, Pretty, Code, Image, Audio, Video, IFrame,
            YouTubeVideo, VimeoVideo, ScribdDocument, FileLink, FileLinks, ProgressBar, DisplayHandle, DisplayObject,
            TextDisplayObject,
        )
    },
    "clear_output": clear_output,
    "display": display,
    "update_display": update_display,
    "display_html": displayer(HTML),
    "display_javascript": displayer(Javascript),
    "display_json": displayer(JSON),
    "display_jpeg": displayer(Image),
    "display_latex": displayer(Latex),
    "display_markdown": displayer(Markdown),
    "display_png": displayer(Image),
    "display_pretty": displayer(Pretty),
    "display_svg": displayer(SVG),
    "publish_display_data": lambda data, *_a, **_k: display(data, raw=True),
    "set_matplotlib_formats": lambda *_a, **_k: None,
    "set_matplotlib_close": lambda *_a, **_k: None,
}  # fmt: skip
