"""An engine that hangs, breaks off, loses an answer or talks nonsense, at each call of a run in turn.

The program never starts, or its end is told as far as it was seen; the receipt names the call; no box is left, or it is
said that this is not known, and the next session settles it.
"""

from __future__ import annotations

import gc
import json
import re
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pybox_kernel.boxes import box
from pybox_kernel.boxes.journal import Journal
from pybox_kernel.docker_engine import engine as docker_engine
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.errors import EngineError
from pybox_kernel.images.store import ImageStore, RecordedImage
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.running.runner import RunResult
from pybox_kernel.running.transcript import Display
from pybox_kernel.safe_display.text import SafeText
from pybox_kernel.sessions.session import Session
from tests.boxes.engine_between import EngineBetween, Fault
from tests.cases import case
from tests.conftest import Outside

pytestmark = [pytest.mark.engine, pytest.mark.alone]  # the engine has less than a second for an answer

SHORT = 0.8
"""Seconds that a call may take here; elsewhere it is 5 or 10."""
ID = "[0-9a-f]{64}"
CALLS = {
    "say its version": "GET /version",
    "describe the image": "GET /images/",
    "make a box": "POST /containers/create",
    "list its containers": "GET /containers/json",
    "describe a box": f"GET /containers/{ID}/json",
    "connect to a box": f"POST /containers/{ID}/attach",
    "start a box": f"POST /containers/{ID}/start",
    "tell of a box's removal": f"POST /containers/{ID}/wait",
}
"""All calls of a run, in order. Each comes before the program: its end needs no call but the look that it is gone."""


class Impatient(DockerEngine):
    """The engine as it is, with less time for each call."""

    def _client(self, seconds: float = SHORT) -> Any:
        return super()._client(min(seconds, SHORT))


@pytest.fixture(autouse=True)
def little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_engine, "ANSWER_SECONDS", SHORT)
    monkeypatch.setattr(box, "REMOVED_SECONDS", 2.0)


class Bench:
    """One installation of its own, with an engine that faults can be put before."""

    def __init__(self, folder: Path, outside: Outside) -> None:
        self.home = folder
        self.outside = outside
        self.between = EngineBetween(folder / "engine.sock")
        self._stack = ExitStack()
        self.session = self.new_session()

    def new_session(self) -> Session:
        return self._stack.enter_context(Session(Journal(self.home), Impatient(self.between.address)))

    def run(self, *faults: Fault, source: str = "print('ran')", **options: Any) -> RunResult:
        self.between.faults = list(faults)
        self.between._counts = [0] * len(faults)
        self.between.calls.clear()
        return self.session.run(source, **options)

    def boxes(self) -> list[str]:
        return self.outside.boxes(installation=(self.home / "installation").read_text().strip())

    def entries(self) -> list[Path]:
        return list((self.home / "sessions").glob("*/*.json"))

    def close(self) -> None:
        self.between.mend()
        self._stack.close()


@pytest.fixture
def bench(tmp_path: Path, box_image: RecordedImage, outside: Outside) -> Iterator[Bench]:
    tmp_path.chmod(0o700)
    ImageStore(tmp_path).record(box_image)
    bench = Bench(tmp_path, outside)
    with bench.between:
        yield bench
        bench.close()
    for left in bench.boxes():
        outside.api.remove_container(left, force=True)


def assert_not_started(receipt: Receipt, code: str, *says: str) -> None:
    assert receipt.observed.end.how == "not_started"
    assert receipt.problem is not None
    assert receipt.problem.code == code
    assert receipt.problem.advice
    for text in says:
        assert text in receipt.problem.message
    assert receipt.said.stdout.bytes == 0


def assert_nothing_left(bench: Bench, receipt: Receipt) -> None:
    assert bench.boxes() == []
    assert bench.entries() == []
    assert receipt.observed.box.removed is (True if receipt.observed.box.id else None)


