"""Files into boxes and out of them, on the real engine: what programs do with them, and what they cannot."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pybox_kernel.boxes.journal import installation_id
from pybox_kernel.errors import OptionError
from pybox_kernel.files.box_files import InputFile
from pybox_kernel.policy import MIB, STDLIB
from pybox_kernel.receipt.model import Receipt, Said
from pybox_kernel.render.text import render_full, render_short
from pybox_kernel.sessions import session as sessions
from pybox_kernel.sessions.session import RunResult, Session
from tests.boxes.conftest import Installation
from tests.cases import case, snippet
from tests.conftest import Outside

pytestmark = pytest.mark.engine


class Ran:
    """A run with files, and what holds of every such run."""

    def __init__(self, result: RunResult) -> None:
        self.result = result
        self.receipt = result.receipt
        assert self.receipt.observed.box.removed is True
        assert {file.name: file.sha256 for file in self.said.files} == {
            file.name: hashlib.sha256(file.data).hexdigest() for file in result.files
        }
        assert [file.bytes for file in self.said.files] == [len(file.data) for file in result.files]

    @property
    def said(self) -> Said:
        return self.receipt.said

    @property
    def files(self) -> dict[str, bytes]:
        return dict(self.result.files)

    @property
    def why(self) -> dict[str, str]:
        return {item.name: item.why for item in self.said.not_brought}

    @property
    def out(self) -> str:
        return self.result.stdout


def run(
    session: Session,
    source: str,
    *inputs: tuple[str, bytes],
    output: bool = True,
    deadline: float = 2.0,
    **options: Any,
) -> Ran:
    files = [InputFile(*file) for file in inputs]
    ran = Ran(session.run(source, deadline_seconds=deadline, inputs=files, output=output, **options))
    assert ran.receipt.problem is None, ran.receipt.problem
    return ran


# In


def test_a_program_finds_its_files_where_they_are_here(session: Session) -> None:
    large = os.urandom(3 * MIB + 7)
    ran = run(
        session,
        "import csv, hashlib, os\n"
        "print(list(csv.reader(open('data/x.csv'))), os.path.getsize('empty'), oct(os.stat('data/x.csv').st_mode))\n"
        "print(hashlib.sha256(open('/box/data/deep/large', 'rb').read()).hexdigest())",
        ("data/x.csv", b"1,2\n"),
        ("data/deep/large", large),
        ("empty", b""),
        ("Übung 日本.txt", b"x"),
    )
    assert ran.receipt.ok
    assert ran.out == f"[['1', '2']] 0 0o100644\n{hashlib.sha256(large).hexdigest()}\n"
    assert ran.files == {}
    assert ran.why == {}
    assert [(file.name, file.bytes) for file in ran.receipt.asked.options.inputs] == [
        ("data/x.csv", 4),
        ("data/deep/large", len(large)),
        ("empty", 0),
        ("Übung 日本.txt", 1),
    ]
    assert ran.receipt.asked.options.inputs[1].sha256 == hashlib.sha256(large).hexdigest()
    steps = [step.name for step in ran.receipt.observed.steps]
    assert steps.index("files put in") < steps.index("program ran") < steps.index("files taken out")


def test_as_many_and_as_large_as_they_may_be_go_in_and_come_out(session: Session) -> None:
    size = 8 * MIB // 64
    inputs = [(f"{number}", bytes([number]) * size) for number in range(64)]
    source = "import os\nfor name in os.listdir(): open(name, 'r+b').write(b'changed')\nprint(len(os.listdir()))"
    ran = run(session, source, *inputs, deadline=10)
    assert ran.out == "64\n"
    assert ran.files == {name: b"changed" + data[7:] for name, data in inputs}
    assert ran.why == {}


def test_the_clock_starts_when_the_files_are_in(session: Session) -> None:
    ran = run(session, "pass", ("large", bytes(8 * MIB)), output=False)
    assert ran.receipt.observed.meters.ran_seconds is not None
    assert ran.receipt.observed.meters.ran_seconds < 0.5


def test_what_a_program_does_to_its_copies_changes_nothing_here(session: Session, tmp_path: Path) -> None:
    ran = run(session, "open('a', 'w').write('changed'); import os; os.unlink('b')", ("a", b"1"), ("b", b"2"))
    assert ran.files == {"a": b"changed"}
    ran = run(session, "open('a', 'w').write('changed')", ("a", b"1"), output=False)
    assert (ran.files, ran.said.files_left) == ({}, 1)
    again = run(session, "print(open('a').read(), open('b').read())", ("a", b"1"), ("b", b"2"))
    assert again.out == "1 2\n"


def test_a_change_that_its_times_hide_is_a_change(session: Session) -> None:
    source = (
        "import mmap, os\nbefore = os.stat('a')\n"
        "with open('a', 'r+b') as file, mmap.mmap(file.fileno(), 0) as view: view[0:1] = b'X'\n"
        "os.utime('a', ns=(before.st_atime_ns, before.st_mtime_ns))"
    )
    assert run(session, source, ("a", b"abc")).files == {"a": b"Xbc"}


def test_where_files_move_the_working_folder_has_more_room(session: Session) -> None:
    source = "import os\nfor n in range(50): open(f'.{n}', 'wb').write(bytes(1 << 20))\nprint('done')"
    ran = run(session, source, deadline=10)
    assert ran.out == "done\n"
    assert ran.receipt.asked.policy.work_bytes == STDLIB.file_work_bytes
    assert run(session, source, output=False, deadline=10).said.wall is not None


@case("fs-in-names")
@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([("../x", b"")], "The file ../x cannot be put into a box"),
        ([(str(number), b"") for number in range(65)], "more than 64 files"),
        ([("a", bytes(8 * MIB)), ("b.csv", b"x")], "With b.csv the files have 8,388,609 bytes"),
    ],
    ids=["a name that leads elsewhere", "65 files", "one byte too many"],
)
def test_files_out_of_bounds_are_refused_before_there_is_a_box(
    session: Session, outside: Outside, files: Sequence[tuple[str, bytes]], message: str
) -> None:
    before = outside.boxes()
    with pytest.raises(OptionError, match=message):
        run(session, "pass", *files)
    assert set(outside.boxes()) <= set(before)


def test_a_box_that_takes_no_files_gives_none(session: Session) -> None:
    with pytest.raises(OptionError, match="takes no files"):
        session.run("pass", output=True, policy=STDLIB.model_copy(update={"files": 0}))


def test_a_file_that_was_not_put_in_is_told_of(session: Session) -> None:
    ran = run(session, "open('data/y.csv')", ("data/x.csv", b"1"), output=False)
    told = " ".join(render_short(ran.receipt).split())
    assert "There is no ‘data/y.csv’ in this box: of your files it has those that its receipt lists." in told
    assert "Name it too, after --input." in told


# Out


def test_what_a_program_makes_comes_out_and_is_on_the_receipt(session: Session) -> None:
    ran = run(
        session,
        "import os, subprocess, sys\nos.makedirs('plots/deep')\nopen('plots/deep/a.png', 'wb').write(b'\\x89PNG')\n"
        "subprocess.run([sys.executable, '-c', 'open(\"b.txt\", \"w\").write(\"b\")'])\nopen('/tmp/c', 'w').write('c')",
    )
    assert ran.files == {"b.txt": b"b", "plots/deep/a.png": b"\x89PNG"}
    assert "2 files saved" in render_short(ran.receipt)
    assert "A file: ‘plots/deep/a.png’, 4 bytes." in render_full(ran.receipt)
    assert Receipt.from_json(ran.receipt.to_json()) == ran.receipt


def test_a_file_that_is_not_closed_holds_what_was_written(session: Session) -> None:
    source = (
        "import csv\na = open('a', 'w'); a.write('text')\nb = open('b', 'wb'); b.write(b'bytes')\n"
        "c = csv.writer(open('c', 'w')); c.writerow([1, 2])\nd = open('d', 'w+b'); d.write(b'both')\n"
        "e = [open('e', 'w')]; e.append(e); e[0].write('in a circle')\n"
    )
    files = {"a": b"text", "b": b"bytes", "c": b"1,2\r\n", "d": b"both", "e": b"in a circle"}
    assert run(session, source).files == files
    for end in ("1 / 0", "import sys; sys.exit(3)"):
        assert run(session, source + end).files == files


def test_a_file_that_could_not_be_written_out_at_the_end_is_an_error(session: Session) -> None:
    source = (
        "import os, subprocess, sys\nend = subprocess.Popen(['/bin/true'], stdin=subprocess.PIPE); end.wait()\n"
        "end.stdin.raw.write(b'')\nend.stdin.write(b'nobody reads this')\n"
        "good = open('good', 'w'); good.write('x')\n"
        "b = open('/tmp/full', 'wb', buffering=1 << 16); b.write(bytes(1000))\n"
    )
    fill = "try:\n  with open('/tmp/fill', 'wb', 0) as f:\n    while f.write(bytes(4096)): pass\nexcept OSError: pass\n"
    ran = run(session, source)
    assert ran.receipt.ok
    ran = run(session, source + fill)
    assert not ran.receipt.ok
    assert (ran.said.error, ran.said.wall is not None and ran.said.wall.kind) == ("OSError", "full")
    assert ran.files == {"good": b"x"}


def test_a_cell_that_writes_files_is_told_how_to_get_them(session: Session) -> None:
    ran = run(session, "for n in range(2): open(f'{n}.txt', 'w').close()\nopen('.hidden', 'w').close()", output=False)
    assert ran.files == {}
    assert ran.said.files_left == 2
    assert "wrote 2 files in its box; to get them: --output DIR" in render_short(ran.receipt).replace("\n ", "")
    quiet = run(session, "print(1)", output=False)
    assert quiet.said.files_left == 0
    assert "--output" not in render_full(quiet.receipt)


@case("fs-out-symlink")
def test_a_link_is_listed_and_not_followed(session: Session) -> None:
    ran = run(session, snippet("fs-out-symlink") + "\nos.symlink('/etc', 'etc')\nos.symlink('.', 'loop')")
    assert ran.files == {}
    assert ran.why == dict.fromkeys(("etc", "loop", "notes.txt"), "it is a link, and links are not followed")
    assert "3 files not brought back" in render_short(ran.receipt)
    assert "Not brought back: ‘notes.txt’: it is a link, and links are not followed." in render_full(ran.receipt)


@case("fs-out-fifo")
def test_a_pipe_is_not_opened(session: Session) -> None:
    source = snippet("fs-out-fifo") + "\nimport socket; s = socket.socket(socket.AF_UNIX); s.bind('/box/s')"
    began = time.monotonic()
    ran = run(session, source)
    assert time.monotonic() - began < 5
    assert ran.out == "made\n"
    assert ran.why == {"p": "it is a pipe, and no file", "s": "it is a socket, and no file"}


@case("fs-out-sparse")
def test_a_sparse_file_is_refused_by_its_size(session: Session) -> None:
    ran = run(session, snippet("fs-out-sparse") + "\nopen('small', 'w').write('x')")
    assert ran.files == {"small": b"x"}
    (left,) = ran.said.not_brought
    assert (left.name, left.bytes) == ("big", 1 << 40)
    taken = next(step for step in ran.receipt.observed.steps if step.name == "files taken out")
    assert taken.duration_ms < 1000


@case("fs-out-many")
def test_of_many_files_the_first_come_out_and_the_rest_is_counted(session: Session) -> None:
    ran = run(session, snippet("fs-out-many"), deadline=5)
    assert ran.said.wall is not None, "the file system takes no more"
    made = sorted(f"{number}.txt" for number in range(STDLIB.inodes - 1))
    assert list(ran.files) == made[:64]
    assert [item.name for item in ran.said.not_brought] == made[64 : 64 + len(ran.said.not_brought)]
    assert 64 + len(ran.said.not_brought) + ran.said.not_brought_unlisted == len(made)
    taken = next(step for step in ran.receipt.observed.steps if step.name == "files taken out")
    assert taken.duration_ms < 2500


@case("fs-out-odd-bytes")
def test_a_name_that_is_no_text_is_shown_escaped(session: Session) -> None:
    source = snippet("fs-out-odd-bytes") + "\nopen('new\\nline', 'w').close(); open('bidi\\u202e', 'w').close()"
    ran = run(session, source)
    assert ran.files == {}
    assert ran.why == {
        "\\xc3(.txt": "its name is not UTF-8",
        "new\\nline": "its name has a character that cannot be shown",
        "bidi\\u202e": "its name has a character that cannot be shown",
    }


@case("fs-out-nfc-nfd")
def test_of_names_that_are_equal_once_normalised_one_comes_out(session: Session) -> None:
    ran = run(session, snippet("fs-out-nfc-nfd"))
    nfc, nfd = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
    assert ran.files == {nfd: b"NFD"}
    assert ran.why == {nfc: "some computers take its name for that of another file"}


@case("fs-out-case")
def test_of_names_that_differ_in_case_one_comes_out(session: Session) -> None:
    ran = run(session, snippet("fs-out-case"))
    assert list(ran.files) == ["Plot.png", "STRASSE"]
    assert ran.why == {
        "plot.PNG": "some computers take its name for that of another file",
        "straße": "some computers take its name for that of another file",
    }


@case("fs-out-reserved")
def test_names_that_windows_reserves_stay_in_the_box(session: Session) -> None:
    ran = run(session, snippet("fs-out-reserved"))
    assert ran.files == {}
    assert set(ran.why) == {"CON", "a:b", "x. ", "nul.txt"}


@case("fs-out-changes")
def test_a_file_that_changed_to_the_last_is_what_was_read(session: Session) -> None:
    ran = run(session, snippet("fs-out-changes"))
    assert set(ran.files) == {"a"}
    assert len(ran.files["a"]) <= 99999
    assert set(ran.files["a"]) <= {ord("x")}


@case("fs-out-changes")
def test_nothing_lives_that_could_change_a_file_while_it_is_taken(session: Session) -> None:
    source = """
