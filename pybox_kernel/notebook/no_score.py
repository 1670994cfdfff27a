"""Why no score came of a submission, kept for the report: nbgrader says it once, among much else, and removes the rest.

HOME/no-score/NAME.json     of one folder in which a notebook was to be graded
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from pybox_kernel.boxes.journal import home_path
from pybox_kernel.safe_display.text import safe_name

__all__ = ["NoScore", "keep", "kept"]

MOST_KEPT: Final = 2000
LONGEST: Final = 600
LARGEST: Final = 16 << 10


class NoScore(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    at: AwareDatetime
    why: Annotated[str, Field(max_length=2 * LONGEST)]
    """Safe to show, in one line."""

    def __str__(self) -> str:
        return f"{self.why} ({self.at.astimezone():%d %b %H:%M})"


def keep(folder: Path, why: str) -> None:
    """That of ``folder`` takes the place of an earlier one. Where it cannot be kept, the report does not have it."""
    with suppress(OSError, ValueError):
        path = path_of(folder)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        earlier = sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)
        for file in earlier[: max(0, len(earlier) - MOST_KEPT)]:
            file.unlink(missing_ok=True)
        found = NoScore(at=datetime.now().astimezone(), why=safe_name(why, LONGEST))
        path.write_text(found.model_dump_json(), encoding="utf-8")


def kept(folder: Path) -> NoScore | None:
    """None where there is nothing to read."""
    with suppress(OSError, ValueError), path_of(folder).open("rb") as file:
        return NoScore.model_validate_json(file.read(LARGEST))
    return None


def path_of(folder: Path) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]
    return home_path() / "no-score" / f"{name}.json"
