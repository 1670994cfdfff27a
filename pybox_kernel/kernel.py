"""The Jupyter kernel "PyBox (sealed)": each cell is one run in a box of its own, and a receipt stands under it.

A cell's messages come in this order: its output, an ``error`` if it did not run to its end, the receipt. Nothing of a
cell is run or imported in this process: what cells leave to one another are bytes here.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from signal import SIGINT, signal
from typing import Any, Final, NoReturn

# First of all: ipykernel.ipkernel puts its comms in place of the empty ones, and ipywidgets takes what it finds.
import ipykernel.ipkernel  # noqa: F401  # isort: skip
import comm
import ipywidgets
from ipykernel._version import kernel_protocol_version
from ipykernel.kernelbase import Kernel
from traitlets import Bool, Enum, Float, List, Unicode, default

from pybox_kernel import __version__
from pybox_kernel.errors import ExitStatus, PyBoxError
from pybox_kernel.notebook import no_score
from pybox_kernel.notebook.cell_executor import CellExecutor
from pybox_kernel.notebook.commands import Options
from pybox_kernel.notebook.grading import check_standing, is_graded, permitted, why_no_score
from pybox_kernel.notebook.outbox import Text
from pybox_kernel.notebook.total_time import DEFAULT_SECONDS, TotalTime
from pybox_kernel.policy import STDLIB
from pybox_kernel.sessions.session import checked_mode, wish_of
from pybox_kernel.source.completeness import completeness

__all__ = ["PyBoxKernel"]

WIDGETS: Final = "jupyter.widget"
"""The comm target by which a page shows that it has a widget manager; one for its control begins with it."""

WIDGETS_VERSION_PROBE: Final = "e976ee50-99ed-4aba-9b6b-9dcd5634d07d:IPyWidgets:"
"""VS Code runs code that prints this and the version of ipywidgets, and looks for it in the output."""

NOT_ON_CONTROL: Final = (
    "execute_request",
    "complete_request",
    "inspect_request",
    "is_complete_request",
    "debug_request",
    "create_subshell_request",
    "delete_subshell_request",
    "list_subshell_request",
)
SOONEST_ERROR_SECONDS: Final = 0.25
"""After an error the kernel aborts the cells that wait, and only those: "run all" needs time to have sent them all."""

PREPARE_SECONDS: Final = 0.3
"""After its start a kernel is asked about itself; then a box is made for the first cell."""

LAST_CELL_SECONDS: Final = 2.5
"""How long a shutdown waits for the cell it stopped; Jupyter kills a kernel after 5 s."""

PAGE_SECONDS: Final = 1.0
"""And then for the page to be told."""


class PyBoxKernel(Kernel):
    implementation = "pybox"
    implementation_version = __version__
    language_info = {  # noqa: RUF012
        "name": "python",
        "version": "3",
        "mimetype": "text/x-python",
        "file_extension": ".py",
        "codemirror_mode": {"name": "python", "version": 3},
        "pygments_lexer": "python3",
        "nbconvert_exporter": "python",
    }

    receipt = Enum(
        ("panel", "static", "none"),
        help="What stands under a cell: a panel where the page has widgets, else the same without them; always the"
        " latter; nothing. The default is that of the variable PYBOX_RECEIPT, or a panel.",
    ).tag(config=True)

    image = Unicode(STDLIB.image, help="The image that boxes are made from, where a cell does not name one.").tag(
        config=True
    )

    timeout = Unicode(
        "", help="The time limit in seconds where a cell does not ask for one. Where it is graded, the longest too."
    ).tag(config=True)

    input = List(
        Unicode(), help="Files and folders beside the notebook that every cell gets copies of, where it names none."
    ).tag(config=True)

    grading = Bool(
        help="A cell's error costs a student points: see docs/classroom.md. The default is whether nbgrader says so.",
    ).tag(config=True)

    total_time = Float(
        DEFAULT_SECONDS, help="Seconds that the cells of a graded notebook have together; after that none is run."
    ).tag(config=True)

    carry = Enum(
        ("on", "off", "keep"),
        help="Whether cells get values of earlier cells before a `%pybox carry` says so: if these ran to their end;"
        " never; also what a cell defined before it failed. The default is that of the variable PYBOX_CARRY, or on.",
    ).tag(config=True)

    engine = Unicode(
        "",
        help="The container engine: `local`, `vm` (the private virtual machine), or an address. The default is that of"
        " the variable PYBOX_ENGINE, or the private virtual machine where it runs, or this computer's engine.",
    ).tag(config=True)

    require_vm = Bool(
        False, help="Run nothing but in the private virtual machine. The variable PYBOX_REQUIRE_VM asks for that, too."
    ).tag(config=True)

    @default("carry")
    def _carry_default(self) -> str:
        wish = os.environ.get("PYBOX_CARRY", "on")
        return wish if wish in ("on", "off", "keep") else "on"

    @default("receipt")
    def _receipt_default(self) -> str:
        wish = os.environ.get("PYBOX_RECEIPT", "panel")
        return wish if wish in ("panel", "static", "none") else "panel"

    @default("grading")
    def _grading_default(self) -> bool:
        return is_graded()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
        self._executor = CellExecutor(
            self._publish,
            lambda: self.receipt,
            lambda: self._standing,
            carry=checked_mode(self.carry),
            engine=lambda: wish_of(self.engine, require_vm=self.require_vm),
            permitted=(lambda asked: permitted(asked, self._standing)) if self.grading else None,
            total_time=TotalTime(self.total_time) if self.grading else None,
        )
        self._standing_checked = not self.grading
        carried = "what it defines is carried to the next" if self.carry != "off" else "nothing is carried to the next"
        self.banner = f"PyBox {__version__} (sealed)\nEach cell runs in a new sealed box; {carried}."
        self._page = self._executor.page
        for name in NOT_ON_CONTROL:
            del self.control_handlers[name]
        self.comm_manager = comm.get_comm_manager()
        self.shell_handlers["comm_open"] = self.comm_open
        self.shell_handlers["comm_msg"] = self.comm_manager.comm_msg
        self.shell_handlers["comm_close"] = self.comm_manager.comm_close
        ipywidgets.register_comm_target()

    @property
    def _standing(self) -> Options:
        return Options(image=self.image, timeout=self.timeout or None, input=tuple(self.input))

    @property
    def kernel_info(self) -> dict[str, object]:
        # Not the base's, which imports the debugger to see whether there is one.
        return {
            "protocol_version": kernel_protocol_version,
            "implementation": self.implementation,
            "implementation_version": self.implementation_version,
            "language_info": self.language_info,
            "banner": self.banner,
            "help_links": [],
            "supported_features": [],
        }

    # A cell

    async def do_execute(
        self, code: str, silent: bool, store_history: bool = True, *_: object, **__: object
    ) -> dict[str, object]:
        if silent or not store_history:
            return self._answer_probe(code, silent)
        if not code.strip():
            return self._done()
        loop = asyncio.get_running_loop()
        soonest = loop.time() + SOONEST_ERROR_SECONDS
        if not self._standing_checked:
            await self._check_standing()
        executed = await self._executor.execute(code, self.execution_count)
        if executed is None:
            return {"status": "aborted"}
        if self.grading and (why := why_no_score(executed)) is not None:
            await self._end_without_a_score(why)
        loop.call_soon(self._executor.cells.add, self.execution_count, code)  # once the reply is on its way
        if executed.failure is None:
            return self._done()
        if not self.grading:  # whoever grades sends one cell after the other
            await asyncio.sleep(soonest - loop.time())
        return {"status": "error", "execution_count": self.execution_count, **executed.failure._asdict()}

    # A cell that is graded

    async def _check_standing(self) -> None:
        try:
            await asyncio.to_thread(check_standing, self._standing, self.total_time)
        except PyBoxError as error:
            await self._end_without_a_score(f"{error.message} {error.advice}")
        self._standing_checked = True

    async def _end_without_a_score(self, why: str) -> NoReturn:
        """No reply is sent any more: with one, what stands under the cell would be taken for the student's doing."""
        print(f"PyBox: no score comes of this, and the kernel ends: {why}", file=sys.stderr, flush=True)
        await asyncio.to_thread(no_score.keep, Path.cwd(), why)
        await self.do_shutdown(restart=False)
        os._exit(ExitStatus.PYBOX_FAILED)

    def _done(self) -> dict[str, object]:
        return {
            "status": "ok",
            "execution_count": self.execution_count,
            "payload": [],
            "user_expressions": {},
        }

    def _answer_probe(self, code: str, silent: bool) -> dict[str, object]:
        """Editors send code of their own, to look about. None of it is run."""
        if not silent:
            self.execution_count -= 1
            if WIDGETS_VERSION_PROBE in code:
                self._page.output(Text("stdout", f"{WIDGETS_VERSION_PROBE}{ipywidgets.__version__}\n"))
        return self._done()

    # What goes to the page

    def _publish(self, message: str, content: Mapping[str, object]) -> None:
        topic = self._topic(message)  # type: ignore[no-untyped-call]
        self.send_response(self.iopub_socket, message, content, ident=topic)  # type: ignore[no-untyped-call]

    def _publish_execute_input(self, code: str, parent: object, execution_count: int) -> None:
        # The base cannot send lone surrogates, and the page has the cell. It fails all the same, with a message.
        sendable = code[: STDLIB.source_bytes].encode("utf-8", "replace").decode("utf-8")
        super()._publish_execute_input(sendable, parent, execution_count)  # type: ignore[no-untyped-call]

    # Interrupts and the end

    async def interrupt_request(self, stream: Any, ident: Any, parent: Any) -> None:
        self._executor.stop()
        if self.session:
            self.session.send(stream, "interrupt_reply", {"status": "ok"}, parent, ident=ident)

    def pre_handler_hook(self) -> None:
        loop = asyncio.get_running_loop()

        def interrupted(*_: object) -> None:
            # Not stopped right here: a second signal may come while this very thread is in Stop.set.
            loop.call_soon_threadsafe(self._executor.stop)

        self.saved_sigint_handler = signal(SIGINT, interrupted)

    def start(self) -> None:
        super().start()  # type: ignore[no-untyped-call]
        self.io_loop.call_later(PREPARE_SECONDS, self._prepare)

    async def _prepare(self) -> None:
        await asyncio.to_thread(self._executor.prepare)

    async def do_shutdown(self, restart: bool) -> dict[str, object]:
        self._executor.end()
        await asyncio.to_thread(self._close)
        return {"status": "ok", "restart": restart}

    def _close(self) -> None:
        self._executor.wait(LAST_CELL_SECONDS)
        self._on_the_loop(self._page.close)
        self._executor.close()

    def _on_the_loop(self, do: Callable[[], None]) -> None:
        """Has the kernel's own event loop do it, where everything of the page is done, and waits for that a while."""
        done = threading.Event()

        def do_it() -> None:
            try:
                do()
            finally:
                done.set()

        self.io_loop.add_callback(do_it)
        done.wait(PAGE_SECONDS)

    # The page's questions

    async def do_is_complete(self, code: str) -> dict[str, object]:
        return completeness(code)

    async def do_complete(self, code: str, cursor_pos: int) -> dict[str, object]:
        return self._executor.cells.complete(code, cursor_pos)

    async def do_inspect(self, code: str, cursor_pos: int, detail_level: int = 0, *_: object) -> dict[str, object]:
        return self._executor.cells.inspect(code, cursor_pos, detail_level)

    async def do_history(  # type: ignore[override]
        self, hist_access_type: str, output: bool, raw: bool, **asked: Any
    ) -> dict[str, object]:
        return self._executor.cells.history(output, hist_access_type=hist_access_type, raw=raw, **asked)

    def comm_open(self, stream: Any, ident: Any, message: Any) -> None:
        if str(message["content"].get("target_name")).startswith(WIDGETS):
            self._page.reopened()
        self.comm_manager.comm_open(stream, ident, message)

    async def comm_info_request(self, stream: Any, ident: Any, parent: Any) -> None:
        if parent["content"].get("target_name") == WIDGETS:
            self._page.reopened()
        await super().comm_info_request(stream, ident, parent)  # type: ignore[no-untyped-call]
