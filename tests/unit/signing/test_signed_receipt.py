"""A receipt that stands alone, signed, and what is said of one that was changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybox_kernel.cli import main
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.signing.keys import SigningKeys
from pybox_kernel.signing.signed_receipt import ReceiptCheck, check_receipt, signed
from tests.receipts import receipt, samples


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> SigningKeys:
    made = SigningKeys(tmp_path_factory.mktemp("home"))
    made.create()
    return made


def test_each_kind_is_believed_in_every_layout_and_is_a_receipt_as_before(keys: SigningKeys) -> None:
    for name, found in samples().items():
        made = signed(found, keys)
        assert Receipt.from_json(made.to_json()) == made
        assert made.model_copy(update={"signed": None}) == found
        for text in (made.to_json(), made.to_json(indent=2), json.dumps(json.loads(made.to_json()))):
            assert check_receipt(text.encode(), keys.ring()) == ReceiptCheck("unchanged", ""), name
        assert "signed" not in json.loads(found.to_json())


def test_what_is_not_signed_here_is_not_believed(keys: SigningKeys, tmp_path: Path) -> None:
    other = SigningKeys(tmp_path)
    mine, theirs = signed(receipt(), keys), signed(receipt(), other)
    crossed = mine.model_copy(update={"signed": f"{mine.signed[:32]} {theirs.signed[33:]}"})  # type: ignore[index]
    for found, why in (
        (receipt(), "it is not signed"),
        (theirs, "it is signed with a key that is not known here"),
        (crossed, "its signature does not fit"),
    ):
        assert check_receipt(found.to_json().encode(), keys.ring()) == ReceiptCheck("not made here", why)
    assert check_receipt(theirs.to_json().encode(), other.ring()).ok
    other.rotate()
    assert check_receipt(theirs.to_json().encode(), other.ring()) == ReceiptCheck("unchanged", "", True)


def test_what_is_no_receipt_is_said(keys: SigningKeys) -> None:
    for data in (b"", b"{}", b"\xff", b"[" * 100_000, b'{"schema": "pybox.receipt/1"}'):
        assert check_receipt(data, keys.ring()).verdict == "no receipt"


def test_of_two_values_with_one_name_none_counts(keys: SigningKeys) -> None:
    """One program takes the first, another the last."""
    text = signed(receipt(), keys).to_json()
    forged = text.replace('"oom_kills":0', '"oom_kills":1,"oom_kills":0')
    assert forged != text
    assert check_receipt(forged.encode(), keys.ring()).verdict == "no receipt"


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    parts = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in parts:
        if isinstance(value, dict | list):
            yield from places(value, (*path, name))
        else:
            yield (*path, name)


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_anything_that_is_changed_is_found(data: st.DataObject, keys: SigningKeys) -> None:
    document = json.loads(signed(data.draw(st.sampled_from(list(samples().values()))), keys).to_json())
    path = data.draw(st.sampled_from(list(places(document))))
    holder: Any = document
    for name in path[:-1]:
        holder = holder[name]
    value = holder[path[-1]]
    new = data.draw(
        st.sampled_from([None, True, False, 0, 1, 1.5, "", f"{value} ", "x", [], {}])
        if not isinstance(value, str)
        else st.sampled_from([value[:-1], value + "0", value.swapcase(), value.replace("0", "1"), None, []])
    )
    if new == value:
        return
    holder[path[-1]] = new
    assert not check_receipt(json.dumps(document).encode(), keys.ring()).ok, (path, value, new)


def test_it_is_checked_at_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("PYBOX_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    made = signed(receipt(), SigningKeys())
    Path("good.json").write_text(made.to_json(indent=2))
    Path("bad.json").write_text(made.to_json().replace('"exit_code":0', '"exit_code":1'))
    assert main(["check", "good.json"]) == 0
    assert capsys.readouterr().out == "✓ good.json: made here, unchanged\n"
    assert main(["check", "good.json", "bad.json"]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == "■ bad.json: not known to be made here: its signature does not fit"
    assert main(["check", "--json", "bad.json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["verdict"] == "not made here"
