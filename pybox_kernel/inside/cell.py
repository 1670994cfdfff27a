"""One cell as Python: parsed, compiled, run as ``__main__``, its last value shown, its exception told.

A cell that is Python runs as it is. Only one that is not is searched for magics (``cell_magics``).
"""

from __future__ import annotations

import _ast
import builtins
import io
import re
import sys

from pybox_kernel.inside.events import as_json, begin, say, text_of
from pybox_kernel.inside.shown import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, TracebackType
    from typing import Any

    from pybox_kernel.inside.cell_magics import CellMagic

    Namespace = dict[str, Any]

CELL = "/tmp/cell.py"
"""The cell is a file, so that what a program starts anew (multiprocessing's spawn) finds it."""
OWN_MODULES = "pybox_kernel.inside."
OWN_FOLDER = __file__.rpartition("/")[0] + "/"
NAME = 1000
"""Bytes of JSON for an exception's name."""
AWAIT = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
FUTURES = 0x1FE0000
"""The bits of a code object's flags that its ``from __future__`` lines set."""
COROUTINE = 0x80

source_lines: list[str] = []
"""The cell as it was written, line by line."""
last_statement = (0, 0)
"""Where the cell's last statement begins: its line, and bytes of that line; 0 where there is none."""


class Cell:
    """A cell that is Python by now. ``text`` has the lines of what was written, one for one."""

    def __init__(self, text: str, tree: Any, magics: tuple[CellMagic, ...] = ()) -> None:
        self.text = text
        self.tree = tree
        self.magics = magics


def tree_of(text: str) -> Any:
    # compile() of text pays no heed to an encoding cookie: the text is as in the cell.
    # Not ast.parse, whose own frames would stand in the traceback of a syntax error.
    return compile(text, CELL, "exec", _ast.PyCF_ONLY_AST | AWAIT, True)


def parsed(source: str) -> Cell:
    """Raises SyntaxError for what is neither Python nor a magic, and UsageError for a magic that does not work here."""
    try:
        return Cell(source, tree_of(source))
    except SyntaxError as error:
        not_python = error
    from pybox_kernel.inside.cell_magics import translate

    found = translate(source)
    if found is None:
        raise not_python
    if found.refusal is not None:
        raise found.refusal
    return Cell(found.text, tree_of(found.text), found.magics)


def run_cell(source: str, before: Callable[[Namespace], object]) -> tuple[int, bool]:
    """Runs the cell, after ``before`` was given its namespace; its exit status, and whether it reached its last
    statement."""
    # Not str.splitlines, which splits at more than Python does: at a form feed, for one.
    source_lines[:] = io.StringIO(source, newline=None).readlines()
    source = "".join(source_lines)
    namespace = new_main(source)
    global last_statement  # noqa: PLW0603 - one process, one cell
    try:
        cell = parsed(source)
        if cell.text is not source:
            write(cell.text)
        if cell.tree.body:
            last_statement = (cell.tree.body[-1].lineno, cell.tree.body[-1].col_offset)
        before(namespace)
        inner: Callable[[], object] = lambda: execute(cell, namespace)  # noqa: E731
        if cell.magics:
            from pybox_kernel.inside.cell_magics import wrapped

            inner = wrapped(cell, namespace, inner)
        inner()
    except SystemExit as error:
        return exit_status(error)
    except BaseException as error:
        report(error)
        return 1, False
    return 0, True


def new_main(source: str) -> Namespace:
    main = type(sys)("__main__")
    main.__file__ = CELL
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    write(source)
    return main.__dict__


