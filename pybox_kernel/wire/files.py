"""A box's files as its frames bring them: bounded, each checked, each either taken or listed with the reason why not.

``D`` is a file's name and size, ``d`` its bytes, ``T`` the warden's account of all that there was. The warden is
trusted, the names and the bytes are the program's: what is out of bounds, or out of turn, raises BoxError.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from pybox_kernel.errors import BoxError
from pybox_kernel.files.box_files import InputFile, NotBrought, OutputFile, Spellings, amount, fault, reserved
from pybox_kernel.policy import Policy
from pybox_kernel.safe_display.text import safe_name
from pybox_kernel.wire.frames import AGAIN, LARGEST_FRAME, Count, Frame, Strict, encode

__all__ = ["FilesFromBox", "put_in", "question"]

LONGEST_NAME: Final = 8192
MOST_LISTED: Final = 64

Why = Literal["link", "pipe", "socket", "device", "hidden", "deep", "unreadable", "name", "big", "many", "room"]


class Header(Strict):
    name: Annotated[str, Field(max_length=LONGEST_NAME)]
    size: Count


class Skipped(Strict):
    name: Annotated[str, Field(max_length=LONGEST_NAME)]
    size: Count | None
    why: Why


class Account(Strict):
    found: Count
    """New or changed files that were looked at; not hidden ones."""
    skipped: Annotated[tuple[Skipped, ...], Field(max_length=MOST_LISTED)]
    not_listed: Count
    cut: Literal["time", "entries"] | None


def put_in(files: Sequence[InputFile]) -> bytes:
    """The frames that put ``files`` into a box."""
    frames = bytearray()
    for place, file in enumerate(files, 1):
        header = {"name": file.name, "size": len(file.data), "to_come": len(files) - place}
        frames += encode(b"I", json.dumps(header).encode())
        for start in range(0, len(file.data), LARGEST_FRAME):
            frames += encode(b"i", file.data[start : start + LARGEST_FRAME])
    return bytes(frames)


def question(policy: Policy, *, bring: bool) -> bytes:
    """What is asked of the warden once the program is dead."""
    asked = {
        "bring": bring,
        "files": policy.files,
        "bytes": policy.file_bytes,
        "depth": policy.file_depth,
        "entries": policy.inodes,
        "seconds": policy.collect_seconds,
    }
    return json.dumps(asked).encode()


class FilesFromBox:
    """What came out of one box."""

    def __init__(self, policy: Policy, inputs: Sequence[InputFile], *, bring: bool) -> None:
        self._policy = policy
        self._inputs: Mapping[str, bytes] = {file.name: file.data for file in inputs}
        self._bring = bring
        self._spellings = Spellings()
        self._header: Header | None = None
        self._data = bytearray()
        self._number = 0
        self._bytes = 0
        self.files: list[OutputFile] = []
        self.not_brought: list[NotBrought] = []
        self.not_listed = 0
        self.found: int | None = None
        """New or changed files in all; None where the account of them has not come."""
        self.incomplete: str | None = None
        """Why not everything was looked at."""

    @property
    def told(self) -> bool:
        """The account has come: there is no more."""
        return self.found is not None

    @property
    def most_bytes(self) -> int:
        """Of all frames that can come."""
        headers = self._policy.files * (LONGEST_NAME * 6 + 100) + self._policy.file_bytes // LARGEST_FRAME * 10
        return (self._policy.file_bytes + headers if self._bring else 0) + 2 * LARGEST_FRAME

    def leave_out(
        self, before: Mapping[str, str], kept: Collection[str] | None, digest_of: Callable[[bytes], str]
    ) -> None:
        """Files that earlier cells left are not the program's where it left them as they were. ``before`` are those,
        with their digests; ``kept`` those that it did not touch, by its own word, and None where it did not say: then
        what is in a file tells, and of those that did not come all count as they were."""
        if kept is None:
            self.files = [file for file in self.files if before.get(file.name) != digest_of(file.data)]
            kept = before
        else:
            self.files = [file for file in self.files if file.name not in kept]
        shown = sum(not any(part.startswith(".") for part in name.split("/")) for name in kept)
        self.found = max(0, self.found - shown) if self.found is not None else None

    def take(self, frame: Frame) -> None:
        if self.told:
            raise out_of_turn()
        if frame.kind == b"D" and self._header is None and self._bring:
            self._begin(frame.payload)
        elif frame.kind == b"d" and self._header is not None:
            self._add(frame.payload)
        elif frame.kind == b"T":
            self._close(frame.payload)
        else:
            raise out_of_turn()

    def _begin(self, payload: bytes) -> None:
        try:
            self._header = Header.model_validate_json(payload)
        except ValidationError as error:
            raise unreadable() from error
        self._number += 1
        self._bytes += self._header.size
        if self._number > self._policy.files or self._bytes > self._policy.file_bytes:
            raise BoxError("The box sent more files than were asked of it.", AGAIN)
        self._add(b"")

    def _add(self, data: bytes) -> None:
        assert self._header is not None
        self._data += data
        if len(self._data) > self._header.size:
            raise BoxError("The box sent more of a file than it had told.", AGAIN)
        if len(self._data) == self._header.size:
            self._end(self._header.name, bytes(self._data))
            self._header = None
            self._data.clear()

    def _end(self, name: str, data: bytes) -> None:
        if self._inputs.get(name) == data:
            return
        why = fault(self._policy, name) or reserved(name)
        if why is not None:
            self._refuse(name, len(data), f"its name {why}")
        elif self._spellings.meets(name) is not None:
            self._refuse(name, len(data), "some computers take its name for that of another file")
        else:
            self.files.append(OutputFile(name, data))

    def _refuse(self, name: str, size: int | None, why: str) -> None:
        self.not_brought.append(NotBrought(safe_name(name), size, why))

    def _close(self, payload: bytes) -> None:
        try:
            account = Account.model_validate_json(payload)
        except ValidationError as error:
            raise unreadable() from error
        seconds = f"{self._policy.collect_seconds:g} s"
        if self._header is not None:
            if account.cut != "time":
                raise out_of_turn()
            self._refuse(self._header.name, self._header.size, f"the {seconds} for taking files out were over")
            self._header = None
        if self._bring:
            for skipped in account.skipped:
                self._refuse(skipped.name, skipped.size, self._words(skipped.why))
            self.not_listed = account.not_listed
        if account.cut == "time":
            self.incomplete = f"looking through them took longer than {seconds}"
        elif account.cut == "entries":
            self.incomplete = f"there are more than {self._policy.inodes:,} files and folders"
        self.found = account.found

    def _words(self, why: Why) -> str:
        policy = self._policy
        return {
            "link": "it is a link, and links are not followed",
            "pipe": "it is a pipe, and no file",
            "socket": "it is a socket, and no file",
            "device": "it is a device, and no file",
            "hidden": "its name begins with a dot: it would be hidden",
            "deep": f"it lies more than {policy.file_depth} folders deep",
            "unreadable": "its mode does not let it be read",
            "name": "its name is not UTF-8",
            "big": f"it is larger than the {amount(policy.file_bytes)} that all files together may have",
            "many": f"there are more than {policy.files} files",
            "room": f"the files before it fill the {amount(policy.file_bytes)} that all together may have",
        }[why]


def unreadable() -> BoxError:
    return BoxError("What the box says of its files cannot be read.", AGAIN)


def out_of_turn() -> BoxError:
    return BoxError("The box's files came in the wrong order.", AGAIN)
