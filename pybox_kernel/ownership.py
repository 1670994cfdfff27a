"""Whose a folder of PyBox's is: what is in it is believed and run, so nobody else may have a hand in it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["doubt"]


def doubt(folder: Path) -> str:
    """Why ``folder`` is not to be trusted, for a person; empty where only this user and root can change what is in it,
    or put something in its place, and where there is none. Never raises."""
    me = os.geteuid()
    try:
        found, above = folder.lstat(), folder.parent.stat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"{folder} cannot be looked at ({error.strerror})"
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is a link or a file, and no folder"
    if found.st_uid != me:
        return f"{folder} belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may change {folder}"
    open_to_all = above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX
    if above.st_uid not in (0, me) or open_to_all:
        return f"others may put something in the place of {folder}"
    return ""
