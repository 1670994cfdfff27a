"""What a receipt says in plain words: every way to end, every trouble, and nothing that is not in the receipt."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from pybox_kernel import errors
from pybox_kernel.policy import STDLIB
from pybox_kernel.receipt.model import Receipt
from pybox_kernel.render.ending import NOT_RUN
from pybox_kernel.render.words import Words, words
from tests.receipts import NEVER_STARTED, NO_ENGINE, NO_EXIT_CODE, ended, not_read, receipt, samples

UNFINISHED: dict[str, Any] = {"said__completed": False}
WROTE = {"bytes": 12, "kept": 12, "bad_bytes": 0}
CUT = {"bytes": 900_000, "kept": STDLIB.kept_bytes, "bad_bytes": 0}
NOTHING = {"bytes": 0, "kept": 0, "bad_bytes": 0}
PROBLEM = {"code": "engine_timeout", "message": "The engine does not answer.", "advice": "Restart it."}


def signalled(name: str, number: int) -> dict[str, Any]:
    return {"observed__end": ended("signal", code=128 + number, signal=name), **UNFINISHED}


def told(found: Words, label: str) -> str:
    return " ".join(" ".join(section.sentences) for section in found.main if section.heading == label)


def section(found: Words, heading: str) -> str:
    return " ".join(" ".join(part.sentences) for part in found.sections if part.heading == heading)


@pytest.mark.parametrize(
    ("changes", "folded"),
    [
        ({}, "✓ Ended normally · 0.3 of 2 s · sealed: no network, none of your files"),
        (
            {"said__stdout": CUT},
            "✓ Ended normally · beginning and end of the output kept · 0.3 of 2 s"
            " · sealed: no network, none of your files",
        ),
        (
            {"said__withheld": [{"what": "text/html", "bytes": 9, "number": 1}]},
            "✓ Ended normally · 1 thing withheld · 0.3 of 2 s · sealed: no network, none of your files",
        ),
        (
            {"said__files": [{"name": "a.csv", "bytes": 9, "sha256": "0" * 64}]},
            "✓ Ended normally · 1 file saved · 0.3 of 2 s · sealed: no network, none of your files",
        ),
        (
            {"observed__boundary__kind": "other_kernel"},
            "✓ Ended normally · 0.3 of 2 s · sealed: no network, none of your files · another kernel, not identified",
        ),
        (
            {"observed__meters__oom_kills": 1, "observed__meters__ran_seconds": 1.41},
            "⚠ Ended without an error code, but part of it was killed for memory"
            " · results may be incomplete · 1.4 of 2 s · sealed",
        ),
        (
            {"observed__meters__oom_kills": None, "unknown": not_read("oom_kills")},
            "⚠ Ended without an error code, but whether part of it was killed for memory is not known"
            " · results may be incomplete · 0.3 of 2 s · sealed",
        ),
        (
            {"observed__meters__task_limit_hits": 3},
            f"⚠ Ended without an error code, but it met its limit of {STDLIB.tasks} processes and threads"
            " · results may be incomplete · 0.3 of 2 s · sealed",
        ),
        (
            {"observed__box__removed": None, "unknown": not_read("removed")},
            "⚠ Ended without an error code, but its box is not confirmed gone · 0.3 of 2 s · sealed",
        ),
        (
            {"observed__box__removed": False},
            "✗ Ended without an error code, but its box is still there · 0.3 of 2 s · sealed",
        ),
        (
            {"problem": PROBLEM},
            "✗ Ended without an error code, but PyBox could not do all of its part · 0.3 of 2 s · sealed",
        ),
        (
            {"observed__end": ended("exited", code=1), "said__error": "ValueError", **UNFINISHED},
            "✗ Ended with an error · it says ValueError · 0.3 of 2 s · sealed",
        ),
        (
            {"observed__end": ended("exited", code=1), "observed__meters__oom_kills": 2, **UNFINISHED},
            "✗ Ended with exit code 1 · part of it was killed for memory · 0.3 of 2 s · sealed",
        ),
        (
            {"observed__end": ended("exited", code=137), **UNFINISHED},
            "✗ Ended with exit code 137 · 0.3 of 2 s · sealed",
        ),
        (
            {"observed__end": ended("exited", code=124), **UNFINISHED},
            "✗ Ended with exit code 124 · 0.3 of 2 s · sealed",
        ),
        (
            {"observed__end": ended("exited"), "unknown": not_read("exit_code"), **UNFINISHED},
            "✗ Ended by itself; its exit code is not known · 0.3 of 2 s · sealed",
        ),
        (UNFINISHED, "✗ Left early, before its last line · no error code · 0.3 of 2 s · sealed"),
        (
            signalled("SIGSEGV", 11),
            "✗ Crashed in native code (segmentation fault) · 0.3 of 2 s · sealed",
        ),
        (signalled("SIGABRT", 6), "✗ Crashed in native code (abort) · 0.3 of 2 s · sealed"),
        (signalled("SIGKILL", 9), "✗ Killed; cause not established · 0.3 of 2 s · sealed"),
        (
            {**signalled("SIGKILL", 9), "observed__meters__oom_kills": 1},
            "✗ Killed for memory · 0.3 of 2 s · sealed",
        ),
        (
            {
                **signalled("SIGKILL", 9),
                "observed__meters__oom_kills": None,
                "unknown": not_read("oom_kills"),
            },
            "✗ Killed; cause not established · whether part of it was killed for memory is not known"
            " · 0.3 of 2 s · sealed",
        ),
        (signalled("SIGTERM", 15), "✗ Ended by a signal (asked to end) · 0.3 of 2 s · sealed"),
        (signalled("signal 40", 40), "✗ Ended by a signal · 0.3 of 2 s · sealed"),
        (
            {"observed__end": ended("deadline"), **UNFINISHED},
            "◷ Stopped at its 2 s limit · output so far kept · sealed",
        ),
        (
            {"observed__end": ended("deadline"), "said__stdout": NOTHING, **UNFINISHED},
            "◷ Stopped at its 2 s limit · sealed",
        ),
        (
            {
                "observed__end": ended("deadline"),
                "asked__options__deadline_seconds": 0.25,
                "said__files": [{"name": "a.csv", "bytes": 9, "sha256": "0" * 64}],
                **UNFINISHED,
            },
            "◷ Stopped at its 0.25 s limit · output so far kept · 1 file saved, maybe incomplete · sealed",
        ),
        (
            {"observed__end": ended("deadline"), "observed__meters__oom_kills": 1, **UNFINISHED},
            "◷ Stopped at its 2 s limit · part of it was killed for memory · output so far kept · sealed",
        ),
        (
            {"observed__end": ended("stopped"), **UNFINISHED},
            "◷ Stopped by you · output so far kept · 0.3 of 2 s · sealed",
        ),
        (
            {"observed__end": ended("box_lost", code=137), **UNFINISHED},
            "✗ The box ended without its last report · cause not established · output so far kept"
            " · 0.3 of 2 s · sealed",
        ),
        (
            {"observed__end": ended("box_lost", code=137), "observed__meters__oom_kills": 1, **UNFINISHED},
            "✗ The box ended without its last report · part of it was killed for memory"
            " · output so far kept · 0.3 of 2 s · sealed",
        ),
        (
            {
                "observed__end": ended("warden_failed"),
                "problem": PROBLEM,
                "unknown": [NO_EXIT_CODE],
                **UNFINISHED,
            },
            "✗ PyBox's own part in the box failed · output so far kept · 0.3 of 2 s · sealed",
        ),
        (NO_ENGINE, "■ Not run: no container engine answers. Your code never started."),
        (
            {**NEVER_STARTED, "problem": PROBLEM, "observed__box__removed": False},
            "■ Not run: the container engine does not answer in time."
            " Your code never started. · its box is still there",
        ),
        (
            {**NEVER_STARTED, "problem": {**PROBLEM, "code": "of a later version"}},
            "■ Not run: PyBox could not do its part. Your code never started.",
        ),
        (NEVER_STARTED, "■ Not run: it was stopped before it began. Your code never started."),
    ],
)
def test_the_folded_line(changes: dict[str, Any], folded: str) -> None:
    elsewhere = "observed__boundary__kind" in changes or changes.get("observed__end", {}).get("how") == "not_started"
    assert words(receipt(**changes)).folded == folded + " · this computer's kernel" * (not elsewhere)


def test_a_clean_run_needs_no_more_than_its_line() -> None:
    assert words(receipt()).main == ()
    assert section(words(receipt()), "Not known") == "Whether the answer is right: PyBox does not judge that."


def test_a_run_that_lost_a_part_to_memory() -> None:
    found = words(samples()["memory"])
    assert told(found, "seen").endswith("Linux killed 1 process for memory; the most in use was 128 of 128 MB.")
    assert told(found, "not known") == "Which part was killed, and what was lost."
    assert told(found, "try") == "Less data at a time."


def test_a_run_that_met_its_deadline() -> None:
    found = words(samples()["deadline"])
    assert told(found, "seen") == (
        "Still running at 2 s; it and everything it had started were stopped. The box's own timer ended it at 2 s."
    )
    assert told(found, "not known") == "Whether it would have finished."
    assert told(found, "try") == (
        "Less work at a time, or up to 30 s: %%pybox --timeout 30 as the first line (at a shell, add --timeout 30)."
    )
    longest = {"asked__options__deadline_seconds": STDLIB.longest_deadline_seconds, "observed__meters__cpu_seconds": 9}
    found = words(receipt(observed__end=ended("deadline"), **UNFINISHED, **longest))
    assert told(found, "try") == "Less work at a time."


def test_a_box_that_was_not_sealed() -> None:
    found = words(samples()["not_sealed"])
    assert found.differences == (("network", "no network", "a network connection"),)
    assert told(found, "do") == "Run `pybox-kernel doctor`. Do not switch kernels to get round this."
    assert section(found, "The program says") == "Nothing: it never started."
    assert found.meters == ()


def test_many_differences_are_not_all_listed() -> None:
    one = {"setting": "s", "wanted": "w", "found": "f"}
    look = {"checked": 38, "differences": [one] * 12}
    found = words(receipt(**{**NO_ENGINE, "observed__seal__engine": look}))
    assert len(found.differences) == 9
    assert found.differences[-1].setting == "and 4 more"


def test_an_exit_code_is_the_programs_own_number() -> None:
    seen = told(words(samples()["exit_137"]), "seen")
    assert seen == (
        "Ended by itself, with exit code 137. That number is the program's own: no time limit ended it,"
        " and nobody stopped it. Exit codes wrap at 256: 393 shows as 137 too."
    )
    assert "wrap" not in told(words(samples()["error"]), "seen")
    assert "one of 256 would look the same" in told(words(samples()["left_early"]), "seen")


def test_what_the_program_says_is_put_as_its_word() -> None:
    said = section(words(samples()["busy"]), "The program says")
    assert said == (
        "Its word, not checked. It reached its last line."
        " 2 kB of output; 5 bytes of it not text, shown as \ufffd. 77 bytes of error output."
        " 9 displays: 3 pictures, 1 table, 2 formatted texts, 3 plain texts."
        " Withheld: SVG picture (image/svg+xml), 12 kB."
        " Withheld: parts of HTML (text/html), 2 times, 740 bytes."
        " Withheld: PNG picture (image/png): not a PNG, 9 bytes."
        " Withheld: more than a cell may display, 4,900 times, 1.2 MB."
    )
    said = section(words(samples()["deadline"]), "The program says")
    assert said == (
        "Its word, not checked."
        " 3.3 MB of output, of which the beginning and the end are kept (64 kB)."
        " Not that it reached its last line."
    )
    assert section(words(samples()["error"]), "The program says").startswith(
        "Its word, not checked. Its error is ZeroDivisionError."
    )


def test_what_was_not_read_is_said_with_its_reason_once() -> None:
    not_known = section(words(samples()["box_lost"]), "Not known")
    assert not_known == (
        "Whether the program had finished, and what was lost."
        " Whether anything was killed for memory, whether it was refused a process or thread,"
        " how much processor time it used, how often its processor was held back, how long it ran:"
        " the box was gone before they could be read."
    )
    assert "All amounts are from the last look" in section(words(samples()["box_lost"]), "Seen from outside")
    found = words(receipt(unknown=[{"what": "the_weather", "why": "no window"}]))
    assert "The weather: no window." in section(found, "Not known")


def test_the_order_of_two_streams_is_not_known() -> None:
    both = receipt(said__stdout=WROTE, said__stderr=WROTE)
    sentence = "In which order output and error output were written"
    assert section(words(both), "Not known").count(sentence) == 1
    assert section(words(samples()["busy"]), "Not known").count(sentence) == 1
    assert sentence not in section(words(receipt()), "Not known")


def test_a_weaker_witness_is_named() -> None:
    seen = section(words(receipt(observed__seal__kernel__source="the box's own reading")), "Seen from outside")
    assert "Part of that was read from within the box, before your code was in it." in seen


def test_the_boundary_is_said_or_not_known() -> None:
    assert "No virtual machine" in section(words(receipt()), "Seen from outside")
    for kind, note, sentence in (
        ("private_vm", "in a private VM (QEMU, KVM)", "In a private VM (QEMU, KVM) (so; and so)"),
        ("another_machine", "on another machine", "your program and its files went there"),
    ):
        boundary = {"kind": kind, "evidence": "so", "machine": "private VM (QEMU, KVM)", "facts": ["and so"]}
        found = words(receipt(observed__boundary=boundary))
        assert found.notes[-1] == note
        assert sentence in section(found, "Seen from outside")
        assert "(so; and so)." in section(found, "Seen from outside")
    other = words(receipt(observed__boundary__kind="other_kernel"))
    assert "Another kernel than this computer's" in section(other, "Seen from outside")
    unread = words(receipt(observed__boundary__kind=None))
    assert "Whether another kernel stands in between." in section(unread, "Not known")


def test_the_meters_are_parts_of_their_limits() -> None:
    assert words(receipt()).meters == (
        ("time", "0.3 of 2 s", 0.144),
        ("memory, most", "21 of 128 MB", 21 / 128),
        ("processes, most", "3 of 32", 3 / 32),
        ("processor", "0.09 of 1 s; held back 1 time", 0.09),
    )
    over = receipt(observed__meters__ran_seconds=2.02, observed__meters__cpu_seconds=1.1)
    assert [meter.fraction for meter in words(over).meters if meter.name in ("time", "processor")] == [1.0, 1.0]
    assert ("time", "not known", None) in words(samples()["box_lost"]).meters


def test_the_steps_lie_within_the_whole() -> None:
    steps = words(receipt()).steps
    assert [step.name for step in steps if step.is_program] == ["your code ran"]
    assert steps[-1].name == "removed, looked again"
    assert all(0 <= step.start <= step.start + step.length <= 1 + 1e-9 for step in steps)
    assert steps[-1].start + steps[-1].length == pytest.approx(1)
    odd = receipt(observed__steps=[{"name": "odd", "offset_ms": 0.0, "duration_ms": 0.0}])
    assert words(odd).steps == (("odd", "0.0 ms", 0.0, 0.0, False),)


def test_every_problem_of_pybox_has_words() -> None:
    def below(kind: type[errors.PyBoxError]) -> set[type[errors.PyBoxError]]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    codes = {kind.code for kind in below(errors.PyBoxError) - below(errors.InputError)}
    assert codes == set(NOT_RUN)


def every_combination() -> list[Receipt]:
    found = []
    for how, kills, hits, removed, problem, stdout, final in itertools.product(
        ("not_started", "exited", "signal", "deadline", "stopped", "box_lost", "warden_failed"),
        (0, 2, None),
        (0, 3, None),
        (True, False, None),
        (None, PROBLEM),
        (NOTHING, WROTE, CUT),
        (True, False),
    ):
        values = {"oom_kills": kills, "task_limit_hits": hits, "removed": removed}
        found.append(
            receipt(
                **(NEVER_STARTED if how == "not_started" else {}),
                **({"observed__end": ended(how, code=9)} if how != "not_started" else {}),
                **{f"observed__meters__{name}": values[name] for name in ("oom_kills", "task_limit_hits")},
                observed__meters__final=final,
                observed__box__removed=removed,
                **({"said__stdout": stdout, "said__stderr": stdout} if how != "not_started" else {}),
                problem=problem,
                unknown=[*not_read(*(name for name, value in values.items() if value is None)), NO_EXIT_CODE],
            )
        )
    return found


def test_no_combination_hides_a_trouble_or_names_a_cause_without_evidence() -> None:
    for sample in every_combination():
        found, observed = words(sample), sample.observed
        started = observed.end.how != "not_started"
        folded = found.folded
        assert all(part.sentences and all(part.sentences) for part in (*found.sections, *found.main))
        assert ("sealed" in folded.split(" · ")) == (started and found.tone != "ok")
        assert ("still there" in folded) == (observed.box.removed is False)
        assert ("not confirmed gone" in folded) == (observed.box.removed is None)
        if started and observed.meters.oom_kills:
            assert "for memory" in folded
        if not observed.meters.oom_kills:
            assert not re.search(r"(?<!whether part of it was )killed for memory", folded)
        if sample.problem is not None:
            everything = " ".join(" ".join(part.sentences) for part in found.sections)
            assert sample.problem.message in everything
            assert sample.problem.advice in everything
        assert (found.tone == "ok") == (found.icon == "✓")
        assert found.tone != "ok"


def test_the_folded_line_holds_no_ids_hashes_numbers_of_signals_or_paths() -> None:
    for sample in [*samples().values(), *every_combination()]:
        folded = words(sample).folded
        assert not re.search(r"[0-9a-f]{12}|SIG|sha256|[{}]|/", folded), folded
        assert sample.run.id not in folded
