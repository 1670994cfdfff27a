"""What is remembered of boxes that had waited and were not used since they were no longer as required, and of what kept
others from being made.

``HOME/waiting/refused`` and ``HOME/waiting/failed`` have the last of them, a line of JSON each; `pybox-kernel doctor`
tells of them.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from pybox_kernel.errors import PyBoxError
from pybox_kernel.file_lock import file_lock

__all__ = ["Note", "failed_lately", "note_failed", "note_refused", "refused_lately"]

MOST: Final = 20
LATELY: Final = timedelta(days=7)
LONGEST_WHY: Final = 500
LARGEST_FILE: Final = 64 * 1024
LOCK_SECONDS: Final = 1.0


class Note(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    at: AwareDatetime
    """By this computer's wall clock."""
    why: Annotated[str, Field(max_length=LONGEST_WHY)]


def note_refused(home: Path, error: PyBoxError) -> None:
    """What cannot be written is not remembered: the box is not used all the same."""
    note(home, "refused", error.message)


def note_failed(home: Path, error: Exception) -> None:
    """Of errors that nobody expected; as ``note_refused``."""
    note(home, "failed", f"{type(error).__name__}: {error}")


def refused_lately(home: Path) -> tuple[Note, ...]:
    """Those of the last ``LATELY``, the oldest first."""
    return lately(home, "refused")


def failed_lately(home: Path) -> tuple[Note, ...]:
    return lately(home, "failed")


def note(home: Path, what: str, why: str) -> None:
    noted = Note(at=datetime.now(UTC), why=why[:LONGEST_WHY])
    with suppress(OSError):
        folder = home / "waiting"
        folder.mkdir(mode=0o700, exist_ok=True)
        with file_lock(folder / f"{what}.lock", LOCK_SECONDS):
            kept = [*read(home, what), noted][-MOST:]
            draft = folder / f".{what}"
            draft.write_text("".join(one.model_dump_json() + "\n" for one in kept), encoding="utf-8")
            draft.replace(folder / what)


def lately(home: Path, what: str) -> tuple[Note, ...]:
    now = datetime.now(UTC)
    return tuple(one for one in read(home, what) if now - LATELY <= one.at <= now)


def read(home: Path, what: str) -> list[Note]:
    """All that can be read."""
    try:
        with (home / "waiting" / what).open("rb") as file:
            lines = file.read(LARGEST_FILE).splitlines()
    except OSError:
        return []
    found = []
    for line in lines[-MOST:]:
        with suppress(ValidationError):
            found.append(Note.model_validate_json(line))
    return found
