"""A sealed notebook whose cells build on each other, as a Jupyter client sees it."""

from __future__ import annotations

from typing import Any

import pytest

from pybox_kernel.carry.chain import Link, breaks
from pybox_kernel.signing.statement import Claim, Statement

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("boxes")]


def shown(cell: Any) -> str:
    assert cell.reply["content"]["status"] == "ok"
    [content] = cell.of("display_data")
    return str(content["data"]["text/plain"])


def link_of(cell: Any) -> Link:
    """What a notebook's file would have of the receipt, to be checked."""
    link = Link.of(carried(cell))
    assert link is not None
    return link


def carried(cell: Any) -> object:
    claim = Claim.of(cell.of("display_data")[-1]["metadata"])
    stated = Statement.of(claim.text) if claim is not None else None
    assert stated is not None
    return stated.carried


def number_of(cell: Any) -> int:
    return int(cell.reply["content"]["execution_count"])


def test_cells_build_on_each_other_and_a_person_sees_and_steers_it(kernel: Any) -> None:
    first = kernel.run("import random; random.seed(1); a = b = []\ndef f(): return len(b)")
    second = kernel.run("a.append(1); print(f(), random.random())")
    assert second.text("stdout") == "1 0.13436424411240122\n"
    links = [link_of(first), link_of(second)]
    assert breaks(links) == []
    assert {names for names, *_ in links[1].put_in} >= {"a,b", "f", "random", "(random)"}

    table = shown(kernel.run("%pybox carry"))
    assert f"cell [{number_of(second)}]" in table
    assert "a, b" in table
    assert "Dropped: a, b" in shown(kernel.run("%pybox carry drop b"))
    error = kernel.run("a").error
    assert error["ename"] == "NameError"
    assert "You dropped ‘a’" in error["traceback"][-1]
    kernel.run("%pybox carry back 2")
    assert kernel.run("print(a)").text("stdout") == "[1]\n"
    assert "Dropped all there was" in shown(kernel.run("%pybox carry clear"))
    assert "0 names carried" in shown(kernel.run("%pybox carry"))
    assert "as far as it goes" in kernel.run("%pybox carry back 999").error["traceback"][0]
    assert "none of its forms" in kernel.run("%pybox carry backwards").error["evalue"]


def test_a_cell_that_fails_changes_nothing_but_where_that_is_asked_for(kernel: Any) -> None:
    kernel.run("x = [1]")
    failed = number_of(kernel.run("x.append(2); y = 1; 1/0"))
    assert kernel.run("print(x)").text("stdout") == "[1]\n"
    told = kernel.run("y").error["traceback"][-1]
    assert told.startswith(f"\nPyBox: Cell [{failed}] defines ‘y’, but it did not run to its end")
    assert "Cell [" not in str(kernel.run("never_defined").error["traceback"])
    kernel.run("%pybox carry keep")
    kernel.run("x.append(2); y = 1; 1/0")
    assert kernel.run("print(x, y)").text("stdout") == "[1, 2] 1\n"
    kernel.run("%pybox carry on")


def test_what_could_not_be_carried_is_said_in_the_folded_line_and_where_it_is_missed(kernel: Any) -> None:
    cell = kernel.run("handle = open('x', 'w')")
    assert "1 value not carried" in cell.receipt_text.splitlines()[0]
    told = kernel.run("handle.write('')").error["traceback"][-1]
    assert told.startswith(f"\nPyBox: Cell [{number_of(cell)}] defines ‘handle’, which could not be carried")


def test_it_can_be_turned_off(kernel: Any) -> None:
    number = number_of(kernel.run("harvest = 3"))
    kernel.run("%pybox carry off")
    off = kernel.run("print(harvest)")
    told = f"\nPyBox: Cell [{number}] defines ‘harvest’, but each cell runs in a fresh box, and carrying values"
    assert off.error["traceback"][-1].startswith(told)
    assert carried(off) is None
    assert kernel.run("%%pybox --carry\nprint(harvest)").text("stdout") == "3\n"
    kernel.run("%pybox carry on")
    assert kernel.run("print(harvest)").text("stdout") == "3\n"


def test_a_kernel_that_is_restarted_has_nothing_and_may_begin_without(start_kernel: Any) -> None:
    with start_kernel(PYBOX_CARRY="keep") as kernel:
        kernel.run("kept = 1; 1/0")
        assert kernel.run("print(kept)").text("stdout") == "1\n"
        kernel.manager.restart_kernel(now=False)
        kernel.client.wait_for_ready(timeout=20)
        kernel.forget()
        assert kernel.run("kept").error["ename"] == "NameError"
    with start_kernel(PYBOX_CARRY="off") as kernel:
        assert "nothing is carried to the next" in kernel.ask("kernel_info_request", {})["banner"]
