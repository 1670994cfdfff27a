"""The Docker engine behind the ``Engine`` protocol. With ``docker_client`` and ``docker_images``, the only place that
knows the docker SDK.

The SDK's sessions are not thread-safe, so each thread has a client of its own. Foreign exceptions cross in one place,
``translated``. Nothing of the environment but where the engine is and the keys for it (``engine_choice``,
``docker_client.tls``) is read, so no proxy setting reaches a container.
"""

from __future__ import annotations

import errno
import http.client
import socket
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import IO, Any, Final

import docker
import docker.errors
import requests
import requests.exceptions
import urllib3.exceptions

from pybox_kernel import docker_client, docker_images
from pybox_kernel.engine import ContainerRecord, EngineFacts, EngineVersions, ImageRecord, Place
from pybox_kernel.engine_choice import DEFAULT_ADDRESS, Wish, choose, emptying, mending, placed, starting
from pybox_kernel.errors import (
    EngineDenied,
    EngineError,
    EngineMissing,
    EngineNotFound,
    EngineRefused,
    EngineTimeout,
)
from pybox_kernel.own_descriptors import given_up, keep_to_oneself

__all__ = ["DEFAULT_ADDRESS", "DockerConnection", "DockerEngine", "DockerRemoval"]

ANSWER_SECONDS: Final = 10.0
"""For a call that does work (create, start, remove)."""
LOOK_SECONDS: Final = 5.0
"""For a call that only looks."""
FIRST_SECONDS: Final = 1.5
"""For the first word: an engine that does not say its version by then is named in under 2 s."""
BUILD_SECONDS: Final = 900.0

DOCTOR: Final = "Run `pybox-kernel doctor` to see what is wrong."


@contextmanager
def translated(place: Place, doing: str) -> Iterator[None]:
    """Foreign exceptions of the SDK, requests, urllib3 and the system become EngineErrors, here and nowhere else."""
    address = place.address
    try:
        yield
    except EngineError:
        raise
    except docker.errors.NotFound as error:
        raise EngineNotFound(
            f"The engine knows nothing of it when asked to {doing}: {explained(error)}.", DOCTOR
        ) from error
    except docker.errors.APIError as error:
        why = explained(error)
        advice = emptying(place) if "no space left on device" in why.lower() else DOCTOR
        raise EngineRefused(f"The engine at {address} refused to {doing}: {why}.", advice) from error
    except (requests.exceptions.Timeout, TimeoutError, urllib3.exceptions.TimeoutError) as error:
        raise EngineTimeout(
            f"The engine at {address} did not answer in time when asked to {doing}.", mending(place)
        ) from error
    except (
        docker.errors.DockerException,
        requests.exceptions.RequestException,
        docker.errors.StreamParseError,
        urllib3.exceptions.HTTPError,
        http.client.HTTPException,
        OSError,
        ValueError,
    ) as error:
        raise from_cause(place, doing, error) from error
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        message = f"The engine at {address} gave an answer of another form than an engine's when asked to {doing}."
        raise EngineError(message, DOCTOR) from error


def from_cause(place: Place, doing: str, error: BaseException) -> EngineError:
    """The EngineError for what lies at the bottom of a chain of wrapped exceptions."""
    address = place.address
    seen: list[BaseException] = []
    pending: list[object] = [error]
    while pending and len(seen) < 50:
        item = pending.pop()
        if not isinstance(item, BaseException) or item in seen:
            continue
        seen.append(item)
        pending += [item.__cause__, item.__context__, *item.args, getattr(item, "reason", None)]
    numbers = {item.errno for item in seen if isinstance(item, OSError)}
    if any(isinstance(item, (TimeoutError, requests.exceptions.Timeout)) for item in seen):
        return EngineTimeout(f"The engine at {address} did not answer in time when asked to {doing}.", mending(place))
    path = address.removeprefix("unix://")
    if errno.EACCES in numbers or errno.EPERM in numbers:
        return EngineDenied(
            f"This user may not use the container engine at {address}.",
            "Join the group that owns it (`sudo usermod -aG docker $USER`), then log out and in again.",
        )
    if errno.ENOENT in numbers:
        if place.vm is not None:
            return EngineMissing(f"PyBox's virtual machine has ended: there is no {path}.", starting(place))
        return EngineMissing(
            f"No container engine was found: there is no {path}.",
            "Install one (`apt-get install docker.io`) and start it, or name another (--engine, DOCKER_HOST).",
        )
    if errno.ECONNREFUSED in numbers:
        return EngineMissing(f"Nothing answers at {path}: the container engine is not running.", starting(place))
    return EngineError(f"The engine at {address} broke off when asked to {doing}: {explained(error)}.", DOCTOR)


def explained(error: BaseException) -> str:
    text = getattr(error, "explanation", None) or str(error) or type(error).__name__
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return " ".join(str(text).split())[:400].rstrip(".")


