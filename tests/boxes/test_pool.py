"""Boxes made in advance: each is used once, and only if it is then as it has to be; none outlives its owner."""

from __future__ import annotations

import io
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pybox_kernel.boxes import pool
from pybox_kernel.boxes.journal import Journal
from pybox_kernel.boxes.waiting_places import Bounds, Places
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.doctor import of_boxes_in_advance
from pybox_kernel.files.box_files import InputFile
from pybox_kernel.images.build import remove as remove_image
from pybox_kernel.images.store import ImageStore, RecordedImage
from pybox_kernel.policy import STDLIB
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.seal import spec as seal
from pybox_kernel.sessions.session import Session, Stop
from tests.boxes.conftest import Installation
from tests.boxes.in_advance import OWNER, WAIT, run, until, waited
from tests.conftest import Outside

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def as_many_as_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYBOX_POOL")


@pytest.fixture
def ready(own: Installation) -> Iterator[Session]:
    """A session for which a box waits."""
    with Session(Journal(own.home), in_advance=True) as session:
        session.expect("stdlib")
        waited(session)
        yield session


# One box, one program


MARK = """
import json, os
print([os.path.exists(place + "/mark") for place in ("/box", "/tmp", "/dev/shm")], hasattr(json, "mark"), os.listdir())
for place in ("/box", "/tmp", "/dev/shm"):
    open(place + "/mark", "w").close()
json.mark = True
"""


def test_each_box_is_used_once_and_sees_nothing_of_the_one_before(
    ready: Session, own: Installation, outside: Outside
) -> None:
    used: list[str] = []
    for _ in range(3):
        waited(ready)
        waiting = own.boxes()
        result = ready.run(MARK)
        assert result.stdout == "[False, False, False] False []\n"
        box = result.receipt.observed.box
        assert box.waited is not None
        assert box.id in waiting
        assert box.id is not None
        assert box.id not in used
        assert box.removed is True
        assert box.id not in own.boxes()
        assert outside.cgroups(box.id) == []
        used.append(box.id)


def test_no_box_is_begun_while_a_cell_runs(ready: Session, own: Installation) -> None:
    during: list[int] = []

    class Watcher:
        def started(self, deadline_seconds: float) -> None:
            time.sleep(4 * pool.SETTLE_SECONDS)

        def output(self, stream: str, text: str) -> None:
            during.append(len(own.boxes()))

        def display(self, display: object) -> None: ...

    result = ready.run("import time; time.sleep(0.8); print(1)", watcher=Watcher())
    assert result.receipt.observed.box.waited is not None
    assert during == [1], "the cell's own"
    waited(ready)


def test_in_a_row_of_cells_the_next_box_is_begun_when_a_program_is_over_and_none_while_one_runs(
    ready: Session, own: Installation
) -> None:
    """The cells come before anything has settled, so those of *Run All* after the first two wait for no whole box."""
    during: list[int] = []

    class Watcher:
        def started(self, deadline_seconds: float) -> None: ...

        def output(self, stream: str, text: str) -> None:
            during.append(len(own.boxes()))

        def display(self, display: object) -> None: ...

    source = "import time; time.sleep(0.5); print(1)"
    results = [ready.run(source, watcher=Watcher(), deadline_seconds=10) for _ in range(5)]
    assert [result.receipt.observed.box.waited is not None for result in results[2:]] == [True] * 3
    assert len(during) == 5
    assert max(during) <= 2, "its own, and one that was begun before"


def test_the_receipt_says_when_it_was_made_and_what_was_done_now(ready: Session) -> None:
    time.sleep(0.3)
    receipt = run(ready)
    found = receipt.observed.box.waited
    assert found is not None
    assert 0.3 <= found.seconds < WAIT
    assert found.since < receipt.run.started_at
    assert [step.name for step in found.steps] == ["made", "started", "ready", "seal checked"]
    names = [step.name for step in receipt.observed.steps]
    assert names == ["seal checked again", "program ran", "meters read", "removed"]
    assert receipt.observed.seal.before_start


