"""The sealed settings: one frozen value, and the little that a cell may choose.

A cell chooses its deadline, and its files; any other wish is an error, not an override. Numbers are from DESIGN
section 2 and are never retyped elsewhere: code, receipts and tests read them from here.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from pybox_kernel.errors import OptionError, SourceError

__all__ = [
    "DATA",
    "IMAGE_NAME",
    "KIB",
    "MIB",
    "STDLIB",
    "UID_FIRST",
    "UID_LAST",
    "Count",
    "Policy",
    "Quantity",
    "checked_deadline",
    "checked_source",
    "policy_for",
]

KIB: Final = 1024
MIB: Final = 1024 * 1024

UID_FIRST: Final = 10000
UID_LAST: Final = 59999

LONGEST_DEADLINE_SECONDS: Final = 30.0

Count = Annotated[int, Field(ge=0)]
Quantity = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Policy(BaseModel):
    """What a box is allowed. Bytes, seconds and counts; every field is a limit, never a wish."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    image: str
    memory_bytes: Count
    """Memory and swap together: the two limits are equal, so there is no swap."""
    cpu_cores: Quantity
    tasks: Count
    """Processes and threads together, the warden and the runner included."""
    deadline_seconds: Quantity
    longest_deadline_seconds: Quantity
    open_files: Count
    core_bytes: Count
    """1 and not 0: a limit of 0 does not stop a core handler that is a pipe (core(5), fs/coredump.c)."""
    locked_memory_bytes: Count
    message_queue_bytes: Count
    work_bytes: Count
    """Size of ``/box``, the working directory."""
    temporary_bytes: Count
    """Size of ``/tmp``."""
    shared_memory_bytes: Count
    inodes: Count
    """Files and folders in each of ``/box``, ``/tmp`` and ``/dev/shm``."""
    source_bytes: Count
    files: Count
    """Files put in, and files taken out; 0 where none are."""
    file_bytes: Count
    """Of all that are put in, and of all that are taken out."""
    file_depth: Count
    """Folders that a file may lie in, one in the other."""
    file_work_bytes: Count
    """Size of ``/box`` where files are put in or taken out."""
    collect_seconds: Quantity
    """How long taking files out may take."""
    kept_bytes: Count
    """Output kept of each stream: the first half and the last half."""
    release_seconds: Quantity
    """How long an ended box stays open for its meters to be read."""
    backstop_seconds: Quantity
    """How long after the deadline the supervisor ends a box whose own timer did not."""
    stop_seconds: Quantity
    """How long a box may take to answer a request to stop."""
    environment: tuple[tuple[str, str], ...]
    """Exactly the program's environment."""

    @property
    def environment_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.environment)

    def with_files(self) -> Policy:
        """Where files are put in or taken out."""
        return self.model_copy(update={"work_bytes": self.file_work_bytes})


STDLIB: Final = Policy(
    image="stdlib",
    memory_bytes=128 * MIB,
    cpu_cores=0.5,
    tasks=32,
    deadline_seconds=2.0,
    longest_deadline_seconds=LONGEST_DEADLINE_SECONDS,
    open_files=128,
    core_bytes=1,
    locked_memory_bytes=64 * KIB,
    message_queue_bytes=0,
    work_bytes=8 * MIB,
    temporary_bytes=8 * MIB,
    shared_memory_bytes=1 * MIB,
    inodes=1024,
    source_bytes=64 * KIB,
    files=64,
    file_bytes=8 * MIB,
    file_depth=8,
    file_work_bytes=64 * MIB,
    collect_seconds=2.0,
    kept_bytes=64 * KIB,
    release_seconds=2.0,
    backstop_seconds=1.0,
    stop_seconds=0.3,
    environment=(
        ("HOME", "/box"),
        ("LANG", "C.UTF-8"),
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONHASHSEED", "0"),  # the hash of a text is the same in each cell of a notebook
        ("TMPDIR", "/tmp"),  # noqa: S108 - a folder of the box, not of this computer
        ("TZ", "UTC"),
        ("USER", "box"),
    ),
)

