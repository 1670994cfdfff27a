"""What an engine sends is bounded: one may be a box's own by now, in a machine around it."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from pybox_kernel.docker_engine import images
from pybox_kernel.docker_engine.client import MOST_BYTES, new_client, read_answer
from pybox_kernel.docker_engine.connection import DockerConnection
from pybox_kernel.docker_engine.images import LONGEST_LINE, lines_of
from pybox_kernel.docker_engine.timed_sockets import TimedSocket
from pybox_kernel.errors import EngineError


def answer(body: bytes) -> requests.Response:
    made = requests.Response()
    made.status_code, made.raw = 200, io.BytesIO(body)
    return made


def test_an_answer_is_read_whole_up_to_a_bound() -> None:
    short = answer(b"1" * MOST_BYTES)
    read_answer(short)
    assert len(short.content) == MOST_BYTES
    with pytest.raises(ValueError, match="more than 4 MB"):
        read_answer(answer(b"1" * (MOST_BYTES + 1)))


def test_the_lines_of_a_long_call_are_told_as_they_come_and_bounded() -> None:
    assert list(lines_of(answer(b'{"a": 1}\r\n\r\n{"b": 2}\nrest\r\n'))) == [b'{"a": 1}', b'{"b": 2}', b"rest"]
    with pytest.raises(ValueError, match="more than 1 MB"):
        list(lines_of(answer(b"x" * (LONGEST_LINE + 8192))))


def read_on(timed: TimedSocket) -> None:
    while timed.recv_into(bytearray(64)):
        pass


def test_a_time_limit_is_for_all_that_comes_until_it_is_set_anew() -> None:
    near, far = socket.socketpair()
    timed = TimedSocket(fileno=near.detach())
    over = threading.Event()

    def trickle() -> None:
        while not over.wait(0.05):
            far.send(b"x")

    sender = threading.Thread(target=trickle)
    sender.start()
    try:
        for _ in range(2):
            timed.settimeout(0.3)
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                read_on(timed)
            assert 0.2 < time.monotonic() - began < 3
        timed.setblocking(False)
        with pytest.raises(BlockingIOError):
            read_on(timed)
    finally:
        over.set()
        sender.join()
        timed.close()
        far.close()


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def far_engine() -> Iterator[tuple[str, list[bytes]]]:
    """The address of one on TCP, and what it sends first to the one who asks; then byte by byte, without an end."""
    first: list[bytes] = []
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def talk() -> None:
        asker, _ = listener.accept()
        with asker, suppress(OSError):
            asker.recv(65536)
            asker.sendall(first[0])
            while not over.wait(0.05):
                asker.sendall(b" ")

    talker = threading.Thread(target=talk)
    talker.start()
    yield f"tcp://127.0.0.1:{listener.getsockname()[1]}", first
    over.set()
    talker.join()
    listener.close()


@pytest.mark.parametrize("start", [HEAD + b"Content-Length: 100000\r\n\r\n", HEAD + b"X-Long: "])
def test_the_time_limit_is_for_the_whole_of_an_answer_over_tcp_too(
    far_engine: tuple[str, list[bytes]], start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    address, first = far_engine
    first.append(start)
    asking = new_client(address, "1.41", 0.3)
    began = time.monotonic()
    with pytest.raises(requests.exceptions.RequestException, match="timed out"):
        asking.info()
    assert 0.2 < time.monotonic() - began < 3
    asking.close()


def test_each_piece_of_an_image_has_a_time_to_come_and_not_all_of_them_together(
    far_engine: tuple[str, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(images, "PIECE_BYTES", 2)
    monkeypatch.setattr(images, "PIECE_SECONDS", 0.6)
    address, first = far_engine
    first.append(HEAD + b"Content-Length: 100000\r\n\r\n")
    asking = new_client(address, "1.41", 0.6)
    pieces = images.save(asking, "some:image")
    assert [next(pieces) for _ in range(10)] == [b"  "] * 10
    monkeypatch.setattr(images, "PIECE_SECONDS", 0.01)  # less than one takes
    with pytest.raises(requests.exceptions.RequestException, match="timed out"):
        list(pieces)
    asking.close()


def test_a_compressed_answer_is_not_unpacked(
    far_engine: tuple[str, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    address, first = far_engine
    first.append(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 100\r\n\r\n")
    asking = new_client(address, "1.41", 3.0)
    with pytest.raises(ValueError, match="compressed"):
        asking.info()
    asking.close()


def test_a_piece_that_no_engine_sends_is_the_end_of_what_is_heard_of_a_box() -> None:
    near, far = socket.socketpair()
    connection = DockerConnection("unix:///run/some.sock", near, near)
    far.send(b"\1\0\0\0\0\0\0\2ok" + b"\1\0\0\0\xff\xff\xff\xff")
    assert connection.receive() == [(1, b"ok")]
    far.send(b"more")
    assert connection.receive() is None
    connection.close()
    far.close()


@pytest.mark.parametrize("wish", ["DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"])
def test_who_asks_for_tls_is_not_spoken_to_in_plain_text(
    wish: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    plain = new_client("tcp://127.0.0.1:1", "1.41", 1.0)
    assert plain.base_url.startswith("http://")
    plain.close()
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv(wish, str(tmp_path))
    with pytest.raises(EngineError, match=r"ask for TLS, and .* lacks cert.pem, key.pem, ca.pem"):
        new_client("tcp://127.0.0.1:1", "1.41", 1.0)
