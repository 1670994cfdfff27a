"""The home folder of whoever runs this."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["home_of_user", "without_home"]

ROOT: Final = Path("/")


def home_of_user() -> Path:
    """``/`` where the system knows of none, as in a container for a user id without an account."""
    try:
        return Path.home()
    except RuntimeError:
        return ROOT


def without_home(text: str) -> str:
    """A path, or an address with one, that tells nobody the name of this user."""
    home = home_of_user()
    return text if home == ROOT else text.replace(f"{home}/", "~/", 1)
