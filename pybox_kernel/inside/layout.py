"""Text laid out over lines of a width, by Oppen's algorithm, in groups that are broken from the outside in.

As IPython's pretty printer does it, with the methods that its ``_repr_pretty_`` protocol has. Bounded: at most ITEMS
items of each collection, and LARGEST characters in all.
"""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Printer = Callable[[Any, "PrettyPrinter", bool], None]

WIDTH = 79
ITEMS = 1000
LARGEST = 100_000


class Enough(Exception):
    """The text has reached LARGEST."""


class Group:
    """What is broken over lines together: all its breakables or none."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.breakables: deque[Breakable] = deque()
        self.broken = False


class Breakable:
    def __init__(self, separator: str, indentation: int, group: Group) -> None:
        self.separator = separator
        self.indentation = indentation
        self.group = group
        group.breakables.append(self)


class GroupContext:
    def __init__(self, leave: Callable[[], None]) -> None:
        self.leave = leave

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self.leave()


class PrettyPrinter:
    """What ``_repr_pretty_(self, p, cycle)`` gets as ``p``. Oppen's algorithm: text is held back until it is known
    whether it fits on its line; where it does not, the outermost group that still can be is broken."""

    def __init__(self, printer_of: Callable[[object], Printer]) -> None:
        self.printer_of = printer_of
        self.written: list[str] = []
        self.size = 0
        self.column = 0
        self.held: deque[str | Breakable] = deque()
        self.held_width = 0
        self.indentation = 0
        self.groups = [Group(0)]
        self.breakable_groups: list[list[Group]] = [[self.groups[0]]]
        self.stack: list[int] = []
        self.verbose = False
        self.max_width = WIDTH
        self.max_seq_length = ITEMS

    # Output

    def write(self, text: str) -> None:
        self.written.append(text)
        self.size += len(text)
        if self.size > LARGEST:
            raise Enough

    def put(self, item: str | Breakable) -> None:
        """Writes one thing that was held back."""
        if isinstance(item, str):
            self.write(item)
            self.column += len(item)
            self.held_width -= len(item)
            return
        item.group.breakables.popleft()
        self.held_width -= len(item.separator)
        if item.group.broken:
            self.write("\n" + " " * item.indentation)
            self.column = item.indentation
        else:
            if not item.group.breakables:
                self.forget(item.group)
            self.write(item.separator)
            self.column += len(item.separator)

    def flush(self) -> None:
        while self.held:
            self.put(self.held.popleft())
        self.held_width = 0

    def new_line(self) -> None:
        self.flush()
        self.write("\n" + " " * self.indentation)
        self.column = self.indentation

    def forget(self, group: Group) -> None:
        if group in self.breakable_groups[group.depth]:
            self.breakable_groups[group.depth].remove(group)

    def outermost(self) -> Group | None:
        """The outermost group that can be broken, from now on broken."""
        for groups in self.breakable_groups:
            for group in reversed(groups):
                if group.breakables:
                    groups.remove(group)
                    group.broken = True
                    return group
            for group in groups:
                group.broken = True
            groups.clear()
        return None

    def break_group(self, group: Group) -> None:
        while group.breakables:
            self.put(self.held.popleft())
        while self.held and isinstance(self.held[0], str):
            self.put(self.held.popleft())

    def fit(self) -> None:
        while self.column + self.held_width > self.max_width:
            group = self.outermost()
            if group is None:
                return
            self.break_group(group)

    # What a ``_repr_pretty_`` may call

    def text(self, text: str) -> None:
        if not self.held:
            self.write(text)
            self.column += len(text)
            return
        self.held.append(text)
        self.held_width += len(text)
        if self.held_width > LARGEST:
            self.flush()
        self.fit()

    def breakable(self, separator: str = " ") -> None:
        group = self.groups[-1]
        if group.broken:
            self.new_line()
            return
        self.held.append(Breakable(separator, self.indentation, group))
        self.held_width += len(separator)
        self.fit()

    def break_(self) -> None:
        group = self.outermost()
        if group is not None:
            self.break_group(group)
        self.new_line()

    def begin_group(self, indent: int = 0, opening: str = "") -> None:
        if opening:
            self.text(opening)
        group = Group(self.groups[-1].depth + 1)
        self.groups.append(group)
        while len(self.breakable_groups) <= group.depth:
            self.breakable_groups.append([])
        self.breakable_groups[group.depth].append(group)
        self.indentation += indent

    def end_group(self, dedent: int = 0, close: str = "") -> None:
        self.indentation -= dedent
        group = self.groups.pop()
        if not group.breakables:
            self.forget(group)
        if close:
            self.text(close)

    def group(self, indent: int = 0, open: str = "", close: str = "") -> GroupContext:  # noqa: A002 - IPython's name
        self.begin_group(indent, open)
        return GroupContext(lambda: self.end_group(indent, close))

    def indent(self, indent: int) -> GroupContext:
        def leave() -> None:
            self.indentation -= indent

        self.indentation += indent
        return GroupContext(leave)

    def pretty(self, value: object) -> None:
        cycle = id(value) in self.stack
        self.stack.append(id(value))
        self.begin_group()
        try:
            self.printer_of(value)(value, self, cycle)
        finally:
            self.end_group()
            self.stack.pop()

    def _enumerate(self, items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        for number, item in enumerate(items):
            if number >= self.max_seq_length:
                self.text(",")
                self.breakable()
                self.text("...")
                return
            yield number, item
