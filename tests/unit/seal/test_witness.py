"""The talk with a witness container, against one that answers as no witness would: it is used no more."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from pybox_kernel.counters import read_meters
from pybox_kernel.docker_engine.connection import DockerConnection
from pybox_kernel.policy import STDLIB
from pybox_kernel.seal import witness as module
from pybox_kernel.seal.by_kernel import kernel_look
from pybox_kernel.seal.spec import Identity
from pybox_kernel.seal.witness import ContainerWitness, DirectWitness, Sight

ID = "ab" * 32
SIGHT: dict[str, Any] = {
    "texts": {"status": "Uid:\t1\n", "limits": None},
    "folders": {"memory": f"/docker/{ID}"},
    "boot_id": "boot\n",
}


class OtherEnd:
    """A witness container as an engine connects it: what it prints comes in frames of the attach stream."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.witness = ContainerWitness(DockerConnection("unix:///run/engine.sock", ours, ours))
        self.asked: list[Any] = []
        self._thread: threading.Thread | None = None

    def says(self, data: bytes, stream: int = 1) -> None:
        for start in range(0, len(data), 32768):  # the longest piece that engines send
            piece = data[start : start + 32768]
            self.theirs.sendall(bytes([stream, 0, 0, 0]) + len(piece).to_bytes(4, "big") + piece)

    def answers(self, *answers: object) -> None:
        """Each in turn to one question: bytes as they are, other values as a line of JSON; None closes."""

        def serve() -> None:
            with suppress(ConnectionError), self.theirs.makefile("rb") as questions:  # who has heard enough hangs up
                for answer in answers:
                    self.asked.append(json.loads(questions.readline()))
                    if answer is None:
                        self.theirs.shutdown(socket.SHUT_RDWR)
                    else:
                        self.says(answer if isinstance(answer, bytes) else json.dumps(answer).encode() + b"\n")

        self._thread = threading.Thread(target=serve)
        self._thread.start()

    def close(self) -> None:
        self.witness.close()
        if self._thread is not None:
            self._thread.join(5)
        self.theirs.close()


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtherEnd]:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.4)
    monkeypatch.setattr(module, "START_SECONDS", 0.4)
    end = OtherEnd()
    yield end
    end.close()


def test_a_look_is_what_the_witness_read(other: OtherEnd) -> None:
    other.answers(SIGHT)
    found = other.witness.look(77, ID)
    assert found == Sight("witness container", SIGHT["texts"], SIGHT["folders"], "boot")
    assert other.asked == [{"do": "look", "pid": 77, "id": ID}]


def test_meters_and_standing_folders_are_asked_for_by_folder(other: OtherEnd) -> None:
    folders = {"memory": f"/docker/{ID}"}
    other.answers({"cgroup:memory.peak": "5\n"}, ["memory"], [])
    assert other.witness.meters(folders) == {"cgroup:memory.peak": "5\n"}
    assert other.witness.standing(folders) == ("memory",)
    assert other.witness.standing(folders) == ()
    assert other.asked == [{"do": "meters", "folders": folders}, *[{"do": "standing", "folders": folders}] * 2]
    assert other.witness.usable


def test_an_answer_in_pieces_and_a_warning_beside_it_are_no_trouble(other: OtherEnd) -> None:
    def slowly() -> None:
        other.theirs.recv(1000)
        other.says(b"a warning\n", stream=2)
        for byte in json.dumps(SIGHT).encode() + b"\n":
            other.says(bytes([byte]))

    thread = threading.Thread(target=slowly)
    thread.start()
    assert other.witness.look(77, ID) is not None
    thread.join()


NO_ANSWERS: dict[str, object] = {
    "no JSON": b"hello\n",
    "no text": b"\xff\xfe\0\n",
    "empty line": b"\n",
    "half of it": b'{"texts": {}, "folders"\n',
    "deep": b"[" * 200_000 + b"\n",
    "deep objects": b'{"a":' * 200_000 + b"\n",
    "a number of 10,000 digits": b"9" * 10_000 + b"\n",
    "without end": b"x" * (3 << 20),
    "two at once": json.dumps(SIGHT).encode() + b"\n" + json.dumps(SIGHT).encode() + b"\n",
    "it ends": None,
}


