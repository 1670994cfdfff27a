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
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from pybox_kernel.errors import SetupError
from pybox_kernel.home_of_user import home_of_user
from pybox_kernel.own_descriptors import given_up, keep_to_oneself
from pybox_kernel.ownership import doubt
from pybox_kernel.seal.spec import LABEL

__all__ = [
    "DeadSession",
    "Entry",
    "Journal",
    "box_name",
    "dead_sessions",
    "give_back",
    "home_folder",
    "home_path",
    "installation_id",
    "is_token",
    "left_entries",
    "new_entry",
    "new_token",
    "records_in",
    "require_own",
]

TOKEN_HEX: Final = 32
LARGEST_ENTRY: Final = 16384


def new_token() -> str:
    """128 random bits in hexadecimal: no two runs, sessions or installations share one."""
    return secrets.token_hex(TOKEN_HEX // 2)


def is_token(text: str) -> bool:
    return len(text) == TOKEN_HEX and all(c in "0123456789abcdef" for c in text)


def home_path() -> Path:
    """``PYBOX_HOME``, or ``pybox-kernel`` in the user's data folder, whole. It need not exist."""
    named = os.environ.get("PYBOX_HOME", "")
    data = os.environ.get("XDG_DATA_HOME", "") or str(home_of_user() / ".local" / "share")
    return (Path(named) if named else Path(data) / "pybox-kernel").absolute()


def home_folder() -> Path:
    """``home_path()``, made if missing, for this user alone (0700). Raises SetupError, as well where somebody else
    could have changed what is in it."""
    folder = home_path()
    with records_in(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_own(folder)
    return folder


def require_own(home: Path) -> None:
    """Raises SetupError where somebody else could have changed what is in ``home``."""
    if why := doubt(home.resolve()):
        raise SetupError(f"The folder of PyBox's records is not this user's alone: {why}.", give_back(home))


def give_back(home: Path) -> str:
    """What to do where ``home`` is not this user's alone."""
    return f"Run `chown $USER {home}` and `chmod go-w {home}`; or set PYBOX_HOME to another folder."


@contextmanager
def records_in(folder: Path) -> Iterator[None]:
    """What the system refuses there becomes a SetupError."""
    try:
        yield
    except OSError as error:
        raise SetupError(
            f"PyBox cannot keep its records in {folder}: {error.strerror}.",
            "Make room there and let this user write to it, or set PYBOX_HOME to another folder.",
        ) from error


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


def box_name(run: str) -> str:
    """What the engine calls the box, or the witness, of a run."""
    return f"pybox-{run}"


class Entry(BaseModel):
    """One object that may exist at the engine. ``container_id`` is null until the engine's answer is known.

    Its name and its labels hold its run's 128 bits: an entry can name no one else's container.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str
    name: str
    engine: str
    labels: dict[str, str]
    container_id: str | None
    written_at: float
    """Wall clock, seconds since 1970."""

    @model_validator(mode="after")
    def _names_its_own_run(self) -> Self:
        if not is_token(self.run) or self.name != box_name(self.run) or self.labels.get(f"{LABEL}run") != self.run:
            raise ValueError("name, labels and run do not belong together")
        return self


def new_entry(run: str, engine: str, labels: Mapping[str, str], container_id: str | None) -> Entry:
    """The entry of ``run`` as of now, for the engine at the address ``engine``."""
    return Entry(
        run=run,
        name=box_name(run),
        engine=engine,
        labels=dict(labels),
        container_id=container_id,
        written_at=time.time(),
    )


class LockedFolder:
    """A session's folder and its entries, for as long as this process holds its lock."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder = folder
        self._lock = lock
        keep_to_oneself(lock)

    def write(self, entry: Entry) -> None:
        """Raises SetupError if it cannot be kept: then nothing may be made."""
        draft = self.folder / f".{entry.run}"
        with records_in(self.folder):
            draft.write_text(entry.model_dump_json(), encoding="utf-8")
            draft.replace(self.folder / f"{entry.run}.json")

    def strike(self, run: str) -> None:
        """The object is confirmed gone. An entry that cannot be struck is found again, and its object is not."""
        with suppress(OSError):
            (self.folder / f"{run}.json").unlink()

    def entries(self) -> list[Entry]:
        """All that can be read."""
        found = (read_entry(self.folder, run) for run in self.runs())
        return [entry for entry in found if entry is not None]

    def damaged(self) -> list[str]:
        """The runs whose entries cannot be read."""
        return [run for run in self.runs() if read_entry(self.folder, run) is None]

    def runs(self) -> list[str]:
        """The runs of all entries, read from their file names. What is named otherwise is not this journal's."""
        return [path.stem for path in listed(self.folder, "*.json") if is_token(path.stem)]

    def release(self) -> None:
        """Gives the lock back and leaves the folder. Idempotent."""
        if self._lock >= 0:
            given_up(self._lock)
            os.close(self._lock)
            self._lock = -1

    def close(self) -> None:
        """Gives the lock back; the folder goes too if nothing is left to be found. Idempotent."""
        if self._lock >= 0:
            remove_folder(self.folder)
        self.release()


class Journal(LockedFolder):
    """The folder of the session that this process is."""

    def __init__(self, home: Path) -> None:
        """Makes and locks a new session's folder in ``home``."""
        self.home = home
        self.session = new_token()
        folder = home / "sessions" / self.session
        draft = folder.parent / f".{self.session}"
        with records_in(home):
            self.installation = installation_id(home)
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            draft.mkdir(mode=0o700)
            lock = os.open(draft / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            draft.rename(folder)  # so that no one ever sees the folder without its lock held
        super().__init__(folder, lock)

    def labels(self, run: str) -> dict[str, str]:
        """By which an object at the engine is known to be of this installation, session and run."""
        return {
            f"{LABEL}installation": self.installation,
            f"{LABEL}session": self.session,
            f"{LABEL}run": run,
        }


def read_entry(folder: Path, run: str) -> Entry | None:
    """None if it is gone, or not what a session of this folder's name wrote about this run."""
    try:
        descriptor = os.open(folder / f"{run}.json", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            entry = Entry.model_validate_json(os.read(descriptor, LARGEST_ENTRY))
        finally:
            os.close(descriptor)
    except (OSError, ValidationError):
        return None
    return entry if entry.run == run and entry.labels.get(f"{LABEL}session") == folder.name else None


def remove_folder(folder: Path) -> None:
    """Unless something in it is still to be found."""
    with suppress(OSError):
        others = [path for path in folder.iterdir() if path.name != "lock"]
        if all(path.name[0] == "." and is_token(path.name[1:]) for path in others):  # drafts, never an entry
            for path in others:
                path.unlink()
            (folder / "lock").unlink()
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
    for folder in listed(home / "sessions", "*"):
        if is_token(folder.name) and (claimed := DeadSession.claim(folder)) is not None:
            yield claimed


def listed(folder: Path, pattern: str) -> list[Path]:
    """None where the folder cannot be read now: what is in it is found by a later sweep."""
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


def left_entries(home: Path) -> int:
    """How many objects of dead sessions may be left. Changes nothing."""
    count = 0
    for session in dead_sessions(home):
        count += len(session.runs())
        session.release()
    return count
