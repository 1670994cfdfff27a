"""What stands under a cell besides its output: the panel while it runs, the receipt, the summary of a session."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pybox_kernel.policy import STDLIB

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("boxes")]


VIEW = "application/vnd.jupyter.widget-view+json"


def open_control_comm(kernel: Any) -> None:
    """As a widget manager does when it connects."""
    content = {"comm_id": "page", "target_name": "jupyter.widget.control", "data": {}}
    message = kernel.client.session.msg("comm_open", content, metadata={"version": "1.0.0"})
    kernel.asked.add(message["header"]["msg_id"])
    kernel.client.shell_channel.send(message)


def ask_for_comms(kernel: Any) -> None:
    """As an older widget manager does."""
    assert kernel.ask("comm_info_request", {"target_name": "jupyter.widget"})["comms"] == {}


@pytest.mark.parametrize("connect", [open_control_comm, ask_for_comms])
def test_a_page_with_widgets_gets_a_panel_and_the_static_receipt_beside_it(start_kernel: Any, connect: Any) -> None:
    with start_kernel() as kernel:
        before = kernel.run("print(1)")
        connect(kernel)
        after = kernel.run("print(1)")
        comms = kernel.ask("comm_info_request", {"target_name": "jupyter.widget"})["comms"]
    assert set(before.of("display_data")[-1]["data"]) == {"text/plain", "text/html"}
    panel = after.of("display_data")[-1]["data"]
    assert set(panel) == {"text/plain", "text/html", VIEW}
    assert panel[VIEW]["model_id"] in comms


def test_a_kernel_that_is_shut_down_leaves_the_static_receipt_in_the_panels_place(start_kernel: Any) -> None:
    with start_kernel() as kernel:
        ask_for_comms(kernel)
        _, shown = kernel.run("print(1)").of("display_data")
        kernel.ask("shutdown_request", {"restart": False}, "control")
        messages = []
        while not any(message["msg_type"] == "shutdown_reply" for message in messages):
            messages.append(kernel.client.get_iopub_msg(timeout=5))
    update = next(message["content"] for message in messages if message["msg_type"] == "update_display_data")
    assert update["transient"] == shown["transient"]
    assert update["data"] == {kind: text for kind, text in shown["data"].items() if kind != VIEW}
    assert shown["data"][VIEW]["model_id"] in [
        message["content"]["comm_id"] for message in messages if message["msg_type"] == "comm_close"
    ]


@pytest.mark.parametrize(("wish", "kinds"), [("none", ["stream"]), ("static", ["stream", "display_data"])])
def test_the_receipts_look_can_be_chosen(start_kernel: Any, wish: str, kinds: list[str]) -> None:
    with start_kernel(PYBOX_RECEIPT=wish) as kernel:
        kernel.ask("comm_info_request", {"target_name": "jupyter.widget"})
        cell = kernel.run("print(1)")
    assert cell.kinds == kinds
    assert cell.of("comm_open") == []


# The panel while a cell runs


SLOW = "import time\nprint('begun', flush=True)\ntime.sleep(1)\nprint('done')"


@pytest.mark.alone
def test_the_panel_comes_within_a_tenth_of_a_second_and_is_gone_before_the_receipt(start_kernel: Any) -> None:
    with start_kernel() as kernel:
        ask_for_comms(kernel)
        for _ in range(2):  # the first makes its widgets
            asked = time.monotonic()
            cell = kernel.run(SLOW)
            shown = next(m for m in cell.messages if m["msg_type"] == "display_data")
            assert cell.times[cell.messages.index(shown)] - asked < 0.1
            gone = next(m for m in cell.messages if m["msg_type"] == "update_display_data")
            assert gone["content"]["transient"] == shown["content"]["transient"]
            assert gone["content"]["data"] == {"text/plain": ""}
            assert cell.kinds == ["display_data", "stream", "stream", "update_display_data", "display_data"]


def test_the_bar_moves_with_the_time_of_the_program(start_kernel: Any) -> None:
    with start_kernel() as kernel:
        ask_for_comms(kernel)
        values = [
            content["data"]["state"]["value"]
            for content in kernel.run(SLOW).of("comm_msg")
            if "value" in content["data"].get("state", {})
        ]
    times = [value.split("box: ")[1].split(" of ")[0] for value in values if " of 2 s" in value]
    assert len(times) >= 3
    assert times == sorted(times)
    assert float(times[-1]) >= 0.6


@pytest.mark.alone
def test_the_panels_button_stops_the_cell_while_it_runs(start_kernel: Any) -> None:
    with start_kernel() as kernel:
        ask_for_comms(kernel)
        msg_id = kernel.client.execute("print('begun', flush=True)\nwhile True: pass")
        opened = [kernel.until("comm_open", msg_id)["content"] for _ in range(8)]
        [button] = [c["comm_id"] for c in opened if c["data"]["state"]["_model_name"] == "ButtonModel"]
        kernel.until("stream", msg_id)
        data = {"method": "custom", "content": {"event": "click"}}
        click = kernel.client.session.msg("comm_msg", {"comm_id": button, "data": data})
        kernel.asked.add(click["header"]["msg_id"])
        kernel.client.shell_channel.send(click)
        pressed = time.monotonic()
        cell = kernel.wait(msg_id)
        assert cell.reply_time - pressed < 0.5
        assert cell.error["ename"] == "PyBoxStopped"
        assert "Stopped by you" in cell.receipt_text
        assert kernel.run("print('next')").text("stdout") == "next\n"


# Receipts that last


def test_a_receipt_that_is_no_longer_fresh_is_replaced_by_the_same_without_widgets(start_kernel: Any) -> None:
    with start_kernel(PYBOX_FRESH_SECONDS="0.5") as kernel:
        ask_for_comms(kernel)
        cell = kernel.run("print(1)")
        shown = cell.of("display_data")[-1]
        update = kernel.client.get_iopub_msg(timeout=5)
        assert update["msg_type"] == "update_display_data"
        assert update["parent_header"]["msg_id"] == cell.reply["parent_header"]["msg_id"]
        assert update["content"]["transient"] == shown["transient"]
        assert VIEW not in update["content"]["data"]
        kernel.forget()
        comms = kernel.ask("comm_info_request", {"target_name": "jupyter.widget"})["comms"]
        assert shown["data"][VIEW]["model_id"] in comms, "for a page that was saved with it"


def test_panels_do_not_pile_up(start_kernel: Any) -> None:
    with start_kernel() as kernel:
        ask_for_comms(kernel)
        opened: set[str] = set()
        counts = []
        for _ in range(16):
            cell = kernel.run("pass")
            opened |= {content["comm_id"] for content in cell.of("comm_open")}
            opened -= {content["comm_id"] for content in cell.of("comm_close")}
            counts.append(len(opened))
    assert counts[8:] == [counts[7]] * 8


# The summary


def test_a_summary_has_a_line_for_each_cell_that_ran_and_needs_no_box(kernel: Any, boxes: Any) -> None:
    kernel.run("print(1)")
    kernel.run("while True: pass")
    start = time.time()
    cell = kernel.run("%pybox summary")
    assert boxes.made_since(start) == 0
    [shown] = cell.of("display_data")
    assert "2 cells run in this session: 1 ended normally, 1 did not." in shown["data"]["text/plain"]
    assert f"Stopped at its {STDLIB.deadline_seconds:g} s limit" in shown["data"]["text/plain"]
    assert shown["data"]["text/html"].count("<tr>") == 3
    assert cell.reply["content"]["status"] == "ok"


def test_a_command_that_is_none_is_an_error_that_names_the_nearest(kernel: Any) -> None:
    assert "Did you mean `%pybox summary`?" in str(kernel.run("%pybox sumary").error["traceback"])
