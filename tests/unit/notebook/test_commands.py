from __future__ import annotations

from dataclasses import fields

import pytest

from pybox_kernel.errors import OptionError
from pybox_kernel.notebook.commands import COMMANDS, OPTIONS, Command, Options, command_of, options_of


@pytest.mark.parametrize(
    "code", ["%pybox summary", "\n  %pybox   summary  \n", "# all of them\n%pybox summary\n# done"]
)
def test_a_command_is_a_cell_of_its_own(code: str) -> None:
    assert command_of(code) == Command("receipts")


@pytest.mark.parametrize(
    "code",
    [
        "",
        "# %pybox summary",
        "%pybox summary\nprint(1)",
        "print('%pybox summary')",
        "%pyboxsummary",
        "%%pybox",
        "x = 1",
    ],
)
def test_anything_else_is_a_program(code: str) -> None:
    assert command_of(code) is None


def test_check_takes_one_word_or_none() -> None:
    assert command_of("%pybox check") == Command("check")
    assert command_of("%pybox check 'my lesson.ipynb'") == Command("check", words=("my lesson.ipynb",))
    with pytest.raises(OptionError, match="wants one word more"):
        command_of("%pybox check a.ipynb b.ipynb")


def test_carry_takes_words_or_none_and_a_cell_may_ask_for_it_alone() -> None:
    assert command_of("%pybox carry") == Command("carry")
    assert command_of("%pybox carry drop df x") == Command("carry", words=("drop", "df", "x"))
    assert options_of("%%pybox --carry\n1")[1] == options_of("%%pybox --carry on\n1")[1] == Options(carry="on")
    assert options_of("%%pybox --carry keep --quiet\n1")[1] == Options(carry="keep", quiet=True)


@pytest.mark.parametrize(
    ("code", "mistake"),
    [
        ("%pybox sumary", "There is no `%pybox sumary`. Did you mean `%pybox summary`?"),
        (
            "%pybox xyz",
            "There is no `%pybox xyz`. There are `%pybox receipts`, `%pybox receipt`, `%pybox doctor`, `%pybox carry`, "
            "`%pybox check`, `%pybox use`, `%pybox guard`, `%pybox help`.",
        ),
        ("%pybox receipts --all", "`%pybox receipts` takes nothing more. Leave it out."),
        ("%pybox receipt", "`%pybox receipt` wants one word more. Write `%pybox receipt ID`."),
        ("%pybox guard maybe", "`%pybox guard` wants one word more. Write `%pybox guard on|off`."),
        ("%pybox summary 'a", "The line cannot be read: No closing quotation. Put quotation marks in pairs."),
        ("%pybox use -i x", "`%pybox use` has no option -i, which is for one cell. Put it behind %%pybox."),
    ],
)
def test_a_command_that_is_none_says_what_is_meant(code: str, mistake: str) -> None:
    with pytest.raises(OptionError) as caught:
        command_of(code)
    assert str(caught.value) == mistake


@pytest.mark.parametrize(
    ("code", "command"),
    [
        ("%pybox", Command("status")),
        ("%pybox receipt 3", Command("receipt", words=("3",))),
        ("%pybox guard on", Command("guard", words=("on",))),
        ("%pybox doctor  # what is wrong?", Command("doctor")),
    ],
)
def test_commands_and_what_stands_behind_them(code: str, command: Command) -> None:
    assert command_of(code) == command


def test_every_command_that_takes_nothing_is_understood() -> None:
    for name, word in COMMANDS.items():
        if not word.takes:
            assert command_of(f"%pybox {name}") == Command(name)


@pytest.mark.parametrize(
    ("code", "program", "timeout"),
    [
        ("print(1)", "print(1)", None),
        ("", "", None),
        ("\n \n", "\n \n", None),
        ("%%pybox\nprint(1)", "\nprint(1)", None),
        ("%%pybox --timeout 20\nprint(1)\n", "\nprint(1)\n", "20"),
        ("\n\n%%pybox --timeout=0.5\r\nprint(1)", "\n\n\r\nprint(1)", "0.5"),
        ("%%pybox --timeout 5", "", "5"),
        ("# hi\n\n  # there\n%%pybox --timeout 5\n1", "# hi\n\n  # there\n\n1", "5"),
        ("# %%pybox --timeout 5\n1", "# %%pybox --timeout 5\n1", None),
        ("# only", "# only", None),
        ("x = 1\n%%pybox --timeout 5\n", "x = 1\n%%pybox --timeout 5\n", None),
        ("%%pyboxes\n1", "%%pyboxes\n1", None),
    ],
)
def test_the_first_line_of_a_cell_asks_and_the_other_lines_keep_their_numbers(
    code: str, program: str, timeout: str | None
) -> None:
    assert options_of(code) == (program, Options(timeout=timeout))


@pytest.mark.parametrize("code", ["%%pybox?", "%pybox?", "?%%pybox", "%%pybox??", " %pybox? \n"])
def test_asked_as_ipython_is_asked_it_says_what_there_is(code: str) -> None:
    assert command_of(code) is None
    assert options_of(code)[1] == Options(help=True)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%%pybox --timout 5", "no option '--timout'. Did you mean --timeout S?"),
        (
            "%%pybox fast",
            "no option 'fast'. There are --image NAME, --timeout S, --input PATH, --output DIR, --carry on|off|keep,",
        ),
        ("%%pybox -timeout 5", "no option '-timeout'. Did you mean --timeout S?"),
        ("%%pybox --no-rise", "no option '--no-rise'. Did you mean --no-raise?"),
        ("%%pybox --quiet=1", "--quiet takes no value. Write `--quiet` alone."),
        ("%%pybox --quiet --quiet", "--quiet is there twice. Leave one out."),
        (
            "%%pybox -i -o x",
            "-i needs something behind it: values that are copied into the box. As in `%%pybox -i df`.",
        ),
        (
            "%%pybox --timeout",
            "--timeout needs something behind it: a time limit in seconds. As in `%%pybox --timeout 10`.",
        ),
    ],
)
def test_what_cannot_be_asked_for_is_an_error_that_names_the_nearest(line: str, words: str) -> None:
    with pytest.raises(OptionError) as caught:
        options_of(f"{line}\nprint(1)")
    assert words in str(caught.value)


def test_what_a_notebook_asks_for_holds_where_a_cell_does_not_ask_itself() -> None:
    used = command_of("%pybox use --image data --timeout 10")
    assert used == Command("use", Options(image="data", timeout="10"))
    assert used is not None
    assert str(used.options) == "--image data --timeout 10"
    _, asked = options_of("%%pybox --timeout 3\n1")
    assert asked.over(used.options) == Options(image="data", timeout="3")
    assert command_of("%pybox use") == Command("use", Options())


def test_files_and_folders_are_read_up_to_the_next_option() -> None:
    _, asked = options_of("%%pybox --input a.csv 'b c/' --output=out --image data\n1")
    assert asked == Options(image="data", input=("a.csv", "b c/"), output="out")


def test_names_of_values_and_words_without_a_value() -> None:
    _, asked = options_of("%%pybox -i a b --no-raise -o c -i d --replace --receipt r --quiet\n1")
    assert asked == Options(
        values_in=("a", "b", "d"), values_out=("c",), replace=True, receipt="r", no_raise=True, quiet=True
    )
    assert str(asked) == "-i a b d -o c --replace --receipt r --no-raise --quiet"
    assert options_of(f"%%pybox {asked}\n1")[1] == asked


def test_every_option_is_a_field_and_every_field_an_option() -> None:
    assert [option.field for option in OPTIONS.values()] == [field.name for field in fields(Options)]
