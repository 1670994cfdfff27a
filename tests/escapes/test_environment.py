"""Nothing of this computer's environment, settings or files reaches a box."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pybox_kernel.images.store import RecordedImage
from pybox_kernel.policy import STDLIB
from tests.cases import case, snippet
from tests.escapes.running import Ran

pytestmark = pytest.mark.engine


@case("env-host")
def test_the_environment_has_exactly_the_documented_names(attack: Callable[..., Ran]) -> None:
    assert attack(snippet("env-host")).printed == f"{sorted(STDLIB.environment_names)}\n"


@case("env-host")
@pytest.mark.parametrize(
    "read",
    [
        "dict(os.environ)",
        "split(open('/proc/self/environ').read().split('\\0'))",
        "split(subprocess.run(['env'], capture_output=True, text=True).stdout.splitlines())",
        "split(subprocess.run('env -u PWD -u OLDPWD -u SHLVL -u _ env', shell=True, capture_output=True, text=True)"
        ".stdout.splitlines())",
    ],
    ids=["of Python", "as the kernel has it", "of a child", "of a shell"],
)
def test_the_environment_has_exactly_the_documented_values(read: str, attack: Callable[..., Ran]) -> None:
    source = f"""
import json, os, subprocess
def split(lines): return dict(line.split("=", 1) for line in lines if line and not line.startswith("_="))
print(json.dumps({read}))
"""
    assert attack(source).answer == dict(STDLIB.environment)


# Prints all that a program can read which the engine or the supervisor could have put something into.
READ_ALL = """
import json, os, sys
found = {"sys": [sys.argv, sys.path, sys.flags.isolated, os.getcwd(), os.uname().nodename]}
for process in [name for name in os.listdir("/proc") if name.isdigit()]:
    for name in ("environ", "cmdline", "status", "cgroup", "comm"):
        try: found[f"/proc/{process}/{name}"] = open(f"/proc/{process}/{name}").read()
        except OSError: pass
for top in ("/etc", "/box", "/tmp", "/root", "/home", "/run", "/var", "/opt", "/srv", "/mnt", "/media", "/dev/shm"):
    for folder, _, names in os.walk(top):
        for name in names:
            path = folder + "/" + name
            if path == "/tmp/cell.py" or not os.path.isfile(path): continue
            try: found[path] = open(path, errors="replace").read(100000)
            except OSError: pass
print(json.dumps([len(found), [name for name, text in found.items() if any(m in str(text) for m in MARKS)]]))
"""


@case("env-host")
def test_no_secret_proxy_or_name_of_this_computer_is_anywhere_in_a_box(
    home: Path, tmp_path: Path, box_image: RecordedImage
) -> None:
    secret = f"secret-{uuid.uuid4().hex}"
    proxy = f"http://{secret}.invalid:3128"
    proxies = dict.fromkeys(("httpProxy", "httpsProxy", "ftpProxy", "noProxy", "allProxy"), proxy)
    headers = {"X-Secret": secret}
    config: dict[str, Any] = {"proxies": {"default": proxies}, "HttpHeaders": headers, "detachKeys": "ctrl-q"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    names = ["HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "SECRET_TOKEN", "TERM", "PYTHONSTARTUP"]
    environment = {
        **os.environ,
        **dict.fromkeys([*names, *(name.lower() for name in names)], proxy),
        "PYBOX_HOME": str(home),
        "DOCKER_CONFIG": str(tmp_path),
        "NO_PROXY": "*",
    }
    # The secret in two halves: the program's own text is in the box too.
    half = len(secret) // 2
    lines = [line.split() for line in Path("/etc/resolv.conf").read_text().splitlines()]
    servers = [line[1] for line in lines if line[:1] == ["nameserver"]]
    marks = [server for server in servers if not server.startswith("127.")]
    marks += [str(home), str(tmp_path), *([platform.node()] if len(platform.node()) > 4 else [])]
    source = f"MARKS = [{secret[:half]!r} + {secret[half:]!r}, *{marks!r}]\n{READ_ALL}"
    done = subprocess.run(
        [sys.executable, "-m", "pybox_kernel.cli", "run", "-"],
        input=source,
        env=environment,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    read, leaked = json.loads(done.stdout)
    assert read > 20
    assert leaked == []


def test_the_search_for_secrets_finds_what_is_there(attack: Callable[..., Ran]) -> None:
    ran = attack("open('/box/note', 'w').write('find me')\nMARKS = ['find me', 'HOME=/box']\n" + READ_ALL)
    assert "/box/note" in ran.answer[1]
    assert "/proc/1/cmdline" in ran.answer[1]


def test_a_box_has_the_name_and_hosts_of_every_box(attack: Callable[..., Ran]) -> None:
    source = """
import json, os
files = [open("/etc/" + name).read() for name in ("hostname", "hosts", "resolv.conf")]
print(json.dumps([os.uname().nodename, *files]))
"""
    node, name, hosts, resolver = attack(source).answer
    assert node == "box"
    assert name == "box\n"
    own = {"127.0.0.1", "::1", "fe00::0", "ff00::0", "ff02::1", "ff02::2"}
    assert {line.split()[0] for line in hosts.splitlines()} <= own
    servers = [line.split()[1] for line in resolver.splitlines() if line.startswith("nameserver")]
    assert servers == ["127.0.0.1"]
    assert "search" not in resolver


@pytest.mark.parametrize(
    "path", ["/etc/shadow", "/root", "/proc/kcore", "/var/run/docker.sock", "/host", "/mnt/host", "/proc/1/environ"]
)
def test_files_of_the_computer_cannot_be_read(path: str, attack: Callable[..., Ran]) -> None:
    source = f"""
import os
def read(path): return os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(64)
try: print(read({path!r}))
except OSError as error: print(type(error).__name__)
"""
    assert attack(source).printed in ("PermissionError\n", "FileNotFoundError\n", "b''\n")


def test_each_run_begins_in_empty_folders(attack: Callable[..., Ran]) -> None:
    source = """
import json, os
places = ("/box", "/tmp", "/dev/shm")
found = {place: os.listdir(place) for place in places}
for place in places: open(place + "/left", "w").write("behind")
print(json.dumps([os.getcwd(), found]))
"""
    for _ in range(2):
        assert attack(source).answer == ["/box", {"/box": [], "/tmp": ["cell.py"], "/dev/shm": []}]
