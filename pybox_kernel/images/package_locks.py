"""Locks of Python packages: exact versions with the hashes of their files, as ``uv pip compile --generate-hashes``
and ``pip-compile --generate-hashes`` write them.

A lock says which bytes are taken and nothing else: no option, address, path or condition is understood. Whatever is not
exactly of this form is refused with the number of its line.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, NoReturn

from pybox_kernel.errors import OptionError

__all__ = ["MOST_BYTES", "MOST_PACKAGES", "Lock", "LockedPackage", "normal_name", "parse_lock"]

MOST_BYTES: Final = 256 * 1024
MOST_PACKAGES: Final = 200

# Names by PEP 508, versions by PEP 440, in ASCII; the lengths keep every match cheap and every message short.
NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
EXTRAS: Final = re.compile(r"\[[A-Za-z0-9._, -]{0,200}\]")
VERSION: Final = re.compile(
    r"v?(?:[0-9]{1,9}!)?[0-9]{1,9}(?:\.[0-9]{1,9}){0,9}(?:[._-]?[a-z]{1,10}[._-]?[0-9]{0,9}){0,3}"
    r"(?:\+[a-z0-9]{1,40}(?:[._-][a-z0-9]{1,40}){0,5})?",
    re.IGNORECASE,
)
HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
COMMENT: Final = re.compile(r"(?:^|\s)#.*$")
SHOWN: Final = 60

PINS: Final = "Make the file with `uv pip compile --generate-hashes requirements.txt`, or let PyBox make it: `--from`."
INDEXES: Final = "Delete the line: package indexes are taken from pip's own configuration (`pip config set ...`)."
ONE_PLACE: Final = (
    "Make the lock for the box alone: Linux, and the Python version that `pybox-kernel image list` shows."
)


class LockedPackage(NamedTuple):
    name: str
    """In its normal form: lower case, with single hyphens."""
    version: str
    hashes: tuple[str, ...]
    """SHA-256 of each file that may be taken, in order."""


class Lock(NamedTuple):
    """Packages in order of name, so that two files that pin the same are the same lock."""

    packages: tuple[LockedPackage, ...]

    @property
    def text(self) -> str:
        """The lock as a file, which ``parse_lock`` reads back the same."""
        return "".join(
            f"{name}=={version}" + "".join(f" \\\n    --hash=sha256:{digest}" for digest in hashes) + "\n"
            for name, version, hashes in self.packages
        )


def normal_name(name: str) -> str:
    """One of the many spellings of a package's name, as indexes compare them (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_lock(data: bytes) -> Lock:
    """The lock in ``data``. Raises OptionError, and nothing else, for whatever is not a lock."""
    if len(data) > MOST_BYTES:
        raise OptionError(
            f"The lock has over {MOST_BYTES // 1024} KiB.", "Lock fewer packages, or only those that the box needs."
        )
    found: dict[str, LockedPackage] = {}
    for number, words in _entries(_text(data)):
        package = _package(number, words)
        if package.name in found:
            _refuse(number, f"{package.name} is there a second time", PINS)
        found[package.name] = package
        if len(found) > MOST_PACKAGES:
            _refuse(number, f"there are more than {MOST_PACKAGES} packages", "Lock only what the box needs.")
    if not found:
        raise OptionError("The lock names no package.", PINS)
    return lock_of(found.values())


def lock_of(packages: Iterable[LockedPackage]) -> Lock:
    return Lock(tuple(sorted(packages)))


def _text(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(data.count(b"\n", 0, error.start) + 1, "it is not UTF-8", "Save the file as UTF-8.")
    for number, line in enumerate(text.split("\n"), start=1):
        for character in line.removesuffix("\r"):
            if character != "\t" and unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp"):
                _refuse(number, f"it holds the control character U+{ord(character):04X}", "Delete that character.")
    return text


def _entries(text: str) -> Iterator[tuple[int, list[str]]]:
    """Each package's words, with the number of its first line; a backslash at the end carries a line on."""
    words: list[str] = []
    start, carried_on = 0, False
    for number, raw in enumerate(text.split("\n"), start=1):
        line = COMMENT.sub("", raw.removesuffix("\r")).strip()
        if not carried_on:
            if not line:
                continue
            words, start = [], number
        goes_on = line.endswith("\\")
        here = line.removesuffix("\\").split()
        if carried_on and not here:
            _refuse(number, "the line before it is carried on, and nothing follows", PINS)
        words += here
        carried_on = goes_on
        if not goes_on:
            yield start, words
    if carried_on:
        _refuse(start, "its last line is carried on, and nothing follows", PINS)


def _package(number: int, words: list[str]) -> LockedPackage:
    hashes = []
    while words and (digest := HASH.fullmatch(words[-1])):
        hashes.append(digest[1])
        words = words[:-1]
    pin = " ".join(words)
    if pin.startswith("-"):
        _refuse(number, f"{_shown(pin)} is an option", INDEXES)
    if "@" in pin or "://" in pin or pin.startswith((".", "/", "~", "\\")):
        _refuse(number, f"{_shown(pin)} is an address or a path", "Pin a version of an index: NAME==VERSION.")
    if ";" in pin:
        _refuse(number, f"{_shown(pin)} has a condition", ONE_PLACE)
    if "--hash" in pin:
        _refuse(number, f"{_shown(pin)} has a hash that is not --hash=sha256: and 64 digits", PINS)
    name, equals, version = pin.partition("==")
    name, bracket, extras = name.partition("[")
    # What an extra asks for stands in the lock itself, as packages of their own.
    if not NAME.fullmatch(name) or (bracket and not EXTRAS.fullmatch(bracket + extras)):
        _refuse(number, f"{_shown(pin)} is not NAME==VERSION", PINS)
    if not equals or not VERSION.fullmatch(version):
        _refuse(number, f"{_shown(pin)} does not say one exact version", PINS)
    if not hashes:
        _refuse(number, f"{_shown(pin)} has no hash", PINS)
    return LockedPackage(normal_name(name), version.lower(), tuple(sorted(set(hashes))))


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 2] + " …")


def _refuse(number: int, why: str, advice: str) -> NoReturn:
    raise OptionError(f"Line {number} of the lock: {why}.", advice)
