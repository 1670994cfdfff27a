"""Makes a box image as planned, looks into it, and records it.

Whatever stops it (an error, Ctrl-C), nothing of it is left: no image, container or file. Each build has tags
and a label of its own, so two of them, of whatever installations, never take one another's images. Only this computer
uses the network, for the base and for packages; what runs in the engine has none.
"""

from __future__ import annotations

import errno
import re
import secrets
import tempfile
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import ValidationError

from pybox_kernel.boxes.waiting_places import Bounds, Places
from pybox_kernel.errors import EngineError, EngineRefused, SetupError
from pybox_kernel.images import rootfs, wheels
from pybox_kernel.images.builds_at_work import at_work, killed_ones
from pybox_kernel.images.context import write_context
from pybox_kernel.images.offers import in_words
from pybox_kernel.images.recipes import DebianBase, Recipe, RegistryBase, Value, program_files
from pybox_kernel.images.steps import BUILD_LABEL, IMAGE_LABEL, LOOK, LOOK_BASE, RECIPE_LABEL, dockerfile
from pybox_kernel.images.store import BaseImage, ImageStore, Package, RecordedImage, base_in_use
from pybox_kernel.safe_display.text import safe_name
from pybox_kernel.seal.spec import PYTHON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pybox_kernel.engine import Engine
    from pybox_kernel.images.plan import Plan

    Progress = Callable[[str], None]

__all__ = ["carry_out", "clear_killed", "remove", "target_of"]

Found = TypeVar("Found", bound=Value)

LOOK_SECONDS: Final = 30.0
CLEAR_SECONDS: Final = 20.0
QUIET_SECONDS: Final = 1.0
"""An engine may still finish a step when its client has gone: for so long nothing of it must show up."""
GIVEN_BACK_SECONDS: Final = 5.0
"""In which sessions give back boxes that wait."""


def carry_out(engine: Engine, store: ImageStore, plan: Plan, progress: Progress) -> RecordedImage:
    """Does what ``plan`` says, telling each step to ``progress``. Returns what is recorded."""
    if plan.ready is not None:
        return plan.ready
    build = f"{plan.name}-{secrets.token_hex(6)}"
    reference = f"pybox:{build}"
    with _marked(store, build, engine), ExitStack() as undo:
        undo.callback(_clear, engine, build, progress)
        base_image = plan.base_image or _make_base(engine, plan.recipe.base, build, progress, undo)
        image_id = _build(engine, plan, base_image, build, reference, progress)
        progress("Looking into it")
        with _told("The new image could not be looked into"):
            inside = _look(engine, image_id, build)
            size = engine.image(image_id).size_bytes
        _compare(inside, plan.recipe)
        recorded = RecordedImage(
            name=plan.name,
            id=image_id,
            reference=reference,
            recipe_sha256=plan.recipe.sha256,
            recipe=plan.recipe,
            base=str(plan.recipe.base),
            base_image=base_image,
            python=inside.python,
            architecture=inside.machine,
            size_bytes=size,
            created_at=datetime.now(UTC),
            packages=inside.packages,
        )
        former = store.record(recorded)
        undo.pop_all()
    progress(f"The box image '{plan.name}' is ready: Python {inside.python}, {size / 1e6:.0f} MB")
    if former is not None:
        _remove_former(engine, store, former, progress)
    return recorded


def clear_killed(engine: Engine, store: ImageStore, progress: Progress) -> None:
    """Removes what builds of this installation have left in the engine that were killed. Raises SetupError."""
    with _told("What a killed build has left could not be looked for"):
        for build in killed_ones(store.path.parent, engine.address):
            known = store.load().values()
            made = {image.reference for image in known} | {image.base_image.reference for image in known}
            if made.isdisjoint((f"pybox:{build}", f"pybox:{build}-base")):
                progress("Removing what a build that was killed has left")
                _clear(engine, build, progress)


@contextmanager
def _marked(store: ImageStore, build: str, engine: Engine) -> Iterator[None]:
    with ExitStack() as held:
        with _told("The build could not be noted down"):
            held.enter_context(at_work(store.path.parent, build, engine.address))
        yield


