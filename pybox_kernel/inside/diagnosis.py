"""Which wall of the box an exception met: a module that is not there, no network, a full disk.

The program's own word, from its own process: the host turns it into a sentence and believes nothing else of it.
"""

from __future__ import annotations

import errno
import sys

from pybox_kernel.inside.events import begin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Wall = tuple[str, str]
    """The kind of wall, and the name of what met it."""

MOST = 50
"""Exceptions of one chain that are looked at."""
LONGEST = 200
"""Characters of a name."""
UNREACHABLE = (
    errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL, errno.ECONNREFUSED,
)  # fmt: skip


def about(error: BaseException) -> dict[str, str] | None:
    """None where it met none, or does not let itself be looked at."""
    try:
        for one in chain(error):
            found = wall(one)
            if found is not None:
                return {"kind": found[0], "what": begin(found[1], LONGEST)}
    except Exception:
        pass
    return None


def chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, then what stands behind it, the nearest first."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < MOST:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        behind: list[Any] = [one.__cause__]
        try:
            behind += [getattr(one, "reason", None), *getattr(one, "exceptions", ())[:MOST]]
        except Exception:
            pass
        if not one.__suppress_context__:
            behind.append(one.__context__)
        waiting += [other for other in behind if isinstance(other, BaseException)]


def wall(error: BaseException) -> Wall | None:
    magic = getattr(type(error), "pybox_magic", None)
    if magic is not None:
        return "magic", text(getattr(error, "line", ""))
    if isinstance(error, ModuleNotFoundError):
        return "module", text(error.name)
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
        return "name", text(error.name)
    if isinstance(error, MemoryError):
        return "memory", ""
    if isinstance(error, EOFError):
        asked = error.args == ("EOF when reading a line",) or innermost(error)[0] == "getpass"
        return ("input", "") if asked else None
    if isinstance(error, RuntimeError) and error.args == ("can't start new thread",):
        return "tasks", ""
    return of_system_call(error) if isinstance(error, OSError) else None


def of_system_call(error: OSError) -> Wall | None:
    number, name = error.errno, text(error.filename)
    socket = sys.modules.get("socket")
    if socket is not None and isinstance(error, (socket.gaierror, socket.herror)):
        return "network", host(error)
    if number in UNREACHABLE:
        return "network", host(error)
    if number == errno.EROFS or (number == errno.EACCES and name):
        return "read_only", name
    if number in (errno.ENOSPC, errno.EDQUOT):
        return "full", name
    if number == errno.ENOENT and name:
        return "file", name
    if number in (errno.EMFILE, errno.ENFILE):
        return "files_open", ""
    if number == errno.EPERM and not name:
        return "forbidden", ""
    if number == errno.EAGAIN:
        _module, line = innermost(error)
        return ("tasks", "") if "fork" in line or "spawn" in line else None
    return None


def text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if isinstance(value, str) else "" if value is None else str(value)


def innermost(error: BaseException) -> tuple[str, str]:
    """The module where it was raised, and the line of source."""
    import linecache

    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None:
        return "", ""
    frame = step.tb_frame
    return str(frame.f_globals.get("__name__")), linecache.getline(frame.f_code.co_filename, step.tb_lineno)


def host(error: BaseException) -> str:
    """The host that was asked for, as far as a frame of the standard library still knows it."""
    step = error.__traceback__
    while step is not None:
        frame = step.tb_frame
        module, names = frame.f_globals.get("__name__"), frame.f_locals
        found = None
        if module == "socket":
            address = names.get("address")
            found = names.get("host") or (address[0] if isinstance(address, tuple) and address else None)
        elif module == "http.client":
            found = getattr(names.get("self"), "host", None)
        if isinstance(found, (str, bytes)):
            return text(found)
        step = step.tb_next
    return ""
