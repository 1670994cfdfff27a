"""The private machine of this user, wired to the engines: made, started, and given the box images."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from pybox_kernel.boxes.journal import home_folder, home_path
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.engine import Engine, Place
from pybox_kernel.engine_choice import EMULATED, Wish, choose
from pybox_kernel.errors import EngineError, SetupError
from pybox_kernel.images.store import ImageStore, RecordedImage
from pybox_kernel.machines import baking, disk
from pybox_kernel.machines.kept_images import Holder, KeptImages
from pybox_kernel.machines.machine import Machine, MachineFacts
from pybox_kernel.machines.qemu import QemuMachine
from pybox_kernel.sessions.engines import outside_engine, own_machine

__all__ = ["bring_images", "build_machine", "machine", "qemu_machine", "start_machine"]

Progress = Callable[[str], None]


def machine() -> Machine:
    """Talks to nothing, makes nothing. Raises SetupError where there is no driver for one."""
    found = own_machine()
    if found is None:
        raise SetupError("There is no private machine for this system.", "It is for Linux and macOS.")
    return found


def qemu_machine() -> QemuMachine:
    """The one that is made here, and given its images."""
    found = machine()
    if not isinstance(found, QemuMachine):
        raise SetupError("Colima makes its machine itself.", "Start it: `pybox-kernel vm start`.")
    return found


def new_engine(address: str) -> DockerEngine:
    """The engine of a machine that is being made, which may be emulated."""
    return DockerEngine(Place(address, "the new machine's engine", "it is being made", patience=EMULATED))


def build_machine(progress: Progress) -> tuple[str, ...]:
    """Makes it, anew if there is one; the names of the box images in it. Raises SetupError and EngineError."""
    home_folder()
    sources = sources_here(recorded_images())
    baking.make(qemu_machine(), sources, new_engine, progress)
    return tuple(source.image.name for source in sources)


def start_machine(progress: Progress) -> MachineFacts:
    """Starts it; box images that were made since it was made are put on its disk first."""
    found = machine()
    if isinstance(found, QemuMachine) and found.status().state == "stopped":
        record = disk.read_record(found.folder)
        if record is None or record.recipe_sha256 != disk.recipe_sha256():
            raise SetupError(
                "The private machine was made by another version of PyBox.", "Make it anew: `pybox-kernel vm build`."
            )
        sources = sources_here(baking.missing(found, recorded_images()))
        if sources:
            baking.with_images(found, sources, new_engine, progress)
    facts = found.start(progress)
    bring_images(progress)
    return facts


def bring_images(progress: Progress) -> None:
    """Gives a machine that runs the box images that were made since, and keeps those that were made in it: the next
    start puts them on its disk. Raises SetupError and EngineError."""
    found = own_machine()
    if found is None or found.status().state != "running":
        return
    inside, images = DockerEngine(choose(Wish(engine="vm"), lambda: found)), recorded_images()
    for image in images:
        holder, is_there = holder_of(image), has(inside, image)
        if holder is not None and not is_there:
            progress(f"Giving the private machine the box image '{image.name}'")
            inside.load(holder.save(image.reference))
        elif holder is None and is_there and isinstance(found, QemuMachine) and baking.missing(found, [image]):
            progress(f"Keeping the box image '{image.name}' for the machine's next start")
            kept_images().keep(image, inside)
    kept_images().forget_others(images)


def recorded_images() -> list[RecordedImage]:
    return list(ImageStore(home_path()).load().values())


def sources_here(images: Iterable[RecordedImage]) -> list[baking.Source]:
    """Those of ``images`` that the engine of this computer has, or that are kept as files."""
    return [baking.Source(image, holder) for image in images if (holder := holder_of(image)) is not None]


def holder_of(image: RecordedImage) -> Holder | None:
    with suppress(EngineError):
        engine = outside_engine()
        if has(engine, image):
            return engine
    return kept_images().holder(image)


def kept_images() -> KeptImages:
    return KeptImages(home_path() / "vm-images")


def has(engine: Engine, image: RecordedImage) -> bool:
    try:
        return engine.image(image.id).id == image.id
    except EngineError:
        return False
