"""A full run with its receipt beside a plain ``docker run --rm`` of the same image and limits, and the sealed kernel
beside a plain ipykernel, in one go.

.venv/bin/python -m benchmarks [ROUNDS]     (at least 20; writes benchmarks/RESULTS.md)
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import docker

from benchmarks import carry, data, files, in_advance, many
from benchmarks.kernels import KernelClient, started
from benchmarks.timing import Spread, in_turn
from pybox_kernel import run, seccomp
from pybox_kernel.docker_engine import DockerEngine
from pybox_kernel.image_store import ImageStore, require
from pybox_kernel.install import KERNEL_NAME
from pybox_kernel.journal import home_path, new_token
from pybox_kernel.policy import STDLIB
from pybox_kernel.seal import PYTHON, Identity, container_config, tmpfs_options
from pybox_kernel.session import Session

SOURCE = "print(1)"
UID = 30000
LEAST_ROUNDS = 20
WARM_UP = 3


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
    run = new_token()
    config = container_config(STDLIB, Identity(name=f"pybox-{run}", uid=UID, image_id=image_id, labels={}))
    made = api.create_container_from_config({**config, "Cmd": [PYTHON, "-c", SOURCE]}, f"pybox-{run}")["Id"]
    output = api.attach(made, stream=True)
    api.start(made)
    with suppress(docker.errors.NotFound):  # gone before it was asked for
        api.wait(made, condition="removed", timeout=30)
    if b"".join(output) != b"1\n":
        raise RuntimeError("it did not print 1")


def machine(engine: DockerEngine) -> str:
    facts = engine.facts()
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    return (
        f"{model}, {os.cpu_count()} cores, Linux {facts.kernel}, cgroup v{facts.cgroup_version}, "
        f"Docker {facts.version}, runc {facts.runc_version}, Python {platform.python_version()}"
    )


def main() -> None:
    rounds = max(LEAST_ROUNDS, int(sys.argv[1]) if len(sys.argv) > 1 else LEAST_ROUNDS)
    engine = DockerEngine()
    image = require(engine, ImageStore(home_path()))
    steps: dict[str, list[float]] = {}
    api = docker.APIClient(base_url=engine.address, version="auto")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as profile, Session.open() as session:
        profile.write(seccomp.PROFILE_JSON)
        profile.flush()
        command = docker_run(image.id, profile.name)

        def in_session() -> None:
            result = session.run(SOURCE)
            if not result.receipt.ok:
                raise RuntimeError(result.receipt.to_json())
            for step in result.receipt.observed.steps:
                steps.setdefault(step.name, []).append(step.duration_ms)

        def alone() -> None:
            if not run(SOURCE).receipt.ok:
                raise RuntimeError("a run did not end normally")

        spreads, times = in_turn(
            {
                "`docker run --rm`, same image and limits": lambda: printed_one(command),
                '`run("print(1)")`, with its receipt': alone,
                "the same in a session that is open": in_session,
                "the plain container through the docker SDK": lambda: through_the_sdk(api, image.id),
            },
            rounds,
            WARM_UP,
        )
    api.close()
    cells = kernels(rounds)
    plain, sealed, *_ = times.values()
    pairs = sorted(b / a for a, b in zip(plain, sealed, strict=True))
    report = "\n".join(
        [
            *lines(machine(engine), rounds, spreads, statistics.median(pairs), steps, cells),
            *in_advance.lines(in_advance.in_advance(rounds)),
            *many.lines(many.many()),
            *data.lines(data.data(rounds)),
            *files.lines(*files.files(rounds)),
            *carry.lines(carry.carrying(rounds)),
        ]
    )
    Path(__file__).with_name("RESULTS.md").write_text(report, encoding="utf-8")
    sys.stdout.write(report)
    engine.close()


def kernels(rounds: int) -> dict[str, Spread]:
    """``print(1)`` in a plain kernel, in the sealed one, and in the sealed one with a page that draws its panels; each
    box is made when its cell comes."""
    made = {"PYBOX_POOL": "0"}  # see ``in_advance``
    with (
        started("python3") as plain,
        started(KERNEL_NAME, **made) as sealed,
        started(KERNEL_NAME, **made) as with_page,
    ):
        with_page.connect_a_page()
        clients = {"ipykernel": plain, "PyBox (sealed)": sealed, "PyBox (sealed), with panels": with_page}

        def cell(client: KernelClient) -> Callable[[], None]:
            return lambda: client.run(SOURCE)

        idle, _ = in_turn({name: cell(client) for name, client in clients.items()}, rounds, WARM_UP)
    found: dict[str, Spread] = {}
    for name, client in clients.items():
        found[f"{name}: first output"] = Spread.of(client.first_output[WARM_UP:])
        found[f"{name}: idle again"] = idle[name]
    return found


TABLE = ("| | least | quarter | median | three quarters | most |", "|---|---|---|---|---|---|")


def row(name: str, spread: Spread) -> str:
    return f"| {name} | " + " | ".join(f"{value:.{int(value < 20)}f}" for value in spread) + " |"


def lines(
    where: str,
    rounds: int,
    spreads: dict[str, Spread],
    pairs: float,
    steps: dict[str, list[float]],
    cells: dict[str, Spread],
) -> list[str]:
    plain, sealed, *_ = spreads.values()
    found = [
        "# Times",
        "",
        f"Made by `make bench` on {datetime.now(UTC):%Y-%m-%d}: {where}.",
        f"{rounds} rounds, in turn, after {WARM_UP} to warm up. Milliseconds of wall clock.",
        "",
        *TABLE,
        *(row(name, spread) for name, spread in spreads.items()),
    ]
    ratio = sealed.median / plain.median
    found += [
        "",
        f"A full run, verified, with its box confirmed gone, takes **{ratio:.2f} times** a plain `docker run --rm` "
        f"(medians; pair by pair {pairs:.2f}). The aim of this version is at most 1.3.",
        "",
        "Where the time goes, by the receipts' own steps (medians):",
        "",
        "| step | ms |",
        "|---|---|",
    ]
    found += [f"| {name} | {statistics.median(values):.1f} |" for name, values in steps.items()]
    found += [
        "",
        f"A cell with `{SOURCE}`, from the request of a client:",
        "",
        *TABLE,
        *(row(name, spread) for name, spread in cells.items()),
        "",
        dominating(steps),
    ]
    return [*found, ""]


def dominating(steps: dict[str, list[float]]) -> str:
    """The steps that take the most, together more than nine tenths of all."""
    medians = {name: statistics.median(values) for name, values in steps.items()}
    whole, named, so_far = sum(medians.values()), [], 0.0
    for name, value in sorted(medians.items(), key=lambda item: -item[1]):
        if so_far > 0.9 * whole:
            break
        named.append(f"{name} ({value / whole:.0%})")
        so_far += value
    return f"What dominates a sealed cell, of the steps above: {', '.join(named)}."


if __name__ == "__main__":
    main()
