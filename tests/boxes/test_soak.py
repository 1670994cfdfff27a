"""A thousand runs of four threads: `make soak`. What two hundred in a row show, for longer and in a crowd."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pybox_kernel.sessions.session import Session
from tests.boxes.conftest import Installation
from tests.conftest import Outside

pytestmark = [pytest.mark.engine, pytest.mark.soak, pytest.mark.timeout(1800)]

RUNS = 1000
THREADS = 4


def held() -> dict[str, int]:
    """Descriptors, threads, and resident memory in MB."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    return {
        "descriptors": descriptors,
        "threads": int(status["Threads"]),
        "MB": int(status["VmRSS"].split()[0]) // 1024,
    }


@pytest.fixture
def opened(own: Installation, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setenv("PYBOX_HOME", str(own.home))
    with Session.open() as session:
        yield session


@pytest.mark.parametrize("way", ["", "container"])
def test_a_thousand_runs_leave_nothing_behind(
    way: str, own: Installation, opened: Session, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBOX_WITNESS", way)

    def one(number: int) -> str | None:
        result = opened.run(f"print({number})", deadline_seconds=10)
        assert result.stdout == f"{number}\n", result.receipt.problem
        assert result.receipt.ok
        assert result.receipt.observed.box.removed is True
        return result.receipt.observed.box.id

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(one, range(50)))
        before = held()
        boxes = list(threads.map(one, range(RUNS)))
        after = held()
    assert len(set(boxes)) == RUNS
    assert after["descriptors"] <= before["descriptors"] + THREADS
    assert after["threads"] <= before["threads"]
    assert after["MB"] <= before["MB"] + 20
    assert len(own.boxes()) == len(own.entries()) == (1 if way else 0)
    standing = {folder.name for folder in Path("/sys/fs/cgroup").glob("*/docker/*")}
    assert not standing & set(boxes)
