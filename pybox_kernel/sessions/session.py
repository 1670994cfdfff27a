"""Wiring: the one place that chooses an engine, a witness, an image and a state folder for the runner."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Self

from pybox_kernel.boxes import leftovers
from pybox_kernel.boxes.journal import Journal, home_folder, home_path
from pybox_kernel.boxes.leftovers import Sweep
from pybox_kernel.carry.groups import Mode
from pybox_kernel.carry.store import Carry, checked_mode
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.doctor import Finding
from pybox_kernel.doctor import examine as examine_all
from pybox_kernel.engine import Engine
from pybox_kernel.engine_choice import Wish, choose, wish_of
from pybox_kernel.errors import OptionError, PyBoxError, SetupError
from pybox_kernel.files import files_in, files_out
from pybox_kernel.files.box_files import InputFile, checked_inputs, too_many
from pybox_kernel.files.named_paths import check_beside
from pybox_kernel.images.store import packages_of
from pybox_kernel.policy import STDLIB, Policy, checked_deadline, checked_source, policy_for
from pybox_kernel.receipt.model import Image, Receipt
from pybox_kernel.render.amounts import counted
from pybox_kernel.running.carry_course import parcel_of
from pybox_kernel.running.receipt_writer import not_saved, saved_in, with_folder
from pybox_kernel.running.runner import CarryIn, Program, RunResult, Stop, Watcher, not_run, run_program
from pybox_kernel.safe_display.html_cleaner import HtmlCleaner
from pybox_kernel.safe_display.text import without_colour
from pybox_kernel.sessions.boxes import SessionBoxes
from pybox_kernel.sessions.engines import ended_since, own_machine
from pybox_kernel.wire.values import ValuesAsked, check_libraries

__all__ = [
    "Asks",
    "Carry",
    "RunResult",
    "Session",
    "Stop",
    "Wish",
    "checked_mode",
    "clean_up",
    "examine",
    "run",
    "share_folder",
    "wish_of",
    "with_output",
]


class Asks(NamedTuple):
    """What a person asks for, as they wrote it."""

    image: str = STDLIB.image
    timeout: str | None = None
    input: Sequence[str] = ()
    output: str | None = None
    cell: int | None = None
    """The number of a cell that gets a folder of its own in ``output``, which many share."""
    carry: str | None = None
    """Whether it gets and leaves values, where it does not do as the other cells of its notebook."""
    of_a_notebook: bool = False
    """Which may be a stranger's: then files come from and go to nowhere but below its folder, and nothing hidden."""
    own: Collection[str] = ()
    """Of ``input`` and ``output``, what a person said themselves beside the notebook, at a shell."""


