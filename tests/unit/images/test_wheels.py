"""Packages as this computer's own pip fetches them, from an index in a folder."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from pybox_kernel.errors import OptionError, SetupError
from pybox_kernel.images import wheels
from pybox_kernel.images.package_locks import parse_lock
from pybox_kernel.images.wheels import Target, fetch, make_lock, read_requirements
from tests.packages import Index

TARGET = Target((3, 12), "x86_64", (2, 36))


def quiet(_: str) -> None:
    """A progress that nobody looks at."""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    found = Index(tmp_path / "index")
    found.use(monkeypatch)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


# For which Python


def test_wheels_are_looked_for_that_fit_the_image_and_not_this_computer() -> None:
    options = Target((3, 13), "aarch64", (2, 28)).options
    platforms = [value for option, value in pairwise(options) if option == "--platform"]
    assert platforms[0] == "manylinux_2_28_aarch64"
    assert {"manylinux_2_17_aarch64", "manylinux2014_aarch64"} < set(platforms)
    assert not [name for name in platforms if "2_29" in name or "x86" in name or "musl" in name]
    assert options[:6] == ["--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.13"]
    assert [value for option, value in pairwise(options) if option == "--abi"] == [
        "cp313", "abi3", "none",
    ]  # fmt: skip


def test_the_wheel_of_the_images_python_is_taken(index: Index, folder: Path) -> None:
    for tag in ("cp311-cp311", "cp312-cp312"):
        for platform in ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "macosx_11_0_arm64"):
            index.add_wheel("picky", {"picky.py": f"{tag}-{platform}"}, tag=f"{tag}-{platform}")
    lock = make_lock(["picky"], TARGET, quiet)
    stage = fetch(lock, TARGET, folder, quiet)
    assert (stage / "picky.py").read_text() == "cp312-cp312-manylinux_2_28_x86_64"


# Fetching


def test_what_is_locked_is_unpacked_and_nothing_else_is_fetched(index: Index, folder: Path) -> None:
    index.add_wheel("small", {"small/__init__.py": "x = 1\n"}, needs=("other",))
    index.add_wheel("other", {"other.py": ""})
    said: list[str] = []
    stage = fetch(parse_lock(index.lock("small").encode()), TARGET, folder, said.append)
    assert sorted(path.name for path in stage.iterdir()) == ["small", "small-1.0.dist-info"]
    assert not list(stage.rglob("*.pyc"))
    assert said == ["Fetching small 1.0"]


def test_other_bytes_than_the_locked_ones_are_refused(index: Index, folder: Path) -> None:
    index.add_wheel("small", {"small.py": "x = 1\n"})
    lock = parse_lock(index.lock("small").encode())
    index.add_wheel("small", {"small.py": "x = 2\n"})
    with pytest.raises(SetupError, match=r"not what is locked.*the hashes differ"):
        fetch(lock, TARGET, folder, quiet)


def test_a_package_without_a_wheel_for_the_image_is_named(index: Index, folder: Path) -> None:
    index.add_wheel("small", {"small.py": ""}, tag="cp39-cp39-win_amd64")
    with pytest.raises(SetupError, match=r"no wheel for Python 3\.12 on Linux \(x86_64\): .*small") as caught:
        fetch(parse_lock(index.lock("small").encode()), TARGET, folder, quiet)
    assert "Lock a version" in caught.value.advice


def test_a_package_that_is_called_after_hashes_is_looked_for_like_any_other(index: Index, folder: Path) -> None:
    with pytest.raises(SetupError, match="no wheel"):
        fetch(parse_lock(b"xxhash==1.0 --hash=sha256:" + b"0" * 64), TARGET, folder, quiet)


def test_an_index_that_cannot_be_reached_is_not_taken_for_one_without_the_package(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nobody is there
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(SetupError, match="index could not be reached") as caught:
        make_lock(["small"], TARGET, quiet)
    assert "network" in caught.value.advice


SPY = (
    "import pathlib; pathlib.Path({path!r}).touch()\nfrom setuptools import setup; setup(name='built', version='1.0')\n"
)


def test_nothing_is_built_of_what_has_only_its_source(index: Index, folder: Path, tmp_path: Path) -> None:
    index.add_source("built", SPY.format(path=str(tmp_path / "ran")))
    with pytest.raises(SetupError, match="no wheel"):
        fetch(parse_lock(index.lock("built").encode()), TARGET, folder, quiet)
    with pytest.raises(SetupError, match="no wheel"):
        make_lock(["built"], TARGET, quiet)
    assert not (tmp_path / "ran").exists()


def test_nothing_is_built_of_what_a_package_names_by_an_address(index: Index, tmp_path: Path) -> None:
    """pip's own ``--only-binary`` does not hold for these: it would run the program of whoever made the package."""
    source = index.add_source("built", SPY.format(path=str(tmp_path / "ran")))
    index.add_wheel("small", {"small.py": ""}, needs=(f"built @ {source.as_uri()}",))
    with pytest.raises(SetupError, match="would have to be built on this computer"):
        make_lock(["small"], TARGET, quiet)
    assert not (tmp_path / "ran").exists()


