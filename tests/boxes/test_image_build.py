"""Box images made on the real engine: from Debian packages, and from a real registry on loopback.

Nothing here talks to a registry elsewhere. Every image has a name that begins with ``trial`` and is removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import source_hash
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import docker
import pytest

from pybox_kernel.errors import SetupError
from pybox_kernel.images import build as image_build
from pybox_kernel.images import plan as images
from pybox_kernel.images import rootfs
from pybox_kernel.images.recipes import RegistryBase, program_files
from pybox_kernel.images.steps import BUILD_LABEL
from pybox_kernel.images.store import ImageStore, RecordedImage, require
from pybox_kernel.seal.spec import PROGRAMS, PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybox_kernel.docker_engine.engine import DockerEngine

pytestmark = pytest.mark.engine

NAME = f"trial-{os.getpid()}"


def quiet(_: str) -> None:
    """A progress that nobody looks at."""


def printed(engine: DockerEngine, image_id: str, *command: str) -> str:
    """What a command prints in a fresh container of the image, as root; it must end well."""
    name = f"pybox-{NAME}-{time.monotonic_ns()}"
    host = {"NetworkMode": "none", "ReadonlyRootfs": True, "LogConfig": {"Type": "json-file"}}
    try:
        container = engine.create(name, {"Image": image_id, "Cmd": list(command), "HostConfig": host})
        engine.start(container)
        status = engine.wait_exit(container, 30)
        output = engine.logs(container, 4_000_000).decode()
    finally:
        engine.remove(name)
    assert status == 0, output
    return output


def answer(engine: DockerEngine, image_id: str, program: str) -> Any:
    return json.loads(printed(engine, image_id, PYTHON, "-I", "-B", "-c", program))


def left_of(engine: DockerEngine, name: str) -> list[str]:
    """Every image and container in the engine that a build of an image of this name has made."""
    found = [*engine.images([BUILD_LABEL]), *engine.containers([BUILD_LABEL])]
    return [item.id for item in found if item.labels[BUILD_LABEL].startswith(f"{name}-")]


def sweep(engine: DockerEngine, name: str) -> None:
    """Removes all that tests made under a name. Twice: a base can go when what was built on it is gone."""
    for _ in range(2):
        for image in engine.images([BUILD_LABEL]):
            if image.labels[BUILD_LABEL].startswith(f"{name}-"):
                for reference in image.tags or (image.id,):
                    engine.remove_image(reference)


class Made(NamedTuple):
    image: RecordedImage
    store: ImageStore
    said: list[str]
    plan: images.Plan


@pytest.fixture(scope="module")
def made(engine: DockerEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """An image of Debian packages, made once for this module."""
    store = ImageStore(tmp_path_factory.mktemp("state"))
    said: list[str] = []
    try:
        plan = images.plan(engine, store, base="debian", name=NAME)
        yield Made(image_build.carry_out(engine, store, plan, said.append), store, said, plan)
    finally:
        sweep(engine, NAME)


@pytest.fixture(scope="module")
def rootfs_tar(engine: DockerEngine, tmp_path_factory: pytest.TempPathFactory, made: Made) -> Path:
    """The same root file system made a second time, as a file."""
    base = made.image.recipe.base
    assert base.kind == "debian"
    return rootfs.make(base, tmp_path_factory.mktemp("rootfs"), quiet)


class Registry:
    """Debian's docker-registry on a loopback port, with one image in it: the Debian root file system."""

    def __init__(self, engine: DockerEngine, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.engine, self.folder = engine, folder
        self.repository = f"{self.address}/{NAME}/python"
        self.official = f"{self.repository}:3.13-slim"
        storage = {"filesystem": {"rootdirectory": str(folder / "data")}}
        config = {
            "version": 0.1,
            "storage": storage,
            "http": {"addr": self.address},
            "log": {"level": "error"},
        }
        (folder / "config.yml").write_text(json.dumps(config))

    def start(self) -> None:
        command = ["docker-registry", "serve", str(self.folder / "config.yml")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        host, port = self.address.split(":")
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)

    def push(self, tar: Path, changes: tuple[str, ...] = ()) -> str:
        """Puts an image under the official tag and leaves none of it in the engine. Returns the digest."""
        self.engine.import_rootfs(str(tar), self.official, changes)
        client = docker.APIClient(base_url=self.engine.address, version="auto")
        try:
            events = list(client.push(self.repository, tag="3.13-slim", stream=True, decode=True))
            (image,) = [item for item in self.engine.images() if self.official in item.tags]
            client.remove_image(image.id, force=True)
        finally:
            client.close()
        (digest,) = [event["aux"]["Digest"] for event in events if "aux" in event]
        return str(digest)


HOSTILE = (
    "ENV LD_PRELOAD=/nowhere",
    "VOLUME /data",
    "USER nobody",
    'ENTRYPOINT ["/bin/false"]',
    "ONBUILD RUN false",
)


@pytest.fixture(scope="module")
def registry(engine: DockerEngine, tmp_path_factory: pytest.TempPathFactory, rootfs_tar: Path) -> Iterator[Registry]:
    registry = Registry(engine, tmp_path_factory.mktemp("registry"))
    registry.start()
    try:
        yield registry
    finally:
        registry.stop()


class Fetched(NamedTuple):
    image: RecordedImage
    store: ImageStore
    digest: str
    plan: images.Plan


@pytest.fixture(scope="module")
def fetched(
    engine: DockerEngine, registry: Registry, rootfs_tar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fetched]:
    """An image made on the registry's ``python:3.13-slim``, whose maker configured it in every unwelcome way."""
    digest = registry.push(rootfs_tar, HOSTILE)
    store = ImageStore(tmp_path_factory.mktemp("state"))
    name = f"{NAME}-r"
    try:
        plan = images.plan(engine, store, base="python", name=name, official=registry.official)
        yield Fetched(image_build.carry_out(engine, store, plan, quiet), store, digest, plan)
    finally:
        sweep(engine, name)
        engine.remove_image(f"{registry.repository}@{digest}")


# From Debian packages


def test_the_plan_says_what_will_be_fetched_from_where_and_how_long_it_takes(made: Made) -> None:
    first, base, fetch, duration = made.plan.lines
    assert first == f"The box image '{NAME}' will be made:"
    assert base == f"  from   Debian packages (bookworm, {made.image.recipe.base.architecture})"  # type: ignore[union-attr]
    assert fetch.startswith("  fetch  about 35 MB from http")
    assert duration == "  time   about 20 s"


def test_every_long_step_is_told(made: Made) -> None:
    assert made.said[:-1] == [
        "Asking the Debian mirror what there is",
        "Fetching packages",
        "Unpacking packages",
        "Packing the root file system",
        "Importing it",
        "Building the box image",
        "Looking into it",
    ]
    assert made.said[-1].startswith(f"The box image '{NAME}' is ready: Python 3.11.")


def test_the_image_is_small(engine: DockerEngine, made: Made) -> None:
    assert made.image.size_bytes == engine.image(made.image.id).size_bytes
    assert 40_000_000 < made.image.size_bytes < 70_000_000


def test_the_same_packages_give_the_same_bytes(engine: DockerEngine, made: Made, rootfs_tar: Path) -> None:
    client = docker.APIClient(base_url=engine.address, version="auto")
    try:
        layers = client.inspect_image(made.image.id)["RootFS"]["Layers"]
    finally:
        client.close()
    assert layers[0] == "sha256:" + hashlib.sha256(rootfs_tar.read_bytes()).hexdigest()


def test_the_standard_library_is_whole(engine: DockerEngine, made: Made) -> None:
    program = """
import json, sys, warnings
warnings.simplefilter("ignore")
broken = {}
for name in sorted(sys.stdlib_module_names - {"antigravity", "this"}):
    try:
        __import__(name)
    except ImportError as error:
        broken[name] = str(error)
print(json.dumps(broken))
"""
    missing = answer(engine, made.image.id, program)
    foreign = {"winreg", "winsound", "msvcrt", "msilib", "nt", "ntpath", "nturl2path"} | {
        name for name in missing if name.startswith(("_win", "_overlapped", "_msi", "_scproxy"))
    }
    not_in_a_box = {"tkinter", "_tkinter", "turtle", "turtledemo", "idlelib", "lib2to3", "ensurepip", "venv"}
    debian_has_it_apart = {"distutils", "_dbm", "_gdbm"}
    assert set(missing) - foreign - not_in_a_box - debian_has_it_apart == set()


def test_what_python_reads_from_the_system_is_there(engine: DockerEngine, made: Made) -> None:
    program = """
import ctypes.util, json, mimetypes, os, pwd, socket, sqlite3, ssl, subprocess, sys, sysconfig, zoneinfo
from datetime import datetime
print(json.dumps({
    "zone": datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/London")).strftime("%Z"),
    "libc": ctypes.util.find_library("c"),
    "sql": sqlite3.connect(":memory:").execute("select 6*7").fetchone()[0],
    "shell": subprocess.run("echo $((6*7)) | sed s/4/5/ | awk '{print $1+1}'", shell=True, capture_output=True,
                            text=True).stdout,
    "root": pwd.getpwuid(0).pw_name,
    "port": socket.getservbyname("https"),
    "type": mimetypes.guess_type("a.svg")[0],
    "encoding": sys.getfilesystemencoding(),
    "folders": [sorted(os.listdir("/box")), oct(os.stat("/box").st_mode), os.stat("/box").st_uid, os.getcwd()],
    "tmp": oct(os.stat("/tmp").st_mode),
}))
"""
    assert answer(engine, made.image.id, program) == {
        "zone": "BST",
        "libc": "libc.so.6",
        "sql": 42,
        "shell": "53\n",
        "root": "root",
        "port": 443,
        "type": "image/svg+xml",
        "encoding": "utf-8",
        "folders": [[], "0o40755", 0, "/box"],
        "tmp": "0o41777",
    }


def test_no_file_runs_as_somebody_else_and_none_is_this_machines(engine: DockerEngine, made: Made) -> None:
    assert printed(engine, made.image.id, "find", "/", "-xdev", "-perm", "/6000") == ""
    assert printed(engine, made.image.id, "find", "/", "-xdev", "-nouser", "-o", "-xdev", "-nogroup") == ""
    unwanted = "/etc/machine-id /etc/apt /usr/bin/apt-get /usr/bin/dpkg /usr/bin/perl /usr/share/doc /var/lib/apt"
    program = f"import json, os; print(json.dumps([p for p in {unwanted.split()!r} if os.path.exists(p)]))"
    assert answer(engine, made.image.id, program) == []


def test_nothing_of_this_machine_is_in_the_root_file_system(rootfs_tar: Path) -> None:
    names = subprocess.run(["tar", "tf", rootfs_tar], capture_output=True, text=True, check=True).stdout.split()
    assert not {"etc/hostname", "etc/resolv.conf", "etc/machine-id", "etc/hosts"} & set(names)
    emptied = ("var/log/", "var/cache/", "tmp/", "dev/")
    assert [name for name in names if name.startswith(emptied)] == sorted(emptied, key=names.index)


IN_BOX_FILES = f"""
import json, os, stat
found = {{}}
for root, folders, files in os.walk({PROGRAMS!r}):
    for path in [root] + [os.path.join(root, name) for name in files]:
        status = os.lstat(path)
        content = open(path, "rb").read().hex() if stat.S_ISREG(status.st_mode) else ""
        found[os.path.relpath(path, {PROGRAMS!r})] = [oct(stat.S_IMODE(status.st_mode)), status.st_uid, content]
print(json.dumps(found))
"""


def assert_in_box_programs_are_right(engine: DockerEngine, image: RecordedImage) -> None:
    found = answer(engine, image.id, IN_BOX_FILES)
    tag = answer(engine, image.id, "import json, sys; print(json.dumps(sys.implementation.cache_tag))")
    recorded = {program.name: program.sha256 for program in image.recipe.programs}
    assert found.pop(".")[:2] == ["0o555", 0]
    assert found.pop("__pycache__")[:2] == ["0o555", 0]
    assert {mode for mode, _, _ in found.values()} == {"0o444"}
    assert {owner for _, owner, _ in found.values()} == {0}
    sources = {name: bytes.fromhex(content) for name, (_, _, content) in found.items() if name.endswith(".py")}
    assert {name: hashlib.sha256(content).hexdigest() for name, content in sources.items()} == recorded
    compiled = {f"__pycache__/{name[:-3]}.{tag}.pyc": source_hash(content) for name, content in sources.items()}
    assert {name: bytes.fromhex(found[name][2])[8:16] for name in found if name not in sources} == compiled
    # PEP 552: flags 0b01, hash-based and not checked against the source.
    assert {bytes.fromhex(found[name][2])[4:8] for name in compiled} == {b"\x01\0\0\0"}


def test_the_in_box_programs_are_there_compiled_and_read_only(engine: DockerEngine, made: Made) -> None:
    assert {program.name for program in made.image.recipe.programs} == {file.name for file in program_files()}
    assert_in_box_programs_are_right(engine, made.image)


def test_the_whole_standard_library_is_compiled_for_the_boxs_python(engine: DockerEngine, made: Made) -> None:
    program = """
import importlib.util, json, os, sysconfig
folder = sysconfig.get_path("stdlib")
sources = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names if name.endswith(".py")]
print(json.dumps([len(sources), [s for s in sources if not os.path.exists(importlib.util.cache_from_source(s))]]))
"""
    count, not_compiled = answer(engine, made.image.id, program)
    assert count > 500
    assert not_compiled == []


def test_packages_are_recorded_with_versions_and_only_those_that_are_there(made: Made) -> None:
    packages = {package.name: package.version for package in made.image.packages}
    assert packages["libpython3.11-stdlib"].startswith("3.11.")
    assert {"libc6", "tzdata", "bash"} <= packages.keys()
    assert not {"dpkg", "debconf", "perl-base", "apt"} & packages.keys()
    assert made.image.python == packages["python3.11-minimal"].partition("-")[0]


def test_a_second_setup_finds_nothing_to_do(engine: DockerEngine, made: Made) -> None:
    for wish in ("auto", "debian"):
        plan = images.plan(engine, made.store, base=wish, name=NAME)
        assert plan.lines[0].endswith("There is nothing to do.")
        assert image_build.carry_out(engine, made.store, plan, pytest.fail) == made.image


def test_a_run_gets_the_recorded_image_whatever_the_tag_points_to(
    engine: DockerEngine, made: Made, tmp_path: Path
) -> None:
    client = docker.APIClient(base_url=engine.address, version="auto")
    repository, _, tag = made.image.reference.partition(":")
    try:
        client.tag(made.image.base_image.id, repository, tag)
        assert engine.image(made.image.reference).id != made.image.id
        assert require(engine, made.store, NAME).id == made.image.id
    finally:
        client.tag(made.image.id, repository, tag)
        client.close()


def test_a_run_refuses_an_image_that_is_gone_and_setup_makes_it_again_without_fetching(
    engine: DockerEngine, made: Made, tmp_path: Path
) -> None:
    store = ImageStore(tmp_path)
    copy = made.image.model_copy(update={"name": f"{NAME}-g", "id": "sha256:" + "0" * 64, "reference": "pybox:none"})
    store.record(copy)
    with pytest.raises(SetupError, match=r"is no longer in the container engine") as caught:
        require(engine, store, copy.name)
    assert caught.value.advice == f"Run `pybox-kernel image build {copy.name} --yes`."
    try:
        plan = images.plan(engine, store, name=copy.name)
        assert plan.lines[2:] == ("  fetch  nothing", "  time   about 10 s")
        said: list[str] = []
        again = image_build.carry_out(engine, store, plan, said.append)
        assert said[0] == "Building the box image"
        assert require(engine, store, copy.name) == again
        assert again.recipe_sha256 == made.image.recipe_sha256
        engine.remove_image(again.reference)
        with pytest.raises(SetupError, match="no longer in the container engine"):
            require(engine, store, copy.name)
    finally:
        sweep(engine, copy.name)
    assert engine.image(made.image.id).id == made.image.id


class Refusal(BaseHTTPRequestHandler):
    """An HTTP proxy that refuses everything."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_error(403)

    def log_message(self, *_: object) -> None:
        pass


def test_a_mirror_that_refuses_is_named_and_apts_proxy_is_used(
    engine: DockerEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, name = ImageStore(tmp_path / "state"), f"{NAME}-m"
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusal) as proxy:
        Thread(target=proxy.serve_forever).start()
        address = f"http://127.0.0.1:{proxy.server_port}/"
        (tmp_path / "apt.conf").write_text(f'Acquire::http::Proxy "{address}";\n')
        monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
        try:
            plan = images.plan(engine, store, base="debian", name=name)
            with pytest.raises(
                SetupError, match=r"The Debian mirror does not give what is needed: .*bookworm/InRelease +403"
            ):
                image_build.carry_out(engine, store, plan, quiet)
        finally:
            proxy.shutdown()
    assert any(path.endswith("/dists/bookworm/InRelease") for path in Refusal.asked)
    assert left_of(engine, name) == []
    assert store.load() == {}


SETUP_PROGRAM = """
import sys
from pathlib import Path
from pybox_kernel.images import build as image_build, plan as images
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.images.store import ImageStore
engine, store = DockerEngine(sys.argv[1]), ImageStore(Path(sys.argv[2]))
plan = images.plan(engine, store, name=sys.argv[3], base="debian")
image_build.carry_out(engine, store, plan, lambda line: print(line, flush=True))
"""


@pytest.mark.parametrize(
    ("step", "delay"),
    [("Fetching packages", 0.1), ("Importing it", 0.3), ("Building the box image", 0.8)],
    ids=["fetching", "importing", "building"],
)
def test_ctrl_c_leaves_nothing(engine: DockerEngine, made: Made, tmp_path: Path, step: str, delay: float) -> None:
    """As at a terminal: the signal comes while the engine, or mmdebstrap, is at work."""
    name = f"{NAME}-c"
    work = tmp_path / "work"
    work.mkdir()
    store = ImageStore(tmp_path / "state")
    if step == "Building the box image":
        # Its base is there, so that this takes no new one.
        store.record(made.image.model_copy(update={"name": name, "id": "sha256:" + "0" * 64}))
        before = store.load()
    else:
        before = {}
    setup = subprocess.Popen(
        [sys.executable, "-c", SETUP_PROGRAM, engine.address, str(store.path.parent), name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(work)},
    )
    assert setup.stdout is not None
    while (line := setup.stdout.readline()) != step + "\n":
        assert line, setup.communicate()[1]
    time.sleep(delay)
    setup.send_signal(signal.SIGINT)
    said, complaint = setup.communicate(timeout=60)
    assert complaint.splitlines()[-1] == "KeyboardInterrupt"
    assert "is left in the engine" not in said
    assert "Looking into it" not in said
    assert left_of(engine, name) == []
    assert list(work.iterdir()) == []
    assert store.load() == before
    assert str(work) not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(work) not in Path("/proc/mounts").read_text()


# From a registry


def test_the_official_tag_is_resolved_once_and_its_digest_is_shown_and_recorded(
    registry: Registry, fetched: Fetched
) -> None:
    assert f"  from   {registry.official}@{fetched.digest}" in fetched.plan.lines
    assert fetched.image.base == f"{registry.official}@{fetched.digest}"
    assert fetched.image.recipe.base == RegistryBase(
        repository=registry.repository, tag="3.13-slim", digest=fetched.digest
    )


def test_nothing_of_a_registry_images_configuration_is_taken_over(engine: DockerEngine, fetched: Fetched) -> None:
    client = docker.APIClient(base_url=engine.address, version="auto")
    try:
        config = client.inspect_image(fetched.image.id)["Config"]
    finally:
        client.close()
    assert [line.partition("=")[0] for line in config["Env"]] == ["PATH"]
    assert not any(config.get(key) for key in ("Volumes", "User", "Entrypoint", "OnBuild", "Cmd", "ExposedPorts"))
    assert config["WorkingDir"] == "/box"


def test_an_image_on_a_registrys_base_has_the_same_inside(engine: DockerEngine, made: Made, fetched: Fetched) -> None:
    assert_in_box_programs_are_right(engine, fetched.image)
    assert fetched.image.python == made.image.python
    assert fetched.image.packages == made.image.packages
    assert printed(engine, fetched.image.id, "find", "/", "-xdev", "-perm", "/6000") == ""


def test_a_tag_that_moves_changes_nothing_until_a_fresh_base_is_asked_for(
    engine: DockerEngine, registry: Registry, fetched: Fetched, tiny_tar: Path
) -> None:
    moved = registry.push(tiny_tar)
    assert engine.resolve(registry.official) == moved != fetched.digest
    name = fetched.image.name
    for wish in ("auto", "python"):
        plan = images.plan(engine, fetched.store, base=wish, name=name, official=registry.official)
        assert plan.ready == fetched.image
    assert require(engine, fetched.store, name) == fetched.image
    fresh = images.plan(engine, fetched.store, name=name, official=registry.official, fresh=True)
    assert f"  from   {registry.official}@{moved}" in fresh.lines


def test_a_base_is_held_to_the_digest_that_was_given(
    engine: DockerEngine, registry: Registry, fetched: Fetched, tmp_path: Path
) -> None:
    store, name = ImageStore(tmp_path), f"{NAME}-w"
    wrong = f"{registry.repository}@sha256:{'0' * 64}"
    plan = images.plan(engine, store, base=wrong, name=name)
    with pytest.raises(SetupError, match="could not be fetched") as caught:
        image_build.carry_out(engine, store, plan, quiet)
    assert wrong in caught.value.message
    right = images.plan(engine, store, base=f"{registry.repository}@{fetched.digest}", name=name)
    assert right.base_image == fetched.image.base_image
    assert left_of(engine, name) == []
    assert store.load() == {}


def test_a_base_without_python_is_refused_and_nothing_of_it_is_left(
    engine: DockerEngine, registry: Registry, tiny_tar: Path, tmp_path: Path
) -> None:
    store, name = ImageStore(tmp_path), f"{NAME}-p"
    digest = registry.push(tiny_tar)
    plan = images.plan(engine, store, base=f"{registry.repository}@{digest}", name=name)
    with pytest.raises(SetupError, match=r"could not be built: .*python3"):
        image_build.carry_out(engine, store, plan, quiet)
    assert left_of(engine, name) == []
    assert [image for image in engine.images() if f"{registry.repository}@{digest}" in image.digests] == []
    assert store.load() == {}


def test_without_the_registry_set_up_says_so_and_what_is_set_up_goes_on(
    engine: DockerEngine, registry: Registry, fetched: Fetched, tmp_path: Path
) -> None:
    store, official = ImageStore(tmp_path), registry.official
    registry.stop()
    try:
        with pytest.raises(SetupError, match=f"could not find out what {official} is") as caught:
            images.plan(engine, store, base="python", official=official)
        assert "--base debian" in caught.value.advice
        plan = images.plan(engine, store, base="auto", official=official)
        assert plan.recipe.base.kind == "debian"
        assert plan.lines[0] == f"The engine cannot reach {official}, so Debian packages are used instead."
        wanted = images.plan(engine, store, base=f"{registry.repository}@sha256:{'1' * 64}", name=f"{NAME}-s")
        with pytest.raises(SetupError, match="could not be fetched"):
            image_build.carry_out(engine, store, wanted, quiet)
        name = fetched.image.name
        assert images.plan(engine, fetched.store, name=name, official=official).ready == fetched.image
        assert require(engine, fetched.store, name) == fetched.image
    finally:
        registry.start()


@pytest.fixture(scope="module")
def tiny_tar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root file system with one text file in it."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "hello").write_text(tempfile.gettempprefix())
    subprocess.run(["tar", "cf", folder / "tiny.tar", "-C", folder, "hello"], check=True)
    return folder / "tiny.tar"
