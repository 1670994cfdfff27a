"""``%%pybox`` and ``%pybox`` in an ordinary notebook, and in IPython: one cell in a sealed box, a receipt under it.

A cell is executed as the sealed kernel executes it, by a ``CellExecutor``: in a thread with an event loop of its own,
while IPython's waits. Nothing of a sealed cell is run or imported in this process.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from signal import SIG_DFL, SIGINT, signal
from typing import Any, Final, TypeVar

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_cell_magic, magics_class, no_var_expand
from traitlets import Bool, Enum, TraitError, Unicode, validate

from pybox_kernel.errors import OptionError
from pybox_kernel.notebook.answers import help_on_options
from pybox_kernel.notebook.cell_error import PyBoxCellError
from pybox_kernel.notebook.cell_executor import CellExecutor
from pybox_kernel.notebook.commands import CELL_MAGIC, MAGIC, Options, command_of, first_line, read_command
from pybox_kernel.notebook.guard import HOST
from pybox_kernel.notebook.input_guard import GUARDED, InputGuard
from pybox_kernel.notebook.magic_completion import offered
from pybox_kernel.policy import STDLIB, checked_deadline, policy_for
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.html import render_html
from pybox_kernel.render.text import render_short
from pybox_kernel.safe_display.text import safe_text
from pybox_kernel.sessions.session import wish_of

__all__ = ["PyBoxMagics", "load", "unload"]

LAST_CELL_SECONDS: Final = 2.5
"""How long the end of this process waits for a cell that it stopped."""

AGAIN_SECONDS: Final = 0.1
"""A cell that is to be stopped, and was not yet there to be, is asked again after that."""

GUARD: Final = {
    True: (
        f"The guard is on: every cell is sealed but those that begin with `{HOST}`."
        f" Sealed cells have what others above them made only after `{MAGIC} carry on`."
    ),
    False: f"The guard is off: only cells with `{CELL_MAGIC}` in their first line are sealed.",
}

T = TypeVar("T")


@magics_class
class PyBoxMagics(Magics):
    """What sealed cells ask for where their own line does not. Nothing here goes beyond what any cell may ask for."""

    image = Unicode(STDLIB.image, help="The image that boxes are made from.").tag(config=True)
    timeout = Unicode("", help="The time limit in seconds; the image's own where there is none.").tag(config=True)
    receipt = Enum(("static", "none"), "static", help="What stands under a sealed cell: a receipt, or nothing.").tag(
        config=True
    )
    quiet = Bool(False, help="No receipt under a cell that ended normally.").tag(config=True)
    no_raise = Bool(False, help="A cell that fails is no error of the notebook.").tag(config=True)
    engine = Unicode(
        "", help="The container engine: `local`, `vm`, or an address; the variable PYBOX_ENGINE's where there is none."
    ).tag(config=True)
    require_vm = Bool(False, help="Nothing is run but in the private virtual machine.").tag(config=True)

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._shell: Any = shell
        self.guard = InputGuard(self._is_magic, self._tell)
        self._executors: dict[int, CellExecutor] = {}
        """By process: one that was forked has boxes of its own, and leaves alone those of the process it came from."""
        self._error: tuple[str, ...] = ()
        """The lines of an error that are not on the page yet."""

    @validate("image")
    def _checked_image(self, proposal: Mapping[str, Any]) -> str:
        return self._checked(proposal, policy_for)

    @validate("timeout")
    def _checked_timeout(self, proposal: Mapping[str, Any]) -> str:
        return self._checked(proposal, lambda value: checked_deadline(STDLIB, value or None))

    @validate("engine", "require_vm")
    def _checked_engine(self, proposal: Mapping[str, Any]) -> Any:
        said = {"engine": self.engine, "require_vm": self.require_vm, proposal["trait"].name: proposal["value"]}
        self._checked(proposal, lambda _: wish_of(said["engine"]))
        running = self._executors.get(os.getpid())
        if running is not None and running.wish not in (None, wish_of(said["engine"], require_vm=said["require_vm"])):
            raise TraitError("The sealed cells of this notebook have an engine by now. Restart its kernel first.")
        return proposal["value"]

    def _checked(self, proposal: Mapping[str, Any], check: Any) -> str:
        try:
            check(proposal["value"])
        except OptionError as error:
            raise TraitError(str(error)) from None
        return str(proposal["value"])

    # The magics

    @no_var_expand
    @line_cell_magic
    def pybox(self, line: str, cell: str | None = None) -> None:
        if cell is None:
            self._command(line)
        elif not cell.strip() and "--help" not in line.split():
            raise PyBoxCellError.refusal("There is no program in this cell.", f"Write it below `{CELL_MAGIC}`.")
        else:
            self._run(f"{CELL_MAGIC} {line}\n{cell}")

    pybox.__doc__ = f"""{help_on_options()["text/plain"]}

