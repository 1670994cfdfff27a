"""The kernelspecs: in the wheel, and put where another Jupyter finds them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager

import pybox_kernel
from pybox_kernel.errors import OptionError, SetupError
from pybox_kernel.install import DISPLAY_NAMES, KERNEL_NAME, install

CHECKOUT = Path(pybox_kernel.__file__).parent.parent
DATA_NAME = "pybox-sealed-data"
FILES = ["kernel.json", "logo-32x32.png", "logo-64x64.png", "logo-svg.svg"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("name", "options"), [(KERNEL_NAME, []), (DATA_NAME, ["--PyBoxKernel.image=data"])])
def test_each_kernel_is_found_by_a_jupyter_of_another_environment_and_starts_with_this_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, options: list[str]
) -> None:
    folders = install(prefix=str(tmp_path))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    found = KernelSpecManager().get_kernel_spec(name)
    folder = tmp_path / "share" / "jupyter" / "kernels" / name
    assert folders[list(DISPLAY_NAMES).index(name)] == Path(found.resource_dir) == folder
    assert found.argv == [sys.executable, "-P", "-m", "pybox_kernel", "-f", "{connection_file}", *options]
    assert (found.display_name, found.language) == (DISPLAY_NAMES[name], "python")
    assert (found.interrupt_mode, found.metadata) == ("message", {"debugger": False})
    assert names(folder) == FILES


def test_installing_again_replaces_what_was_there(tmp_path: Path) -> None:
    folder, other = install(prefix=str(tmp_path))
    first = {name: (folder / name).read_bytes() for name in FILES}
    (folder / "kernel.json").write_text("{}")
    (folder / "old").touch()
    assert install(prefix=str(tmp_path)) == (folder, other)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first


def test_the_users_folder_and_this_environment_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "user"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    for folder, name in zip(install(user=True), DISPLAY_NAMES, strict=True):
        assert folder == tmp_path / "user" / "kernels" / name
    for folder, name in zip(install(sys_prefix=True), DISPLAY_NAMES, strict=True):
        assert folder == tmp_path / "environment" / "share" / "jupyter" / "kernels" / name


def test_a_relative_prefix_is_one_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert all(folder.is_relative_to(tmp_path / "here") for folder in install(prefix="here"))


@pytest.mark.parametrize("place", [{}, {"user": True, "sys_prefix": True}, {"user": True, "prefix": "/x"}])
def test_one_place_is_to_be_named(place: dict[str, object]) -> None:
    with pytest.raises(OptionError) as raised:
        install(**place)  # type: ignore[arg-type]
    assert "--sys-prefix" in raised.value.advice


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "share").touch()
    with pytest.raises(SetupError, match=str(tmp_path)):
        install(prefix=str(tmp_path))


@pytest.mark.parametrize("name", DISPLAY_NAMES)
def test_the_drawings_are_of_the_size_in_their_name(name: str) -> None:
    for size in (32, 64):
        data = (CHECKOUT / "kernelspec" / name / f"logo-{size}x{size}.png").read_bytes()
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        assert (int.from_bytes(data[16:20]), int.from_bytes(data[20:24])) == (size, size)
    drawing = (CHECKOUT / "kernelspec" / name / "logo-svg.svg").read_text()
    assert drawing.startswith("<svg ")
    assert f"<title>{DISPLAY_NAMES[name]}</title>" in drawing


def test_the_wheel_holds_the_kernelspec_and_what_it_installs_is_found(tmp_path: Path) -> None:
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    built = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    wheel = tmp_path / built.stdout.split()[-1]
    place = tmp_path / "installed"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            "--ignore-installed",
            "--prefix",
            place,
            wheel,
        ],
        check=True,
    )
    kernels = place / "share" / "jupyter" / "kernels"
    assert sorted(names(kernels)) == sorted(DISPLAY_NAMES)
    for name in DISPLAY_NAMES:
        assert names(kernels / name) == FILES
        assert json.loads((kernels / name / "kernel.json").read_text())["argv"][0] == "python"
    [package] = place.glob("lib*/python*/site-packages")
    code = "from pybox_kernel.install import install; import sys; print(*install(prefix=sys.argv[1]), sep='\\n')"
    code += "\nfrom pybox_kernel.images.offers import built_in_offer; assert built_in_offer('data')"
    installed = subprocess.run(
        [sys.executable, "-P", "-c", code, str(tmp_path / "other")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [names(Path(folder)) for folder in installed.stdout.splitlines()] == [FILES, FILES]
    with zipfile.ZipFile(wheel) as archive:
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist() if "kernels" in info.filename}
    assert all(stat.S_IMODE(mode) & 0o444 == 0o444 for mode in modes.values())
