"""A supervisor in a process of its own, to be stopped or killed while its program runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.conftest import Outside


class Finished(NamedTuple):
    status: int
    printed: bytes
    receipt: str


class Supervisor:
    """``pybox-kernel run -`` with a state folder of its own, so that its box can be told from every other."""

    def __init__(self, source: str, seconds: float, home: Path, own_home: Path, outside: Outside) -> None:
        self._outside = outside
        self.home = own_home
        self.home.mkdir(mode=0o700)
        shutil.copy(home / "images.json", self.home / "images.json")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pybox_kernel.cli", "run", "-", "--timeout", str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYBOX_HOME": str(self.home)},
        )
        assert self._process.stdin is not None
        self._process.stdin.write(source.encode())
        self._process.stdin.close()
        self._process.stdin = None
        self.began = 0.0
        self.box = ""
        self._cgroups: list[Path] = []

    def wait_for_line(self) -> str:
        """The program's first line; its clock has started by then. Finds out which box is ours."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode()
        self.began = time.monotonic()
        installation = (self.home / "installation").read_text().strip()
        (self.box,) = self._outside.boxes(installation=installation)
        self._cgroups = [Path(folder) for folder in self._outside.cgroups(self.box)]
        return line

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def processes(self) -> set[str]:
        """Every process in the box, as its cgroups have them."""
        found: set[str] = set()
        for folder in self._cgroups:
            try:
                found.update((folder / "cgroup.procs").read_text().split())
            except OSError:  # the cgroup is gone: ENOENT, or ENODEV while it goes
                continue
        return found

    def wait_for_processes(self, most: int, seconds: float) -> float:
        """Until at most ``most`` processes are left in the box: how long that was after the program's first line."""
        while (left := len(self.processes())) > most:
            waited = time.monotonic() - self.began
            assert waited < seconds, f"{left} processes live {waited:.2f} s after the program's start"
            time.sleep(0.005)
        return time.monotonic() - self.began

    def finish(self) -> Finished:
        """Lets it go on, if it was stopped, until its end."""
        self._process.send_signal(signal.SIGCONT)
        printed, receipt = self._process.communicate(timeout=20)
        return Finished(self._process.returncode, printed, receipt.decode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()
        if kind is not None and self.box:
            self._outside.api.remove_container(self.box, force=True, v=True)
