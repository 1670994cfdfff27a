from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pybox_kernel.source.stdlib_index import EMPTY, FILE, Member, StdlibIndex, read_index, stdlib_index
from tests.timing import processor_time

ROOT = Path(__file__).parents[3]
PACKAGED = ROOT / "pybox_kernel" / "source" / FILE
HEADER = json.dumps({"format": 1, "python": "3.11.7", "made_by": "scripts/index_stdlib.py"})
MODULE = {"doc": "", "members": {"f": ["f", "(x)", "Does f."]}, "classes": {}}

STEADY = ("collections", "json", "math", "os.path", "pathlib", "random", "re", "statistics", "string", "textwrap")
"""Modules whose names do not change within a minor version of Python, nor with what was at hand when it was built."""


@pytest.fixture(scope="module")
def index() -> StdlibIndex:
    return stdlib_index()


@pytest.fixture(scope="module")
def made_here(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the script makes on this Python."""
    target = tmp_path_factory.mktemp("index") / FILE
    script = ROOT / "scripts" / "index_stdlib.py"
    subprocess.run([sys.executable, script, target], check=True, capture_output=True, timeout=100)
    return target.read_bytes()


def test_what_a_teacher_needs_is_known(index: StdlibIndex) -> None:
    assert index.member("builtins", "print") == Member(
        "function",
        "(*args, sep=' ', end='\\n', file=None, flush=False)",
        "Prints the values to a stream, or to sys.stdout by default.",
    )
    assert index.member("os", "path") == Member("module", "", "Common operations on Posix pathnames.", "os.path")
    assert index.member("collections", "Counter") == Member("class", target="collections.Counter")
    assert index.member("math", "pi") == Member("constant", target="builtins.float")
    assert index.member("math", "tau2") is index.member("no_module", "x") is None
    assert {"append", "sort"} <= index.class_members("builtins.list").keys()
    assert {"most_common", "items"} <= index.class_members("collections.Counter").keys()
    assert {"read_text", "with_suffix", "name"} <= index.class_members("pathlib.Path").keys()
    assert {"xml.etree.ElementTree", "concurrent.futures", "collections.abc", "os.path"} <= set(index.modules)
    assert index.submodules("concurrent") == ("futures",)
    assert "os" in index.submodules("")
    assert "os.path" not in index.submodules("")


def test_private_modules_and_names_are_not_offered(index: StdlibIndex) -> None:
    assert not [name for name in index.modules if name.startswith("_") or "._" in name]
    assert not {"antigravity", "this", "winreg", "test"} & set(index.modules)
    for name in STEADY:
        module = index.module(name)
        assert module is not None
        assert module.members
        assert not [member for member in module.members if member.startswith("_")]


def test_every_line_can_be_read_and_every_target_is_there(index: StdlibIndex) -> None:
    for name in gzip.decompress(PACKAGED.read_bytes()).decode().splitlines()[1:]:
        module = index.module(name.partition("\t")[0])
        assert module is not None
        for member in module.members.values():
            if member.target:
                found = index.module(member.target) if member.kind == "module" else index.class_(member.target)
                assert found is not None, member
        for class_ in module.classes.values():
            assert all(index.class_(base) is not None for base in class_.bases)


def test_nothing_of_the_computer_it_was_made_on_is_in_it() -> None:
    text = gzip.decompress(PACKAGED.read_bytes()).decode()
    for trace in (" at 0x", "/lib/python", "'PATH':", "environ({", str(Path.home()) + "/"):
        assert trace not in text


def test_it_is_small_and_quick() -> None:
    data = PACKAGED.read_bytes()
    assert len(data) < 300_000
    with processor_time(below=0.15):  # 13 ms where it was made
        read_index(data).module("builtins")


def test_the_script_makes_it_on_this_python(index: StdlibIndex, made_here: bytes) -> None:
    here = read_index(made_here)
    assert here.python == ".".join(map(str, sys.version_info[:3]))
    if here.python.split(".")[:2] == index.python.split(".")[:2]:
        assert [here.module(name) for name in STEADY] == [index.module(name) for name in STEADY]
        assert len(set(here.modules) ^ set(index.modules)) < 10
    else:
        for module, name in (("os", "getcwd"), ("pathlib", "Path"), ("json", "dumps"), ("math", "sqrt")):
            found, packaged = here.member(module, name), index.member(module, name)
            assert found is not None
            assert packaged is not None
            assert found.kind == packaged.kind


def test_making_it_again_gives_the_same_bytes(made_here: bytes, tmp_path: Path) -> None:
    target = tmp_path / FILE
    script = ROOT / "scripts" / "index_stdlib.py"
    subprocess.run([sys.executable, script, target], check=True, capture_output=True, timeout=100, env={})
    assert target.read_bytes() == made_here


def test_the_wheel_holds_it(tmp_path: Path) -> None:
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    built = subprocess.run(
        [sys.executable, "-c", build, tmp_path], cwd=ROOT, check=True, capture_output=True, text=True, timeout=100
    )
    with zipfile.ZipFile(tmp_path / built.stdout.split()[-1]) as archive:
        assert archive.read(f"pybox_kernel/source/{FILE}") == PACKAGED.read_bytes()


def packed(*lines: str) -> bytes:
    return gzip.compress("\n".join(lines).encode(), mtime=0)


def test_a_whole_index_is_read() -> None:
    index = read_index(packed(HEADER, f"m\t{json.dumps(MODULE)}", ""))
    assert index.python == "3.11.7"
    assert index.member("m", "f") == Member("function", "(x)", "Does f.")
    assert EMPTY.modules == ()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no gzip",
        packed(HEADER, f"m\t{json.dumps(MODULE)}", "")[:-9],
        packed(""),
        packed("[]", ""),
        packed(HEADER.replace("1", "2", 1), ""),
        packed(HEADER[:-1] + ', "more": 1}', ""),
        packed(HEADER),
        packed(HEADER, "m", ""),
        packed(HEADER, "no name\t{}", ""),
        packed(HEADER, "m\t{}", "m\t{}", ""),
        gzip.compress(b"\xff\n", mtime=0),
    ],
)
def test_what_is_no_index_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        read_index(data)


@pytest.mark.parametrize(
    "change",
    [
        {"more": 1},
        {"doc": 1},
        {"members": []},
        {"members": {"f": "f"}},
        {"members": {"f": []}},
        {"members": {"f": ["x"]}},
        {"members": {"f": ["f", 1]}},
        {"members": {"f": ["f", "", "", "", ""]}},
        {"members": {"f g": ["f"]}},
        {"classes": {"C": {}}},
        {"classes": {"C": {"signature": "", "doc": "", "bases": [1], "members": {}}}},
        {"classes": {"C": {"signature": "", "doc": "", "bases": [], "members": {}, "more": 1}}},
    ],
)
def test_a_module_of_another_shape_is_refused(change: dict[str, object]) -> None:
    index = read_index(packed(HEADER, f"m\t{json.dumps(MODULE | change)}", ""))
    with pytest.raises(ValueError):
        index.module("m")
