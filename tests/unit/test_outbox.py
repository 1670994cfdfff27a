from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from pybox_kernel.outbox import MESSAGE_CHARACTERS, MESSAGE_SECONDS, Kind, Outbox
from pybox_kernel.safe_display import SafeText, safe_text

Sent = list[tuple[Kind, str, float]]


def delivered(fill: Callable[[Outbox], None]) -> Sent:
    """What is sent, with its time from the start, when ``fill`` runs in a thread of its own."""

    async def run() -> Sent:
        sent: Sent = []
        start = time.monotonic()
        outbox = Outbox(lambda kind, text: sent.append((kind, text, time.monotonic() - start)))
        task = asyncio.ensure_future(asyncio.to_thread(fill, outbox))
        await asyncio.wait_for(outbox.deliver(task), 10)
        await task
        return sent

    return asyncio.run(run())


def test_the_first_output_is_sent_at_once_and_the_last_is_sent() -> None:
    def fill(outbox: Outbox) -> None:
        outbox.output("stdout", safe_text("first"))
        time.sleep(0.5)
        outbox.output("stdout", safe_text("last"))

    [first, last] = delivered(fill)
    assert (first[:2], last[:2]) == (("stdout", "first"), ("stdout", "last"))
    assert first[2] < 0.1


def test_what_comes_faster_than_messages_may_is_put_together_in_order() -> None:
    def fill(outbox: Outbox) -> None:
        for number in range(300):
            outbox.output("stdout", safe_text(f"{number}\n"))
            time.sleep(0.002)

    sent = delivered(fill)
    assert "".join(text for _, text, _ in sent) == "".join(f"{number}\n" for number in range(300))
    assert 3 <= len(sent) <= 2 + sent[-1][2] / MESSAGE_SECONDS
    times = [at for _, _, at in sent]
    assert min(later - sooner for sooner, later in pairwise(times)) >= MESSAGE_SECONDS * 0.95


@pytest.mark.parametrize("character", ["a", "\N{BOX DRAWINGS LIGHT HORIZONTAL}", "\N{GRINNING FACE}"])
def test_no_message_is_over_64_kib_and_nothing_is_lost(character: str) -> None:
    text = SafeText(character * (2 * MESSAGE_CHARACTERS + 1))
    sent = delivered(lambda outbox: outbox.output("stderr", text))
    assert [kind for kind, _, _ in sent] == ["stderr"] * 3
    assert "".join(part for _, part, _ in sent) == text
    assert max(len(part.encode()) for _, part, _ in sent) <= 64 * 1024


def test_kinds_that_wait_together_are_sent_in_the_order_they_began_and_displays_on_lines_of_their_own() -> None:
    def fill(outbox: Outbox) -> None:
        outbox.output("stdout", safe_text("0"))
        time.sleep(MESSAGE_SECONDS / 4)
        outbox.display(safe_text("a"))
        outbox.output("stdout", safe_text("1"))
        outbox.display(safe_text("b"))
        outbox.output("stdout", safe_text("2"))
        outbox.output("stderr", safe_text(""))

    assert [(kind, text) for kind, text, _ in delivered(fill)] == [
        ("stdout", "0"),
        ("display", "a\nb"),
        ("stdout", "12"),
    ]


def test_a_run_that_fails_and_one_without_output_end_the_delivery() -> None:
    def fail(outbox: Outbox) -> None:
        outbox.output("stdout", safe_text("before"))
        raise LookupError

    with pytest.raises(LookupError):
        delivered(fail)
    assert delivered(lambda outbox: None) == []
