"""There is no way out by any network, nor to anything on this computer that listens."""

from __future__ import annotations

import errno
import json
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from pybox_kernel.boxes.journal import installation_id
from pybox_kernel.sessions.session import Session, Stop
from tests.cases import case, snippet
from tests.conftest import Outside
from tests.escapes.running import CALLS, FILES, Clock, Ran, with_calls

pytestmark = pytest.mark.engine

UP = 1  # IFF_UP


# Nothing but the loopback


@case("net-none")
def test_the_cases_own_program_gets_nowhere_at_once(attack: Callable[..., Ran]) -> None:
    # socket.if_nameindex asks over a netlink socket, which is refused: the case's own program ends there.
    ran = attack(snippet("net-none"))
    ran.assert_exited(1, completed=False)
    assert ran.receipt.said.error == "PermissionError"
    rest = "import socket\n" + snippet("net-none").split("\n", 2)[2]
    assert attack(rest).printed == f"{errno.ENETUNREACH}\n"


@case("net-none")
def test_only_the_loopback_is_up_inside(attack: Callable[..., Ran]) -> None:
    source = """
import json, os
flags = {name: int(open(f"/sys/class/net/{name}/flags").read(), 16) for name in os.listdir("/sys/class/net")}
files = ("route", "ipv6_route", "if_inet6", "arp", "tcp", "udp", "unix")
print(json.dumps([flags, {name: open("/proc/net/" + name).read() for name in files}]))
"""
    flags, files = attack(source).answer
    assert [name for name, flag in flags.items() if flag & UP] == ["lo"]
    for name in ("route", "arp", "tcp", "udp", "unix"):
        assert len(files[name].splitlines()) == 1, name  # the heading
    for name in ("ipv6_route", "if_inet6"):
        assert {line.split()[-1] for line in files[name].splitlines()} <= {"lo"}


@case("net-none")
def test_the_kernel_shows_the_same_from_outside(session: Session, home: Path, outside: Outside) -> None:
    found: dict[str, str] = {}

    class Look(Clock):
        def started(self, deadline_seconds: float) -> None:
            (box,) = outside.boxes(installation=installation_id(home))
            process = Path(f"/proc/{outside.api.inspect_container(box)['State']['Pid']}")
            for name in ("net/route", "net/if_inet6", "net/ipv6_route", "net/fib_trie"):
                file = process / name
                found[name] = file.read_text() if file.exists() else ""
            found["namespace"] = str((process / "ns/net").readlink())

    session.run("import time; time.sleep(60)", deadline_seconds=0.5, watcher=Look())
    assert found["namespace"] != str(Path("/proc/self/ns/net").readlink())
    assert len(found["net/route"].splitlines()) == 1
    for name in ("net/if_inet6", "net/ipv6_route"):
        assert {line.split()[-1] for line in found[name].splitlines()} <= {"lo"}
    addresses = {line.split()[-1] for line in found["net/fib_trie"].splitlines() if "|--" in line}
    assert all(address.startswith("127.") or address == "0.0.0.0" for address in addresses)


# Where to, how, with which errno: ENETUNREACH and EADDRNOTAVAIL come from a kernel that has no way there.
ELSEWHERE = {
    "an address": (2, "192.0.2.1", 80),
    "the machine's data service": (2, "169.254.169.254", 80),
    "the usual engine's bridge": (2, "172.17.0.1", 2375),
    "the usual virtual machine's host": (2, "10.0.2.2", 80),
    "everyone": (2, "255.255.255.255", 9),
    "a group": (2, "224.0.0.1", 9),
    "an address (IPv6)": (10, "2001:db8::1", 80),
    "an address of IPv4 (IPv6)": (10, "::ffff:192.0.2.1", 80),
    "a group (IPv6)": (10, "ff02::1", 9),
}


