"""What has to be done to have a box image: a plan to look at before anything is fetched or made.

``plan`` changes nothing; ``build.carry_out`` does what it says.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pybox_kernel.errors import EngineNotFound, EngineRefused, EngineTimeout, OptionError, SetupError
from pybox_kernel.images import rootfs, wheels
from pybox_kernel.images.offers import built_in_offer, in_words
from pybox_kernel.images.recipes import OFFICIAL_PYTHON, DebianBase, Offer, Recipe, RegistryBase, current_recipe
from pybox_kernel.images.store import BaseImage, ImageStore, RecordedImage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybox_kernel.engine import Engine

__all__ = ["BASE_CHOICES", "Cost", "Plan", "plan"]

PACKAGES_MEGABYTES: Final = {"data": 60, "class": 120}
"""What pip fetches for the built-in images."""
BASE_CHOICES: Final = "auto, python, debian, or NAME@sha256:DIGEST"

# The kernel's name for a machine, and Debian's.
DEBIAN_NAMES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
PINNED: Final = re.compile(
    r"(?P<repository>[a-z0-9][a-z0-9._:/-]*?)(?::(?P<tag>\w[\w.-]*))?@(?P<digest>sha256:[0-9a-f]{64})"
)


class Cost(NamedTuple):
    """What is to be fetched, from where, and how long all of it takes on a usual connection."""

    source: str
    megabytes: int
    seconds: int


@dataclass(frozen=True)
class Plan:
    name: str
    recipe: Recipe
    ready: RecordedImage | None
    """The image, if it is there already and nothing is to be done."""
    base_image: BaseImage | None
    """The base, if it is in the engine already and nothing is to be fetched."""
    cost: Cost
    remark: str | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """For a person to read before saying yes."""
        base = self.recipe.base
        if self.ready is not None:
            made = f"Python {self.ready.python}, made {self.ready.created_at:%Y-%m-%d}"
            return (f"The box image '{self.name}' is ready ({made}, from {base}). There is nothing to do.",)
        fetched = [f"about {self.cost.megabytes} MB from {self.cost.source}"] if self.cost.megabytes else []
        if self.recipe.offer is not None:
            fetched.append(f"{in_words(self.recipe.offer)}{_about(self.name)}, from pip's package index")
        return (
            *([self.remark] if self.remark else []),
            f"The box image '{self.name}' will be made:",
            f"  from   {base}",
            *(f"  fetch  {line}" for line in fetched or ["nothing"]),
            f"  time   about {self.cost.seconds} s",
        )


def plan(
    engine: Engine,
    store: ImageStore,
    *,
    base: str = "auto",
    name: str = "stdlib",
    fresh: bool = False,
    official: str = OFFICIAL_PYTHON,
    offer: Offer | None = None,
) -> Plan:
    """What is to be done to have the image ``name``. Changes nothing.

    ``base`` is one of BASE_CHOICES. ``python`` is the official image: its tag is resolved to a digest once,
    which holds until ``fresh`` asks for a new one. ``debian`` is made of Debian packages. ``auto`` stays with
    what was chosen before; at first it is ``python`` where the engine reaches the registry, else ``debian``.
    ``offer`` is what a person's own image is to have; without, it is what was recorded. An image that offers packages
    stands on the base of ``stdlib`` where there is one. Raises OptionError, SetupError and EngineError.
    """
    images = store.load()
    recorded = images.get(name)
    offer = built_in_offer(name) or offer or (recorded.recipe.offer if recorded is not None else None)
    lead = images.get("stdlib") if offer is not None else None
    chosen, remark = _choose(engine, lead or recorded, base, fresh=fresh and lead is None, official=official)
    recipe = current_recipe(chosen, offer)
    keep = recorded if recorded is not None and not fresh and recorded.recipe.base == chosen else None
    if keep is not None and keep.recipe == recipe and _has(engine, keep.id):
        return Plan(name, recipe, ready=keep, base_image=keep.base_image, cost=Cost("", 0, 0))
    if offer is not None:
        wheels.check_pip()
    others = [] if fresh else [keep, *images.values()]
    base_image = _base_in_engine(engine, chosen, [image for image in (lead, *others) if image is not None])
    if base_image is not None:
        cost = Cost("", 0, 10)
    elif isinstance(chosen, DebianBase):
        _check_debian_can_be_made()
        mirrors = rootfs.mirrors(chosen.suite)
        cost = Cost(mirrors[0].split()[2].rstrip("/") if mirrors else rootfs.DEFAULT_MIRROR, 35, 20)
    else:
        cost = Cost(chosen.repository, 45, 30)
    if offer is not None:
        cost = cost._replace(seconds=cost.seconds + 4 * len(offer.pins))
    return Plan(name, recipe, ready=None, base_image=base_image, cost=cost, remark=remark)


def _about(name: str) -> str:
    return f", about {PACKAGES_MEGABYTES[name]} MB" if name in PACKAGES_MEGABYTES else ""


def _choose(
    engine: Engine, recorded: RecordedImage | None, wish: str, *, fresh: bool, official: str
) -> tuple[RegistryBase | DebianBase, str | None]:
    former = recorded.recipe.base if recorded is not None else None
    if pinned := PINNED.fullmatch(wish):
        return RegistryBase.model_validate(pinned.groupdict()), None
    if wish not in ("auto", "python", "debian"):
        raise OptionError(
            f"The base image {wish[:200]!r} has no digest, and a tag can point elsewhere tomorrow.",
            f"Give {BASE_CHOICES}; `docker images --digests` shows the digests of images you have.",
        )
    if wish == "debian" or (wish == "auto" and isinstance(former, DebianBase)):
        return _debian(engine), None
    if isinstance(former, RegistryBase) and (wish == "auto" or former.name == official):
        if not fresh or former.tag is None:
            return former, None
        return _resolve(engine, former.name), None
    if wish == "python":
        return _resolve(engine, official), None
    try:
        return _resolve(engine, official), None
    except SetupError as error:
        if missing := rootfs.missing():
            raise SetupError(
                f"{error.message} For Debian packages instead, this machine lacks: {', '.join(missing)}.",
                f"Look at the engine's network, or install what is missing: {_install(missing)}",
            ) from error
        return _debian(engine), f"The engine cannot reach {official}, so Debian packages are used instead."


def _debian(engine: Engine) -> DebianBase:
    machine = engine.facts().architecture
    if machine not in DEBIAN_NAMES:
        raise SetupError(
            f"The container engine's machine is {machine or 'unknown'}; boxes are for x86_64 and aarch64.",
            "Use an engine on one of these machines.",
        )
    return rootfs.debian_base(DEBIAN_NAMES[machine])


def _resolve(engine: Engine, name: str) -> RegistryBase:
    repository, _, tag = name.rpartition(":")
    try:
        return RegistryBase(repository=repository, tag=tag, digest=engine.resolve(name))
    except (EngineRefused, EngineTimeout) as error:
        raise SetupError(
            f"The engine could not find out what {name} is: {error.message}",
            "Look at the engine's network, or build on Debian packages: `pybox-kernel setup --base debian`.",
        ) from error


def _check_debian_can_be_made() -> None:
    if missing := rootfs.missing():
        raise SetupError(
            f"Making an image of Debian packages needs what this machine lacks: {', '.join(missing)}.",
            f"Install it: {_install(missing)}",
        )
    work = Path(tempfile.gettempdir())
    if shutil.disk_usage(work).free < rootfs.WORK_BYTES:
        raise rootfs.disk_full(work)


def _install(packages: list[str]) -> str:
    return f"`sudo apt-get install --no-install-recommends {' '.join(packages)}`."


def _has(engine: Engine, reference: str) -> bool:
    try:
        engine.image(reference)
    except EngineNotFound:
        return False
    return True


def _base_in_engine(
    engine: Engine, base: RegistryBase | DebianBase, recorded: Iterable[RecordedImage]
) -> BaseImage | None:
    for image in recorded:
        if image.recipe.base == base and _has(engine, image.base_image.id):
            return image.base_image
    if isinstance(base, RegistryBase) and _has(engine, base.reference):
        return BaseImage(id=engine.image(base.reference).id, reference=base.reference)
    return None
