"""Programs that this one starts, and that are not to go on where it is killed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

__all__ = ["with_this_process"]


def with_this_process(command: Sequence[str], signal_name: str = "TERM") -> list[str]:
    """``command`` so that it gets the signal when the thread that starts it ends, however that does: by ``setpriv`` of
    util-linux (PR_SET_PDEATHSIG, prctl(2)). As it is where there is no such program."""
    return ["setpriv", "--pdeathsig", signal_name, *command] if shutil.which("setpriv") else list(command)
