"""Sample receipts: one of each kind that a person meets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from pybox_kernel.policy import MIB, STDLIB
from pybox_kernel.receipt.model import Receipt

STEPS = (
    ("made", 0.2, 118.4),
    ("started", 118.6, 171.5),
    ("ready", 290.1, 72.8),
    ("seal checked", 362.9, 9.8),
    ("program ran", 372.7, 288.0),
    ("meters read", 660.7, 1.1),
    ("removed", 662.3, 42.7),
)
WAITED_STEPS = (
    ("seal checked again", 0.1, 2.4),
    ("program ran", 2.6, 288.0),
    ("meters read", 290.7, 0.2),
    ("removed", 291.0, 36.7),
)
BY_ITSELF = "the box's own part saw the program end by itself"


def steps(found: tuple[tuple[str, float, float], ...]) -> list[dict[str, Any]]:
    return [{"name": name, "offset_ms": start, "duration_ms": long} for name, start, long in found]


def ended(how: str, *evidence: str, code: int | None = None, signal: str | None = None) -> dict[str, Any]:
    by_itself = [BY_ITSELF] if how in ("exited", "signal") else []
    engine = [] if code is None else [f"the engine recorded exit status {code}"]
    code = code if how in ("exited", "signal", "box_lost") else None
    return {"how": how, "exit_code": code, "signal": signal, "evidence": [*by_itself, *evidence, *engine]}


ENGINE: dict[str, Any] = {
    "address": "unix:///var/run/docker.sock",
    "name": "container engine",
    "chosen": "the usual one",
    "version": "27.5.1",
    "runtime": "runc",
    "runtime_version": "1.2.9",
    "warning": None,
}


def receipt(**changes: Any) -> Receipt:
    """A clean run, with what ``changes`` names by its path: ``observed__end__how="signal"``."""
    document: dict[str, Any] = {
        "schema": "pybox.receipt/1",
        "run": {
            "id": "0123456789abcdef0123456789abcdef",
            "source_sha256": "5a" * 32,
            "source_bytes": 11,
            "image": {
                "name": "stdlib",
                "id": "sha256:" + "1b" * 32,
                "recipe_sha256": "2c" * 32,
                "base": "Debian 12",
            },
            "started_at": "2031-05-04T10:20:30.123456Z",
        },
        "asked": {
            "policy": STDLIB.model_dump(),
            "options": {
                "deadline_seconds": 2.0,
                "inputs": [],
                "output": False,
                "output_folder": None,
                "carry": "off",
                "values": [],
                "values_wanted": [],
                "engine": None,
                "require_vm": False,
                "another_machine": False,
            },
            "seccomp_sha256": "3d" * 32,
            "uid": 20123,
        },
        "observed": {
            "seal": {
                "before_start": True,
                "engine": {"checked": 38, "differences": []},
                "kernel": {"checked": 24, "source": "this computer", "differences": []},
                "inside": {"checked": 19, "differences": []},
            },
            "end": ended("exited", code=0),
            "meters": {
                "final": True,
                "memory_peak_bytes": 21 * MIB,
                "oom_kills": 0,
                "tasks_peak": 3,
                "task_limit_hits": 0,
                "cpu_seconds": 0.09,
                "cpu_throttled_periods": 1,
                "ran_seconds": 0.288,
            },
            "boundary": {"kind": "this_kernel", "evidence": "the same boot id", "machine": None, "facts": []},
            "steps": steps(STEPS),
            "box": {"id": "4e" * 32, "removed": True, "waited": None},
            "carried": None,
            "engine_used": dict(ENGINE),
            "saved_in": None,
        },
        "said": {
            "completed": True,
            "stdout": {"bytes": 3, "kept": 3, "bad_bytes": 0},
            "stderr": {"bytes": 0, "kept": 0, "bad_bytes": 0},
            "displays": 0,
            "pictures": 0,
            "tables": 0,
            "html": 0,
            "withheld": [],
            "error": None,
            "wall": None,
            "files": [],
            "not_brought": [],
            "not_brought_unlisted": 0,
            "files_left": 0,
            "values": [],
            "values_not_brought": [],
            "lost": [],
            "lost_more": 0,
            "not_restored": [],
            "not_restored_more": 0,
        },
        "unknown": [],
        "problem": None,
    }
    for path, value in changes.items():
        *above, name = path.split("__")
        place = document
        for key in above:
            place = place[key]
        assert name in place, path
        place[name] = value
    return Receipt.model_validate(document)


CHOSEN_EARLIER = {
    "what": "carried_values",
    "why": "earlier programs chose it, unchecked",
}


def group(*names: str, kind: str = "", size: int = 100, cell: int = 5) -> dict[str, Any]:
    return {
        "names": list(names),
        "more_names": 0,
        "kind": kind,
        "bytes": size,
        "sha256": "8e" * 32,
        "run": f"{cell:032x}",
        "cell": cell,
    }


def carried(*put_in: dict[str, Any], out: Any = (), **more: Any) -> dict[str, Any]:
    return {
        "put_in": list(put_in),
        "put_in_more": 0,
        "kept_back": 0,
        "kept_back_bytes": 0,
        "taken_out": list(out),
        "taken_out_more": 0,
        "why_nothing": None,
        **more,
    }


NOTHING_ASKED: dict[str, Any] = {"deadline_seconds": 2.0, "inputs": [], "output": False, "output_folder": None}
NO_EXIT_CODE = {"what": "exit_code", "why": "the box ended without saying how the program did"}


def not_read(*names: str, why: str = "the box was gone before they could be read") -> list[dict[str, str]]:
    return [{"what": name, "why": why} for name in names]


NO_METERS: dict[str, Any] = {
    "final": False,
    **dict.fromkeys(("memory_peak_bytes", "oom_kills", "tasks_peak", "task_limit_hits")),
    **dict.fromkeys(("cpu_seconds", "cpu_throttled_periods", "ran_seconds")),
}
NEVER_STARTED: dict[str, Any] = {
    "observed__end": ended("not_started"),
    "observed__meters": NO_METERS,
    "observed__steps": steps(STEPS[:2]),
    "said__completed": False,
    "said__stdout": {"bytes": 0, "kept": 0, "bad_bytes": 0},
}
NO_ENGINE: dict[str, Any] = {
    **NEVER_STARTED,
    "asked__uid": None,
    "observed__seal": {
        "before_start": False,
        "engine": {"checked": 0, "differences": []},
        "kernel": {"checked": 0, "source": None, "differences": []},
        "inside": {"checked": 0, "differences": []},
    },
    "observed__boundary": {"kind": None, "evidence": ""},
    "observed__engine_used": None,
    "observed__steps": [],
    "observed__box": {"id": None, "removed": None, "waited": None},
    "problem": {
        "code": "engine_missing",
        "message": "Nothing answers at unix:///var/run/docker.sock.",
        "advice": "Start the container engine; pybox-kernel doctor says how.",
    },
}


def samples() -> dict[str, Receipt]:
    return {
        "clean": receipt(),
        "memory": receipt(
            observed__meters__memory_peak_bytes=128 * MIB,
            observed__meters__oom_kills=1,
            observed__meters__tasks_peak=7,
            observed__meters__cpu_seconds=0.71,
            observed__meters__cpu_throttled_periods=13,
            observed__meters__ran_seconds=1.41,
            said__stdout={"bytes": 10, "kept": 10, "bad_bytes": 0},
        ),
        "deadline": receipt(
            observed__end=ended("deadline", "the box's own timer ended it at 2 s", code=137),
            observed__meters__ran_seconds=2.001,
            observed__meters__cpu_seconds=0.98,
            observed__meters__cpu_throttled_periods=20,
            said__completed=False,
            said__stdout={"bytes": 3_482_112, "kept": 65536, "bad_bytes": 0},
        ),
        "not_sealed": receipt(
            **NEVER_STARTED,
            observed__seal={
                "before_start": False,
                "engine": {
                    "checked": 38,
                    "differences": [{"setting": "network", "wanted": "no network", "found": "a network connection"}],
                },
                "kernel": {"checked": 0, "source": None, "differences": []},
                "inside": {"checked": 0, "differences": []},
            },
            problem={
                "code": "not_sealed",
                "message": "The box is not sealed as required: network.",
                "advice": "Run `pybox-kernel doctor`.",
            },
        ),
        "error": receipt(
            observed__end=ended("exited", code=1),
            said__completed=False,
            said__error="ZeroDivisionError",
        ),
        "no_module": receipt(
            observed__end=ended("exited", code=1),
            said__completed=False,
            said__error="ModuleNotFoundError",
            said__wall={"kind": "module", "what": "numpy", "cell": None},
        ),
        "left_early": receipt(said__completed=False),
        "exit_137": receipt(observed__end=ended("exited", code=137), said__completed=False),
        "crash": receipt(observed__end=ended("signal", code=139, signal="SIGSEGV"), said__completed=False),
        "killed_for_memory": receipt(
            observed__end=ended("signal", code=137, signal="SIGKILL"),
            observed__meters__oom_kills=2,
            observed__meters__memory_peak_bytes=128 * MIB,
            said__completed=False,
        ),
        "warden_failed": receipt(
            observed__end=ended("warden_failed", "the box's own part said: OSError: [Errno 24]", code=71),
            observed__meters={**NO_METERS, "memory_peak_bytes": 20 * MIB, "oom_kills": 0},
            said__completed=False,
            said__stdout={"bytes": 0, "kept": 0, "bad_bytes": 0},
            unknown=[
                *not_read("tasks_peak", "task_limit_hits", "cpu_seconds", "cpu_throttled_periods"),
                {"what": "ran_seconds", "why": "the box ended without saying how long the program ran"},
                NO_EXIT_CODE,
            ],
            problem={
                "code": "box",
                "message": "PyBox's own part in the box failed.",
                "advice": "Run `pybox-kernel doctor`.",
            },
        ),
        "killed": receipt(
            observed__end=ended("signal", code=137, signal="SIGKILL"),
            said__completed=False,
            said__stdout={"bytes": 0, "kept": 0, "bad_bytes": 0},
        ),
        "stopped": receipt(
            observed__end=ended("stopped", "the box's own part ended it when asked to stop", code=137),
            observed__meters__ran_seconds=0.83,
            said__completed=False,
        ),
        "box_lost": receipt(
            observed__end=ended("box_lost", code=137),
            observed__meters={**NO_METERS, "memory_peak_bytes": 127 * MIB, "tasks_peak": 4},
            said__completed=False,
            unknown=not_read("oom_kills", "task_limit_hits", "cpu_seconds", "cpu_throttled_periods", "ran_seconds"),
        ),
        "busy": receipt(
            observed__meters__tasks_peak=32,
            observed__meters__task_limit_hits=12,
            observed__boundary={"kind": "other_kernel", "evidence": "the boot ids differ"},
            observed__seal__kernel={"checked": 24, "source": "the box's own reading", "differences": []},
            said__stdout={"bytes": 2048, "kept": 2048, "bad_bytes": 5},
            said__stderr={"bytes": 77, "kept": 77, "bad_bytes": 0},
            unknown=[{"what": "output_order", "why": "the two output streams come by two ways"}],
            said__displays=9,
            said__pictures=3,
            said__tables=1,
            said__html=2,
            said__withheld=[
                {"what": "image/svg+xml", "bytes": 12288, "number": 1},
                {"what": "parts of text/html", "bytes": 740, "number": 2},
                {"what": "image/png: not a PNG", "bytes": 9, "number": 1},
                {"what": "more than a cell may display", "bytes": 1258291, "number": 4900},
            ],
        ),
        "files": receipt(
            asked__policy=STDLIB.with_files().model_dump(),
            asked__options={
                "deadline_seconds": 5.0,
                "inputs": [
                    {"name": "data/x.csv", "bytes": 120_000, "sha256": "7a" * 32, "source": None},
                    {"name": "y.csv", "bytes": 12, "sha256": "7b" * 32, "source": "../data/y.csv"},
                ],
                "output": True,
                "carry": "off",
                "output_folder": "results",
            },
            observed__saved_in="results/cell-3",
            said__files=[
                {"name": "plots/one.png", "bytes": 40_960, "sha256": "7c" * 32},
                {"name": "table.csv", "bytes": 812, "sha256": "7d" * 32},
            ],
            said__not_brought=[
                {"name": "big.bin", "bytes": 1 << 40, "why": "it is larger than the 8 MB that all files may have"},
                {"name": "notes.txt", "bytes": None, "why": "it is a link, and links are not followed"},
            ],
            said__not_brought_unlisted=31,
        ),
        "files_of_an_unfinished_run": receipt(
            observed__end=ended("deadline", "the box's own timer ended it at 2 s", code=137),
            observed__meters__ran_seconds=2.001,
            asked__options={"deadline_seconds": 2.0, "inputs": [], "output": True, "output_folder": None},
            said__completed=False,
            said__files=[{"name": "part.csv", "bytes": 4, "sha256": "7e" * 32}],
            unknown=[{"what": "files", "why": "looking through them took longer than 2 s"}],
        ),
        "files_left": receipt(said__files_left=2),
        "values": receipt(
            asked__options__values=[
                {"name": "df", "kind": "table of pandas", "shape": [1000, 4], "bytes": 40_960, "sha256": "8a" * 32},
                {"name": "n", "kind": "whole number", "shape": [], "bytes": 9, "sha256": "8b" * 32},
            ],
            asked__options__values_wanted=["means", "words", "model"],
            said__values=[
                {"name": "means", "kind": "array of float64", "shape": [4], "bytes": 60, "sha256": "8c" * 32},
                {"name": "words", "kind": "list", "shape": [1], "bytes": 12, "sha256": "8d" * 32},
            ],
            said__values_not_brought=[{"name": "model", "why": "is of the type Model"}],
        ),
        "carried": receipt(
            asked__options__carry="on",
            observed__carried=carried(
                group("df", "copy", cell=3, size=1_200_000),
                group("x", cell=3, size=12),
                group("np", cell=1, size=40),
                group(kind="random", cell=4, size=2500),
                out=[group("mean", size=20), group(kind="random", size=2500)],
                kept_back=2,
                kept_back_bytes=30 * MIB,
            ),
            unknown=[CHOSEN_EARLIER],
        ),
        "not_carried": receipt(
            asked__options__carry="on",
            observed__carried=carried(out=[group("rows", size=900)]),
            said__lost=[
                {"name": "file", "type": "TextIOWrapper", "why": "an open file stays in its box"},
                {"name": "walk", "type": "generator", "why": "a generator cannot be copied"},
            ],
            said__lost_more=1,
        ),
        "nothing_carried": receipt(
            asked__options__carry="keep",
            observed__carried=carried(group("df", cell=3), why_nothing="it did not come whole"),
            said__not_restored=[
                {"names": ["df"], "more_names": 0, "kind": "", "why": "ValueError: not a frame"},
                {"names": [], "more_names": 0, "kind": "pandas", "why": "KeyError: 'display'"},
            ],
            unknown=[CHOSEN_EARLIER],
        ),
        "name_lost": receipt(
            asked__options__carry="on",
            observed__carried=carried(why_nothing="the cell did not run to its end"),
            observed__end=ended("exited", code=1),
            said__completed=False,
            said__error="NameError",
            said__wall={
                "kind": "name",
                "what": "file",
                "cell": 3,
                "why_missing": "lost",
                "detail": "TextIOWrapper: an open file stays in its box",
            },
        ),
        "waited": receipt(
            observed__steps=steps(WAITED_STEPS),
            observed__box={
                "id": "4e" * 32,
                "removed": True,
                "waited": {"since": "2031-05-04T10:20:18.023+00:00", "seconds": 12.1, "steps": steps(STEPS[:4])},
            },
        ),
        "not_removed": receipt(
            observed__box={"id": "4e" * 32, "removed": None, "waited": None},
            unknown=[{"what": "removed", "why": "the engine did not answer within 10 s"}],
            problem={
                "code": "engine_timeout",
                "message": "The container engine did not answer within 10 s.",
                "advice": "Run pybox-kernel cleanup when it answers again.",
            },
        ),
        "no_engine": receipt(**NO_ENGINE),
        "deadline_on_a_busy_computer": receipt(
            observed__end=ended("deadline", "the box's own timer ended it at 2 s", code=137),
            observed__meters__ran_seconds=2.001,
            observed__meters__cpu_seconds=0.21,
            said__completed=False,
        ),
        "private_vm": receipt(
            asked__options={**NOTHING_ASKED, "engine": "vm", "require_vm": True},
            observed__boundary={
                "kind": "private_vm",
                "evidence": "the boot ids are equal",
                "machine": "private VM (QEMU, emulated)",
                "settings": {
                    "accelerator": "tcg",
                    "memory_mib": 1536,
                    "processors": 1,
                    "network_devices": 0,
                    "shared_folders": None,
                },
                "facts": ["the box's kernel is Linux 6.12.38", "this computer's kernel is Linux 6.1.0"],
            },
            unknown=[{"what": "machine_shared_folders", "why": "its driver cannot tell"}],
            observed__engine_used={
                **ENGINE,
                "address": "unix://~/.local/share/pybox-kernel/vm/engine.sock",
                "name": "PyBox's own private VM (QEMU, emulated)",
                "chosen": "asked for",
            },
        ),
        "another_machine": receipt(
            asked__options={**NOTHING_ASKED, "engine": "tcp://192.0.2.7:2376", "another_machine": True},
            observed__boundary={
                "kind": "another_machine",
                "evidence": "the boot ids differ",
                "machine": None,
                "facts": ["the engine is reached over a network, at tcp://192.0.2.7:2376"],
            },
            observed__engine_used={
                **ENGINE,
                "address": "tcp://192.0.2.7:2376",
                "name": "engine on another machine",
                "chosen": "asked for",
                "runtime_version": "1.1.5",
                "warning": "it is of a version that has a way out of a container",
            },
        ),
        "no_vm": receipt(
            **{
                **NO_ENGINE,
                "problem": {
                    "code": "vm_missing",
                    "message": "A private virtual machine was asked for, and none runs: nothing is run without it.",
                    "advice": "Start it with `pybox-kernel vm start`.",
                },
            },
            asked__options={**NOTHING_ASKED, "require_vm": True},
        ),
    }


HOSTILE = "</pre><script>alert(1)</script>'\"&amp;\x1b[2J\u202e\u200b\n\r\0<img src=x onerror=alert(1)>"


def texts(value: Any, *path: str | int) -> Iterator[tuple[str | int, ...]]:
    """The paths of all texts in a document."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts(item, *path, key)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from texts(item, *path, number)


