"""The docker SDK's client for one thread, with connections that are few and that end when they should, and answers that
are bounded: an engine may be one that a box has taken over, in a machine of its own."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import docker
import docker.tls
import requests
from docker.constants import DEFAULT_DOCKER_API_VERSION
from docker.transport import UnixHTTPAdapter
from docker.transport.unixconn import UnixHTTPConnection, UnixHTTPConnectionPool

from pybox_kernel.docker_engine.timed_sockets import TimedAdapter, TimedSocket
from pybox_kernel.errors import EngineError
from pybox_kernel.home_of_user import home_of_user

__all__ = ["await_more", "first_word", "new_client", "read_answer"]

BASE = "http+docker://localhost"
MOST_BYTES: Final = 4 << 20
"""Of an answer. That of the longest list that is asked for has some kilobytes."""


class Connection(UnixHTTPConnection):  # type: ignore[misc]
    """The SDK's own leaves its socket open where it cannot connect."""

    def connect(self) -> None:
        opened = TimedSocket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            opened.settimeout(self.timeout)
            opened.connect(self.unix_socket)
        except BaseException:
            opened.close()
            raise
        self.sock = opened


class Pool(UnixHTTPConnectionPool):  # type: ignore[misc]
    def _new_conn(self) -> Connection:
        return Connection(self.base_url, self.socket_path, self.timeout)


class Adapter(UnixHTTPAdapter):  # type: ignore[misc]
    """The SDK's own keeps a connection for each of the last 25 URLs; here all URLs share what is kept."""

    def get_connection(self, _url: str, _proxies: object = None) -> Any:
        with self.pools.lock:
            pool = self.pools.get(BASE)
            if pool is None:
                pool = self.pools[BASE] = Pool(BASE, self.socket_path, self.timeout, maxsize=self.max_pool_size)
            return pool


class Client(docker.APIClient):  # type: ignore[misc]
    def request(
        self,
        method: str,
        url: str,
        *,
        params: Any = None,
        data: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: Any = None,
        stream: bool = False,
        **_: object,
    ) -> requests.Response:
        """As the base of the SDK's own, without what an engine has no use for: cookies, redirections, proxies and the
        passwords of this computer's environment. That is a third of a call's time."""
        asked = requests.PreparedRequest()
        asked.prepare(method, url, headers={**self.headers, **(headers or {})}, data=data, params=params)
        answer: requests.Response = self.get_adapter(url).send(asked, stream=True, timeout=timeout)
        refuse_compressed(answer)
        if not stream or not answer.ok:
            read_answer(answer)
        return answer


class FarClient(docker.APIClient):  # type: ignore[misc]
    def send(self, request: requests.PreparedRequest, *, stream: bool = False, **options: Any) -> requests.Response:
        answer: requests.Response = super().send(request, stream=True, **options)
        refuse_compressed(answer)
        if not stream or not answer.ok:
            read_answer(answer)
        return answer


def refuse_compressed(answer: requests.Response) -> None:
    """Raises ValueError for an answer that is, which none is asked to be: not every urllib3 bounds what it unpacks."""
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        answer.close()
        raise ValueError("the answer is compressed")


def read_answer(answer: requests.Response) -> None:
    """Has ``content`` and what is made of it ready, and gives the connection back. Raises ValueError for an answer of
    more than ``MOST_BYTES``."""
    body = bytearray()
    for part in answer.iter_content(65536):
        body += part
        if len(body) > MOST_BYTES:
            answer.close()
            raise ValueError(f"the answer has more than {MOST_BYTES >> 20} MB")
    answer._content = bytes(body)


def new_client(address: str, version: str, seconds: float) -> docker.APIClient:
    """Talks to nothing yet. A TCP address is spoken to with TLS where the environment says so: see ``tls``."""
    if address.startswith("unix:"):
        made = Client(base_url=address, version=version, timeout=seconds)
        made.get_adapter(BASE).close()
        made.mount("http+docker://", Adapter("http+" + address, seconds))
    else:
        made = FarClient(base_url=address, version=version, timeout=seconds, tls=tls())
        # Requests would add the proxies of this computer's environment.
        made.trust_env = False
        for scheme in ("http://", "https://"):
            made.mount(scheme, TimedAdapter())
    made.headers["Accept-Encoding"] = "identity"
    return made


def tls() -> docker.tls.TLSConfig | None:
    """The keys in ``DOCKER_CERT_PATH``, or, where ``DOCKER_TLS_VERIFY`` asks for them, in Docker's own folder, as
    Docker's own command reads them; the engine's is always checked. Raises EngineError where one is not there."""
    named = os.environ.get("DOCKER_CERT_PATH", "")
    if not named and not os.environ.get("DOCKER_TLS_VERIFY"):
        return None
    folder = Path(named or os.environ.get("DOCKER_CONFIG", "") or home_of_user() / ".docker")
    files = [folder / name for name in ("cert.pem", "key.pem", "ca.pem")]
    if missing := [file.name for file in files if not file.is_file()]:
        raise EngineError(
            f"Docker's settings ask for TLS, and {folder} lacks {', '.join(missing)}.",
            "Put the keys there, name their folder with DOCKER_CERT_PATH, or unset DOCKER_TLS_VERIFY.",
        )
    cert, key, authority = map(str, files)
    return docker.tls.TLSConfig(client_cert=(cert, key), ca_cert=authority, verify=True)


def first_word(address: str, seconds: float) -> dict[str, Any]:
    """What the engine says of its versions; ``ApiVersion`` is the newest that it speaks, and what the SDK, too, takes
    for its own calls."""
    asking = new_client(address, DEFAULT_DOCKER_API_VERSION, seconds)
    try:
        answer: dict[str, Any] = asking.version(api_version=False)
        return answer
    finally:
        asking.close()


def await_more(answer: Any, seconds: float) -> None:
    """Waits until there is more of an answer to read, or its end. Raises TimeoutError. What comes then has as long."""
    poll = select.poll()  # ``select`` knows no descriptor above 1023
    poll.register(answer, select.POLLIN)
    if not poll.poll(seconds * 1000):
        raise TimeoutError
    answer._fp.fp.raw._sock.settimeout(seconds)
