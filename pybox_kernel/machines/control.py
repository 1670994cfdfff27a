"""The one line into the machine: ssh over a serial port, which carries its engine's socket and a few questions.

Paths are relative to the machine's ``run`` folder, so that none has to be quoted for ssh or a shell. Only the machine
with the host key that was made for it is talked to, and it lets in only the key that was made for this user.
"""

from __future__ import annotations

import os
import re
import select
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from pybox_kernel.machines.machine import Clock

__all__ = [
    "ENGINE_SOCKET",
    "Inside",
    "Lost",
    "connect",
    "disconnect",
    "engine_answers",
    "look_inside",
    "set_clock",
    "turn_off",
]

ENGINE_SOCKET: Final = "docker.sock"
NAME: Final = "pybox"
QUESTIONS: Final = "cat /proc/sys/kernel/random/boot_id; uname -r; while read -r _; do echo $EPOCHREALTIME; done"
TIMES_ASKED: Final = 5
SET: Final = "echo ready; read -r now; date -u -s @$now >/dev/null; echo done"
BOOT_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RELEASE: Final = re.compile(r"[A-Za-z0-9._+~-]{1,100}")
MOMENT: Final = re.compile(r"[0-9]{1,12}\.[0-9]{6}")
RETRY_SECONDS: Final = 0.3

OPTIONS: Final = (
    "BatchMode=yes",
    "ExitOnForwardFailure=yes",
    "GlobalKnownHostsFile=none",
    "HostKeyAlias=pybox",
    "IdentitiesOnly=yes",
    "IdentityAgent=none",
    "ProxyCommand=socat - UNIX-CONNECT:ssh.sock",
    "StreamLocalBindMask=0177",
    "StreamLocalBindUnlink=yes",
    "StrictHostKeyChecking=yes",
    "UserKnownHostsFile=../known_hosts",
)


class Lost(Exception):
    """The machine does not answer, or not as it should. The text is for a person."""


class Inside(NamedTuple):
    boot_id: str
    kernel: str
    clock: Clock


def connect(run: Path, seconds: float, alive: Callable[[], bool]) -> None:
    """Connects the machine's engine to ``run/docker.sock``. Tries as long as the machine is ``alive``. Raises Lost."""
    limit = time.monotonic() + seconds
    line = ["ssh", "-F", "none", "-f", "-N", "-M", "-S", "ctl", "-i", "../key", "-l", "root"]
    line += [word for option in OPTIONS for word in ("-o", option)]
    line += ["-L", f"./{ENGINE_SOCKET}:/run/docker.sock"]
    for name in ("ctl", ENGINE_SOCKET):
        (run / name).unlink(missing_ok=True)
    while True:
        left = limit - time.monotonic()
        if not alive():
            raise Lost("the machine ended while it was starting")
        if left <= 0:
            raise Lost(f"the machine did not answer within {seconds:.0f} s")
        with (run / "ssh.log").open("wb") as log:  # the connection keeps it open: a pipe would never end
            try:
                done = subprocess.run(
                    [*line, "-o", f"ConnectTimeout={max(1, round(left))}", NAME],
                    cwd=run,
                    env=environment(run),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    timeout=left + 5,
                    check=False,
                    # ssh leaves this terminal by itself, its ProxyCommand does not: a Ctrl-C later would end that.
                    start_new_session=True,
                )
            except subprocess.TimeoutExpired:
                continue
            except OSError as error:
                raise Lost(f"ssh could not be started ({error.strerror})") from error
        if done.returncode == 0:
            return
        time.sleep(RETRY_SECONDS)


def environment(run: Path) -> dict[str, str]:
    path = os.environ.get("PATH", "/usr/bin:/bin")
    return {"PATH": path, "SHELL": "/bin/sh", "HOME": str(run), "LC_ALL": "C"}


