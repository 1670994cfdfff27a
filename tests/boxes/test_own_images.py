"""A person's own images, from packages that the tests make: built, used, made again, removed; hostile ones too."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from pybox_kernel.boxes.journal import Journal
from pybox_kernel.cli import main
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.engine_choice import DEFAULT_ADDRESS
from pybox_kernel.errors import SetupError
from pybox_kernel.images import build as image_build
from pybox_kernel.images import plan as images
from pybox_kernel.images.offers import own_offer
from pybox_kernel.images.package_locks import parse_lock
from pybox_kernel.images.recipes import program_files
from pybox_kernel.images.steps import BUILD_LABEL, OFFER
from pybox_kernel.images.store import ImageStore, RecordedImage, require
from pybox_kernel.policy import policy_for
from pybox_kernel.seal.spec import PROGRAMS, PYTHON
from pybox_kernel.sessions.session import Session
from tests.packages import Index

pytestmark = pytest.mark.engine

NAME = f"trial-own-{os.getpid()}"
SMALL = {"small/__init__.py": "from small.words import hello\n", "small/words.py": "def hello(): return 'hello'\n"}


def left_of(engine: DockerEngine, name: str) -> list[str]:
    """Every image and container in the engine that a build of an image of this name has made."""
    found = [*engine.images([BUILD_LABEL]), *engine.containers([BUILD_LABEL])]
    return [item.id for item in found if item.labels[BUILD_LABEL].startswith(f"{name}-")]


class Shelf:
    """A state folder with the stdlib image in it, an index of packages, and images that are removed at the end."""

    def __init__(self, engine: DockerEngine, home: Path, index: Index, work: Path) -> None:
        self.engine, self.home, self.index, self.work = engine, home, index, work
        self.store = ImageStore(home)

    def build(self, *packages: str, name: str = NAME, preload: tuple[str, ...] = ()) -> RecordedImage:
        offer = own_offer(parse_lock(self.index.lock(*packages).encode()), preload)
        plan = images.plan(self.engine, self.store, name=name, offer=offer)
        return image_build.carry_out(self.engine, self.store, plan, print)

    def refuse(self, *packages: str, preload: tuple[str, ...] = ()) -> SetupError:
        """A build that must fail, and leave nothing in the engine, in the record or on the disk."""
        before = self.store.load()
        with pytest.raises(SetupError) as caught:
            self.build(*packages, preload=preload)
        self.assert_nothing_left()
        assert self.store.load() == before
        return caught.value

    def assert_nothing_left(self) -> None:
        assert left_of(self.engine, NAME) == []
        assert list(self.work.iterdir()) == []
        assert not self.store.lock_file(NAME).exists()

    def printed(self, source: str, name: str = NAME) -> str:
        with Session(Journal(self.home)) as session:
            result = session.run(source, policy=policy_for(name), deadline_seconds=10)
        assert result.receipt.ok, (result.error, result.receipt.problem)
        return result.stdout


@pytest.fixture
def shelf(
    engine: DockerEngine, box_image: RecordedImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shelf]:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir(mode=0o700)
    work.mkdir()
    monkeypatch.setenv("TMPDIR", str(work))
    monkeypatch.setattr("tempfile.tempdir", str(work))
    index = Index(tmp_path / "index")
    index.use(monkeypatch)
    found = Shelf(engine, home, index, work)
    found.store.record(box_image)
    yield found
    for recorded in found.store.load().values():
        if recorded.name != "stdlib":
            engine.remove_image(recorded.reference)


# Built and used


def test_an_own_image_has_its_packages_and_is_removed_without_a_trace_once_nothing_uses_it(shelf: Shelf) -> None:
    shelf.index.add_wheel("small", SMALL)
    made = shelf.build("small", preload=("small",))
    assert made.base_image == shelf.store.load()["stdlib"].base_image
    assert [(pin.name, pin.version) for pin in made.recipe.offer.pins] == [("small", "1.0")]  # type: ignore[union-attr]
    assert list(shelf.work.iterdir()) == []
    source = "import sys; had = 'small' in sys.modules; import small; print(had, small.hello(), small.__file__)"
    assert shelf.printed(source) == f"True hello {OFFER}/packages/small/__init__.py\n"
    assert require(shelf.engine, shelf.store, NAME) == made
    user = f"pybox-{NAME}-user"
    try:
        shelf.engine.create(user, {"Image": made.id, "Cmd": ["true"]})
        with pytest.raises(SetupError, match="could not be removed"):
            image_build.remove(shelf.engine, shelf.store, made, print)
        assert shelf.store.load()[NAME] == made
    finally:
        shelf.engine.remove(user)
    image_build.remove(shelf.engine, shelf.store, made, print)
    shelf.assert_nothing_left()
    assert list(shelf.store.load()) == ["stdlib"]
    assert shelf.engine.image(made.base_image.id)


def test_an_image_is_made_again_from_the_recorded_recipe_and_another_lock_takes_its_place(shelf: Shelf) -> None:
    shelf.index.add_wheel("small", SMALL)
    made = shelf.build("small", preload=("small.words",))
    shelf.engine.remove_image(made.reference)
    with pytest.raises(SetupError, match="no longer in the container engine") as caught:
        require(shelf.engine, shelf.store, NAME)
    assert caught.value.advice == f"Run `pybox-kernel image build {NAME} --yes`."
    plan = images.plan(shelf.engine, shelf.store, name=NAME)
    again = image_build.carry_out(shelf.engine, shelf.store, plan, print)
    assert again.recipe == made.recipe
    assert left_of(shelf.engine, NAME) == [again.id]

    shelf.index.add_wheel("other", {"other.py": ""})
    other = shelf.build("small", "other")
    assert other.recipe_sha256 != made.recipe_sha256
    assert left_of(shelf.engine, NAME) == [other.id]
    assert parse_lock(shelf.store.lock_file(NAME).read_bytes()) == other.recipe.offer.lock  # type: ignore[union-attr]


# What fails leaves nothing


def test_of_two_builds_of_one_name_at_once_one_image_is_left(shelf: Shelf) -> None:
    shelf.index.add_wheel("small", SMALL)
    offer = own_offer(parse_lock(shelf.index.lock("small").encode()))
    plan = images.plan(shelf.engine, shelf.store, name=NAME, offer=offer)

    def meanwhile(step: str) -> None:
        if step == "Looking into it":
            image_build.carry_out(shelf.engine, shelf.store, plan, print)

    made = image_build.carry_out(shelf.engine, shelf.store, plan, meanwhile)
    assert shelf.store.load()[NAME] == made
    assert left_of(shelf.engine, NAME) == [made.id]


def test_other_bytes_than_the_locked_ones_leave_nothing(shelf: Shelf) -> None:
    shelf.index.add_wheel("small", SMALL)
    shelf.index.hashes["small"] = "0" * 64
    assert "the hashes differ" in shelf.refuse("small").message


def test_a_module_that_cannot_be_imported_is_named_and_leaves_nothing(shelf: Shelf) -> None:
    shelf.index.add_wheel("small", {"small.py": "import not_there\n"})
    error = shelf.refuse("small", preload=("small",))
    assert "small cannot be imported: ModuleNotFoundError: No module named 'not_there'" in error.message


@pytest.mark.parametrize(
    ("step", "number"),
    [("Fetching 1 Python package", signal.SIGTERM), ("Building the box image", signal.SIGHUP),
     ("Building the box image", signal.SIGINT)],
)  # fmt: skip
def test_ctrl_c_and_a_closed_terminal_leave_nothing(shelf: Shelf, step: str, number: signal.Signals) -> None:
    shelf.index.add_wheel("small", {"small.py": "import time; time.sleep(60)\n"})
    (shelf.home / "lock.txt").write_text(shelf.index.lock("small"))
    command = ["image", "build", NAME, "--lock", str(shelf.home / "lock.txt"), "--preload", "small", "--yes"]
    program = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from pybox_kernel.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "PYBOX_HOME": str(shelf.home)}
    process = subprocess.Popen(
        [sys.executable, "-c", program, *command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        while not (line := process.stdout.readline()).startswith(step):
            assert line, process.communicate()[1]
        process.send_signal(number)
        _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert complaint == "pybox-kernel: Interrupted.\n"
    (shelf.home / "lock.txt").unlink()
    shelf.assert_nothing_left()
    assert list(shelf.store.load()) == ["stdlib"]


def test_what_a_killed_build_left_is_removed_by_the_next(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.index.add_wheel("small", {"small.py": "import time; time.sleep(60)\n"})
    shelf.index.add_wheel("other", SMALL)
    (shelf.home / "lock.txt").write_text(shelf.index.lock("small"))
    command = ["image", "build", NAME, "--lock", str(shelf.home / "lock.txt"), "--preload", "small", "--yes"]
    with subprocess.Popen(
        [sys.executable, "-m", "pybox_kernel.cli", *command],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYBOX_HOME": str(shelf.home)},
    ) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("Building the box image"):
            assert process.poll() is None
        for _ in range(100):
            if left_of(shelf.engine, NAME):
                break
            time.sleep(0.1)
        process.kill()
    assert left_of(shelf.engine, NAME)
    said: list[str] = []
    image_build.clear_killed(shelf.engine, shelf.store, said.append)
    assert said == ["Removing what a build that was killed has left"]
    assert left_of(shelf.engine, NAME) == []
    image_build.clear_killed(shelf.engine, shelf.store, said.append)
    assert len(said) == 1
    made = shelf.build("other")
    image_build.clear_killed(shelf.engine, shelf.store, pytest.fail)
    assert left_of(shelf.engine, NAME) == [made.id]


# Packages that mean harm

# Runs wherever the package is imported. What it could do is told through the one file that a build takes over.
INTRUDER = f"""
import json, os, socket
did = {{"uid": os.getuid(), "groups": os.getgroups()}}
for what, path in (("programs", "{PROGRAMS}/warden.py"), ("python", "/usr/local/bin/x"), ("offer", "{OFFER}/preload"),
                   ("stdlib", os.__file__), ("etc", "/etc/passwd")):
    try:
        open(path, "a").close()
        did[what] = "changed"
    except OSError as error:
        did[what] = error.errno
