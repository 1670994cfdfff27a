"""What all tests share: a state folder of their own, the real engine, the real box image, and looks from outside."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docker
import pytest
from hypothesis import HealthCheck, settings

from pybox_kernel.boxes.journal import home_path
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.engine_choice import DEFAULT_ADDRESS
from pybox_kernel.errors import PyBoxError
from pybox_kernel.images import build as image_build
from pybox_kernel.images import plan as images
from pybox_kernel.images.store import ImageStore, RecordedImage, require
from pybox_kernel.sessions.session import Session
from tests.ports import OwnPorts

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

# In a fresh checkout the first text drawn waits for a table of all characters to be made, a second and more: that says
# nothing of the code under test. A failure prints what makes it happen again.
settings.register_profile("pybox", suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("pybox")

OwnPorts.instance()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Each file is run by one process, in its order; those of the browser all by one, with one Lab and one Chromium,
    and those of the private machine all by one, with one machine."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            together = [folder for folder in ("tests/browser", "tests/machines") if file.startswith(folder + "/")]
            return together[0] if together else file

    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The private machine's first: they are the longest of what one process does alone, and not to be the last."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/machines/"))


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state folder for this test run alone."""
    folder = tmp_path_factory.mktemp("pybox-home")
    folder.chmod(0o700)
    own = home_path()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYBOX_HOME", str(folder))
        patch.setenv("PYBOX_OWN_HOME", str(own))
        # No boxes in advance but for who asks for them: tests count boxes.
        patch.setenv("PYBOX_POOL", "0")
        yield folder


@pytest.fixture(scope="session")
def engine() -> Iterator[DockerEngine]:
    """The real engine. Where there is none, every test that needs it fails."""
    found = DockerEngine()
    yield found
    found.close()


@pytest.fixture(scope="session")
def box_image(engine: DockerEngine, home: Path) -> Iterator[RecordedImage]:
    """The stdlib box image: the one that set-up made, if it is of this version; else one made now, for this run."""
    store = ImageStore(home)
    try:
        recorded = require(engine, ImageStore(Path(os.environ["PYBOX_OWN_HOME"])))
    except PyBoxError:
        recorded = image_build.carry_out(engine, store, images.plan(engine, store, base="debian"), print)
        yield recorded
        engine.remove_image(recorded.reference)
        engine.remove_image(recorded.base_image.reference)
    else:
        store.record(recorded)
        yield recorded


@pytest.fixture(scope="session")
def data_image(engine: DockerEngine, home: Path, box_image: RecordedImage) -> Iterator[RecordedImage]:
    """The ``data`` box image, as ``box_image`` is the stdlib one."""
    store = ImageStore(home)
    try:
        recorded = require(engine, ImageStore(Path(os.environ["PYBOX_OWN_HOME"])), "data")
    except PyBoxError:
        recorded = image_build.carry_out(engine, store, images.plan(engine, store, name="data"), print)
        yield recorded
        engine.remove_image(recorded.reference)
    else:
        store.record(recorded)
        yield recorded


@pytest.fixture(scope="session")
def session(box_image: RecordedImage) -> Iterator[Session]:
    with Session.open() as opened:
        yield opened


class Outside:
    """Looks at the engine and the kernel from outside PyBox, by ways of its own."""

    def __init__(self) -> None:
        self.api = docker.APIClient(base_url=DEFAULT_ADDRESS, version="1.41")

    def boxes(self, **labels: str) -> list[str]:
        """Full ids of all containers that are named as boxes are and carry ``org.pybox.NAME=VALUE`` for each label."""
        wanted = [f"org.pybox.{key}={value}" for key, value in labels.items()]
        found = self.api.containers(all=True, filters={"name": "^/pybox-[0-9a-f]{32}$", "label": wanted})
        return [line["Id"] for line in found]

    def cgroups(self, container_id: str) -> list[str]:
        """Every cgroup folder on this computer that is named after the container."""
        command = ["find", "/sys/fs/cgroup", "-maxdepth", "4", "-type", "d", "-name", f"*{container_id}*"]
        for _ in range(50):
            out = subprocess.run(command, capture_output=True, text=True, check=False)
            if out.returncode == 0:
                return out.stdout.split()
            # A folder that goes away under find's feet is no finding: it looks again.
        raise AssertionError(out.stderr)

    def wait_gone(self, container_id: str, seconds: float) -> float:
        """Waits until neither the engine nor the kernel knows it; how long that took. Fails after ``seconds``."""
        began = time.monotonic()
        while True:
            known = self.api.containers(all=True, filters={"id": container_id})
            if not known and not self.cgroups(container_id):
                return time.monotonic() - began
            assert time.monotonic() - began < seconds, f"{container_id} is still there after {seconds} s"
            time.sleep(0.02)

    def wait_running(self, seconds: float = 10, **labels: str) -> str:
        """Waits for one running box with these labels; its full id."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            wanted = [f"org.pybox.{key}={value}" for key, value in labels.items()]
            filters = {
                "name": "^/pybox-[0-9a-f]{32}$",
                "label": [*wanted, "org.pybox.expires"],
                "status": "running",
            }
            found = self.api.containers(filters=filters)
            if found:
                return str(found[0]["Id"])
            time.sleep(0.01)
        raise AssertionError(f"no running box within {seconds} s")


@pytest.fixture(scope="session")
def outside() -> Iterator[Outside]:
    looks = Outside()
    yield looks
    looks.api.close()
