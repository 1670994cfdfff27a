"""What the engine gets to build from."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from pybox_kernel.errors import SetupError
from pybox_kernel.images import context as image_context
from pybox_kernel.images.context import write_context
from pybox_kernel.images.recipes import ProgramFile

PROGRAMS = (ProgramFile("runner.py", b"run"), ProgramFile("warden.py", b"watch"))


def context(stage: Path | None, preload: tuple[str, ...] = ()) -> bytes:
    file = io.BytesIO()
    write_context(file, "FROM x", PROGRAMS, preload, stage)
    return file.getvalue()


def members(data: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {member.name: member for member in tar}


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    place = tmp_path / "stage"
    names = """
        numpy/__init__.py numpy/core.so numpy/core.pyi numpy/lib.a numpy/tests/test_a.py numpy/core/tests/test_b.py
        other/__init__.py other/__init__.pyi other/tests/__init__.py other/lib.a other/bin/tool other/run.pth
        other-1.0.dist-info/METADATA bin/other evil.pth sitecustomize.py __pycache__/x.pyc usercustomize/__init__.py
        other/sitecustomize.py other/__pycache__/y.pyc
    """
    for name in names.split():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return place


def test_packages_are_whole_but_for_what_is_known_not_to_be_needed(stage: Path) -> None:
    kept = """
        numpy/__init__.py numpy/core.so other/__init__.py other/__init__.pyi other/tests/__init__.py other/lib.a
        other/bin/tool other/run.pth other-1.0.dist-info/METADATA other/sitecustomize.py
    """
    names = [name for name in members(context(stage)) if name.startswith("offer/packages/")]
    assert sorted(names) == sorted(f"offer/packages/{name}" for name in kept.split())


def test_the_same_parts_are_the_same_bytes(stage: Path) -> None:
    first = context(stage, ("numpy",))
    for path in stage.rglob("*"):
        os.utime(path, (1, 1))
        if path.is_file():
            path.chmod(0o777)
    assert context(stage, ("numpy",)) == first
    assert {member.mode for member in members(first).values()} == {0o444}
    assert all(member.isreg() and member.uid == 0 for member in members(first).values())


def test_an_image_without_packages_has_instructions_and_programs_only() -> None:
    assert list(members(context(None))) == ["Dockerfile", "pybox/runner.py", "pybox/warden.py"]


def test_what_is_to_be_imported_stands_a_line_each(stage: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(context(stage, ("numpy", "a.b")))) as tar:
        assert tar.extractfile("offer/preload").read() == b"numpy\na.b\n"  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["link", "link to a folder", "pipe"])
def test_what_is_neither_file_nor_folder_is_refused(stage: Path, kind: str) -> None:
    path = stage / "other" / "odd"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/etc/passwd" if kind == "link" else "/etc")
    with pytest.raises(SetupError, match="neither file nor folder: other/odd"):
        context(stage)


@pytest.mark.parametrize(("bound", "value"), [("MOST_FILES", 5), ("MOST_BYTES", 50)])
def test_packages_are_bounded(stage: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int) -> None:
    monkeypatch.setattr(image_context, bound, value)
    with pytest.raises(SetupError, match="The packages have over"):
        context(stage)
