"""The journal: what survives a killed process, who may claim it, and what no damaged file can do."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pybox_kernel.boxes import journal as module
from pybox_kernel.boxes.journal import (
    DeadSession,
    Entry,
    Journal,
    dead_sessions,
    home_folder,
    home_path,
    installation_id,
    is_token,
    left_entries,
    new_token,
)
from pybox_kernel.doctor import of_folder
from pybox_kernel.errors import SetupError


def entry_of(journal: Journal, **changes: object) -> Entry:
    run = new_token()
    known = {
        "run": run,
        "name": f"pybox-{run}",
        "engine": "unix:///run/engine.sock",
        "labels": {"org.pybox.run": run, "org.pybox.session": journal.session},
        "container_id": None,
        "written_at": time.time(),
    }
    return Entry.model_validate({**known, **changes})


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


def the_dead_session(home: Path) -> DeadSession:
    (found,) = dead_sessions(home)
    return found


# Where it is


def test_the_folder_is_pybox_home_or_stands_in_the_users_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYBOX_HOME", str(tmp_path / "named"))
    assert home_path() == tmp_path / "named"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYBOX_HOME", "named")  # a socket in it is told by its path to others, who are elsewhere
    assert home_path() == tmp_path / "named"
    monkeypatch.setenv("PYBOX_HOME", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert home_path() == tmp_path / "data" / "pybox-kernel"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_path() == tmp_path / ".local" / "share" / "pybox-kernel"


def test_it_is_made_for_this_user_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYBOX_HOME", str(tmp_path / "new"))
    assert stat.S_IMODE(home_folder().stat().st_mode) == 0o700
    journal = Journal(home_folder())
    assert stat.S_IMODE(journal.folder.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(journal.folder.stat().st_mode) == 0o700
    journal.close()


def test_a_place_that_cannot_be_used_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PYBOX_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(SetupError, match=r"cannot keep its records in .*/file/home: Not a directory") as caught:
        home_folder()
    assert "PYBOX_HOME" in caught.value.advice
    (tmp_path / "sessions").write_text("in the way")
    with pytest.raises(SetupError, match="cannot keep its records"):
        Journal(tmp_path)


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_folder_that_others_can_change_is_not_used(
    mode: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("PYBOX_HOME", str(home))
    home_folder().chmod(mode)
    with pytest.raises(SetupError, match="others may change") as caught:
        home_folder()
    assert f"chmod go-w {home}" in caught.value.advice
    [finding] = of_folder(home)
    assert (finding.state, finding.advice) == ("wrong", caught.value.advice)
    home.chmod(0o755)
    assert home_folder() == home
    monkeypatch.setenv("PYBOX_HOME", str(tmp_path / "link"))
    (tmp_path / "link").symlink_to(home)
    assert home_folder() == tmp_path / "link", "a link of one's own to a folder of one's own"
    [finding] = of_folder(tmp_path / "link")
    assert finding.state == "ok"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("PYBOX_HOME", str(home))
    os.chown(home_folder(), 65534, 65534)
    with pytest.raises(SetupError, match="belongs to another user"):
        home_folder()


def test_a_disk_without_room_is_said_before_anything_is_made(journal: Journal) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(SetupError, match="cannot keep its records"):
            journal.write(entry_of(journal))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert journal.entries() == []
    journal.close()
    assert not journal.folder.exists(), "the draft that was begun goes with it"


# Ids


def test_a_token_is_32_small_hexadecimal_digits() -> None:
    assert is_token(new_token())
    assert new_token() != new_token()
    for other in ("", "0" * 31, "0" * 33, "A" * 32, "g" * 32, "../" + "0" * 29, "٣" * 32):
        assert not is_token(other)


def test_processes_that_start_at_once_agree_on_the_installation(tmp_path: Path) -> None:
    program = "import sys, pathlib; from pybox_kernel.boxes.journal import installation_id; sys.stdin.read()\n"
    program += "print(installation_id(pathlib.Path(sys.argv[1])))"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    ids = {process.communicate()[0] for process in started}  # each waits until its stdin is closed
    assert ids == {installation_id(tmp_path) + "\n"}
    assert [path.name for path in tmp_path.iterdir()] == ["installation"]


@pytest.mark.parametrize("damage", [b"", b"short\n", b"\xff" * 32, b"G" * 32])
def test_a_damaged_installation_id_is_replaced_and_stays(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "installation").write_bytes(damage)
    found = installation_id(tmp_path)
    assert is_token(found)
    assert installation_id(tmp_path) == found


# One session


def test_an_entry_is_there_as_written_until_it_is_struck(journal: Journal) -> None:
    entry = entry_of(journal)
    journal.write(entry)
    known = entry.model_copy(update={"container_id": "f" * 64})
    journal.write(known)
    assert journal.entries() == [known]
    journal.strike(entry.run)
    assert journal.entries() == []
    journal.strike(entry.run)
    journal.close()


def test_a_closed_session_leaves_no_folder(journal: Journal) -> None:
    journal.close()
    assert not journal.folder.exists()
    journal.close()


def test_a_session_that_closes_with_an_entry_left_is_found_dead(journal: Journal) -> None:
    entry = entry_of(journal)
    journal.write(entry)
    journal.close()
    dead = the_dead_session(journal.home)
    assert dead.entries() == [entry]
    dead.strike(entry.run)
    dead.close()
    assert list((journal.home / "sessions").iterdir()) == []


def test_a_live_session_cannot_be_claimed_by_anyone(journal: Journal) -> None:
    journal.write(entry_of(journal))
    assert list(dead_sessions(journal.home)) == []
    assert left_entries(journal.home) == 0
    program = "import sys, pathlib; from pybox_kernel.boxes.journal import dead_sessions\n"
    program += "print(len(list(dead_sessions(pathlib.Path(sys.argv[1])))))"
    command = [sys.executable, "-c", program, str(journal.home)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "0\n"
    journal.release()
    assert left_entries(journal.home) == 1
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "1\n"


def test_a_killed_process_is_found_dead_with_its_entries(tmp_path: Path) -> None:
    program = """
