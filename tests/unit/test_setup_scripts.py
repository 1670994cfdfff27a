"""scripts/setup.sh and scripts/engine.sh, run for real on machines that lack something.

They are copied to a folder that every user may read. Where a machine must differ from this one, a test runs
in namespaces of its own: an engine started there has its own sockets, files and network, and ends with them.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
SAYS_WHAT_IS_MISSING = ("min in all", "Nothing is missing", "Missing: ", "Stopped: ")
FIRST_WORDS_WITHIN_S = 2.0

PRIVATE_MACHINE = """
set -e
for folder in /run /var/log /var/lib/docker; do mkdir -p $folder; mount -t tmpfs tmpfs $folder; done
mount --bind "$1" /mnt  # the checkout, out of reach of whatever else is mounted
cd /mnt
"""
"""An empty /run, and so no engine; no network. Processes end with the namespace."""


class Said(NamedTuple):
    status: int
    text: str
    first_words_after: float
    missing_named_after: float


def say(folder: Path, *command: str, env: dict[str, str] | None = None) -> Said:
    """Runs a command in ``folder`` without the caller's environment. Notes when it first speaks, and when it has said
    what is missing."""
    began = time.monotonic()
    clean = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=clean | (env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        text, spoke, named = "", float("inf"), float("inf")
        for line in process.stdout:
            text += line
            spoke = min(spoke, time.monotonic() - began)
            if any(words in line for words in SAYS_WHAT_IS_MISSING):
                named = min(named, time.monotonic() - began)
    return Said(process.returncode, text, spoke, named)


def on_private_machine(folder: Path, script: str) -> Said:
    return say(
        folder,
        *("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *("sh", "-c", PRIVATE_MACHINE + script, "sh", str(folder)),
    )


@pytest.fixture
def checkout() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pybox-setup-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(ROOT / "scripts", folder / "scripts")
        shutil.copy(ROOT / "pyproject.toml", folder)
        yield folder


@pytest.fixture
def listener(checkout: Path) -> Iterator[tuple[socket.socket, str]]:
    """A unix socket that takes connections and says nothing; and its address as DOCKER_HOST has it."""
    path = checkout / "docker.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        yield server, f"unix://{path}"


@pytest.fixture
def programs(checkout: Path) -> Path:
    """A folder for PATH with every program of the system, its Pythons excepted."""
    folder = checkout / "bin"
    folder.mkdir()
    for program in Path("/usr/bin").iterdir():
        if not program.name.startswith("python"):
            (folder / program.name).symlink_to(program)
    return folder


def old_python(programs: Path) -> None:
    """What another version's program would answer to the questions that set-up asks."""
    script = programs / "python3"
    script.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2 && exit 0\nexit 1\n')
    script.chmod(0o755)


def test_the_engine_of_this_machine_is_taken_as_it_is(checkout: Path) -> None:
    said = say(checkout, "sh", "scripts/engine.sh")
    assert (said.status, said.text) == (0, "")


def test_a_python_that_is_too_old_stops_with_the_command_to_type(checkout: Path, programs: Path) -> None:
    old_python(programs)
    said = say(checkout, "sh", "scripts/setup.sh", env={"PATH": str(programs)})
    assert said.status == 1
    assert said.first_words_after < FIRST_WORDS_WITHIN_S
    assert "Missing: Python 3.11 or newer (PATH has Python 3.9.2)" in said.text
    assert "apt-get install -y python3" in said.text
    assert not (checkout / ".venv").exists()


def test_a_newer_python_under_its_own_name_is_found(
    checkout: Path, programs: Path, listener: tuple[socket.socket, str]
) -> None:
    old_python(programs)
    (programs / "python3.12").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (programs / "python3.12").chmod(0o755)
    server, address = listener
    server.close()  # so that it stops at the engine, right after Python
    said = say(checkout, "sh", "scripts/setup.sh", env={"PATH": str(programs), "DOCKER_HOST": address})
    assert said.status == 1
    assert "Missing: Python" not in said.text
    assert f"DOCKER_HOST is {address}, and no engine answers there." in said.text


def test_a_python_without_venv_stops_an_ordinary_user_with_the_command_to_type(checkout: Path) -> None:
    version = subprocess.check_output(
        ["/usr/bin/python3", "-c", "import sys, sysconfig; print(sysconfig.get_path('stdlib'))"], text=True
    ).strip()
    # What Debian's python3-venv brings is ensurepip: hide it, in case it is installed here.
    hide = f"[ ! -d {version}/ensurepip ] || mount -t tmpfs tmpfs {version}/ensurepip\n"
    said = on_private_machine(checkout, hide + " ".join((*NOBODY, "sh", "scripts/setup.sh")))
    package = f"{Path(version).name}-venv"
    assert said.status == 1
    assert said.missing_named_after < FIRST_WORDS_WITHIN_S
    assert f"MB  Debian package {package}" in said.text
    assert "sudo apt-get install -y --no-install-recommends" in said.text.replace("sudo apt-get update && ", "")
    assert package in said.text.partition("Next:")[2]


