"""The same program gives the same receipt on another computer with the same images: another state folder, another
engine. What is not the same in each run is named here, and nothing else may differ."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pybox_kernel.boxes.journal import Journal
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.files.box_files import InputFile
from pybox_kernel.images.store import ImageStore, RecordedImage
from pybox_kernel.policy import policy_for
from pybox_kernel.sessions.session import Session, with_output
from tests.boxes.private_engine import PrivateEngine

pytestmark = pytest.mark.engine

IDS = (r"run\.id", r"asked\.uid", r"observed\.box\.id", r"observed\.engine_used\.(address|chosen)")
TIMES = (
    r"run\.started_at",
    r"observed\.steps\.\d+\.(offset|duration)_ms",
    r"observed\.meters\.(cpu_seconds|cpu_throttled_periods|ran_seconds)",
)
PEAKS = (r"observed\.meters\.(memory_peak_bytes|tasks_peak)",)
"""The kernel's counts of pages and of the engine's own threads at start-up: on one computer too they vary by a little
from run to run."""
VARYING = re.compile("|".join((*IDS, *TIMES, *PEAKS)))

PROGRAMS = {
    "all kinds of output": (
        "stdlib",
        "import sys\nprint('x')\nprint('y', file=sys.stderr)\ndisplay({'a': 1}, raw=False)\n"
        "open('made.txt', 'w').write(open('in/a.txt').read())\nopen('.hidden', 'w').close()\n"
        "class Drawing:\n    def _repr_svg_(self): return '<svg/>'\nDrawing()",
    ),
    "an error at a wall": ("stdlib", "def load():\n    import requests\nprint(1)\nload()"),
    "its time limit": ("stdlib", "print('on and on', flush=True)\nwhile True: pass"),
    "a child killed for memory": (
        "stdlib",
        "import subprocess, sys\ngrow = [sys.executable, '-c', 'x = b\"1\" * 400_000_000']\n"
        "print(subprocess.run(grow).returncode)",
    ),
    "no program": ("stdlib", "for"),
    "figures, frames and files": (
        "data",
        "import pandas as pd, matplotlib.pyplot as plt\nframe = pd.read_csv('in/a.csv')\nframe.plot()\n"
        "plt.savefig('figure.png')\nframe.describe().to_csv('out.csv')\nframe",
    ),
}
INPUTS = [InputFile("in/a.txt", b"a letter"), InputFile("in/a.csv", b"a,b\n1,2\n3,4\n")]


def facts(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """Every single value of a receipt, with the way to it."""
    if isinstance(value, dict | list):
        yield path, sorted(value) if isinstance(value, dict) else len(value)
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from facts(inner, f"{path}.{key}".lstrip("."))
    else:
        yield path, value


Run = Callable[[Session, str], dict[str, object]]


@pytest.fixture(scope="module")
def computers(
    private_engine: PrivateEngine,
    box_image: RecordedImage,
    data_image: RecordedImage,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Session, Session]]:
    """Sessions of two installations that share the images, and nothing else."""
    private_engine.load(data_image.id)
    homes = [tmp_path_factory.mktemp(name) for name in ("one", "other")]
    for home in homes:
        home.chmod(0o700)
        for image in (box_image, data_image):
            ImageStore(home).record(image)
    one, other = homes
    with (
        Session(Journal(one)) as here,
        Session(Journal(other), DockerEngine(private_engine.address)) as there,
    ):
        yield here, there


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_program_gives_the_same_receipt_on_another_computer(
    computers: tuple[Session, Session], name: str
) -> None:
    image, source = PROGRAMS[name]
    policy, limit = policy_for(image), 1 if "limit" in name else 10
    found = []
    for session in computers:
        result = session.run(source, deadline_seconds=limit, policy=policy, inputs=INPUTS, output=True)
        found.append(dict(facts(json.loads(with_output(result).to_json()))))
    here, there = found
    assert here["observed.seal.before_start"] is True
    differing = {path: (here.get(path), there.get(path)) for path in here.keys() | there.keys()
                 if here.get(path) != there.get(path)}  # fmt: skip
    assert [path for path in differing if not VARYING.fullmatch(path)] == [], differing
    assert {"run.id", "observed.box.id"} <= differing.keys()
