"""A receipt document: it comes back as it went out, and is refused for every way in which it can be wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from pybox_kernel.receipt.model import Meters, Receipt
from tests.receipts import NEVER_STARTED, receipt

Path = tuple[str | int, ...]

MAY_BE_LEFT_OUT = {"text", "traceback"}
OF_CARRYING = {
    "carry", "carried", "why_missing", "detail", "lost", "lost_more", "not_restored", "not_restored_more",
}  # fmt: skip
"""What receipts of cells that carry nothing have always done without."""
OF_VALUES = {"values", "values_wanted", "values_not_brought"}
"""What receipts of cells that neither get nor give values have always done without."""
OF_ENGINES = {"engine_used", "require_vm", "another_machine", "machine", "facts", "warning"}
"""What receipts have done without from before engines were chosen and their machines seen."""
NAMED = ("asked", "options", "engine")
MAY_BE_NULL = {
    "engine_used", "machine", "version", "runtime", "runtime_version", "warning",
    "image", "uid", "source", "exit_code", "signal", "kind", "id", "removed", "error", "problem", "text", "traceback",
    "wall", "cell", "output_folder", "saved_in", "carried", "why_nothing", "why_missing", "detail",
    "waited",
    *Meters.model_fields,
} - {"final"}  # fmt: skip


def full() -> Receipt:
    """A receipt in which no list is empty."""
    return receipt(
        **{
            **NEVER_STARTED,
            "observed__box": {
                "id": "4e" * 32,
                "removed": True,
                "waited": {
                    "since": "2031-05-04T10:20:18.023+00:00",
                    "seconds": 12.1,
                    "steps": [{"name": "made", "offset_ms": 0.0, "duration_ms": 1.0}],
                },
            },
            "observed__seal": {
                "before_start": False,
                "engine": {
                    "checked": 38,
                    "differences": [{"setting": "memory", "wanted": "128 MB", "found": "256 MB"}],
                },
                "kernel": {"checked": 24, "source": "this computer", "differences": []},
                "inside": {"checked": 19, "differences": []},
            },
            "observed__end": {
                "how": "not_started",
                "exit_code": None,
                "signal": None,
                "evidence": ["no byte was sent"],
            },
            "said__withheld": [{"what": "image/png", "bytes": 20, "number": 1}],
            "said__files": [{"name": "a.txt", "bytes": 1, "sha256": "5a" * 32}],
            "said__not_brought": [{"name": "l", "bytes": 1, "why": "it is a link"}],
            "asked__options__inputs": [{"name": "b.txt", "bytes": 2, "sha256": "5b" * 32, "source": "../b.txt"}],
            "asked__options__output_folder": "out",
            "observed__saved_in": "out-2",
            "said__error": "ValueError",
            "said__wall": {
                "kind": "name",
                "what": "df",
                "cell": 3,
                "why_missing": "lost",
                "detail": "DataFrame: too large",
            },
            "asked__options__carry": "on",
            "asked__options__engine": "vm",
            "asked__options__require_vm": True,
            "asked__options__another_machine": True,
            "observed__boundary__machine": "private VM",
            "observed__boundary__facts": ["so it was"],
            "observed__engine_used__warning": "old",
            "observed__carried": {
                "put_in": [
                    {
                        "names": ["a", "b"],
                        "more_names": 1,
                        "kind": "",
                        "bytes": 20,
                        "sha256": "6a" * 32,
                        "run": "7b" * 16,
                        "cell": 2,
                    }
                ],
                "put_in_more": 1,
                "kept_back": 2,
                "kept_back_bytes": 30,
                "taken_out": [
                    {
                        "names": [],
                        "more_names": 0,
                        "kind": "random",
                        "bytes": 20,
                        "sha256": "6a" * 32,
                        "run": "7b" * 16,
                        "cell": 2,
                    }
                ],
                "taken_out_more": 1,
                "why_nothing": "its account of it cannot be read",
            },
            "asked__options__values": [
                {"name": "df", "kind": "table of pandas", "shape": [3, 2], "bytes": 90, "sha256": "8a" * 32}
            ],
            "asked__options__values_wanted": ["n", "x"],
            "said__values": [{"name": "n", "kind": "number", "shape": [0], "bytes": 9, "sha256": "8b" * 32}],
            "said__values_not_brought": [{"name": "x", "why": "did not come"}],
            "said__lost": [{"name": "f", "type": "TextIOWrapper", "why": "an open file"}],
            "said__lost_more": 1,
            "said__not_restored": [{"names": ["c"], "more_names": 0, "kind": "", "why": "ValueError"}],
            "said__not_restored_more": 1,
            "unknown": [{"what": "boundary", "why": "not looked at"}],
            "problem": {"code": "not_sealed", "message": "It was not.", "advice": "Mend it."},
        }
    )


def document(source: Receipt | None = None) -> Any:
    return json.loads((source or full()).to_json())


def paths(value: Any, above: Path = ()) -> Iterator[Path]:
    """The path of every value in a document, that of the whole left out."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*above, key)
        yield from paths(child, (*above, key))


