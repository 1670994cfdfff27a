"""What of others' messages the kernel leaves out of the log: what says nothing on this computer, once for each cell."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from ipykernel.kernelapp import IPKernelApp

from pybox_kernel.__main__ import is_no_alarm_about_this_computer, is_not_about_a_closed_panel

TCP = "Kernel is running over TCP without encryption. All communication (including code and outputs) is sent in plain"


def record(message: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("x", logging.WARNING, __file__, 1, message, arguments, None)


@pytest.fixture
def app() -> Iterator[IPKernelApp]:
    yield IPKernelApp.instance()
    IPKernelApp.clear_instance()


@pytest.mark.parametrize(("address", "told"), [("127.0.0.1", False), ("::1", False), ("192.0.2.7", True)])
def test_that_all_can_be_read_on_the_way_is_told_where_the_way_leads_elsewhere(
    app: IPKernelApp, address: str, told: bool
) -> None:
    app.ip = address
    assert is_no_alarm_about_this_computer(record(TCP)) == told
    assert is_no_alarm_about_this_computer(record("something else"))


def test_that_a_panel_is_gone_is_not_told_and_all_else_is() -> None:
    assert not is_not_about_a_closed_panel(record("No such comm: %s", "fb249e37"))
    assert is_not_about_a_closed_panel(record("No such comm target registered: %s", "x"))
