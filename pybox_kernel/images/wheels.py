"""Python packages for a box, fetched on this computer by its own pip, from the indexes in pip's own configuration.

Only wheels are taken: they are unpacked, and no code of a package runs here. A box never has a network for this.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from pybox_kernel.errors import OptionError, SetupError
from pybox_kernel.images.long_command import TookTooLong, follow
from pybox_kernel.images.package_locks import MOST_PACKAGES, Lock, LockedPackage, lock_of, normal_name

__all__ = ["Target", "check_pip", "fetch", "make_lock", "read_requirements"]

LONGEST_SECONDS: Final = 900.0
LARGEST_REPORT: Final = 64 * 1024 * 1024
OLDEST_GLIBC: Final = 17
"""manylinux2014, the oldest that wheels for a Python of today are made for."""
SAID: Final = re.compile(
    r"\s*(?:Downloading|Using cached|Processing) (?:\S*/)?([^\s/-]+)-([^\s/-]+)-[^\s/]+\.whl\S*( \([0-9][^)]*\))?"
)
TOLD: Final = 300

PIP: Final = """\
import os, runpy, sys
def refuse(event, arguments):
    if event in ("os.exec", "os.posix_spawn", "os.system") or (
        event == "subprocess.Popen" and os.path.basename(str(arguments[0])) != "keyring"
    ):
        raise PermissionError(1, "PyBox lets pip start no other program", str(arguments[0]))
sys.addaudithook(refuse)
sys.argv[0] = "pip"
runpy.run_module("pip", run_name="__main__")
"""
"""pip that cannot build: a package of which an index has only the source, or that names another place for one it needs,
would run code of its maker here. ``keyring`` has the passwords of indexes."""
WANTED: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(\s*\[[A-Za-z0-9._, -]*\])?"
    r"\s*(\(?\s*(===|~=|==|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+(\s*,\s*(===|~=|==|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+)*\s*\)?)?"
    r"\s*(;[A-Za-z0-9_.,'\"()<>=!~ -]+)?"
)
HERE: Final = ("--prefix", "", "--root", "/")
ALL: Final = {"PIP_USER": "0", "PIP_DRY_RUN": "0", "PIP_REQUIRE_HASHES": "0"}
"""Against settings of pip that would have packages go elsewhere, or nowhere."""
LONGEST_LINE: Final = 500
LARGEST_REQUIREMENTS: Final = 64 * 1024


class Target(NamedTuple):
    """The Python that packages are for."""

    python: tuple[int, int]
    machine: str
    """The kernel's name for it: ``x86_64`` or ``aarch64``."""
    glibc: tuple[int, int]

    @property
    def words(self) -> str:
        return f"Python {self.python[0]}.{self.python[1]} on Linux ({self.machine})"

    @property
    def options(self) -> list[str]:
        """pip's, to look for wheels of this target and no other."""
        major, minor = self.python
        newest = self.glibc[1] if self.glibc[0] == 2 else OLDEST_GLIBC
        platforms = [f"manylinux_2_{number}_{self.machine}" for number in range(newest, OLDEST_GLIBC - 1, -1)]
        platforms += [f"manylinux2014_{self.machine}", f"linux_{self.machine}"]
        if self.machine == "x86_64":
            platforms += ["manylinux_2_12_x86_64", "manylinux2010_x86_64", "manylinux_2_5_x86_64", "manylinux1_x86_64"]
        abis = [f"cp{major}{minor}", "abi3", "none"]
        return [
            *("--only-binary", ":all:", "--implementation", "cp", "--python-version", f"{major}.{minor}"),
            *(word for abi in abis for word in ("--abi", abi)),
            *(word for platform in platforms for word in ("--platform", platform)),
        ]


def check_pip() -> None:
    """Raises SetupError where this Python has no pip. Fetches nothing."""
    if find_spec("pip") is None:
        raise SetupError(
            "Fetching packages needs pip, which is not in PyBox's own Python environment.",
            f"Put it there: `{sys.executable} -m ensurepip`.",
        )


def fetch(lock: Lock, target: Target, folder: Path, progress: Callable[[str], None]) -> Path:
    """Unpacks what is locked, of the locked bytes and for ``target``, into a new folder below ``folder``.

    Raises SetupError. The caller removes ``folder`` and what is left in it.
    """
    requirements, stage = folder / "lock.txt", folder / "packages"
    requirements.write_text(lock.text)
    stage.mkdir()
    options = ["install", "--no-deps", "--require-hashes", "--no-compile", "--target", str(stage), *target.options]
    _pip([*options, "--requirement", str(requirements)], folder, target, progress)
    found = {normal_name(path.name.split("-")[0]) for path in stage.glob("*.dist-info")}
    if missing := sorted({package.name for package in lock.packages} - found):
        raise SetupError(
            f"pip did not bring {', '.join(missing[:5])}, which the lock names.", "Try again, or update pip."
        )
    return stage