def at(found: Any, path: Path) -> Any:
    for key in path:
        found = found[key]
    return found


def refused(found: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Receipt.from_json(json.dumps(found))
    return str(caught.value)


ALL = list(paths(document()))
FIELDS = [path for path in ALL if isinstance(path[-1], str)]
OBJECTS = [(), *(path for path in ALL if isinstance(at(document(), path), dict))]


def name(path: Path) -> str:
    return ".".join(map(str, path)) or "the whole"


# Out and back


@pytest.mark.parametrize("source", [receipt(), full()], ids=["clean", "full"])
def test_a_receipt_comes_back_as_it_went_out(source: Receipt) -> None:
    for text in (source.to_json(), source.to_json(indent=2), source.to_json().encode()):
        assert Receipt.from_json(text) == source


def test_its_json_is_ascii_and_begins_with_its_version() -> None:
    source = receipt(said__error="Fehler\u202e\u00e9\U0001f600")
    text = source.to_json()
    assert text.isascii()
    assert text.startswith('{"schema":"pybox.receipt/1","run":')
    assert Receipt.from_json(text) == source


def test_its_outline_is_that_of_the_schema() -> None:
    found = document(receipt())
    assert list(found) == ["schema", "run", "asked", "observed", "said", "unknown", "problem"]
    assert list(found["observed"]) == [
        "seal",
        "end",
        "meters",
        "boundary",
        "steps",
        "box",
        "carried",
        "engine_used",
        "saved_in",
    ]
    assert {"before_start", "engine", "kernel", "inside"} == set(found["observed"]["seal"])
    assert {"checked", "source", "differences"} == set(found["observed"]["seal"]["kernel"])
    assert {"final", "memory_peak_bytes", "oom_kills", "tasks_peak", "task_limit_hits", "cpu_seconds",
            "cpu_throttled_periods"} <= set(found["observed"]["meters"])  # fmt: skip
    assert {"completed", "stdout", "stderr", "displays", "withheld", "files"} <= set(found["said"])


def test_a_receipt_cannot_be_changed() -> None:
    source = receipt()
    for part, field in (
        (source, "problem"),
        (source.observed.end, "how"),
        (source.said.stdout, "bytes"),
        (source.run, "id"),
    ):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(part, field, None)


# Wrong in one place


@pytest.mark.parametrize("path", FIELDS, ids=name)
def test_a_field_left_out_is_refused(path: Path) -> None:
    found = document()
    del at(found, path[:-1])[path[-1]]
    if path[-1] in MAY_BE_LEFT_OUT:
        assert Receipt.from_json(json.dumps(found)) == full()
    elif path[-1] in OF_CARRYING | OF_VALUES | OF_ENGINES or path == NAMED:
        assert Receipt.from_json(json.dumps(found)) != full()
    else:
        assert str(path[-1]) in refused(found)


@pytest.mark.parametrize("path", OBJECTS, ids=name)
def test_a_field_too_many_is_refused(path: Path) -> None:
    found = document()
    at(found, path)["one_more"] = 1
    assert "one_more" in refused(found)


@pytest.mark.parametrize("path", ALL, ids=name)
def test_a_value_of_another_kind_is_refused(path: Path) -> None:
    """Not even one that could be made to fit: ``"1"`` for 1, 1 for true."""
    value = at(document(), path)
    others: list[Any] = [{"x": 1}, [1], "other", "1", "true", 1, 1.5, True]
    for other in others:
        fits_null = value is None and not isinstance(other, (dict, list))
        if fits_null or type(other) is type(value) or (isinstance(value, float) and other == 1 and other is not True):
            continue
        found = document()
        at(found, path[:-1])[path[-1]] = other
        refused(found)


@pytest.mark.parametrize("path", ALL, ids=name)
def test_a_null_stands_only_where_something_may_be_unknown(path: Path) -> None:
    found = document()
    at(found, path[:-1])[path[-1]] = None
    if path == ("said", "not_brought", 0, "bytes"):  # what is no file has none
        return
    if path == NAMED:
        return
    if path[-1] not in MAY_BE_NULL or path in (("run", "id"), ("run", "image", "id"), ("asked", "policy", "image")):
        refused(found)


@pytest.mark.parametrize("schema", ["pybox.receipt/2", "pybox.receipt/0", "pybox.receipt/1 ", "", None, 1])
def test_another_version_is_refused(schema: object) -> None:
    refused({**document(), "schema": schema})


def test_the_models_own_name_of_the_version_is_refused() -> None:
    found = document()
    found["schema_"] = found.pop("schema")
    refused(found)


@pytest.mark.parametrize("how", ["", "ok", "timeout", "Exited", "killed"])
def test_an_end_that_is_none_is_refused(how: str) -> None:
    found = document()
    found["observed"]["end"]["how"] = how
    refused(found)


@pytest.mark.parametrize("path", [path for path in ALL if type(at(document(), path)) in (int, float)], ids=name)
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), float("-inf")])
def test_a_count_or_a_time_below_nothing_or_beyond_all_is_refused(path: Path, value: float) -> None:
    found = document()
    at(found, path[:-1])[path[-1]] = value
    refused(found)


