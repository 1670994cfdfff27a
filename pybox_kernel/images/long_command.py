"""A program of this computer that works for minutes, such as pip: followed line by line, and not outlived by anyone."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pybox_kernel.not_outlived import with_this_process

__all__ = ["GRACE_SECONDS", "TookTooLong", "follow"]

LOOK_SECONDS: Final = 0.05
GRACE_SECONDS: Final = 10.0
"""For a program that is asked to end, to take down what it set up."""


class TookTooLong(Exception):
    """It was ended since its time was over."""


def follow(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    seconds: float,
    line: Callable[[str], None],
    *,
    folder: Path | None = None,
    look: Callable[[], None] | None = None,
) -> int:
    """Runs ``command`` in ``folder`` to its end; its exit status. Both its streams go to the file ``log``, and each
    line of them to ``line`` while it runs. Raises TookTooLong after ``seconds``, and what ``line`` and ``look`` raise,
    which is called over and over. However this ends, the command has ended, and what it started with it: asked to
    first, and after ``GRACE_SECONDS`` by force. On Linux it is asked to end as well where this process is killed."""
    end = time.monotonic() + seconds
    with log.open("wb") as output, log.open(errors="replace") as said:
        process = subprocess.Popen(
            with_this_process(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
        try:
            while True:
                over = process.poll() is not None
                for found in said.readlines():
                    line(found)
                if over:
                    return process.returncode
                if look is not None:
                    look()
                if time.monotonic() > end:
                    raise TookTooLong
                time.sleep(LOOK_SECONDS)
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
