"""The warden's hand on files, tried on folders of this computer: what it puts in place, and what it takes out."""

from __future__ import annotations

import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pybox_kernel.inside.files import BUFFER, MOST_LISTED, FilesIn, FilesOut
from pybox_kernel.policy import MIB
from tests.timing import processor_time

ASKED = {"bring": True, "files": 64, "bytes": 8 * MIB, "depth": 8, "entries": 1_000_000, "seconds": 2}
LARGEST_FRAME = 65536


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "box"
    folder.mkdir()
    yield folder
    for path, _, _ in os.walk(folder):
        Path(path).chmod(0o700)


class Out:
    """All that one look through ``box`` gives."""

    def __init__(self, box: Path, prints: dict[str, Any] | None = None, until: float = 1e12, **changes: int) -> None:
        self.files: dict[str, bytes] = {}
        name = ""
        for kind, payload in FilesOut({**ASKED, **changes}, prints or {}, until, str(box)).frames():
            assert len(payload) <= LARGEST_FRAME
            if kind == b"D":
                name = json.loads(payload)["name"]
                self.files[name] = b""
            elif kind == b"d":
                self.files[name] += payload
            else:
                self.account = json.loads(payload)

    @property
    def why(self) -> dict[str, str]:
        return {item["name"]: item["why"] for item in self.account["skipped"]}


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_regular_files_come_out_in_order_of_name_folder_by_folder(box: Path) -> None:
    for name in ("b", "a/z", "a/b/c", "c", "a.txt"):
        (box / name).parent.mkdir(parents=True, exist_ok=True)
        (box / name).write_text(name)
    out = Out(box)
    assert list(out.files) == ["a/b/c", "a/z", "a.txt", "b", "c"]
    assert all(data.decode() == name for name, data in out.files.items())
    assert out.account == {"found": 5, "skipped": [], "not_listed": 0, "cut": None}


