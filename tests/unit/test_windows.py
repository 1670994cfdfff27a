"""On Windows, where nothing of it can run, PyBox says where it can."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["pybox_kernel", "pybox_kernel.cli", "pybox_kernel.kernel"])
def test_windows_is_pointed_to_wsl(module: str) -> None:
    program = f"import sys; sys.platform = 'win32'; import {module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "wsl --install" in done.stderr.splitlines()[-1]