def remove(engine: Engine, store: ImageStore, recorded: RecordedImage, progress: Progress) -> None:
    """Removes a recorded image, and its base where no other image is made on it. Raises SetupError if it is in use."""
    _have_boxes_given_back(store)
    try:
        engine.remove_image(recorded.reference)
    except EngineRefused as error:
        raise SetupError(
            f"The box image '{recorded.name}' could not be removed: {error.message}",
            "If a box still runs in it, wait until it has ended, and try again.",
        ) from error
    store.strike(recorded)
    _remove_base(engine, store, recorded, progress)


def _make_base(
    engine: Engine, base: RegistryBase | DebianBase, build: str, progress: Progress, undo: ExitStack
) -> BaseImage:
    if isinstance(base, RegistryBase):
        undo.callback(_remove, engine, base.reference, progress)
        progress(f"Fetching {base}")
        with _told(f"{base} could not be fetched"):
            found = engine.pull(base.repository, base.digest)
        if not any(name.endswith(f"@{base.digest}") for name in found.digests):
            raise SetupError(
                f"The engine did not fetch {base}: it has {', '.join(found.digests) or 'no digest'}.",
                "Do not use this registry until it is known why.",
            )
        return BaseImage(id=found.id, reference=base.reference)
    reference = f"pybox:{build}-base"
    with (
        _told("The root file system could not be made"),
        tempfile.TemporaryDirectory(prefix="pybox-setup-", ignore_cleanup_errors=True) as folder,
    ):
        Path(folder).chmod(0o711)  # without root, mmdebstrap works under other uids
        tar = rootfs.make(base, Path(folder), progress)
        progress("Importing it")
        image_id = engine.import_rootfs(str(tar), reference, [f"LABEL {BUILD_LABEL}={build}"])
    return BaseImage(id=image_id, reference=reference)


def _build(engine: Engine, plan: Plan, base_image: BaseImage, build: str, reference: str, progress: Progress) -> str:
    """Fetches the packages, if there are to be any, and has the engine build. The new image's id."""
    recipe, offer = plan.recipe, plan.recipe.offer
    labels = {IMAGE_LABEL: plan.name, RECIPE_LABEL: recipe.sha256}
    steps = dockerfile(recipe.base.kind, base_image.id, build, offers=offer is not None)
    with (
        _told("The box image could not be built"),
        tempfile.TemporaryDirectory(prefix="pybox-build-", ignore_cleanup_errors=True) as name,
        tempfile.TemporaryFile() as context,
    ):
        stage = None
        if offer is not None:
            progress(f"Fetching {in_words(offer)}")
            stage = wheels.fetch(offer.lock, target_of(engine, base_image.id), Path(name), progress)
        write_context(context, steps, program_files(), offer.preload if offer is not None else (), stage)
        context.seek(0)
        progress("Building the box image")
        return engine.build(context, reference, labels)


class _Inside(Value):
    """What ``LOOK`` prints."""

    python: str
    machine: str
    programs: dict[str, str]
    packages: tuple[Package, ...]


class _BaseInside(Value):
    """What ``LOOK_BASE`` prints."""

    python: tuple[int, int]
    machine: str
    libc: str


def target_of(engine: Engine, base_id: str) -> wheels.Target:
    """What Python packages on this base have to be made for."""
    found = _said_in(engine, base_id, secrets.token_hex(6), ["python3", "-I", "-S", "-B", "-c", LOOK_BASE], _BaseInside)
    glibc = re.fullmatch(r"glibc (\d{1,3})\.(\d{1,3})(\.\d+)?", found.libc)
    if glibc is None:
        raise SetupError(
            f"The base has the C library {found.libc[:40] or 'musl, or another'}, and not glibc, which packages need.",
            "Build on another base: `pybox-kernel setup --base debian` or `--base python`.",
        )
    return wheels.Target(found.python, found.machine, (int(glibc[1]), int(glibc[2])))


def _look(engine: Engine, image_id: str, build: str) -> _Inside:
    return _said_in(engine, image_id, build, [PYTHON, "-I", "-S", "-B", "-c", LOOK], _Inside)


