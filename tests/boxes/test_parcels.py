"""Values into a box and out of it, on the real engine: what passes, and what a hostile program makes of the way."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from pybox_kernel.carry.store import Carry
from pybox_kernel.sessions.session import RunResult, Session, Stop
from pybox_kernel.wire.parcels import CARRIED_BYTES, CarryIn

pytestmark = pytest.mark.engine

EMPTY = CarryIn({"keep": False, "groups": []})
SAY = """
import os
def say(kind, payload=b"", length=None):
    data = memoryview(kind + (len(payload) if length is None else length).to_bytes(4, "big") + payload)
    while data:
        data = data[os.write(3, data):]
def record(kind, payload):
    return kind + len(payload).to_bytes(8, "big") + payload
"""


def run(session: Session, source: str, carry: CarryIn = EMPTY, deadline: float = 10.0) -> RunResult:
    result = session.run(SAY + source, deadline_seconds=deadline, carry=carry)
    assert result.receipt.problem is None
    assert result.receipt.observed.box.removed is True
    return result


def test_thirty_megabytes_each_way_in_a_box_of_128(session: Session) -> None:
    carry = Carry()
    made = "import os, zlib; data = os.urandom(30 << 20); print(zlib.crc32(data))"
    first = session.run(made, deadline_seconds=10, carry=carry, cell=1)
    changed = "import zlib; print(zlib.crc32(data)); data = b'x' + data[1:]"
    second = session.run(changed, deadline_seconds=10, carry=carry, cell=2)
    third = session.run("print(len(data), data[:1])", deadline_seconds=10, carry=carry, cell=3)
    assert first.stdout == second.stdout != ""
    assert third.stdout == f"{30 << 20} b'x'\n"
    for result in (first, second, third):
        assert result.receipt.observed.end.how == "exited"
        assert result.receipt.observed.meters.oom_kills == 0


def test_without_carry_nothing_is_taken(session: Session) -> None:
    result = session.run(SAY + "say(b'k', record(b'm', b'{}')); say(b'w', record(b'm', b'{}')); print('done')")
    assert (result.carried, result.values, result.stdout, result.receipt.ok) == (None, ((), ()), "done\n", True)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("say(b'k', b'garbage'); os._exit(0)", "it did not come whole"),
        ("say(b'k', record(b's', b'print()')); os._exit(0)", "what came has not the form it must have"),
        ("say(b'k', record(b'm', b'{}') + record(b'g', b'abc')[:-1]); os._exit(0)", "it did not come whole"),
        ("say(b'k', b'x' * 65537); os._exit(0)", f"there is more of it than {CARRIED_BYTES:,} bytes"),
        ("say(b'k', length=4096); os._exit(0)", "nothing came"),
        ("os.close(3)", "nothing came"),
    ],
)
def test_a_forged_stream_is_nothing_and_the_receipt_stays_true(session: Session, source: str, why: str) -> None:
    result = run(session, source)
    assert result.carried == why
    assert result.receipt.observed.end.how == "exited"


def test_a_stream_without_end_is_bounded_and_cut_by_the_deadline(session: Session) -> None:
    source = """
say(b"k", record(b"m", b"{}") + b"g" + (1 << 25).to_bytes(8, "big"))
while True:
    say(b"k", bytes(65536))
"""
    began = time.monotonic()
    result = run(session, source, deadline=1.0)
    assert time.monotonic() - began < 10
    assert isinstance(result.carried, str)
    assert result.receipt.observed.end.how == "deadline"
    ran = result.receipt.observed.meters.ran_seconds
    assert ran is not None
    assert 1.0 <= ran < 1.5
    assert result.receipt.said.withheld == ()


def test_a_stop_while_values_go_in_is_obeyed_before_the_program_starts(session: Session) -> None:
    stop = Stop()

    class Groups(list[bytes]):
        def __iter__(self) -> Iterator[bytes]:
            yield bytes(4 << 20)
            stop.set()
            yield bytes(28 << 20)

    result = session.run("print('ran')", carry=CarryIn(EMPTY.manifest, Groups()), stop=stop)
    assert result.receipt.problem is not None
    assert result.receipt.problem.code == "stopped"
    assert (result.stdout, result.carried) == ("", "nothing came")
    assert result.receipt.observed.box.removed is True
