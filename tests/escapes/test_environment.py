"""Nothing of this computer's environment reaches a box."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pybox_kernel.policy import STDLIB
from pybox_kernel.session import Session
from tests.cases import case, snippet
from tests.escapes.running import run_attack

pytestmark = pytest.mark.engine


@case("env-host")
def test_the_environment_has_exactly_the_documented_names(session: Session) -> None:
    ran = run_attack(session, snippet("env-host"), 5.0)
    assert ran.printed == f"{sorted(STDLIB.environment_names)}\n"
    values = run_attack(session, "import json, os; print(json.dumps(dict(os.environ)))", 5.0).answer
    assert values == dict(STDLIB.environment)


def test_proxies_and_secrets_of_this_computer_do_not_arrive(home: Path, tmp_path: Path, session: Session) -> None:
    proxies = {"default": {"httpProxy": "http://secret.invalid:1", "httpsProxy": "http://secret.invalid:1"}}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": proxies}))
    source = (
        "import os\nfound = [open('/proc/self/environ').read()]\n"
        "try: found.append(open('/proc/1/environ').read())\nexcept OSError: pass\n"
        "found.append(open('/proc/1/cmdline').read())\nprint('secret' in ''.join(found), repr(os.uname().nodename))"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pybox_kernel.cli", "run", "-"],
        input=source,
        env={
            **os.environ,
            "PYBOX_HOME": str(home),
            "DOCKER_CONFIG": str(tmp_path),
            "HTTP_PROXY": "http://secret.invalid:1",
            "NO_PROXY": "*",
            "SECRET_TOKEN": "secret",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False 'box'\n"


def test_standard_input_is_empty(session: Session) -> None:
    source = "import sys\nprint(repr(sys.stdin.read()))\ntry: input()\nexcept EOFError: print('none')"
    assert run_attack(session, source, 5.0).printed == "''\nnone\n"
