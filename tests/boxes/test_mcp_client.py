"""``pybox-kernel mcp`` as the MCP SDK's own client meets it, over real pipes, with real boxes."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import jsonschema
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, ImageContent, TextContent

from pybox_kernel.images.store import ImageStore, RecordedImage
from pybox_kernel.receipt.model import Receipt
from tests.boxes.conftest import Installation
from tests.boxes.mcp_raw import mcp_command
from tests.conftest import Outside

pytestmark = pytest.mark.engine

PICTURE = """
import base64, zlib, struct
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
head = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
png = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", head)
png += chunk(b"IDAT", zlib.compress(b"\\0" * 14)) + chunk(b"IEND", b"")
class Picture:
    def _repr_png_(self):
        return png
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, box_image: RecordedImage, outside: Outside) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("agents")
    home.chmod(0o700)
    ImageStore(home).record(box_image)
    yield home
    assert not Installation(home, outside).boxes()


def served(home: Path, *arguments: str) -> StdioServerParameters:
    command = mcp_command(*arguments)
    environment = {"PYBOX_HOME": str(home), "PYBOX_POOL": "0", "PYTHONPATH": ":".join(filter(None, sys.path))}
    return StdioServerParameters(command=command[0], args=command[1:], env=environment)


def text_of(result: CallToolResult) -> str:
    first = result.content[0]
    assert isinstance(first, TextContent)
    return first.text


def test_the_sdks_client_runs_python_with_files_sessions_and_pictures(place: Path) -> None:
    async def talk() -> None:
        async with Client(served(place, "--files", "--carry", "--max-timeout", "20")) as client:
            (tool,) = (await client.list_tools()).tools
            assert tool.name == "run_python"
            assert tool.output_schema is not None

            async def run(code: str, **arguments: Any) -> CallToolResult:
                return await client.call_tool("run_python", {"code": code, "timeout": 20, **arguments})

            result = await run("print('hi')\n6 * 7")
            assert not result.is_error
            said = result.structured_content
            jsonschema.validate(said, tool.output_schema)
            assert (said["stdout"]["text"], said["value"]["text"], said["error"]) == ("hi\n", "42", None)
            receipt = Receipt.from_json(json.dumps(said["receipt"]))
            assert receipt.ok
            assert receipt.observed.box.removed
            assert text_of(result).startswith("Ended normally")

            failed = await run("1 / 0")
            assert not failed.is_error
            assert failed.structured_content["error"]["name"] == "ZeroDivisionError"
            assert not failed.structured_content["ok"]

            await run("kept = open('a.txt').read()", files=[{"name": "a.txt", "text": "één"}], session="s")
            write = "_ = open('b.bin', 'wb').write(b'\\0' + kept.encode())"
            back = await run(write, session="s", return_files=["b.bin", "c.txt"])
            said = back.structured_content
            (file,) = said["files"]
            assert base64.b64decode(file["base64"]) == b"\0" + "één".encode()
            assert [missing["name"] for missing in said["not_returned"]] == ["c.txt"]
            facts = said["session"]
            assert (facts["name"], facts["new"], facts["forgotten_before"], facts["names"]) == ("s", False, False, 2)

            drawn = await run(PICTURE + "display(Picture())\nPicture()")
            pictures = [block for block in drawn.content if isinstance(block, ImageContent)]
            assert [picture.mime_type for picture in pictures] == ["image/png"] * 2
            assert [shown["picture"] for shown in drawn.structured_content["displays"]] == [1, 2]

            over = await run("1", timeout=21)
            assert over.is_error
            assert "the ceiling of this server is 20 seconds" in text_of(over)

    anyio.run(talk)


def test_progress_comes_while_it_runs(place: Path) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async def talk() -> None:
        async with Client(served(place), mode="legacy") as client:  # with the handshake that most clients still use
            code = "import time\ntime.sleep(1.2)"
            await client.call_tool("run_python", {"code": code, "timeout": 20}, progress_callback=heard)

    anyio.run(talk)
    steps = [progress for progress, _, _ in told]
    assert steps == sorted(set(steps))
    running = [(progress, total) for progress, total, message in told if message and "of 20 s" in message]
    assert len(running) >= 2
    assert all(total is not None and 20 <= total < 40 and progress < total for progress, total in running)


def test_a_call_that_its_client_gives_up_has_no_box_soon(place: Path, outside: Outside) -> None:
    own = Installation(place, outside)

    async def talk() -> None:
        async with Client(served(place)) as client:
            with anyio.move_on_after(60) as waiting:

                async def until_it_runs(_progress: float, _total: float | None, message: str | None) -> None:
                    if message and "of 25 s" in message:
                        waiting.cancel()

                code = {"code": "import time\ntime.sleep(20)", "timeout": 25}
                await client.call_tool("run_python", code, progress_callback=until_it_runs)
            assert waiting.cancelled_caught
            for box in own.boxes():
                await anyio.to_thread.run_sync(outside.wait_gone, box, 3)
            assert not (await client.call_tool("run_python", {"code": "1", "timeout": 20})).is_error

    anyio.run(talk)
