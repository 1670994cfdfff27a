"""The private machine on Linux: QEMU, run as this user, in a folder of its own.

FOLDER/disk.img kernel initrd      made by ``disk``; what is written to the disk while it runs is thrown away
FOLDER/key known_hosts             for this machine alone
FOLDER/lock                        held (flock) by QEMU itself for as long as it lives; never a process id
FOLDER/run/                        sockets, logs and the state of one start; all of it goes with the next
FOLDER.lock                        held by whoever starts, stops or replaces the machine
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pybox_kernel.errors import EngineTimeout, SetupError
from pybox_kernel.file_lock import file_lock, file_lock_now, take_within
from pybox_kernel.machines import control, monitor
from pybox_kernel.machines.control import Lost
from pybox_kernel.machines.hardware import QEMU, Choice, choose, command, remember
from pybox_kernel.machines.machine import LONGEST_SOCKET_PATH, Clock, MachineFacts, MachineState, Progress, silent
from pybox_kernel.machines.packages import install_line, missing_to_run
from pybox_kernel.ownership import doubt

__all__ = ["RUNS_CGROUP", "QemuMachine"]

MEMORY_MIB: Final = 1536
RUNS_CGROUP: Final = "/pybox"
"""Made by ``guest/init``, which also clears it."""
START_SECONDS: Final = {"kvm": 60.0, "tcg": 300.0}
"""Until the machine's engine answers: 1-2 s with KVM and 11-14 s emulated, where nothing else is busy."""
END_SECONDS: Final = 10.0
OFF_SECONDS: Final = 120.0
QUESTION_SECONDS: Final = 30.0
CLOCK_SECONDS: Final = {"kvm": 5.0, "tcg": 10.0}
LOOK_SECONDS: Final = 2.0
SOON_SECONDS: Final = 1.0
SILENT_SECONDS: Final = {"kvm": 10.0, "tcg": 60.0}
"""An engine that takes a connection and says nothing for so long is taken for hung, and the machine started anew, with
the end of all boxes in it: long enough for an emulated one beside which this computer is busy."""


