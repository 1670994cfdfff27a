"""Untrusted bytes and text into text that is safe to show, in a terminal and on a page. The only such door.

What comes out holds nothing but printable characters, newline, tab, and colour (``ESC [ digits ; ... m``),
which is reset at the end. In particular:

- Bytes that are not UTF-8 become one replacement mark each, and are counted.
- Colour means bold, faint, italic, underlined, struck through, inverse, and the two colours. Concealed,
  blinking and the like are taken out of the list they stand in.
- Every other escape sequence is dropped whole, 7-bit or 8-bit. One that does not end by its own rules ends
  before the first character that cannot belong to it; a string (a title, the clipboard, an image) also
  before the next newline; any of them after ``LONGEST_SEQUENCE`` characters, and at the end of the stream.
  What follows is shown.
- Carriage return, backspace and "erase line" change the current line, as in a terminal. What was shown
  already cannot be taken back: a line that differs from it is shown again on a line of its own, once, when
  it is complete.
- Whatever else is invisible, or changes the order of what stands around it, is shown escaped, like
  ``\\x00`` or ``\\u202e``: controls, lone surrogates, bidirectional and zero-width characters, soft
  hyphens, fillers, tags. Kept are what writing needs: a joiner after an emoji or after a letter of a script
  that joins, a selector after a character that has a text and an emoji form, and up to ``STACK`` marks on
  one letter.

The result does not depend on how the input was cut, and cleaning what is clean changes nothing.
"""

from __future__ import annotations

import codecs
import re
from itertools import groupby
from operator import itemgetter
from typing import Final, Literal, NewType

from pybox_kernel.safe_display.characters import CONDITIONAL, ESCAPED, ESCAPED_IN_NAMES, STACK, without_unwanted
from pybox_kernel.safe_display.colour import colour_changes

__all__ = [
    "LONGEST_LINE",
    "LONGEST_SEQUENCE",
    "SafeText",
    "StreamCleaner",
    "safe_name",
    "safe_text",
    "without_colour",
]

SafeText = NewType("SafeText", str)
"""Text that passed this door. Made here only."""

LONGEST_SEQUENCE: Final = 4096
LONGEST_LINE: Final = 4096
"""The longest line that carriage return and backspace can change; in a longer one they begin a new line."""
LONGEST_COLOUR: Final = 64
RESET: Final = "\x1b[0m"
LEFT_OUT: Final = "\n… the rest is left out …"


# Lines and sequences

TEXT: Final = re.compile("[^\r\b\x1b\x90\x98\x9b\x9d\x9e\x9f]+")
COLOUR: Final = re.compile(f"\x1b\\[([0-9;]{{0,{LONGEST_COLOUR}}})m")
COLOUR_LIST: Final = re.compile(f"[0-9;]{{0,{LONGEST_COLOUR}}}\\Z")
CONTROL_MIDDLE: Final = re.compile("[ -?]*")
ANY_COLOUR: Final = re.compile("\x1b\\[[0-9;]*m")
PARTIAL_COLOUR: Final = re.compile("\x1b[^m]*\\Z")
BAD_BYTE: Final = re.compile("[\udc80-\udcff]")
STRING_END: Final = re.compile("[\x07\x18\x1a\x1b\x9c\n]")

State = Literal["ground", "escape", "control", "string"]
OPENERS: Final[dict[str, State]] = {"[": "control"}
OPENERS.update(dict.fromkeys("]PX^_", "string"))
OPENERS_8_BIT: Final[dict[str, State]] = {chr(ord(opener) + 0x40): state for opener, state in OPENERS.items()}

Part = tuple[str, str]
"""Colour and text."""