def test_an_engine_behind_the_socket_is_the_engine(bench: Bench) -> None:
    result = bench.run()
    assert result.receipt.ok
    assert result.stdout == "ran\n"
    for pattern in CALLS.values():
        assert any(re.match(pattern, call) for call in bench.between.calls), pattern
    assert_nothing_left(bench, result.receipt)


# One call fails, the others do not


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_gets_no_answer_is_named(call: str, bench: Bench) -> None:
    began = time.monotonic()
    receipt = bench.run(Fault(CALLS[call], "stall")).receipt
    assert_not_started(receipt, "engine_timeout", bench.between.address, "did not answer in time when asked to")
    assert time.monotonic() - began < 6
    if call == "make a box":
        assert bench.boxes() == []
        assert receipt.observed.box.id is None
        assert len(bench.entries()) == 1, "the engine might still make it"
        assert "removed" in {each.what for each in receipt.unknown}
    else:
        assert_nothing_left(bench, receipt)
    assert bench.run().receipt.ok, "the next run is not harmed"


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_breaks_off_is_named(call: str, bench: Bench) -> None:
    receipt = bench.run(Fault(CALLS[call], "cut")).receipt
    assert_not_started(receipt, "engine", bench.between.address, "broke off when asked to")
    assert bench.boxes() == []
    if call != "make a box":
        assert_nothing_left(bench, receipt)


@pytest.mark.parametrize(
    ("call", "body"),
    [
        *(("say its version", body) for body in ([], {}, None, "1.41", b"<html>", b"")),
        *(("describe the image", body) for body in ([], {}, None, b"<html>", b"")),
        *(("make a box", body) for body in ([], {}, None, b"<html>", b"")),
        *(("list its containers", body) for body in ({"x": 1}, [{}], [1], None, b"<html>", b"")),
        *(("describe a box", body) for body in ([1], None, 1, b"<html>", b"", b"[" * 100_000)),
        *(("connect to a box", body) for body in ([], {}, b"<html>", b"")),
    ],
)
def test_an_answer_of_another_form_is_no_answer(call: str, body: object, bench: Bench) -> None:
    receipt = bench.run(Fault(CALLS[call], "answer", body=body)).receipt
    assert_not_started(receipt, "engine", bench.between.address, "when asked to")
    assert bench.boxes() == []


