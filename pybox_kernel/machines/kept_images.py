"""Box images that were made in the private machine itself, since this computer has no other engine: kept as files.

What is made in a machine that runs is gone when it ends; the next start puts these on its disk. A file needs no trust:
an image's id is the hash of its own description, which the engine that takes it in computes anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from pybox_kernel.errors import SetupError
from pybox_kernel.images.store import RecordedImage

__all__ = ["Holder", "KeptImages"]

CHUNK_BYTES: Final = 1 << 20
MOST_BYTES: Final = 4 << 30
"""Of one: no more than the machine's disk holds. Who gives it may be an engine that a box has taken over."""


class Holder(Protocol):
    """Whoever has an image to give: an engine, or the file of one."""

    def save(self, reference: str) -> Iterator[bytes]: ...


class OneFile:
    """A ``Holder`` of the image in ``path``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def save(self, reference: str) -> Iterator[bytes]:
        """Raises SetupError."""
        try:
            with self._path.open("rb") as file:
                while data := file.read(CHUNK_BYTES):
                    yield data
        except OSError as error:
            raise SetupError(
                f"{self._path}, with the image {reference}, cannot be read: {error.strerror}.",
                "Remove it, and make the image anew: `pybox-kernel setup --yes`.",
            ) from error


class KeptImages:
    """The files of one machine's images, in ``folder``, which need not exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _file(self, image: RecordedImage) -> Path:
        return self._folder / f"{image.id.removeprefix('sha256:')}.tar"

    def holder(self, image: RecordedImage) -> Holder | None:
        """None where it is not kept."""
        path = self._file(image)
        return OneFile(path) if path.is_file() else None

    def keep(self, image: RecordedImage, holder: Holder) -> None:
        """Whole, or not at all. Raises SetupError and EngineError."""
        path = self._file(image)
        draft, total = path.with_suffix(".new"), 0
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with open(draft, "wb", opener=for_this_user) as file:
                for data in holder.save(image.reference):
                    total += len(data)
                    if total > MOST_BYTES:
                        raise SetupError(
                            f"The image '{image.name}' has more than {MOST_BYTES / 1e9:.1f} GB, so it was not kept.",
                            "Make it anew with fewer packages.",
                        )
                    file.write(data)
            draft.replace(path)
        except OSError as error:
            raise SetupError(
                f"The image '{image.name}' could not be kept in {self._folder}: {error.strerror}.",
                "Make room there, and run it again.",
            ) from error
        finally:
            with suppress(OSError):
                draft.unlink()

    def forget_others(self, images: Iterable[RecordedImage]) -> None:
        """Removes the files of all but ``images``."""
        known = {self._file(image) for image in images}
        for path in self._folder.glob("*.tar"):
            if path not in known:
                path.unlink(missing_ok=True)


def for_this_user(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
