"""Starts the runner: a process that holds its three streams, its events and its source, and nothing else."""

from __future__ import annotations

import os
import signal
import sys

RUNNER = "/usr/local/lib/pybox/runner.py"
EVENTS, SOURCE = 3, 4
BEYOND = 100
"""No pipe has a number so high: first there, then into place, so that no end is closed before it is used."""


def spawn(environment: dict[str, str]) -> tuple[int, int, int, int, int]:
    """With no signal blocked or ignored, and exactly this environment. Its process id, and the warden's ends of the
    pipes, none of which blocks: its output, its errors, its events; its source."""
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    event_read, event_write = os.pipe()
    source_read, source_write = os.pipe()
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-P", "-s", RUNNER],
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, out_write, 1),
            (os.POSIX_SPAWN_DUP2, err_write, 2),
            (os.POSIX_SPAWN_DUP2, event_write, BEYOND + EVENTS),
            (os.POSIX_SPAWN_DUP2, source_read, BEYOND + SOURCE),
            (os.POSIX_SPAWN_DUP2, BEYOND + EVENTS, EVENTS),
            (os.POSIX_SPAWN_DUP2, BEYOND + SOURCE, SOURCE),
            (os.POSIX_SPAWN_CLOSE, BEYOND + EVENTS),
            (os.POSIX_SPAWN_CLOSE, BEYOND + SOURCE),
        ],
        setsigmask=[],
        setsigdef=[s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)],
    )
    for descriptor in (out_write, err_write, event_write, source_read):
        os.close(descriptor)
    for descriptor in (0, 1, out_read, err_read, event_read, source_write):
        os.set_blocking(descriptor, False)
    return pid, out_read, err_read, event_read, source_write