def test_nothing_but_a_regular_file_is_opened(box: Path) -> None:
    (box / "link").symlink_to("/etc/passwd")
    (box / "folder link").symlink_to("/etc")
    (box / "loop").symlink_to(".")
    os.mkfifo(box / "pipe")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(box / "socket"))
    (box / ".hidden").write_text("x")
    (box / ".cache").mkdir()
    (box / ".cache" / "x").write_text("x")
    out = Out(box)
    assert out.files == {}
    assert out.why == {
        ".cache": "hidden",
        ".hidden": "hidden",
        "folder link": "link",
        "link": "link",
        "loop": "link",
        "pipe": "pipe",
        "socket": "socket",
    }
    assert out.account["found"] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_not_opened(box: Path) -> None:
    os.mknod(box / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    assert Out(box).why == {"zero": "device"}


def test_a_sparse_file_is_refused_by_its_size(box: Path) -> None:
    with (box / "big").open("wb") as file:
        file.truncate(1 << 40)
    with (box / "fits").open("wb") as file:
        file.truncate(8 * MIB)
    with processor_time(below=1):
        out = Out(box)
    assert out.why == {"big": "big"}
    assert out.account["skipped"][0]["size"] == 1 << 40
    assert out.files == {"fits": bytes(8 * MIB)}


def test_number_and_bytes_are_bounded_and_what_still_fits_is_taken(box: Path) -> None:
    for number in range(70):
        (box / f"{number:02}").write_bytes(b"x")
    (box / "00").write_bytes(bytes(8 * MIB - 1))
    (box / "01").write_bytes(bytes(2))
    out = Out(box)
    assert list(out.files) == ["00", "02"]
    assert set(out.why.values()) == {"room"}
    assert len(out.why) == MOST_LISTED
    assert out.account["not_listed"] == 70 - 2 - MOST_LISTED
    (box / "00").write_bytes(b"")
    out = Out(box)
    assert list(out.files) == [f"{number:02}" for number in range(64)]
    assert out.why == {f"{number:02}": "many" for number in range(64, 70)}


def test_ever_so_many_files_take_bounded_time(box: Path) -> None:
    for number in range(20_000):
        os.close(os.open(box / str(number), os.O_CREAT, 0o644))
    began = time.monotonic()
    out = Out(box, until=began + 0.2)
    assert time.monotonic() - began < 5
    assert len(out.files) == 64
    assert out.account["found"] > 100
    with processor_time(below=0.1):
        out = Out(box, entries=1024)
    assert out.account["cut"] == "entries"


def test_five_thousand_folders_deep_is_not_gone_into(box: Path) -> None:
    folder = os.open(box, os.O_RDONLY)
    for _ in range(5000):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    before = descriptors()
    out = Out(box)
    assert out.why == {"d/" * 9: "deep"}
    assert descriptors() == before
    folder = os.open(box, os.O_RDONLY)  # pytest's own clean-up goes one call deeper for each
    for _ in range(5000):
        above, folder = folder, os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(above)
    for _ in range(5000):
        above = os.open("..", os.O_RDONLY, dir_fd=folder)
        os.rmdir("d", dir_fd=above)
        os.close(folder)
        folder = above
    os.close(folder)


def test_names_come_as_they_are_and_those_that_are_no_text_are_told(box: Path) -> None:
    names = [b"new\nline", b"\x1b[2J", b"\xc3(.txt", b"\xff" * 255, "ü".encode(), b"x" * 255, b"a\\b"]
    for name in names:
        os.close(os.open(bytes(box) + b"/" + name, os.O_CREAT, 0o644))
    out = Out(box)
    assert set(out.files) == {"new\nline", "\x1b[2J", "ü", "x" * 255, "a\\b"}
    assert set(out.why.values()) == {"name"}
    assert "\\xc3(.txt" in out.why
    assert max(map(len, out.why)) == 200


def test_the_account_fits_into_one_frame_whatever_the_names_are(box: Path) -> None:
    for number in range(MOST_LISTED + 5):
        name = b"%03d" % number + b"\x01" * 200 + b"\xff"
        os.close(os.open(bytes(box) + b"/" + name, os.O_CREAT, 0o644))
    assert len(Out(box).why) == MOST_LISTED
    for number in range(MOST_LISTED + 5):
        (box / ("😀" * 62 + str(number))).symlink_to("x")
    assert Out(box).account["not_listed"] > MOST_LISTED


@pytest.mark.skipif(os.geteuid() != 0, reason="another uid is needed")
def test_what_its_mode_does_not_let_be_read_is_told(box: Path) -> None:
    (box / "closed").write_text("x")
    (box / "folder").mkdir()
    (box / "folder" / "x").write_text("x")
    (box / "listed").mkdir()
    (box / "listed" / "x").write_text("x")
    (box / "open").write_text("x")
    for path in (box, *box.parents):
        if str(path).startswith("/tmp/pytest"):
            path.chmod(0o755)
    for path in (box, *box.rglob("*")):
        os.chown(path, 12345, 12345)
    (box / "closed").chmod(0)
    (box / "folder").chmod(0)
    (box / "listed").chmod(0o400)
    box.chmod(0)
    os.seteuid(12345)
    try:
        out = Out(box)
    finally:
        os.seteuid(0)
    assert out.files == {"open": b"x"}
    assert out.why == {"closed": "unreadable", "folder": "unreadable", "listed/x": "unreadable"}


def test_when_the_time_is_over_nothing_more_is_begun(box: Path) -> None:
    (box / "a").write_text("x")
    out = Out(box, until=time.monotonic() - 1)
    assert out.files == {}
    assert out.account["cut"] == "time"


def test_without_a_wish_for_them_files_are_only_counted(box: Path) -> None:
    (box / "d").mkdir()
    (box / "d" / "a").write_text("x")
    (box / "b").write_text("x")
    (box / ".matplotlib").mkdir()
    out = Out(box, bring=0)
    assert out.files == {}
    assert out.account["found"] == 2


# Into the box


def put(box: Path, *files: tuple[str, bytes], to_come: int | None = None) -> FilesIn:
    incoming = FilesIn(str(box))
    for place, (name, data) in enumerate(files, 1):
        more = len(files) - place if to_come is None else to_come
        incoming.begin(json.dumps({"name": name, "size": len(data), "to_come": more}).encode())
        for start in range(0, len(data), BUFFER):
            incoming.add(data[start : start + BUFFER])
    return incoming


def test_files_are_put_in_their_place_and_known_again_by_what_they_hold(box: Path) -> None:
    large = os.urandom(3 * BUFFER + 1)
    incoming = put(box, ("data/x.csv", b"1,2"), ("data/large", large), ("empty", b""), ("data/deep/y", b"y"))
    assert not incoming.open
    assert (box / "data/large").read_bytes() == large
    assert stat.S_IMODE((box / "empty").stat().st_mode) == 0o644
    assert Out(box, incoming.prints).account["found"] == 0
    facts = (box / "data/large").stat()
    with (box / "data/large").open("r+b") as file:
        file.seek(BUFFER + 5)
        file.write(bytes([large[BUFFER + 5] ^ 1]))
    os.utime(box / "data/large", ns=(facts.st_atime_ns, facts.st_mtime_ns))
    (box / "data/x.csv").unlink()
    (box / "data/x.csv").write_bytes(b"1,2")
    (box / "empty").write_bytes(b"x")
    out = Out(box, incoming.prints)
    assert list(out.files) == ["data/large", "empty"]
    assert out.account["found"] == 2


@pytest.mark.parametrize("name", ["", "/x", "../x", "a/../x", "a//x", "a/", ".", "..", "a\0b", "a/.."])
def test_a_name_that_leads_elsewhere_is_not_written(box: Path, name: str) -> None:
    with pytest.raises(ValueError, match="leads elsewhere"):
        put(box, (name, b"x"))
    assert list(box.iterdir()) == []


def test_nothing_is_written_over_or_through_a_link(box: Path, tmp_path: Path) -> None:
    (box / "there").write_text("old")
    (box / "link").symlink_to(tmp_path / "escaped")
    (box / "folder").symlink_to(tmp_path)
    for name in ("there", "link", "folder/x", "there/x"):
        with pytest.raises(OSError, match=name.partition("/")[0]):
            put(box, (name, b"new"))
    assert (box / "there").read_text() == "old"
    assert not (tmp_path / "escaped").exists()
    assert not (tmp_path / "x").exists()


def test_files_out_of_turn_are_refused(box: Path) -> None:
    with pytest.raises(ValueError, match="out of turn"):
        put(box, ("a", b""), ("b", b""), to_come=0)
    with pytest.raises(ValueError, match="out of turn"):
        put(box, ("c", b""), to_come=-1)
    incoming = put(box, ("d", b""))
    with pytest.raises(ValueError, match="out of turn"):
        incoming.begin(b'{"name": "e", "size": 0, "to_come": -1}')
    with pytest.raises(ValueError, match="more of a file"):
        incoming.add(b"x")
    incoming = FilesIn(str(box))
    incoming.begin(b'{"name": "f", "size": 2, "to_come": 0}')
    assert incoming.open
    with pytest.raises(ValueError, match="out of turn"):
        incoming.begin(b'{"name": "g", "size": 2, "to_come": 0}')
    with pytest.raises(ValueError, match="more of a file"):
        incoming.add(b"xyz")