`{MAGIC} help` says what there is beside it, for a line of its own.
"""

    @no_var_expand
    @cell_magic(GUARDED)  # type: ignore[arg-type]
    def guarded(self, line: str, cell: str) -> None:  # noqa: ARG002 - IPython gives both
        """A cell that is sealed because the guard is on."""
        told = f"Sealed, for the guard is on. A cell that begins with `{HOST}` is not."
        self._begun(sealed=True)[0].page.notice(safe_text(told))
        self._run(cell, sealed=True)

    def _command(self, line: str) -> None:
        with suppress(OptionError):  # which is told as any other refusal
            command = read_command(line)
            if command.name == "guard":
                self.guard.on = command.words == ("on",)
        self._run(f"{MAGIC} {line}")

    def _run(self, code: str, *, sealed: bool = False) -> None:
        executor, number = self._begun(sealed=sealed)
        self._error, executor.page.has_widgets = (), self._has_widgets()
        with interrupts() as words:
            executed = self._waited_for(executor, executor.execute(code, number), words)
        if executed is None:
            raise PyBoxCellError("This Python is about to end.")
        executor.cells.add(number, code)
        if executed.failure is not None:
            receipt = executed.result.receipt if executed.result is not None else None
            raise PyBoxCellError.of(executed.failure.ename, executed.failure.evalue, self._error, receipt)

    def _waited_for(self, executor: CellExecutor, cell: Coroutine[Any, Any, T], words: SimpleQueue[bool]) -> T:
        """Has ``cell`` executed in a thread. On ``words``, False asks for its end, and True says that it is over."""
        found: list[T] = []
        failed: list[BaseException] = []

        def execute() -> None:
            try:
                found.append(asyncio.run(cell))
            except BaseException as error:
                failed.append(error)
            finally:
                words.put(True)

        # With this cell's context, by which a kernel knows where output belongs.
        threading.Thread(target=copy_context().run, args=(execute,), name="pybox cell", daemon=True).start()
        stopping = False
        while True:
            try:
                if words.get(timeout=AGAIN_SECONDS if stopping else None):
                    break
            except Empty:
                pass
            stopping = True
            executor.stop()
        if failed:
            raise failed[0]
        return found[0]

    # What a cell runs in

    def _executor(self) -> CellExecutor:
        process = os.getpid()
        if process not in self._executors:
            self._executors[process] = CellExecutor(
                self._publish,
                self._look,
                self._standing,
                lambda: GUARD[self.guard.on],
                self._shell.user_ns,
                engine=lambda: wish_of(self.engine, require_vm=self.require_vm),
            )
        return self._executors[process]

    def _begun(self, *, sealed: bool = False) -> tuple[CellExecutor, int]:
        """The executor, and the number of the cell that runs, which its record begins with. ``sealed``: all of it is,
        whatever it looks like."""
        executor, number = self._executor(), self._number()
        running = getattr(self._shell.displayhook, "exec_result", None)
        source = getattr(getattr(running, "info", None), "raw_cell", None)
        whole = isinstance(source, str) and (sealed or is_sealed_whole(source))
        executor.page.record.begin(number, source if whole else None)
        return executor, number

    def _standing(self) -> Options:
        return Options(image=self.image, timeout=self.timeout or None, quiet=self.quiet, no_raise=self.no_raise)

    def _look(self) -> str:
        return "running" if self.receipt == "static" else self.receipt

    def _has_widgets(self) -> bool:
        """The panel while a cell runs is for pages that have them: JupyterLab's notebooks say what they are."""
        parent = self._shell.get_parent() if hasattr(self._shell, "get_parent") else {}
        return "deletedCells" in (parent.get("metadata") or {})

    def _number(self) -> int:
        """Of the cell that runs."""
        running = getattr(self._shell.displayhook, "exec_result", None)
        return int(getattr(running, "execution_count", None) or self._shell.execution_count)

    def close(self) -> None:
        """Stops a cell that runs, and ends what was started in this process. Idempotent."""
        executor = self._executors.pop(os.getpid(), None)
        if executor is not None:
            executor.end()
            executor.wait(LAST_CELL_SECONDS)
            executor.close()

    # The page

    def _publish(self, message: str, content: Mapping[str, Any]) -> None:
        if message == "error":  # the exception tells of it; above a receipt, its lines stand with the output
            self._error = tuple(content["traceback"])
            return
        if self._error:
            written("stderr", "\n".join([*self._error, ""]))
            self._error = ()
        if message == "stream":
            written(content["name"], content["text"])
        else:
            self._shell.display_pub.publish(
                content["data"],
                content["metadata"],
                transient=content.get("transient"),
                update=message == "update_display_data",
            )

    def _tell(self, sentence: str) -> None:
        self._begun()[0].page.notice(safe_text(sentence))

    def _is_magic(self, name: str) -> bool:
        return self._shell.find_cell_magic(name) is not None or self._shell.find_line_magic(name) is not None

    def complete(self, _: InteractiveShell, event: Any) -> list[str]:
        """What could be written at the cursor, in a line with ``%pybox`` or ``%%pybox``."""
        return offered(event.text_until_cursor, self._shell.user_ns)


