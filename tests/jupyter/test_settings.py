"""What a cell and a notebook may ask for: an image, a limit, files in and out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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


def test_settings_that_cannot_be_change_nothing(kernel: Any) -> None:
    assert "must be" in kernel.run("%pybox use --timeout 31").error["evalue"]
    assert kernel.run("while True: pass").error["evalue"] == "Stopped at its 2 s limit"


def test_a_file_above_the_notebook_is_copied_only_if_it_is_named_itself(start_kernel: Any, tmp_path: Path) -> None:
    folder = tmp_path / "notebook"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to("../secret.txt")
    with start_kernel(folder) as kernel:
        cell = kernel.run("%%pybox --input link.txt\nprint(open('link.txt').read())")
    assert cell.error["ename"] == "PyBoxNotRun"
    assert "secret" not in cell.text("stdout")


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
