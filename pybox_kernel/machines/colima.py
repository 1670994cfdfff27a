"""The private virtual machine on macOS: Colima, in a profile of PyBox's own, which shares nothing with this computer.

Colima 0.10 or newer: only that can do without shared folders and without forwarded ports. What was asked of it is not
believed: before each use the files are read in which Colima and Lima keep what is in force. This driver has not been
run on a Mac by this project; its tests are against a stand-in for the command.
"""

from __future__ import annotations

import os
import re
import selectors
import socket
import stat
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pybox_kernel.errors import EngineTimeout, SetupError
from pybox_kernel.machines.machine import LONGEST_SOCKET_PATH, Clock, MachineFacts, MachineState, Progress, silent

__all__ = ["PROFILE", "TOOL_FOLDERS", "ColimaMachine"]

PROFILE: Final = "pybox"
TOOL_FOLDERS: Final = (Path("/opt/homebrew/bin"), Path("/usr/local/bin"), Path("/opt/local/bin"))
PROCESSORS, MEMORY_GIB, DISK_GIB = 2, 2, 20
START_SECONDS: Final = 900.0
"""The first start fetches the machine's disk."""
STOP_SECONDS: Final = 90.0
ASK_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 2.0
LARGEST_FILE: Final = 1 << 20
KEPT_BYTES: Final = 65536
REPAIR: Final = f"Run `colima stop --force --profile {PROFILE}`, then `pybox-kernel vm start`."
ANEW: Final = f"Run `colima delete --profile {PROFILE}`, then `pybox-kernel vm start`, which makes it anew."
SETTINGS: Final = "its files say: no shared folders, no forwarded ports, no keys, no context of Docker's set to it"
BOOT_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

ASKED: Final = (
    *("--vm-type", "vz", "--runtime", "docker", "--mount", "none", "--port-forwarder", "none"),
    *("--activate=false", "--ssh-config=false", "--ssh-agent=false", "--network-address=false"),
    *("--cpu", str(PROCESSORS), "--memory", str(MEMORY_GIB), "--disk", str(DISK_GIB)),
)
OFF: Final[tuple[object, ...]] = (None, False, "", 0, [], {})
"""What a setting is in YAML that is not set, or off."""