class Session:
    """Runs programs, each in a box of its own. Thread-safe; close it, or use it as a context manager.

    A session that is killed leaves nothing running: its boxes end with its connections, and the next session of this
    installation removes and reports whatever is left. It belongs to the process that opened it: in one that was forked
    from that, ``close`` does nothing, and whatever would use its boxes raises InputError.
    """

    def __init__(
        self, journal: Journal, engine: Engine | None = None, *, in_advance: bool = False, wish: Wish | None = None
    ) -> None:
        """``engine`` is for tests with an engine of their own; otherwise ``wish`` leads to one, and where that is not
        given, the environment's. ``in_advance``: see ``SessionBoxes``. Raises OptionError."""
        self.wish = wish or wish_of()
        self._journal = journal
        self._engine = engine
        self._html_cleaner = HtmlCleaner()
        self._swept = False
        self._lock = threading.Lock()
        self._boxes = SessionBoxes(journal, self.engine, in_advance=in_advance)

    @classmethod
    def open(cls, *, in_advance: bool = False, wish: Wish | None = None) -> Self:
        """Raises SetupError if the state folder cannot be made, OptionError for an engine that is none. One that is
        missing, or not to be used, is told by ``run``."""
        return cls(Journal(home_folder()), in_advance=in_advance, wish=wish)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self,
        source: str | bytes,
        *,
        deadline_seconds: float | str | None = None,
        watcher: Watcher | None = None,
        stop: Stop | None = None,
        policy: Policy = STDLIB,
        earlier: Mapping[str, int] | None = None,
        inputs: Sequence[InputFile] = (),
        output: bool = False,
        carry: Carry | CarryIn | None = None,
        cell: int | None = None,
        carry_mode: Mode | None = None,
        values: ValuesAsked | None = None,
        queued: Callable[[int], None] | None = None,
        refusal: PyBoxError | None = None,
    ) -> RunResult:
        """Runs ``source`` in a fresh sealed box. Raises InputError for a bad program, deadline or file, before anything
        is made. All other trouble is on the receipt. ``earlier`` has the names that cells before this one defined, each
        with the number of its cell: who misses one of them is told. Copies of ``inputs`` are put into the working
        directory; with ``output`` the files made or changed there are on the result. The cells of one notebook share a
        ``carry``: what earlier ones left goes in, and what this one leaves comes out; ``cell`` is its number there, and
        ``carry_mode`` its own where it does not do as the others. ``values`` are put into the cell's namespace, and
        asked of it: those that came are on the result. Raises OptionError for one that the image cannot make.
        ``queued`` is told how many runs come before this one, as that changes, where it has to wait for its turn.
        With a ``refusal`` nothing is run, and the receipt says why."""
        self._boxes.own_process.require()
        program = checked_source(policy, source)
        deadline = checked_deadline(policy, deadline_seconds)
        files = checked_inputs(policy, inputs)
        if output and not policy.files:
            raise too_many(policy)
        if files or output:
            policy = policy.with_files()
        mode = (carry_mode or carry.mode) if isinstance(carry, Carry) else None
        sent = carry.going_in(program, cell, mode) if isinstance(carry, Carry) else None
        raw = carry if isinstance(carry, CarryIn) else parcel_of(sent) if sent is not None else None
        asked = Program(program, policy, deadline, None, earlier or {}, files, output, raw, mode, sent)
        asked = asked._replace(values=values or ValuesAsked(), wish=self.wish)
        if refusal is not None:
            return not_run(asked, refusal)
        try:
            engine = self.engine()
            asked = asked._replace(place=engine.place)
            recorded = self._boxes.recorded(engine, policy)
        except SetupError as error:  # no image to run in, but the engine may still hold what was left
            return replace(not_run(asked, error), notices=self._sweep_once(engine))
        except PyBoxError as error:
            return not_run(asked, error)
        check_libraries(asked.values, recorded.name, packages_of(recorded))
        notices = self._sweep_once(engine)
        image = Image(name=recorded.name, id=recorded.id, recipe_sha256=recorded.recipe_sha256, base=recorded.base)
        with ExitStack() as during:
            try:
                during.enter_context(self._boxes.turns.turn(stop or Stop(), queued))
            except PyBoxError as error:
                return replace(not_run(asked._replace(image=image), error), notices=notices)
            result = run_program(
                asked._replace(image=image),
                engine,
                self._journal,
                self._boxes.witness_for(engine, image.id),
                self._html_cleaner.clean,
                watcher,
                stop,
                self._boxes.pool,
            )
        if isinstance(carry, Carry):
            carry.settle(program, sent, result.taken, cell)
        return replace(result, notices=notices)

    def run_asked(
        self,
        source: str | bytes,
        asks: Asks,
        *,
        watcher: Watcher | None = None,
        stop: Stop | None = None,
        earlier: Mapping[str, int] | None = None,
        carry: Carry | None = None,
        cell: int | None = None,
        values: ValuesAsked | None = None,
        queued: Callable[[int], None] | None = None,
        refusal: PyBoxError | None = None,
    ) -> RunResult:
        """As ``run``, for a person: what they ask for is read from what they wrote; paths count from the current
        folder. Raises InputError as well for files that cannot be read, and a folder that is taken."""
        policy = policy_for(asks.image)
        base = working_folder() if asks.input or asks.output is not None else Path("/")
        if asks.of_a_notebook:
            its_own = {"input": asks.input, "output": [asks.output] if asks.output is not None else []}
            for path in (path for name, paths in its_own.items() if name not in asks.own for path in paths):
                check_beside(path, base)
        inputs = files_in.read(policy, asks.input, base)
        if asks.output is not None:
            files_out.check(asks.output, base, asks.cell)
        result = self.run(
            source,
            deadline_seconds=asks.timeout,
            watcher=watcher,
            stop=stop,
            policy=policy,
            earlier=earlier,
            inputs=inputs,
            output=asks.output is not None,
            carry=carry,
            cell=cell,
            carry_mode=checked_mode(asks.carry) if asks.carry is not None else None,
            values=values,
            queued=queued,
            refusal=refusal,
        )
        return saved(result, asks.output, base, asks.cell) if asks.output is not None else result

    def engine(self) -> Engine:
        """The engine, without talking to it; the same for as long as the session lives. Raises EngineError: see
        ``choose``."""
        with self._lock:
            if self._engine is None:
                self._engine = DockerEngine(choose(self.wish, own_machine))
            return self._engine

    def sweep(self) -> Sweep:
        """Removes what dead sessions left. Raises EngineError only for an address that is not used."""
        self._boxes.own_process.require()
        return leftovers.sweep(self.engine(), self._journal, ended_since)

    def _sweep_once(self, engine: Engine) -> tuple[str, ...]:
        with self._lock:
            if self._swept:
                return ()
            self._swept = True
        found = leftovers.sweep(engine, self._journal, ended_since)
        notices = []
        if found.removed:
            notices.append(
                f"Removed {counted(len(found.removed), 'box', 'boxes')} that an earlier session left behind."
            )
        # Whoever went on to another engine is not told of the one before in each notebook: `cleanup` does that.
        if here := len(found.unconfirmed) - len(found.elsewhere):
            notices.append(
                f"{counted(here, 'box', 'boxes')} of an earlier session could not be confirmed gone: "
                "run `pybox-kernel cleanup`."
            )
        return tuple(notices)

    def expect(self, image: str) -> None:
        """Has a box of ``image`` made for the first cell: see ``SessionBoxes``. Raises PyBoxError."""
        self._boxes.expect(image)

    def waiting(self) -> int:
        """How many boxes are ready for the next cells."""
        return self._boxes.waiting()

    def close(self) -> None:
        """Ends the processes and boxes it started, and gives the session's lock back. Idempotent. Runs must have
        ended."""
        if not self._boxes.own_process.is_this():
            return
        self._boxes.close()
        self._html_cleaner.close()
        self._journal.close()
        engine = self._engine
        if isinstance(engine, DockerEngine):
            engine.close()


