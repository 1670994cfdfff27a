"""Sockets whose time limit is for a whole answer, and not for each piece of it, and what has requests use them."""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING, Any

import requests.adapters
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["TimedAdapter", "TimedSocket"]


class TimedSocket(socket.socket):
    """Its time limit is for all that comes until it is set anew. What is sent, and what is read without waiting, is as
    it was."""

    _until: float | None = None

    def settimeout(self, value: float | None) -> None:
        self._until = None if value is None else time.monotonic() + value
        super().settimeout(value)

    def recv_into(self, buffer: WriteableBuffer, nbytes: int | None = 0, flags: int = 0) -> int:
        if self._until is not None and self.gettimeout():
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            super().settimeout(left)
        return super().recv_into(buffer, nbytes or 0, flags)


class TimedTls(TimedSocket, ssl.SSLSocket):
    """The same over TLS, whose greeting is timed as a whole anyway."""


class Connection(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        opened = super()._new_conn()
        seconds = opened.gettimeout()
        timed = TimedSocket(fileno=opened.detach())
        timed.settimeout(seconds)
        return timed


class TlsConnection(HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        assert isinstance(self.sock, ssl.SSLSocket)
        self.sock.__class__ = TimedTls  # urllib3 has no place to say which one it is to make


class Pool(HTTPConnectionPool):
    ConnectionCls = Connection


class TlsPool(HTTPSConnectionPool):
    ConnectionCls = TlsConnection


class TimedAdapter(requests.adapters.HTTPAdapter):
    def init_poolmanager(self, *given: Any, **named: Any) -> None:
        super().init_poolmanager(*given, **named)
        self.poolmanager.pool_classes_by_scheme = {"http": Pool, "https": TlsPool}