def hostile(text: str = HOSTILE) -> list[Receipt]:
    """Every sample, with something in every list, and with ``text`` wherever the models take any text."""
    return [spoiled(sample, text) for sample in samples().values()]


def spoiled(sample: Receipt, text: str) -> Receipt:
    document = sample.model_dump(mode="json", by_alias=True)
    observed, said = document["observed"], document["said"]
    observed["end"]["evidence"] = [text, text]
    observed["steps"] = [{"name": text, "offset_ms": 0.0, "duration_ms": 1.0}]
    if not observed["seal"]["before_start"]:
        observed["seal"]["engine"]["differences"] = [{"setting": text, "wanted": text, "found": text}]
    said["error"] = said["stdout"]["text"] = text
    said["withheld"] = [{"what": text, "bytes": 1, "number": 1}]
    file = {"name": text, "bytes": 1, "sha256": "6f" * 32}
    said["files"] = [file]
    document["asked"]["options"]["inputs"] = [{**file, "source": text}]
    document["asked"]["options"]["output_folder"] = observed["saved_in"] = text
    value = {"name": text, "kind": text, "shape": [1], "bytes": 1, "sha256": "6f" * 32}
    said["values"] = document["asked"]["options"]["values"] = [value]
    document["asked"]["options"]["values_wanted"] = [text]
    said["values_not_brought"] = [{"name": text, "why": text}]
    said["not_brought"] = [{"name": text, "bytes": 1, "why": text}]
    said["lost"] = [{"name": text, "type": text, "why": text}]
    said["not_restored"] = [{"names": [text[:255]], "more_names": 0, "kind": text, "why": text}]
    found = {"names": [text[:255]], "more_names": 0, "kind": text, "bytes": 1, "sha256": "6f" * 32, "run": "6f" * 16}
    observed["carried"] = carried({**found, "cell": 1}, out=[{**found, "cell": None}], why_nothing=None)
    document["unknown"].append({"what": text, "why": text})
    document["problem"] = {"code": text, "message": text, "advice": text}
    for *above, name in texts(document):
        place: Any = document
        for key in above:
            place = place[key]
        before, place[name] = place[name], text
        try:
            Receipt.model_validate(document)
        except ValidationError:
            place[name] = before
    return Receipt.model_validate(document)
