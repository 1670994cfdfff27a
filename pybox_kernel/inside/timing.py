"""``%time`` and ``%timeit``, for a line and for a cell, with results as IPython writes them."""

from __future__ import annotations

import ast
import re
import resource
import time

from pybox_kernel.inside.cell import CELL, source_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Namespace = dict[str, Any]

LOOP_SECONDS = 0.05
"""What one run of a loop is to take at least, where its number is not given."""
ALL_SECONDS = 1.0
"""What all runs together may take, where their number is not given."""
RUNS = 7
OPTION = re.compile(r"-(?:([nrp])[ \t]*(\d+)|(v)[ \t]*(\w+)|([tcqo]+))(?=\s|$)[ \t]*")
UNITS = ((60 * 60 * 24, "d"), (60 * 60, "h"), (60, "min"), (1, "s"))


def in_words(seconds: float, precision: int = 3) -> str:
    if seconds >= 60:
        parts, left = [], seconds
        for size, name in UNITS:
            count, left = divmod(left, size)
            if count >= 1:
                parts.append("%d%s" % (count, name))
        return " ".join(parts)
    for scale, name in ((1, "s"), (1e3, "ms"), (1e6, "μs")):
        if seconds * scale >= 1:
            return "%.*g %s" % (precision, seconds * scale, name)
    return "%.*g ns" % (precision, seconds * 1e9)


def timed(action: Callable[[], Any]) -> Any:
    """Does it, prints how long it took, and gives its value."""
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    value = action()
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    print(
        "CPU times: user %s, sys: %s, total: %s\nWall time: %s"
        % (in_words(user), in_words(system), in_words(user + system), in_words(wall))
    )
    return value


def statements(text: str, lineno: int) -> list[Any]:
    """The statements of a magic's line, at their place in the cell."""
    tree: Any = compile("\n" * (lineno - 1) + text, CELL, "exec", ast.PyCF_ONLY_AST, True)
    written = source_lines[lineno - 1] if lineno <= len(source_lines) else ""
    shift = len(written[: max(0, written.find(text))].encode())
    node: Any
    for node in ast.walk(tree):
        if getattr(node, "lineno", 0) == lineno:
            node.col_offset += shift
        if getattr(node, "end_lineno", 0) == lineno:
            node.end_col_offset += shift
    body: list[Any] = tree.body
    return body


def time_line(text: str, names: Namespace, local: Namespace, lineno: int) -> Any:
    body = statements(text, lineno)
    last = body[-1].value if body and isinstance(body[-1], ast.Expr) and not text.rstrip().endswith(";") else None
    code = compile(ast.Module(body=body[:-1] if last is not None else body, type_ignores=[]), CELL, "exec", 0, True)
    final = compile(ast.Expression(body=last), CELL, "eval", 0, True) if last is not None else None

    def action() -> Any:
        exec(code, names, local)
        return None if final is None else eval(final, names, local)  # noqa: S307

    return timed(action)


class TimeitResult:
    """``average``, ``stdev``, ``best`` and ``worst`` are seconds a loop."""

    def __init__(self, loops: int, all_runs: list[float], precision: int) -> None:
        self.loops = loops
        self.repeat = len(all_runs)
        self.all_runs = all_runs
        self.timings = [run / loops for run in all_runs]
        self.best, self.worst = min(self.timings), max(self.timings)
        self.average = sum(self.timings) / len(self.timings)
        self.stdev = (sum((one - self.average) ** 2 for one in self.timings) / len(self.timings)) ** 0.5
        self._precision = precision

    def __str__(self) -> str:
        return "%s ± %s per loop (mean ± std. dev. of %d run%s, %s loop%s each)" % (
            in_words(self.average, self._precision),
            in_words(self.stdev, self._precision),
            self.repeat,
            "" if self.repeat == 1 else "s",
            format(self.loops, ","),
            "" if self.loops == 1 else "s",
        )

    def __repr__(self) -> str:
        return "<TimeitResult : %s>" % self


TEMPLATE = """\
def inner(_it, _timer):
    setup
    _t0 = _timer()
    for _i in _it:
        stmt
    return _timer() - _t0
"""


def timeit(line: str, body: list[Any] | None, names: Namespace, lineno: int) -> TimeitResult | None:
    """``body`` is that of a ``%%timeit`` cell, whose line is what it sets up first; None where the line is timed."""
    options: dict[str, str] = {}
    while (match := OPTION.match(line)) is not None:
        for letter, value in ((match[1], match[2]), (match[3], match[4]), *((one, "") for one in match[5] or "")):
            if letter:
                options[letter] = value
        line = line[match.end() :]
    setup = statements(line if body is not None else "", lineno)
    body = statements(line, lineno) if body is None else body
    if not body:
        return None
    inner = loop_of(setup, body, names)
    clock = time.process_time if "c" in options else time.perf_counter
    number, first = int(options.get("n", 0)), None
    if not number:
        number, first = enough(inner, clock)
    runs = [] if first is None else [first]
    wanted = int(options.get("r", 0)) or (RUNS if first is None else max(1, min(RUNS, int(ALL_SECONDS / first))))
    while len(runs) < max(1, wanted):
        runs.append(inner(range(number), clock))
    result = TimeitResult(number, runs, int(options.get("p", 3)))
    if "q" not in options:
        if result.worst > 4 * result.best > 0 and result.worst > 1e-6:
            print(
                "The slowest run took %0.2f times longer than the fastest. "
                "This could mean that an intermediate result is being cached." % (result.worst / result.best)
            )
        print(result)
    if "v" in options:
        names[options["v"]] = result
    return result if "o" in options else None


def loop_of(setup: list[Any], body: list[Any], names: Namespace) -> Callable[[object, object], float]:
    """Both in a function of their own, with the names of the cell around it."""
    tree: Any = compile(TEMPLATE, CELL, "exec", ast.PyCF_ONLY_AST, True)
    function = tree.body[0]
    function.body[0:1] = setup
    function.body[len(setup) + 1].body = body
    own: Namespace = {}
    exec(compile(tree, CELL, "exec", 0, True), names, own)
    inner: Callable[[object, object], float] = own["inner"]
    return inner


def enough(inner: Callable[[object, object], float], clock: object) -> tuple[int, float]:
    """A number of loops that takes LOOP_SECONDS, and how long these took."""
    scale = 1
    while True:
        for number in (scale, 2 * scale, 5 * scale):
            took = inner(range(number), clock)
            if took >= LOOP_SECONDS:
                return number, took
        scale *= 10