@pytest.mark.parametrize("field", ["source_sha256", "id"])
@pytest.mark.parametrize("value", ["", "0" * 31, "Z" * 64, "A" * 64, "0" * 65, "../../x"])
def test_an_id_or_a_hash_of_another_form_is_refused(field: str, value: str) -> None:
    found = document()
    found["run"][field] = value
    refused(found)


@pytest.mark.parametrize("code", [-1, 256, 1 << 40])
def test_an_exit_code_that_no_program_has_is_refused(code: int) -> None:
    found = document(receipt())
    found["observed"]["end"]["exit_code"] = code
    refused(found)


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "1", '"pybox.receipt/1"', "{", "{}", '{"schema":"pybox.receipt/1"}', "[" * 5000]
)
def test_what_is_no_receipt_at_all_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        Receipt.from_json(text)


# Wrong as a whole


@pytest.mark.parametrize("meter", [field for field in Meters.model_fields if field != "final"])
def test_a_meter_that_is_null_in_silence_is_refused(meter: str) -> None:
    found = document(receipt())
    found["observed"]["meters"][meter] = None
    assert f"{meter} is null and not listed as unknown" in refused(found)
    found["unknown"] = [{"what": meter, "why": "this kernel does not count it"}]
    assert Receipt.from_json(json.dumps(found)).unknown[0].what == meter


@pytest.mark.parametrize("how", ["exited", "signal", "box_lost", "warden_failed"])
def test_an_exit_that_is_null_in_silence_is_refused(how: str) -> None:
    found = document(receipt())
    found["observed"]["end"] |= {"how": how, "exit_code": None}
    assert "the exit code is null and not listed as unknown" in refused(found)
    found["unknown"] = [{"what": "exit_code", "why": "two records differ"}]
    assert not Receipt.from_json(json.dumps(found)).ok


@pytest.mark.parametrize("how", ["deadline", "stopped"])
def test_a_program_that_was_stopped_has_no_exit_code_of_its_own(how: str) -> None:
    found = document(receipt())
    found["observed"]["end"] |= {"how": how, "exit_code": None}
    assert Receipt.from_json(json.dumps(found)).observed.end.exit_code is None


def test_a_removal_that_is_null_in_silence_is_refused() -> None:
    found = document(receipt())
    found["observed"]["box"]["removed"] = None
    assert "whether the box is gone is null and not listed as unknown" in refused(found)


def test_a_start_without_a_seal_is_refused() -> None:
    found = document(receipt())
    found["observed"]["seal"]["before_start"] = False
    assert "the program started although the seal was not verified" in refused(found)


@pytest.mark.parametrize("look", ["engine", "kernel", "inside"])
def test_a_seal_called_verified_with_a_look_missing_or_a_difference_is_refused(look: str) -> None:
    found = document(receipt())
    found["observed"]["seal"][look]["checked"] = 0
    assert "a look is missing or found a difference" in refused(found)
    found = document(receipt())
    found["observed"]["seal"][look]["differences"] = [{"setting": "a", "wanted": "b", "found": "c"}]
    assert "a look is missing or found a difference" in refused(found)


# What it says of itself


@pytest.mark.parametrize(
    "change",
    [
        {"observed__end": {"how": "exited", "exit_code": 1, "signal": None, "evidence": []}},
        {"observed__end": {"how": "deadline", "exit_code": None, "signal": None, "evidence": []}},
        {"observed__end": {"how": "signal", "exit_code": 139, "signal": "SIGSEGV", "evidence": []}},
        {"said__completed": False},
        {"problem": {"code": "box", "message": "a", "advice": "b"}},
    ],
)
def test_only_a_normal_end_by_itself_is_ok(change: dict[str, Any]) -> None:
    assert receipt().ok
    assert not receipt(**change).ok