DATA: Final = STDLIB.model_copy(
    update={
        "image": "data",
        "memory_bytes": 512 * MIB,
        "cpu_cores": 1.0,
        "tasks": 64,
        "work_bytes": 48 * MIB,
        "temporary_bytes": 16 * MIB,
        "environment": tuple(
            sorted(
                (
                    *STDLIB.environment,
                    ("MKL_NUM_THREADS", "1"),
                    ("MPLBACKEND", "agg"),
                    ("MPLCONFIGDIR", "/tmp/matplotlib"),  # noqa: S108 - a folder of the box, not of this computer
                    ("NUMEXPR_NUM_THREADS", "1"),
                    ("OMP_NUM_THREADS", "1"),
                    ("OPENBLAS_NUM_THREADS", "1"),
                )
            )
        ),
    }
)
"""One thread for linear algebra: the libraries start one a processor, which a box does not have and its limit of tasks
does not allow."""


IMAGE_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")


def policy_for(image: str) -> Policy:
    """The settings of a box of the image ``image``: ``stdlib``, ``data`` or a person's own. Raises OptionError for what
    is no name of an image."""
    if not IMAGE_NAME.fullmatch(image):
        raise OptionError(
            f"{image[:40]!r} is no name of an image: small letters, digits and hyphens.",
            "`pybox-kernel image list` lists those there are.",
        )
    return STDLIB if image == STDLIB.image else DATA.model_copy(update={"image": image})


def checked_deadline(policy: Policy, seconds: object) -> float:
    """The deadline a cell asked for, in seconds; ``None`` asks for the policy's own.

    Raises OptionError unless it is a finite number above 0 and at most ``policy.longest_deadline_seconds``.
    """
    if seconds is None:
        return policy.deadline_seconds
    longest = policy.longest_deadline_seconds
    wanted = f"a number of seconds above 0 and at most {longest:g}"
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float, str)):
        raise OptionError(f"The time limit is {type(seconds).__name__}, not {wanted}.", "Give a number, like 5 or 0.5.")
    try:
        value = float(seconds)
    except (ValueError, OverflowError):
        raise OptionError(
            f"The time limit {str(seconds)[:40]!r} is not {wanted}.", "Give a number, like 5 or 0.5."
        ) from None
    if not math.isfinite(value) or not 0 < value <= longest:
        raise OptionError(
            f"The time limit is {value:.12g} seconds; it must be {wanted}.", "Give a number, like 5 or 0.5."
        )
    return value


def checked_source(policy: Policy, source: object) -> bytes:
    """The program as UTF-8 bytes, exactly as given. ``source`` is text, or bytes that are UTF-8.

    Raises SourceError for what is neither, is over ``policy.source_bytes``, holds a NUL, or holds a lone surrogate.
    """
    if isinstance(source, str):
        try:
            data = source.encode("utf-8")
        except UnicodeEncodeError as error:
            line = source.count("\n", 0, error.start) + 1
            found = f"U+{ord(source[error.start]):04X}"
            raise SourceError(
                f"Line {line} of the program holds half of a character ({found}), which is not text.",
                "Delete that character, or write it as an escape like '\\ud800'.",
            ) from None
    elif isinstance(source, (bytes, bytearray)):
        data = bytes(source)
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise SourceError(
                f"The program is not UTF-8: byte {error.start} (line {line}) is 0x{data[error.start]:02x}.",
                "Save the file as UTF-8 and try again.",
            ) from None
    else:
        raise SourceError(f"The program is {type(source).__name__}, not text.", "Give the program's text.")
    if len(data) > policy.source_bytes:
        raise SourceError(
            f"The program has {len(data):,} bytes; the most a box takes is {policy.source_bytes:,}.",
            "Split it, or make the data it carries smaller.",
        )
    position = data.find(b"\0")
    if position >= 0:
        line = data.count(b"\n", 0, position) + 1
        raise SourceError(
            f"The program holds a NUL character at byte {position} (line {line}).",
            "Delete that character, or write it as the escape '\\0'.",
        )
    return data
