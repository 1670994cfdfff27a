"""Ports for the kernels and servers of tests that nobody else on this computer takes meanwhile.

Jupyter looks for a free port, and the kernel binds it a second later: among thousands of connections and kernels that
start at the same time another has it by then, now and then, and the kernel ends at once ("Address already in use").
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from jupyter_client.connect import LocalPortCache

__all__ = ["OwnPorts"]

FIRST: Final = 16_000
EACH: Final = 1_000
"""Ports of one test process, and of the server that it started (``PYBOX_TEST_PORTS=server``): a kernel takes five."""
CHOSEN_BY_LINUX: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


class OwnPorts(LocalPortCache):  # type: ignore[misc]
    """One after the other, from below those that Linux gives to whoever does not name one (ip(7)), and in a part of
    them that this test process alone uses. ``OwnPorts.instance()`` makes it the one for all kernels started here."""

    def __init__(self) -> None:
        super().__init__()
        worker = os.environ.get("PYTEST_XDIST_WORKER", "gw7").removeprefix("gw")
        second = os.environ.get("PYBOX_TEST_PORTS") == "server"
        self._first = FIRST + EACH * (2 * int(worker) + second)
        assert self._first + EACH <= int(CHOSEN_BY_LINUX.read_text().split()[0])
        self._taken = count()

    def find_available_port(self, ip: str) -> int:
        for number in self._taken:
            port = self._first + number % EACH
            if port in self.currently_used_ports:
                continue
            with socket.socket() as tried, suppress(OSError):
                tried.bind((ip, port))
                self.currently_used_ports.add(port)
                return port
        raise AssertionError