def versions_in(said: Mapping[str, Any]) -> EngineVersions:
    """``said`` is an engine's answer to ``GET /version``."""
    runc: Mapping[str, Any] = {}
    for part in said.get("Components") or ():
        if part.get("Name") == "runc":
            runc = part
    version, revision = str(runc.get("Version") or ""), str((runc.get("Details") or {}).get("GitCommit") or "")
    return EngineVersions(str(said.get("Version") or ""), version, revision if revision.startswith(version) else "")


class DockerConnection:
    """The attach stream of one container, without a terminal: frames of (1 stdout | 2 stderr, bytes).

    Format: Engine API, "ContainerAttach": one byte of stream type, three zeros, four bytes of big-endian length.
    """

    HEADER = 8
    READ = 65536

    def __init__(self, address: str, raw: socket.socket, keep: object) -> None:
        self._address = address
        self._socket = raw
        self._keep = keep  # the SDK's response owns the connection; without it the socket would be closed under us
        self._buffer = bytearray()
        self._ended = False
        raw.setblocking(False)
        keep_to_oneself(raw.fileno())

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise EngineError("The connection to the box is closed.", DOCTOR) from error

    def receive(self) -> list[tuple[int, bytes]] | None:
        if self._ended:
            return None
        try:
            data = self._socket.recv(self.READ)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._ended = True
            return None
        self._buffer += data
        parts: list[tuple[int, bytes]] = []
        position = 0
        while len(self._buffer) - position >= self.HEADER:
            length = int.from_bytes(self._buffer[position + 4 : position + 8], "big")
            if len(self._buffer) - position - self.HEADER < length:
                break
            start = position + self.HEADER
            parts.append((self._buffer[position], bytes(self._buffer[start : start + length])))
            position = start + length
        del self._buffer[:position]
        return parts

    def close(self) -> None:
        self._ended = True
        given_up(self._socket.fileno())
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._socket.close()
        with suppress(Exception):  # the SDK's own close of what is closed already
            self._keep.close()  # type: ignore[attr-defined]


class DockerRemoval:
    """An answer of ``POST /containers/ID/wait``: its head comes at once, its body when the container is removed."""

    def __init__(self, place: Place, answer: requests.Response) -> None:
        self._place = place
        self._answer = answer

    def status(self, seconds: float) -> int | None:
        with translated(self._place, "tell of a box's removal"), closing(self._answer):
            if self._answer.status_code == requests.codes.not_found:
                return None
            self._answer.raise_for_status()
            docker_client.await_more(self._answer.raw, seconds)
            return int(self._answer.json()["StatusCode"])