try:
    socket.create_connection(("1.1.1.1", 53), 1).close()
    did["network"] = True
except OSError:
    did["network"] = False
try:
    with open(os.path.join(os.environ["MPLCONFIGDIR"], "fontlist-told.json"), "w") as file:
        json.dump(did, file)
    os.symlink("/etc/shadow", os.path.join(os.environ["HOME"], "other.json"))
except OSError:
    pass
"""


def test_a_package_changes_nothing_of_the_image_while_it_is_built(shelf: Shelf) -> None:
    shelf.index.add_wheel("small", {"small.py": INTRUDER})
    made = shelf.build("small", preload=("small",))
    told = json.loads(shelf.printed(f"print(open('{OFFER}/matplotlib/fontlist-told.json').read())"))
    assert told.pop("uid") == 65534
    assert told.pop("groups") == []
    assert told.pop("network") is False
    assert set(told.values()) <= {13, 30}
    assert len(told) == 5
    assert shelf.printed(f"import os; print(os.listdir('{OFFER}/matplotlib'))") == "['fontlist-told.json']\n"
    assert [program.name for program in made.recipe.programs] == [file.name for file in program_files()]


# A daemon that outlives the import and tries to get at PyBox's own part: while an image is built, and in every box.
DAEMON = f"""
import os, signal, sys, threading
def attack():
    for path in ("{PROGRAMS}/warden.py", "{PROGRAMS}/runner.py", "{PYTHON}", "{OFFER}/preload"):
        try:
            with open(path, "w") as file:
                file.write("print('mine')")
        except OSError:
            pass
        try:
            os.unlink(path)
        except OSError:
            pass
    for folder in ("{PROGRAMS}/__pycache__", "{OFFER}/packages", "/tmp/pybox-offer", "/box", "/tmp"):
        try:
            os.chmod(folder, 0o777)
        except OSError:
            pass
        for name in ("json.py", "warden.cpython-311.pyc", "fontlist-x.json"):
            try:
                os.symlink("/etc/shadow", os.path.join(folder, name))
            except OSError:
                pass
    for signum in (signal.SIGSTOP, signal.SIGKILL):
        try:
            os.kill(1, signum)
        except OSError:
            pass
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for signum in range(1, 65):
            try:
                signal.signal(signum, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            attack()
    os._exit(0)
os.wait()
"""


def in_box_programs(shelf: Shelf, image: RecordedImage) -> dict[str, bytes]:
    """As the engine copies them out of the image; nothing of the image runs for it."""
    api = docker.APIClient(base_url=DEFAULT_ADDRESS, version="1.41")
    name = f"pybox-{NAME}-copy"
    try:
        shelf.engine.create(name, {"Image": image.id, "Cmd": ["true"]})
        stream, _ = api.get_archive(name, PROGRAMS)
        with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
            files = {member.name.partition("/")[2]: tar.extractfile(member) for member in tar if member.isfile()}
            return {path: file.read() for path, file in files.items() if file is not None}
    finally:
        shelf.engine.remove(name)
        api.close()


def test_a_daemon_of_a_package_changes_no_in_box_program_in_the_build_nor_in_a_box(shelf: Shelf) -> None:
    clean = in_box_programs(shelf, shelf.store.load()["stdlib"])
    shelf.index.add_wheel("small", {"small.py": DAEMON})
    made = shelf.build("small", preload=("small",))
    found = in_box_programs(shelf, made)
    assert {name: data for name, data in found.items() if name.endswith(".py")} == {
        program.name: program.content for program in program_files()
    }
    assert found.keys() == clean.keys()
    with Session(Journal(shelf.home)) as session:
        receipt = session.run("print('words')\nwhile True: pass", deadline_seconds=1, policy=policy_for(NAME)).receipt
    assert receipt.observed.seal.before_start
    assert receipt.observed.end.how == "deadline"
    assert receipt.observed.meters.ran_seconds == pytest.approx(1, abs=0.3)
    assert receipt.observed.box.removed


CHANGES = f"""
import glob, marshal, os
compiled = glob.glob("{PROGRAMS}/__pycache__/runner.*")[0]
with open(compiled, "r+b") as file:
    file.seek(16)
    file.write(marshal.dumps(compile("pass", "runner.py", "exec")))
open("{PROGRAMS}/json.py", "w").close()
os.chmod("{PROGRAMS}/warden.py", 0o666)
"""


def test_an_image_whose_in_box_programs_are_others_is_not_taken(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.index.add_wheel("small", SMALL)
    command, steps = json.dumps(["python3", "-c", CHANGES]), image_build.dockerfile
    monkeypatch.setattr(image_build, "dockerfile", lambda *of, **more: f"{steps(*of, **more)}RUN {command}\n")
    message = shelf.refuse("small").message
    assert message.endswith("are not those that PyBox put there: json.py, runner.py, warden.py.")


def test_a_package_runs_nothing_before_it_is_imported_and_stands_behind_the_standard_library(shelf: Shelf) -> None:
    files = {
        "small.py": "",
        "sitecustomize.py": "print('started')\n",
        "usercustomize/__init__.py": "print('started')\n",
        "small.pth": "import os; os._exit(8)\n",
        "json/__init__.py": "raise SystemExit(9)\n",
        "os.py": "raise SystemExit(10)\n",
        "warden.py": "raise SystemExit(11)\n",
    }
    shelf.index.add_wheel("small", files)
    shelf.build("small")
    source = (
        "import json, os, small, subprocess\nprint(subprocess.run(['python3', '-c', 'print(1)'], capture_output=True))"
    )
    assert "returncode=0, stdout=b'1\\n', stderr=b''" in shelf.printed(source)


def test_what_a_package_prints_or_leaves_running_at_the_start_is_not_the_programs(shelf: Shelf) -> None:
    shelf.index.add_wheel(
        "small",
        {
            "small.py": "import os, sys\nprint('noise')\nos.write(2, b'noise')\nsys.stderr.write('noise')\n",
            "broken.py": "import os\nif os.getuid() >= 10000 and os.getuid() < 60000: raise SystemExit(3)\n",
        },
    )
    shelf.build("small", preload=("small", "broken"))
    with Session(Journal(shelf.home)) as session:
        result = session.run("import small; print('words')", policy=policy_for(NAME))
    assert result.receipt.ok
    assert (result.stdout, result.stderr) == ("words\n", "")


# The commands


def test_the_commands_make_list_use_and_remove_an_image(shelf: Shelf, tmp_path: Path) -> None:
    shelf.index.add_wheel("small", SMALL, needs=("other",))
    shelf.index.add_wheel("other", {"other.py": ""})
    wanted, program = tmp_path / "requirements.txt", tmp_path / "program.py"
    wanted.write_text("small\n")
    program.write_text("import small; print(small.hello())\n")
    environment = {**os.environ, "PYBOX_HOME": str(shelf.home)}

    def said(*arguments: str, status: int = 0) -> str:
        command = [sys.executable, "-m", "pybox_kernel.cli", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    planned = said("image", "build", NAME, "--from", str(wanted))
    assert f"will be made with the 1 package of {wanted}, and all they need:" in planned
    assert "Nothing was fetched and no image was made." in planned
    assert list(shelf.store.load()) == ["stdlib"]
    made = said("image", "build", NAME, "--from", str(wanted), "--yes")
    assert "2 Python packages: other 1.0, small 1.0, from pip's package index" in made
    assert "is ready" in made
    assert "There is nothing to do." in said("image", "build", NAME)
    lock = shelf.store.lock_file(NAME)
    assert "There is nothing to do." in said("image", "build", NAME, "--lock", str(lock))
    [line] = [line for line in said("image", "list").splitlines() if line.startswith(NAME)]
    assert line.split()[2] == "2"
    assert said("run", "--image", NAME, str(program)).startswith("hello\n")
    assert f"✓ box image {NAME}: Python" in said("doctor", status=0)
    assert "is removed" in said("image", "rm", NAME)
    assert NAME not in said("image", "list")
    shelf.assert_nothing_left()
    missing = said("run", "--image", NAME, str(program), status=125)
    assert "has not been made yet" in missing


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["build", "Data"], "cannot be called 'Data'"),
        (["build", "../x"], "cannot be called"),
        (["build", "a" * 33], "cannot be called"),
        (["build", "stdlib"], "made by another command"),
        (["build", "data", "--lock", "x"], "is fixed"),
        (["build", "class", "--preload", "x"], "is fixed"),
        (["build", "mine"], "is not known"),
        (["build", "mine", "--lock", "/nonexistent"], "/nonexistent: No such file"),
        (["build", "mine", "--lock", "{bad}"], "Line 2 of the lock: '-r x' is an option"),
        (["build", "mine", "--from", "{bad}"], "Line 2 of the list of packages"),
        (["rm", "stdlib"], "'stdlib' stays"),
        (["rm", "mine"], "no image called 'mine'"),
    ],
)
def test_a_wrong_wish_is_refused_before_anything_is_made(
    shelf: Shelf,
    arguments: list[str],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PYBOX_HOME", str(shelf.home))
    bad = shelf.home / "bad.txt"
    bad.write_text(f"# a lock\n-r x\nsmall==1 --hash=sha256:{'0' * 64}\n")
    assert main(["image", *(argument.format(bad=bad) for argument in arguments)]) == 2
    out, err = capsys.readouterr()
    assert why in err
    assert out == ""
