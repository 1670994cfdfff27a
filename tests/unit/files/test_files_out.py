"""A box's files on their way onto this computer: all at once, never over anything, and nothing where it fails."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybox_kernel.errors import OptionError, PyBoxError
from pybox_kernel.files import files_out
from pybox_kernel.files.box_files import OutputFile
from pybox_kernel.policy import MIB, STDLIB
from tests.cases import case

FILES = (OutputFile("a.csv", b"1,2\n"), OutputFile("plots/one.png", b"p"), OutputFile("plots/two.png", b""))


def write(base: Path, folder: str, *files: OutputFile, cell: int | None = None) -> str | None:
    return files_out.write(STDLIB, files, folder, base, cell)


def refused(base: Path, folder: str, *files: OutputFile) -> str:
    """As a run is: looked at before it, and written after it."""
    before = sorted(base.rglob("*"))

    def looked_at_and_written() -> None:
        files_out.check(folder, base)
        write(base, folder, *(files or FILES))

    with pytest.raises(PyBoxError) as caught:
        looked_at_and_written()
    assert caught.value.advice.endswith(".")
    assert sorted(base.rglob("*")) == before
    return caught.value.message


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@case("fs-out-active-type")
def test_files_are_there_with_plain_modes(tmp_path: Path) -> None:
    write(tmp_path, "out", *FILES, OutputFile("open_me.html", b"<p>hi"), OutputFile("run.command", b"#!/bin/sh\n"))
    assert tree(tmp_path / "out").keys() == {"a.csv", "plots/one.png", "plots/two.png", "open_me.html", "run.command"}
    assert (tmp_path / "out" / "a.csv").read_bytes() == b"1,2\n"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert modes == {0o644}
    folders = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out", tmp_path / "out" / "plots")}
    assert folders == {0o755}
    assert names(tmp_path) == ["out"]


def test_files_carry_their_origin_where_the_disk_has_room_for_it(tmp_path: Path) -> None:
    probe = tmp_path / "probe"
    probe.write_text("x")
    try:
        os.setxattr(probe, "user.test", b"1")
    except OSError:
        pytest.skip("this disk has no room for marks")
    write(tmp_path, "out", *FILES)
    assert os.getxattr(tmp_path / "out" / "a.csv", "user.xdg.origin.url") == b"pybox:box"


def test_an_empty_folder_is_filled_and_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir(mode=0o700)
    write(tmp_path, "out", *FILES)
    assert len(tree(tmp_path / "out")) == 3
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700


def test_the_mask_of_the_user_holds(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write(tmp_path, "out", *FILES)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "out" / "a.csv").stat().st_mode) == 0o600


def test_without_files_nothing_is_made(tmp_path: Path) -> None:
    write(tmp_path, "out")
    assert names(tmp_path) == []


def test_nothing_goes_over_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / ".x").write_text("x")
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path, "full") == "full is not empty, and files from a box never go over others."
    assert refused(tmp_path, "file") == "file is a file, and no folder."
    assert refused(tmp_path, "pipe") == "pipe is a pipe, and no file."
    assert refused(tmp_path, ".") == ". is not a new folder."
    assert refused(tmp_path, "no/out") == "no: No such file or directory."
    assert refused(tmp_path, "file/out") == "file is a file, and no folder."


def test_nothing_goes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    base = tmp_path / "base"
    base.mkdir()
    (base / "out").symlink_to("../elsewhere")
    (base / "on the way").symlink_to("..")
    (base / "nowhere").symlink_to("not there")
    assert refused(base, "out") == "out is a link, and links are not followed."
    assert refused(base, "nowhere") == "nowhere is a link, and links are not followed."
    assert refused(base, "on the way/new") == "on the way is a link, and links are not followed."
    assert names(tmp_path / "elsewhere") == []
    write(base, "../named", *FILES)
    write(base, str(tmp_path / "absolute"), *FILES)
    assert len(tree(tmp_path / "named")) == len(tree(tmp_path / "absolute")) == 3


@case("fs-out-dotdot", "fs-out-reserved")
@pytest.mark.parametrize("name", ["../../escape", "/tmp/escape", "a/../b", "", "CON", "a:b", "x. ", ".bashrc", "a\nb"])
def test_a_name_that_is_not_to_be_written_stops_all(tmp_path: Path, name: str) -> None:
    assert "is not written: its name" in refused(tmp_path, "out", OutputFile("good", b""), OutputFile(name, b"x"))


@case("fs-out-case", "fs-out-nfc-nfd")
@pytest.mark.parametrize(
    ("first", "second"), [("Plot.png", "plot.PNG"), ("é", "e\u0301"), ("a", "a/b"), ("D/x", "d/y")]
)
def test_names_that_meet_stop_all(tmp_path: Path, first: str, second: str) -> None:
    assert "take their names for the same" in refused(tmp_path, "out", OutputFile(first, b""), OutputFile(second, b""))


def late(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Has something happen between the files' making and their taking their place."""
    make = files_out.make

    def making(parent: int, made: str, files: tuple[OutputFile, ...]) -> None:
        make(parent, made, files)
        act()

    monkeypatch.setattr(files_out, "make", making)