class State(BaseModel):
    """What was found when it had started."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    boot_id: str = Field(pattern=f"^{BOOT_ID.pattern}$")
    kernel: str = Field(max_length=100)
    started_at: datetime


class ColimaMachine:
    """See ``machine.Machine``. ``folder`` is where PyBox keeps what it found; ``user_home`` has Colima's own."""

    def __init__(
        self, folder: Path, user_home: Path | None = None, tool_folders: Sequence[Path] = TOOL_FOLDERS
    ) -> None:
        self._state_file = folder / "colima.json"
        self._home = user_home or Path.home()
        self._tool_folders = tool_folders
        self._colima = self._home / ".colima"
        self._lima = self._colima / "_lima" / f"colima-{PROFILE}"
        self.socket = self._colima / PROFILE / "docker.sock"

    def status(self) -> MachineFacts:
        if not (self._lima / "lima.yaml").is_file():
            return self._facts("not made", "Make it: `pybox-kernel vm start`.")
        state = self._state()
        if not self._listens() or state is None:
            return self._facts("stopped", "")
        differing = self.differences()
        if differing:
            return self._facts("unreachable", f"its settings are not as asked for: {'; '.join(differing)}")
        return self._facts("running", SETTINGS)._replace(
            accelerator="vz",
            boot_id=state.boot_id,
            kernel=state.kernel,
            started_at=state.started_at,
            memory_mib=MEMORY_GIB * 1024,
            processors=PROCESSORS,
            shared_folders=0,
        )

    def _facts(self, state: MachineState, remark: str) -> MachineFacts:
        return MachineFacts("colima", PROFILE, state, f"unix://{self.socket}", remark=remark)

    def _state(self) -> State | None:
        try:
            return State.model_validate_json(self._state_file.read_bytes())
        except (OSError, ValidationError):
            return None

    def _listens(self) -> bool:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(LOOK_SECONDS)
            asked.connect(str(self.socket))
            return True
        return False

    def start(self, progress: Progress) -> MachineFacts:
        """See ``Machine``. Raises SetupError as well where its settings are not as asked for: then it is ended."""
        length = len(os.fsencode(self.socket))
        if length > LONGEST_SOCKET_PATH:
            raise SetupError(
                f"The path {self.socket} has {length} bytes, and a socket's may have {LONGEST_SOCKET_PATH} here.",
                "Use an account whose home folder has a shorter name.",
            )
        if self.status().state != "running":
            progress("Starting the private virtual machine (the first time Colima fetches its disk)")
            self._state_file.unlink(missing_ok=True)
            self._run(("start", "--profile", PROFILE, *ASKED), START_SECONDS, "start")
        differing = self.differences()
        if differing:
            self.stop()
            raise SetupError(f"Colima's settings are not as asked for: {'; '.join(differing)}.", ANEW)
        self._note()
        return self.status()

    def _note(self) -> None:
        said = self._ask("cat", "/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/osrelease").split()
        if len(said) != 2 or not BOOT_ID.fullmatch(said[0]):
            raise EngineTimeout("The virtual machine did not say which kernel runs in it.", REPAIR)
        state = State(boot_id=said[0], kernel=said[1][:100], started_at=datetime.now(UTC))
        self._state_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._state_file.write_text(state.model_dump_json(), encoding="utf-8")

    def stop(self, progress: Progress = silent) -> bool:
        runs = self._listens()
        self._state_file.unlink(missing_ok=True)
        if runs:
            progress("Ending the private virtual machine")
            try:
                self._run(("stop", "--profile", PROFILE), STOP_SECONDS, "end")
            except (EngineTimeout, SetupError):
                self._run(("stop", "--force", "--profile", PROFILE), STOP_SECONDS, "end")
        return runs

    def clock(self) -> Clock | None:
        before = time.time()
        try:
            there = float(self._ask("date", "+%s.%N"))
        except (EngineTimeout, SetupError, ValueError):
            return None
        taken = time.time() - before
        return Clock(there - before - taken / 2, taken / 2)

    def _ask(self, *command: str) -> str:
        return self._run(("ssh", "--profile", PROFILE, "--", *command), ASK_SECONDS, "answer")

    def _run(self, arguments: Sequence[str], seconds: float, doing: str) -> str:
        """What ``colima`` prints. Only folders of tools are on its path, and nothing of the environment reaches it."""
        environment = {
            "HOME": str(self._home),
            "USER": self._home.name,
            "PATH": ":".join([*map(str, self._tool_folders), "/usr/bin", "/bin", "/usr/sbin", "/sbin"]),
        }
        command = [str(self._tool("colima")), *arguments]
        self._tool("limactl")
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:  # fmt: skip
            try:
                out, complaint = said_by(process, seconds)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, 9)
                raise EngineTimeout(
                    f"The virtual machine did not {doing} within {seconds:g} s, as happens after a sleep.", REPAIR
                ) from None
        if process.returncode:
            last = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2][-300:]
            raise SetupError(f"Colima could not {doing} the virtual machine: {last or 'it said nothing'}.", REPAIR)
        return out.decode("utf-8", "replace")

    def _tool(self, name: str) -> Path:
        """Raises SetupError for one that is not there, or that another user could have changed."""
        for folder in self._tool_folders:
            found = folder / name
            if found.exists():
                real = found.resolve()
                for part in (folder, found.parent, real, real.parent):
                    status = part.stat()
                    others = stat.S_IWOTH | (stat.S_IWGRP if part == real else 0)
                    if status.st_uid not in (0, os.getuid()) or status.st_mode & others:
                        raise SetupError(f"{part} is not this user's alone to change.", "Install Colima with Homebrew.")
                return found
        raise SetupError(f"There is no {name}.", "Install Colima 0.10 or newer: `brew install colima docker`.")

    def differences(self) -> tuple[str, ...]:
        """Where what is in force, by the files that Colima and Lima wrote, is not what was asked for."""
        colima = [self._colima / PROFILE / "colima.yaml", self._lima / "colima.yaml"]
        found = [why for path in colima if path == colima[0] or path.exists() for why in wrong_in_colima(read(path))]
        # Lima adds these to what is in lima.yaml, for each of its machines, and writes it down nowhere.
        for name in ("override.yaml", "default.yaml"):
            if set_in(self._lima.parent / "_config" / name):
                found.append(f"Lima's own {name} has settings for it")
        return tuple(dict.fromkeys([*found, *wrong_in_lima(read(self._lima / "lima.yaml"), self.socket.parent)]))