class TextCleaner:
    """One stream of characters. ``take`` returns what can be shown so far, ``end`` the rest."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.before = ""  # the last characters shown, for those that depend on what stands before them
        self.painted = ""  # the colour of what was last shown
        self.slots = [""] * 8
        self.colour = ""
        self.state: State = "ground"
        self.body = ""  # the beginning of the sequence under way
        self.length = 0
        self.new_line()

    def take(self, text: str) -> str:
        text = text.replace("\r\n", "\n")  # only for speed: a line that did not change is not shown again
        position, end = 0, len(text)
        while position < end:
            if self.state != "ground":
                position = self.in_sequence(text, position)
            elif text[position] == "\r":
                self.hold()
                self.cursor = 0
                position += 1
            elif text[position] == "\b":
                self.hold()
                self.cursor = max(0, self.cursor - 1)
                position += 1
            elif found := TEXT.match(text, position):
                self.write(found[0])
                position = found.end()
            elif found := COLOUR.match(text, position):
                self.paint(found[1])
                position = found.end()
            else:
                self.begin(OPENERS_8_BIT.get(text[position], "escape"))
                position += 1
        return self.flush()

    def end(self) -> str:
        self.show_held_line()
        if self.painted:
            self.out.append(RESET)
        return self.flush()

    def flush(self) -> str:
        shown = "".join(self.out)
        self.out.clear()
        return shown

    # Sequences

    def begin(self, state: State) -> None:
        self.state, self.body, self.length = state, "", 0

    def in_sequence(self, text: str, start: int) -> int:
        """Goes on in the sequence under way; the position of the first character not used up."""
        limit = start + LONGEST_SEQUENCE - self.length
        if start >= limit:
            self.state = "ground"
            return start
        if self.state == "string":
            stop = self.in_string(text, start, limit)
        elif self.state == "control":
            stop = self.in_control(text, start, limit)
        else:
            stop = self.in_escape(text[start], start)
        self.length += stop - start
        return stop

    def in_string(self, text: str, start: int, limit: int) -> int:
        found = STRING_END.search(text, start, limit)
        if found is None:
            return min(limit, len(text))
        self.state = "ground"
        return found.start() if found[0] in "\n\x1b" else found.end()

    def in_control(self, text: str, start: int, limit: int) -> int:
        found = CONTROL_MIDDLE.match(text, start, limit)
        middle = found[0] if found else ""
        self.body = (self.body + middle)[: LONGEST_COLOUR + 1]
        stop = start + len(middle)
        if stop == min(limit, len(text)):
            return stop
        self.state = "ground"
        if not "@" <= text[stop] <= "~":
            return stop
        if text[stop] == "m" and COLOUR_LIST.match(self.body):
            self.paint(self.body)
        elif text[stop] == "K" and self.body in ("", "0", "2"):
            self.erase(whole=self.body == "2")
        return stop + 1

    def in_escape(self, character: str, start: int) -> int:
        if not self.body and character in OPENERS:
            self.begin(OPENERS[character])
        elif " " <= character <= "/":
            self.body = character
        else:
            self.state = "ground"
            return start + 1 if "0" <= character <= "~" else start
        return start + 1

    def paint(self, parameters: str) -> None:
        for slot, value in colour_changes(parameters):
            self.slots[slot] = value
        self.colour = ";".join(filter(None, self.slots))

    # The current line

    def new_line(self) -> None:
        self.columns = 0  # how much of this line was shown
        self.shown: list[Part] | None = []  # what of it was shown; None: too much to be changed
        self.cells: list[Part] | None = None  # where it is being changed: the line now, one part a character
        self.original: list[Part] = []  # as it was when that began
        self.cursor = 0

    def write(self, text: str) -> None:
        while text and self.cells is not None:
            text = self.overwrite(self.cells, text)
        if not text:
            return
        self.show(text, self.colour)
        newline = text.rfind("\n")
        if newline >= 0:
            self.new_line()
            text = text[newline + 1 :]
        self.columns += len(text)
        if self.columns > LONGEST_LINE:
            self.shown = None
        elif self.shown is not None and text:
            self.shown.append((self.colour, text))

    def hold(self) -> list[Part]:
        """The current line's characters, to be changed; no more of it is shown until it is complete."""
        if self.cells is None:
            self.cells = [(colour, character) for colour, text in self.shown or () for character in text]
            self.original = self.cells.copy()
            self.cursor = len(self.cells)
        return self.cells

    def erase(self, whole: bool) -> None:
        cells = self.hold()
        if whole:
            self.cursor = 0
        del cells[self.cursor :]

    def overwrite(self, cells: list[Part], text: str) -> str:
        """Writes into the held line as far as it goes; the text after it."""
        newline = text.find("\n")
        part = (text if newline < 0 else text[:newline])[: LONGEST_LINE - self.cursor]
        colour = self.colour
        cells[self.cursor : self.cursor + len(part)] = [(colour, character) for character in part]
        self.cursor += len(part)
        if len(part) == len(text):
            return ""
        self.show_held_line()
        self.new_line()
        if len(part) == newline:
            self.show_newline()
            return text[newline + 1 :]
        self.columns, self.shown = LONGEST_LINE + 1, None
        return text[len(part) :]

    def show_held_line(self) -> None:
        if not self.cells or self.cells == self.original:
            return
        if self.columns:
            self.show_newline()
        for colour, cells in groupby(self.cells, itemgetter(0)):
            self.show("".join(character for _, character in cells), colour)

    def show_newline(self) -> None:
        self.out.append("\n")
        self.before = ""

    def show(self, text: str, colour: str) -> None:
        if colour != self.painted:
            reset = "0;" if colour and self.painted else ""
            self.out.append(f"\x1b[{reset}{colour or '0'}m")
            self.painted = colour
        if not (text.isascii() and text.isprintable()):
            text = text.translate(ESCAPED)
        if text.isascii():
            self.before = text[-1:]
        else:
            whole = self.before + text
            self.before = whole[-STACK:]
            if CONDITIONAL.search(text):
                text = without_unwanted(whole, len(whole) - len(text))
        self.out.append(text)