def test_the_plan_says_what_is_fetched_how_many_mb_and_how_long(
    checkout: Path, listener: tuple[socket.socket, str]
) -> None:
    server, address = listener
    server.close()
    said = say(checkout, *NOBODY, "sh", "scripts/setup.sh", env={"DOCKER_HOST": address})
    assert said.first_words_after < FIRST_WORDS_WITHIN_S
    assert said.missing_named_after < FIRST_WORDS_WITHIN_S
    assert "55 MB  Python packages" in said.text
    assert "MB  the box image" in said.text
    assert "min in all" in said.text


def test_a_user_outside_the_docker_group_is_told_how_to_join_it(
    checkout: Path, listener: tuple[socket.socket, str]
) -> None:
    _, address = listener
    Path(address.removeprefix("unix://")).chmod(0o600)
    said = say(checkout, *NOBODY, "sh", "scripts/setup.sh", env={"DOCKER_HOST": address})
    assert said.status == 1
    assert said.first_words_after < FIRST_WORDS_WITHIN_S
    assert "sudo usermod -aG docker nobody" in said.text
    assert "newgrp docker" in said.text
    assert not (checkout / ".venv").exists()


def test_an_engine_that_never_answers_is_given_up_on(checkout: Path, listener: tuple[socket.socket, str]) -> None:
    _, address = listener
    began = time.monotonic()
    said = say(checkout, "sh", "scripts/engine.sh", env={"DOCKER_HOST": address})
    assert said.status == 1
    assert said.first_words_after < FIRST_WORDS_WITHIN_S
    assert "takes connections and does not answer" in said.text
    assert "sudo systemctl restart docker" in said.text
    assert time.monotonic() - began < 10


def test_something_else_at_the_engines_address_is_not_taken_for_one(checkout: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", NO_ENGINE, str(checkout / "docker.sock")], stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        server.stdout.readline()
        said = say(checkout, "sh", "scripts/engine.sh", env={"DOCKER_HOST": f"unix://{checkout}/docker.sock"})
    assert said.status == 1
    assert "does not answer as a container engine: odd HTTP/1.0 404 Not Found" in said.text


NO_ENGINE = """
import socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.bind(sys.argv[1])
    server.listen()
    print("ready", flush=True)
    connection, _ = server.accept()
    connection.recv(4096)
    connection.sendall(b"HTTP/1.0 404 Not Found\\r\\n\\r\\nno such page")
    connection.close()
"""


def test_an_engine_that_is_not_running_is_left_to_root_to_start(checkout: Path) -> None:
    said = on_private_machine(checkout, " ".join((*NOBODY, "sh", "scripts/engine.sh")))
    assert said.status == 1
    assert "The container engine is not running." in said.text
    assert "sudo sh scripts/engine.sh" in said.text


def test_an_engine_is_started_and_again_after_it_was_killed(checkout: Path) -> None:
    """Also when another program got the dead engine's number: dockerd takes that for an engine that lives."""
    said = on_private_machine(
        checkout,
        """
        sh scripts/engine.sh
        kill -KILL $(cat /run/docker.pid)
        kill -KILL $(cat /run/docker/containerd/containerd.pid) || true  # it may have ended with dockerd
        sleep 0.2
        [ -S /run/docker.sock ]
        sleep 60 &
        echo $! >/run/docker.pid
        echo $! >/run/docker/containerd/containerd.pid
        sh scripts/engine.sh
        echo "then: $(python3 scripts/engine_state.py)"
        """,
    )
    assert said.text.count("Starting dockerd") == 2
    assert "then: answers" in said.text
    assert said.status == 0


def test_an_engine_that_cannot_start_is_reported_with_the_end_of_its_log(checkout: Path) -> None:
    said = on_private_machine(
        checkout,
        """
        mkdir -p /etc/docker
        mount -t tmpfs tmpfs /etc/docker
        echo '{"debug": 7}' >/etc/docker/daemon.json
        sh scripts/engine.sh
        """,
    )
    assert said.status == 1
    assert "The end of its log:" in said.text
    assert "unable to configure the Docker daemon" in said.text
    assert "less /var/log/dockerd.log" in said.text


def test_an_engine_without_cpu_limits_stops_with_the_next_step(checkout: Path) -> None:
    said = on_private_machine(
        checkout,
        """
        if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
            echo cpuset io memory pids >/run/offered
            mount --bind /run/offered /sys/fs/cgroup/cgroup.controllers
        else
            umount /sys/fs/cgroup/cpu
        fi
        sh scripts/engine.sh
        """,
    )
    assert said.status == 1
    assert "The container engine cannot limit: CPU." in said.text
    assert "sudo apt-get install -y linux-image-amd64 && sudo reboot" in said.text
