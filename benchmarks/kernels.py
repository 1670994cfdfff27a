"""Two kernels as a client sees them: from the request to the first output, and until the kernel is idle again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_client.manager import KernelManager

__all__ = ["KernelClient", "started"]

SECONDS = 30.0


class KernelClient:
    def __init__(self, client: Any, pid: int) -> None:
        self._client = client
        self.pid = pid
        self.first_output: list[float] = []
        """Seconds from the request of each cell to its first output."""

    def run(self, code: str, *, prints: bool = True) -> None:
        """Returns when the kernel is idle again. Raises RuntimeError if the cell fails, or prints not as said."""
        began = time.perf_counter()
        asked = self._client.execute(code)
        first = None
        while True:
            message = self._client.get_iopub_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") != asked:
                continue
            if message["msg_type"] == "stream" and first is None:
                first = time.perf_counter() - began
            if message["content"].get("execution_state") == "idle":
                break
        reply = self._client.get_shell_msg(timeout=SECONDS)
        if (first is None) == prints or reply["content"]["status"] != "ok":
            raise RuntimeError(f"the cell did not end well: {reply['content']}")
        if first is not None:
            self.first_output.append(first)

    def connect_a_page(self) -> None:
        """As a widget manager does, so that receipts become panels."""
        message = self._client.session.msg("comm_info_request", {"target_name": "jupyter.widget"})
        self._client.shell_channel.send(message)
        self._client.get_shell_msg(timeout=SECONDS)


@contextmanager
def started(kernel_name: str, **variables: str) -> Iterator[KernelClient]:
    manager = KernelManager(kernel_name=kernel_name)
    manager.start_kernel(env={**os.environ, **variables})
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=SECONDS)
        yield KernelClient(client, manager.provisioner.pid)
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