def test_where_the_folder_fills_meanwhile_the_files_stand_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def theirs() -> None:
        for name in ("out", "out-2"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "theirs").write_text("x")

    late(monkeypatch, theirs)
    assert write(tmp_path, "./out", *FILES) == "out-3"
    assert {name for name in tree(tmp_path) if "theirs" in name} == {"out/theirs", "out-2/theirs"}
    assert len(tree(tmp_path / "out-3")) == 3
    assert names(tmp_path / "out") == ["theirs"]


def test_a_link_that_comes_meanwhile_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    late(monkeypatch, lambda: (tmp_path / "out").symlink_to("elsewhere"))
    assert write(tmp_path, "out", *FILES) == "out-2"
    assert names(tmp_path / "elsewhere") == []
    assert (tmp_path / "out").is_symlink()


def test_the_cells_of_a_notebook_each_get_a_new_folder(tmp_path: Path) -> None:
    files_out.share("results", tmp_path)
    (tmp_path / "results" / "cell-4").mkdir()
    (tmp_path / "results" / "cell-4-2").symlink_to("nowhere")
    files_out.check("results", tmp_path, 3)
    assert write(tmp_path, "results/", *FILES, cell=3) == "results/cell-3"
    assert write(tmp_path, "results", *FILES, cell=3) == "results/cell-3-2"
    assert write(tmp_path, "results", *FILES, cell=4) == "results/cell-4-3"
    assert write(tmp_path, "results", cell=5) is None
    assert names(tmp_path / "results" / "cell-4") == []


@pytest.mark.parametrize("cell", [None, 7])
def test_of_many_that_write_to_one_folder_at_once_nobody_loses_a_file(tmp_path: Path, cell: int | None) -> None:
    files_out.share("out", tmp_path)
    together = Barrier(8)

    def one(number: int) -> str | None:
        together.wait()
        return write(tmp_path, "out", OutputFile("whose", b"%d" % number), cell=cell)

    with ThreadPoolExecutor(8) as threads:
        places = list(threads.map(one, range(8)))
    assert len(set(places)) == 8
    assert [int((tmp_path / str(place) / "whose").read_bytes()) for place in places] == list(range(8))


