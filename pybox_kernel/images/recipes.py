"""What a box image is made from, as one frozen value that can be stored, compared and hashed.

A recipe holds what decides the content of the image: the base, the in-box programs by their hashes, the Python
packages by theirs, the steps of the build. Its ``sha256`` stands in every receipt.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from pybox_kernel.errors import SetupError
from pybox_kernel.images.package_locks import MOST_PACKAGES, Lock, LockedPackage
from pybox_kernel.images.steps import dockerfile

__all__ = [
    "OFFICIAL_PYTHON",
    "Base",
    "DebianBase",
    "Digest",
    "Offer",
    "Pin",
    "Program",
    "ProgramFile",
    "Recipe",
    "RegistryBase",
    "Sha256",
    "Value",
    "current_recipe",
    "program_files",
]

OFFICIAL_PYTHON: Final = "docker.io/library/python:3.13-slim"

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ModuleName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$", max_length=100)
]


class Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class RegistryBase(Value):
    """An image of a registry. The digest decides; ``tag`` is what it was called when it was resolved."""

    kind: Literal["registry"] = "registry"
    repository: str
    tag: str | None
    digest: Digest

    @property
    def reference(self) -> str:
        return f"{self.repository}@{self.digest}"

    @property
    def name(self) -> str:
        return f"{self.repository}:{self.tag}" if self.tag else self.repository

    def __str__(self) -> str:
        return f"{self.name}@{self.digest}"


class DebianBase(Value):
    """A root file system made of Debian packages and all that they depend on."""

    kind: Literal["debian"] = "debian"
    suite: str
    architecture: str
    packages: tuple[str, ...]
    left_out_packages: tuple[str, ...]
    """Dependencies that only installing needs: not in the image, nor in its list of packages."""
    left_out: tuple[str, ...]
    """Paths that a box does not need, as shell patterns in which ``*`` also matches ``/``."""
    epoch: int
    """The modification time of every file, so that the same packages give the same bytes."""

    def __str__(self) -> str:
        return f"Debian packages ({self.suite}, {self.architecture})"


Base = Annotated[RegistryBase | DebianBase, Field(discriminator="kind")]


class Program(Value):
    """One in-box program: its file name and the hash of its text."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z_]+\.py$")]
    sha256: Sha256


class Pin(Value):
    """One Python package: the version, and the hashes of the files that may be taken."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=100)]
    version: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.!+_-]*$", max_length=200)]
    hashes: Annotated[tuple[Sha256, ...], Field(min_length=1)]


class Offer(Value):
    """What an image offers beside the standard library."""

    pins: Annotated[tuple[Pin, ...], Field(min_length=1, max_length=MOST_PACKAGES)]
    """In order of name."""
    preload: Annotated[tuple[ModuleName, ...], Field(max_length=50)] = ()
    """Modules that a box imports before it takes a program, so that the time limit is the program's alone."""

    @property
    def lock(self) -> Lock:
        return Lock(tuple(LockedPackage(pin.name, pin.version, pin.hashes) for pin in self.pins))


class Recipe(Value):
    format: Literal[1]
    base: Base
    programs: tuple[Program, ...]
    offer: Offer | None = None
    steps_sha256: Sha256
    """Of the build's own instructions."""

    @property
    def sha256(self) -> str:
        parts = self.model_dump(mode="json")
        if self.offer is None:  # an image without packages keeps the hash it had before there were any
            del parts["offer"]
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class ProgramFile(NamedTuple):
    name: str
    content: bytes


@cache
def program_files() -> tuple[ProgramFile, ...]:
    """The in-box programs of this installation, in order of name: the Python files of ``inside``, and the one file of
    cloudpickle, which is not imported here. They are read once. Raises SetupError where that is not installed."""
    paths = [path for path in (Path(__file__).parent.parent / "inside").glob("*.py") if path.name != "__init__.py"]
    return tuple(
        ProgramFile(path.name, path.read_bytes()) for path in sorted([*paths, cloudpickle_file()], key=name_of)
    )


def cloudpickle_file() -> Path:
    found = importlib.util.find_spec("cloudpickle")
    for folder in (found.submodule_search_locations if found is not None else None) or ():
        path = Path(folder) / "cloudpickle.py"
        if path.is_file():
            return path
    raise SetupError("The Python package cloudpickle is not there.", "Install PyBox again: `pip install pybox-kernel`.")


def name_of(path: Path) -> str:
    return path.name


@cache
def programs() -> tuple[Program, ...]:
    return tuple(Program(name=file.name, sha256=hashlib.sha256(file.content).hexdigest()) for file in program_files())


def current_recipe(base: RegistryBase | DebianBase, offer: Offer | None = None) -> Recipe:
    """The recipe by which this version of PyBox builds on ``base``."""
    steps = dockerfile(base.kind, base_id="BASE", build="BUILD", offers=offer is not None)
    return Recipe(
        format=1,
        base=base,
        programs=programs(),
        offer=offer,
        steps_sha256=hashlib.sha256(steps.encode()).hexdigest(),
    )
