"""An engine set to another container runtime than runc: it holds every rule, or nothing is run and it says why."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybox_kernel.boxes.journal import Journal
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.images.store import ImageStore, RecordedImage
from pybox_kernel.policy import MIB
from pybox_kernel.render.text import render_full
from pybox_kernel.sessions.session import Session
from tests.boxes.private_engine import PrivateEngine
from tests.cases import case, snippet

pytestmark = pytest.mark.engine


def program(name: str) -> str:
    path = shutil.which(name, path="/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin")
    assert path is not None, f"{name} is not installed: `make test` installs it"
    return path


@pytest.fixture
def set_to(private_engine: PrivateEngine) -> Iterator[PrivateEngine]:
    yield private_engine
    private_engine.use_runtime("runc", "")


@pytest.fixture
def session(set_to: PrivateEngine, tmp_path: Path, box_image: RecordedImage) -> Iterator[Session]:
    ImageStore(tmp_path).record(box_image)
    with Session(Journal(tmp_path), DockerEngine(set_to.address)) as opened:
        yield opened


KILLS = """
import os, signal
child = os.fork()
if child == 0:
    held = []
    while True: held.append(bytearray(1 << 20))
os.waitpid(child, 0)
print("alive")
"""


HYBRID = "cgroups in hybrid mode not supported"
"""What crun says where controllers are on both versions of cgroups; there it starts nothing."""


def test_crun_holds_every_rule_or_says_itself_why_it_starts_nothing(set_to: PrivateEngine, session: Session) -> None:
    set_to.use_runtime("crun", program("crun"))
    result = session.run(KILLS, deadline_seconds=10)
    receipt = result.receipt
    assert receipt.observed.seal.engine.checked > 90
    assert receipt.observed.seal.engine.differences == ()
    if any(line.split()[2] == "cgroup" for line in Path("/proc/self/mounts").read_text().splitlines()):
        assert receipt.problem is not None
        assert receipt.problem.code == "engine_refused"
        assert HYBRID in receipt.problem.message
        assert (receipt.observed.end.how, receipt.observed.box.removed) == ("not_started", True)
        return
    assert receipt.problem is None, receipt.problem
    assert result.stdout == "alive\n"
    assert receipt.observed.seal.before_start
    assert receipt.observed.meters.final
    assert receipt.observed.meters.oom_kills == 1
    assert receipt.observed.meters.memory_peak_bytes is not None
    assert receipt.observed.meters.memory_peak_bytes > 100 * MIB
    assert receipt.observed.box.removed is True
    assert receipt.observed.engine_used is not None
    assert receipt.observed.engine_used.runtime == "crun"
    assert receipt.observed.engine_used.runtime_version is None, "no engine tells it"
    late = session.run("while True: pass", deadline_seconds=0.5).receipt
    assert (late.observed.end.how, late.observed.box.removed) == ("deadline", True)


@case("eng-gvisor-pids", "eng-gvisor-oom", "eng-kata-oom")
@pytest.mark.parametrize(
    ("name", "source", "reason"),
    [
        ("runsc", "eng-gvisor-pids", "gVisor has a kernel of its own"),
        ("runsc", "eng-gvisor-oom", "gVisor has a kernel of its own"),
        ("kata-runtime", "", "does not pass on what its kernel counts"),
        ("sysbox-runc", "", "more than it is asked for"),
        ("somebodys", "", "somebodys"),
    ],
)
def test_another_runtime_is_refused_with_the_reason_before_a_byte_of_the_program_is_in_the_box(
    name: str, source: str, reason: str, set_to: PrivateEngine, session: Session
) -> None:
    """A program under that name is enough: which one it is shows in the engine's record, before the box is started."""
    set_to.use_runtime(name, program("runc"))
    receipt = session.run(snippet(source) if source else "print(1)").receipt
    assert receipt.observed.end.how == "not_started"
    assert receipt.observed.end.exit_code is None
    assert receipt.problem is not None
    assert receipt.problem.code == "not_sealed"
    [difference] = receipt.observed.seal.engine.differences
    assert difference.setting == "container runtime"
    assert reason in difference.found
    assert reason in " ".join(render_full(receipt).split())
    assert receipt.observed.engine_used is not None
    assert receipt.observed.engine_used.runtime == name
    assert receipt.observed.box.removed is True
    assert receipt.said.stdout.bytes == 0