def test_what_a_killed_one_left_half_made_is_removed_by_the_next_and_nothing_else(tmp_path: Path) -> None:
    program = "import os, sys, time\nfrom pathlib import Path\nfrom pybox_kernel.files import files_out\n"
    program += "from pybox_kernel.files.box_files import OutputFile\nfrom pybox_kernel.policy import STDLIB\n"
    program += "files_out.make_one = lambda *_: print('making', flush=True) or time.sleep(60)\n"
    program += "files_out.write(STDLIB, [OutputFile('a', b'1')], 'theirs', Path(sys.argv[1]))"
    works: list[str] = []
    with ExitStack() as processes:
        for _ in range(2):
            command = [sys.executable, "-c", program, str(tmp_path)]
            process = processes.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            processes.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == b"making\n"
            works += set(names(tmp_path)) - set(works)
            if len(works) == 1:
                process.kill()
                process.wait()
        others = {".pybox-0123", ".pybox-0123456789abcdef", "pybox-0123456789abcdef"}
        for name in others:
            (tmp_path / name).mkdir()
            (tmp_path / name / "theirs").write_text("x")
        write(tmp_path, "young", *FILES)
        assert set(works) <= set(names(tmp_path))
        for path in tmp_path.iterdir():
            os.utime(path, (0, 0))
        write(tmp_path, "old", *FILES)
        assert set(names(tmp_path)) == {"young", "old", works[1]} | others


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_disk_that_gets_full_half_way_leaves_nothing(small_disk: Path) -> None:
    files = [OutputFile(f"{number}", bytes(300_000)) for number in range(8)]
    assert refused(small_disk, "out", *files) == "No file was written to out: No space left on device."
    assert names(small_disk) == []
    write(small_disk, "out", *files[:3])
    assert len(tree(small_disk / "out")) == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_disk_that_is_mounted_where_the_files_are_to_be_is_told_before(small_disk: Path) -> None:
    base = small_disk.parent
    assert refused(base, "disk") == "disk is where another disk is mounted."
    assert write(base, "disk", *FILES) == "disk-2"  # it was mounted meanwhile
    assert names(small_disk) == []
    assert write(base, "disk/out", *FILES) == "disk/out"


def test_a_disk_that_moves_no_folder_over_another_leaves_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rename(*_: object, **__: object) -> None:
        raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))

    monkeypatch.setattr(files_out.os, "rename", rename)
    assert refused(tmp_path, "out") == "No file was written to out: File exists."


def test_a_file_that_may_not_be_so_large_leaves_nothing(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, before[1]))
    try:
        message = refused(tmp_path, "out", OutputFile("small", b"x"), OutputFile("large", bytes(2 * MIB)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert message == "No file was written to out: File too large."


def test_an_interrupt_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_one, made = files_out.make_one, []

    def interrupted(top: int, file: OutputFile) -> None:
        make_one(top, file)
        made.append(file.name)
        if len(made) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(files_out, "make_one", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, "out", *FILES)
    assert names(tmp_path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="another uid is needed")
def test_a_folder_that_may_not_be_written_to_is_told_before(tmp_path: Path) -> None:
    for path in (tmp_path, *tmp_path.parents):
        if str(path).startswith("/tmp/pytest"):
            path.chmod(0o755)
    os.seteuid(12345)
    try:
        with pytest.raises(PyBoxError, match="out: Permission denied"):
            write(tmp_path, "out", *FILES)
    finally:
        os.seteuid(0)


def test_check_finds_before_what_write_would_find(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    files_out.check("new", tmp_path)
    for folder in ("full", "full/x", ".", "", "..", "no/way"):
        with pytest.raises(OptionError):
            files_out.check(folder, tmp_path)


NAMES = st.text(st.sampled_from("aA./ :é\u0301\n\\"), max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(NAMES, st.binary(max_size=5), max_size=4), st.text(st.sampled_from("ab"), min_size=5))
def test_what_is_written_is_exactly_what_was_given_or_nothing(
    tmp_path: Path, files: dict[str, bytes], folder: str
) -> None:
    target = tmp_path / "space" / folder[:200]
    target.parent.mkdir(exist_ok=True)
    subprocess.run(["rm", "-rf", target], check=True)
    try:
        files_out.write(STDLIB, [OutputFile(*item) for item in files.items()], f"space/{target.name}", tmp_path)
    except PyBoxError:
        assert not target.exists()
    else:
        assert (tree(target) if target.exists() else {}) == files
    assert {path.name for path in tmp_path.iterdir()} == {"space"}
    assert not list((tmp_path / "space").glob(".pybox*"))
