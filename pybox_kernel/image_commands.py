"""``pybox-kernel setup`` and ``pybox-kernel image``: what images there are, and making and removing them."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pybox_kernel.errors import ExitStatus, OptionError
from pybox_kernel.images.offers import BUILT_IN, own_offer
from pybox_kernel.images.package_locks import MOST_BYTES, parse_lock
from pybox_kernel.images.plan import Plan
from pybox_kernel.images.recipes import Offer
from pybox_kernel.images.store import how_to_make
from pybox_kernel.images.wheels import read_requirements
from pybox_kernel.policy import IMAGE_NAME
from pybox_kernel.progress import Steps
from pybox_kernel.render.amounts import counted
from pybox_kernel.sessions import images
from pybox_kernel.sessions import machine as session_machine

__all__ = ["add_image_parser", "image", "setup"]

USED_BY: Final = {"stdlib": "the kernel PyBox (sealed)", "data": "the kernel PyBox (sealed, data)"}


def add_image_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("image", help="images with Python packages: build, list, rm", allow_abbrev=False)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    build = actions.add_parser("build", help="make an image, or make it again", allow_abbrev=False)
    build.add_argument("name", metavar="NAME", help=f"{' or '.join(BUILT_IN)}, or a name for one of your own")
    packages = build.add_mutually_exclusive_group()
    packages.add_argument("--lock", metavar="FILE", help="packages pinned with hashes, as uv pip compile writes them")
    packages.add_argument("--from", dest="wanted", metavar="FILE", help="a requirements.txt, which is locked now")
    build.add_argument(
        "--preload", action="append", default=[], metavar="MODULE", help="import this before the time limit starts"
    )
    build.add_argument("--yes", action="store_true", help="do it; without, only say what would be done")
    actions.add_parser("list", help="the images that were made", allow_abbrev=False)
    remove = actions.add_parser("rm", help="remove an image", allow_abbrev=False)
    remove.add_argument("name", metavar="NAME")


def setup(options: argparse.Namespace) -> int:
    """The ``stdlib`` image, and ``data`` where it is asked for."""
    plans = [images.plan_set_up(base=options.base, fresh=options.fresh)]
    if options.also == "data":
        plans.append(images.plan_image("data", fresh=options.fresh))
    for plan in plans:
        show(plan)
    if all(plan.ready is not None for plan in plans):
        return ExitStatus.OK
    if not options.yes:
        again = "pybox-kernel setup --yes" + (" --with data" if options.also else "")
        print(f"Nothing was done. To do it: {again}")
        return ExitStatus.OK
    with interruptible(), Steps() as steps:
        images.set_up(plans[0], steps)
        if options.also == "data":  # planned anew: its base is there by now
            images.set_up(images.plan_image("data", fresh=options.fresh), steps)
        session_machine.bring_images(steps)
    return ExitStatus.OK


@contextmanager
def interruptible() -> Iterator[None]:
    """A terminal that is closed, and whoever asks this process to end, are as Ctrl-C: nothing half made is left."""
    before = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGHUP)]
    for number, handler in before:
        if handler is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def image(options: argparse.Namespace) -> int:
    actions = {"build": build, "list": show_all, "rm": remove}
    return actions[options.action](options)


def build(options: argparse.Namespace) -> int:
    require_possible(options)
    if options.wanted is not None and not options.yes:
        named = counted(len(read_requirements(read(options.wanted))), "package")
        print(f"The box image '{options.name}' will be made with the {named} of {options.wanted}, and all they need:")
        print("  fetch  their versions, and then the packages themselves, from pip's package index")
        print("Nothing was fetched and no image was made. To make it: the same with --yes.")
        return ExitStatus.OK
    plan = images.plan_image(options.name, offer=offer_of(options))
    show(plan)
    if plan.ready is not None:
        return ExitStatus.OK
    if not options.yes:
        print("No image was made. To make it: the same with --yes.")
        return ExitStatus.OK
    with interruptible(), Steps() as steps:
        images.set_up(plan, steps)
        session_machine.bring_images(steps)
    if options.wanted is not None:
        print(f"Its lock is {images.lock_file(options.name)}; --lock with a copy of it makes the same image elsewhere.")
    return ExitStatus.OK


def require_possible(options: argparse.Namespace) -> None:
    """Raises OptionError for a name that no image made here can have, or that does not fit what is asked for it."""
    name = options.name
    named = options.lock is not None or options.wanted is not None
    if not IMAGE_NAME.fullmatch(name):
        raise OptionError(
            f"An image cannot be called {name[:60]!r}.",
            "Take up to 32 small letters, digits and hyphens, a letter first.",
        )
    if name == "stdlib":
        raise OptionError("The image 'stdlib' is made by another command.", how_to_make(name))
    if name in BUILT_IN and (named or options.preload):
        raise OptionError(f"What is in the image '{name}' is fixed.", "Choose another name for an image of your own.")


def offer_of(options: argparse.Namespace) -> Offer | None:
    """What the image is to have; None for what a built-in image has, or what was recorded."""
    name, preload = options.name, tuple(options.preload)
    if name in BUILT_IN:
        return None
    if options.lock is not None:
        return own_offer(parse_lock(read(options.lock)), preload)
    if options.wanted is not None:
        with interruptible(), Steps() as steps:
            steps("Finding versions")
            lock = images.make_lock(read_requirements(read(options.wanted)), steps)
        return own_offer(lock, preload)
    recorded = images.known_images().get(name)
    if recorded is None or recorded.recipe.offer is None:
        raise OptionError(
            f"What is to be in the image '{name}' is not known.", "Name --lock FILE or --from requirements.txt."
        )
    return own_offer(recorded.recipe.offer.lock, preload or recorded.recipe.offer.preload)


def read(name: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise OptionError(f"{name}: {error.strerror}.", "Name a file that can be read.") from error


def show(plan: Plan) -> None:
    for line in plan.lines:
        print(line)


def show_all(_: argparse.Namespace) -> int:
    known = images.known_images()
    if not known:
        print(f"No image has been made yet. {how_to_make('stdlib')}")
        return ExitStatus.OK
    rows = [("NAME", "PYTHON", "PACKAGES", "SIZE", "MADE", "USED BY")]
    for name, found in known.items():
        packages = len(found.recipe.offer.pins) if found.recipe.offer is not None else 0
        used_by = USED_BY.get(name, f"pybox-kernel run --image {name}")
        size = f"{found.size_bytes / 1e6:.0f} MB"
        rows.append((name, found.python, str(packages), size, f"{found.created_at:%Y-%m-%d}", used_by))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return ExitStatus.OK


def remove(options: argparse.Namespace) -> int:
    if options.name == "stdlib":
        raise OptionError(
            "The image 'stdlib' stays: every box needs it or its base.", "Name another of `pybox-kernel image list`."
        )
    recorded = images.known_images().get(options.name)
    if recorded is None:
        raise OptionError(f"There is no image called {options.name[:60]!r}.", "`pybox-kernel image list` names them.")
    images.remove_image(recorded, print)
    print(f"The box image '{recorded.name}' is removed.")
    return ExitStatus.OK
