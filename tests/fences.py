"""Where a text is read as CommonMark reads it: what of it stands outside of fences."""

from __future__ import annotations

__all__ = ["outside_of_fences"]


def outside_of_fences(text: str) -> str:
    """A fence is closed by the first line of as many backticks or more, and nothing else. Fails for one left open."""
    kept, fence = [], 0
    for line in text.split("\n"):
        ticks = len(line) - len(line.lstrip("`"))
        if not fence and ticks >= 3:
            fence = ticks
        elif fence and ticks >= fence and not line.strip("` "):
            fence = 0
        elif not fence:
            kept.append(line)
    assert not fence
    return "\n".join(kept)
