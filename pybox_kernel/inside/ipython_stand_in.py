"""A stand-in for IPython, which is not in a box: made for cells that were written for a notebook.

``import IPython``, ``from IPython.display import ...`` and ``get_ipython()`` find here what cells commonly use.
Everything that is shown goes through PyBox's ``display``: pictures and tables are shown, simple HTML as the host allows
it, and what a page would run or fetch is named on the receipt and held back. There is no IPython behind it.
"""

from __future__ import annotations

import html
import os
import sys

from pybox_kernel.inside import shown
from pybox_kernel.inside.cell import CELL
from pybox_kernel.inside.cell_magics import UsageError, is_silent
from pybox_kernel.inside.magic_advice import advice_on_command, advice_on_magic
from pybox_kernel.inside.shown import DisplayHandle, display, update_display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

VERSION = "9.0.0+pybox.stand.in"
"""The IPython whose names it has, and that it is none."""


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


class Events:
    """Takes what libraries register, and calls none of it."""

    def register(self, event: str, function: object) -> None:
        pass

    def unregister(self, event: str, function: object) -> None:
        pass


class BoxShell:
    """What ``get_ipython()`` gives: the magics that work in a box, and no shell."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.events = Events()
        self.kernel = None
        self.execution_count = 1

    @property
    def user_ns(self) -> dict[str, Any]:
        return sys.modules["__main__"].__dict__

    def run_line_magic(self, magic_name: str, line: str = "", _stack_depth: int = 1) -> Any:
        frame = sys._getframe(1)
        name = magic_name.lstrip("%")
        if name in ("time", "timeit"):
            from pybox_kernel.inside import timing

            lineno = frame.f_lineno if frame.f_code.co_filename == CELL else 1
            if name == "time":
                return timing.time_line(line, frame.f_globals, frame.f_locals, lineno)
            names = frame.f_globals
            if frame.f_locals is not names:
                names = {**names, **frame.f_locals}
            return timing.timeit(line, None, names, lineno)
        if name == "pinfo":
            from pybox_kernel.inside.help_text import help_on

            shown.send(shown.Shown({"text/plain": help_on(line, {**frame.f_globals, **frame.f_locals})}))
            return None
        if is_silent(name, line.strip()):
            return None
        raise UsageError(advice_on_magic(name, line), "%" + (name + " " + line).strip())

    def run_cell_magic(self, magic_name: str, line: str, _cell: str) -> Any:
        raise UsageError("Write %% magics in the first line of a cell.", "%%" + (magic_name + " " + line).strip())

    def magic(self, arg_s: str) -> Any:
        name, _, line = arg_s.partition(" ")
        return self.run_line_magic(name, line)

    def system(self, command: str) -> Any:
        raise UsageError(advice_on_command(command), "!" + command)

    getoutput = system_piped = getoutput_error = system

    def enable_gui(self, gui: object = None) -> None:
        pass

    def ev(self, expression: str) -> Any:
        return eval(expression, self.user_ns)  # noqa: S307 - the program's own, in its own process

    def ex(self, statement: str) -> None:
        exec(statement, self.user_ns)

    def push(self, variables: dict[str, Any], _interactive: bool = True) -> None:
        self.user_ns.update(variables)

    def __repr__(self) -> str:
        return "<PyBox's stand-in for IPython's shell>"


shell = BoxShell()


def get_ipython() -> BoxShell:
    return shell


DISPLAY = {
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
MODULES: dict[str, dict[str, Any]] = {
    "IPython": {
        "__version__": VERSION,
        "version_info": (9, 0, 0, "pybox"),
        "get_ipython": get_ipython,
        "display": display,
    },
    "IPython.display": DISPLAY,
    "IPython.core": {},
    "IPython.core.display": DISPLAY,
    "IPython.core.display_functions": DISPLAY,
    "IPython.core.getipython": {"get_ipython": get_ipython},
    "IPython.core.error": {"UsageError": UsageError},
}


class Loader:
    """Fills a module of the stand-in."""

    @staticmethod
    def create_module(_spec: object) -> None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        module.__doc__ = __doc__
        module.__dict__.update(MODULES[module.__name__])


def spec_of(name: str) -> Any:
    from importlib.machinery import ModuleSpec

    if name not in MODULES:
        return None
    is_package = any(other.startswith(name + ".") for other in MODULES)
    return ModuleSpec(name, Loader, is_package=is_package)  # type: ignore[arg-type]
