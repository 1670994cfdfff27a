"""Which images were set up: ``images.json`` in PyBox's state folder. Every run is held to what stands there.

A box is made from the recorded id, whatever a tag points to by then, and only if this version of PyBox would
build the image by the recorded recipe. Reading is strict: a file that is not as PyBox writes it is refused.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import AwareDatetime, StringConstraints, ValidationError, model_validator

from pybox_kernel.errors import EngineNotFound, SetupError
from pybox_kernel.file_lock import file_lock
from pybox_kernel.images.offers import built_in_offer
from pybox_kernel.images.recipes import Digest, Recipe, Sha256, Value, current_recipe
from pybox_kernel.images.rootfs import debian_base
from pybox_kernel.policy import IMAGE_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from pybox_kernel.engine import Engine

__all__ = [
    "BaseImage",
    "ImageStore",
    "Package",
    "RecordedImage",
    "base_in_use",
    "expected_recipe",
    "how_to_make",
    "require",
]

LARGEST_FILE: Final = 16 * 1024 * 1024

Name = Annotated[str, StringConstraints(pattern=f"^{IMAGE_NAME.pattern}$")]


class Package(Value):
    name: str
    version: str


class BaseImage(Value):
    """The base as it lies in the engine, kept so that it need not be fetched again."""

    id: Digest
    reference: str


class RecordedImage(Value):
    """One image as it was when it was built and looked into."""

    name: Name
    id: Digest
    reference: str
    """A tag that only this build has: without one the engine would count the image as unused."""
    recipe_sha256: Sha256
    recipe: Recipe
    base: str
    """The base in words."""
    base_image: BaseImage
    python: str
    architecture: str
    size_bytes: int
    created_at: AwareDatetime
    packages: tuple[Package, ...]
    """Every Debian package in it, with its version. Python's packages are in the recipe."""

    @model_validator(mode="after")
    def _hash_is_of_the_recipe(self) -> Self:
        if self.recipe.sha256 != self.recipe_sha256:
            raise ValueError("recipe_sha256 is not the hash of the recipe beside it")
        return self


def packages_of(recorded: RecordedImage) -> frozenset[str]:
    """The names of the Python packages in it."""
    offer = recorded.recipe.offer
    return frozenset(pin.name for pin in offer.pins) if offer is not None else frozenset()


class _Document(Value):
    format: Literal["pybox.images/1"]
    images: tuple[RecordedImage, ...]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        if len({image.name for image in self.images}) != len(self.images):
            raise ValueError("two images have the same name")
        return self


