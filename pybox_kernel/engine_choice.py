"""Which engine a session uses: the one a person named, else that of a private virtual machine that runs, else another.

Decided once for a session, and never anew: where that engine ends, no other takes its place. An address on a network is
another machine. It is used only where it was named for PyBox, and said yes to.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pybox_kernel.engine import MachineSettings, Place, PrivateVM
from pybox_kernel.errors import EngineElsewhere, EngineRefused, OptionError, VMMissing
from pybox_kernel.home_of_user import home_of_user
from pybox_kernel.machines.machine import LONGEST_SOCKET_PATH, Clock, Machine, clock_in_words, kind_in_words

__all__ = ["DEFAULT_ADDRESS", "Wish", "choose", "emptying", "ended_with", "mending", "placed", "starting", "wish_of"]

DEFAULT_ADDRESS: Final = "unix:///var/run/docker.sock"
LONGEST: Final = LONGEST_SOCKET_PATH + (4 if sys.platform == "linux" else 0)
SAY_VM: Final = "Start it with `pybox-kernel vm start` (the first time: `pybox-kernel vm build`)."
START: Final = "Start it (as root: `systemctl start docker`, or `dockerd &` where there is no systemd), then try again."
RESTART: Final = "Start it anew (as root: `systemctl restart docker`), then try again."
KNOWN_SOCKETS: Final = (
    (".docker/run/", "Docker Desktop"),
    (".docker/desktop/", "Docker Desktop"),
    (".orbstack/run/", "OrbStack"),
    (".rd/", "Rancher Desktop"),
    (".colima/", "Colima"),
    (".config/colima/", "Colima"),
    (".lima/", "Lima"),
    (".local/share/containers/podman/machine/", "Podman machine"),
)
"""Where in a person's home the engines of other makers have their sockets."""
MAKERS: Final = frozenset(name for _, name in KNOWN_SOCKETS)
COMMANDS: Final = {
    "Colima": " (`colima restart`)",
    "Podman machine": " (`podman machine stop`, then `podman machine start`)",
    "Rancher Desktop": " (`rdctl shutdown`, then `rdctl start`)",
    "OrbStack": " (`orb restart docker`)",
}
LARGEST_FILE: Final = 1 << 20
EMULATED: Final = 6.0
"""Times the usual limits for an engine on an emulated processor, which is some ten times slower."""
CLOCK_SECONDS: Final = 60.0
"""How long what was measured of a machine's clock stands. It is measured over the driver's connection: 20 ms, or half
a second where the machine is emulated."""


class Wish(NamedTuple):
    """What a person said about the engine."""

    engine: str = ""
    """``local``, ``vm``, or an address; empty where nothing was said."""
    require_vm: bool = False
    """Nothing may run but in a private virtual machine."""
    another_machine: bool = False
    """Yes to an engine on another machine."""


