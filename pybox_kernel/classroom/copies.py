"""Clean copies of a folder's notebooks, in a folder of their own. What is read is never changed.

    HOME/opened/NAME.jsonl      of one folder with copies: which folder it is, then a line for each notebook in it

A folder with copies that has such a record is gone on with: what is copied stays as it is, also where someone worked on
it since. Any other must be new or empty, since what is in it could be anybody's. No link is followed below the folder
that is read, and nothing but regular files is opened.
"""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pybox_kernel.classroom.cleaning import MOST_READ, cleaned
from pybox_kernel.errors import OptionError, PyBoxError, SourceError
from pybox_kernel.file_lock import file_lock
from pybox_kernel.files.box_files import reserved
from pybox_kernel.files.files_in import FILE, read_whole
from pybox_kernel.files.named_paths import FOLDER, KINDS
from pybox_kernel.install import KERNEL_NAME, display_name
from pybox_kernel.notebook.file import write
from pybox_kernel.safe_display.text import safe_name

__all__ = ["Copied", "Copies", "Outcome", "copy_all"]

MOST_ENTRIES: Final = 100_000
MOST_NOTEBOOKS: Final = 5_000
DEEPEST: Final = 16
"""Folders in one another."""
LONGEST_PART: Final = 80
"""Characters of one part of a copy's name."""
ARCHIVES: Final = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst")
MOST_NAMED: Final = 20
PUNCTUATION: Final = frozenset(" ._-()+,=")


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Text = Annotated[str, Field(max_length=4096)]


class Place(Record):
    """Which folder a record is of, and of which folder or notebook it has the copies."""

    folder: str
    device: int
    inode: int
    source: str


class Copied(Record):
    """A notebook that was copied, or was not."""

    source: Text
    """Its path in the folder that was read, as it is safe to show."""
    digest: Text
    """SHA-256 of what was read, and of its path."""
    copy_name: Text = ""
    """The path of its copy; empty where there is none."""
    problem: Text = ""
    """Why there is none, as a sentence."""
    kernel: Text = KERNEL_NAME
    """The sealed kernel that its copy asks for."""
    cells: int = 0
    counts: Mapping[str, int] = {}
    quotes: Sequence[tuple[int, Text, Text]] = ()


class Outcome(NamedTuple):
    copied: Copied
    kept: str
    """Why a copy of before was left as it is, as half a sentence; empty where it is new."""


class Copies(NamedTuple):
    folder: Path
    outcomes: Sequence[Outcome]
    others: int
    """Files that are no notebooks, and were not copied."""
    archives: Sequence[str]
    """Those of them that may hold notebooks. Safe to show."""
    without: Sequence[str]
    """Folders right in it, a student's each perhaps, without a notebook anywhere below. Safe to show."""
    links: Sequence[str]
    """Those that lead to folders. Safe to show."""
    unfinished: str
    """Why not everything was looked at, as a sentence; empty where it was."""


class Found(NamedTuple):
    parts: tuple[str, ...]
    read: Callable[[], bytes]
    """Raises SourceError, whose message goes on behind the file's name."""


