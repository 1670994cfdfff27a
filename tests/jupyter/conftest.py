"""Real kernels, started as Jupyter starts them, with every message they send held against the protocol."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from jupyter_kernel_test.msgspec_v5 import validate_message

from pybox_kernel.boxes.journal import home_folder, installation_id
from pybox_kernel.install import KERNEL_NAME, install

Message = dict[str, Any]
CELL_SECONDS = 20.0
NOT_IN_THE_PROTOCOL = ("comm_open", "comm_close", "comm_msg", "update_display_data")
"""That is, not in the schemas of jupyter_kernel_test."""


@dataclass
class Cell:
    """What one request brought: its messages in order, each with the time it came, and its reply."""

    reply: Message
    messages: list[Message] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    reply_time: float = 0.0

    def of(self, *kinds: str) -> list[Message]:
        return [message["content"] for message in self.messages if message["msg_type"] in kinds]

    @property
    def kinds(self) -> list[str]:
        """Of what stands under the cell, in order."""
        besides = ("status", "execute_input", "comm_open", "comm_msg")
        return [message["msg_type"] for message in self.messages if message["msg_type"] not in besides]

    def text(self, stream: str) -> str:
        return "".join(content["text"] for content in self.of("stream") if content["name"] == stream)

    @property
    def error(self) -> dict[str, Any]:
        [content] = self.of("error")
        assert {**content, "status": "error"}.items() <= self.reply["content"].items()
        return content

    @property
    def receipt_text(self) -> str:
        assert self.kinds[-1] == "display_data"
        return str(self.of("display_data")[-1]["data"]["text/plain"])


class Kernel:
    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client
        self.asked: set[str] = set()

    @property
    def pid(self) -> int:
        return int(self.manager.provisioner.pid)

    def run(self, code: str, **options: Any) -> Cell:
        return self.wait(self.client.execute(code, **options))

    def wait(self, msg_id: str) -> Cell:
        """Until the kernel is idle again after the request and its reply is there. Nothing else may come, but for
        the status messages and widgets' news of what was asked of the kernel meanwhile."""
        cell = Cell({})
        end = time.monotonic() + CELL_SECONDS
        while True:
            message = self.client.get_iopub_msg(timeout=end - time.monotonic())
            if message["msg_type"] in ("status", "comm_msg") and message["parent_header"]["msg_id"] in self.asked:
                continue
            if message["msg_type"] not in NOT_IN_THE_PROTOCOL:
                validate_message(message, message["msg_type"], msg_id)
            assert message["parent_header"]["msg_id"] == msg_id
            cell.messages.append(message)
            cell.times.append(time.monotonic())
            if message["content"].get("execution_state") == "idle":
                break
        cell.reply = self.client.get_shell_msg(timeout=CELL_SECONDS)
        cell.reply_time = time.monotonic()
        assert cell.reply["parent_header"]["msg_id"] == msg_id
        if cell.reply["content"]["status"] != "aborted":
            validate_message(cell.reply, None, msg_id)
        return cell

    def until(self, kind: str, msg_id: str) -> Message:
        """The first message of ``kind`` that ``msg_id`` brings."""
        end = time.monotonic() + CELL_SECONDS
        while True:
            message: Message = self.client.get_iopub_msg(timeout=end - time.monotonic())
            if message["msg_type"] == "status" and message["parent_header"]["msg_id"] in self.asked:
                continue
            assert message["parent_header"]["msg_id"] == msg_id
            if message["msg_type"] == kind:
                return message

    def ask(self, kind: str, content: dict[str, Any], channel: str = "shell") -> Message:
        """Sends a request on a channel; the reply."""
        message = self.client.session.msg(kind, content)
        self.asked.add(message["header"]["msg_id"])
        getattr(self.client, f"{channel}_channel").send(message)
        reply: Message = getattr(self.client, f"get_{channel}_msg")(timeout=CELL_SECONDS)
        validate_message(reply, None, message["header"]["msg_id"])
        return reply["content"]

    def forget(self) -> None:
        """Reads off what has come and was not waited for."""
        for channel in (self.client.iopub_channel, self.client.shell_channel):
            while channel.msg_ready():
                channel.get_msg(timeout=1)


@pytest.fixture(scope="session")
def kernelspec(box_image: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The kernel, installed where the Jupyter of these tests looks for it."""
    prefix = tmp_path_factory.mktemp("prefix")
    install(prefix=str(prefix))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(prefix / "share" / "jupyter"))
        patch.setenv("JUPYTER_PLATFORM_DIRS", "1")
        patch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        yield KERNEL_NAME


@pytest.fixture(scope="module")
def in_advance() -> Iterator[None]:
    """The kernels of this file have boxes made in advance, as a user's have: quicker, where nobody counts them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYBOX_POOL", "2")
        yield


Start = Callable[..., Any]


@pytest.fixture(scope="session")
def start_kernel(kernelspec: str) -> Start:
    """Starts a kernel; ends it at the end of the block."""

    @contextmanager
    def start(
        folder: Path | None = None, name: str = kernelspec, arguments: Sequence[str] = (), **variables: str
    ) -> Iterator[Kernel]:
        manager = KernelManager(kernel_name=name)
        where = {"cwd": str(folder) if folder else None, "env": {**os.environ, **variables}}
        manager.start_kernel(extra_arguments=list(arguments), **where)
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=CELL_SECONDS)
            kernel = Kernel(manager, client)
            kernel.forget()
            yield kernel
        finally:
            client.stop_channels()
            if manager.has_kernel:
                manager.shutdown_kernel(now=not manager.is_alive())
            manager.cleanup_resources()

    return start


@pytest.fixture(scope="module")
def kernel(start_kernel: Start) -> Iterator[Kernel]:
    with start_kernel() as started:
        yield started


@pytest.fixture(scope="module")
def ordinary(start_kernel: Start) -> Iterator[Kernel]:
    """An ordinary Python kernel with PyBox's magics."""
    with start_kernel(name="python3") as started:
        loaded = started.run("%load_ext pybox_kernel")
        assert loaded.reply["content"]["status"] == "ok", loaded.messages
        yield started


class Boxes:
    """What the engine has of this installation: its containers, and how many were ever made."""

    def __init__(self, api: docker.APIClient, label: str) -> None:
        self.api = api
        self.label = label

    def living(self) -> list[str]:
        found = self.api.containers(all=True, filters={"label": self.label})
        return [container["Id"] for container in found]

    def made_since(self, start: float) -> int:
        found = self.api.events(
            since=start, until=time.time(), filters={"label": self.label, "event": "create"}, decode=True
        )
        return sum(1 for _ in found)


@pytest.fixture
def boxes(kernelspec: str) -> Iterator[Boxes]:
    """Of the boxes of this installation, which is that of the tests; no box is there before or after the test."""
    installation = installation_id(home_folder())
    api = docker.APIClient(base_url="unix:///var/run/docker.sock", timeout=10)
    found = Boxes(api, f"org.pybox.installation={installation}")
    yield found
    assert gone(found, within=3.0), found.living()
    api.close()


def gone(boxes: Boxes, within: float) -> bool:
    end = time.monotonic() + within
    while boxes.living():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
