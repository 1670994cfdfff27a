"""How the witness reads the kernel's files: each whole, or not at all; only the box's own process and cgroups."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from pybox_kernel.inside import witness
from pybox_kernel.inside.witness import LARGEST, cgroup_folders, look, meters, read, standing, version_of

ID = "ab" * 32
STAT = "77 (a b) c) S 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 {began} 16809984 2875\n"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The files of a computer with one box, its PID 1 being 77: ``proc`` and ``cgroup`` (v2)."""
    files = {
        "proc/77/stat": STAT.format(began=4711),
        "proc/77/cgroup": f"0::/docker/{ID}\n",
        "proc/77/status": "Name:\tx\n",
        "proc/77/net/dev": "lo\n",
        "proc/sys/kernel/random/boot_id": "boot\n",
        f"cgroup/docker/{ID}/memory.max": "134217728\n",
        f"cgroup/docker/{ID}/memory.peak": "5\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def looked(machine: Path, container_id: str = ID) -> dict[str, object] | None:
    return look(77, container_id, str(machine / "proc"), str(machine / "cgroup"))


def test_a_file_that_comes_in_pieces_is_read_to_its_end(tmp_path: Path) -> None:
    """As a kernel file does: one read of it stops after a page."""
    path = tmp_path / "pieces"
    os.mkfifo(path)
    pieces = [b"x" * 4000 + b"\n"] * 5 + [b"the last line\n"]

    def write() -> None:
        with path.open("wb", buffering=0) as file:
            for piece in pieces:
                file.write(piece)

    writer = threading.Thread(target=write)
    writer.start()
    text = read(str(path))
    writer.join()
    assert text == b"".join(pieces).decode()


def test_this_computers_own_mounts_are_read_to_their_end() -> None:
    text = read("/proc/self/mountinfo")
    assert text is not None
    assert text == Path("/proc/self/mountinfo").read_text()


def test_a_file_beyond_all_bounds_is_not_read_at_all(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"x" * LARGEST)
    assert read(str(path)) == "x" * LARGEST
    path.write_bytes(b"x" * (LARGEST + 1))
    assert read(str(path)) is None


def test_what_cannot_be_read_is_none(tmp_path: Path) -> None:
    assert read(str(tmp_path / "missing")) is None
    assert read(str(tmp_path)) is None


def test_bytes_that_are_no_text_are_shown_as_such(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"/mnt/\xff\n")
    assert read(str(tmp_path / "bytes")) == "/mnt/\ufffd\n"


def test_a_box_is_read(machine: Path) -> None:
    found = looked(machine)
    assert found is not None
    assert found["folders"] == {"": f"/docker/{ID}"}
    assert found["boot_id"] == "boot\n"
    texts = found["texts"]
    assert isinstance(texts, dict)
    assert texts["status"] == "Name:\tx\n"
    assert texts["cgroup:memory.max"] == "134217728\n"
    assert texts["net/route"] is None


def test_a_process_of_another_container_is_not_read(machine: Path) -> None:
    assert looked(machine, "cd" * 32) is None


def test_a_process_that_is_gone_is_not_read(machine: Path) -> None:
    (machine / "proc/77/stat").unlink()
    assert looked(machine) is None


def test_another_process_under_the_same_number_is_not_read(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It took the number while the files were read: its start time differs."""

    def reading(path: str) -> str | None:
        text = read(path)
        if path.endswith("/status"):
            (machine / "proc/77/stat").write_text(STAT.format(began=4712))
        return text

    monkeypatch.setattr(witness, "read", reading)
    assert looked(machine) is None


@pytest.mark.parametrize(
    ("text", "folders"),
    [
        ("", {}),
        ("garbage\n\n:\n", {}),
        (f"0::/docker/{ID}\n", {"": f"/docker/{ID}"}),
        (f"0::/system.slice/docker-{ID}.scope\n", {"": f"/system.slice/docker-{ID}.scope"}),
        (
            f"4:memory:/docker/{ID}\n1:cpu,cpuacct:/docker/{ID}\n0::/\n",
            dict.fromkeys(("memory", "cpu", "cpuacct"), f"/docker/{ID}"),
        ),
        (f"9:name=systemd:/docker/{ID}\n", {"systemd": f"/docker/{ID}"}),
        (f"0::/../../docker/{ID}\n", {}),
        (f"0::/docker/{ID[:-1]}\n", {}),
        ("0::/docker/" + ID.upper() + "\n", {}),
    ],
)
def test_only_paths_with_the_whole_id_are_the_boxs_own(text: str, folders: dict[str, str]) -> None:
    assert cgroup_folders(text, ID) == folders


def test_the_version_is_told_from_the_folders() -> None:
    assert version_of({"memory": "/x", "": "/x"}) == 1
    assert version_of({"": "/x"}) == 2


def test_meters_are_read_again_from_the_same_folders(machine: Path) -> None:
    found = meters({"": f"/docker/{ID}"}, str(machine / "cgroup"))
    assert found["cgroup:memory.peak"] == "5\n"
    assert found["cgroup:cpu.stat"] is None


def test_a_cgroup_stands_until_its_folder_is_gone(machine: Path) -> None:
    folders = {"": f"/docker/{ID}"}
    assert standing(folders, str(machine / "cgroup")) == [""]
    folder = machine / "cgroup/docker" / ID
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    assert standing(folders, str(machine / "cgroup")) == []