def is_sealed_whole(cell: str) -> bool:
    """Whether nothing of it runs outside of a box."""
    try:
        return first_line(cell)[1].split(None, 1)[:1] == [CELL_MAGIC] or command_of(cell) is not None
    except OptionError:  # of a command that is none
        return True


@contextmanager
def interrupts() -> Iterator[SimpleQueue[bool]]:
    """Ctrl-C, and what a kernel makes of an interrupt, come on the queue as ``False`` for as long."""
    words: SimpleQueue[bool] = SimpleQueue()  # whose put may be called by a signal handler, whatever it interrupts
    if threading.current_thread() is not threading.main_thread():
        yield words
        return
    before = signal(SIGINT, lambda *_: words.put(False))
    try:
        yield words
    finally:
        signal(SIGINT, SIG_DFL if before is None else before)  # None: one that Python did not set


def written(stream: str, text: str) -> None:
    target = sys.stdout if stream == "stdout" else sys.stderr
    try:
        target.write(text)
    except UnicodeEncodeError:
        encoding = target.encoding or "ascii"
        target.write(text.encode(encoding, "backslashreplace").decode(encoding))
    target.flush()


def load(shell: InteractiveShell) -> PyBoxMagics:
    """What ``%load_ext pybox_kernel`` does; nothing where it was done."""
    loaded = shell.magics_manager.registry.get("PyBoxMagics")
    if isinstance(loaded, PyBoxMagics):
        return loaded
    magics = PyBoxMagics(shell)
    shell.register_magics(magics)
    shell.input_transformers_cleanup.append(magics.guard)
    shell.events.register("pre_execute", magics.guard.begun)
    shell.events.register("post_execute", magics.guard.ended)
    formatters = shell.display_formatter.formatters if shell.display_formatter is not None else {}
    if formatters:
        formatters["text/plain"].for_type(Receipt, lambda receipt, printer, _: printer.text(render_short(receipt)))
        formatters["text/html"].for_type(Receipt, render_html)
    for word in (MAGIC, CELL_MAGIC):
        shell.set_hook("complete_command", magics.complete, str_key=word)  # type: ignore[no-untyped-call]
    atexit.register(magics.close)
    return magics


def unload(shell: InteractiveShell) -> None:
    """What ``%unload_ext pybox_kernel`` does."""
    magics = shell.magics_manager.registry.pop("PyBoxMagics", None)
    if magics is None:
        return
    if magics.guard.on:
        magics._tell("The guard is off, for the extension was unloaded: cells are not sealed.")
    shell.input_transformers_cleanup.remove(magics.guard)
    shell.events.unregister("pre_execute", magics.guard.begun)
    shell.events.unregister("post_execute", magics.guard.ended)
    for kind, name in (("line", "pybox"), ("cell", "pybox"), ("cell", GUARDED)):
        shell.magics_manager.magics[kind].pop(name, None)
    shell.configurables.remove(magics)
    atexit.unregister(magics.close)
    magics.close()