@pytest.mark.parametrize(
    ("call", "what", "code"),
    [
        ("say its version", "flood", "engine"),
        ("describe a box", "flood", "engine"),
        ("describe a box", "trickle", "engine_timeout"),
        ("tell of a box's removal", "flood", ""),
        ("tell of a box's removal", "trickle", ""),
    ],
)
def test_an_answer_without_end_takes_neither_more_than_a_calls_time_nor_this_computers_memory(
    call: str, what: Any, code: str, bench: Bench
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    receipt = bench.run(Fault(CALLS[call], what)).receipt
    assert time.monotonic() - began < 10
    if call == "tell of a box's removal":  # which is seen without it
        assert receipt.ok
        assert "the engine's own record of the exit status was not obtained" in receipt.observed.end.evidence
    else:
        assert_not_started(receipt, code, bench.between.address, "when asked to")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
    assert_nothing_left(bench, receipt)


@pytest.mark.parametrize("body", [{}, []])
def test_an_empty_record_of_a_box_is_no_sealed_box(body: object, bench: Bench) -> None:
    receipt = bench.run(Fault(CALLS["describe a box"], "answer", body=body)).receipt
    assert_not_started(receipt, "not_sealed", "removed when it ends: wanted yes, found nothing")
    assert_nothing_left(bench, receipt)


def test_another_image_under_the_recorded_id_is_refused(
    bench: Bench, box_image: RecordedImage, outside: Outside
) -> None:
    other = outside.api.inspect_image(box_image.base_image.id)
    receipt = bench.run(Fault(CALLS["describe the image"], "answer", body=other)).receipt
    assert_not_started(receipt, "setup", f"The engine has {other['Id']} as the box image 'stdlib', not {box_image.id}")
    assert_nothing_left(bench, receipt)


def test_a_removal_that_the_engine_will_not_tell_of_is_seen_without_it(bench: Bench) -> None:
    refusal = Fault(
        CALLS["tell of a box's removal"], "answer", body={"message": "no"}, status="500 Internal Server Error"
    )
    receipt = bench.run(refusal).receipt
    assert receipt.ok
    assert "the engine's own record of the exit status was not obtained" in receipt.observed.end.evidence
    assert_nothing_left(bench, receipt)


@pytest.mark.parametrize("call", [call for call in CALLS if call not in ("say its version", "tell of a box's removal")])
def test_an_engine_that_says_no_is_quoted(call: str, bench: Bench) -> None:
    refusal = Fault(CALLS[call], "answer", body={"message": "the stars are wrong"}, status="500 Internal Server Error")
    receipt = bench.run(refusal).receipt
    assert_not_started(
        receipt, "engine_refused", f"refused to {call.partition(' the image')[0]}", "the stars are wrong"
    )
    assert_nothing_left(bench, receipt)


# A box made, and its maker not told


@pytest.mark.parametrize(("what", "code"), [("lose", "engine"), ("keep", "engine_timeout")])
def test_a_box_whose_maker_got_no_answer_is_found_by_its_name_and_removed(what: Any, code: str, bench: Bench) -> None:
    receipt = bench.run(Fault(CALLS["make a box"], what)).receipt
    assert_not_started(receipt, code, "when asked to make a box")
    assert receipt.observed.box.id is not None
    assert receipt.observed.box.removed is True
    assert f"DELETE /containers/{receipt.observed.box.id}" in " ".join(bench.between.calls)
    assert_nothing_left(bench, receipt)


@pytest.mark.parametrize("call", ["connect to a box", "start a box"])
@pytest.mark.parametrize("what", ["lose", "keep"])
def test_a_box_that_was_started_without_an_answer_is_ended(what: Any, call: str, bench: Bench) -> None:
    receipt = bench.run(Fault(CALLS[call], what)).receipt
    assert receipt.observed.end.how == "not_started"
    assert receipt.problem is not None
    assert receipt.problem.code.startswith("engine")
    assert_nothing_left(bench, receipt)


def test_what_is_not_known_is_said_until_the_next_session_settles_it(bench: Bench, outside: Outside) -> None:
    """The engine makes the box and then answers nothing any more."""
    keep = Fault(CALLS["make a box"], "keep")
    receipt = bench.run(keep, Fault("GET|POST|DELETE", "stall", skip=2, times=1000)).receipt
    assert_not_started(receipt, "engine_timeout")
    assert receipt.observed.box.removed is None
    assert [each.what for each in receipt.unknown] == ["removed"]
    (left,) = bench.boxes()
    (entry,) = bench.entries()
    assert json.loads(entry.read_text())["container_id"] is None
    bench.close()  # the session ends: what it could not confirm stays on record
    assert bench.entries() == [entry]
    with Session(Journal(bench.home), Impatient(bench.between.address)) as later:
        result = later.run("print(2)")
    assert result.receipt.ok
    assert result.notices == ("Removed 1 box that an earlier session left behind.",)
    outside.wait_gone(left, 1.0)
    assert bench.entries() == []


def test_a_box_that_cannot_be_removed_is_no_success(bench: Bench, outside: Outside) -> None:
    """The engine answers until the program has ended, and then no more: the box is gone by itself, but unseen."""
    receipt = bench.run(Fault(CALLS["describe a box"], "stall", skip=2, times=1000), source="print(1)").receipt
    assert receipt.observed.end.how == "exited"
    assert receipt.observed.box.removed is None
    assert receipt.observed.box.id is not None
    assert {each.what for each in receipt.unknown} == {"removed"}
    assert "did not answer in time" in receipt.unknown[0].why
    assert len(bench.entries()) == 1
    outside.wait_gone(receipt.observed.box.id, 2.0)


@case("eng-disk-full")
@pytest.mark.parametrize("call", ["make a box", "start a box"])
def test_an_engine_without_room_says_so_and_nothing_half_made_is_left(call: str, bench: Bench) -> None:
    full = {"message": "write /var/lib/docker/tmp: no space left on device"}
    receipt = bench.run(Fault(CALLS[call], "answer", body=full, status="500 Internal Server Error")).receipt
    assert_not_started(receipt, "engine_refused", f"refused to {call}", "no space left on device")
    assert receipt.problem is not None
    assert "make room there" in receipt.problem.advice
    assert_nothing_left(bench, receipt)
    assert bench.run().receipt.ok, "once there is room again"


@case("mac-sleep")
def test_an_engine_that_lists_and_starts_nothing_is_waited_for_a_while_and_the_mending_command_is_named(
    bench: Bench,
) -> None:
    began = time.monotonic()
    receipt = bench.run(Fault(CALLS["start a box"], "stall")).receipt
    assert time.monotonic() - began < 20
    assert_not_started(receipt, "engine_timeout", "when asked to start a box")
    assert receipt.problem is not None
    assert "`systemctl restart docker`" in receipt.problem.advice
    assert bench.between.calls[-1]
    assert_nothing_left(bench, receipt)


# While the program runs


class AtTheStart:
    """Does something once the program runs."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self.shown = ""

    def started(self, deadline_seconds: float) -> None:
        return None

    def output(self, stream: str, text: SafeText) -> None:
        if not self.shown:
            self._act()
        self.shown += text

    def display(self, display: Display) -> None:
        return None


LONG = "import time\nprint('here', flush=True)\ntime.sleep(25)\nprint('never')"


def test_a_connection_cut_while_the_program_runs_ends_the_box(bench: Bench, outside: Outside) -> None:
    watcher = AtTheStart(lambda: bench.between.hang_up(CALLS["connect to a box"]))
    began = time.monotonic()
    receipt = bench.run(source=LONG, deadline_seconds=30, watcher=watcher).receipt
    assert time.monotonic() - began < 5
    assert receipt.observed.end.how == "box_lost"
    assert receipt.observed.end.exit_code == 70, "the warden's own, for a lost supervisor"
    assert watcher.shown == "here\n"
    assert not receipt.said.completed
    assert_nothing_left(bench, receipt)


# The SDK leaves a socket that could not connect to the garbage collector (docker/transport/unixconn.py).
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_engine_that_is_gone_while_the_program_runs_takes_the_box_with_it(bench: Bench, outside: Outside) -> None:
    watcher = AtTheStart(bench.between.gone)
    began = time.monotonic()
    receipt = bench.run(source=LONG, deadline_seconds=30, watcher=watcher).receipt
    assert time.monotonic() - began < 8
    assert receipt.observed.end.how == "box_lost"
    assert receipt.observed.box.removed is None
    assert {"removed", "exit_code", "ran_seconds"} <= {each.what for each in receipt.unknown}
    assert receipt.observed.box.id is not None
    outside.wait_gone(receipt.observed.box.id, 2.0)
    assert len(bench.entries()) == 1
    bench.between.open()
    bench.close()
    with Session(Journal(bench.home), Impatient(bench.between.address)) as later:
        assert later.sweep().already_gone == (receipt.run.id,)
    assert bench.entries() == []
    gc.collect()


# How soon


@pytest.mark.parametrize("what", ["stall", "cut"])
def test_an_engine_that_never_says_a_word_is_named_within_two_seconds(what: Any, tmp_path: Path) -> None:
    with EngineBetween(tmp_path / "engine.sock", Fault("", what, times=1000)) as between:
        engine = DockerEngine(between.address)
        began = time.monotonic()
        with pytest.raises(EngineError) as caught:
            engine.facts()
        assert time.monotonic() - began < 2
        assert caught.value.code == ("engine_timeout" if what == "stall" else "engine")
        assert between.address in caught.value.message
        engine.close()
