"""Notebook files (nbformat 4): one that may be a stranger's read strictly, and one with new outputs written.

What a file says of itself is kept and never obeyed: its metadata chooses no kernel, no image and no exception. The
outputs that it came with are not kept, since they may look like anything, receipts included.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from pybox_kernel import __version__
from pybox_kernel.errors import OptionError, PyBoxError, SourceError

__all__ = ["MOST_BYTES", "MOST_CELLS", "CodeCell", "NotebookFile", "check_target", "is_own", "output_of", "write"]

MOST_BYTES: Final = 16 << 20
MOST_CELLS: Final = 2000
MOST_OWN_BYTES: Final = 600 << 20
"""Of a notebook with the outputs of a run: what outputs may have in all, with escapes, and what was read."""
DEEPEST: Final = 64
"""Of lists and objects in one another; what comes of Jupyter has ten."""
KINDS: Final = ("code", "markdown", "raw")
MARK: Final = "pybox"
"""In the metadata of what was written here, so that it may be written over."""
SAVE_IT: Final = "Open it in JupyterLab and save it as a notebook."


class CodeCell:
    """A code cell of a notebook file. What is set here stands in the file."""

    def __init__(self, cell: dict[str, Any]) -> None:
        self._cell = cell
        self.source = joined(cell["source"])
        self.outputs: list[dict[str, Any]] = []
        self.characters = 0
        """Of its outputs."""
        cell["outputs"], cell["execution_count"] = self.outputs, None
        for folded in (cell["metadata"], cell["metadata"].get("jupyter")):
            if isinstance(folded, dict):  # it was of the outputs that are gone
                for name in ("collapsed", "scrolled", "outputs_hidden"):
                    folded.pop(name, None)

    def number(self, execution_count: int) -> None:
        self._cell["execution_count"] = execution_count

    def add(self, message: str, content: Mapping[str, Any]) -> None:
        """Adds what Jupyter's message of this type shows under a cell."""
        shown = (content.get("text", ""), *content.get("data", {}).values(), *content.get("traceback", ()))
        self.characters += sum(map(len, shown))
        if message == "stream":
            last = self.outputs[-1] if self.outputs else {}
            if last.get("name") == content["name"]:
                content = {**content, "text": "".join(last["text"]) + content["text"]}
                self.outputs.pop()
            self.outputs.append({"output_type": "stream", "name": content["name"], "text": lines(content["text"])})
            return
        output = {name: value for name, value in content.items() if name != "transient"}
        if "data" in output:
            output["data"] = {mime: lines(text) for mime, text in output["data"].items()}
        self.outputs.append({"output_type": message, **output})


class NotebookFile:
    """A notebook that was read, without its outputs. ``name`` is for what is said of it."""

    def __init__(self, data: bytes, name: str) -> None:
        """Raises SourceError for whatever is not a notebook of Python cells in nbformat 4."""
        self._name = name
        self._document = self._parsed(data)
        self._check()
        self.code_cells = [CodeCell(cell) for cell in self._document["cells"] if cell["cell_type"] == "code"]
        # The widgets were those of the outputs that are gone.
        self._document["metadata"].pop("widgets", None)

    @classmethod
    def read(cls, path: Path) -> NotebookFile:
        """Raises SourceError, also for a file that cannot be read, or has more than ``MOST_BYTES``."""
        try:
            with path.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror}.", "Name a notebook that can be read.") from error
        if len(data) > MOST_BYTES:
            raise SourceError(
                f"{path} has over {MOST_BYTES >> 20} MB.", "Clear its outputs in JupyterLab, save it, and try again."
            )
        return cls(data, str(path))

    def _parsed(self, data: bytes) -> dict[str, Any]:
        try:
            document = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            self._refuse("is not a notebook: its text is not the JSON of one", SAVE_IT)
        if not isinstance(document, dict) or deeper(document, DEEPEST):
            self._refuse("is not a notebook: its text is not the JSON of one", SAVE_IT)
        return document

    def _check(self) -> None:
        document = self._document
        version, minor = document.get("nbformat"), document.get("nbformat_minor")
        if type(version) is not int or type(minor) is not int or minor < 0:
            self._refuse("is not a notebook: it does not say of which format it is", SAVE_IT)
        if version < 4:
            self._refuse(
                f"is a notebook of the old format {version}",
                "Open it in JupyterLab and save it, or use `jupyter nbconvert --to notebook`; both make format 4.",
            )
        if version > 4:
            self._refuse(f"is a notebook of format {version}, newer than this version of PyBox knows", "Update PyBox.")
        cells, metadata = document.get("cells"), document.get("metadata")
        if not isinstance(cells, list) or not isinstance(metadata, dict):
            self._refuse("is not a notebook: it has no list of cells, or no metadata", SAVE_IT)
        if len(cells) > MOST_CELLS:
            self._refuse(f"has {len(cells):,} cells; the most is {MOST_CELLS:,}", "Divide it.")
        for number, cell in enumerate(cells, 1):
            if (
                not isinstance(cell, dict)
                or cell.get("cell_type") not in KINDS
                or not isinstance(cell.get("metadata"), dict)
                or not is_text(cell.get("source"))
            ):
                self._refuse(f"is not a notebook: its cell {number} is none", SAVE_IT)
        for part, key in (("kernelspec", "language"), ("language_info", "name")):
            said = metadata.get(part)
            language = said.get(key, "python") if isinstance(said, dict) else "python"
            if not isinstance(language, str) or not language.lower().startswith(("python", "ipython")):
                self._refuse(f"is a notebook for {str(language)[:40]}", "Only Python runs in a box.")

    def _refuse(self, what: str, advice: str) -> NoReturn:
        raise SourceError(f"{self._name} {what}.", advice)

    def to_bytes(self) -> bytes:
        """As Jupyter writes it, with the mark that says who did."""
        document = {**self._document, "metadata": {**self._document["metadata"], MARK: {"run": __version__}}}
        try:
            return written(document, ascii_only=False)
        except UnicodeEncodeError:  # half a character, as an escape
            return written(document, ascii_only=True)