class DockerEngine:
    """One Docker engine. Making this value talks to nothing; the first call finds the API version both sides speak."""

    def __init__(self, where: Place | str | None = None) -> None:
        """``where`` is a place that was chosen, or an address; else this computer's own engine."""
        if not isinstance(where, Place):
            where = placed(where, "given") if where else choose(Wish(engine="local"), lambda: None)
        self._place = where
        self._address = where.address
        self._local = threading.local()
        self._version: str | None = None
        self._versions: EngineVersions | None = None
        self._lock = threading.Lock()
        # Weak, so that the connections of a thread end with it.
        self._clients: weakref.WeakSet[docker.APIClient] = weakref.WeakSet()

    @property
    def address(self) -> str:
        return self._address

    @property
    def place(self) -> Place:
        return self._place

    @property
    def versions(self) -> EngineVersions | None:
        return self._versions

    def close(self) -> None:
        """Closes every thread's connections."""
        with self._lock:
            clients = list(self._clients)
            self._clients.clear()
        for client in clients:
            client.close()
        self._local = threading.local()

    def _client(self, seconds: float = LOOK_SECONDS) -> docker.APIClient:
        client = getattr(self._local, "client", None)
        if client is None:
            if self._version is None:
                said = docker_client.first_word(self._address, FIRST_SECONDS * self._place.patience)
                self._versions, self._version = versions_in(said), str(said["ApiVersion"])
            client = docker_client.client(self._address, self._version, seconds)
            self._local.client = client
            with self._lock:
                self._clients.add(client)
        client.timeout = seconds * self._place.patience
        return client

    def facts(self) -> EngineFacts:
        with translated(self._place, "describe itself"):
            info: dict[str, Any] = self._client().info()
            version: dict[str, Any] = self._client().version()
            return EngineFacts(
                address=self._address,
                version=str(version.get("Version", "")),
                api_version=str(version.get("ApiVersion", "")),
                kernel=info.get("KernelVersion"),
                architecture=info.get("Architecture"),
                cgroup_version=info.get("CgroupVersion"),
                runc_version=versions_in(version).runc or None,
                runtime=info.get("DefaultRuntime"),
                memory_limit=info.get("MemoryLimit"),
                swap_limit=info.get("SwapLimit"),
                cpu_limit=info.get("CpuCfsQuota"),
                pids_limit=info.get("PidsLimit"),
                security=tuple(info.get("SecurityOptions") or ()),
            )

    def create(self, name: str, config: Mapping[str, Any]) -> str:
        with translated(self._place, "make a box"):
            made = self._client(ANSWER_SECONDS).create_container_from_config(dict(config), name)
            return str(made["Id"])

    def inspect(self, container_id: str) -> Mapping[str, Any]:
        with translated(self._place, "describe a box"):
            return dict(self._client().inspect_container(container_id))

    def attach(self, container_id: str) -> DockerConnection:
        """By hand: the SDK's ``attach_socket`` sets no time limit."""
        with translated(self._place, "connect to a box"), ExitStack() as undo:
            client = self._client(ANSWER_SECONDS)
            url = f"{client.base_url}/v{client.api_version}/containers/{container_id}/attach"
            params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1, "logs": 0}
            headers = {"Connection": "Upgrade", "Upgrade": "tcp"}
            answer = client.post(url, params=params, headers=headers, timeout=client.timeout, stream=True)
            undo.callback(answer.close)
            client._raise_for_status(answer)
            if answer.status_code != requests.codes.switching_protocols:
                raise TypeError("an answer instead of a connection")
            holder = client._get_raw_response_socket(answer)
            undo.pop_all()
            return DockerConnection(self._address, getattr(holder, "_sock", holder), holder)

    def start(self, container_id: str) -> None:
        with translated(self._place, "start a box"):
            self._client(ANSWER_SECONDS).start(container_id)

    def kill(self, container_id: str) -> bool:
        with translated(self._place, "stop a box"):
            try:
                self._client().kill(container_id, "SIGKILL")
            except docker.errors.APIError as error:
                if error.status_code not in (404, 409):
                    raise
                return False
        return True

    def remove(self, container_id: str) -> None:
        with translated(self._place, "remove a box"):
            try:
                self._client(ANSWER_SECONDS).remove_container(container_id, force=True, v=True)
            except docker.errors.APIError as error:
                if error.status_code not in (404, 409):
                    raise

    def expect_removal(self, container_id: str) -> DockerRemoval:
        with translated(self._place, "tell of a box's removal"):
            client = self._client(ANSWER_SECONDS)
            url = f"{client.base_url}/v{client.api_version}/containers/{container_id}/wait"
            answer = client.post(url, params={"condition": "removed"}, timeout=client.timeout, stream=True)
            return DockerRemoval(self._place, answer)

    def wait_removed(self, container_id: str, seconds: float) -> int | None:
        return self.expect_removal(container_id).status(seconds)

    def wait_exit(self, container_id: str, seconds: float) -> int:
        with translated(self._place, "wait for a container's end"):
            return int(self._client(seconds).wait(container_id, timeout=seconds)["StatusCode"])

    def logs(self, container_id: str, most_bytes: int) -> bytes:
        with translated(self._place, "show what a container printed"):
            return bytes(self._client(ANSWER_SECONDS).logs(container_id))[:most_bytes]

    def containers(self, labels: Iterable[str] = (), name: str | None = None) -> list[ContainerRecord]:
        filters: dict[str, list[str]] = {"label": list(labels)}
        if name is not None:
            filters["name"] = [f"^/{name}$"]
        with translated(self._place, "list its containers"):
            lines = self._client().containers(all=True, filters=filters)
            return [
                ContainerRecord(
                    id=str(line["Id"]),
                    name=str((line.get("Names") or [""])[0]).removeprefix("/"),
                    labels=dict(line.get("Labels") or {}),
                    state=str(line.get("State", "")),
                )
                for line in lines
            ]

    def image(self, reference: str) -> ImageRecord:
        with translated(self._place, f"describe the image {reference[:80]}"):
            return docker_images.image(self._client(), reference)

    def images(self, labels: Iterable[str] = ()) -> list[ImageRecord]:
        with translated(self._place, "list its images"):
            return docker_images.images(self._client(), labels)

    def pull(self, repository: str, digest: str) -> ImageRecord:
        with translated(self._place, f"fetch {repository}@{digest}"):
            return docker_images.pull(self._client(BUILD_SECONDS), repository, digest)

    def resolve(self, reference: str) -> str:
        with translated(self._place, f"look up {reference}"):
            return docker_images.resolve(self._client(ANSWER_SECONDS), reference)

    def import_rootfs(self, tar_path: str, reference: str, changes: Iterable[str] = ()) -> str:
        with translated(self._place, "import a root file system"):
            return docker_images.import_rootfs(self._client(BUILD_SECONDS), tar_path, reference, changes)

    def build(self, context_tar: IO[bytes], reference: str, labels: Mapping[str, str]) -> str:
        with translated(self._place, "build an image"):
            return docker_images.build(self._client(BUILD_SECONDS), context_tar, reference, labels)

    def save(self, reference: str) -> Iterator[bytes]:
        with translated(self._place, f"give the image {reference[:80]} away"):
            yield from docker_images.save(self._client(BUILD_SECONDS), reference)

    def load(self, chunks: Iterator[bytes]) -> None:
        with translated(self._place, "take an image in"):
            docker_images.load(self._client(BUILD_SECONDS), chunks)

    def remove_image(self, reference: str) -> None:
        with translated(self._place, "remove an image"):
            docker_images.remove_image(self._client(ANSWER_SECONDS), reference)