def _said_in(engine: Engine, image_id: str, build: str, command: list[str], kind: type[Found]) -> Found:
    """What a command prints, as its last line, in a container of the image that can do nothing else."""
    name = f"pybox-setup-{build}"
    config = {
        "Image": image_id,
        "Cmd": command,
        "WorkingDir": "/",
        "NetworkDisabled": True,
        "HostConfig": {
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "Memory": 256 * 1024 * 1024,
            "PidsLimit": 32,
            "LogConfig": {"Type": "json-file"},
        },
    }
    try:
        container = engine.create(name, config)
        engine.start(container)
        status = engine.wait_exit(container, LOOK_SECONDS)
        said = engine.logs(container, 1_000_000)
    finally:
        engine.remove(name)
    try:
        return kind.model_validate_json(said.splitlines()[-1] if status == 0 and said else b"")
    except ValidationError as error:
        printed = said[-300:].decode(errors="replace")
        raise SetupError(
            f"The Python of the new image does not work (exit status {status}): {printed}",
            "Build on another base: `pybox-kernel setup --base debian` or `--base python`.",
        ) from error


def _compare(inside: _Inside, recipe: Recipe) -> None:
    wanted = {program.name: program.sha256 for program in recipe.programs}
    differing = sorted({name for name, _ in inside.programs.items() ^ wanted.items()})
    if differing:
        named = ", ".join(safe_name(name, 60) for name in differing[:5])
        raise SetupError(
            f"The in-box programs of the new image are not those that PyBox put there: {named}.",
            "Run setup again, while nothing changes PyBox's own files; leave out a package that was built with it.",
        )


@contextmanager
def _told(what: str) -> Iterator[None]:
    """An engine's or this machine's no, as what it means for the person who sets PyBox up."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise rootfs.disk_full(Path(tempfile.gettempdir())) from error
        raise SetupError(f"{what}: {error}", "Mend that and run setup again.") from error
    except EngineRefused as error:
        if "no space left on device" in error.message.lower():
            raise SetupError(
                "The disk of the container engine is full.",
                "Make room (`docker system df` shows what takes it) and run setup again.",
            ) from error
        raise SetupError(f"{what}: {error.message}", "Mend that and run setup again.") from error


def _clear(engine: Engine, build: str, progress: Progress) -> None:
    """Removes what a build has left that failed or was stopped, and what the engine still finishes for it."""
    label = f"{BUILD_LABEL}={build}"
    end = time.monotonic() + CLEAR_SECONDS
    quiet_since = time.monotonic()
    left = "it was still busy"
    while time.monotonic() < end:
        try:
            for container in engine.containers([label]):
                engine.remove(container.id)
            found = engine.images([label])
            if found:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > QUIET_SECONDS:
                return
            for image in found:
                engine.remove_image(image.id)
        except EngineError as error:
            left = error.message
        time.sleep(0.1)
    progress(f"Something of this build is left in the engine ({left}): `docker images --filter label={label}`")


def _remove(engine: Engine, reference: str, progress: Progress) -> None:
    try:
        engine.remove_image(reference)
    except EngineError as error:
        progress(f"An image is left in the engine: {reference} ({error.message})")


def _remove_former(engine: Engine, store: ImageStore, former: RecordedImage, progress: Progress) -> None:
    """What a build has replaced."""
    _have_boxes_given_back(store)
    _remove(engine, former.reference, progress)
    _remove_base(engine, store, former, progress)


def _have_boxes_given_back(store: ImageStore) -> None:
    """Those that wait for a program may be of an image that is to be removed: without them it goes whole."""
    places, limit = Places(store.path.parent, Bounds(0, 0)), time.monotonic() + GIVEN_BACK_SECONDS
    if places.held().boxes:
        places.ask_back()
    while places.held().boxes and time.monotonic() < limit:
        time.sleep(0.05)


def _remove_base(engine: Engine, store: ImageStore, gone: RecordedImage, progress: Progress) -> None:
    """A base of a registry stays: it may be in use for something else."""
    if isinstance(gone.recipe.base, DebianBase) and not base_in_use(store, gone.base_image):
        _remove(engine, gone.base_image.reference, progress)