class Reading:
    """What there is in a folder, or one file as if it were alone in one."""

    def __init__(self) -> None:
        self.others = 0
        self.archives: list[str] = []
        self.without: list[str] = []
        self.links: list[str] = []
        self.unfinished = ""
        self._entries = 0
        self._notebooks = 0
        self._not_read_folders = 0
        self._cut_off = False

    def notebooks(self, path: Path) -> Iterator[Found]:
        """Those of a folder in the order of their names. Raises OptionError where ``path`` cannot be read at all."""
        alone = not path.is_dir()
        if alone and path.suffix.lower() != ".ipynb":
            raise OptionError(
                f"{safe_name(str(path), 200)} is neither a notebook nor a folder.",
                "Name a notebook or a folder with notebooks; unpack an archive first.",
            )
        try:
            folder = os.open(path.parent if alone else path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            raise cannot_read(path, error) from error
        try:
            if alone:
                if not os.path.lexists(path):
                    raise cannot_read(path, FileNotFoundError(2, os.strerror(2)))
                yield Found((path.name,), lambda: read_notebook(folder, path.name))
            else:
                yield from self._walk(folder, ())
        finally:
            os.close(folder)

    def _walk(self, folder: int, above: tuple[str, ...]) -> Iterator[Found]:
        for part in self._names(folder, above):
            mode = 0
            with suppress(OSError):
                mode = os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode
            if part.lower().endswith(".ipynb"):
                self._notebooks += 1
                if self._notebooks > MOST_NOTEBOOKS:
                    self.unfinished = f"There are over {MOST_NOTEBOOKS:,} notebooks; the rest was not looked at."
                    self._cut_off = True
                    return
                yield Found((*above, part), lambda part=part: read_notebook(folder, part))  # type: ignore[misc]
            elif not stat.S_ISDIR(mode):
                self.others += 1
                shown = safe_name("/".join((*above, part)), 100)
                if part.lower().endswith(ARCHIVES) and len(self.archives) < MOST_NAMED:
                    self.archives.append(shown)
                if stat.S_ISLNK(mode) and leads_to_a_folder(folder, part) and len(self.links) < MOST_NAMED:
                    self.links.append(shown)
            elif len(above) >= DEEPEST:
                self.unfinished = f"Some folders lie over {DEEPEST} deep, and were not looked at."
                self._not_read_folders += 1
            else:
                try:
                    below = os.open(part, FOLDER, dir_fd=folder)
                except OSError as error:
                    self._not_read((*above, part), error)
                    continue
                before = self._notebooks, self._not_read_folders
                try:
                    yield from self._walk(below, (*above, part))
                finally:
                    os.close(below)
                if not above and not self._cut_off and before == (self._notebooks, self._not_read_folders):
                    self.without.append(safe_name(part, 100))

    def _names(self, folder: int, above: tuple[str, ...]) -> Sequence[str]:
        names = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._entries += 1
                    if self._entries > MOST_ENTRIES:
                        self.unfinished = f"There are over {MOST_ENTRIES:,} files; the rest was not looked at."
                        self._cut_off = True
                        break
                    if not entry.name.startswith(".") or entry.name.lower().endswith(".ipynb"):
                        names.append(entry.name)
        except OSError as error:
            self._not_read(above, error)
        return sorted(names)

    def _not_read(self, parts: tuple[str, ...], error: OSError) -> None:
        shown = safe_name("/".join(parts), 100)
        self._not_read_folders += 1
        self.unfinished = f"The folder {shown} was not looked at: {error.strerror}."


def leads_to_a_folder(folder: int, part: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(part, dir_fd=folder).st_mode)
    except OSError:
        return False


def cannot_read(path: Path, error: OSError | ValueError) -> OptionError:
    why = error.strerror if isinstance(error, OSError) else "no name that this computer could have"
    return OptionError(f"{safe_name(str(path), 200)}: {why}.", "Name a notebook, or a folder with notebooks.")


def read_notebook(folder: int, part: str) -> bytes:
    try:
        facts = os.stat(part, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(facts.st_mode):
            kind = "a folder" if stat.S_ISDIR(facts.st_mode) else KINDS.get(stat.S_IFMT(facts.st_mode), "no file")
            raise SourceError(f"is {kind}", "")
        if facts.st_size > MOST_READ:
            raise SourceError(f"has over {MOST_READ >> 20} MB", "")
        descriptor = os.open(part, FILE, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise SourceError("changed while it was read", "")
            return read_whole(descriptor, MOST_READ)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror}", "") from error


# Writing


def copy_all(path: Path, target: Path, home: Path, kernel: str, told: Callable[[Outcome], None]) -> Copies:
    """Copies the notebook at ``path``, or all below it, to ``target``; ``told`` hears of each when it is done.

    Raises OptionError where there is nothing to read, or ``target`` is not new, empty or of before; PyBoxError where
    it cannot be written.
    """
    reading = Reading()
    outcomes = []
    try:
        (home / "opened").mkdir(parents=True, exist_ok=True, mode=0o700)
        with file_lock(home / "opened" / "lock"):
            writing = None
            for found in reading.notebooks(path):
                writing = writing or Writing(target, path, home / "opened", kernel)
                outcomes.append(writing.take(found))
                told(outcomes[-1])
    except BrokenPipeError:  # whoever heard of the notebooks is gone
        raise
    except OSError as error:
        raise PyBoxError(
            f"{safe_name(error.filename or str(target), 200)} cannot be written: {error.strerror}.",
            "Make room, or name another folder with --to.",
        ) from error
    return Copies(
        target,
        tuple(outcomes),
        reading.others,
        tuple(reading.archives),
        tuple(reading.without),
        tuple(reading.links),
        reading.unfinished,
    )


class Writing:
    def __init__(self, target: Path, source: Path, records: Path, kernel: str) -> None:
        self._kernel = kernel
        self._done: dict[str, Copied] = {}
        self._taken: set[str] = set()
        target.mkdir(exist_ok=True)
        self._target = target.resolve()
        self._record = records / f"{hashlib.sha256(os.fsencode(self._target)).hexdigest()[:32]}.jsonl"
        facts = self._target.stat()
        self._place = Place(
            folder=repr(str(self._target)),
            device=facts.st_dev,
            inode=facts.st_ino,
            source=repr(os.path.realpath(source)),
        )
        if any(self._target.iterdir()):
            self._go_on()
        else:
            self._record.write_text(self._place.model_dump_json() + "\n", encoding="utf-8")

    def _go_on(self) -> None:
        shown = safe_name(str(self._target), 200)
        known, rest = None, []
        with suppress(OSError, ValueError):
            first, *rest = self._record.read_text(encoding="utf-8").splitlines()
            known = Place.model_validate_json(first)
        if (
            known is not None
            and known == self._place.model_copy(update={"source": known.source})
            and known != self._place
        ):
            raise OptionError(
                f"{shown} has the copies of {safe_name(known.source, 200)}, which is something else.",
                "Name a new folder with --to.",
            )
        if known != self._place:
            raise OptionError(
                f"{shown} is not empty, and `pybox-kernel open` did not make what is in it.",
                "Name a new folder with --to.",
            )
        for line in rest:
            with suppress(ValidationError):  # one that was being written
                copied = Copied.model_validate_json(line)
                if copied.copy_name:
                    self._done[copied.source] = copied
                    self._taken.add(copied.copy_name.casefold())

    def take(self, found: Found) -> Outcome:
        source = safe_name("/".join(found.parts), 1000)
        try:
            data = found.read()
            digest = hashlib.sha256(os.fsencode("/".join(found.parts)) + b"\0" + data).hexdigest()
            before = self._done.get(source)
            if before is not None and (self._target / before.copy_name).is_file():
                if before.digest != digest:
                    return Outcome(before, "copied before it changed; that copy is kept")
                if before.kernel == self._kernel:
                    return Outcome(before, "copied before")
                if (self._target / before.copy_name).read_bytes() != cleaned(data, before.kernel).data:
                    return Outcome(before, f"worked on since; it keeps the kernel {display_name(before.kernel)}")
            clean = cleaned(data, self._kernel)
        except SourceError as error:
            return Outcome(Copied(source=source, digest="", problem=f"It {error.message}."), "")
        name = before.copy_name if before is not None else self._name(found.parts)
        quotes = tuple(tuple(quote) for quote in clean.quotes)
        copied = Copied(
            source=source,
            digest=digest,
            copy_name=name,
            kernel=self._kernel,
            cells=clean.cells,
            counts=clean.counts,
            quotes=quotes,
        )
        with self._record.open("a", encoding="utf-8") as record:  # first, so that a copy is never nobody's
            record.write(f"\n{copied.model_dump_json()}")
        path = self._target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, clean.data)
        return Outcome(copied, "")

    def _name(self, parts: tuple[str, ...]) -> str:
        *folders, last = parts
        stem = "/".join([*map(safe_part, folders), safe_part(last[: -len(".ipynb")])])
        name = f"{stem}.ipynb"
        for number in range(2, MOST_NOTEBOOKS + 2):
            if name.casefold() not in self._taken and not (self._target / name).exists():
                break
            name = f"{stem}-{number}.ipynb"
        self._taken.add(name.casefold())
        return name


def safe_part(part: str) -> str:
    """A name that no computer takes for anything but a name, with as much of ``part`` as can be kept."""
    plain = unicodedata.normalize("NFC", part.encode("utf-8", "replace").decode())[:LONGEST_PART]
    plain = "".join(character if is_plain(character) else "_" for character in plain).strip(" .-")
    while len(plain.encode()) > 2 * LONGEST_PART:
        plain = plain[:-1]
    return plain if plain and not reserved(plain) else f"_{plain}"


def is_plain(character: str) -> bool:
    kept = character.isalnum() or character in PUNCTUATION or unicodedata.category(character) in ("Mn", "Mc")
    return kept and safe_name(character) == character
