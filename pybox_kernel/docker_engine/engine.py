"""The Docker engine behind the ``Engine`` protocol. With ``docker_client`` and ``docker_images``, the only place that
knows the docker SDK.

The SDK's sessions are not thread-safe, so each thread has a client of its own. Foreign exceptions cross in one place,
``translated``. Nothing of the environment but where the engine is and the keys for it (``engine_choice``,
``client_of.tls``) is read, so no proxy setting reaches a container.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import IO, Any, Final

import docker
import requests

from pybox_kernel.docker_engine import images as image_calls
from pybox_kernel.docker_engine.client import await_more, first_word, new_client, read_answer
from pybox_kernel.docker_engine.connection import DockerConnection
from pybox_kernel.docker_engine.errors import translated
from pybox_kernel.engine import ContainerRecord, EngineFacts, EngineVersions, ImageRecord, Place
from pybox_kernel.engine_choice import Wish, choose, placed

__all__ = ["DockerEngine", "DockerRemoval"]

ANSWER_SECONDS: Final = 10.0
"""For a call that does work (create, start, remove)."""
LOOK_SECONDS: Final = 5.0
"""For a call that only looks."""
FIRST_SECONDS: Final = 1.5
"""For the first word: an engine that does not say its version by then is named in under 2 s."""
BUILD_SECONDS: Final = 900.0


def versions_in(said: Mapping[str, Any]) -> EngineVersions:
    """``said`` is an engine's answer to ``GET /version``."""
    runc: Mapping[str, Any] = {}
    for part in said.get("Components") or ():
        if part.get("Name") == "runc":
            runc = part
    version, revision = str(runc.get("Version") or ""), str((runc.get("Details") or {}).get("GitCommit") or "")
    return EngineVersions(str(said.get("Version") or ""), version, revision if revision.startswith(version) else "")


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
            await_more(self._answer.raw, seconds)
            read_answer(self._answer)
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
                said = first_word(self._address, FIRST_SECONDS * self._place.patience)
                self._versions, self._version = versions_in(said), str(said["ApiVersion"])
            client = new_client(self._address, self._version, seconds)
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
            return image_calls.image(self._client(), reference)

    def images(self, labels: Iterable[str] = ()) -> list[ImageRecord]:
        with translated(self._place, "list its images"):
            return image_calls.images(self._client(), labels)

    def pull(self, repository: str, digest: str) -> ImageRecord:
        with translated(self._place, f"fetch {repository}@{digest}"):
            return image_calls.pull(self._client(BUILD_SECONDS), repository, digest)

    def resolve(self, reference: str) -> str:
        with translated(self._place, f"look up {reference}"):
            return image_calls.resolve(self._client(ANSWER_SECONDS), reference)

    def import_rootfs(self, tar_path: str, reference: str, changes: Iterable[str] = ()) -> str:
        with translated(self._place, "import a root file system"):
            return image_calls.import_rootfs(self._client(BUILD_SECONDS), tar_path, reference, changes)

    def build(self, context_tar: IO[bytes], reference: str, labels: Mapping[str, str]) -> str:
        with translated(self._place, "build an image"):
            return image_calls.build(self._client(BUILD_SECONDS), context_tar, reference, labels)

    def save(self, reference: str) -> Iterator[bytes]:
        with translated(self._place, f"give the image {reference[:80]} away"):
            yield from image_calls.save(self._client(BUILD_SECONDS), reference)

    def load(self, chunks: Iterator[bytes]) -> None:
        with translated(self._place, "take an image in"):
            image_calls.load(self._client(BUILD_SECONDS), chunks)

    def remove_image(self, reference: str) -> None:
        with translated(self._place, "remove an image"):
            image_calls.remove_image(self._client(ANSWER_SECONDS), reference)
