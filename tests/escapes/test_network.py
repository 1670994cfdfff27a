"""There is no way out by any network, nor to anything on this computer that listens."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest

from pybox_kernel.session import Session
from tests.cases import case, snippet
from tests.escapes.running import run_attack

pytestmark = pytest.mark.engine


def printed(session: Session, source: str) -> str:
    ran = run_attack(session, source, 5.0)
    ran.assert_exited(0, completed=True)
    return ran.printed


@case("net-none")
def test_a_connection_fails_at_once_and_only_the_loopback_exists(session: Session) -> None:
    # socket.if_nameindex asks by a netlink socket, of which there are none: the case's own program ends there.
    ran = run_attack(session, snippet("net-none"), 5.0)
    assert ran.receipt.said.error == "PermissionError"
    names = "import os, json; print(json.dumps(os.listdir('/sys/class/net')))"
    assert run_attack(session, names, 5.0).answer == ["lo"]
    rest = "import socket\n" + snippet("net-none").split("\n", 2)[2]
    assert int(printed(session, rest)) == errno.ENETUNREACH


@case("net-vsock", "net-af-alg")
@pytest.mark.parametrize("family", [40, 38, 16, 17, 44, 31, 29, 4, 2**32 + 40], ids=lambda number: f"family {number}")
def test_sockets_of_other_families_are_refused(session: Session, family: int) -> None:
    source = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for kind in (1, 2, 3, 5):
    print(libc.socket(ctypes.c_long({family}), kind, 0), ctypes.get_errno())
"""
    assert printed(session, source) == "-1 1\n" * 4


def test_raw_sockets_are_refused(session: Session) -> None:
    source = "import socket\ntry: socket.socket(2, 3, 1)\nexcept OSError as error: print(error.errno)"
    assert printed(session, source) == "1\n"


def test_names_are_not_resolved(session: Session) -> None:
    source = "import socket\ntry: socket.getaddrinfo('example.org', 80)\nexcept OSError as e: print(type(e).__name__)"
    assert printed(session, source) == "gaierror\n"


def test_what_listens_on_this_computer_cannot_be_reached(session: Session, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0pybox-{tmp_path.name}")
        abstract.listen()
        source = f"""
import socket
for family, address in ((2, ('127.0.0.1', {tcp.getsockname()[1]})), (1, '\\0pybox-{tmp_path.name}')):
    try: socket.socket(family).connect(address)
    except OSError as error: print(error.errno)
"""
        assert printed(session, source) == "111\n111\n"


def test_two_programs_of_one_box_may_talk_over_its_own_loopback(session: Session) -> None:
    source = """
import socket
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
client.send(b'hello'); print(server.accept()[0].recv(9))
"""
    assert printed(session, source) == "b'hello'\n"