def run(source: str | bytes, *, deadline_seconds: float | None = None, image: str = STDLIB.image) -> RunResult:
    """Runs one program in a fresh sealed box, in a session of its own. Raises InputError for a bad program or deadline;
    all other trouble is on ``result.receipt``, that of an ``image`` which was never made too."""
    with Session.open() as session:
        return session.run(source, deadline_seconds=deadline_seconds, policy=policy_for(image))


def with_output(result: RunResult) -> Receipt:
    """The receipt with the kept output inside, for where nothing stands beside it."""
    said = result.receipt.said
    texts = {
        "stdout": said.stdout.model_copy(update={"text": result.stdout}),
        "stderr": said.stderr.model_copy(update={"text": result.stderr}),
        "traceback": without_colour(result.error.traceback) if result.error is not None else None,
    }
    return result.receipt.model_copy(update={"said": said.model_copy(update=texts)})


def working_folder() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise OptionError(f"The current folder cannot be found: {error.strerror}.", "Go to another folder.") from None


def share_folder(folder: str, *, of_a_notebook: bool = True) -> None:
    """Makes the folder that the cells of a notebook share for their files. Raises OptionError."""
    base = working_folder()
    if of_a_notebook:
        check_beside(folder, base)
    files_out.share(folder, base)


def saved(result: RunResult, folder: str, base: Path, cell: int | None) -> RunResult:
    """Writes the files of ``result`` into ``folder``, which is new or empty, or for a ``cell`` into a new one in it.
    The receipt of the result that is returned says where they are; where that fails none is there, and it says so."""
    receipt = with_folder(result.receipt, folder)
    try:
        place = files_out.write(receipt.asked.policy, result.files, folder, base, cell)
    except PyBoxError as error:
        return replace(result, files=(), receipt=not_saved(receipt, error))
    return replace(result, receipt=receipt if place is None else saved_in(receipt, place))


def examine(kernel_name: str, wish: Callable[[], Wish] = wish_of) -> tuple[Finding, ...]:
    """What is wrong on this computer, the engine that is wished for included. Reads only."""
    return examine_all(lambda: DockerEngine(choose(wish(), own_machine)), home_path(), kernel_name)


def clean_up(wish: Wish | None = None) -> Sweep:
    """Removes what dead sessions left, and says what."""
    with Session.open(wish=wish) as session:
        session.engine().facts()  # an engine that does not answer is an error here, not a list of unknowns
        return session.sweep()
