"""What tests of whole lives share: an installation of one test's own, and other processes that use it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pybox_kernel.boxes.journal import installation_id
from pybox_kernel.images.store import ImageStore, RecordedImage
from tests.boxes.private_engine import PrivateEngine
from tests.conftest import Outside


class Installation:
    """A state folder, what the engine has of it, and processes of its own."""

    def __init__(self, home: Path, outside: Outside) -> None:
        self.home = home
        self.environment = {**os.environ, "PYBOX_HOME": str(home), "PYTHONFAULTHANDLER": "1"}
        self._outside = outside
        self._started: list[subprocess.Popen[str]] = []

    @property
    def id(self) -> str:
        return installation_id(self.home)

    def boxes(self) -> list[str]:
        """Full ids of all its containers, witnesses too."""
        return self._outside.boxes(installation=self.id)

    def entries(self) -> list[Path]:
        return sorted((self.home / "sessions").glob("*/*.json"))

    def sessions(self) -> list[Path]:
        return sorted((self.home / "sessions").iterdir())

    def python(self, program: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Another process, which runs ``program``; its standard streams are pipes."""
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        environment = {**self.environment, **options}
        command = [sys.executable, "-c", program, *arguments]
        self._started.append(subprocess.Popen(command, env=environment, text=True, **streams))
        return self._started[-1]

    def close(self) -> None:
        """Ends what a failed test has left running."""
        for process in self._started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def cleanup(self) -> dict[str, list[str]]:
        """What ``pybox-kernel cleanup`` found, in a process of its own."""
        command = [sys.executable, "-m", "pybox_kernel.cli", "cleanup", "--json"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert not done.stderr
        found: dict[str, list[str]] = json.loads(done.stdout)
        assert done.returncode == (125 if found["unconfirmed"] else 0)
        return found


@pytest.fixture
def own(tmp_path: Path, box_image: RecordedImage, outside: Outside) -> Iterator[Installation]:
    """An installation of this test's own. Its boxes are gone at the end of the test, and its sessions settled."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    ImageStore(home).record(box_image)
    found = Installation(home, outside)
    yield found
    found.close()
    left = found.boxes()
    for box in left:
        outside.api.remove_container(box, force=True)
    assert not left


@pytest.fixture(scope="session")
def private_engine(box_image: RecordedImage) -> Iterator[PrivateEngine]:
    """With the stdlib box image in it."""
    folder = Path(tempfile.mkdtemp(prefix="pybox-engine-"))  # a short path: sockets stand in it
    engine = PrivateEngine(folder)
    engine.start()
    try:
        engine.load(box_image.id)
        yield engine
    finally:
        engine.end()
        shutil.rmtree(folder)