import sys, pathlib, time
from pybox_kernel.boxes.journal import Entry, Journal, new_token
journal, run = Journal(pathlib.Path(sys.argv[1])), new_token()
labels = {"org.pybox.run": run, "org.pybox.session": journal.session}
journal.write(Entry(run=run, name="pybox-" + run, engine="e", labels=labels, container_id=None, written_at=1.0))
print(run, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        run = process.stdout.readline().strip()
        assert list(dead_sessions(tmp_path)) == []
        process.kill()
        process.wait()
        dead = the_dead_session(tmp_path)
        assert [entry.run for entry in dead.entries()] == [run]
        dead.close()


def test_one_claim_at_a_time(journal: Journal) -> None:
    journal.write(entry_of(journal))
    journal.release()
    dead = the_dead_session(journal.home)
    assert list(dead_sessions(journal.home)) == []
    dead.release()
    the_dead_session(journal.home).release()


def test_threads_that_write_at_once_lose_nothing(journal: Journal) -> None:
    entries = [entry_of(journal) for _ in range(40)]
    threads = [threading.Thread(target=lambda e=entry: [journal.write(e) for _ in range(5)]) for entry in entries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {entry.run for entry in journal.entries()} == {entry.run for entry in entries}
    journal.release()


# Damage

ELSEWHERE = "0123456789abcdef" * 2
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": lambda text: text[:40],
    "garbage": lambda _: bytes(range(256)),
    "no object": lambda _: b"[1, 2]",
    "deep": lambda _: b"[" * 100_000,
    "huge": lambda text: text[:-1] + b" " * 20_000_000 + b"}",
    "more fields": lambda text: text[:-1] + b', "more": 1}',
    "a field missing": lambda text: text.replace(b'"engine"', b'"motor"'),
    "a number that is none": lambda text: text.replace(b'"written_at":', b'"written_at":"soon","x":'),
    "no labels": lambda text: text.replace(b"org.pybox.", b"com.other."),
    "another session": lambda text: text.replace(b'session":"', b'session":"0'),
    "another run": lambda text: text.replace(b'"run":"', b'"run":"..'),
    "another name": lambda text: text.replace(b'"pybox-', b'"postgres-'),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_an_entry_that_is_not_as_written_is_damaged_and_names_nothing(
    damage: Callable[[bytes], bytes], journal: Journal
) -> None:
    entry = entry_of(journal)
    journal.write(entry)
    path = journal.folder / f"{entry.run}.json"
    text = path.read_bytes()
    assert damage(text) != text
    path.write_bytes(damage(text))
    began = time.monotonic()
    assert journal.entries() == []
    assert journal.damaged() == [entry.run]
    assert time.monotonic() - began < 5
    journal.close()
    assert left_entries(journal.home) == 1, "it is kept, and counted"


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "of another run"])
def test_an_entry_that_is_no_file_of_its_run_is_damaged_and_holds_nobody_up(kind: str, journal: Journal) -> None:
    sound = entry_of(journal)
    journal.write(sound)
    path = journal.folder / f"{ELSEWHERE}.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(journal.folder / f"{sound.run}.json")
    else:
        path.write_bytes((journal.folder / f"{sound.run}.json").read_bytes())
    assert journal.entries() == [sound]
    assert journal.damaged() == [ELSEWHERE]
    journal.close()


def test_what_is_no_entry_by_its_name_is_left_alone(journal: Journal) -> None:
    names = ("notes.json", "README", f"{ELSEWHERE}", f"{ELSEWHERE}.json.bak", ".hidden", f"{ELSEWHERE}x.json")
    for name in names:
        (journal.folder / name).write_text("{}")
    assert journal.entries() == []
    assert journal.damaged() == []
    journal.close()
    assert {path.name for path in journal.folder.iterdir()} == {*names, "lock"}
    the_dead_session(journal.home).close()
    assert {path.name for path in journal.folder.iterdir()} == {*names, "lock"}


def test_a_draft_of_a_killed_process_goes_with_its_session(journal: Journal) -> None:
    (journal.folder / f".{ELSEWHERE}").write_text('{"run": ')
    journal.release()
    the_dead_session(journal.home).close()
    assert not journal.folder.exists()


def test_what_is_no_session_is_never_claimed(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    for name in ("notes", f".{ELSEWHERE}", ELSEWHERE.upper()):
        (sessions / name).mkdir(parents=True)
        (sessions / name / "lock").touch()
    (sessions / ELSEWHERE).write_text("a file")
    (sessions / new_token()).mkdir()
    assert list(dead_sessions(tmp_path)) == []
    assert len(list(sessions.iterdir())) == 5


def test_a_folder_that_is_gone_meanwhile_is_no_trouble(journal: Journal) -> None:
    entry = entry_of(journal)
    module.remove_folder(journal.folder)
    with pytest.raises(SetupError, match="cannot keep its records"):
        journal.write(entry)
    journal.strike(entry.run)
    assert journal.entries() == []
    journal.close()


def test_an_entry_for_anything_but_its_own_run_cannot_be_made(journal: Journal) -> None:
    run = new_token()
    for changes in (
        {"name": "postgres"},
        {"name": f"pybox-{run}"},
        {"labels": {}},
        {"labels": {"org.pybox.run": run}},
        {"run": "../../else"},
    ):
        with pytest.raises(ValueError, match="do not belong together"):
            entry_of(journal, **changes)
    journal.close()
