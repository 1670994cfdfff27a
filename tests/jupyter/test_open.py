"""``pybox-kernel open`` and the JupyterLab that it starts, as two processes."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser.notebook import written
from tests.browser.opened import ADDRESS

pytestmark = pytest.mark.engine

GONE_SECONDS = 30.0
"""A Lab that is asked to end waits for its kernels."""


def answers(host: str, port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex((host, port)) == 0


def test_where_the_command_is_killed_its_lab_ends_too(box_image: object, tmp_path: Path) -> None:
    written(tmp_path / "lesson.ipynb", ["print(1)"])
    command = [sys.executable, "-P", "-m", "pybox_kernel.cli", "open", "lesson.ipynb", "--no-browser"]
    opened = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert opened.stdout is not None
    try:
        found = next(found for line in opened.stdout if (found := ADDRESS.search(line)))
        place = urlsplit(found[1])
        assert place.hostname is not None
        assert place.port is not None
        end = time.monotonic() + GONE_SECONDS
        while not answers(place.hostname, place.port) and time.monotonic() < end:
            time.sleep(0.1)
        assert answers(place.hostname, place.port)
    finally:
        opened.kill()
    end = time.monotonic() + GONE_SECONDS
    while answers(place.hostname, place.port) and time.monotonic() < end:
        time.sleep(0.1)
    assert not answers(place.hostname, place.port)
    opened.communicate(timeout=GONE_SECONDS)
