"""Runs one cell as ``__main__`` in the program's own process. Standard library only.

The warden starts it with: 0 ``/dev/null``, 1 stdout, 2 stderr, 3 the events pipe, 4 the source. It says it is ready,
and waits for the source. All it says after that is the program's word: the program shares this process and could say
the same. Its modules stand under the name they have in PyBox, so that a program's own ``import`` never meets them.
"""

from __future__ import annotations

import builtins
import os
import sys
import threading
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pybox_kernel.inside.parcels import Delivery

SOURCE = 4
NICER = 10

# A courtesy to the warden: the program can lower it again, and the kernel may pick the warden all the same.
OOM_SCORE_ADJ = "1000"


class StandInFinder:
    """``import IPython`` gets PyBox's stand-in, which is made when it is first asked for."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> Any:
        if name.partition(".")[0] not in ("IPython", "matplotlib_inline"):
            return None
        from pybox_kernel.inside.ipython_stand_in import spec_of

        return spec_of(name)


def get_ipython() -> Any:
    """The stand-in for IPython's shell object."""
    from pybox_kernel.inside.ipython_stand_in import shell

    return shell


def make_package() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    for name, path in (("pybox_kernel", []), ("pybox_kernel.inside", [here])):
        package = type(sys)(name)
        package.__path__ = path
        sys.modules[name] = package


def flush_files() -> None:
    """Python ends a program with its files written out, also those that it did not close. Raises OSError where one
    could not be."""
    import gc
    import io
    import stat

    def is_file(descriptor: int) -> bool:
        try:
            return stat.S_ISREG(os.fstat(descriptor).st_mode)
        except OSError:
            return False

    try:
        if not any(is_file(int(number)) for number in os.listdir("/proc/self/fd")):
            return
    except OSError:  # no descriptor is left to look with
        pass
    failed = None
    found = gc.get_objects()
    for kind in (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom):  # a text writes into a buffer
        for file in found:
            if issubclass(type(file), kind):
                try:
                    if not file.closed and is_file(file.fileno()):
                        file.flush()
                except ValueError:  # it has no descriptor any more
                    pass
                except OSError as error:
                    failed = failed or error
    if failed is not None:
        raise failed


def prepare_for(manifest: dict[str, Any]) -> None:
    if manifest["values"] or manifest["wanted"]:
        from pybox_kernel.inside import values

        values.prepare()


def put_in(delivery: Delivery, namespace: dict[str, Any]) -> None:
    if delivery.values:
        from pybox_kernel.inside import values

        values.restore(delivery.manifest["values"], delivery.values, namespace)


def take_out(delivery: Delivery) -> None:
    if delivery.manifest["wanted"]:
        from pybox_kernel.inside import values

        try:
            values.send(delivery.manifest["wanted"], sys.modules["__main__"].__dict__)
        except BaseException:  # then nothing comes, and that is seen
            pass


def finish(status: int, completed: bool, own_pid: int, leave: Callable[[bool], object]) -> None:
    """What the end of a Python program does, without tearing down modules: threads joined, exit functions run. Between
    the two ``leave`` is called, with whether the cell reached its last statement."""
    import atexit

    from pybox_kernel.inside.cell import report
    from pybox_kernel.inside.events import say

    try:
        threading._shutdown()  # type: ignore[attr-defined]
        flush_files()
        if os.getpid() == own_pid:
            leave(completed)
        atexit._run_exitfuncs()
        flush_files()
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
    make_package()
    # All that tells of an error or shows a value: a program may leave no descriptor to import it by.
    # What carries values, too: importing it takes 15 ms of a processor, and belongs before the clock.
    from pybox_kernel.inside import (  # noqa: F401
        carry,
        carry_pickle,
        carry_quiet,
        cell,
        diagnosis,
        events,
        parcels,
        preload,
        pretty,
        shown,
        tracebacks,
    )

    os.set_inheritable(events.EVENTS, False)
    os.set_inheritable(SOURCE, False)
    sys.stdout.reconfigure(line_buffering=True, write_through=True, errors="strict")  # type: ignore[union-attr]
    sys.stderr.reconfigure(line_buffering=True, write_through=True)  # type: ignore[union-attr]
    builtins.display = shown.display  # type: ignore[attr-defined]
    builtins.get_ipython = get_ipython  # type: ignore[attr-defined]
    sys.meta_path.insert(0, StandInFinder)
    warnings.formatwarning = cell.format_warning
    preload.import_offered()
    show_figures = None
    if "matplotlib.pyplot" in sys.modules:
        from pybox_kernel.inside.figures import prepare

        show_figures = prepare()
    os.chdir("/box")
    sys.path.insert(0, "")
    sys.argv = [""]
    carry_pickle.loaded_before = frozenset(sys.modules)
    carry_quiet.remember_fresh()
    events.say(b"r")
    delivery = parcels.receive(SOURCE, prepare_for)
    carried = carry.Carry(delivery) if delivery.manifest["carry"] is not None else None

    def before(namespace: dict[str, Any]) -> None:
        if carried is not None:
            carried.restore(namespace)
        put_in(delivery, namespace)

    outcome = cell.run_cell(delivery.source.removeprefix("\ufeff"), before)
    if show_figures is not None:  # of a cell that failed too: its error is told by now, whatever time drawing takes
        show_figures()
    if outcome == (0, True):
        take_out(delivery)

    def leave(completed: bool) -> None:
        if carried is not None:
            carried.leave(completed)

    finish(*outcome, own_pid, leave)


if __name__ == "__main__":
    main()
