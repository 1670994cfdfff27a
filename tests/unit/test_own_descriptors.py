"""What a process keeps to itself is not held by those that it forks."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
from pathlib import Path

from pybox_kernel.own_descriptors import given_up, keep_to_oneself


def test_a_lock_and_a_connection_end_with_their_owner_although_its_child_lives_on(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    for descriptor in (lock, ours.fileno()):
        keep_to_oneself(descriptor)
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, b"!")
        signal.pause()
        os._exit(0)
    try:
        assert os.read(reader, 1) == b"!"
        for descriptor in (lock, ours.fileno()):
            given_up(descriptor)
        os.close(lock)
        ours.close()
        theirs.setblocking(False)
        assert theirs.recv(1) == b"", "it has ended"
        again = os.open(tmp_path / "lock", os.O_RDWR)
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(again)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for descriptor in (reader, writer):
            os.close(descriptor)
        theirs.close()
