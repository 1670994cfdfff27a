"""Files of this computer on their way into a box: what is read, and what is refused before anything is."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybox_kernel.errors import OptionError
from pybox_kernel.files import files_in
from pybox_kernel.files.box_files import InputFile
from pybox_kernel.policy import MIB, STDLIB
from tests.cases import case


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    return folder


def made(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def read(base: Path, *paths: str) -> dict[str, bytes]:
    return {file.name: file.data for file in files_in.read(STDLIB, paths, base)}


def refused(base: Path, *paths: str) -> str:
    with pytest.raises(OptionError) as caught:
        read(base, *paths)
    assert caught.value.advice.endswith(".")
    return caught.value.message


def test_a_file_goes_by_its_path_from_the_notebooks_folder(base: Path) -> None:
    made(base, data__x_csv="1", data__deep__y_csv="2", z_txt="3", data___hidden="4")
    assert read(base, "data/x.csv", "./z.txt") == {"data/x.csv": b"1", "z.txt": b"3"}
    assert read(base, "data") == read(base, "data/") == read(base, str(base / "data"))
    assert read(base, "data") == {"data/deep/y.csv": b"2", "data/x.csv": b"1"}
    assert list(read(base, ".")) == ["data/deep/y.csv", "data/x.csv", "z.txt"]
    assert read(base) == {}


def test_what_is_named_itself_is_taken_also_where_it_is_hidden(base: Path) -> None:
    made(base, _env="secret")
    assert read(base, ".") == {}
    assert read(base, ".env") == {".env": b"secret"}


def test_of_a_file_from_elsewhere_the_path_is_kept_that_was_written(base: Path, tmp_path: Path) -> None:
    made(tmp_path, other__x_csv="1", far_txt="2", notebooks__near_txt="3")
    paths = ["../other", str(tmp_path / "far.txt"), "./near.txt"]
    found = {file.name: file.source for file in files_in.read(STDLIB, paths, base)}
    assert found == {"other/x.csv": "../other/x.csv", "far.txt": str(tmp_path / "far.txt"), "near.txt": None}
    [near] = files_in.read(STDLIB, [str(base / "near.txt")], base)
    assert near.source is None


def test_what_lies_elsewhere_goes_by_its_last_part_where_the_path_says_so(base: Path, tmp_path: Path) -> None:
    made(tmp_path, other__x_csv="1", far_txt="2")
    assert read(base, "../other") == {"other/x.csv": b"1"}
    assert read(base, "../other/x.csv") == {"x.csv": b"1"}
    assert read(base, str(tmp_path / "far.txt")) == {"far.txt": b"2"}
    assert "goes down and up again" in refused(base, "a/../../far.txt")
    for path in ("..", "../..", "/"):
        assert "ends in no name" in refused(base, path)
    for path in (str(tmp_path / ".."), str(base / ".." / base.name / "x")):
        assert "goes down and up again" in refused(base, path)
    assert "begins with ~" in refused(base, "~/x.csv")


def test_the_same_file_named_twice_is_one_and_another_of_its_name_is_refused(base: Path, tmp_path: Path) -> None:
    made(base, a__x_csv="1", x_csv="2")
    made(tmp_path, x_csv="3")
    assert read(base, "a", "a/x.csv") == {"a/x.csv": b"1"}
    assert "cannot both be put into a box" in refused(base, "x.csv", "../x.csv")


@case("fs-in-names")
def test_no_link_is_followed_below_the_notebooks_folder(base: Path, tmp_path: Path) -> None:
    made(tmp_path, secret__key="s")
    made(base, data__x="1")
    (base / "link").symlink_to(tmp_path / "secret" / "key")
    (base / "folder").symlink_to(tmp_path / "secret")
    (base / "data" / "inner").symlink_to("x")
    assert refused(base, "link") == "link is a link, and links are not followed."
    assert refused(base, "folder") == "folder is a link, and links are not followed."
    assert refused(base, "folder/key") == "folder is a link, and links are not followed."
    assert refused(base, "data") == "data/inner is a link, and links are not followed."
    assert read(base, "../secret/key") == {"key": b"s"}
    (base / "data" / "inner").unlink()
    assert read(base, "data") == {"data/x": b"1"}


@pytest.mark.timeout(10)
def test_pipes_sockets_and_devices_are_not_opened(base: Path) -> None:
    os.mkfifo(base / "pipe")
    assert refused(base, "pipe") == "pipe is a pipe, and no file."
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(base / "s"))
        assert refused(base, "s") == "s is a socket, and no file."
    assert refused(base, "/dev/zero") == "/dev/zero is a device, and no file."
    assert refused(base, "pipe/x") == "pipe is a pipe, and no file."


def test_what_is_not_there_is_told(base: Path) -> None:
    made(base, x="1")
    assert refused(base, "no.csv") == "no.csv: No such file or directory."
    assert refused(base, "no/x.csv") == "no: No such file or directory."
    assert refused(base, "x/y") == "x is a file, and no folder."
    assert refused(base, "") == "A file name is empty or holds a NUL."
    assert refused(base, "a\0b") == "A file name is empty or holds a NUL."
    assert refused(base, "\x1b[2J") == "\\x1b[2J: No such file or directory."
    assert "no name that this computer could have" in refused(base, "\ud800")
    assert "File name too long" in refused(base, "x" * 300)


@pytest.mark.skipif(os.geteuid() != 0, reason="another uid is needed")
def test_what_may_not_be_read_is_told(base: Path) -> None:
    made(base, closed__x="1")
    (base / "closed" / "x").chmod(0)
    for path in (base, *base.parents):
        if str(path).startswith("/tmp/pytest"):
            path.chmod(0o755)
    os.seteuid(12345)
    try:
        assert refused(base, "closed") == "closed/x: Permission denied."
    finally:
        os.seteuid(0)


@case("fs-in-names")
def test_number_size_and_depth_are_bounded_before_anything_is_read(base: Path) -> None:
    for number in range(64):
        made(base, **{f"many__{number}": ""})
    assert len(read(base, "many")) == 64
    made(base, many__x="")
    assert refused(base, "many") == "There are more than 64 files: a box takes no more."
    (base / "big").write_bytes(b"")
    os.truncate(base / "big", 8 * MIB)
    assert read(base, "big") == {"big": bytes(8 * MIB)}
    assert "With many/0 the files have" not in refused(base, "big", "many")
    os.truncate(base / "big", 8 * MIB + 1)
    assert refused(base, "big") == "With big the files have 8,388,609 bytes; a box takes 8,388,608 in all."
    os.truncate(base / "big", 1 << 40)
    assert "1,099,511,627,776 bytes" in refused(base, "big")
    deep = base / "deep" / "/".join("12345678")
    deep.mkdir(parents=True)
    (deep / "x").write_text("x")
    assert refused(base, "deep") == "deep/1/2/3/4/5/6/7/8 lies more than 8 folders deep."
    assert list(read(base, "../notebooks/deep/1")) == ["1/2/3/4/5/6/7/8/x"]


def test_a_folder_of_ever_so_many_things_is_not_gone_through(base: Path) -> None:
    for number in range(10_001):
        os.close(os.open(base / f".{number}", os.O_CREAT))
    assert refused(base, ".") == ". holds more than 10,000 files and folders."


@pytest.mark.parametrize("name", ["new\nline", "a\x1b[2J", "bidi\u202e.txt"])
def test_a_name_that_cannot_be_shown_is_refused(base: Path, name: str) -> None:
    (base / name).write_text("x")
    assert refused(base, ".").endswith("its name has a character that cannot be shown.")


def test_a_name_that_is_no_text_is_refused(base: Path) -> None:
    os.close(os.open(bytes(base) + b"/\xc3(.txt", os.O_CREAT))
    assert refused(base, ".") == (
        "The file \\udcc3(.txt cannot be put into a box: its name has a character that cannot be shown."
    )


def test_names_that_other_disks_take_for_the_same_are_refused(base: Path) -> None:
    made(base, Plot_png="1", plot_PNG="2")
    assert refused(base, ".").startswith("The files Plot.png and plot.PNG cannot both be put into a box")


def test_a_file_that_changes_while_it_is_read_is_refused(base: Path) -> None:
    path = base / "log"
    path.write_bytes(bytes(4 * MIB))
    done = threading.Event()

    def write() -> None:
        with path.open("r+b") as file:
            while not done.is_set():
                file.seek(0)
                file.write(os.urandom(100))
                file.flush()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        messages = []
        for _ in range(50):
            try:
                read(base, "log")
            except OptionError as error:
                messages.append(error.message)
    finally:
        done.set()
        writer.join()
    assert set(messages) == {"log changed while it was read."}


def test_a_link_put_in_place_of_a_file_meanwhile_is_not_followed(base: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (base / "x").write_text("plain")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            (base / "new").symlink_to("../secret")
            (base / "new").rename(base / "x")
            (base / "new").write_text("plain")
            (base / "new").rename(base / "x")

    swapper = threading.Thread(target=swap)
    swapper.start()
    found = set()
    try:
        for _ in range(500):
            try:
                found.add(read(base, "x")["x"])
            except OptionError:
                found.add(b"refused")
    finally:
        done.set()
        swapper.join()
    assert found <= {b"plain", b"", b"refused"}
    assert b"refused" in found


NAMES = st.text(st.sampled_from("aA. /\n\u0308é\ud800\0~\\"), max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(NAMES, max_size=3))
def test_whatever_is_named_is_below_the_folder_or_refused(base: Path, names: list[str]) -> None:
    inside = base / "in"
    inside.mkdir(exist_ok=True)
    (inside / "a").mkdir(exist_ok=True)
    (inside / "a" / "A").write_text("x")
    (inside / "é").write_text("y")
    try:
        files = files_in.read(STDLIB, [name for name in names if not name.startswith(("/", ".."))], inside)
    except OptionError:
        return
    assert set(files) <= {InputFile("a/A", b"x"), InputFile("é", b"y")}
