"""The chain of a notebook's receipts, checked from themselves alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pybox_kernel.carry.chain import LONGEST_LINK, MOST_LISTED, breaks, link_of, link_text
from pybox_kernel.receipt.model import Receipt
from tests.receipts import carried, receipt
from tests.statements import links_in, metadata_of


def group(*names: str, run: int, sha: str = "8e", size: int = 100, kind: str = "") -> dict[str, Any]:
    return {
        "names": list(names),
        "more_names": 0,
        "kind": kind,
        "bytes": size,
        "sha256": sha * 32,
        "run": f"{run:08x}" * 4,
        "cell": run,
    }


def run(number: int, *put_in: dict[str, Any], out: Any = (), **more: Any) -> Receipt:
    return receipt(run__id=f"{number:08x}" * 4, observed__carried=carried(*put_in, out=out, **more))


def notebook(*receipts: Receipt) -> bytes:
    cells = [
        {"cell_type": "markdown", "source": ""},
        *(
            {
                "cell_type": "code",
                "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": "x"},
                    {"output_type": "display_data", "data": {}, "metadata": metadata_of(link_text(found))},
                ],
            }
            for found in receipts
        ),
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()


def broken(*receipts: Receipt) -> list[tuple[str, str]]:
    return [(found.names, found.why) for found in breaks(links_in(notebook(*receipts)))]


FIRST = run(1, out=[group("df", "copy", run=1), group(kind="random", run=1, sha="9f")])
RANDOM = group(kind="random", run=1, sha="9f")


def test_what_went_in_is_what_an_earlier_run_left() -> None:
    unchanged = run(2, group("df", "copy", run=1), RANDOM, out=[group("df", "copy", run=1), group("x", run=2)])
    third = run(3, group("df", "copy", run=1), group("x", run=2), RANDOM)
    taken_over = run(4, group("copy", run=1))
    assert broken(FIRST, unchanged, third, taken_over) == []
    assert broken(third, unchanged, FIRST) == []  # cells may be run in any order
    assert broken(receipt(), FIRST) == []


@pytest.mark.parametrize(
    ("put_in", "names", "why"),
    [
        (group("df", "copy", run=1, sha="00"), "df,copy", "left something else under that name"),
        (group("df", "copy", run=1, size=101), "df,copy", "left something else under that name"),
        (group("z", run=1), "z", "did not leave it"),
        (group("df", "z", run=1), "df,z", "did not leave it"),
        (group("df", run=7), "df", "is not here"),
        (group(kind="folder", run=1, sha="9f"), "(folder)", "did not leave it"),
        (group("random", run=1, sha="9f"), "random", "did not leave it"),
    ],
)
def test_what_no_run_left_breaks_the_chain(put_in: dict[str, Any], names: str, why: str) -> None:
    assert [(found, why in told) for found, told in broken(FIRST, run(2, put_in, RANDOM))] == [(names, True)]


def test_a_receipt_that_was_taken_out_of_the_file_breaks_it() -> None:
    assert [names for names, _ in broken(run(2, RANDOM))] == ["(random)"]


def test_what_is_not_listed_is_not_called_wrong_without_saying_so() -> None:
    many = [group(f"n{number}", run=1) for number in range(MOST_LISTED + 1)]
    assert broken(run(1, out=many), run(2, group("n3", run=1))) == []
    assert [why for _, why in broken(run(1, out=many), run(2, many[-1]))] == [
        "the run that it came from left more than its receipt lists"
    ]


def test_a_link_is_small_and_its_size_is_bounded() -> None:
    link = link_text(run(2, *[group(f"name{n}", run=1) for n in range(6)], out=[group("x", run=2)] * 2))
    assert len(link or "") < 440
    names = ["n" * 255] * 16
    large = run(2, *[group(*names, run=1)] * 256, out=[group(*names, run=2)] * 256)
    assert len(link_text(large) or "") < LONGEST_LINK
    assert link_text(receipt()) is None
    assert link_text(run(3)) is None


def test_a_cut_list_of_names_still_holds() -> None:
    names = [f"a_long_name_{number}" for number in range(16)]
    assert broken(run(1, out=[group(*names, run=1)]), run(2, group(*names, run=1))) == []


ENTRY = "a 1 " + "x" * 22


@pytest.mark.parametrize(
    "told",
    [
        None,
        1,
        [],
        {},
        "",
        "x" * 100_000,
        "1" * 32,
        f"{'1' * 31} 0<>",
        f"{'1' * 32} -1<>",
        f"{'1' * 32} 0<{ENTRY}>",
        f"{'1' * 32} 0<>{ENTRY} 11111111",
        f"{'1' * 32} 0<>a b 1 {'x' * 22}",
        f"{'1' * 32} 0<>a 1 {'<' * 22}",
        f"{'1' * 32} 0<>{'a' * 200} 1 {'x' * 22}",
        f"{'1' * 32} 0<>{';'.join([ENTRY] * 33)}",
        f"{'1' * 32} 0<>{ENTRY};",
    ],
)
def test_what_is_no_link_is_passed_over(told: object) -> None:
    document = json.loads(notebook(FIRST, run(2, RANDOM)))
    document["cells"][1]["outputs"][1]["metadata"] = metadata_of(told)
    found = links_in(json.dumps(document).encode())
    assert [link.run[:8] for link in found] == ["00000002"]
    assert [names for _, names, _ in breaks(found)] == ["(random)"]


def test_a_link_comes_back_as_it_went_out() -> None:
    assert links_in(notebook(FIRST)) == [link_of(FIRST)]