import os, time
for n in range(8):
    if os.fork() == 0:
        os.setsid()
        while True:
            try:
                os.symlink('/etc/passwd', f's{n}'); os.rename(f's{n}', f'x{n}')
                open(f's{n}', 'w').write('plain'); os.rename(f's{n}', f'x{n}')
            except OSError: pass
time.sleep(0.5)
"""
    ran = run(session, source)
    assert set(ran.files.values()) <= {b"plain", b""}
    assert set(ran.why.values()) <= {"it is a link, and links are not followed"}
    assert ran.receipt.observed.meters.final


@case("fs-out-timeout")
def test_files_survive_the_deadline_and_are_marked(session: Session) -> None:
    ran = run(session, snippet("fs-out-timeout"), deadline=0.5)
    assert ran.receipt.observed.end.how == "deadline"
    assert ran.files == {"part.csv": b"1,2\n"}
    assert "1 file saved, maybe incomplete" in render_short(ran.receipt)
    assert "The program did not finish: its files may be incomplete." in render_full(ran.receipt)


@case("fs-out-os-exit")
def test_files_survive_a_program_that_leaves_without_its_own_end(session: Session) -> None:
    source = "with open('b', 'w') as file: file.write('flushed')\n" + snippet("fs-out-os-exit")
    ran = run(session, source)
    assert not ran.said.completed
    assert ran.files == {"a": b"kept?", "b": b"flushed"}
    assert "2 files saved, maybe incomplete" in render_short(ran.receipt)


@pytest.mark.parametrize(
    ("death", "how"),
    [
        ("import ctypes; ctypes.string_at(0)", "signal"),
        ("1 / 0", "exited"),
        ("import os; os.kill(os.getpid(), 9)", "signal"),
        ("b = bytearray(1 << 30)", "signal"),
    ],
)
def test_files_survive_a_crash(session: Session, death: str, how: str) -> None:
    ran = run(session, f"with open('a', 'w') as file: file.write('kept')\n{death}")
    assert ran.receipt.observed.end.how == how
    assert ran.files == {"a": b"kept"}
    assert "maybe incomplete" in render_short(ran.receipt)


def test_files_survive_a_stop(session: Session) -> None:
    stop = sessions.Stop()

    class Watcher:
        def started(self, deadline_seconds: float) -> None: ...
        def display(self, display: object) -> None: ...
        def output(self, stream: str, text: str) -> None:
            stop.set()

    source = "with open('a', 'w') as file: file.write('kept')\nprint('up', flush=True)\nwhile True: pass"
    ran = run(session, source, deadline=20, stop=stop, watcher=Watcher())
    assert ran.receipt.observed.end.how == "stopped"
    assert ran.files == {"a": b"kept"}


def test_a_box_without_its_last_word_has_no_files_and_says_so(session: Session, home: Path, outside: Outside) -> None:
    class Killer:
        def started(self, deadline_seconds: float) -> None: ...
        def display(self, display: object) -> None: ...
        def output(self, stream: str, text: str) -> None:
            outside.api.kill(outside.wait_running(installation=installation_id(home)))

    source = "with open('a', 'w') as file: file.write('lost')\nprint('up', flush=True)\nwhile True: pass"
    ran = Ran(session.run(source, output=True, watcher=Killer()))
    assert ran.receipt.observed.end.how == "box_lost"
    assert ran.files == {}
    assert {entry.what: entry.why for entry in ran.receipt.unknown}["files"] == "the box ended without its last word"
    assert "Whether all files that it wrote are here" in render_full(ran.receipt).replace("\n" + " " * 21, " ")


def test_a_program_cannot_close_its_folder_to_the_warden(session: Session) -> None:
    source = (
        "import os\nfor name in ('open', 'closed'): open(name, 'w').write('x')\nos.mkdir('d')\n"
        "os.chmod('closed', 0); os.chmod('d', 0); os.chmod('/box', 0)"
    )
    ran = run(session, source)
    assert ran.files == {"open": b"x"}
    assert ran.why == dict.fromkeys(("closed", "d"), "its mode does not let it be read")


def test_folders_as_deep_as_they_get_are_not_gone_into(session: Session) -> None:
    source = "import os\nfor n in range(5000):\n  try: os.mkdir('d'); os.chdir('d')\n  except OSError: break\n"
    source += "print(n > 1000)"
    ran = run(session, source)
    assert ran.out == "True\n"
    assert ran.why == {"d/" * 9: "it lies more than 8 folders deep"}


def test_a_program_that_moves_its_working_folder_away_gains_nothing(session: Session) -> None:
    source = (
        "import os\nfor what in (lambda: os.rename('/box', '/tmp/x'), lambda: os.rmdir('/box'),\n"
        "    lambda: os.symlink('/etc', '/box')):\n  try: what()\n  except OSError as e: print(e.errno)"
    )
    ran = run(session, source)
    assert len(ran.out.split()) == 3
    assert ran.files == {}


def test_several_links_to_one_file_are_copies_that_count_each(session: Session) -> None:
    ran = run(session, "import os\nopen('a', 'wb').write(bytes(3 << 20))\nfor n in 'bcd': os.link('a', n)")
    assert list(ran.files) == ["a", "b"]
    assert ran.why == dict.fromkeys("cd", "the files before it fill the 8 MB that all together may have")


# Without a supervisor

SUPERVISOR = """
import os, signal, sys
from pybox_kernel.wire import files as file_frames
from pybox_kernel.sessions.session import Session
class Stopped(file_frames.FilesFromBox):
    def take(self, frame):
        super().take(frame)
        if frame.kind == b"d":
            os.kill(os.getpid(), int(sys.argv[1]))