def read_requirements(data: bytes) -> tuple[str, ...]:
    """The lines of a ``requirements.txt`` that names packages, with versions or not, and has nothing else in it.

    Raises OptionError with the number of a line that is an option, an address or a path: from there a package would
    have to be built, and indexes are taken from pip's own configuration.
    """
    if len(data) > LARGEST_REQUIREMENTS:
        raise OptionError(
            f"The list of packages has over {LARGEST_REQUIREMENTS // 1024} KiB.", "Name the packages that a box needs."
        )
    try:
        lines = data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise OptionError("The list of packages is not UTF-8.", "Save the file as UTF-8.") from None
    found = []
    for number, line in enumerate(lines, start=1):
        wanted = " ".join(re.sub(r"(^|\s)#.*", "", line.removesuffix("\r")).split())
        if wanted and (len(wanted) > LONGEST_LINE or not WANTED.fullmatch(wanted)):
            raise OptionError(
                f"Line {number} of the list of packages names none: {wanted[:60]!r}.",
                "Write one package a line, like pandas or pandas>=3; options, addresses and paths are not taken.",
            )
        found += [wanted] if wanted else []
    if not found:
        raise OptionError("The list of packages is empty.", "Write one package a line, like pandas or pandas>=3.")
    return tuple(found)


def make_lock(requirements: Sequence[str], target: Target, progress: Callable[[str], None]) -> Lock:
    """The exact versions and hashes that satisfy ``requirements``, lines of ``read_requirements``, for ``target``.

    Raises SetupError, also for what no index has, and OptionError for what cannot be locked. Conditions on machine and
    Python are those of this computer, as pip has no way to ask them for another.
    """
    with tempfile.TemporaryDirectory(prefix="pybox-lock-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        wanted, report = folder / "requirements.txt", folder / "report.json"
        wanted.write_text("".join(f"{line}\n" for line in requirements))
        options = ["install", "--dry-run", "--ignore-installed", "--report", str(report), *target.options]
        _pip([*options, "--target", str(folder / "none"), "--requirement", str(wanted)], folder, target, progress)
        if report.stat().st_size > LARGEST_REPORT:
            raise SetupError("What pip found is too much to be a lock.", "Ask for fewer packages.")
        return _lock_in(json.loads(report.read_bytes()))


def _lock_in(report: dict[str, Any]) -> Lock:
    packages = []
    for item in report["install"]:
        name, version = str(item["metadata"]["name"]), str(item["metadata"]["version"])
        hashes = item["download_info"].get("archive_info", {}).get("hashes") or {}
        if "sha256" not in hashes:
            raise OptionError(f"{name} {version} has no hash to be locked by.", "Take it from a package index.")
        packages.append(LockedPackage(normal_name(name), version.lower(), (str(hashes["sha256"]),)))
    if not 0 < len(packages) <= MOST_PACKAGES:
        raise OptionError(
            f"That would be {len(packages)} packages; an image takes 1 to {MOST_PACKAGES}.", "Ask for what a box needs."
        )
    return lock_of(packages)


def _pip(arguments: list[str], folder: Path, target: Target, progress: Callable[[str], None]) -> None:
    """Runs pip to its end; however this ends, pip has ended too."""
    check_pip()
    # -P: nothing in the working directory is imported.
    command = [sys.executable, "-P", "-c", PIP, "--disable-pip-version-check", "--no-input", *arguments, *HERE]
    environment = {**os.environ, **ALL, "PIP_PROGRESS_BAR": "off", "TMPDIR": str(folder), "LC_ALL": "C.UTF-8"}
    log = folder / "pip.log"

    def say(line: str) -> None:
        if found := SAID.match(line):
            progress(f"Fetching {normal_name(found[1])} {found[2]}{found[3] or ''}")

    try:
        status = follow(command, log, environment, LONGEST_SECONDS, say, folder=folder)
    except TookTooLong:
        raise SetupError(
            f"Fetching packages took longer than {LONGEST_SECONDS / 60:.0f} minutes.",
            "Look at this computer's network and try again.",
        ) from None
    if status != 0:
        raise _failure(log.read_text(errors="replace"), target)


def _failure(log: str, target: Target) -> SetupError:
    errors = [line.removeprefix("ERROR:").strip() for line in log.splitlines() if line.startswith("ERROR:")]
    told = " ".join(errors)[-TOLD:] or log.strip()[-TOLD:]
    if "DO NOT MATCH THE HASHES" in log:
        wrong = re.search(r"^ {4}(\S+) from", log, re.MULTILINE)
        return SetupError(
            f"What the index has is not what is locked{f' ({wrong[1]})' if wrong else ''}: the hashes differ.",
            "Find out why before you take it; a lock that is out of date is made again.",
        )
    if "PyBox lets pip start no other program" in log:
        return SetupError(
            f"A package would have to be built on this computer: {told}",
            "Lock a version that has a wheel in a package index.",
        )
    if "Retry(total=0," in log or "Could not fetch URL" in log:  # pip goes on, and says that nothing is there
        return SetupError(
            f"A package index could not be reached: {told}",
            "Look at this computer's network and pip's own configuration (`pip config list`), and try again.",
        )
    if "No matching distribution" in log or "Could not find a version" in log:
        return SetupError(
            f"There is no wheel for {target.words}: {told}",
            "Lock a version that has one; packages that must be compiled cannot be in a box.",
        )
    if "ENOSPC" in log or "No space left" in log:
        return SetupError("The disk is full.", "Make room, or name another place with TMPDIR, and try again.")
    return SetupError(
        f"pip could not fetch the packages: {told}",
        "Look at this computer's network and pip's own configuration (`pip config list`), and try again.",
    )
