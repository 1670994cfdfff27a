"""The docker SDK's client for one thread, with connections that are few and that end when they should."""

from __future__ import annotations

import socket
from typing import Any

import docker
from docker.constants import DEFAULT_DOCKER_API_VERSION
from docker.transport import UnixHTTPAdapter
from docker.transport.unixconn import UnixHTTPConnection, UnixHTTPConnectionPool

__all__ = ["client", "spoken_version"]

BASE = "http+docker://localhost"


class Connection(UnixHTTPConnection):  # type: ignore[misc]
    """The SDK's own leaves its socket open where it cannot connect."""

    def connect(self) -> None:
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
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


def client(address: str, version: str, seconds: float) -> docker.APIClient:
    """Talks to nothing yet."""
    made = docker.APIClient(base_url=address, version=version, timeout=seconds)
    made.get_adapter(BASE).close()
    made.mount("http+docker://", Adapter("http+" + address, seconds))
    # Requests would add the proxies of this computer's environment to a TCP address.
    made.trust_env = False
    return made


def spoken_version(address: str, seconds: float) -> str:
    """The newest API version that the engine speaks: what the SDK, too, takes for its own calls."""
    asking = client(address, DEFAULT_DOCKER_API_VERSION, seconds)
    try:
        answer: dict[str, Any] = asking.version(api_version=False)
        return str(answer["ApiVersion"])
    finally:
        asking.close()