class State(BaseModel):
    """What was found when the machine had started."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    accelerator: Literal["kvm", "tcg"]
    boot_id: str = Field(max_length=36)
    kernel: str = Field(max_length=100)
    started_at: datetime
    ahead_seconds: float
    within_seconds: float
    memory_mib: int | None
    processors: int | None
    network_devices: int | None
    shared_folders: int | None
    remark: str = Field(max_length=500)


class QemuMachine:
    """See ``machine.Machine``. ``folder`` need not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = folder / "run"
        self.socket = self.run / control.ENGINE_SOCKET
        self._starting = folder.with_name(folder.name + ".lock")

    @property
    def endpoint(self) -> str:
        return f"unix://{self.socket}"

    def made(self) -> bool:
        return (self.folder / "disk.json").is_file()

    def status(self) -> MachineFacts:
        try:
            return self._looked_at()
        except OSError as error:  # no descriptor is left, say
            return self._facts("unreachable", f"it could not be looked at ({error.strerror})")

    def _looked_at(self) -> MachineFacts:
        if why := doubt(self.folder):
            return self._facts("unreachable", why)
        if not self.made():
            return self._facts("not made", "it is being made" if self._busy() else "Make it: `pybox-kernel vm build`.")
        if not self.alive():
            return self._facts("stopped", "")
        state = self._state()
        if state is None and self._busy():
            return self._facts("stopped", "it is starting, or being ended")
        state = state or self._state()  # a start may have come to its end meanwhile, and so may an end
        if state is None:
            return self._facts(*(("unreachable", "its start was broken off") if self.alive() else ("stopped", "")))
        if not self._listens():
            return self._facts("unreachable", "the connection to its engine is lost", state)
        return self._facts("running", state.remark, state)

    def _facts(self, state: MachineState, remark: str, found: State | None = None) -> MachineFacts:
        facts = MachineFacts("qemu", self.folder.name, state, self.endpoint, remark=remark)
        if found is None:
            return facts
        return facts._replace(
            accelerator=found.accelerator,
            boot_id=found.boot_id,
            kernel=found.kernel,
            started_at=found.started_at,
            clock=Clock(found.ahead_seconds, found.within_seconds),
            runs_cgroup=RUNS_CGROUP,
            memory_mib=found.memory_mib,
            processors=found.processors,
            network_devices=found.network_devices,
            shared_folders=found.shared_folders,
        )

    def _state(self) -> State | None:
        try:
            return State.model_validate_json((self.run / "state.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def _listens(self) -> bool:
        return monitor.owner(self.socket) is not None

    def alive(self) -> bool:
        """Whether a QEMU of this machine lives: it holds the lock with a descriptor that it was born with."""
        try:
            lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def trust(self) -> None:
        """Raises SetupError where somebody else could have changed the machine."""
        if why := doubt(self.folder):
            raise SetupError(
                f"The private machine is not this user's alone: {why}.",
                "Remove it or give it back to this user, and see that PYBOX_HOME is for this user alone; "
                "then `pybox-kernel vm build`.",
            )

    def _busy(self) -> bool:
        """Whether somebody starts, stops or makes it now."""
        try:
            with file_lock_now(self._starting) as free:
                return not free
        except OSError:
            return False

    @contextmanager
    def alone(self, progress: Progress) -> Iterator[None]:
        """Holds the lock of whoever starts, ends, makes or replaces the machine; tells of it where it has to wait."""
        with ExitStack() as held:
            try:
                held.enter_context(file_lock(self._starting, SOON_SECONDS))
            except TimeoutError:
                progress("Waiting: another command starts, ends or makes the machine")
                held.enter_context(file_lock(self._starting))
            yield

    def start(self, progress: Progress) -> MachineFacts:
        self.trust()
        if not self.made():
            raise SetupError("There is no private machine yet.", "Make it: `pybox-kernel vm build`.")
        with self.alone(progress):
            if self.alive():
                mended = self._mended(progress)
                if mended is not None:
                    return mended
                self.end()
            self.check()
            self.fresh_run()
            choice = choose(self.folder)
            try:
                return self._started(choice, progress)
            except Lost as lost:
                if choice.accelerator != "kvm":
                    raise self._failed(lost) from lost
                # It booted in the test, and does not come to its engine: no better than one that does not boot.
                choice = Choice("tcg", f"with KVM {lost}; so the machine is emulated and slow")
            self.fresh_run()
            try:
                facts = self._started(choice, progress)
            except Lost as lost:
                raise self._failed(lost) from lost
            remember(self.folder, choice)
            return facts

    def check(self) -> None:
        """Raises SetupError where this computer cannot run it, before anything is started."""
        if missing := missing_to_run():
            raise SetupError(
                f"The private machine needs what this computer lacks: {', '.join(missing)}.", install_line(missing)
            )
        length = len(os.fsencode(self.socket))
        if length > LONGEST_SOCKET_PATH:
            raise SetupError(
                f"The path of the machine's socket has {length} bytes, and {LONGEST_SOCKET_PATH} is the most a system "
                f"takes: {self.socket}",
                "Set PYBOX_HOME to a folder with a shorter path, and make the machine there.",
            )

    def _mended(self, progress: Progress) -> MachineFacts | None:
        """One that lives, with its engine answering; None where it cannot be had so. Raises SetupError where that is
        for want of a program, and leaves it alone."""
        state = self._state()
        if state is None:
            return None
        if not self._listens():
            self.check()
            progress("Connecting to the machine again")
            with suppress(Lost):
                control.connect(self.run, QUESTION_SECONDS, self.alive)
        if not control.engine_answers(self.socket, SILENT_SECONDS[state.accelerator]):
            return None
        with suppress(Lost):  # after a sleep of this computer it is behind
            control.set_clock(self.run, QUESTION_SECONDS)
        return self.status()

    def fresh_run(self) -> None:
        """An empty folder for one start: sockets and logs of the last one are gone."""
        shutil.rmtree(self.run, ignore_errors=True)
        self.run.mkdir(mode=0o700)

    def _started(self, choice: Choice, progress: Progress) -> MachineFacts:
        """Started, or Lost: then nothing of it is left."""
        how = "" if choice.accelerator == "kvm" else ", emulated: some 15 s, or a minute where this computer is busy"
        progress(f"Starting the machine{how}")
        try:
            self.launch(choice, keep=False)
            self.connect(choice)
            control.set_clock(self.run, QUESTION_SECONDS)
            inside = control.look_inside(self.run, QUESTION_SECONDS)
            seen = monitor.settings(self.run / "qmp.sock")
            state = State(
                accelerator=choice.accelerator,
                boot_id=inside.boot_id,
                kernel=inside.kernel,
                started_at=datetime.now(UTC),
                ahead_seconds=inside.clock.ahead_seconds,
                within_seconds=inside.clock.within_seconds,
                memory_mib=seen.memory_mib,
                processors=seen.processors,
                network_devices=seen.network_devices,
                shared_folders=seen.shared_folders,
                remark=choice.remark[:500],
            )
            fresh = self.run / "state.new"
            fresh.write_text(state.model_dump_json())
            fresh.replace(self.run / "state.json")
        except BaseException:
            self.end()
            raise
        return self._facts("running", choice.remark, state)

    def launch(self, choice: Choice, *, keep: bool) -> None:
        """Starts QEMU, in a session of its own so that it outlives this process, and with the lock. Raises Lost."""
        with closing(Lock(self.folder / "lock")) as lock, (self.run / "qemu.log").open("wb") as log:
            done = subprocess.run(
                ["setsid", "--fork", *command(choice.accelerator, MEMORY_MIB, keep=keep)],
                cwd=self.run,
                # The temporary file of what is written to the disk: gone by name as soon as it is made.
                env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "TMPDIR": ".", "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock.descriptor,),
                umask=0o177,
                timeout=END_SECONDS,
                check=False,
            )
        if done.returncode != 0:
            raise Lost("QEMU could not be started")
        limit = time.monotonic() + END_SECONDS
        while not (self.run / "qmp.sock").exists():
            if not self.alive() or time.monotonic() > limit:
                raise Lost(f"QEMU ended at once: {self._log('qemu.log') or 'it does not say why'}")
            time.sleep(0.02)

    def connect(self, choice: Choice) -> None:
        """Waits until the machine's engine answers at ``endpoint``. Raises Lost."""
        limit = time.monotonic() + START_SECONDS[choice.accelerator]
        try:
            control.connect(self.run, START_SECONDS[choice.accelerator], self.alive)
        except Lost as lost:
            said = "" if self.alive() else self._log("qemu.log")
            raise Lost(f"{lost}: {said}" if said else str(lost)) from lost
        while not control.engine_answers(self.socket, LOOK_SECONDS):
            if not self.alive():
                raise Lost("the machine ended while it was starting")
            if time.monotonic() > limit:
                raise Lost("the machine started, and its engine does not answer")
            time.sleep(0.1)

    def _log(self, name: str) -> str:
        try:
            lines = (self.run / name).read_bytes()[-2000:].decode(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1][:300] if lines else ""

    def _failed(self, lost: Lost) -> EngineTimeout:
        return EngineTimeout(
            f"The private machine could not be started: {lost}.",
            "Try again when this computer is less busy; then `pybox-kernel vm build`, which makes it anew.",
        )

    def stop(self, progress: Progress = silent) -> bool:
        self.trust()
        if not self.folder.is_dir():
            return False
        with self.alone(progress):
            ran = self.alive()
            self.end()
            return ran

    def end(self) -> None:
        """Whatever state it is in: afterwards no QEMU of this machine lives, and nothing of its start is left."""
        path = self.run / "qmp.sock"
        if self.alive():
            monitor.end(path)
            self._wait_ended(END_SECONDS / 2)
        if self.alive():
            monitor.kill(path)
            self._wait_ended(END_SECONDS)
        if self.alive():
            raise EngineTimeout(
                "The private machine could not be ended.",
                f"Look for a process `{QEMU} -name pybox` of yours, and end it.",
            )
        if self.run.is_dir():
            control.disconnect(self.run)
            shutil.rmtree(self.run, ignore_errors=True)

    def turn_off(self) -> None:
        """Ends it with everything written to its disk. Raises Lost."""
        control.turn_off(self.run)
        self._wait_ended(OFF_SECONDS)
        if self.alive():
            self.end()
            raise Lost("the machine did not end by itself")
        self.end()

    def _wait_ended(self, seconds: float) -> None:
        limit = time.monotonic() + seconds
        while self.alive() and time.monotonic() < limit:
            time.sleep(0.02)

    def clock(self) -> Clock | None:
        state = self._state()
        if state is None or not self.alive():
            return None
        try:
            return control.look_inside(self.run, CLOCK_SECONDS[state.accelerator]).clock
        except (Lost, OSError):
            return None


class Lock:
    """The lock that QEMU is to inherit. Raises Lost where another has it."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            take_within(self.descriptor, SOON_SECONDS)  # who only looks whether it is held has it for a moment
        except TimeoutError:
            os.close(self.descriptor)
            raise Lost("another QEMU of this machine still lives") from None

    def close(self) -> None:
        """The lock stays with whoever inherited it."""
        os.close(self.descriptor)
