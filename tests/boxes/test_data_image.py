"""The data image, made for real, and programs in boxes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pybox_kernel.boxes.journal import home_path
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.images import plan as images
from pybox_kernel.images.offers import built_in_offer
from pybox_kernel.images.steps import OFFER
from pybox_kernel.images.store import ImageStore, RecordedImage
from pybox_kernel.policy import DATA, MIB, policy_for
from pybox_kernel.sessions.session import RunResult, Session
from tests.cases import case, snippet

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("data_image")]


def ran(session: Session, source: str, **options: Any) -> RunResult:
    """A run in a data box that ended well and sealed."""
    result = session.run(source, policy=policy_for("data"), **options)
    assert result.receipt.ok, (result.stdout, result.stderr, result.error, result.receipt.problem)
    return result


def answer(session: Session, source: str, **options: Any) -> Any:
    return json.loads(ran(session, source, **options).stdout)


def test_the_libraries_are_imported_before_the_time_limit_starts(session: Session) -> None:
    source = """
import json, sys, time
had = [name in sys.modules for name in ("numpy", "pandas", "matplotlib.pyplot")]
began = time.process_time()
import numpy as np, pandas as pd, matplotlib.pyplot as plt
print(json.dumps([had, time.process_time() - began]))
"""
    result = ran(session, source, deadline_seconds=0.5)
    had, seconds = json.loads(result.stdout)
    assert had == [True] * 3
    assert seconds < 0.05
    assert result.stderr == ""
    assert result.receipt.asked.policy == DATA


def test_the_versions_are_the_locked_ones(session: Session) -> None:
    offer = built_in_offer("data")
    assert offer is not None
    source = """
import importlib.metadata, json
print(json.dumps({found.name.lower(): found.version for found in importlib.metadata.distributions()}))
"""
    assert answer(session, source) == {pin.name: pin.version for pin in offer.pins}


def test_data_is_read_computed_and_drawn(session: Session) -> None:
    source = """
import json, os, pathlib
import matplotlib, matplotlib.pyplot as plt, numpy as np, pandas as pd
pathlib.Path("sales.csv").write_text("month,eur\\n2026-01-01,10\\n2026-02-01,32\\n")
frame = pd.read_csv("sales.csv", parse_dates=["month"])
axes = frame.plot(x="month", y="eur", title="größte")
plt.savefig("sales.png")
head = pathlib.Path("sales.png").read_bytes()[:8].hex()
solved = np.linalg.solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 4.0])).tolist()
zone = str(frame.month.dt.tz_localize("Europe/Berlin").dt.tz)
print(json.dumps([int(frame.eur.sum()), head, solved, zone, matplotlib.get_backend(), sorted(os.listdir())]))
"""
    result = ran(session, source, deadline_seconds=10)
    assert json.loads(result.stdout) == [
        42, "89504e470d0a1a0a", [1.0, 1.0], "Europe/Berlin", "agg", ["sales.csv", "sales.png"]
    ]  # fmt: skip
    assert result.stderr == ""


def test_the_list_of_fonts_is_built_in_and_none_is_made(session: Session) -> None:
    source = """
import json, os, time
began = time.process_time()
import matplotlib.font_manager as fonts
folder = os.environ["MPLCONFIGDIR"]
print(json.dumps([
    len(fonts.fontManager.ttflist) > 10, time.process_time() - began < 0.5,
    [os.readlink(os.path.join(folder, name)) for name in os.listdir(folder)],
]))
"""
    enough, quick, [link] = answer(session, source)
    assert enough
    assert quick
    assert link.startswith(f"{OFFER}/matplotlib/fontlist-")


@case("mem-openblas")
@pytest.mark.parametrize("tasks", [DATA.tasks, 32])
def test_numerical_libraries_start_one_thread(session: Session, tasks: int) -> None:
    policy = DATA.model_copy(update={"tasks": tasks})
    source = f"""{snippet("mem-openblas")}
a = numpy.ones((400, 400))
(a @ a).sum()
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("Threads:")])
"""
    result = session.run(source, policy=policy)
    assert result.receipt.ok
    assert result.stdout == "3.0\n['1']\n"
    assert result.receipt.observed.meters.task_limit_hits == 0
    assert (result.receipt.observed.meters.tasks_peak or 0) < 32


def test_programs_that_the_program_starts_have_the_libraries_too(session: Session) -> None:
    source = """
import concurrent.futures, subprocess, sys
print(subprocess.run([sys.executable, "-c", "import pandas; print(pandas.Series([1, 2]).sum())"],
                     capture_output=True, text=True).stdout.strip())
import numpy
with concurrent.futures.ProcessPoolExecutor(2) as pool:
    print(sum(pool.map(numpy.sqrt, [4.0, 9.0])))
"""
    assert ran(session, source, deadline_seconds=20).stdout == "3\n5.0\n"


def test_a_box_of_512_mb_holds_arrays_that_a_stdlib_box_could_not(session: Session) -> None:
    result = ran(session, "import numpy; print(numpy.ones(300 * 1024 * 128).sum())", deadline_seconds=10)
    assert result.stdout == f"{300 * 1024 * 128:.1f}\n"
    assert (result.receipt.observed.meters.memory_peak_bytes or 0) > 300 * MIB


def test_every_file_of_the_packages_is_compiled_and_read_only(session: Session) -> None:
    source = f"""
import importlib.util, json, os
loose, sources, writable = [], 0, []
for root, folders, names in os.walk("{OFFER}"):
    for name in folders + names:
        path = os.path.join(root, name)
        if os.lstat(path).st_uid or os.lstat(path).st_mode & 0o022:
            writable.append(path)
        if name.endswith(".py"):
            sources += 1
            if not os.path.exists(importlib.util.cache_from_source(path)):
                loose.append(path)
print(json.dumps([sources > 1000, loose, writable]))
"""
    assert answer(session, source, deadline_seconds=10) == [True, [], []]


def test_the_image_is_no_larger_than_it_has_to_be(data_image: RecordedImage, box_image: RecordedImage) -> None:
    """Its compiled libraries have 108 MB alone."""
    assert data_image.size_bytes - box_image.size_bytes < 200_000_000


def test_it_stands_on_the_base_of_the_stdlib_image_and_is_ready(
    engine: DockerEngine, data_image: RecordedImage, box_image: RecordedImage
) -> None:
    assert data_image.base_image == box_image.base_image
    plan = images.plan(engine, ImageStore(home_path()), name="data")
    assert plan.ready == data_image
    assert plan.lines[0].endswith("There is nothing to do.")