@pytest.fixture(scope="module")
def sent(attack: Callable[..., Ran]) -> dict[str, list[float]]:
    source = f"""
import json, socket, time
found = {{}}
for name, (family, address, port) in json.loads({json.dumps(json.dumps(ELSEWHERE))}).items():
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(family, kind) as end:
            end.settimeout(5)
            if kind == socket.SOCK_DGRAM: end.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            began = time.monotonic()
            error = tried(end.connect, (address, port)) if kind == 1 else tried(end.sendto, b"x", (address, port))
            found[f"{{name}} by {{kind.name}}"] = [error, time.monotonic() - began]
print(json.dumps(found))
"""
    return dict(attack(CALLS + source, 10).answer)


@case("net-none")
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
@pytest.mark.parametrize("where", ELSEWHERE)
def test_nothing_can_be_sent_to(where: str, kind: str, sent: dict[str, list[float]]) -> None:
    error, seconds = sent[f"{where} by {kind}"]
    assert error in (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EINVAL)
    assert seconds < 0.5


@case("net-none")
@pytest.mark.parametrize("name", ["example.com", "host.docker.internal", "metadata.google.internal"])
def test_no_name_can_be_asked_for(name: str, attack: Callable[..., Ran]) -> None:
    source = f"import socket\ntry: print(socket.getaddrinfo({name!r}, 80))\nexcept socket.gaierror: print('no')"
    ran = attack(source)
    assert ran.printed == "no\n"
    assert (ran.meters.ran_seconds or 9) < 1


def test_no_interface_can_be_made_or_changed(attack: Callable[..., Ran]) -> None:
    source = """
import fcntl, json, socket
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asked = {"up": 0x8914, "address": 0x8916, "route": 0x890B, "list": 0x8912, "bridge": 0x89A0, "tunnel": 0x89F1}
print(json.dumps({name: tried(fcntl.ioctl, end, number, bytes(40)) for name, number in asked.items()}
      | {"a device": tried(open, "/dev/net/tun")}))
"""
    answer = attack(CALLS + source).answer
    assert answer.pop("a device") == errno.ENOENT
    assert set(answer.values()) == {errno.EPERM}


# Sockets of other kinds

HIGH = 1 << 32
OTHER_SOCKETS = {
    "vsock": (40, 1, 0),
    "vsock, under a high bit": (HIGH | 40, 1, 0),
    "vsock, datagrams": (40, 2, 0),
    "crypto": (38, 5, 0),
    "netlink": (16, 3, 0),
    "netlink, connector": (16, 2, 11),
    "packets": (17, 3, 0x300),
    "express data path": (44, 3, 0),
    "CAN": (29, 3, 1),
    "Bluetooth": (31, 3, 1),
    "IPX": (4, 2, 0),
    "TIPC": (30, 1, 0),
    "key management": (15, 3, 2),
    "kernel messages": (41, 2, 0),
    "shared memory": (43, 1, 0),
    "raw": (2, 3, 1),
    "raw (IPv6)": (10, 3, 58),
    "ping": (2, 2, 1),
    "multipath": (2, 1, 262),
    "SCTP": (2, 1, 132),
}


@pytest.fixture(scope="module")
def opened(attack: Callable[..., Ran]) -> dict[str, int]:
    source = f"""
import json
print(json.dumps({{name: errno_of("socket", *how) for name, how in {OTHER_SOCKETS!r}.items()}}))
"""
    return dict(attack(with_calls(source)).answer)


@case("net-vsock", "net-af-alg")
@pytest.mark.parametrize("kind", OTHER_SOCKETS)
def test_sockets_of_another_kind_are_refused(kind: str, opened: dict[str, int]) -> None:
    assert opened[kind] == errno.EPERM


@case("net-vsock", "net-af-alg")
@pytest.mark.parametrize("name", ["net-vsock", "net-af-alg"])
def test_the_cases_own_sockets_are_refused(name: str, attack: Callable[..., Ran]) -> None:
    assert attack(snippet(name)).printed == f"{errno.EPERM}\n"


# What listens on this computer


