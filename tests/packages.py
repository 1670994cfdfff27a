"""Small Python packages for tests, in a folder that pip is told to take for its index: no test needs a network."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from pybox_kernel.images.package_locks import LockedPackage, lock_of

__all__ = ["Index"]


class Index:
    """A folder of packages. ``use`` makes it the only one that pip knows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.hashes: dict[str, str] = {}

    def use(self, patch: pytest.MonkeyPatch) -> None:
        for name, value in (
            ("PIP_CONFIG_FILE", "/dev/null"),
            ("PIP_NO_INDEX", "1"),
            ("PIP_FIND_LINKS", str(self.folder)),
            ("PIP_NO_CACHE_DIR", "1"),
        ):
            patch.setenv(name, value)

    def add_wheel(
        self,
        name: str,
        files: Mapping[str, str | bytes],
        *,
        version: str = "1.0",
        tag: str = "py3-none-any",
        needs: tuple[str, ...] = (),
    ) -> str:
        """Returns the wheel's hash."""
        info = f"{name}-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        metadata += "".join(f"Requires-Dist: {need}\n" for need in needs)
        parts = {
            **files,
            f"{info}/METADATA": metadata,
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
        }
        parts[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*parts, f"{info}/RECORD"))
        path = self.folder / f"{name}-{version}-{tag}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for place, content in parts.items():
                archive.writestr(place, content)
        self.hashes[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return self.hashes[name]

    def add_source(self, name: str, setup: str, *, version: str = "1.0") -> Path:
        """A package that has to be built, by the program ``setup``."""
        path = self.folder / f"{name}-{version}.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for place, content in (("setup.py", setup), ("PKG-INFO", f"Name: {name}\nVersion: {version}\n")):
                member = tarfile.TarInfo(f"{name}-{version}/{place}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content.encode()))
        self.hashes[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return path

    def lock(self, *names: str, version: str = "1.0") -> str:
        return lock_of(LockedPackage(name, version, (self.hashes[name],)) for name in names).text
