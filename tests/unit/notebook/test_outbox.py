from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from pybox_kernel.notebook.outbox import BURST_MESSAGES, MESSAGE_CHARACTERS, MESSAGE_SECONDS, MOST_TEXTS, Outbox, Text
from pybox_kernel.safe_display.displays import Display
from pybox_kernel.safe_display.text import SafeText, safe_text

Sent = list[tuple[str, str, float]]


def delivered(fill: Callable[[Outbox], None]) -> Sent:
    """What is sent, with its time from the start, when ``fill`` runs in a thread of its own."""

    async def run() -> Sent:
        sent: Sent = []
        start = time.monotonic()

        def send(item: Text | Display) -> None:
            kind = item.stream if isinstance(item, Text) else "result" if item.result else "display"
            sent.append((kind, item.text, time.monotonic() - start))

        outbox = Outbox(send)
        task = asyncio.ensure_future(asyncio.to_thread(fill, outbox))
        await asyncio.wait_for(outbox.deliver(task), 10)
        await task
        return sent

    return asyncio.run(run())


def shown(text: str, *, result: bool = False) -> Display:
    return Display(result, safe_text(text))


def test_the_first_output_is_sent_at_once_and_the_last_is_sent() -> None:
    def fill(outbox: Outbox) -> None:
        outbox.output("stdout", safe_text("first"))
        time.sleep(0.5)
        outbox.output("stdout", safe_text("last"))

    [first, last] = delivered(fill)
    assert (first[:2], last[:2]) == (("stdout", "first"), ("stdout", "last"))
    assert first[2] < 0.4, "before the last has come"


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
def test_no_text_is_over_64_kib_and_nothing_is_lost(character: str) -> None:
    text = SafeText(character * (2 * MESSAGE_CHARACTERS + 1))
    sent = delivered(lambda outbox: outbox.output("stderr", text))
    assert [kind for kind, _, _ in sent] == ["stderr"] * 3
    assert "".join(part for _, part, _ in sent) == text
    assert max(len(part.encode()) for _, part, _ in sent) <= 64 * 1024


def test_displays_stand_where_they_were_shown_between_the_lines_of_the_program() -> None:
    def fill(outbox: Outbox) -> None:
        for number in range(3):
            outbox.output("stdout", safe_text(f"{number}a "))
            outbox.output("stdout", safe_text(f"{number}b "))
            outbox.display(shown(f"{number}c", result=number == 2))

    joined: list[tuple[str, str]] = []
    for kind, text, _ in delivered(fill):  # the first part of a text may be on its way before the next comes
        if joined and joined[-1][0] == kind == "stdout":
            joined[-1] = (kind, joined[-1][1] + text)
        else:
            joined.append((kind, text))
    assert joined == [
        ("stdout", "0a 0b "),
        ("display", "0c"),
        ("stdout", "1a 1b "),
        ("display", "1c"),
        ("stdout", "2a 2b "),
        ("result", "2c"),
    ]


def test_the_two_streams_between_displays_are_a_message_each_however_they_take_turns() -> None:
    def fill(outbox: Outbox) -> None:
        outbox.display(shown("x"))
        for number in range(1000):
            outbox.output("stderr", safe_text(f"e{number} "))
            outbox.output("stdout", safe_text(f"o{number} "))
        outbox.output("stderr", safe_text(""))

    sent = delivered(fill)
    assert len(sent) <= 5
    for stream, letter in (("stdout", "o"), ("stderr", "e")):
        text = "".join(part for kind, part, _ in sent if kind == stream)
        assert text == "".join(f"{letter}{number} " for number in range(1000))


def test_what_one_cell_may_display_comes_at_once_and_more_at_ten_a_second() -> None:
    def fill(outbox: Outbox) -> None:
        for number in range(BURST_MESSAGES + 5):
            outbox.display(shown(str(number), result=True))

    times = [at for _, _, at in delivered(fill)]
    assert times[BURST_MESSAGES - 1] < 0.5
    assert times[-1] >= 4 * MESSAGE_SECONDS


def test_a_run_that_fails_and_one_without_output_end_the_delivery() -> None:
    def fail(outbox: Outbox) -> None:
        outbox.output("stdout", safe_text("before"))
        raise LookupError

    with pytest.raises(LookupError):
        delivered(fail)
    assert delivered(lambda outbox: None) == []


def test_a_cell_that_takes_turns_has_few_outputs_and_loses_no_text() -> None:
    """JupyterLab folds away what comes after fifty, a receipt included."""

    def fill(outbox: Outbox) -> None:
        for number in range(30):
            outbox.output("stdout", safe_text(f"o{number} "))
            outbox.output("stderr", safe_text(f"e{number} "))
            outbox.display(shown(str(number)))
            time.sleep(0.01)

    sent = delivered(fill)
    outputs = [
        kind
        for kind, before in zip(sent, [("", "", 0.0), *sent], strict=False)
        if kind[0] != before[0] or kind[0] == "display"
    ]
    assert len(outputs) <= 30 + MOST_TEXTS + 2
    for stream, letter in (("stdout", "o"), ("stderr", "e")):
        text = "".join(part for kind, part, _ in sent if kind == stream)
        assert text == "".join(f"{letter}{number} " for number in range(30))
    assert [text for kind, text, _ in sent if kind == "display"] == [str(number) for number in range(30)]


def test_what_comes_together_with_the_end_of_the_run_is_all_sent() -> None:
    """A page is told nothing while this computer is busy, and then all of it at once."""

    async def run() -> list[Text | Display]:
        sent: list[Text | Display] = []
        outbox = Outbox(sent.append)
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        delivery = asyncio.ensure_future(outbox.deliver(over))
        await asyncio.sleep(0)  # it waits now
        for number in range(30):
            outbox.output("stdout", safe_text(f"{number} "))
            outbox.display(shown(str(number)))
        over.set_result(None)
        await asyncio.wait_for(delivery, 5)
        return sent

    sent = asyncio.run(run())
    texts = [item.text for item in sent if isinstance(item, Text)]
    assert "".join(texts) == "".join(f"{number} " for number in range(30))
    assert len(sent) - len(texts) == 30
    assert len(texts) <= MOST_TEXTS + 2
