"""A user id without an account, as in many a container, has no home folder: PyBox runs all the same."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import NoReturn

import pytest

from pybox_kernel.boxes.journal import home_path
from pybox_kernel.doctor import of_kernelspec
from pybox_kernel.engine_choice import DEFAULT_ADDRESS, placed
from pybox_kernel.home_of_user import home_of_user, without_home
from pybox_kernel.machines.packages import may_unpack


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_account(number: int) -> NoReturn:
        raise KeyError(number)

    for name in ("HOME", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("getuid", "geteuid"):
        monkeypatch.setattr(os, name, lambda: 54321)
    monkeypatch.setattr(pwd, "getpwuid", no_account)


@pytest.mark.usefixtures("nobody")
def test_who_has_no_home_uses_the_folder_and_the_engine_that_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(RuntimeError):
        Path.home()
    assert home_of_user() == Path("/")
    monkeypatch.setenv("PYBOX_HOME", str(tmp_path))
    assert home_path() == tmp_path
    assert placed(DEFAULT_ADDRESS, "given").name == "container engine"
    assert without_home(DEFAULT_ADDRESS) == DEFAULT_ADDRESS
    assert not may_unpack()
    assert of_kernelspec("pybox-sealed").advice == "Set HOME to a folder of this user's."


@pytest.mark.parametrize(
    ("home", "address", "shown"),
    [
        ("/home/ann", "unix:///home/ann/vm/run/docker.sock", "unix://~/vm/run/docker.sock"),
        ("/home/ann", "unix:///home/anna/docker.sock", "unix:///home/anna/docker.sock"),
        ("/", DEFAULT_ADDRESS, DEFAULT_ADDRESS),
    ],
)
def test_a_receipt_has_no_name_of_a_home_folder(
    home: str, address: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", home)
    assert without_home(address) == shown
