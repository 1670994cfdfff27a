"""Runs one cell as ``__main__`` in the program's own process. Standard library only.

The warden starts it with: 0 ``/dev/null``, 1 stdout, 2 stderr, 3 the events pipe, 4 the source. It imports what the
image offers, says it is ready, and waits for the source. All it says after that is the program's word: the program
shares this process and could say the same.

Events: one type byte, a four-byte big-endian length, the payload.
    r ready    c reached the last statement    x an exception (JSON)    d a display (JSON)
"""

from __future__ import annotations

import ast
import builtins
import io
import json
import linecache
import os
import struct
import sys
import threading
import traceback
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

EVENTS = 3
SOURCE = 4
CELL = "/tmp/cell.py"
HEADER = struct.Struct(">cI")
NAME, TEXT, TRACEBACK = 1000, 14000, 40000
"""Bytes of JSON for each part of an event; together under the 60,000 that the warden takes of one."""
NICER = 10

# A courtesy to the warden: the program can lower it again, and the kernel may pick the warden all the same.
OOM_SCORE_ADJ = "1000"


def say(kind: bytes, value: object = None) -> None:
    payload = b"" if value is None else as_json(value)
    data = HEADER.pack(kind, len(payload)) + payload
    while data:
        data = data[os.write(EVENTS, data) :]


def as_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def cut(text: str, most: int = TEXT) -> str:
    """The beginning and the end of a text, as far as both fit into ``most`` bytes of JSON. Half of a character, which
    UTF-8 does not have, is escaped."""
    text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) <= most and len(as_json(text)) <= most:
        return text
    each = min(most - 100, len(text)) // 2  # 100 for the line between
    while True:
        kept = text[:each] + "\n… %d characters left out …\n" % (len(text) - 2 * each) + text[-each:]
        if len(as_json(kept)) <= most:
            return kept
        each = each * 3 // 4


def text_of(value: object, convert: Callable[[Any], str] = str, most: int = TEXT) -> str:
    try:
        return cut(convert(value), most)
    except BaseException:
        return "<%s %s() failed>" % (type(value).__name__, convert.__name__)


def without_runner(error: BaseException | None, seen: set[int] | None = None) -> None:
    """Cuts this file's own frames off the top of an exception's traceback, and of those behind it."""
    seen = set() if seen is None else seen
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        step = error.__traceback__
        while step is not None and step.tb_frame.f_code.co_filename == __file__:
            step = step.tb_next
        error.__traceback__ = step
        for inner in getattr(error, "exceptions", ()):
            without_runner(inner, seen)
        without_runner(error.__cause__, seen)
        error = error.__context__


def report(error: BaseException) -> None:
    """Tells of an exception as the program's error; on stderr where the events pipe does not take it."""
    try:
        without_runner(error)
        lines = traceback.format_exception(error)
    except BaseException:
        lines = ["<the traceback could not be made>\n"]
    told = {
        "name": text_of(type(error).__name__, most=NAME),
        "value": text_of(error),
        "traceback": cut("".join(lines), TRACEBACK),
    }
    try:
        say(b"x", told)
    except (OSError, ValueError):
        sys.stderr.write(told["traceback"])


def display(*objects: object) -> None:
    """Shows objects from the cell. Plain text leaves the box; the receipt lists what else was offered."""
    for item in objects:
        bundle: dict[str, str | int] = {"text/plain": text_of(item, repr)}
        for method, mime in REPRESENTATIONS:
            try:
                found = getattr(item, method)()
            except BaseException:
                continue
            if isinstance(found, bytes):
                found = found.decode("latin-1")
            if isinstance(found, str):
                bundle[mime] = len(found)
        say(b"d", bundle)


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


def read_source() -> str:
    parts: list[bytes] = []
    while True:
        part = os.read(SOURCE, 65536)
        if not part:
            os.close(SOURCE)
            return b"".join(parts).decode("utf-8")
        parts.append(part)


def exit_status(error: SystemExit, tree: ast.Module) -> tuple[int, bool]:
    """The exit status that ``sys.exit`` asked for, and whether the cell's last statement itself asked for it."""
    code = error.code
    if code is None:
        status = 0
    elif isinstance(code, int):
        status = code & 0xFF if -(2**63) <= code < 2**63 else 0xFF  # as Python itself has it
    else:
        sys.stderr.write(text_of(code) + "\n")
        status = 1
    steps = [s for s in traceback.walk_tb(error.__traceback__) if s[0].f_code.co_filename != __file__]
    own = [s for s in steps if s[0].f_globals.get("__name__") != "_sitebuiltins"]
    last = tree.body[-1] if tree.body else None
    at_end = last is not None and len(own) == 1 and last.lineno <= own[0][1] <= (last.end_lineno or last.lineno)
    return status, at_end


def run_cell(source: str) -> tuple[int, bool]:
    """Runs the cell; its exit status."""
    try:
        with open(CELL, "w", encoding="utf-8", newline="") as file:
            file.write(source)
    except OSError:
        pass
    main = types.ModuleType("__main__")
    main.__file__ = CELL
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    # Not str.splitlines, which splits at more than Python does: at a form feed, for one.
    lines = io.StringIO(source, newline=None).readlines()
    linecache.cache[CELL] = (len(source), None, lines, CELL)
    try:
        # compile() of text pays no heed to an encoding cookie: the text is as in the cell.
        # Not ast.parse, whose own frames would stand in the traceback of a syntax error.
        tree: Any = compile(source, CELL, "exec", ast.PyCF_ONLY_AST, True)
        code = compile(tree, CELL, "exec", dont_inherit=True)
        exec(code, main.__dict__)
    except SystemExit as error:
        status, completed = exit_status(error, tree)
    except BaseException as error:
        report(error)
        status, completed = 1, False
    else:
        status, completed = 0, True
    return status, completed


def finish(status: int, completed: bool, own_pid: int) -> None:
    """What the end of a Python program does, without tearing down modules: threads joined, exit functions run."""
    import atexit

    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except BaseException as error:
        report(error)
        status, completed = status or 1, False
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass
    if completed and os.getpid() == own_pid:
        try:
            say(b"c")
        except OSError:
            pass
    os._exit(status)


def main() -> None:
    own_pid = os.getpid()
    os.nice(NICER)
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write(OOM_SCORE_ADJ)
    os.set_inheritable(EVENTS, False)
    os.set_inheritable(SOURCE, False)
    sys.stdout.reconfigure(line_buffering=True, write_through=True, errors="strict")  # type: ignore[union-attr]
    sys.stderr.reconfigure(line_buffering=True, write_through=True)  # type: ignore[union-attr]
    builtins.display = display  # type: ignore[attr-defined]
    os.chdir("/box")
    sys.path.insert(0, "")
    sys.argv = [""]
    say(b"r")
    source = read_source()
    finish(*run_cell(source.removeprefix("\ufeff")), own_pid)


if __name__ == "__main__":
    main()
