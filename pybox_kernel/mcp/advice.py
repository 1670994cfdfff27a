"""How a call of ``run_python`` went and what to do about it, in words for an agent. None of them is the program's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pybox_kernel.mcp.asks import Ceilings
from pybox_kernel.receipt.model import Receipt, WallKind
from pybox_kernel.render.amounts import counted, megabytes, seconds
from pybox_kernel.render.boundary import boundary_note
from pybox_kernel.render.ending import ending
from pybox_kernel.safe_display.text import safe_text

__all__ = ["advice", "verdict"]

WALLS: Final[dict[WallKind, str]] = {
    "name": "Each call runs in a fresh box and has nothing of earlier calls{sessions}.",
    "file": "A box has none of this computer's files{files}.",
    "read_only": "A program can write to its working folder and to /tmp alone.",
    "full": "No room is left in the box: write less.",
    "network": "A box has no network: put the data into the call.",
    "input": "Nobody can type into a box: do without input().",
    "tasks": "A box has few processes and threads: use fewer at once.",
    "files_open": "A box may have few files open at once: close each when it is done with.",
    "forbidden": "A box does not allow this request to the operating system.",
    "magic": "A box runs plain Python, without ! commands and most % commands.",
}


def verdict(receipt: Receipt) -> str:
    """How it ended, and what was allowed."""
    observed, policy, told = receipt.observed, receipt.asked.policy, ending(receipt).verdict
    if observed.end.how == "not_started":
        return f"{told} The code never started."
    facts = []
    if observed.meters.oom_kills and "memory" not in told:
        facts.append("part of it was killed for memory, results may be incomplete")
    if observed.meters.ran_seconds is not None:
        facts.append(f"{seconds(observed.meters.ran_seconds)} of {receipt.asked.options.deadline_seconds:g} s")
    facts.append(f"sealed box: no network, {megabytes(policy.memory_bytes)} MB of memory")
    facts += boundary_note(observed.boundary)
    if observed.box.removed is not True:
        facts.append("its box is not confirmed gone")
    return f"{told} · {' · '.join(facts)}."


def advice(receipt: Receipt, ceilings: Ceilings) -> Iterator[str]:
    """Sentences; none where there is nothing to say."""
    wall, problem = receipt.said.wall, receipt.problem
    if problem is not None and receipt.observed.end.how == "not_started":  # so that no program had a word in it
        yield f"Tell the person who started this server: {safe_text(f'{problem.message} {problem.advice}', 1500)}"
    if receipt.observed.end.how == "deadline":
        limit = receipt.asked.options.deadline_seconds
        more = f" or ask for a longer timeout: up to {ceilings.timeout:g} s" if limit < ceilings.timeout else ""
        yield f"It was stopped at its time limit. Do less at a time{more}."
    if receipt.observed.meters.oom_kills or (wall is not None and wall.kind == "memory"):
        yield f"A box has {megabytes(receipt.asked.policy.memory_bytes)} MB of memory: use less data at a time."
    if wall is not None and wall.kind == "module":
        allowed = ", ".join(ceilings.images)
        yield f"The module is not in this image. Images allowed here: {allowed}. Nothing can be installed in a box."
    elif wall is not None and wall.kind == "name" and receipt.observed.carried is not None:
        yield (
            "The session has no such name: no call that ran to its end left it, or its value is one that cannot be "
            "kept or made again."
        )
    elif wall is not None and wall.kind in WALLS:
        sessions = ", unless both name the same `session`" if ceilings.carry else ""
        files = ", unless the call brings them as `files`" if ceilings.files else ""
        yield WALLS[wall.kind].format(sessions=sessions, files=files)
    if receipt.said.files_left and ceilings.files:
        wrote = counted(receipt.said.files_left, "file")
        yield f"It wrote {wrote} that went with its box: `return_files` brings back those that it names."
