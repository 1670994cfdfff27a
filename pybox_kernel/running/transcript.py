"""What a program printed, displayed and reported: bounded by the warden, made safe piece by piece, shown at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from pybox_kernel.receipt.model import Stream, WallKind, Withheld
from pybox_kernel.running.display_door import DisplayDoor, Form
from pybox_kernel.safe_display.displays import Display
from pybox_kernel.safe_display.html_cleaner import CleanedHtml
from pybox_kernel.safe_display.text import SafeText, StreamCleaner, safe_name, safe_text
from pybox_kernel.wire.frames import DisplayEvent, Ended, ErrorEvent, read_event

__all__ = ["About", "Display", "ProgramError", "StreamName", "Transcript", "Watcher"]

StreamName = Literal["stdout", "stderr"]
MOST_WITHHELD: Final = 100


class Watcher(Protocol):
    """Is told of a run while it goes on, from the thread that runs it, in order. What it raises ends the run."""

    def started(self, deadline_seconds: float) -> None:
        """The program's clock has started."""
        ...

    def output(self, stream: StreamName, text: SafeText) -> None: ...

    def display(self, display: Display) -> None: ...


@dataclass(frozen=True)
class About:
    """Which of the box's walls an exception met, by the program's word."""

    kind: WallKind
    what: SafeText


@dataclass(frozen=True)
class ProgramError:
    """The exception that the program reported: its word, made safe to show."""

    name: SafeText
    value: SafeText
    traceback: SafeText
    about: About | None = None


class Transcript:
    """What a program printed and displayed, bounded by the warden, made safe piece by piece."""

    def __init__(self, watcher: Watcher | None, clean_html: Callable[[str], CleanedHtml]) -> None:
        self._watcher = watcher
        self._cleaners: dict[StreamName, StreamCleaner] = {
            "stdout": StreamCleaner(),
            "stderr": StreamCleaner(),
        }
        self._parts: dict[StreamName, list[SafeText]] = {"stdout": [], "stderr": []}
        self._bytes: dict[StreamName, int] = {"stdout": 0, "stderr": 0}
        self._tails: dict[StreamName, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self.error: ProgramError | None = None
        self._door = DisplayDoor(clean_html, self.withhold)
        self._withheld: dict[str, tuple[int, int]] = {}

    def head(self, stream: StreamName, data: bytes) -> None:
        self._bytes[stream] += len(data)
        self._show(stream, self._cleaners[stream].feed(data))

    def tail(self, stream: StreamName, data: bytes) -> None:
        self._tails[stream] += data

    def event(self, payload: bytes) -> None:
        event = read_event(payload)
        if isinstance(event, ErrorEvent):
            about = About(event.about.kind, safe_name(event.about.what)) if event.about is not None else None
            self.error = ProgramError(safe_name(event.name), safe_text(event.value), safe_text(event.traceback), about)
        elif isinstance(event, DisplayEvent):
            display = self._door.pass_on(event, len(payload))
            if display is not None and self._watcher is not None:
                self._watcher.display(display)
        else:
            self.withhold("displays that could not be read", len(payload[1:]))

    @property
    def displays(self) -> Mapping[Form, int]:
        """How many were shown, by the form they were shown in."""
        return self._door.shown

    def withhold(self, what: str, size: int, number: int = 1) -> None:
        """Kinds by name as far as there are few of them, the rest together; so no flood of one hides another."""
        if what not in self._withheld and len(self._withheld) >= MOST_WITHHELD:
            what = "other kinds"
        number_before, size_before = self._withheld.get(what, (0, 0))
        self._withheld[what] = number_before + number, size_before + size

    @property
    def withheld(self) -> tuple[Withheld, ...]:
        found = self._withheld.items()
        return tuple(Withheld(what=what, bytes=size, number=number) for what, (number, size) in found)

    def finish(self, ended: Ended | None) -> dict[StreamName, Stream]:
        """Ends both streams: what was dropped between their two parts is said in a line of its own."""
        streams: dict[StreamName, Stream] = {}
        for stream in self._cleaners:
            cleaner = self._cleaners[stream]
            tail = bytes(self._tails[stream])
            held = self._bytes[stream] + len(tail)
            seen = held if ended is None else getattr(ended.streams, stream).bytes
            if seen > held:
                self._show(stream, cleaner.close())
                bad = cleaner.bad_bytes
                self._show(stream, SafeText(f"\n… {seen - held:,} bytes not kept …\n"))
                cleaner = StreamCleaner()
            else:
                bad = 0
            self._show(stream, cleaner.feed(tail))
            self._show(stream, cleaner.close())
            streams[stream] = Stream(bytes=max(seen, held), kept=held, bad_bytes=bad + cleaner.bad_bytes)
        return streams

    def text(self, stream: StreamName) -> SafeText:
        return SafeText("".join(self._parts[stream]))

    def _show(self, stream: StreamName, text: SafeText) -> None:
        if text:
            self._parts[stream].append(text)
            if self._watcher is not None:
                self._watcher.output(stream, text)
