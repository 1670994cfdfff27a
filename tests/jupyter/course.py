"""A course of nbgrader's: the assignment of its quickstart with more tests of every kind, and what comes of it."""

from __future__ import annotations

import copy
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import nbformat

ASSIGNMENT = "ps1"
NOTEBOOK = "problem1"
SECONDS = 240

SEALED = """
import secrets
c = get_config()
c.Execute.kernel_name = "pybox-sealed"
c.Execute.skip_cells_with_tag = secrets.token_hex()
c.Execute.extra_arguments = ["--PyBoxKernel.input=data.csv"]
"""
ORDINARY = """
c = get_config()
c.Execute.kernel_name = "python3"
"""

MEAN = '''def mean(file):
    """The mean of the numbers in a file."""
    ### BEGIN SOLUTION
    numbers = [float(line) for line in open(file)]
    return sum(numbers) / len(numbers)
    ### END SOLUTION'''
HIDDEN = """assert round(mean("data.csv")) == 2
### BEGIN HIDDEN TESTS
assert mean("data.csv") == 2.25
### END HIDDEN TESTS"""
PARTIAL = "half = squares(3) == [1, 4, 9]\n0.5 if half else 0"

GOOD = {
    "squares": "def squares(n):\n    if n < 1:\n        raise ValueError\n    return [i * i for i in range(1, n + 1)]",
    "sum_of_squares": "def sum_of_squares(n):\n    return sum(squares(n))",
    "mean": "def mean(file):\n    values = [float(line) for line in open(file)]\n    return sum(values) / len(values)",
}


def nbgrader_cell(grade_id: str, source: str, **more: object) -> nbformat.NotebookNode:
    said = {"grade_id": grade_id, "schema_version": 3, "locked": False, "grade": False, "solution": False, **more}
    return code_cell(source, nbgrader=said)


def code_cell(source: str, **metadata: object) -> nbformat.NotebookNode:
    cell = nbformat.v4.new_code_cell(source, metadata=metadata)
    del cell["id"]  # the quickstart's notebook is of a format that has none
    return cell


class Course:
    def __init__(self, folder: Path, config: str) -> None:
        self.folder = folder
        folder.mkdir()
        self.configure(config)
        package = find_spec("nbgrader")
        assert package is not None
        assert package.origin is not None
        example = Path(package.origin).parent / "docs" / "source" / "user_guide" / "source" / ASSIGNMENT
        source = folder / "source" / ASSIGNMENT
        source.mkdir(parents=True)
        document = nbformat.read(example / f"{NOTEBOOK}.ipynb", as_version=4)
        document.cells += [
            nbgrader_cell("mean", MEAN, solution=True),
            nbgrader_cell("mean_of_a_file", HIDDEN, grade=True, locked=True, points=2),
            nbgrader_cell("partly", PARTIAL, grade=True, locked=True, points=1),
        ]
        nbformat.write(document, source / f"{NOTEBOOK}.ipynb")
        (source / "data.csv").write_text("1.5\n3\n")

    def configure(self, config: str) -> None:
        (self.folder / "nbgrader_config.py").write_text(config)

    def release(self) -> None:
        assert self.run("generate_assignment", ASSIGNMENT).returncode == 0

    def copy(self, folder: Path, config: str) -> Course:
        """The same before anything was graded."""
        shutil.copytree(self.folder, folder)
        other = object.__new__(Course)
        other.folder = folder
        other.configure(config)
        return other

    def submit(
        self, student: str, *, first: str | None = None, metadata: object = None, tags: object = (), **cells: str
    ) -> None:
        """``cells`` are by their names in nbgrader; ``first`` is one more, above all; each has the ``tags``."""
        released = nbformat.read(self.folder / "release" / ASSIGNMENT / f"{NOTEBOOK}.ipynb", as_version=4)
        document = copy.deepcopy(released)
        for cell in document.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            cell.source = {**GOOD, **cells}.get(name, cell.source)
            if tags:
                cell.metadata["tags"] = tags
        if first is not None:
            document.cells.insert(0, code_cell(first))
        document.metadata.update(metadata or {})
        place = self.folder / "submitted" / student / ASSIGNMENT
        place.mkdir(parents=True)
        nbformat.write(document, place / f"{NOTEBOOK}.ipynb")

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        home = {"HOME": str(self.folder), "JUPYTER_CONFIG_DIR": str(self.folder / "config"), "PYBOX_POOL": "4"}
        # As in an environment that is activated: nbgrader starts alembic by its name.
        home["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        return subprocess.Popen(
            [sys.executable, "-m", "nbgrader", *arguments],
            cwd=self.folder,
            env={**os.environ, **home, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, seconds: float = SECONDS, **variables: str) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments, **variables) as process:
            try:
                written, _ = process.communicate(timeout=seconds)
            finally:
                process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, written)

    def autograde(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.run("autograde", ASSIGNMENT, *arguments, **variables)

    def graded(self, student: str) -> Path:
        return self.folder / "autograded" / student / ASSIGNMENT / f"{NOTEBOOK}.ipynb"

    def cells(self, student: str) -> dict[str, nbformat.NotebookNode]:
        """The code cells of a graded notebook that have a name."""
        document = nbformat.read(self.graded(student), as_version=4)
        named = ((cell.metadata.get("nbgrader", {}).get("grade_id"), cell) for cell in document.cells)
        return {name: cell for name, cell in named if name is not None and cell.cell_type == "code"}

    def scores(self, student: str) -> dict[str, float | None]:
        """Those that nbgrader gave by itself, as they stand in its gradebook; None where it gave none."""
        asked = """
            SELECT base_cell.name, grade.auto_score FROM grade
            JOIN base_cell ON base_cell.id = grade.cell_id
            JOIN submitted_notebook ON submitted_notebook.id = grade.notebook_id
            JOIN submitted_assignment ON submitted_assignment.id = submitted_notebook.assignment_id
            WHERE submitted_assignment.student_id = ?"""
        with closing(sqlite3.connect(self.folder / "gradebook.db")) as gradebook:
            found = dict(gradebook.execute(asked, [student]).fetchall())
        return {name: score for name, score in found.items() if name in TESTS}


TESTS = {
    "correct_squares": 1.0,
    "squares_invalid_input": 1.0,
    "correct_sum_of_squares": 0.5,
    "sum_of_squares_uses_squares": 0.5,
    "mean_of_a_file": 2.0,
    "partly": 0.5,
}
"""The cells that are graded by themselves, with what a right answer gets."""