@pytest.mark.parametrize("answer", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_what_is_no_answer_ends_its_use(answer: object, other: OtherEnd) -> None:
    other.answers(answer)
    assert other.witness.look(77, ID) is None
    assert not other.witness.usable
    began = time.monotonic()
    assert other.witness.look(77, ID) is None
    assert other.witness.meters({}) is None
    assert other.witness.standing({}) is None
    assert time.monotonic() - began < 1, "it is not even asked"


def test_silence_ends_its_use_in_time(other: OtherEnd) -> None:
    began = time.monotonic()
    assert other.witness.look(77, ID) is None
    assert 0.3 < time.monotonic() - began < 5
    assert not other.witness.usable


def test_a_witness_that_does_not_listen_holds_nobody_up(other: OtherEnd) -> None:
    began = time.monotonic()
    assert other.witness.meters({str(n): "x" * 1000 for n in range(5000)}) is None
    assert time.monotonic() - began < 5
    assert not other.witness.usable


def test_a_word_too_many_is_never_taken_for_the_next_answer(other: OtherEnd) -> None:
    other.answers(SIGHT)
    assert other.witness.look(77, ID) is not None
    other.says(json.dumps({**SIGHT, "texts": {"status": "forged"}}).encode() + b"\n")
    assert other.witness.look(78, ID) is None
    assert not other.witness.usable


OTHER_FORMS: dict[str, object] = {
    "null": None,
    "a list": [],
    "no texts": {"folders": {}},
    "texts as a list": {**SIGHT, "texts": []},
    "a text that is a number": {**SIGHT, "texts": {"status": 1}},
    "folders of folders": {**SIGHT, "folders": {"memory": {}}},
}


@pytest.mark.parametrize("answer", OTHER_FORMS.values(), ids=OTHER_FORMS)
def test_an_answer_of_another_form_is_no_sight(answer: object, other: OtherEnd) -> None:
    line = json.dumps(answer).encode() + b"\n"
    other.answers(line, line, line)
    assert other.witness.look(77, ID) is None
    assert other.witness.meters({}) in (None, answer)
    assert other.witness.standing({}) in (None, ())


HOSTILE_TEXTS = (
    "",
    "\0" * 1000,
    "\ud800",
    "\x1b[2J\u202e",
    ":" * 30_000,
    "1" * 30_000,
    "Uid:\t" + "9" * 30_000,
    "\n" * 10_000,
    "-1\n",
    "nan",
    f"0::/docker/{ID}\n" * 400,
    "36 35 98:0 / / rw - tmpfs tmpfs rw",
    "36 35",
    "- - - - - - - - - -\n" * 1000,
    "Limit Soft Hard\nMax cpu time\n",
)


@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
def test_what_a_witness_reads_out_is_compared_and_counted_whatever_it_is(text: str, other: OtherEnd) -> None:
    names = [*module.reading.PROC_FILES]
    for version in (1, 2):
        names += [f"cgroup:{name}" for name in module.reading.LIMIT_FILES[version]]
        names += [f"cgroup:{name}" for name in module.reading.METER_FILES[version]]
    other.answers({"texts": dict.fromkeys(names, text), "folders": {"memory": text}, "boot_id": [text]})
    found = other.witness.look(77, ID)
    assert found is not None
    assert found.boot_id is None
    identity = Identity("pybox-x", 12345, "sha256:" + "0" * 64, {})
    look = kernel_look(STDLIB, identity, found.texts, ID)
    assert look.differences
    assert look.checked >= len(look.differences)
    for version in (1, 2):
        plain = {name.removeprefix("cgroup:"): value for name, value in found.texts.items()}
        assert len(read_meters(plain, version)) == 6


@pytest.mark.parametrize("ask", [lambda w: w.look(2**22 - 1, ID), lambda w: w.look(1, ID)], ids=["none", "another's"])
def test_this_computers_own_files_say_nothing_of_a_process_that_is_not_the_boxs(
    ask: Callable[[DirectWitness], Sight | None],
) -> None:
    assert ask(DirectWitness()) is None


def test_no_cgroup_is_named_after_a_box_that_never_was() -> None:
    assert DirectWitness().named_after("0" * 64) == ()
