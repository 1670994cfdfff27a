"""What a cell and a notebook may ask for: an image, a limit, files in and out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("boxes")]

WRITES = "from pathlib import Path\nPath('made.txt').write_text(Path('in/a.txt').read_text().upper())"


def put(folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "a.txt").write_text("a letter")


def test_files_come_from_the_notebooks_folder_and_go_to_a_new_one_there(start_kernel: Any, tmp_path: Path) -> None:
    put(tmp_path)
    with start_kernel(tmp_path) as kernel:
        cell = kernel.run(f"%%pybox --input in --output out\n{WRITES}")
        assert cell.reply["content"]["status"] == "ok"
        assert "1 file saved" in cell.receipt_text
        again = kernel.run(f"%%pybox --input in --output out\n{WRITES}").error
        assert again["ename"] == "PyBoxNotRun"
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}
    assert (tmp_path / "out" / "made.txt").read_text() == "A LETTER"
    assert (tmp_path / "in" / "a.txt").read_text() == "a letter"


def test_what_a_notebook_asks_for_holds_for_its_later_cells_until_it_asks_anew(
    start_kernel: Any, tmp_path: Path
) -> None:
    put(tmp_path)
    with start_kernel(tmp_path) as kernel:
        told = kernel.run("%pybox use --timeout 1 --input in --output out")
        assert "--timeout 1 --input in --output out" in told.of("display_data")[0]["data"]["text/plain"]
        numbers = [kernel.run(WRITES).reply["content"]["execution_count"] for _ in range(2)]
        assert kernel.run("while True: pass").error["evalue"] == "Stopped at its 1 s limit"
        assert kernel.run("%%pybox --timeout 0.5\nwhile True: pass").error["evalue"] == "Stopped at its 0.5 s limit"
        kernel.run("%pybox use")
        error = kernel.run(WRITES).error
    assert error["ename"] == "FileNotFoundError"
    assert "%%pybox --input" in error["traceback"][-1]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [f"cell-{number}" for number in numbers]


def test_two_notebooks_that_ask_for_one_folder_at_once_both_get_their_files(start_kernel: Any, tmp_path: Path) -> None:
    waits = "import time\ntime.sleep(0.8)\nopen('made.txt', 'w').write"
    with start_kernel(tmp_path) as one, start_kernel(tmp_path) as other:
        for kernel in (one, other):
            kernel.run("%pybox use --output shared")
        for line, places in (
            ("%%pybox --output alone\n", ["alone", "alone-2"]),
            ("", ["shared/cell-{number}", "shared/cell-{number}-2"]),
        ):
            asked = [(kernel, kernel.client.execute(f"{line}{waits}('{kernel.pid}')")) for kernel in (one, other)]
            cells = [kernel.wait(message) for kernel, message in asked]
            assert [cell.reply["content"]["status"] for cell in cells] == ["ok", "ok"]
            number = cells[0].reply["content"]["execution_count"]
            found = {(tmp_path / place.format(number=number) / "made.txt").read_text() for place in places}
            assert found == {str(one.pid), str(other.pid)}


IN_METADATA = {
    "image": "data", "timeout": 20, "input": ["in"], "output": "out", "use": "--timeout 20 --input in --output out",
    "carry": True, "options": "--timeout 20 --input in --output out", "memory_bytes": 1 << 40, "network": True,
}  # fmt: skip
ASKING = {"pybox": IN_METADATA, "pybox_kernel": IN_METADATA, **IN_METADATA, "tags": ["pybox", "--timeout 20"]}
LOOKS = "import os\nprint(os.listdir())\nopen('made.txt', 'w').close()"


def assert_nothing_was_granted(text: str, receipt: str, folder: Path) -> None:
    assert text == "[]\n"
    assert "128 MB of memory, half a processor core, 2 seconds, 32 processes" in receipt
    assert "no network, none of your files" in receipt
    assert [path.name for path in folder.iterdir()] == ["in"]


def test_what_a_notebooks_metadata_asks_for_is_never_obeyed(kernelspec: str, tmp_path: Path) -> None:
    put(tmp_path)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(LOOKS, metadata=ASKING)], metadata=ASKING)
    NotebookClient(notebook, kernel_name=kernelspec, resources={"metadata": {"path": str(tmp_path)}}).execute()
    [printed, receipt] = notebook.cells[0].outputs
    assert_nothing_was_granted(printed.text, receipt.data["text/html"], tmp_path)


def test_what_the_metadata_of_a_request_asks_for_is_never_obeyed(start_kernel: Any, tmp_path: Path) -> None:
    """As a page could send it along with a cell."""
    put(tmp_path)
    with start_kernel(tmp_path) as kernel:
        content = {
            "code": LOOKS,
            "silent": False,
            "store_history": True,
            "user_expressions": ASKING,
            "stop_on_error": True,
        }
        asked = kernel.client.session.msg("execute_request", {**content, **ASKING, "cellId": "1"}, metadata=ASKING)
        kernel.client.shell_channel.send(asked)
        cell = kernel.wait(asked["header"]["msg_id"])
    shown = cell.of("display_data")[-1]["data"]
    assert_nothing_was_granted(cell.text("stdout"), shown["text/html"], tmp_path)
    assert cell.reply["content"]["user_expressions"] == {}


def test_settings_that_cannot_be_change_nothing(kernel: Any) -> None:
    assert "must be" in kernel.run("%pybox use --timeout 31").error["evalue"]
    assert kernel.run("while True: pass").error["evalue"] == "Stopped at its 2 s limit"


AWAY = (
    "--input link.txt",
    "--input ../secret.txt",
    "--input {above}/secret.txt",
    "--input .hidden",
    "--output ../out",
    "--output {above}/out",
    "--output .local/lib",
    "--output .vscode",
    "--output link/out",
    "--output 'a\u202eb'",
)


@pytest.mark.parametrize("magic", ["%%pybox", "%pybox use"])
def test_a_notebooks_files_stay_below_its_folder_and_are_not_hidden(
    start_kernel: Any, tmp_path: Path, magic: str
) -> None:
    """A stranger wrote the line too: files that a computer obeys lie elsewhere, and so do keys."""
    folder = tmp_path / "notebook"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (folder / ".hidden").write_text("secret")
    (folder / "link.txt").symlink_to("../secret.txt")
    (folder / "link").symlink_to("..")
    before = sorted(tmp_path.rglob("*"))
    reads = "import os\nfor name in os.listdir(): print(open(name).read())\nopen('x.py', 'w').write('1')"
    with start_kernel(folder) as kernel:
        for line in AWAY:
            asked = f"{magic} {line.format(above=tmp_path)}"
            cell = kernel.run(f"{asked}\n{reads}" if magic == "%%pybox" else asked)
            if cell.reply["content"]["status"] == "ok":  # of files to be put in, the next cell tells
                cell = kernel.run(reads)
            assert cell.error["ename"] == "PyBoxNotRun", line
            assert "secret" not in cell.text("stdout")
            assert sorted(tmp_path.rglob("*")) == before, line


def test_a_settings_line_that_an_editor_may_not_show_as_one_is_a_comment(start_kernel: Any, tmp_path: Path) -> None:
    put(tmp_path)
    with start_kernel(tmp_path) as kernel:
        for end in ("\u2028", "\x0b", "\x0c", "\x85"):
            kernel.run(f"# a comment{end}%pybox use --input in")
        assert kernel.run("import os\nprint(os.listdir())").text("stdout") == "[]\n"


def test_a_cell_of_any_size_is_refused_at_once(kernel: Any) -> None:
    start = time.monotonic()
    cell = kernel.run("%pybox use --input " + "a " * 400_000)
    assert time.monotonic() - start < 2
    assert "bytes; the most a box takes" in cell.error["evalue"]


def test_an_image_that_is_not_there_is_told_with_how_to_make_it(kernel: Any) -> None:
    error = kernel.run("%%pybox --image elsewhere\n1").error
    assert error["ename"] == "PyBoxNotRun"
    assert "pybox-kernel image build elsewhere" in "\n".join(error["traceback"])


def test_a_cell_in_the_data_box_reads_computes_draws_and_writes(
    start_kernel: Any, data_image: object, tmp_path: Path
) -> None:
    (tmp_path / "cities.csv").write_text("city,people\nOslo,709037\nLima,10092000\n")
    with start_kernel(tmp_path) as kernel:
        kernel.run("%pybox use --image data --input cities.csv")
        cell = kernel.run(
            "%%pybox --output out\nimport pandas as pd\nimport matplotlib.pyplot as plt\n"
            "cities = pd.read_csv('cities.csv')\ncities.plot.bar(x='city')\ncities.to_csv('copy.csv', index=False)\n"
            "cities.groupby('city').sum()"
        )
    assert cell.reply["content"]["status"] == "ok", cell.of("error")
    [result] = cell.of("execute_result")
    assert "10092000" in result["data"]["text/html"]
    picture, receipt = cell.of("display_data")
    assert "data:image/png;base64," in picture["data"]["text/html"]
    assert "1 file saved" in receipt["data"]["text/plain"]
    assert (tmp_path / "out" / "copy.csv").read_text() == (tmp_path / "cities.csv").read_text()