def wish_of(
    engine: str = "",
    *,
    require_vm: bool = False,
    another_machine: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> Wish:
    """What was said here, and where nothing was, what ``PYBOX_ENGINE`` says. Each of ``PYBOX_REQUIRE_VM`` and
    ``PYBOX_ALLOW_REMOTE_ENGINE`` counts too: the first unless it is empty or a plain no, the second as ``yes`` alone.

    Raises OptionError for an engine that is none.
    """
    named = engine or environment.get("PYBOX_ENGINE", "")
    named = named.strip()
    if named not in ("", "local", "vm") and not named.startswith(("unix:///", "tcp://", "ssh://")):
        raise OptionError(
            f"{named[:200]!r} is no engine." if engine else f"PYBOX_ENGINE is {named[:200]!r}, which is no engine.",
            f"Say `local`, `vm`, or an address like {DEFAULT_ADDRESS}.",
        )
    required = environment.get("PYBOX_REQUIRE_VM", "").strip().lower() not in ("", "0", "no", "off", "false")
    allowed = environment.get("PYBOX_ALLOW_REMOTE_ENGINE", "").strip().lower() == "yes"
    return Wish(named, require_vm or required, another_machine or allowed)


def choose(
    wish: Wish,
    machine_of: Callable[[], Machine | None],
    environment: Mapping[str, str] = os.environ,
) -> Place:
    """The engine that ``wish`` leads to. Talks to no engine.

    Raises VMMissing where it has to be a virtual machine's, and none runs or another was named, and EngineRefused where
    it is on another machine to which nobody said yes.
    """
    if wish.engine.startswith(("unix:", "tcp:", "ssh:")):
        return in_no_vm(wish, named(wish))
    if wish.engine == "local":
        return in_no_vm(wish, local(environment) or placed(DEFAULT_ADDRESS, "asked for as this computer's own"))
    place = in_machine(wish, machine_of())
    if place is not None:
        return place
    if wish.require_vm or wish.engine == "vm":
        raise VMMissing("A private virtual machine was asked for, and none runs: nothing is run without it.", SAY_VM)
    return told(environment) or placed(DEFAULT_ADDRESS, "the usual one")


def in_no_vm(wish: Wish, place: Place) -> Place:
    if wish.require_vm:
        raise VMMissing(
            f"A private virtual machine is required, and the engine asked for is not in PyBox's: {wish.engine}.",
            "Leave one of the two out: --engine (or PYBOX_ENGINE), or --require-vm (or PYBOX_REQUIRE_VM).",
        )
    return place


def in_machine(wish: Wish, machine: Machine | None) -> Place | None:
    """None where it does not run."""
    facts = machine.status() if machine is not None else None
    if facts is not None and facts.state == "unreachable":
        raise VMMissing(
            f"PyBox's virtual machine is not to be used: {facts.remark or 'its engine cannot be reached'}.",
            "Mend that with `pybox-kernel vm start`; or take this computer's own engine, with `--engine local`.",
        )
    if machine is None or facts is None or facts.state != "running":
        return None
    chosen = "asked for" if wish.engine or wish.require_vm else "PyBox's virtual machine runs"
    checked_path(facts.endpoint)

    measured = Measured(machine)

    def now() -> PrivateVM | None:
        found = machine.status()
        if found.state != "running" or found.endpoint != facts.endpoint or not found.boot_id:
            return None
        settings = MachineSettings(
            found.accelerator, found.memory_mib, found.processors, found.network_devices, found.shared_folders
        )
        return PrivateVM(kind_in_words(found), found.boot_id, found.remark, clock_in_words(measured.clock()), settings)

    required = wish.require_vm or wish.engine == "vm"
    name, patience = f"PyBox's own {kind_in_words(facts)}", EMULATED if facts.accelerator == "tcg" else 1.0
    return Place(facts.endpoint, name, chosen, now, required, facts.runs_cgroup, patience)


class Measured:
    """A machine's clock, measured anew after ``CLOCK_SECONDS`` and after each leap of this computer's own clock: it
    was asleep, and the machine with it; or it was set."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lock = threading.Lock()
        self._until = 0.0
        self._offset = 0.0
        self._clock: Clock | None = None

    def clock(self) -> Clock | None:
        with self._lock:
            now = time.monotonic()
            offset = time.time() - now
            if now >= self._until or abs(offset - self._offset) > 1.0:
                self._clock = self._machine.clock()
                self._until, self._offset = now + CLOCK_SECONDS, offset
            return self._clock


def ended_with(machine: Machine | None, address: str, at: float) -> bool:
    """Whether all that was at the engine at ``address`` then (seconds since 1970) is gone, since it was in a virtual
    machine that keeps nothing and has ended since."""
    facts = machine.status() if machine is not None else None
    if facts is None or facts.driver != "qemu" or facts.endpoint != address:
        return False
    started = facts.started_at.timestamp() if facts.started_at is not None else 0.0
    return facts.state in ("not made", "stopped") or started > at


def named(wish: Wish) -> Place:
    """The engine at the address that a person named for PyBox."""
    address, chosen = wish.engine, "asked for"
    if address.startswith("ssh:"):
        raise EngineElsewhere(f"{address[:200]!r} is on another machine, by ssh, which PyBox does not speak.", TUNNEL)
    if address.startswith("tcp:") and not wish.another_machine:
        raise EngineElsewhere(
            f"{address[:200]!r} is on another machine: what you run, and its files, would go there.",
            "If that is what you want, say so: `--another-machine`, or PYBOX_ALLOW_REMOTE_ENGINE=yes.",
        )
    return placed(address, chosen)


TUNNEL: Final = (
    "Bring its socket here (`ssh -N -L /run/user/1000/far.sock:/var/run/docker.sock HOST`), "
    "and name that with --engine unix:///run/user/1000/far.sock."
)


def told(environment: Mapping[str, str]) -> Place | None:
    """The engine that Docker's own settings name, as Docker's own command goes by them; None where they name none.
    Raises EngineElsewhere where it is no socket on this computer."""
    if address := environment.get("DOCKER_HOST", "").strip():
        return settled(
            address, f"DOCKER_HOST is {address[:200]!r}", "named by DOCKER_HOST", "Unset DOCKER_HOST, or set it"
        )
    folder = Path(environment.get("DOCKER_CONFIG", "") or Path(environment.get("HOME", "") or "/") / ".docker")
    name = environment.get("DOCKER_CONTEXT", "").strip() or str(
        read_json(folder / "config.json").get("currentContext") or ""
    )
    if name in ("", "default"):
        return None
    context = f"The Docker context {name[:80]!r}"
    address = address_in(read_json(folder / "contexts" / "meta" / sha256(name) / "meta.json"))
    if not address:
        raise EngineRefused(
            f"{context} names no engine that could be read.",
            "Run `docker context use default`, or say which with --engine.",
        )
    return settled(
        address,
        f"{context} is {address[:200]!r}",
        f"named by the Docker context {name[:80]!r}",
        "Run `docker context use default`, or set --engine",
    )


def settled(address: str, said: str, chosen: str, mend: str) -> Place:
    if address.startswith("unix:///"):
        return placed(address, chosen)
    advice = f"{mend} to a socket here, like {DEFAULT_ADDRESS}."
    if address.startswith("tcp://"):
        advice += f" Or, to have your programs run on that machine: `--engine {address[:200]} --another-machine`."
    elif address.startswith("ssh://"):
        advice += f" Or: {TUNNEL}"
    raise EngineElsewhere(f"{said}, which names no socket on this computer.", advice)


def local(environment: Mapping[str, str]) -> Place | None:
    """As ``told``, where that is a socket on this computer."""
    try:
        return told(environment)
    except EngineRefused:
        return None


def placed(address: str, chosen: str) -> Place:
    """Raises EngineRefused for a path that no socket can have."""
    if address.startswith("unix:"):
        checked_path(address)
    return Place(address, name_of(address), chosen)


def checked_path(address: str) -> None:
    length = len(os.fsencode(address.removeprefix("unix://")))
    if length > LONGEST:
        raise EngineRefused(
            f"The path in {address[:300]!r} has {length} bytes, and a socket's may have {LONGEST}.",
            "Choose a shorter one: move it, or set PYBOX_HOME or the engine's own folder to one with a short path.",
        )


def name_of(address: str) -> str:
    """By where its socket is, links followed; nothing is asked."""
    if not address.startswith("unix:"):
        return "engine on another machine"
    path = os.path.realpath(address.removeprefix("unix://"))
    home = os.path.realpath(home_of_user()).rstrip("/") + "/"
    for place, name in KNOWN_SOCKETS:
        if path.startswith(home + place):
            return name
    if path.endswith("/podman.sock"):
        return "Podman"
    if path.startswith(f"/run/user/{os.getuid()}/"):
        return "this user's own engine"
    return "container engine"


def starting(place: Place) -> str:
    """What to do where nothing listens there."""
    return mending(place) if place.vm is not None or place.name in MAKERS else START


def mending(place: Place) -> str:
    """What to do where it listens and does not answer, as after a computer's sleep."""
    if place.vm is not None:
        return "Start PyBox's virtual machine anew: `pybox-kernel vm stop`, then `pybox-kernel vm start`."
    if place.on_a_network:
        return "See whether that machine can be reached, and its engine runs."
    if place.name in MAKERS:
        return f"Start {place.name} anew{COMMANDS.get(place.name, '')}, then try again."
    return RESTART


def emptying(place: Place) -> str:
    """What to do where its disk is full."""
    if place.vm is None:
        return "Its disk is full: make room there. `docker system df` says what takes it."
    if "Colima" in place.name:
        return "Its disk is full. Make it anew: `colima delete --profile pybox`, then `pybox-kernel vm start`."
    return f"Its disk is full, and is as it was made after each start. {mending(place)}"


def read_json(path: Path) -> dict[str, object]:
    """Empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(LARGEST_FILE))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def address_in(meta: Mapping[str, object]) -> str:
    """Format: Docker's ``cli/context/store``."""
    endpoints = meta.get("Endpoints")
    docker = endpoints.get("docker") if isinstance(endpoints, dict) else None
    host = docker.get("Host") if isinstance(docker, dict) else None
    return host if isinstance(host, str) else ""


def sha256(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()