def written(document: Mapping[str, Any], *, ascii_only: bool) -> bytes:
    return (json.dumps(document, ensure_ascii=ascii_only, indent=1, sort_keys=True) + "\n").encode()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def deeper(document: object, most: int) -> bool:
    """Whether lists and objects in it are in more than ``most`` others."""
    level = [document]
    for _ in range(most):
        level = [below for found in level for below in inside(found)]
    return any(isinstance(found, dict | list) for found in level)


def inside(found: object) -> Iterator[object]:
    if isinstance(found, dict):
        yield from found.values()
    elif isinstance(found, list):
        yield from found


def is_text(source: object) -> bool:
    return isinstance(source, str) or (isinstance(source, list) and all(isinstance(line, str) for line in source))


def joined(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def lines(text: object) -> object:
    """A text as the list of its lines, as Jupyter writes it."""
    return text.splitlines(keepends=True) if isinstance(text, str) else text


# The file that is written


def output_of(source: Path) -> Path:
    """Where the notebook with the outputs goes where nobody says."""
    return source.with_name(f"{source.stem}-run.ipynb")


def check_target(target: Path, source: Path) -> None:
    """Raises OptionError where ``write`` could not write or must not: over anything but what it wrote itself."""
    if not target.parent.is_dir():
        raise OptionError(f"There is no folder {target.parent}.", "Make it, or name another.")
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        mode = None
    except OSError as error:
        raise OptionError(f"{target}: {error.strerror}.", "Name another file.") from error
    if mode is not None:
        if target.exists() and target.samefile(source):
            raise OptionError(f"{target} is the notebook itself.", "Name another file with --to.")
        if not stat.S_ISREG(mode) or not is_own(target):
            raise OptionError(
                f"{target} is there already, and `pybox-kernel run` did not write it.",
                "Name another file with --to, or remove that one.",
            )
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise OptionError(f"You may not write to {target.parent}.", "Name a file in another folder with --to.")


def is_own(target: Path) -> bool:
    """Whether ``write`` wrote the file. Of what is no regular file, or larger than any of these, not a byte is read."""
    try:
        with os.fdopen(os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_OWN_BYTES:
                return False
            document = json.loads(file.read(facts.st_size))
        return isinstance(document["metadata"][MARK]["run"], str)
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return False


def write(target: Path, data: bytes) -> None:
    """All of it, or nothing: a reader finds the file of before or this one. Raises PyBoxError."""
    beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except OSError as error:
        raise PyBoxError(
            f"{target} could not be written: {error.strerror}.", "Make room, or name another file with --to."
        ) from error
    finally:  # also where a person does not wait for it
        with suppress(OSError):
            beside.unlink()