class ImageStore:
    """The record of one state folder. Other processes may read and write it at the same time.

    The lock of each image that offers packages lies beside it, as a file to look at, to copy and to build from again.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "images.json"
        self._locks = folder / "locks"

    def lock_file(self, name: str) -> Path:
        return self._locks / f"{name}.txt"

    def version(self) -> tuple[int, int, int] | None:
        """What changes whenever the record does; None where there is none."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def load(self) -> Mapping[str, RecordedImage]:
        """What is recorded, by name; empty if nothing was. Raises SetupError if the file is not sound."""
        try:
            data = self._read()
            found = () if data is None else _Document.model_validate_json(data).images
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the whole file"
            raise self._unusable(f"{first['msg']} (at: {where})") from error
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):  # which says nothing of the file
                raise SetupError(
                    f"The record of images, {self.path}, cannot be opened: {error.strerror}.",
                    "Close files or notebooks that are not needed, then try again.",
                ) from error
            raise self._unusable(error.strerror or str(error)) from error
        return {image.name: image for image in found}

    def record(self, image: RecordedImage) -> RecordedImage | None:
        """Puts ``image`` in the place of what had its name, and gives that back. All or nothing, also if the machine
        stops."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._locked():
                images = dict(self.load())
                former = images.get(image.name)
                images[image.name] = image
                if image.recipe.offer is not None:
                    self._locks.mkdir(mode=0o700, exist_ok=True)
                    self._write(image.recipe.offer.lock.text.encode(), self.lock_file(image.name))
                self._keep(images)
            return former
        except OSError as error:
            raise SetupError(
                f"The new image could not be recorded in {self.path}: {error.strerror}.",
                f"Make room in {self.path.parent} and let this user write there, then run setup again.",
            ) from error

    def strike(self, image: RecordedImage) -> None:
        """Takes ``image`` off the record, unless another has its name by now."""
        try:
            with self._locked():
                images = dict(self.load())
                if images.get(image.name) == image:
                    del images[image.name]
                    self._keep(images)
                    self.lock_file(image.name).unlink(missing_ok=True)
        except OSError as error:
            raise SetupError(
                f"The record of images, {self.path}, could not be changed: {error.strerror}.",
                f"Make room in {self.path.parent} and let this user write there.",
            ) from error

    def _keep(self, images: Mapping[str, RecordedImage]) -> None:
        document = _Document(format="pybox.images/1", images=tuple(images[name] for name in sorted(images)))
        data = document.model_dump_json(indent=1).encode() + b"\n"
        if len(data) > LARGEST_FILE:
            raise SetupError("There are too many images to be recorded.", "Remove some: `pybox-kernel image rm NAME`.")
        self._write(data, self.path)

    def _read(self) -> bytes | None:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise self._unusable("it is not a regular file")
            if found.st_uid not in (0, os.geteuid()) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise self._unusable("other users can write to it, so it proves nothing")
            data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise self._unusable(f"it is larger than {LARGEST_FILE} bytes")
        return data

    def _write(self, data: bytes, path: Path) -> None:
        descriptor, name = tempfile.mkstemp(prefix=".images-", dir=self.path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink()
            raise

    def _locked(self) -> AbstractContextManager[None]:
        return file_lock(self.path.with_suffix(".lock"))

    def _unusable(self, why: str) -> SetupError:
        return SetupError(
            f"The record of images cannot be used: {self.path}: {why}.",
            f"Remove the file (`rm -r {self.path}`) and make the images again: `pybox-kernel setup --yes`.",
        )


def require(engine: Engine, store: ImageStore, name: str = "stdlib") -> RecordedImage:
    """The image to make a box from: recorded, made by this version of PyBox, and in the engine under its id.

    Raises SetupError otherwise, with the next step. One call to the engine; it never pulls.
    """
    recorded = store.load().get(name)
    if recorded is None:
        raise SetupError(f"The box image '{name}' has not been made yet.", how_to_make(name))
    again = how_to_make(name, again=True)
    if recorded.recipe != expected_recipe(recorded):
        raise SetupError(f"The box image '{name}' was made by another version of PyBox.", again)
    try:
        found = engine.image(recorded.id)
    except EngineNotFound as error:
        raise SetupError(
            f"The box image '{name}' is no longer in the container engine (its id was {recorded.id}).", again
        ) from error
    if found.id != recorded.id:
        raise SetupError(f"The engine has {found.id} as the box image '{name}', not {recorded.id}.", again)
    return recorded


def expected_recipe(recorded: RecordedImage) -> Recipe:
    """How this version of PyBox would make the recorded image today, on the same base."""
    base = recorded.recipe.base
    offer = built_in_offer(recorded.name) or recorded.recipe.offer
    return current_recipe(debian_base(base.architecture) if base.kind == "debian" else base, offer)


def how_to_make(name: str, *, again: bool = False) -> str:
    """The next step for who lacks the image ``name``, or has one that is not as it should be."""
    if name == "stdlib":
        return "Run `pybox-kernel setup --yes`."
    if name == "data":
        return "Run `pybox-kernel setup --yes --with data`."
    if again or built_in_offer(name) is not None:
        return f"Run `pybox-kernel image build {name} --yes`."
    build = f"pybox-kernel image build {name} --from requirements.txt --yes"
    return f"Run `{build}`, or choose one of `pybox-kernel image list`."


def base_in_use(store: ImageStore, base: BaseImage) -> bool:
    """Whether a recorded image is to be made again on ``base``."""
    return any(image.base_image == base for image in store.load().values())