def disconnect(run: Path) -> None:
    """Ends the connection, if there is one."""
    try:
        subprocess.run(
            ["ssh", "-F", "none", "-S", "ctl", "-O", "exit", NAME],
            cwd=run,
            env=environment(run),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return


def asked(run: Path, command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["ssh", "-F", "none", "-S", "ctl", "-o", "ProxyCommand=false", NAME, command],
        cwd=run,
        env=environment(run),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def look_inside(run: Path, seconds: float) -> Inside:
    """Which boot of which kernel this is, and its clock: the quickest of a few answers says most. Raises Lost."""
    try:
        return looked_inside(run, seconds)
    except OSError as error:  # what could not be said any more breaks once again as the pipe is closed
        raise Lost("the connection to the machine broke") from error


def looked_inside(run: Path, seconds: float) -> Inside:
    best: Clock | None = None
    with asked(run, QUESTIONS) as talk:
        watch = Watch(talk, seconds)
        try:
            boot_id, kernel = watch.line(), watch.line()
            for _ in range(TIMES_ASKED):
                began, counted = time.time(), time.monotonic()
                watch.say("\n")
                said = watch.line()
                took = time.monotonic() - counted
                if not MOMENT.fullmatch(said):
                    raise Lost("the machine did not tell its time")
                clock = Clock(round(float(said) - (began + took / 2), 4), round(took / 2, 4))
                if best is None or clock.within_seconds < best.within_seconds:
                    best = clock
        finally:
            talk.kill()
    if best is None or not BOOT_ID.fullmatch(boot_id) or not RELEASE.fullmatch(kernel):
        raise Lost("the machine did not tell what runs in it")
    return Inside(boot_id, kernel, best)


def set_clock(run: Path, seconds: float) -> None:
    """Sets the machine's clock to this computer's: a few hundredths of a second behind it, or more where the machine
    is emulated. Raises Lost."""
    with asked(run, SET) as talk:
        watch = Watch(talk, seconds)
        try:
            watch.line()
            watch.say(f"{time.time():.6f}\n")
            watch.line()
        finally:
            talk.kill()


class Watch:
    """Lines of a process, each within what is left of a time. Raises Lost."""

    def __init__(self, talk: subprocess.Popen[str], seconds: float) -> None:
        assert talk.stdin is not None
        assert talk.stdout is not None
        self._in, self._out = talk.stdin, talk.stdout.fileno()
        self._limit = time.monotonic() + seconds
        self._kept = b""

    def say(self, text: str) -> None:
        try:
            self._in.write(text)
            self._in.flush()
        except OSError as error:
            raise Lost("the connection to the machine broke") from error

    def line(self) -> str:
        while b"\n" not in self._kept:
            left = self._limit - time.monotonic()
            poll = select.poll()
            poll.register(self._out, select.POLLIN)
            if left <= 0 or not poll.poll(left * 1000):
                raise Lost("the machine does not answer")
            data = os.read(self._out, 4096)
            if not data or len(self._kept) > 4096:
                raise Lost("the connection to the machine broke")
            self._kept += data
        found, _, self._kept = self._kept.partition(b"\n")
        return found.decode("ascii", "replace")


def turn_off(run: Path) -> None:
    """Asks the machine to stop its engine and write everything to its disk. It ends by itself."""
    with asked(run, "kill -TERM 1") as talk:
        try:
            talk.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            talk.kill()


def engine_answers(path: Path, seconds: float) -> bool:
    """Whether an engine says its version there. A socket alone says nothing: it is there before anything serves."""
    limit, said = time.monotonic() + seconds, b""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
            talk.settimeout(seconds)
            talk.connect(os.fspath(path))
            talk.sendall(b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            while b"\n" not in said and len(said) < 4096 and (left := limit - time.monotonic()) > 0:
                talk.settimeout(left)
                if not (data := talk.recv(4096)):
                    return False
                said += data
    except OSError:
        return False
    return said.split(b" ", 2)[1:2] == [b"200"]
