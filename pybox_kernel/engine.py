"""What PyBox asks of a container engine, and nothing more.

The middle of the package (box, witness, leftovers, images, runner) talks to these protocols; ``docker_engine`` is
the one implementation. Every call has a time limit of its own, and raises only from ``errors.EngineError``:
EngineMissing, EngineDenied, EngineTimeout, EngineRefused, EngineNotFound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any, NamedTuple, Protocol

__all__ = [
    "Connection",
    "ContainerRecord",
    "Engine",
    "EngineFacts",
    "EngineVersions",
    "ImageRecord",
    "MachineSettings",
    "Place",
    "PrivateVM",
    "Removal",
]

Record = Mapping[str, Any]
"""An engine's own JSON about one object, untouched. Whoever reads it checks what it reads."""


class MachineSettings(NamedTuple):
    """What a private virtual machine was seen to have when it had started; None where its driver cannot tell."""

    accelerator: str | None = None
    """``kvm``, ``tcg`` or ``vz``: see ``machines.machine.Accelerator``."""
    memory_mib: int | None = None
    processors: int | None = None
    network_devices: int | None = None
    shared_folders: int | None = None


class PrivateVM(NamedTuple):
    """A private virtual machine that runs, as its driver knows it by a connection of its own, not from its engine."""

    words: str
    """What it is, such as "private VM (QEMU, KVM)"."""
    boot_id: str
    """Of the kernel in it."""
    remark: str = ""
    """What else its driver says of it, without a full stop."""
    clock: str = ""
    """Its clock against this computer's, or that it could not be read, in words. Nothing is decided by it: what is
    left behind or has waited too long is found by this computer's clock alone."""
    settings: MachineSettings = MachineSettings()


class Place(NamedTuple):
    """Where a session's engine is, and why that one: decided once, before anything is asked of it."""

    address: str
    """``unix:///...``, or ``tcp://...`` where a person said yes to that."""
    name: str
    """In plain words what listens there, as far as the address tells."""
    chosen: str
    """Why this one, in a few words: "asked for", "the usual one"."""
    vm: Callable[[], PrivateVM | None] | None = None
    """The private virtual machine whose engine it is to be, as it is now; None while it does not run there."""
    require_vm: bool = False
    """Whether nothing may run unless the kernel of the box is seen to be that machine's."""
    runs_cgroup: str | None = None
    """A cgroup (v2) in which each run may have one of its own, which its machine clears when it has been empty for a
    minute."""
    patience: float = 1.0
    """How many times the usual limits its calls, and PyBox's own parts in its containers, are given: more than 1 on a
    slow machine. A program's own limit stays as it is."""

    @property
    def on_a_network(self) -> bool:
        return not self.address.startswith("unix:")


class EngineVersions(NamedTuple):
    """What an engine said of its own versions; empty where it did not."""

    engine: str
    runc: str
    runc_revision: str
    """Of the package, where the engine's maker names one: ``1.1.5+ds1-1+deb12u1``."""


class EngineFacts(NamedTuple):
    """What an engine says about itself; ``None`` where it does not say."""

    address: str
    version: str
    api_version: str
    kernel: str | None
    architecture: str | None
    cgroup_version: str | None
    runc_version: str | None
    runtime: str | None
    """Which container runtime it uses where none is asked for."""
    memory_limit: bool | None
    swap_limit: bool | None
    cpu_limit: bool | None
    pids_limit: bool | None
    security: tuple[str, ...]


class ImageRecord(NamedTuple):
    """An image as the engine knows it. ``id`` is ``sha256:`` and 64 hex digits."""

    id: str
    tags: tuple[str, ...]
    digests: tuple[str, ...]
    labels: Mapping[str, str]
    size_bytes: int


class ContainerRecord(NamedTuple):
    """A line of the engine's container list."""

    id: str
    name: str
    labels: Mapping[str, str]
    state: str


