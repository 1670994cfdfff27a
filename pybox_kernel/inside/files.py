"""Files of a box's working directory: put there before the program comes, and taken out when all of it is dead.

Trusted; standard library only. All by directory descriptors and through one buffer; no link is followed, and nothing
but a regular file is read. What is taken out is what the program made or changed.
"""

from __future__ import annotations

import json
import os
import stat
import time

TYPE_CHECKING = False  # importing typing costs a box milliseconds
if TYPE_CHECKING:
    from collections.abc import Iterator

    Print = tuple[int, list[int]]

BOX = "/box"
BUFFER = 65536
MOST_LISTED = 50
LONGEST_LISTED = 200
"""Of what is not taken out; all of it together fits into one frame, also where each character is escaped."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
OTHER_KINDS = {stat.S_IFLNK: "link", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}


def print_of(descriptor: int, size: int) -> Print:
    """Tells contents apart: by their size, and by Python's hash of each part, whose key is this process's own."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    return size, [hash(part) for part in iter(lambda: os.read(descriptor, BUFFER), b"")]


class FilesIn:
    """Writes the supervisor's files. Raises ValueError where it breaks the form."""

    def __init__(self, box: str = BOX) -> None:
        self.box = box
        self.prints: dict[str, Print] = {}
        self.to_come: int | None = None
        self.name = ""
        self.size = 0
        self.left = 0
        self.file = -1

    @property
    def open(self) -> bool:
        """Something is still to come."""
        return self.file >= 0 or bool(self.to_come)

    def begin(self, header: bytes) -> None:
        told = json.loads(header)
        name, size, to_come = told["name"], told["size"], told["to_come"]
        in_turn = self.to_come is None or to_come == self.to_come - 1
        if self.file >= 0 or not in_turn or to_come < 0 or size < 0:
            raise ValueError("a file out of turn")
        *folders, last = name.split("/")
        if "\0" in name or any(part in ("", ".", "..") for part in (*folders, last)):
            raise ValueError("a file name that leads elsewhere")
        folder = os.open(self.box, FOLDER)
        try:
            for part in folders:
                try:
                    os.mkdir(part, 0o755, dir_fd=folder)
                except FileExistsError:
                    pass
                above, folder = folder, os.open(part, FOLDER, dir_fd=folder)
                os.close(above)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self.file = os.open(last, flags, 0o644, dir_fd=folder)
        finally:
            os.close(folder)
        self.name, self.size, self.left, self.to_come = name, size, size, to_come
        self.add(b"")

    def add(self, data: bytes) -> None:
        if self.file < 0 or len(data) > self.left:
            raise ValueError("more of a file than was told")
        while data:
            written = os.write(self.file, data)
            self.left -= written
            data = data[written:]
        if self.left == 0:
            self.prints[self.name] = print_of(self.file, self.size)
            os.close(self.file)
            self.file = -1


class FilesOut:
    """Looks through the working directory once, folder by folder in order of name.

    ``asked``: ``bring`` (else they are only counted), and the bounds: ``files``, ``bytes`` of all together, ``depth``
    in folders, ``entries`` looked at. Nothing is begun after ``until``.
    """

    def __init__(self, asked: dict[str, int], prints: dict[str, Print], until: float, box: str = BOX) -> None:
        self.asked = asked
        self.prints = prints
        self.until = until
        self.box = box
        self.entries = 0
        self.found = 0
        self.brought = 0
        self.bytes = 0
        self.skipped: list[dict[str, str | int | None]] = []
        self.not_listed = 0
        self.cut: str | None = None
        self.folders: list[tuple[int, list[str], str]] = []

    def frames(self) -> Iterator[tuple[bytes, bytes]]:
        os.chmod(self.box, 0o700)  # it is the program's to close
        try:
            self.enter(self.box, None, "")
            while self.folders and self.cut is None:
                folder, names, path = self.folders[-1]
                if not names:
                    os.close(folder)
                    self.folders.pop()
                elif time.monotonic() > self.until:
                    self.cut = "time"
                else:
                    name = names.pop()
                    yield from self.look(folder, name, path + name)
        finally:
            for folder, _, _ in self.folders:
                os.close(folder)
        yield b"T", self.account()

    def account(self) -> bytes:
        told = {"found": self.found, "skipped": self.skipped, "not_listed": self.not_listed, "cut": self.cut}
        return json.dumps(told, ensure_ascii=False).encode()

    def enter(self, name: str, above: int | None, path: str) -> None:
        """Lists a folder as far as the bound on entries allows. Raises OSError."""
        folder = os.open(name, FOLDER, dir_fd=above)
        names: list[str] = []
        self.folders.append((folder, names, path))
        with os.scandir(folder) as entries:
            for entry in entries:
                if self.entries >= self.asked["entries"]:
                    self.cut = "entries"
                    break
                self.entries += 1
                names.append(entry.name)
        names.sort(reverse=True)

    def look(self, folder: int, name: str, path: str) -> Iterator[tuple[bytes, bytes]]:
        if name.startswith("."):
            self.skip(path, None, "hidden")
            return
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISREG(mode):
                yield from self.take(folder, name, path)
            elif not stat.S_ISDIR(mode):
                self.skip(path, None, OTHER_KINDS.get(stat.S_IFMT(mode), "device"))
            elif len(self.folders) > self.asked["depth"]:
                self.skip(path + "/", None, "deep")
            else:
                self.enter(name, folder, path + "/")
        except PermissionError:
            self.skip(path, None, "unreadable")

    def take(self, folder: int, name: str, path: str) -> Iterator[tuple[bytes, bytes]]:
        file = os.open(name, FILE, dir_fd=folder)
        try:
            size = os.fstat(file).st_size
            before = self.prints.get(path)
            if before is not None and before[0] == size and before == print_of(file, size):
                return
            self.found += 1
            if not self.asked["bring"]:
                return
            why = self.refusal(path, size)
            if why is not None:
                self.skip(path, size, why)
                return
            os.lseek(file, 0, os.SEEK_SET)
            self.brought += 1
            self.bytes += size
            yield b"D", json.dumps({"name": path, "size": size}, ensure_ascii=False).encode()
            while size:
                if time.monotonic() > self.until:
                    self.cut = "time"
                    return
                data = os.read(file, min(BUFFER, size))
                if not data:
                    raise ValueError("a file became shorter, though nothing is left to change it")
                yield b"d", data
                size -= len(data)
        finally:
            os.close(file)

    def refusal(self, path: str, size: int) -> str | None:
        try:
            path.encode()
        except UnicodeEncodeError:
            return "name"
        if size > self.asked["bytes"]:
            return "big"
        if self.brought >= self.asked["files"]:
            return "many"
        return "room" if size > self.asked["bytes"] - self.bytes else None

    def skip(self, path: str, size: int | None, why: str) -> None:
        if len(self.skipped) >= MOST_LISTED:
            self.not_listed += 1
            return
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        if len(shown) > LONGEST_LISTED:
            shown = shown[: LONGEST_LISTED - 1] + "…"
        self.skipped.append({"name": shown, "size": size, "why": why})
