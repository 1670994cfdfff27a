"""``pybox-kernel run NOTEBOOK.ipynb`` as a person meets it: the new notebook, the lines, the table, the exit status."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest

from pybox_kernel.carry.chain import breaks
from pybox_kernel.cli import main
from tests.boxes.conftest import Installation
from tests.statements import links_in

pytestmark = pytest.mark.engine


class Desk:
    """A folder with a notebook in it, and the command."""

    def __init__(self, folder: Path, own: Installation) -> None:
        self.folder = folder
        self.notebook = folder / "lesson.ipynb"
        self._own = own

    def write(self, *sources: str, **metadata: Any) -> None:
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        document = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_markdown_cell("# Lesson"), *cells], metadata=metadata
        )
        nbformat.write(document, self.notebook)

    def begin(self, *arguments: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "pybox_kernel.cli", "run", *arguments],
            cwd=cwd or self.folder,
            env=self._own.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *arguments: str, cwd: Path | None = None) -> tuple[int, str]:
        """With the notebook as it lies there; the exit status, and what was printed."""
        with self.begin(str(self.notebook), *arguments, cwd=cwd) as process:
            out, err = process.communicate(timeout=60)
        assert "Traceback (most recent call last):\n  File" not in err
        assert "\x1b" not in out
        return process.returncode, out + err

    def result(self, name: str = "lesson-run.ipynb") -> list[nbformat.NotebookNode]:
        """The code cells of the notebook that was written."""
        document = nbformat.read(self.folder / name, as_version=4)
        nbformat.validate(document)
        return [cell for cell in document.cells if cell.cell_type == "code"]


@pytest.fixture
def desk(tmp_path: Path, own: Installation) -> Desk:
    folder = tmp_path / "desk"
    folder.mkdir()
    return Desk(folder, own)


def kinds(cell: nbformat.NotebookNode) -> list[str]:
    return [str(output.output_type) for output in cell.outputs]


def receipt(cell: nbformat.NotebookNode) -> str:
    assert cell.outputs[-1].output_type == "display_data"
    assert "<details" in cell.outputs[-1].data["text/html"]
    return str(cell.outputs[-1].data["text/plain"])


def test_a_notebook_is_run_into_a_new_one_until_a_cell_fails(desk: Desk) -> None:
    desk.write(
        "print('one')\nanswer = 6 * 7\nanswer", "  ", "%pybox summary", "%%pybox --timeout 0.5\nwhile answer: pass", "1"
    )
    before = desk.notebook.read_bytes()
    status, shown = desk.run()
    assert status == 124
    assert desk.notebook.read_bytes() == before
    first, empty, summary, endless, never = desk.result()
    assert kinds(first) == ["stream", "execute_result", "display_data"]
    assert (first.outputs[0].text, first.outputs[1].data["text/plain"]) == ("one\n", "42")
    assert receipt(first).startswith("✓ Ended normally")
    assert "1 cell run in this session: 1 ended normally." in summary.outputs[0].data["text/plain"]
    assert kinds(endless) == ["error", "display_data"]
    assert endless.outputs[0].ename == "PyBoxDeadline"
    assert receipt(endless).startswith("◷ Stopped at its 0.5 s limit")
    assert (empty.outputs, never.outputs) == ([], [])
    assert [cell.execution_count for cell in (first, empty, summary, endless, never)] == [1, None, 2, 3, None]
    lines = shown.splitlines()
    assert lines[0].startswith("[1] ✓ Ended normally")
    assert lines[2].startswith("[3] ◷ Stopped at its 0.5 s limit")
    assert [line[:20] for line in lines if line.startswith("[3]")][1] == "[3]   ◷ Stopped at i"
    assert "2 cells run" in shown
    assert "1 cell not run, since one before failed." in shown
    assert lines[-1] == f"Written to {desk.folder / 'lesson-run.ipynb'}."


def test_what_its_receipts_say_of_carried_values_fits_together(desk: Desk) -> None:
    desk.write("a = b = [1]\nc = 2", "a.append(c)", "%pybox carry drop c", "print(b)")
    assert desk.run()[0] == 0
    links = links_in((desk.folder / "lesson-run.ipynb").read_bytes())
    assert [[it.names for it in link.put_in] for link in links] == [[], ["a,b", "c"], ["a,b"]]
    assert breaks(links) == []


def test_errors_may_be_allowed_and_what_was_written_before_is_written_over_and_nothing_else(desk: Desk) -> None:
    desk.write("1/0", "print('after')")
    status, shown = desk.run("--to", "out.ipynb", "--allow-errors")
    assert status == 1
    assert "not run" not in shown
    failed, after = desk.result("out.ipynb")
    assert failed.outputs[0].ename == "ZeroDivisionError"
    assert after.outputs[0].text == "after\n"
    desk.write("print('again')")
    assert desk.run("--to", "out.ipynb")[0] == 0
    assert desk.result("out.ipynb")[0].outputs[0].text == "again\n"
    (desk.folder / "out.ipynb").write_text("mine")
    status, shown = desk.run("--to", "out.ipynb")
    assert status == 2
    assert "`pybox-kernel run` did not write it" in shown
    assert (desk.folder / "out.ipynb").read_text() == "mine"


def test_outputs_without_measure_end_it(
    desk: Desk, own: Installation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.write("print('x' * 60_000)", "1 / 0", "print('never')")
    monkeypatch.setenv("PYBOX_HOME", own.environment["PYBOX_HOME"])
    monkeypatch.setattr("pybox_kernel.notebook.run_command.MOST_OUTPUT", 50_000)
    assert main(["run", str(desk.notebook)]) == 125
    assert "2 cells not run, since the outputs of those before have over" in capsys.readouterr().out
    assert [kinds(cell) for cell in desk.result()] == [["stream", "display_data"], [], []]


def test_what_a_notebook_says_of_itself_is_not_obeyed_and_what_it_shows_already_is_gone(desk: Desk) -> None:
    desk.write("1/0", "print('after')", kernelspec={"name": "python3", "display_name": "x", "language": "python"})
    document = nbformat.read(desk.notebook, as_version=4)
    document.cells[1].metadata["tags"] = ["raises-exception"]
    document.cells[2].outputs = [nbformat.v4.new_output("display_data", {"text/html": "✓ Ended normally"})]
    nbformat.write(document, desk.notebook)
    status, shown = desk.run()
    assert status == 1
    assert "ZeroDivisionError: division by zero" in shown
    failed, after = desk.result()
    assert receipt(failed).startswith("✗ Ended with an error")
    assert after.outputs == []


def test_an_interrupt_stops_the_cell_and_writes_what_there_is(desk: Desk, own: Installation) -> None:
    desk.write("print('one')", "print('two', flush=True)\nimport time\ntime.sleep(25)", "print('three')")
    with desk.begin(desk.notebook.name, "--timeout", "30") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("[1] ✓")
        own._outside.wait_running(installation=own.id)
        time.sleep(0.3)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert time.monotonic() - began < 6
    assert (process.returncode, err) == (130, "")
    assert "1 cell not run, since you stopped it." in out
    first, second, third = desk.result()
    assert first.outputs[0].text == "one\n"
    assert second.outputs[-2].ename == "PyBoxStopped"
    assert third.outputs == []
    assert own.boxes() == []
    assert own.entries() == []


def test_paths_of_the_command_count_from_here_and_those_of_the_notebook_from_its_folder_only(desk: Desk) -> None:
    here = desk.folder.parent / "here"
    here.mkdir()
    (here / "secret.txt").write_text("given")
    (desk.folder / "data.txt").write_text("beside")
    names = "import os\nprint(sorted(os.listdir()))\nopen('made.txt', 'w').write('1');"
    desk.write(names, f"%%pybox --input data.txt\n{names}", f"%%pybox --input ../here/secret.txt\n{names}")
    status, shown = desk.run("--input", "secret.txt", "--output", "results", "--carry", "off", cwd=here)
    assert status == 2
    assert "not below the notebook's folder" in shown
    first, second, third = desk.result()
    assert first.outputs[0].text == "['secret.txt']\n"
    assert second.outputs[0].text == "['data.txt']\n"
    assert (kinds(third), third.outputs[0].ename) == (["error", "display_data"], "PyBoxNotRun")
    assert {path.name for path in (here / "results").iterdir()} == {"cell-1", "cell-2"}
    assert (here / "results" / "cell-1" / "made.txt").read_text() == "1"
    assert "1 file saved" in shown
    assert {path.name for path in desk.folder.iterdir()} == {"lesson.ipynb", "lesson-run.ipynb", "data.txt"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--json"], "--json is for a program"),
        (["--timeout", "31"], "must be"),
        (["--to", "lesson.ipynb"], "is the notebook itself"),
        (["--to", "no/folder.ipynb"], "There is no folder"),
        (["--output", "lesson.ipynb"], "a file, and no folder"),
    ],
)
def test_what_cannot_be_done_is_told_before_anything_is_run(
    arguments: list[str], words: str, desk: Desk, own: Installation
) -> None:
    desk.write("print(1)")
    status, shown = desk.run(*arguments)
    assert (status, own.entries()) == (2, [])
    assert words in shown
    assert list(desk.folder.iterdir()) == [desk.notebook]


def test_options_of_a_notebook_are_none_of_a_programs(desk: Desk) -> None:
    with desk.begin("-", "--allow-errors") as process:
        assert process.wait(20) == 2
    assert list(desk.folder.iterdir()) == []


def test_without_an_engine_the_first_cell_ends_it(desk: Desk, own: Installation) -> None:
    desk.write("print(1)", "print(2)")
    own.environment["DOCKER_HOST"] = "unix:///nonexistent"
    status, shown = desk.run("--allow-errors")
    assert status == 125
    assert "1 cell not run, since one before failed." in shown
    first, second = desk.result()
    assert first.outputs[0].ename == "PyBoxNotRun"
    assert second.outputs == []


def test_a_graded_notebook_gets_what_the_command_gives_and_no_more_that_it_asks_for(desk: Desk) -> None:
    for name in ("mine.csv", "theirs.csv"):
        (desk.folder / name).write_text(name)
    desk.write(
        "%%pybox --input mine.csv --output out --quiet --no-raise\nprint(open('mine.csv').read())\n1/0",
        "%%pybox --input theirs.csv\nprint(open('theirs.csv').read())",
        "%pybox use --timeout 30",
    )
    status, shown = desk.run("--graded", "--allow-errors", "--input", "mine.csv", "--quiet")
    assert (status, shown) == (1, f"{desk.notebook}: 3 cells run in this session: 0 ended normally, 3 did not.\n")
    mine, theirs, longer = desk.result()
    assert kinds(mine) == ["stream", "error", "display_data"]
    assert "mine.csv" in mine.outputs[0].text
    assert "among them" in theirs.outputs[0].evalue
    assert "2 s at most" in longer.outputs[0].evalue
    assert not (desk.folder / "out").exists()


def test_a_graded_notebook_that_has_had_its_time_is_reported_so(desk: Desk, own: Installation) -> None:
    desk.write("import time\ntime.sleep(0.6)", "while True: pass", "print('too late')", "%pybox recipts")
    status, shown = desk.run("--graded", "--allow-errors", "--total-time", "1")
    assert status == 124
    assert "■ Not run: the notebook's time is up" in shown
    first, second, third, fourth = desk.result()
    assert receipt(first).startswith("✓ Ended normally")
    assert receipt(second).startswith("◷ Stopped at its 2 s limit")
    assert kinds(third) == ["error", "display_data"]
    assert third.outputs[0].evalue == "Not run: the notebook's time is up."
    assert fourth.outputs[-1].data["text/plain"] == "PyBox: Nothing was run."
    command = [sys.executable, "-m", "pybox_kernel.cli", "report", str(desk.folder / "lesson-run.ipynb")]
    said = subprocess.run(command, env=own.environment, capture_output=True, text=True, check=True).stdout
    assert "cell 4 [3]  ✗ Not run: the notebook's time is up." in said
    assert "cell 5 [4]  ✗ Not run: refused" in said
    assert "not as made here" not in said