import pybox_kernel.running.conversation
pybox_kernel.running.conversation.FilesFromBox = Stopped
with Session.open() as session:
    session.run("open('x', 'wb').write(bytes(8 << 20))", output=True)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_box_whose_supervisor_is_lost_while_its_files_come_is_gone_soon(
    number: signal.Signals, own: Installation, outside: Outside
) -> None:
    lost = own.python(SUPERVISOR, str(int(number)))
    seen: list[str] = []
    began = time.monotonic()
    while not seen and time.monotonic() - began < 20:
        seen = [line["Id"] for line in outside.api.containers(filters={"label": f"org.pybox.installation={own.id}"})]
        time.sleep(0.01)
    (box,) = seen
    if number == signal.SIGKILL:
        assert lost.wait(20) == -signal.SIGKILL
        outside.wait_gone(box, 2)
    else:
        outside.wait_gone(box, 20 + STDLIB.collect_seconds + STDLIB.release_seconds)
        assert Path(f"/proc/{lost.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        os.kill(lost.pid, signal.SIGCONT)
        lost.communicate(timeout=20)
        assert own.entries() == []


# Native code from a file


@case("fs-noexec")
def test_a_file_that_a_program_wrote_cannot_be_executed(session: Session) -> None:
    ran = run(session, snippet("fs-noexec") + "\n" + snippet("fs-noexec").replace("/tmp/", "/box/"))
    assert ran.out == "13\n13\n"


@case("fs-memfd-exec")
def test_noexec_is_hygiene_and_does_not_keep_native_code_out(session: Session) -> None:
    ran = run(session, snippet("fs-memfd-exec"), output=False)
    assert ran.out == "ran\n"
    assert not ran.said.completed


# At the command line


def command(own: Installation, folder: Path, *arguments: str, source: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pybox_kernel.cli", "run", "-", *arguments],
        cwd=folder,
        env={**own.environment, "PYTHONPATH": str(Path(__file__).parents[2])},
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )


@case("fs-out-active-type")
def test_the_command_line_brings_files_into_a_new_folder(own: Installation, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text("1,2\n")
    source = "open('sum.txt', 'w').write(str(sum(map(int, open('data/x.csv').read().split(',')))))\n"
    source += snippet("fs-out-active-type")
    done = command(own, tmp_path, "--input", "data", "--output", "results", source=source)
    assert done.returncode == 0, done.stderr
    assert "2 files saved · " in done.stderr
    assert (tmp_path / "results" / "sum.txt").read_text() == "3"
    assert (tmp_path / "results" / "open_me.html").stat().st_mode & 0o7777 == 0o644
    again = command(own, tmp_path, "--output", "results", source=source)
    assert again.returncode == 2
    assert "results is not empty" in again.stderr
    assert own.entries() == []


@case("fs-in-names")
def test_the_command_line_refuses_files_before_there_is_a_box(own: Installation, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    for path, message in (("link", "link is a link"), ("no", "no: No such file"), ("home/../x", "down and up again")):
        done = command(own, tmp_path, "--input", path, source="print(1)")
        assert done.returncode == 2
        assert message in done.stderr
        assert done.stdout == ""


def test_files_that_cannot_be_written_are_on_the_receipt_as_that(session: Session, tmp_path: Path) -> None:
    result = session.run("open('a', 'w').write('x')", output=True)
    lost = sessions.saved(result, "not there/out", tmp_path, None)
    assert lost.files == ()
    assert lost.receipt.said.files == ()
    assert lost.receipt.said.not_brought[0].name == "a"
    assert lost.receipt.problem is not None
    assert lost.receipt.problem.message == "No file was written: not there: No such file or directory."
    assert lost.receipt.observed.saved_in is None
    assert "saved" not in render_short(lost.receipt)
    (tmp_path / "out").write_text("came while it ran")
    beside = sessions.saved(result, "out", tmp_path, None).receipt
    assert (beside.asked.options.output_folder, beside.observed.saved_in) == ("out", "out-2")
    assert "1 file saved in another folder, since that one was taken meanwhile" in render_short(beside)
    assert "Its files were written to ‘out-2’." in render_full(beside)
    assert (tmp_path / "out-2" / "a").read_text() == "x"
