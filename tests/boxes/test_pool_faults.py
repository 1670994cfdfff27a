"""What goes wrong where boxes are made in advance keeps no later cell from its box, and nobody else from theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybox_kernel.boxes import pool
from pybox_kernel.boxes.journal import Journal
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.sessions.session import Session
from tests.boxes.conftest import Installation
from tests.boxes.engine_between import EngineBetween, Fault
from tests.boxes.in_advance import run, waited

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user has them who sets nothing; what failed is tried again soon."""
    monkeypatch.delenv("PYBOX_POOL")
    monkeypatch.setattr(pool, "FAILED_SECONDS", 0.3)
    monkeypatch.setattr(pool, "TICK_SECONDS", 0.05)


@pytest.mark.parametrize("in_advance", [True, False], ids=["in advance", "when it is asked for"])
def test_an_answer_that_no_engine_gives_is_no_box_and_the_next_one_is_made_all_the_same(
    own: Installation, tmp_path: Path, in_advance: bool
) -> None:
    """The state of a box, as a list."""
    fault = Fault("GET /containers/[0-9a-f]{64}/json", "answer", skip=1, body={"State": [1]})
    with (
        EngineBetween(tmp_path / "engine.sock", fault) as between,
        Session(Journal(own.home), DockerEngine(between.address), in_advance=in_advance) as session,
    ):
        if in_advance:
            session.expect("stdlib")
            waited(session)
        else:
            assert session.run("print(1)").receipt.observed.end.how == "not_started"
        assert (run(session).observed.box.waited is not None) is in_advance


NO_MORE_FILES = """
import resource, time
from pybox_kernel.boxes import pool
from pybox_kernel.boxes.journal import Journal, home_folder
from pybox_kernel.sessions.session import Session
pool.FAILED_SECONDS, pool.TICK_SECONDS = 0.3, 0.05
with Session(Journal(home_folder()), in_advance=True) as session:
    session.expect("stdlib")
    while not session.waiting():
        time.sleep(0.01)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    receipt = session.run("print(1)").receipt
    time.sleep(0.5)
    print(receipt.observed.end.how, "Too many open files" in receipt.problem.message, session.waiting())
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    while not session.waiting():
        time.sleep(0.01)
    print(session.run("print(1)").receipt.observed.box.waited is not None)
"""


def test_boxes_are_made_again_once_their_process_may_open_files_again(own: Installation) -> None:
    said, complaint = own.python(NO_MORE_FILES).communicate(timeout=30)
    assert said == "not_started True 0\nTrue\n", complaint
    assert own.boxes() == []
    assert own.cleanup()["unconfirmed"] == [], "what it could not look at is settled by the next"
    assert own.sessions() == []


CHILD = """
import os, time
from pybox_kernel.boxes.journal import Journal, home_folder
from pybox_kernel.errors import InputError
from pybox_kernel.sessions.session import Session
with Session(Journal(home_folder()), in_advance=True) as session:
    session.expect("stdlib")
    while not session.waiting():
        time.sleep(0.01)
    if os.fork() == 0:
        for use in (lambda: session.run("print(2)"), lambda: session.expect("stdlib"), session.sweep):
            try:
                use()
            except InputError as error:
                print(error, flush=True)
        session.close()
        os._exit(0)
    assert os.wait()[1] == 0
    result = session.run("print(3)")
    print(result.stdout, result.receipt.observed.box.waited is not None, result.receipt.observed.box.removed)
"""


def test_a_session_is_of_no_use_in_a_process_that_was_forked_and_harmed_by_none(own: Installation) -> None:
    said, complaint = own.python(CHILD).communicate(timeout=30)
    refused = (
        "This session belongs to another process, from which this one was forked. "
        "Open a session in each process that runs programs.\n"
    )
    assert said == 3 * refused + "3\n True True\n", complaint
    assert own.sessions() == []
    assert own.boxes() == []
