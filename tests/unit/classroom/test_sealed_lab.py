"""The Lab for strangers' notebooks: which kernels it knows, and what its configuration is made of."""

from __future__ import annotations

from pathlib import Path

import pytest
from jupyter_client.kernelspec import NoSuchKernel

from pybox_kernel.classroom.sealed_lab import (
    KERNELS,
    SealedKernels,
    configuration,
    environment,
    headers,
    kernels_in,
    state_folder,
)
from pybox_kernel.install import DISPLAY_NAMES, install, kernel_name, put_kernel_of


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SealedKernels:
    install(prefix=str(tmp_path))
    monkeypatch.setenv(KERNELS, str(tmp_path / "share" / "jupyter" / "kernels"))
    return SealedKernels()


def test_only_the_sealed_kernels_are_there(kernels: SealedKernels) -> None:
    assert set(kernels.find_kernel_specs()) == set(kernels.get_all_specs()) == set(DISPLAY_NAMES)


def test_an_image_of_ones_own_has_a_kernel_of_its_own_there(kernels: SealedKernels, tmp_path: Path) -> None:
    put_kernel_of("mine", kernels_in(tmp_path))
    spec = kernels.get_kernel_spec(kernel_name("mine"))
    assert (spec.display_name, spec.argv[-1]) == ("PyBox (sealed, mine)", "--PyBoxKernel.image=mine")
    assert kernels.get_kernel_spec(kernel_name("data")).argv[-1] == "--PyBoxKernel.image=data"


@pytest.mark.parametrize("name", ["python3", "PYTHON3", "PyBox-sealed", "../pybox-sealed", "", "ir"])
def test_no_other_kernel_can_be_had_by_its_name(kernels: SealedKernels, name: str) -> None:
    with pytest.raises(NoSuchKernel):
        kernels.get_kernel_spec(name)


def test_nothing_of_the_users_jupyter_is_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUPYTER_CONFIG_PATH", "JUPYTER_PATH", "JUPYTERLAB_SETTINGS_DIR", "PYTHONSTARTUP", "JUPYTER_TOKEN"):
        monkeypatch.setenv(name, "/somewhere")
    assert "/somewhere" not in environment(tmp_path / "lab" / "x").values()


def test_the_server_listens_here_alone_with_a_token_and_without_terminals(tmp_path: Path) -> None:
    settings = configuration(tmp_path, tmp_path, "", browser=False)
    server = settings["ServerApp"]
    assert server["ip"] == "127.0.0.1"
    assert server["terminals_enabled"] is False
    assert server["jpserver_extensions"] == {"jupyterlab": True}
    assert not any("token" in name or "password" in name for part in settings.values() for name in part)


def test_a_page_may_not_fetch_from_elsewhere_nor_run_what_stands_in_it() -> None:
    policy = dict(part.split(" ", 1) for part in headers()["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert "unsafe-inline" not in policy["script-src"]
    for name, value in policy.items():
        assert "http" not in value, name
        assert "*" not in value, name


def test_the_folder_of_a_lab_that_was_killed_is_removed_and_that_of_one_that_runs_is_not(tmp_path: Path) -> None:
    (tmp_path / "lab" / "killed").mkdir(parents=True)
    (tmp_path / "lab" / "killed" / "alive").touch()
    with state_folder(tmp_path) as (first, _), state_folder(tmp_path) as (second, _):
        assert {path for path in (tmp_path / "lab").iterdir() if path.is_dir()} == {first, second}
        assert first.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in (tmp_path / "lab").iterdir()] == ["lock"]