def test_as_much_is_checked_of_a_box_that_waited_as_of_one_made_now(ready: Session, session: Session) -> None:
    waiting, now = run(ready), run(session)
    assert waiting.observed.box.waited is not None
    assert now.observed.box.waited is None
    for look in ("engine", "kernel", "inside"):
        assert getattr(waiting.observed.seal, look).checked == getattr(now.observed.seal, look).checked > 0
    assert waiting.observed.seal.kernel.source == now.observed.seal.kernel.source
    # What waiting took of the processor is not the program's.
    assert waiting.observed.meters.cpu_seconds is not None
    assert waiting.observed.meters.cpu_seconds < 0.5


def test_its_time_limit_is_its_own(ready: Session) -> None:
    time.sleep(1.0)
    receipt = ready.run("import time\nwhile True: time.sleep(0.01)", deadline_seconds=0.7).receipt
    assert receipt.observed.box.waited is not None
    assert receipt.observed.end.how == "deadline"
    assert receipt.observed.meters.ran_seconds is not None
    assert 0.7 <= receipt.observed.meters.ran_seconds < 0.7 + 0.5


# A second look that fails


def memory(outside: Outside, box: str) -> None:
    outside.api.update_container(box, mem_limit=STDLIB.memory_bytes * 2, memswap_limit=STDLIB.memory_bytes * 2)


def memory_of_the_kernel_alone(outside: Outside, box: str) -> None:
    """What an engine does not know of."""
    folder = next(Path(path) for path in outside.cgroups(box) if "/pids/" in path)
    (folder / "pids.max").write_text("64")


def another_program(outside: Outside, box: str) -> None:
    made = outside.api.exec_create(box, ["/usr/local/bin/pybox-python", "-c", "import time; time.sleep(60)"])
    outside.api.exec_start(made["Id"], detach=True)


def a_file(outside: Outside, box: str) -> None:
    """By a program that has ended: the engine's record of the box has no trace of it."""
    made = outside.api.exec_create(
        box, ["/usr/local/bin/pybox-python", "-c", "open('/box/json.py', 'w').write('x = 1')"]
    )
    outside.api.exec_start(made["Id"])
    assert outside.api.inspect_container(box)["ExecIDs"] is None


def halted(outside: Outside, box: str) -> None:
    outside.api.pause(box)


def stopped(outside: Outside, box: str) -> None:
    """By a signal from outside, of which the engine knows nothing."""
    halt(outside.api.inspect_container(box)["State"]["Pid"])


