"""Box images on the private machine's disk, so that each of its starts finds them there.

They come from this computer's engine, or from the files of those that were made in the machine, under the same ids: an
image's id is the hash of its own description, which goes along. The machine is made or changed as a copy beside the one
in use, started once with what it writes kept, shut down, and put in that one's place.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pybox_kernel.engine import Engine
from pybox_kernel.errors import EngineError, EngineRefused, EngineTimeout, SetupError
from pybox_kernel.images.store import RecordedImage
from pybox_kernel.machines import disk
from pybox_kernel.machines.control import Lost
from pybox_kernel.machines.hardware import choose
from pybox_kernel.machines.kept_images import Holder
from pybox_kernel.machines.machine import Progress
from pybox_kernel.machines.qemu import QemuMachine

__all__ = ["Source", "make", "missing", "with_images"]


class Source(NamedTuple):
    """An image, and who has it."""

    image: RecordedImage
    holder: Holder


def missing(machine: QemuMachine, images: Iterable[RecordedImage]) -> list[RecordedImage]:
    """Which of ``images`` are not on the machine's disk."""
    record = disk.read_record(machine.folder)
    there = record.images if record is not None else ()
    return [image for image in images if image.id not in there]


def make(
    machine: QemuMachine, sources: Iterable[Source], engine_at: Callable[[str], Engine], progress: Progress
) -> None:
    """Makes the machine, anew if there is one, with the images of ``sources``. Raises SetupError and EngineError."""
    replace(machine, lambda goal: disk.make(goal, progress), sources, engine_at, progress)


def with_images(
    machine: QemuMachine, sources: Iterable[Source], engine_at: Callable[[str], Engine], progress: Progress
) -> None:
    """Puts more images on the disk of a machine that does not run. Raises SetupError and EngineError."""
    replace(machine, lambda goal: disk.copy(machine.folder, goal), sources, engine_at, progress)


def replace(
    machine: QemuMachine,
    fill: Callable[[Path], None],
    sources: Iterable[Source],
    engine_at: Callable[[str], Engine],
    progress: Progress,
) -> None:
    """All or nothing: whatever stops it, the machine is as it was, and nothing is left beside it."""
    folder = machine.folder
    fresh = QemuMachine(folder.with_name(folder.name + ".new"))
    former = folder.with_name(folder.name + ".old")
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    machine.trust()
    with machine.alone(progress):
        if machine.alive():
            raise SetupError("The private machine is running.", "Stop it first: `pybox-kernel vm stop`.")
        fresh.check()
        clear(fresh, former)
        try:
            fill(fresh.folder)
            wanted = list(sources)
            if wanted:
                bake(fresh, wanted, engine_at, progress)
            if folder.exists():
                folder.rename(former)
            fresh.folder.rename(folder)
        finally:
            clear(fresh, former)


def clear(fresh: QemuMachine, former: Path) -> None:
    with suppress(EngineTimeout):
        fresh.end()
    for left in (fresh.folder, former):
        shutil.rmtree(left, ignore_errors=True)


def bake(machine: QemuMachine, sources: list[Source], engine_at: Callable[[str], Engine], progress: Progress) -> None:
    record = disk.read_record(machine.folder)
    assert record is not None
    machine.fresh_run()
    choice = choose(machine.folder)
    try:
        progress("Starting the machine for the first time")
        machine.launch(choice, keep=True)
        machine.connect(choice)
        engine = engine_at(machine.endpoint)
        for image, holder in sources:
            progress(f"Putting the box image '{image.name}' on its disk")
            engine.load(holder.save(image.reference))
            if engine.image(image.id).id != image.id:
                raise EngineRefused("The machine has another image than it was given.", "Run it again.")
        progress("Shutting it down")
        machine.turn_off()
    except Lost as lost:
        raise EngineTimeout(
            f"The private machine could not be made ready: {lost}.", "Try again when this computer is less busy."
        ) from lost
    except EngineError as error:
        if "no space left on device" in error.message.lower():
            raise SetupError(
                "The machine's disk is full.", "Remove images that are not needed: `pybox-kernel image rm NAME`."
            ) from error
        raise
    kept = (*record.images, *(image.id for image, _ in sources))
    disk.write_record(machine.folder, record.model_copy(update={"images": tuple(dict.fromkeys(kept))}))
