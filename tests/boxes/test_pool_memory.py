"""What waiting boxes take is measured: an image that imports much has fewer of them, whatever was thought before."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybox_kernel.boxes import pool
from pybox_kernel.boxes.journal import Journal
from pybox_kernel.boxes.waiting_places import Bounds, Places
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.images.steps import OFFER
from pybox_kernel.images.store import ImageStore, RecordedImage
from pybox_kernel.policy import MIB, policy_for
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.seal.spec import PYTHON
from pybox_kernel.sessions.session import Session
from tests.boxes.conftest import Installation
from tests.boxes.in_advance import run, until, waited
from tests.conftest import Outside

pytestmark = pytest.mark.engine

NAME = "heavy"
TAKES = 120
"""MiB, for what a box of the image imports: it is thought to take 90 in all."""

OFFERS = f"""
import os, site
folder = site.getsitepackages()[0]
os.makedirs(folder, exist_ok=True)
os.makedirs("{OFFER}")
open(folder + "/heavy.py", "w").write("held = b'x' * ({TAKES} << 20)")
open("{OFFER}/preload", "w").write("heavy")
"""


@pytest.fixture(scope="module")
def heavy(engine: DockerEngine, box_image: RecordedImage, outside: Outside) -> Iterator[RecordedImage]:
    """The stdlib image with a module in it that every box imports before it is ready."""
    command = json.dumps([PYTHON, "-I", "-c", OFFERS])
    reference = f"pybox-test-heavy:{time.monotonic_ns()}"
    dockerfile = io.BytesIO(f"FROM {box_image.id}\nRUN {command}\n".encode())
    said = list(
        outside.api.build(fileobj=dockerfile, tag=reference, rm=True, forcerm=True, decode=True, network_mode="none")
    )
    assert "error" not in said[-1], said
    yield box_image.model_copy(update={"name": NAME, "id": engine.image(reference).id, "reference": reference})
    engine.remove_image(reference)


@pytest.fixture(autouse=True)
def bounds(heavy: RecordedImage, own: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user has them who sets nothing."""
    monkeypatch.delenv("PYBOX_POOL")
    monkeypatch.setattr(pool, "TICK_SECONDS", 0.05)
    ImageStore(own.home).record(heavy)


def heavy_cell(session: Session) -> Receipt:
    return run(session, policy=policy_for(NAME), deadline_seconds=10)


def held(own: Installation) -> Bounds:
    return Places(own.home, Bounds(0, 0)).held()


def taken(outside: Outside, box: str) -> float:
    """What the Linux kernel counts, in MiB."""
    for folder in map(Path, outside.cgroups(box)):
        for name in ("memory.usage_in_bytes", "memory.current"):
            if (folder / name).exists():
                return int((folder / name).read_text()) / MIB
    raise AssertionError("its memory is not counted")


def test_a_box_that_waits_counts_what_it_takes_and_is_one_of_no_more_than_there_is_room_for(
    own: Installation, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBOX_POOL_MB", "300")
    with Session(Journal(own.home), in_advance=True) as session:
        for _ in range(2):  # in a row: so many are wanted
            heavy_cell(session)
        waited(session)
        until(lambda: held(own).mib > TAKES)
        time.sleep(0.5)
        assert held(own).boxes == session.waiting() == 1, "a second would not leave a quarter to other sessions"
        (box,) = own.boxes()
        assert TAKES < taken(outside, box) <= held(own).mib < TAKES + 30
        assert heavy_cell(session).observed.box.waited is not None


def test_a_box_that_takes_more_than_there_is_room_for_is_given_back_and_no_other_is_made(
    own: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBOX_POOL_MB", str(TAKES))
    with Session(Journal(own.home), in_advance=True) as session:
        session.expect(NAME)
        until(lambda: own.boxes() != [])
        until(lambda: own.boxes() == [] and held(own).boxes == 0)
        time.sleep(0.3)
        assert own.boxes() == []
        assert heavy_cell(session).observed.box.waited is None
        session.expect("stdlib")
        waited(session)


def test_where_there_is_room_for_one_kind_it_is_that_of_the_last_cell(
    own: Installation, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBOX_POOL_MB", str(TAKES + 20))
    with Session(Journal(own.home), in_advance=True) as session:
        session.expect("stdlib")
        waited(session)
        heavy_cell(session)
        until(lambda: held(own).mib > TAKES and len(own.boxes()) == 1)
        assert run(session).observed.box.waited is None
        until(lambda: 0 < held(own).mib < TAKES and len(own.boxes()) == 1)
        assert run(session).observed.box.waited is not None