def write(text: str) -> None:
    try:
        with open(CELL, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError:
        pass


def execute(cell: Cell, namespace: Namespace) -> None:
    """Everything but a last expression, then that one's value; in an event loop where any of it awaits."""
    body = cell.tree.body
    last = body[-1].value if body and isinstance(body[-1], _ast.Expr) and not is_hidden(body[-1], cell.text) else None
    before = _ast.Module(body=body[:-1] if last is not None else body, type_ignores=[])
    code = compile(before, CELL, "exec", AWAIT, True)
    if last is None:
        final = None
    else:
        final = compile(_ast.Expression(body=last), CELL, "eval", AWAIT | code.co_flags & FUTURES, True)
    codes = [code] if final is None else [code, final]
    loaded = dict(sys.modules)
    try:
        if any(one.co_flags & COROUTINE for one in codes):
            value = awaited(namespace, codes)
        else:
            exec(code, namespace)
            value = None if final is None else eval(final, namespace)  # noqa: S307
    finally:
        put_back(loaded)
    if value is not None:
        error = show(value, result=True)
        if error is not None:
            raise error


def put_back(loaded: dict[str, Any]) -> None:
    """Of a program that emptied ``sys.modules``, too, it is told how it ended."""
    if __name__ not in sys.modules:
        for name, module in loaded.items():
            sys.modules.setdefault(name, module)


def awaited(namespace: Namespace, codes: list[CodeType]) -> Any:
    """The value of the last of these, run in one event loop."""
    import asyncio

    outcome: list[Any] = [None, None]

    async def run() -> None:
        try:
            for code in codes:
                value: Any = eval(code, namespace)  # noqa: S307
                outcome[0] = await value if code.co_flags & COROUTINE else value
        except BaseException as error:  # told as the cell's own, without the loop's frames
            outcome[1] = error

    asyncio.run(run())
    if outcome[1] is not None:
        raise outcome[1]
    return outcome[0]


def is_hidden(statement: Any, text: str) -> bool:
    """A semicolon stands after it."""
    line = text.split("\n")[statement.end_lineno - 1].encode()
    return re.match(rb"[ \t\f]*;", line[statement.end_col_offset :]) is not None


def exit_status(error: SystemExit) -> tuple[int, bool]:
    """The exit status that ``sys.exit`` asked for, and whether the cell's last statement itself asked for it."""
    code = error.code
    if code is None:
        status = 0
    elif isinstance(code, int):
        status = code & 0xFF if -(2**63) <= code < 2**63 else 0xFF  # as Python itself has it
    else:
        sys.stderr.write(text_of(code) + "\n")
        status = 1
    places = []
    step = error.__traceback__
    while step is not None:
        module = str(step.tb_frame.f_globals.get("__name__"))
        if module != "_sitebuiltins" and not module.startswith(OWN_MODULES):
            places.append(place_of(step))
        step = step.tb_next
    return status, len(places) == 1 and (0, 0) < last_statement <= places[0]


def place_of(step: TracebackType) -> tuple[int, int]:
    """Line and bytes of it (PEP 657), where a frame was when the exception passed."""
    positions = list(step.tb_frame.f_code.co_positions())
    line, _, column, _ = positions[step.tb_lasti // 2]
    return (line or step.tb_lineno), (column or 0)


def report(error: BaseException) -> None:
    """Tells of an exception as the program's error; on stderr where the events pipe does not take it."""
    from pybox_kernel.inside import diagnosis, tracebacks

    told = tracebacks.traceback_of(error)  # first: what the exception's own methods do may lengthen it
    account = {
        "name": begin(type(error).__name__, NAME),
        "value": text_of(error, of_syntax if issubclass(type(error), SyntaxError) else str),
        "traceback": told,
        "about": diagnosis.about(error),
    }
    try:
        say(b"x", as_json(account))
    except (OSError, ValueError):
        sys.stderr.write(told)


def of_syntax(error: SyntaxError) -> str:
    """Without the name of the file, which is always the cell."""
    return "%s (line %s)" % (error.msg, error.lineno) if error.filename == CELL and error.lineno else str(error)


def format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """In place of ``warnings.formatwarning``: the cell is called by its name. Where PyBox draws or shows something for
    it, the line that asked for that is named, and none where it is drawn after the end."""
    import linecache

    if filename.startswith(OWN_FOLDER):
        frame: Any = sys._getframe()
        while frame is not None and frame.f_code.co_filename != CELL:
            frame = frame.f_back
        if frame is None:
            return "%s: %s\n" % (category.__name__, message)
        filename, lineno, line = CELL, frame.f_lineno, None
    place = "Your code" if filename == CELL else filename
    if line is None:
        line = linecache.getline(filename, lineno)
    shown = "  %s\n" % line.strip()[:200] if line else ""
    return "%s:%s: %s: %s\n%s" % (place, lineno, category.__name__, message, shown)