class Connection(Protocol):
    """A two-way byte stream to PID 1 of one container: its stdin, and its stdout and stderr apart."""

    def fileno(self) -> int:
        """The descriptor to wait on. ``pending`` bytes already read do not show there."""
        ...

    def send(self, data: bytes) -> int:
        """Sends what fits without waiting; the number of bytes taken, 0 if none fit. Raises EngineError when closed."""
        ...

    def receive(self) -> list[tuple[int, bytes]] | None:
        """What has come, without waiting: pairs of (1 stdout | 2 stderr, bytes); [] if nothing; None at the end."""
        ...

    def close(self) -> None:
        """Shuts the connection down in both directions, at once. Idempotent, never raises."""
        ...


class Removal(Protocol):
    """A container's removal, asked for or to come by itself, that has been asked to be told of."""

    def status(self, seconds: float) -> int | None:
        """Waits until the engine has removed it: its exit status, or None if the engine no longer knows it.

        To be called once. Raises EngineTimeout after ``seconds``.
        """
        ...


class Engine(Protocol):
    """One container engine at one address. Safe to share between threads."""

    @property
    def address(self) -> str:
        """Where it is, e.g. ``unix:///var/run/docker.sock``."""
        ...

    @property
    def place(self) -> Place: ...

    @property
    def versions(self) -> EngineVersions | None:
        """As it said when it was first asked anything; None before that. Asks nothing itself."""
        ...

    def facts(self) -> EngineFacts: ...

    def create(self, name: str, config: Mapping[str, Any]) -> str:
        """Makes a container from an Engine API ``config`` (never pulls). Returns its full id."""
        ...

    def inspect(self, container_id: str) -> Record: ...

    def attach(self, container_id: str) -> Connection: ...

    def start(self, container_id: str) -> None: ...

    def kill(self, container_id: str) -> bool:
        """SIGKILL to everything in it. False where there was nothing to kill: it is not running, or not there."""
        ...

    def remove(self, container_id: str) -> None:
        """Kills and removes. A container that is not there, or is being removed, is no error. Not a proof."""
        ...

    def expect_removal(self, container_id: str) -> Removal:
        """Asks to be told when the engine has removed it, and returns at once: an end after this call is not missed."""
        ...

    def wait_removed(self, container_id: str, seconds: float) -> int | None:
        """Blocks until the engine has removed it; its exit status, or None if the engine no longer knows it.

        Raises EngineTimeout after ``seconds``.
        """
        ...

    def wait_exit(self, container_id: str, seconds: float) -> int:
        """Blocks until the container is not running; its exit status. Raises EngineTimeout after ``seconds``."""
        ...

    def logs(self, container_id: str, most_bytes: int) -> bytes:
        """What a finished container with an engine log printed, stdout and stderr together, cut to ``most_bytes``."""
        ...

    def containers(self, labels: Iterable[str] = (), name: str | None = None) -> list[ContainerRecord]:
        """All containers, running or not, that carry every label given as ``key`` or ``key=value``."""
        ...

    def image(self, reference: str) -> ImageRecord:
        """Raises EngineNotFound. Never pulls."""
        ...

    def images(self, labels: Iterable[str] = ()) -> list[ImageRecord]: ...

    def pull(self, repository: str, digest: str) -> ImageRecord:
        """Fetches ``repository@digest`` (``sha256:...``). Only set-up calls this."""
        ...

    def resolve(self, reference: str) -> str:
        """Asks the registry which digest ``name:tag`` has now, without fetching it."""
        ...

    def import_rootfs(self, tar_path: str, reference: str, changes: Iterable[str] = ()) -> str:
        """Makes an image of one layer out of a tar file of a root file system. Returns its id."""
        ...

    def build(self, context_tar: IO[bytes], reference: str, labels: Mapping[str, str]) -> str:
        """Builds from a tar of a context with a ``Dockerfile``, without network and without pulling. Returns the id."""
        ...

    def save(self, reference: str) -> Iterator[bytes]:
        """An image as a tar file, piece by piece, as ``load`` of another engine takes it."""
        ...

    def load(self, chunks: Iterator[bytes]) -> None:
        """Takes in what ``save`` gave: an image under the same id and name."""
        ...

    def remove_image(self, reference: str) -> None:
        """An image that is not there is no error."""
        ...
