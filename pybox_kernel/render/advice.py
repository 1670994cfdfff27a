"""Every wall of a box in one sentence: what it is, and what to write instead, if there is something.

The one table of them. Receipts, errors and tests take their words from here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from pybox_kernel.render.amounts import megabytes, seconds
from pybox_kernel.safe_display.text import safe_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybox_kernel.policy import Policy
    from pybox_kernel.receipt.model import Receipt, Wall, WallKind

__all__ = [
    "FEWER_TASKS",
    "LESS_DATA",
    "WALLS",
    "Advice",
    "advice",
    "in_marks",
    "little_processor",
    "longer_limit",
    "longer_limit_line",
]


DOTTED: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
WITHOUT_MARKS: Final = str.maketrans("‘’", "''")


class Advice(NamedTuple):
    what: str
    """What the wall is, as a sentence."""
    instead: str
    """What to do, as a sentence; empty where there is nothing."""

    def __str__(self) -> str:
        return f"{self.what} {self.instead}".strip()


IN_DATA: Final = ("matplotlib", "numpy", "pandas", "PIL", "dateutil")
"""Modules of the image ``data``."""
MAKE_DATA: Final = "`pybox-kernel setup --yes --with data`"
IN_CLASS: Final = ("scipy", "seaborn", "sklearn")
"""Modules of the image ``class``."""
SCREEN: Final = ("tkinter", "_tkinter", "turtle", "curses", "_curses")
MAKE_CLASS: Final = "`pybox-kernel image build class --yes`"
MAKE_OWN: Final = "`pybox-kernel image build mine --from requirements.txt --yes`"

LESS_DATA: Final = "Less data at a time."
FEWER_TASKS: Final = "Fewer processes or threads at once."
LITTLE: Final = 0.4
"""Of the processor time that a program could have had in its time: with less, it waited, or the computer was busy."""


def little_processor(receipt: Receipt) -> str:
    """What to do where a program met its time limit with little of its processor time used; empty for any other. From
    outside, one that sleeps and one that is not given the processor look the same."""
    used, limit = receipt.observed.meters.cpu_seconds, receipt.asked.options.deadline_seconds
    most = limit * receipt.asked.policy.cpu_cores
    if receipt.observed.end.how != "deadline" or used is None or used >= LITTLE * most:
        return ""
    return (
        f"It had the processor for {seconds(used)} of {most:g} s: if it did not sleep or wait, this computer may be"
        " busy, so run it again."
    )


def longer_limit_line(receipt: Receipt) -> str:
    """The line that gives a cell more time; empty where there is no more."""
    longest = receipt.asked.policy.longest_deadline_seconds
    if receipt.asked.options.deadline_seconds >= longest:
        return ""
    return f"for a longer limit, put this line first in the cell: %%pybox --timeout {longest:g}"


def longer_limit(limit: float, longest: float) -> str:
    if limit < longest:
        return (
            f"Less work at a time, or up to {longest:g} s:"
            f" %%pybox --timeout {longest:g} as the first line (at a shell, add --timeout {longest:g})."
        )
    return "Less work at a time."


def module(wall: Wall, _: Policy, image: str) -> Advice:
    holds = "Python's standard library alone" if image == "stdlib" else f"those of its image, {safe_name(image, 40)}"
    which = f"no module {quoted(wall)}" if DOTTED.fullmatch(wall.what) else "no such module"
    top = wall.what.partition(".")[0]
    if top in SCREEN:
        instead = "It needs a screen, which a box does not have."
    elif top in IN_DATA and image != "data":
        instead = f"{asking('--image data')} That image is made once, by {MAKE_DATA}."
    elif top in IN_CLASS and image != "class":
        instead = f"{asking('--image class')} That image is made once, by {MAKE_CLASS}."
    else:
        named = "If it is a package, name it and those it is used with in a file requirements.txt"
        instead = f"{named}, and run {MAKE_OWN}. {asking('--image mine', 'Then put')}"
    return Advice(f"There is {which} in this box: it has {holds}.", instead)


def name(wall: Wall, _: Policy, __: str) -> Advice:
    where = "An earlier cell" if wall.cell is None else f"Cell [{wall.cell}]"
    which = quoted(wall) if DOTTED.fullmatch(wall.what) else "that name"
    said = f": it says {in_marks(wall.detail, 160)}" if wall.detail else ""
    match wall.why_missing:
        case "off":
            return Advice(
                f"{where} defines {which}, but each cell runs in a fresh box, and carrying values between them is off.",
                "Put %pybox carry on into a cell of its own, and run that cell again.",
            )
        case "failed":
            return Advice(
                f"{where} defines {which}, but it did not run to its end, so nothing of it was carried.",
                "Mend that cell and run it again. (After %pybox carry keep, in a cell of its own, what a cell defined"
                " before it failed is carried too.)",
            )
        case "lost":
            return Advice(f"{where} defines {which}, which could not be carried{said}.", "Make it again in this cell.")
        case "not_restored":
            return Advice(
                f"{where} left {which}, which could not be made again in this box{said}.",
                "Run that cell again, or make it in this one.",
            )
        case "dropped":
            return Advice(f"You dropped {which} from what is carried.", "Run the cell that defines it again.")
        case "undone":
            return Advice(
                f"{where} defines {which}, but with %pybox carry back you returned to what there was before that.",
                "Run that cell again.",
            )
        case "kept_back":
            return Advice(
                f"{where} left {which}, but it did not go in, since this cell does not name it.",
                "Name it in this cell; a comment is enough.",
            )
        case "history":
            return Advice(
                f"Results and lines of earlier cells have no names like {which} here.",
                "Give a result a name of its own in its cell, as in answer = 6 * 7.",
            )
    return Advice(
        f"{where} defines {which}, but each cell runs in a fresh box that knows nothing of the others.",
        "Copy what defines it into this cell.",
    )


def file(wall: Wall, _: Policy, __: str) -> Advice:
    return Advice(
        f"There is no {quoted(wall) or 'such file'} in this box: it has none of your files, and starts empty.",
        f"To have a copy of one of yours in it, {asking('--input PATH', 'put')}",
    )


def not_among(wall: Wall) -> Advice:
    """Where the box had some files."""
    return Advice(
        f"There is no {quoted(wall) or 'such file'} in this box: of your files it has those that its receipt lists.",
        "Name it too, after --input.",
    )


def read_only(wall: Wall, _: Policy, __: str) -> Advice:
    return Advice(
        f"{quoted(wall) or 'That place'} cannot be used like that: in a box a program can write to its working folder"
        " and to /tmp alone.",
        "Use a name without a folder: open('result.txt', 'w').",
    )


def full(_: Wall, policy: Policy, __: str) -> Advice:
    work, temporary = megabytes(policy.work_bytes), megabytes(policy.temporary_bytes)
    less = "Write less, or delete what is no longer needed."
    if policy.work_bytes < policy.file_work_bytes:
        less += f" {asking('--output DIR', f'For {megabytes(policy.file_work_bytes)} MB in its working folder, put')}"
    return Advice(
        f"No room is left: a box has {work} MB in its working folder and {temporary} MB in /tmp, "
        f"and {policy.inodes:,} files in each.",
        less,
    )


def network(_: Wall, __: Policy, ___: str) -> Advice:
    return Advice("A box has no network: nothing can be fetched or sent.", "Put the data into the cell, as text.")


def keyboard(_: Wall, __: Policy, ___: str) -> Advice:
    return Advice(
        "Nobody can type into a box: it has no keyboard.", "Write the answer in place of input(), as in answer = 'yes'."
    )


def memory(_: Wall, policy: Policy, __: str) -> Advice:
    return Advice(f"A box has {megabytes(policy.memory_bytes)} MB of memory in all.", LESS_DATA)


def tasks(_: Wall, policy: Policy, __: str) -> Advice:
    return Advice(f"A box may have {policy.tasks} processes and threads at once.", FEWER_TASKS)


def files_open(_: Wall, policy: Policy, __: str) -> Advice:
    return Advice(
        f"A program in a box may have {policy.open_files} files open at once.",
        "Close each when it is done with: with open(...) as file.",
    )


def forbidden(_: Wall, __: Policy, ___: str) -> Advice:
    return Advice("A box may not allow this request to the operating system.", "")


def magic(_: Wall, __: Policy, ___: str) -> Advice:
    return Advice("A box runs plain Python, with few of IPython's % commands and no ! commands.", "")


WALLS: Final[dict[WallKind, Callable[[Wall, Policy, str], Advice]]] = {
    "module": module,
    "name": name,
    "file": file,
    "read_only": read_only,
    "full": full,
    "network": network,
    "input": keyboard,
    "memory": memory,
    "tasks": tasks,
    "files_open": files_open,
    "forbidden": forbidden,
    "magic": magic,
}


def advice(receipt: Receipt) -> Advice | None:
    """Of the wall that the program's exception met, if it did."""
    wall = receipt.said.wall
    if wall is None:
        return None
    if wall.kind == "file" and receipt.asked.options.inputs:
        return not_among(wall)
    image = receipt.run.image.name if receipt.run.image is not None else ""
    return WALLS[wall.kind](wall, receipt.asked.policy, image)


def asking(option: str, put: str = "Put") -> str:
    """How to ask for it, in a notebook and at a shell."""
    return f"{put} this line first in the cell: %%pybox {option} (at a shell, add {option})."


def quoted(wall: Wall) -> str:
    """A name that the program gave, in marks that it cannot hold itself: what it says is not PyBox's sentence."""
    return in_marks(wall.what) if wall.what else ""


def in_marks(name: str, most: int = 60) -> str:
    return f"‘{safe_name(name, most).translate(WITHOUT_MARKS)}’"