class Listeners:
    """Sockets that listen on this computer, with the addresses a program would try, and who ever came."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        name = f"\0pybox-{uuid.uuid4().hex}"
        self.addresses: list[tuple[int, tuple[str, int] | str]] = []
        self.ends: list[socket.socket] = []
        for family, address in ((2, ("127.0.0.1", 0)), (2, ("0.0.0.0", 0)), (1, name), (1, str(folder / "socket"))):
            end = stack.enter_context(socket.socket(family))
            end.bind(address)
            end.listen()
            end.settimeout(5)
            self.ends.append(end)
            where = ("127.0.0.1", end.getsockname()[1]) if family == 2 else str(address)
            self.addresses.append((family, where))

    def anyone_came(self) -> bool:
        came = 0
        for end in self.ends:
            end.setblocking(False)
            with suppress(BlockingIOError):
                end.accept()[0].close()
                came += 1
        return came > 0


@pytest.fixture
def listeners(tmp_path: Path) -> Iterator[Listeners]:
    with ExitStack() as stack:
        yield Listeners(tmp_path, stack)


def test_what_listens_on_this_computer_cannot_be_reached(listeners: Listeners, attack: Callable[..., Ran]) -> None:
    for (family, address), end in zip(listeners.addresses, listeners.ends, strict=True):
        with socket.socket(family) as client:  # from here it can
            client.connect(address)
            end.accept()[0].close()
    source = f"""
import json, socket
print(json.dumps([tried(socket.socket(family).connect, address) for family, address in {listeners.addresses!r}]))
"""
    refused, missing = errno.ECONNREFUSED, errno.ENOENT
    assert attack(CALLS + source).answer == [refused, refused, refused, missing]
    assert not listeners.anyone_came()


def test_there_is_no_socket_of_this_computers_in_a_box(attack: Callable[..., Ran]) -> None:
    source = """
import json, stat
kinds = (stat.S_ISSOCK, stat.S_ISFIFO, stat.S_ISBLK)
print(json.dumps([path for path, mode in files() if any(kind(mode) for kind in kinds)]))
"""
    assert attack(FILES + source, 10).answer == []


def test_a_listener_in_a_box_is_not_to_be_reached_from_this_computer(session: Session) -> None:
    came: list[str] = []

    class Knock(Clock):
        def output(self, stream: str, text: str) -> None:
            port, name = text.split()
            for family, address in ((2, ("127.0.0.1", int(port))), (1, "\0" + name)):
                with socket.socket(family) as client:
                    try:
                        client.connect(address)
                    except ConnectionRefusedError:
                        came.append("refused")

    name = f"pybox-{uuid.uuid4().hex}"
    source = f"""
import socket, time
tcp = socket.create_server(("0.0.0.0", 0))
unix = socket.socket(socket.AF_UNIX)
unix.bind("\\0{name}")
unix.listen()
print(tcp.getsockname()[1], "{name}", flush=True)
time.sleep(60)
"""
    session.run(source, deadline_seconds=0.5, watcher=Knock())
    assert came == ["refused", "refused"]


def test_boxes_do_not_reach_one_another(session: Session) -> None:
    name = f"pybox-{uuid.uuid4().hex}"
    listening, stop = threading.Event(), Stop()
    answers: list[str] = []

    class Listening(Clock):
        def output(self, stream: str, text: str) -> None:
            if text.startswith("listening"):
                listening.set()

    def knock() -> None:
        assert listening.wait(20)
        source = f"import socket\nprint(tried(socket.socket(1).connect, '\\0{name}'))"
        answers.append(session.run(CALLS + source).stdout)
        stop.set()

    other = threading.Thread(target=knock)
    other.start()
    source = f"""
import socket
unix = socket.socket(socket.AF_UNIX)
unix.bind("\\0{name}")
unix.listen()
socket.socket(1).connect("\\0{name}")
unix.accept()
print("listening", flush=True)
unix.accept()
print("someone came", flush=True)
"""
    result = session.run(source, deadline_seconds=20, watcher=Listening(), stop=stop)
    other.join(20)
    assert answers == [f"{errno.ECONNREFUSED}\n"]
    assert result.stdout == "listening\n"


def test_programs_of_one_box_may_talk_over_its_own_loopback(attack: Callable[..., Ran]) -> None:
    source = """
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
client.send(b"hello")
print(server.accept()[0].recv(9))
"""
    assert attack(source).printed == "b'hello'\n"