def test_settings_of_pip_that_would_be_in_the_way_are_not(
    index: Index, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add_wheel("small", {"small.py": ""})
    unwanted = f"user = true\nprefix = {tmp_path}\nroot = {tmp_path}\ndry-run = true\nrequire-hashes = true\n"
    (tmp_path / "pip.conf").write_text(f"[global]\n{unwanted}")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    (tmp_path / "pip.py").write_text("raise SystemExit('the wrong pip')")
    monkeypatch.chdir(tmp_path)
    assert (fetch(make_lock(["small"], TARGET, quiet), TARGET, folder, quiet) / "small.py").exists()


def test_without_pip_it_is_said_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match="needs pip") as caught:
        wheels.check_pip()
    assert "-m ensurepip" in caught.value.advice


FETCHING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from pybox_kernel.images.package_locks import parse_lock
from pybox_kernel.images.wheels import Target, fetch
fetch(parse_lock(Path(sys.argv[1]).read_bytes()), Target((3, 12), "x86_64", (2, 36)), Path(sys.argv[2]), print)
"""


def test_ctrl_c_ends_pip_too(index: Index, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index.add_wheel("small", {"small.py": ""})
    (tmp_path / "lock.txt").write_text(index.lock("small"))
    command = [sys.executable, "-c", FETCHING, str(tmp_path / "lock.txt"), str(folder)]
    with socket.create_server(("127.0.0.1", 0)) as index_without_answer:
        index_without_answer.settimeout(20)
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{index_without_answer.getsockname()[1]}/simple")
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
            index_without_answer.accept()[0],
        ):
            began = f"{folder}/packages" in running()
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=20)[1].splitlines()[-1] == "KeyboardInterrupt"
            assert began
            assert f"{folder}/packages" not in running()


def running() -> str:
    return subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True).stdout


# Locking


def test_a_lock_has_all_that_is_needed_with_hashes(index: Index) -> None:
    index.add_wheel("small", {"small.py": ""}, needs=("other>=1",))
    index.add_wheel("other", {"other.py": ""})
    index.add_wheel("other", {"other.py": "# newer"}, version="2.0+Local.1")
    lock = make_lock(read_requirements(b"Small>=1  # the one\n"), TARGET, quiet)
    assert [(package.name, package.version) for package in lock.packages] == [
        ("other", "2.0+local.1"), ("small", "1.0"),
    ]  # fmt: skip
    assert [package.hashes for package in lock.packages] == [(index.hashes["other"],), (index.hashes["small"],)]
    assert parse_lock(lock.text.encode()) == lock


@pytest.mark.parametrize(
    "line",
    ["pandas", "pandas>=3", "pandas >= 3, < 4", "pandas[excel]~=3.1", "pandas==3.*", "pandas (>=3)",
     "a.b_c-d != 1.0rc1",
     'pandas>=3 ; python_version >= "3.11" and (sys_platform == "linux" or os_name != "nt")'],
)  # fmt: skip
def test_names_and_versions_may_be_asked_for(line: str) -> None:
    assert read_requirements(f"# wanted\n{line} # why\n\n".encode()) == (line,)


@pytest.mark.parametrize(
    "line",
    ["-r other.txt", "--index-url https://example.org", "-e .", ".", "./pandas", "/tmp/a.whl", "pandas @ file:///tmp/a.whl",
     "https://example.org/a.whl", "git+https://example.org/a", "pandas --config-settings x=y", "${HOME}", "pandas\\",
     "pandas numpy", "~/a", "C:\\a", "é", "pandas>=", "pandas; $(id)"],
)  # fmt: skip
def test_options_addresses_and_paths_are_refused_with_their_line(line: str) -> None:
    with pytest.raises(OptionError, match=r"^Line 2 of the list of packages names none"):
        read_requirements(f"numpy\n{line}\n".encode())


@pytest.mark.parametrize("data", [b"", b"# nothing\n", b"\xff", b"a\n" * 40_000])
def test_a_list_of_nothing_or_too_much_is_refused(data: bytes) -> None:
    with pytest.raises(OptionError, match="list of packages"):
        read_requirements(data)
