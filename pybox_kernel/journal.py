"""What a session is about to make, written down before it is made, so that nothing it made can be lost.

    HOME/installation            this installation's own id
    HOME/sessions/ID/lock        held (flock) for as long as the session lives; never a process id
    HOME/sessions/ID/RUN.json    one entry for each box or witness that may exist

Entries are not synced to the disk: they must outlive a killed process, and do. A computer that lost power has no
running boxes to find.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from pybox_kernel.errors import SetupError

__all__ = [
    "DeadSession",
    "Entry",
    "Journal",
    "dead_sessions",
    "home_folder",
    "home_path",
    "installation_id",
    "is_token",
    "left_entries",
    "new_token",
]

TOKEN_HEX: Final = 32


def new_token() -> str:
    """128 random bits in hexadecimal: no two runs, sessions or installations share one."""
    return secrets.token_hex(TOKEN_HEX // 2)


def is_token(text: str) -> bool:
    return len(text) == TOKEN_HEX and all(c in "0123456789abcdef" for c in text)


def home_path() -> Path:
    """``PYBOX_HOME``, or ``pybox-kernel`` in the user's data folder. It need not exist."""
    named = os.environ.get("PYBOX_HOME", "")
    data = os.environ.get("XDG_DATA_HOME", "") or str(Path.home() / ".local" / "share")
    return Path(named) if named else Path(data) / "pybox-kernel"


def home_folder() -> Path:
    """``home_path()``, made if missing, for this user alone (0700). Raises SetupError."""
    folder = home_path()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            f"PyBox cannot keep its records in {folder}: {error.strerror}.",
            "Make that folder writable, or set PYBOX_HOME to one that is.",
        ) from error
    return folder


def installation_id(home: Path) -> str:
    """The id that marks this installation's boxes, made at the first call."""
    path = home / "installation"
    with suppress(FileNotFoundError):
        found = path.read_text(encoding="ascii", errors="replace").strip()
        if is_token(found):
            return found
    token = new_token()
    draft = home / f".installation-{token}"
    draft.write_text(token + "\n", encoding="ascii")
    try:
        os.link(draft, path)  # fails where another process was first
    except FileExistsError:
        found = path.read_text(encoding="ascii", errors="replace").strip()
        if not is_token(found):
            draft.replace(path)
            return token
        return found
    finally:
        draft.unlink(missing_ok=True)
    return token


class Entry(BaseModel):
    """One object that may exist at the engine. ``container_id`` is null until the engine's answer is known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str
    name: str
    engine: str
    labels: dict[str, str]
    container_id: str | None
    written_at: float
    """Wall clock, seconds since 1970."""


class LockedFolder:
    """A session's folder and its entries, for as long as this process holds its lock."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder = folder
        self._lock = lock

    def write(self, entry: Entry) -> None:
        draft = self.folder / f".{entry.run}"
        draft.write_text(entry.model_dump_json(), encoding="utf-8")
        draft.replace(self.folder / f"{entry.run}.json")

    def strike(self, run: str) -> None:
        """The object is confirmed gone."""
        (self.folder / f"{run}.json").unlink(missing_ok=True)

    def entries(self) -> list[Entry]:
        return list(read_entries(self.folder))

    def release(self) -> None:
        """Gives the lock back and leaves the folder. Idempotent."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def close(self) -> None:
        """Gives the lock back; the folder goes too if nothing is left to be found. Idempotent."""
        if self._lock >= 0 and not self.entries():
            remove_folder(self.folder)
        self.release()


class Journal(LockedFolder):
    """The folder of the session that this process is."""

    def __init__(self, home: Path) -> None:
        """Makes and locks a new session's folder in ``home``."""
        self.home = home
        self.session = new_token()
        self.installation = installation_id(home)
        folder = home / "sessions" / self.session
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        draft = folder.parent / f".{self.session}"
        draft.mkdir(mode=0o700)
        lock = os.open(draft / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        draft.rename(folder)  # so that no one ever sees the folder without its lock held
        super().__init__(folder, lock)


def read_entries(folder: Path) -> Iterator[Entry]:
    for path in sorted(folder.glob("*.json")):
        with suppress(FileNotFoundError, ValidationError):
            yield Entry.model_validate_json(path.read_bytes())


def remove_folder(folder: Path) -> None:
    for path in folder.glob(".*"):
        path.unlink(missing_ok=True)
    (folder / "lock").unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


class DeadSession(LockedFolder):
    """The folder of a session whose owner has gone; one sweep at a time can hold it."""

    @classmethod
    def claim(cls, folder: Path) -> DeadSession | None:
        """None while its owner (or another sweep) lives."""
        try:
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return None
        return cls(folder, lock)


def dead_sessions(home: Path) -> Iterator[DeadSession]:
    """Every session folder in ``home`` whose lock nobody holds, claimed; the caller closes each."""
    for folder in sorted((home / "sessions").glob("*")):
        if is_token(folder.name) and (claimed := DeadSession.claim(folder)) is not None:
            yield claimed


def left_entries(home: Path) -> int:
    """How many objects of dead sessions may be left. Changes nothing."""
    count = 0
    for session in dead_sessions(home):
        count += len(session.entries())
        session.release()
    return count
