"""Making the machine's disk: what does not need one to be made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = """\
import sys
from pathlib import Path
from pybox_kernel.machines import disk
disk.run(["sh", "-c", 'echo $$ > "$TMPDIR/draft" && mv "$TMPDIR/draft" "$TMPDIR/pid" && exec sleep 60'],
         Path(sys.argv[1]), print)
"""


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_what_puts_the_disk_together_does_not_outlive_a_pybox_that_is_killed(tmp_path: Path) -> None:
    maker = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)])
    limit = time.monotonic() + 60
    while not (tmp_path / "pid").exists():
        assert maker.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.02)
    pid = int((tmp_path / "pid").read_text())
    assert not ended(pid)
    maker.kill()
    maker.wait()
    try:
        while not ended(pid):
            assert time.monotonic() < limit
            time.sleep(0.02)
    finally:
        if not ended(pid):
            os.kill(pid, signal.SIGKILL)
