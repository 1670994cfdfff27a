"""Files of this computer, read for a box: copies of what a person named, and of nothing else.

No link is followed below the folder that names count from, whoever put it there; nothing but regular files is opened;
sizes are looked at before anything is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pybox_kernel.errors import OptionError
from pybox_kernel.files.box_files import InputFile, checked_inputs, too_big, too_many
from pybox_kernel.files.named_paths import FOLDER, facts_of, opened, placed, refuse, told
from pybox_kernel.policy import Policy
from pybox_kernel.safe_display.text import safe_name

__all__ = ["read"]

MOST_ENTRIES: Final = 10_000
"""Looked at in folders, hidden ones too."""
FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
ONE_BY_ONE: Final = "Name the files it needs one by one."


def read(policy: Policy, paths: Sequence[str], base: Path) -> tuple[InputFile, ...]:
    """Copies of the files named, and of all files in the folders named but for what is hidden there.

    A path counts from ``base`` and is its own name in the box, so that a program finds it where it is here. One that
    leads out of ``base`` goes by its last part. Raises OptionError, which names the file and what to do, for whatever
    cannot be taken whole: links, pipes, devices, what may not be read or changes meanwhile, and what is over the
    policy's bounds.
    """
    if paths and not policy.files:
        raise too_many(policy)
    reader = Reader(policy)
    for path in paths:
        reader.add(path, base)
    return checked_inputs(policy, reader.files)


class Reader:
    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._bytes = 0
        self._entries = 0
        self._outside = False
        self._taken: dict[str, tuple[int, int]] = {}
        self.files: list[InputFile] = []

    def add(self, path: str, base: Path) -> None:
        place = placed(path, base)
        self._outside = place.start != base
        folder = opened(path, place)
        try:
            if place.way:
                self._take(folder, place.way[-1], place.name, path)
            else:
                self._walk(folder, "", path)
        finally:
            os.close(folder)

    def _take(self, folder: int, part: str, name: str, path: str) -> None:
        facts = facts_of(folder, part, path)
        if stat.S_ISDIR(facts.st_mode):
            with told(path):
                below = os.open(part, FOLDER, dir_fd=folder)
            try:
                self._walk(below, f"{name}/", path)
            finally:
                os.close(below)
        elif stat.S_ISREG(facts.st_mode):
            self._read(folder, part, name, path, facts)
        else:
            refuse(path, facts.st_mode)

    def _walk(self, folder: int, prefix: str, path: str) -> None:
        depth = self._policy.file_depth
        if prefix.count("/") > depth:
            raise OptionError(f"{safe_name(path, 100)} lies more than {depth} folders deep.", ONE_BY_ONE)
        parts: list[str] = []
        with told(path), os.scandir(folder) as entries:
            for entry in entries:
                self._entries += 1
                if self._entries > MOST_ENTRIES:
                    raise OptionError(
                        f"{safe_name(path, 100)} holds more than {MOST_ENTRIES:,} files and folders.", ONE_BY_ONE
                    )
                if not entry.name.startswith("."):
                    parts.append(entry.name)
        for part in sorted(parts):
            self._take(folder, part, prefix + part, f"{path.rstrip('/')}/{part}")

    def _read(self, folder: int, part: str, name: str, path: str, facts: os.stat_result) -> None:
        same = (facts.st_dev, facts.st_ino)
        if self._taken.get(name) == same:  # named twice
            return
        if len(self.files) >= self._policy.files:
            raise too_many(self._policy)
        self._bytes += facts.st_size
        if self._bytes > self._policy.file_bytes:
            raise too_big(self._policy, path, self._bytes)
        with told(path):
            descriptor = os.open(part, FILE, dir_fd=folder)
        try:
            with told(path):
                before = os.fstat(descriptor)
                data = read_whole(descriptor, facts.st_size)
                after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if len(data) != facts.st_size or not version(facts) == version(before) == version(after):
            raise OptionError(
                f"{safe_name(path, 100)} changed while it was read.", "Try again when nothing writes to it."
            )
        self._taken[name] = same
        self.files.append(InputFile(name, data, path if self._outside else None))


def read_whole(descriptor: int, size: int) -> bytes:
    """One byte more than ``size`` where there is more."""
    data = bytearray()
    while len(data) <= size and (part := os.read(descriptor, size + 1 - len(data))):
        data += part
    return bytes(data)


def version(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_mode, facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