def halt(process: int) -> None:
    """One that has used up its share of the processor is halted a moment later."""
    os.kill(process, signal.SIGSTOP)
    until(lambda: Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T")


def runner_stopped(outside: Outside, box: str) -> None:
    """Not the process that the engine knows, but that in which the program would run."""
    first = outside.api.inspect_container(box)["State"]["Pid"]
    (runner,) = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    halt(int(runner))


@pytest.mark.parametrize(
    ("alter", "why"),
    [
        (memory, "memory: wanted 128 MB, found 256 MB"),
        (memory_of_the_kernel_alone, "number of tasks: wanted 32, found 64"),
        (another_program, "other programs started in it"),
        (a_file, "programs begun in it"),
        (halted, "halted"),
        (runner_stopped, "the process for the program: wanted waiting, found halted"),
        (stopped, "T (stopped)"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_box_that_is_not_as_required_any_more_gets_no_program_and_doctor_says_so(
    alter: Callable[[Outside, str], None],
    why: str,
    ready: Session,
    own: Installation,
    outside: Outside,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "TICK_SECONDS", 1000.0)  # what has ended would be noticed before the cell
    assert of_boxes_in_advance(own.home).state == "ok"
    ready.run("print(1)")
    waited(ready)
    (box,) = own.boxes()
    with ready._boxes.pool.cell():  # type: ignore[union-attr]  # nothing is made beside it
        alter(outside, box)
        receipt = run(ready)
        assert receipt.observed.box.id != box
        assert receipt.observed.box.waited is None
        assert receipt.problem is None
    until(lambda: box not in own.boxes())
    found = of_boxes_in_advance(own.home)
    assert found.state == "warning"
    assert why in found.found
    waited(ready)
    assert run(ready).observed.box.waited is not None


def ended(outside: Outside, box: str) -> None:
    outside.api.kill(box)
    outside.wait_gone(box, 5)


def test_a_box_that_merely_ended_is_not_used_either_and_that_is_nothing_for_doctor(
    ready: Session, own: Installation, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "TICK_SECONDS", 1000.0)  # it would be noticed before the cell
    (box,) = own.boxes()
    with ready._boxes.pool.cell():  # type: ignore[union-attr]
        ended(outside, box)
        receipt = run(ready)
    assert receipt.observed.box.waited is None
    assert of_boxes_in_advance(own.home).state == "ok"


@pytest.mark.parametrize(("clock", "seconds"), [("time", -1e8), ("time", 1e8), ("monotonic", 1e5)])
def test_a_clock_that_jumps_while_a_box_waits_keeps_no_cell_from_running(
    clock: str, seconds: float, ready: Session, own: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when this computer was suspended, or its time was set."""
    real = getattr(time, clock)
    monkeypatch.setattr(time, clock, lambda: real() + seconds)
    receipt = run(ready)
    if clock == "time":  # by which nothing is measured
        assert receipt.observed.box.waited is not None
        assert receipt.observed.box.waited.seconds < WAIT
    waited(ready)
    assert run(ready).observed.box.waited is not None
    assert of_boxes_in_advance(own.home).state == "ok"


def test_a_witness_container_sees_a_box_that_waits_twice_also_where_it_was_ended_in_between(
    own: Installation, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBOX_WITNESS", "container")
    monkeypatch.setenv("PYBOX_POOL", "1")
    with Session(Journal(own.home), in_advance=True) as session:
        for again in (False, True):
            session.expect("stdlib")
            waited(session)
            if again:
                (witness,) = outside.boxes(installation=own.id, role="witness")
                outside.api.kill(witness)
            receipt = run(session)
            assert receipt.observed.box.waited is not None
            assert receipt.observed.seal.kernel.source == "witness container"
    assert of_boxes_in_advance(own.home).state == "ok"


def test_a_box_that_has_ended_is_noticed_and_replaced_while_nobody_asks(
    ready: Session, own: Installation, outside: Outside
) -> None:
    (box,) = own.boxes()
    ended(outside, box)
    until(lambda: ready.waiting() == 1 and own.boxes() not in ([], [box]))
    assert run(ready).observed.box.waited is not None


# How many, and which


@pytest.fixture
def other_image(engine: DockerEngine, box_image: RecordedImage, outside: Outside) -> Iterator[RecordedImage]:
    """The same programs in an image with another id."""
    reference = f"pybox-test-other:{time.monotonic_ns()}"
    text = f"FROM {box_image.id}\nLABEL pybox.test={reference}\n"
    for _ in outside.api.build(fileobj=io.BytesIO(text.encode()), tag=reference, rm=True):
        pass
    yield box_image.model_copy(update={"id": engine.image(reference).id, "reference": reference})
    engine.remove_image(reference)


def test_boxes_of_an_image_that_was_replaced_are_not_used(
    other_image: RecordedImage, ready: Session, own: Installation, outside: Outside
) -> None:
    before = own.boxes()
    ImageStore(own.home).record(other_image)
    receipt = run(ready)
    assert receipt.run.image is not None
    assert receipt.run.image.id == other_image.id
    assert receipt.observed.box.waited is None
    until(lambda: not set(before) & set(own.boxes()))
    waited(ready)
    assert [outside.api.inspect_container(box)["Image"] for box in own.boxes()] == [other_image.id]


def test_an_image_is_removed_although_boxes_of_it_wait_and_the_next_cell_says_that_it_is_not_there(
    other_image: RecordedImage, ready: Session, own: Installation, engine: DockerEngine, outside: Outside
) -> None:
    store = ImageStore(own.home)
    store.record(other_image)
    run(ready)
    waited(ready)
    remove_image(engine, store, other_image, print)
    assert own.boxes() == []
    assert outside.api.images(filters={"label": f"pybox.test={other_image.reference}"}) == []
    receipt = ready.run("print(1)").receipt
    assert receipt.problem is not None
    assert receipt.problem.code == "setup"


def test_cells_with_files_get_boxes_of_their_own_whose_working_folder_has_more_room(
    ready: Session, own: Installation
) -> None:
    """Its size is fixed as a box is made, and checked: that of a box which waits for a cell without files is smaller,
    so the first cell with files waits for one that is made."""
    (plain,) = own.boxes()
    file = InputFile("notes.txt", b"some")
    now = run(ready, "print(open('notes.txt').read())", inputs=[file])
    assert now.observed.box.waited is None
    waited(ready, 2)
    assert plain in own.boxes()
    then = run(ready, "open('new.txt', 'w')", output=True)
    assert then.observed.box.waited is not None
    for receipt in (now, then):
        assert receipt.asked.policy.work_bytes == STDLIB.file_work_bytes > STDLIB.work_bytes
        assert receipt.observed.seal.before_start
    waited(ready, 2)
    receipt = run(ready)
    assert receipt.observed.box.id == plain
    assert receipt.asked.policy.work_bytes == STDLIB.work_bytes


def test_there_are_more_when_cells_come_one_after_another_fewer_when_none_come_and_at_last_none(
    ready: Session, own: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "TICK_SECONDS", 0.05)
    for _ in range(3):
        run(ready)
    waited(ready, 3)
    assert len(own.boxes()) <= pool.MOST_OF_A_KIND
    monkeypatch.setattr(pool, "FEWER_SECONDS", 0.001)
    run(ready)
    until(lambda: ready.waiting() == 1 == len(own.boxes()))
    monkeypatch.setattr(pool, "NONE_SECONDS", 0.0)
    until(lambda: ready.waiting() == 0 and own.boxes() == [])
    monkeypatch.undo()
    assert run(ready).observed.box.waited is None
    waited(ready)


def test_a_box_that_has_waited_for_long_is_replaced(
    ready: Session, own: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    (box,) = own.boxes()
    monkeypatch.setattr(pool, "OLDEST_SECONDS", 0.2)
    until(lambda: box not in own.boxes())
    monkeypatch.undo()
    waited(ready)


@pytest.mark.parametrize(("boxes", "mib"), [("1", "512"), ("16", "20")])
def test_the_bounds_are_those_of_all_sessions_together(
    boxes: str, mib: str, own: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBOX_POOL", boxes)
    monkeypatch.setenv("PYBOX_POOL_MB", mib)
    monkeypatch.setattr(pool, "TICK_SECONDS", 0.05)
    with Session(Journal(own.home), in_advance=True) as first:
        run(first)
        waited(first)
        with Session(Journal(own.home), in_advance=True) as second:
            assert run(second).observed.box.waited is None
            time.sleep(0.3)
            assert (first.waiting(), second.waiting()) == (1, 0)
            first.close()
            waited(second)
            assert run(second).observed.box.waited is not None


def test_none_are_made_where_the_user_wants_none(own: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBOX_POOL", "0")
    with Session(Journal(own.home), in_advance=True) as session:
        assert run(session).observed.box.waited is None
        time.sleep(0.3)
        assert (session.waiting(), own.boxes()) == (0, [])
    assert not (own.home / "waiting").exists()


def test_a_cell_that_is_stopped_while_its_box_is_made_does_not_start(own: Installation) -> None:
    with Session(Journal(own.home), in_advance=True) as session:
        session.expect("stdlib")
        until(lambda: own.boxes() != [])
        stop = Stop()
        stop.set()
        receipt = session.run("print(1)", stop=stop).receipt
        assert receipt.observed.end.how == "not_started"
        assert receipt.problem is not None
        assert receipt.problem.code == "stopped"
        waited(session)


# The end


def test_the_boxes_of_a_session_that_is_killed_end_at_once(own: Installation, outside: Outside) -> None:
    owner = own.python(OWNER)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "waiting\n"
    boxes = own.boxes()
    assert len(boxes) == 2
    owner.send_signal(signal.SIGKILL)
    for box in boxes:
        outside.wait_gone(box, 3.0)
    found = own.cleanup()
    assert len(found["already_gone"]) == 2
    assert found["unconfirmed"] == []
    assert own.sessions() == []


FORKED = """
if (child := os.fork()) == 0:
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
"""


def test_the_boxes_of_a_session_that_is_killed_end_although_a_process_that_it_forked_lives_on(
    own: Installation, outside: Outside
) -> None:
    owner = own.python(OWNER.replace('print("waiting", flush=True)', FORKED))
    assert owner.stdout is not None
    child = int(owner.stdout.readline())
    try:
        boxes = own.boxes()
        assert len(boxes) == 2
        owner.send_signal(signal.SIGKILL)
        for box in boxes:
            outside.wait_gone(box, 3.0)
        assert Places(own.home, Bounds(9, 99)).held() == Bounds(0, 0)
        assert len(own.cleanup()["already_gone"]) == 2
        assert own.sessions() == []
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_session_that_ends_leaves_none(own: Installation, outside: Outside) -> None:
    with Session(Journal(own.home), in_advance=True) as session:
        run(session)
        run(session)
        waited(session, 2)
        boxes = own.boxes()
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert own.boxes() == []
    assert [outside.cgroups(box) for box in boxes] == [[], []]
    assert own.sessions() == []


def test_a_box_ends_by_itself_if_no_program_comes(
    own: Installation, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where its owner is halted, or its engine was killed."""
    monkeypatch.setattr(seal, "WAITING_SECONDS", 2.5)
    with Session(Journal(own.home), in_advance=True) as session:
        monkeypatch.setattr(pool, "TICK_SECONDS", 1000.0)
        session.expect("stdlib")
        waited(session)
        (box,) = own.boxes()
        outside.wait_gone(box, 10.0)
        monkeypatch.undo()
        assert run(session).observed.box.waited is None


# Many at once


def test_who_comes_second_waits_is_told_so_and_has_all_of_its_own_time(
    own: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBOX_AT_ONCE", "1")
    told: list[int] = []
    with (
        Session(Journal(own.home), in_advance=True) as first,
        Session(Journal(own.home), in_advance=True) as second,
        ThreadPoolExecutor(1) as other,
    ):
        long = other.submit(first.run, "import time; time.sleep(1.5); print(1)")
        until(lambda: second._boxes.turns.all_taken())
        result = second.run("import time; time.sleep(0.9); print(2)", deadline_seconds=1.5, queued=told.append)
        assert long.done() or long.result(1).receipt.ok
        assert result.stdout == "2\n"
        assert told == [1, 0]


def test_who_is_stopped_while_it_waits_does_not_run(own: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBOX_AT_ONCE", "1")
    stop = Stop()
    with (
        Session(Journal(own.home), in_advance=True) as first,
        Session(Journal(own.home), in_advance=True) as second,
        ThreadPoolExecutor(1) as other,
    ):
        long = other.submit(first.run, "import time; time.sleep(1.5); print(1)")
        until(lambda: second._boxes.turns.all_taken())
        receipt = second.run("print(2)", stop=stop, queued=lambda _: stop.set()).receipt
        assert receipt.observed.end.how == "not_started"
        assert receipt.problem is not None
        assert receipt.problem.code == "stopped"
        assert receipt.observed.box.id is None
        assert long.result(20).receipt.ok


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_thirty_sessions_at_once_all_get_their_turn_and_leave_nothing(own: Installation) -> None:
    """As of a class that runs its notebooks at the same time."""
    everyone, cells = 30, 3
    waits: list[float] = []

    def work(number: int) -> list[Receipt]:
        with Session(Journal(own.home), in_advance=True) as session:
            receipts = []
            for cell in range(cells):
                asked = time.monotonic()
                receipts.append(session.run(f"print({number}, {cell})", deadline_seconds=20).receipt)
                waits.append(time.monotonic() - asked)
            return receipts

    with ThreadPoolExecutor(everyone) as threads:
        found = [receipt for receipts in threads.map(work, range(everyone)) for receipt in receipts]
    assert [receipt.problem for receipt in found if not receipt.ok] == []
    assert len({receipt.observed.box.id for receipt in found}) == everyone * cells
    assert all(receipt.observed.box.removed for receipt in found)
    # Served in order, nobody waits for much longer than it takes to serve everyone once.
    assert max(waits) < 4 * sum(sorted(waits)[len(waits) // 4 : -len(waits) // 4]) / (len(waits) // 2)
    assert own.boxes() == []
    assert own.sessions() == []
