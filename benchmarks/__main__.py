"""The times and the memory that PyBox takes, each beside what it is to be compared with in the same run.

.venv/bin/python -m benchmarks                     all parts; writes benchmarks/RESULTS.md
.venv/bin/python -m benchmarks NAME [ROUNDS]       one part, printed only
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks import carry, classroom, files, full_run, growth, in_advance, machine, many, memory, receipts, run_all
from pybox_kernel.docker_engine.engine import DockerEngine

ROUNDS: Final = 20
PARTS: Final[dict[str, Callable[[int], list[str]]]] = {
    "run": full_run.report,
    "cells": in_advance.report,
    "run-all": run_all.report,
    "many": many.report,
    "memory": memory.report,
    "receipt": receipts.report,
    "output": growth.output_report,
    "runs": growth.runs_report,
    "files": files.report,
    "carry": carry.report,
    "classroom": classroom.report,
    "machine": machine.report,
}


def computer() -> str:
    engine = DockerEngine()
    facts = engine.facts()
    engine.close()
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


def all_parts() -> None:
    found = [
        "# Times and memory",
        "",
        f"Made by `make bench` on {datetime.now(UTC):%Y-%m-%d}: {computer()}.",
        f"Milliseconds of wall clock. Where things are compared they were done in turn, {ROUNDS} rounds.",
        "",
    ]
    for number, (name, report) in enumerate(PARTS.items(), start=1):
        began = time.monotonic()
        print(f"{number} of {len(PARTS)}: {name}", end=" ", file=sys.stderr, flush=True)
        found += report(ROUNDS)
        print(f"({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
    text = "\n".join(found).rstrip() + "\n"
    Path(__file__).with_name("RESULTS.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)


def main(arguments: list[str]) -> int:
    if not arguments:
        all_parts()
        return 0
    name, *rest = arguments
    if name not in PARTS or len(rest) > 1 or not all(text.isdigit() and int(text) >= 2 for text in rest):
        print(f"{__doc__}\nParts: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    print("\n".join(PARTS[name](int(rest[0]) if rest else ROUNDS)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
