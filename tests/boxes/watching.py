"""Runs of cells, with all that was shown of them in its order."""

from __future__ import annotations

from typing import NamedTuple

from pybox_kernel.policy import policy_for
from pybox_kernel.running.transcript import ProgramError
from pybox_kernel.safe_display.displays import Display
from pybox_kernel.sessions.session import RunResult, Session
from tests.escapes.running import without_colour


class Collector:
    """Keeps what is shown. Output of one stream that comes in pieces is one."""

    def __init__(self) -> None:
        self.shown: list[Display | tuple[str, str]] = []

    def started(self, deadline_seconds: float) -> None:
        return None

    def output(self, stream: str, text: str) -> None:
        last = self.shown[-1] if self.shown else None
        if isinstance(last, tuple) and last[0] == stream:
            self.shown[-1] = (stream, last[1] + text)
        else:
            self.shown.append((stream, text))

    def display(self, display: Display) -> None:
        self.shown.append(display)


class Watched(NamedTuple):
    result: RunResult
    shown: list[Display | tuple[str, str]]

    @property
    def ok(self) -> bool:
        assert self.result.receipt.problem is None, self.result.receipt.problem
        return self.result.receipt.ok

    @property
    def out(self) -> str:
        return self.result.stdout

    @property
    def err(self) -> str:
        return without_colour(self.result.stderr)

    @property
    def displays(self) -> list[Display]:
        return [one for one in self.shown if isinstance(one, Display)]

    @property
    def value(self) -> str | None:
        """The text of the last expression's value; None where none was shown."""
        found = [one.text for one in self.displays if one.result]
        assert len(found) <= 1
        return found[0] if found else None

    @property
    def order(self) -> list[str]:
        """All that was shown, as texts."""
        return [one.text if isinstance(one, Display) else one[1] for one in self.shown]

    @property
    def error(self) -> ProgramError:
        assert not self.ok
        assert self.result.error is not None
        return self.result.error

    @property
    def traceback(self) -> str:
        return without_colour(self.error.traceback)

    @property
    def about(self) -> tuple[str, str] | None:
        found = self.error.about
        return None if found is None else (found.kind, found.what)

    @property
    def withheld(self) -> dict[str, int]:
        return {held.what: held.bytes for held in self.result.receipt.said.withheld}


def watched(session: Session, source: str, deadline: float = 5.0, image: str = "stdlib") -> Watched:
    collector = Collector()
    result = session.run(source, deadline_seconds=deadline, watcher=collector, policy=policy_for(image))
    return Watched(result, collector.shown)
