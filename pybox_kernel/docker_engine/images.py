"""The image calls of the Docker engine. ``engine`` makes them, and translates what they raise.

Long calls (pull, import, build) do not go through the SDK's helpers: these keep the connection open after an
interrupt, and the engine would go on working for nobody.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import docker
import docker.auth
import docker.errors
import requests

from pybox_kernel.engine import ImageRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["build", "image", "images", "import_rootfs", "load", "pull", "remove_image", "resolve", "save"]

TOLD_BYTES: Final = 300
"""How much of a failed build's own output goes into the error."""
PIECE_BYTES: Final = 1 << 20
PIECE_SECONDS: Final = 60.0
LONGEST_LINE: Final = 1 << 20
MOST_BYTES: Final = 16 << 20
"""Of all that an engine tells of one long call."""


def image(client: docker.APIClient, reference: str) -> ImageRecord:
    found = client.inspect_image(reference)
    labels = (found.get("Config") or {}).get("Labels")
    return _record({**found, "Labels": labels})


def images(client: docker.APIClient, labels: Iterable[str]) -> list[ImageRecord]:
    return [_record(found) for found in client.images(filters={"label": list(labels)})]


def pull(client: docker.APIClient, repository: str, digest: str) -> ImageRecord:
    registry, _ = docker.auth.resolve_repository_name(repository)
    login = docker.auth.get_config_header(client, registry)
    headers = {"X-Registry-Auth": login.decode("ascii")} if login else {}
    _talk(client, "/images/create", {"fromImage": repository, "tag": digest}, headers)
    return image(client, f"{repository}@{digest}")


def resolve(client: docker.APIClient, reference: str) -> str:
    return str(client.inspect_distribution(reference)["Descriptor"]["digest"])


def import_rootfs(client: docker.APIClient, tar_path: str, reference: str, changes: Iterable[str]) -> str:
    repository, _, tag = reference.rpartition(":")
    params = {"fromSrc": "-", "repo": repository, "tag": tag, "changes": list(changes)}
    with Path(tar_path).open("rb") as file:
        events = _talk(client, "/images/create", params, {"Content-Type": "application/x-tar"}, file)
    return str(events[-1]["status"])


def build(client: docker.APIClient, context_tar: IO[bytes], reference: str, labels: Mapping[str, str]) -> str:
    """What a failed build had finished stays in the engine under the labels that its ``Dockerfile`` set."""
    params = {
        "t": reference,
        "labels": json.dumps(dict(labels)),
        "networkmode": "none",
        "pull": "0",
        "nocache": "1",
        "rm": "1",
        "forcerm": "1",
        "version": "1",  # the engine's own builder: it takes a base by its id
    }
    events = _talk(client, "/build", params, {"Content-Type": "application/x-tar"}, context_tar)
    return [str(event["aux"]["ID"]) for event in events if "ID" in event.get("aux", {})][-1]


def save(client: docker.APIClient, reference: str) -> Iterator[bytes]:
    """By hand: the SDK's ``get_image`` has no time limit. Here the first piece has the client's, and each that follows
    ``PIECE_SECONDS`` from when it is asked for: whoever takes them may be slow."""
    url = client._url("/images/{0}/get", reference)
    response = client.get(url, timeout=client.timeout, stream=True)
    with closing(response):
        client._raise_for_status(response)
        raw = client._get_raw_response_socket(response)
        opened = getattr(raw, "_sock", raw)
        for part in response.iter_content(PIECE_BYTES):
            yield part
            with suppress(OSError):  # of one that is closed, after the last
                opened.settimeout(PIECE_SECONDS)


def load(client: docker.APIClient, chunks: Iterator[bytes]) -> None:
    _talk(client, "/images/load", {"quiet": "1"}, {"Content-Type": "application/x-tar"}, chunks)


def remove_image(client: docker.APIClient, reference: str) -> None:
    try:
        client.remove_image(reference)
    except docker.errors.NotFound:
        return


def _record(found: Mapping[str, Any]) -> ImageRecord:
    def named(key: str) -> tuple[str, ...]:
        return tuple(name for name in found.get(key) or () if not name.startswith("<none>"))

    return ImageRecord(
        id=str(found["Id"]),
        tags=named("RepoTags"),
        digests=named("RepoDigests"),
        labels=dict(found.get("Labels") or {}),
        size_bytes=int(found["Size"]),
    )


def _talk(
    client: docker.APIClient,
    path: str,
    params: Mapping[str, Any],
    headers: Mapping[str, str],
    data: IO[bytes] | Iterator[bytes] | None = None,
) -> list[dict[str, Any]]:
    """Posts, and collects the engine's events until it has finished, within the client's time limit.

    However this ends, the connection is closed, and with it ends what the engine does for it.
    """
    end = time.monotonic() + client.timeout
    url = f"{client.base_url}/v{client.api_version}{path}"
    response = client.post(url, params=params, headers=headers, data=data, timeout=client.timeout, stream=True)
    events: list[dict[str, Any]] = []
    with closing(response):
        try:
            response.raise_for_status()
        except requests.HTTPError as error:
            raise docker.errors.create_api_error_from_http_exception(error) from error
        for line in lines_of(response):
            if time.monotonic() > end:
                raise requests.exceptions.ReadTimeout(f"{path} took longer than {client.timeout} s")
            event = json.loads(line)
            if "error" in event:
                raise docker.errors.APIError(_told(events, str(event["error"])))
            events.append(event)
    return events


def lines_of(response: requests.Response) -> Iterator[bytes]:
    """Those that are not empty, as they come. Raises ValueError where one, or all together, are too long for an
    engine's."""
    rest, total = b"", 0
    for part in response.iter_content(4096):
        total += len(part)
        *whole, rest = (rest + part).split(b"\n")
        if len(rest) > LONGEST_LINE or total > MOST_BYTES:
            raise ValueError(f"the answer has more than {total >> 20} MB")
        yield from filter(None, map(bytes.strip, whole))
    if rest.strip():
        yield rest.strip()


def _told(events: list[dict[str, Any]], error: str) -> str:
    """An engine's error in few words. Of a failed step it has the command, whose output says more."""
    if not error.startswith("The command "):
        return error
    printed = "".join(str(event.get("stream", "")) for event in events).rpartition(" ---> Running in ")[2]
    said = printed.partition("\n")[2].split("Removing intermediate container")[0]
    said = re.sub(r"\x1b\[[0-9;]*m", "", said).strip()  # the engine colours what a step says of errors
    return said[-TOLD_BYTES:] or f"a step of the build ended with {error.rpartition(' ')[2]}"