def said_by(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bytes]:
    """The last that it printed, on either stream, once it has ended. What is in the machine may print without end.
    Raises TimeoutExpired."""
    limit = time.monotonic() + seconds
    last = {stream.fileno(): b"" for stream in (process.stdout, process.stderr) if stream is not None}
    with selectors.DefaultSelector() as ready:
        for stream in last:
            ready.register(stream, selectors.EVENT_READ)
        while ready.get_map():
            left = limit - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(process.args, seconds)
            for key, _ in ready.select(left):
                if data := os.read(key.fd, KEPT_BYTES):
                    last[key.fd] = (last[key.fd] + data)[-KEPT_BYTES:]
                else:
                    ready.unregister(key.fd)
    process.wait(max(0.0, limit - time.monotonic()))
    out, complaint = last.values()
    return out, complaint


def read(path: Path) -> dict[str, Any]:
    """Empty where it cannot be read, in which nothing is as asked for."""
    try:
        with path.open("rb") as file:
            found = yaml.load(file.read(LARGEST_FILE), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def set_in(path: Path) -> bool:
    """Whether anything is set there, or may be: it cannot be read, or is no list of settings."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return any(line.strip() and not line.lstrip().startswith(b"#") for line in text.splitlines())


def wrong_in_colima(found: dict[str, Any]) -> list[str]:
    """``mounts: []`` means the home folder to Colima, and null means none."""
    network, kubernetes = part(found, "network"), part(found, "kubernetes")
    wrong = {
        "the machine's type is not vz": found.get("vmType") != "vz",
        "its engine is not Docker": found.get("runtime") != "docker",
        "folders are shared": found.get("mounts") is not None,
        "ports are forwarded": found.get("portForwarder") != "none",
        "it is made Docker's active context": found.get("autoActivate") is not False,
        "it is written into ~/.ssh/config": found.get("sshConfig") not in OFF,
        "ssh keys are passed on": found.get("forwardAgent") not in OFF,
        "it has an address": any(network.get(name) not in OFF for name in ("address", "hostAddresses")),
        "Kubernetes runs in it": kubernetes.get("enabled") not in OFF,
        "its engine has settings of its own": found.get("docker") not in OFF,
        "scripts run in it at each start": found.get("provision") not in OFF,
        "its disk is another": found.get("diskImage") not in OFF,
        "variables are set in it": found.get("env") not in OFF,
    }
    return [what for what, is_so in wrong.items() if is_so]


def wrong_in_lima(found: dict[str, Any], folder: Path) -> list[str]:
    """What may come through are sockets, into ``folder``: the engine's."""
    ssh, forwards = part(found, "ssh"), found.get("portForwards") or []
    forwarded = [each for each in forwards if not (isinstance(each, dict) and each.get("ignore") is True)]
    wrong = {
        "the machine's type is not vz (Lima)": found.get("vmType") != "vz",
        "folders are shared (Lima)": found.get("mounts") not in OFF,
        "ssh keys are passed on (Lima)": any(ssh.get(name) not in OFF for name in ("forwardAgent", "forwardX11")),
        "this user's ssh keys open it (Lima)": ssh.get("loadDotSSHPubKeys") is not False,
        "it has an address (Lima)": found.get("networks") not in OFF,
        "ports are forwarded (Lima)": any(
            not isinstance(each, dict)
            or not each.get("guestSocket")
            or not str(each.get("hostSocket")).startswith(f"{folder}/")
            for each in forwarded
        ),
    }
    return [what for what, is_so in wrong.items() if is_so]


def part(found: dict[str, Any], name: str) -> dict[str, Any]:
    inner = found.get(name)
    return inner if isinstance(inner, dict) else {}
