"""A full run with its receipt beside a plain ``docker run --rm`` of the same image and limits, all in turn."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from contextlib import suppress
from typing import NamedTuple

import docker

from benchmarks.in_advance import session as session_with_one
from benchmarks.in_advance import until
from benchmarks.timing import Spread, in_turn, table
from pybox_kernel import run
from pybox_kernel.boxes.journal import home_path, new_token
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.images.store import ImageStore, require
from pybox_kernel.policy import STDLIB
from pybox_kernel.seal import seccomp
from pybox_kernel.seal.spec import PYTHON, Identity, container_config, tmpfs_options
from pybox_kernel.sessions.session import Session

SOURCE = "print(1)"
UID = 30000
WARM_UP = 3

DOCKER_RUN = "`docker run --rm`, same image and limits"
ALONE = '`run("print(1)")`, with its receipt'
IN_SESSION = "the same in a session that is open"
WAITED = "the same, its box made in advance"
SDK = "the plain container through the docker SDK"


class Found(NamedTuple):
    spreads: dict[str, Spread]
    by_pairs: dict[str, float]
    """The median of each one's time to ``docker run``'s of the same round."""
    steps: dict[str, float]
    """The receipts' own, of a box made when it was asked for: medians."""


def docker_run(image_id: str, profile: str) -> list[str]:
    """The same limits as a box's, by the engine's own command."""
    identity = Identity(name="", uid=UID, image_id=image_id, labels={})
    command = ["docker", "run", "--rm", "--network=none", "--read-only", "--cap-drop=ALL", "--ipc=private"]
    command += ["--cgroupns=private", "--log-driver=none", f"--user={UID}:{UID}", "--workdir=/box"]
    command += [f"--memory={STDLIB.memory_bytes}", f"--memory-swap={STDLIB.memory_bytes}"]
    command += [f"--cpus={STDLIB.cpu_cores}", f"--pids-limit={STDLIB.tasks}"]
    command += ["--security-opt=no-new-privileges", f"--security-opt=seccomp={profile}"]
    command += [f"--ulimit=nofile={STDLIB.open_files}", f"--ulimit=core={STDLIB.core_bytes}"]
    command += [f"--ulimit=memlock={STDLIB.locked_memory_bytes}", f"--ulimit=msgqueue={STDLIB.message_queue_bytes}"]
    for place, options in tmpfs_options(STDLIB, identity).items():
        command += [f"--tmpfs={place}:{options}"]
    return [*command, image_id, PYTHON, "-c", SOURCE]


def printed_one(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    if done.stdout != "1\n":
        raise RuntimeError(f"it printed {done.stdout!r}")


def through_the_sdk(api: docker.APIClient, image_id: str) -> None:
    """The same once more without the command's own process: what of its time is the engine's."""
    name = f"pybox-{new_token()}"
    config = container_config(STDLIB, Identity(name=name, uid=UID, image_id=image_id, labels={}))
    made = api.create_container_from_config({**config, "Cmd": [PYTHON, "-c", SOURCE]}, name)["Id"]
    output = api.attach(made, stream=True)
    api.start(made)
    with suppress(docker.errors.NotFound):  # gone before it was asked for
        api.wait(made, condition="removed", timeout=30)
    if b"".join(output) != b"1\n":
        raise RuntimeError("it did not print 1")


def alone() -> None:
    if not run(SOURCE).receipt.ok:
        raise RuntimeError("a run did not end normally")


def full_run(rounds: int) -> Found:
    engine = DockerEngine()
    image = require(engine, ImageStore(home_path()))
    api = docker.APIClient(base_url=engine.address, version="auto")
    steps: dict[str, list[float]] = {}

    def a_box_waits() -> None:
        ready.expect(STDLIB.image)
        until(lambda: ready.waiting() > 0)

    def in_session(session: Session, *, waited: bool) -> None:
        receipt = session.run(SOURCE).receipt
        if not receipt.ok or (receipt.observed.box.waited is not None) != waited:
            raise RuntimeError(receipt.to_json())
        for step in () if waited else receipt.observed.steps:
            steps.setdefault(step.name, []).append(step.duration_ms)

    with (
        tempfile.NamedTemporaryFile("w", suffix=".json") as profile,
        Session.open() as opened,
        session_with_one() as ready,
    ):
        profile.write(seccomp.PROFILE_JSON)
        profile.flush()
        command = docker_run(image.id, profile.name)
        spreads, times = in_turn(
            {
                DOCKER_RUN: lambda: printed_one(command),
                ALONE: alone,
                IN_SESSION: lambda: in_session(opened, waited=False),
                WAITED: lambda: in_session(ready, waited=True),
                SDK: lambda: through_the_sdk(api, image.id),
            },
            rounds,
            WARM_UP,
            {WAITED: a_box_waits},
        )
    api.close()
    engine.close()
    by_pairs = {
        name: statistics.median(one / plain for one, plain in zip(found, times[DOCKER_RUN], strict=True))
        for name, found in times.items()
    }
    return Found(spreads, by_pairs, {name: statistics.median(values) for name, values in steps.items()})


def lines(found: Found) -> list[str]:
    plain = found.spreads[DOCKER_RUN].median
    made, waited = found.spreads[ALONE].median / plain, found.spreads[WAITED].median / plain
    return [
        "## A full run beside `docker run --rm`",
        "",
        *table(found.spreads),
        "",
        f"A full run, verified, with its box confirmed gone, takes **{made:.2f} times** a plain `docker run --rm` "
        f"(medians; pair by pair {found.by_pairs[ALONE]:.2f}; the aim is at most 1.3), and where its box was made in "
        f"advance **{waited:.2f} times** (pair by pair {found.by_pairs[WAITED]:.2f}; at most 0.25).",
        "",
        "Where the time goes, by the receipts' own steps (medians):",
        "",
        "| step | ms |",
        "|---|---|",
        *(f"| {name} | {value:.1f} |" for name, value in found.steps.items()),
        "",
        dominating(found.steps),
        "",
    ]


def dominating(steps: dict[str, float]) -> str:
    """The steps that take the most, together more than nine tenths of all."""
    whole, named, so_far = sum(steps.values()), [], 0.0
    for name, value in sorted(steps.items(), key=lambda item: -item[1]):
        if so_far > 0.9 * whole:
            break
        named.append(f"{name} ({value / whole:.0%})")
        so_far += value
    return f"What dominates, of these steps: {', '.join(named)}."


def report(rounds: int) -> list[str]:
    return lines(full_run(rounds))
