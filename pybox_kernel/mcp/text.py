"""A program's words for a model to read: cut to a length, and fenced so that they cannot leave their fence."""

from __future__ import annotations

import re
import secrets
from typing import Final, NamedTuple

from pybox_kernel.safe_display.text import SafeText, without_colour

__all__ = ["Cut", "Fence", "cut"]

BACKTICKS: Final = re.compile("`+")


class Cut(NamedTuple):
    text: str
    whole: bool


def cut(text: SafeText, most: int) -> Cut:
    """The head and the tail of a text, of at most ``most`` characters and a line between them that says how many are
    left out. Without colours, which are nothing to a model."""
    plain = without_colour(text)
    if len(plain) <= most:
        return Cut(plain, True)
    head = most * 2 // 3
    tail = most - head
    left_out = len(plain) - head - tail
    return Cut(f"{plain[:head]}\n… {left_out:,} characters left out …\n{plain[len(plain) - tail :]}", False)


class Fence:
    """Of one answer. Its mark is drawn after the program has ended, so that nothing the program wrote can hold it, and
    each fence is longer than any run of backticks in what it holds."""

    def __init__(self) -> None:
        self.mark = secrets.token_hex(8)

    def around(self, title: str, text: str) -> str:
        longest = max((len(run) for run in BACKTICKS.findall(text)), default=0)
        fence = "`" * max(3, longest + 1)
        end = "" if text.endswith("\n") else "\n"
        return f"[{self.mark} begin: {title}]\n{fence}\n{text}{end}{fence}\n[{self.mark} end]"
