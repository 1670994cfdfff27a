"""The box images of this user, wired to the engine whose images they are: planned, made, known and removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pybox_kernel.boxes.journal import home_folder, home_path
from pybox_kernel.images import build, plan, store, wheels
from pybox_kernel.images.package_locks import Lock
from pybox_kernel.images.plan import BASE_CHOICES, Plan
from pybox_kernel.images.recipes import Offer
from pybox_kernel.images.store import ImageStore, RecordedImage
from pybox_kernel.sessions.engines import own_engine

__all__ = [
    "BASE_CHOICES",
    "known_images",
    "lock_file",
    "make_lock",
    "plan_image",
    "plan_set_up",
    "remove_image",
    "set_up",
]


def plan_set_up(*, base: str, fresh: bool) -> Plan:
    """What set-up would do. Changes nothing."""
    return plan.plan(own_engine(), ImageStore(home_path()), base=base, fresh=fresh)


def plan_image(name: str, *, offer: Offer | None = None, fresh: bool = False) -> Plan:
    """What is to be done to have the image ``name``, which offers packages. Changes nothing."""
    return plan.plan(own_engine(), ImageStore(home_path()), name=name, offer=offer, fresh=fresh)


def known_images() -> Mapping[str, RecordedImage]:
    """The images that were made, by name."""
    return ImageStore(home_path()).load()


def make_lock(requirements: Sequence[str], progress: Callable[[str], None]) -> Lock:
    """The lock of lines that ``wheels.read_requirements`` gave, for the Python of the ``stdlib`` image."""
    engine = own_engine()
    recorded = store.require(engine, ImageStore(home_path()), "stdlib")
    return wheels.make_lock(requirements, build.target_of(engine, recorded.id), progress)


def lock_file(name: str) -> Path:
    """Where the lock of a recorded image lies."""
    return ImageStore(home_path()).lock_file(name)


def remove_image(recorded: RecordedImage, progress: Callable[[str], None]) -> None:
    """Removes an image from the engine and from the record."""
    build.remove(own_engine(), ImageStore(home_folder()), recorded, progress)


def set_up(plan: Plan, progress: Callable[[str], None]) -> RecordedImage:
    """Does what ``plan`` says, a line of ``progress`` for each step."""
    engine, store = own_engine(), ImageStore(home_folder())
    build.clear_killed(engine, store, progress)
    return build.carry_out(engine, store, plan, progress)