# The door


class StreamCleaner:
    """One stream of bytes. Never raises, whatever the bytes."""

    def __init__(self) -> None:
        self.bad_bytes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._text = TextCleaner()

    def feed(self, data: bytes) -> SafeText:
        return SafeText(self._text.take(self._decoded(data, final=False)))

    def close(self) -> SafeText:
        """What is still to be shown at the end of the stream. Another stream may follow; bad bytes add up."""
        rest = self._text.take(self._decoded(b"", final=True)) + self._text.end()
        self._text = TextCleaner()
        return SafeText(rest)

    def _decoded(self, data: bytes, final: bool) -> str:
        text, bad = BAD_BYTE.subn("\ufffd", self._decoder.decode(data, final))
        self.bad_bytes += bad
        return text


def safe_text(text: str | bytes, most: int = 256 * 1024) -> SafeText:
    """A whole text of at most ``most`` characters; where the rest was left out, a last line says so."""
    if isinstance(text, bytes):
        stream = StreamCleaner()
        shown = stream.feed(text) + stream.close()
    else:
        cleaner = TextCleaner()
        shown = cleaner.take(text) + cleaner.end()
    if len(shown) > most:
        kept = PARTIAL_COLOUR.sub("", shown[: max(0, most - len(RESET) - len(LEFT_OUT))])
        last = kept.rfind("\x1b")
        shown = kept + (RESET if last >= 0 and not kept.startswith(RESET, last) else "") + LEFT_OUT
    return SafeText(shown)


def without_colour(text: SafeText) -> SafeText:
    return SafeText(ANY_COLOUR.sub("", text))


def safe_name(text: str, most: int = 200) -> SafeText:
    """One line of at most ``most`` characters: a name, or a message. Nothing is dropped: whatever cannot be
    shown, newline and tab included, is shown escaped."""
    shown = without_unwanted(text[: most + 1].translate(ESCAPED_IN_NAMES), 0)
    return SafeText(shown if len(shown) <= most else shown[: most - 1] + "…")
