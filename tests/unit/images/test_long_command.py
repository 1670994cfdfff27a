"""Long commands, with real processes: each line as it comes, and no process left however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pybox_kernel.images import long_command
from pybox_kernel.images.long_command import TookTooLong, follow

CHILD = """
import os, subprocess, sys, time
child = subprocess.Popen(["sleep", "60"])
print(os.getpid(), child.pid, flush=True)
"""


def run(program: str, tmp_path: Path, seconds: float = 20.0, look: object = None) -> tuple[int, list[str]]:
    lines: list[str] = []
    status = follow([sys.executable, "-c", program], tmp_path / "log", os.environ, seconds, lines.append, look=look)
    return status, lines


def living(pids: str) -> list[str]:
    """Those that are there and no zombies, after a moment."""
    left = pids.split()
    end = time.monotonic() + 5
    while left and time.monotonic() < end:
        left = [pid for pid in left if Path(f"/proc/{pid}/stat").exists() and ") Z " not in stat_of(pid)]
        time.sleep(0.02)
    return left


def stat_of(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ") Z "


def test_every_line_of_both_streams_is_told_and_the_status_is_given(tmp_path: Path) -> None:
    program = (
        "import sys\nprint('one', flush=True)\nprint('two', file=sys.stderr)\nsys.stdout.write('three')\nsys.exit(3)"
    )
    status, lines = run(program, tmp_path)
    assert (status, sorted("".join(lines).split())) == (3, ["one", "three", "two"])
    assert (tmp_path / "log").read_text() == "".join(lines)


def test_a_command_whose_time_is_over_is_ended_with_all_it_started(tmp_path: Path) -> None:
    with pytest.raises(TookTooLong):
        run(f"{CHILD}time.sleep(60)", tmp_path, seconds=0.5)
    pids = (tmp_path / "log").read_text()
    assert len(pids.split()) == 2
    assert living(pids) == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it goes on")
def test_it_does_not_outlive_a_pybox_that_is_killed(tmp_path: Path) -> None:
    program = f"""if True:
        import os, sys
        from pathlib import Path
        from pybox_kernel.images.long_command import follow
        follow([sys.executable, "-c", {CHILD + "time.sleep(60)"!r}], Path(sys.argv[1]), os.environ, 60,
               lambda line: print(line, flush=True))
    """
    line = [sys.executable, "-c", program, str(tmp_path / "log")]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as pybox:
        assert pybox.stdout is not None
        pid, child = pybox.stdout.readline().split()
        pybox.kill()
    assert living(pid) == []
    os.kill(int(child), signal.SIGKILL)


def test_one_that_does_not_end_when_it_is_asked_to_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_command, "GRACE_SECONDS", 0.2)
    with pytest.raises(TookTooLong):
        run(
            f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{CHILD}time.sleep(60)",
            tmp_path,
            seconds=0.5,
        )
    assert living((tmp_path / "log").read_text()) == []


def test_what_looking_after_it_raises_ends_it(tmp_path: Path) -> None:
    def look() -> None:
        if (tmp_path / "log").read_text().endswith("\n"):
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        run(f"{CHILD}time.sleep(60)", tmp_path, look=look)
    assert living((tmp_path / "log").read_text()) == []
