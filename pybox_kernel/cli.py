"""The command line: ``pybox-kernel run | open | report | check | key | mcp | setup | image | doctor ...``."""

from __future__ import annotations

import argparse
import errno
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

from pybox_kernel import __version__
from pybox_kernel.classroom.open_command import add_open_parser, open_notebooks
from pybox_kernel.classroom.report_command import add_report_parser, report
from pybox_kernel.doctor import in_short
from pybox_kernel.engine_options import add_engine_options, wished
from pybox_kernel.errors import ExitStatus, OptionError, PyBoxError, SourceError
from pybox_kernel.image_commands import add_image_parser, image, setup
from pybox_kernel.install import DISPLAY_NAMES, KERNEL_NAME, install
from pybox_kernel.machine_commands import add_machine_parser, machine
from pybox_kernel.mcp.command import add_mcp_parser, mcp
from pybox_kernel.notebook.answers import MARKS
from pybox_kernel.notebook.failures import exit_status
from pybox_kernel.notebook.run_command import is_notebook, run_notebook
from pybox_kernel.notebook.total_time import DEFAULT_SECONDS
from pybox_kernel.policy import STDLIB
from pybox_kernel.progress import Waiting, in_colour
from pybox_kernel.render.display import bundle
from pybox_kernel.render.text import render_short
from pybox_kernel.safe_display.displays import Display
from pybox_kernel.safe_display.text import SafeText, safe_text, without_colour
from pybox_kernel.sessions import session
from pybox_kernel.sessions.images import BASE_CHOICES
from pybox_kernel.signing.check_command import add_parsers, check, key
from pybox_kernel.signing.keys import SigningKeys
from pybox_kernel.signing.signed_receipt import signed

__all__ = ["main"]

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
READ_MOST = 16 << 20
"""Of a program file: far over the limit, so that the message can name its size."""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="pybox-kernel",
        description="Run Python in a fresh sealed box, and get a receipt of what was seen.",
        epilog="Exit status of run: 0 ended normally; 1 the program failed or left early; 2 wrong usage, "
        "or a program that cannot be taken; 124 stopped at its time limit; 125 PyBox could not do its part; "
        "130 interrupted.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"pybox-kernel {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run a program or a notebook in fresh sealed boxes", allow_abbrev=False)
    run.add_argument("file", metavar="FILE", help="the program, or - for standard input; or a notebook (.ipynb)")
    run.add_argument(
        "--timeout",
        metavar="S",
        help=f"time limit in seconds ({STDLIB.deadline_seconds:g}; at most {STDLIB.longest_deadline_seconds:g})",
    )
    run.add_argument(
        "--image",
        default=STDLIB.image,
        metavar="NAME",
        help="the box image: stdlib, data, or one of `pybox-kernel image list`",
    )
    run.add_argument(
        "--input",
        metavar="PATH",
        action="append",
        default=[],
        help="a file or a folder to put a copy of into the box; may be given more than once",
    )
    run.add_argument(
        "--output",
        metavar="DIR",
        help="a new or empty folder for the files that the program writes; each cell gets one of its own in it",
    )
    run.add_argument("--json", action="store_true", help="print the receipt alone, as JSON, with the output inside")
    run.add_argument("--to", metavar="OUT", help="where a notebook goes with its outputs (NAME-run.ipynb beside it)")
    run.add_argument(
        "--carry",
        choices=("on", "off", "keep"),
        help="whether a notebook's cells get the values of those before them (on); keep: of failed ones too",
    )
    run.add_argument("--allow-errors", action="store_true", help="go on with a notebook after a cell that failed")
    run.add_argument(
        "--graded",
        action="store_true",
        help="a notebook gets the time, image and files of this command, and no others that its cells ask for",
    )
    run.add_argument("--quiet", action="store_true", help="of a notebook print one line, when it has been run")
    run.add_argument(
        "--total-time",
        metavar="S",
        help=f"seconds that a notebook's cells have together ({DEFAULT_SECONDS:g} with --graded)",
    )
    add_engine_options(run)
    add_mcp_parser(commands)
    setup = commands.add_parser("setup", help="make the box image", allow_abbrev=False)
    setup.add_argument("--yes", action="store_true", help="do it; without, only say what would be done")
    setup.add_argument("--base", default="auto", metavar="BASE", help=BASE_CHOICES)
    setup.add_argument("--fresh", action="store_true", help="make it again from new packages")
    setup.add_argument(
        "--with", dest="also", choices=["data"], help="make the data image too: numpy, pandas, matplotlib"
    )
    add_image_parser(commands)
    add_machine_parser(commands)
    add_open_parser(commands)
    doctor = commands.add_parser("doctor", help="say what is wrong and what to do; changes nothing", allow_abbrev=False)
    doctor.add_argument("--json", action="store_true", help="the findings as JSON")
    add_engine_options(doctor)
    cleanup = commands.add_parser("cleanup", help="remove boxes that dead sessions left", allow_abbrev=False)
    cleanup.add_argument("--json", action="store_true", help="what was done, as JSON")
    add_engine_options(cleanup)
    add_parsers(commands)
    add_report_parser(commands)
    place = commands.add_parser("install", help="install the kernel into a Jupyter", allow_abbrev=False)
    where = place.add_mutually_exclusive_group(required=True)
    where.add_argument("--user", action="store_true", help="for this user")
    where.add_argument("--sys-prefix", action="store_true", help="into this Python environment")
    where.add_argument("--prefix", metavar="DIR", help="into another environment")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; its exit status. Errors are two lines on stderr: what happened, what to do."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    options = parser().parse_args(arguments)
    commands = {
        "run": run,
        "vm": machine,
        "mcp": mcp,
        "open": open_notebooks,
        "report": report,
        "setup": setup,
        "image": image,
        "doctor": doctor,
        "cleanup": cleanup,
        "check": check,
        "key": key,
        "install": place,
    }
    try:
        status = commands[options.command](options)
        sys.stdout.flush()
        return status
    except PyBoxError as error:
        complain(error.message, error.advice)
        return error.exit_status
    except BrokenPipeError:
        drop_output()
        return ExitStatus.PROGRAM_FAILED
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        drop_output()
        complain(f"The output could not be written: {error.strerror}.", "Make room, or write it somewhere else.")
        return ExitStatus.PYBOX_FAILED
    except KeyboardInterrupt:
        complain("Interrupted.", "")
        return ExitStatus.INTERRUPTED


def drop_output() -> None:
    """So that Python does not try to write the rest as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(message: str, advice: str) -> None:
    print("pybox-kernel:", safe_text(message), file=sys.stderr)
    if advice:
        print(safe_text(advice), file=sys.stderr)


# run


class Terminal:
    """Passes a program's output on as it comes."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting

    def started(self, _deadline_seconds: float) -> None:
        self._waiting.over()

    def output(self, stream: str, text: SafeText) -> None:
        target = sys.stdout if stream == "stdout" else sys.stderr
        target.write(text)
        target.flush()

    def display(self, display: Display) -> None:
        if not display.result:  # a program's last value shows in a notebook, and not at a shell
            print(bundle(display)["text/plain"], flush=True)


def run(options: argparse.Namespace) -> int:
    if is_notebook(options.file):
        return run_notebook(options)
    of_a_notebook = (options.to, options.carry, options.allow_errors, options.graded, options.total_time, options.quiet)
    if any(of_a_notebook):
        told = "--to, --carry, --allow-errors, --graded, --total-time and --quiet are for notebooks."
        raise OptionError(told, "Name a file that ends with .ipynb.")
    source = read_program(options.file)
    asks = session.Asks(options.image, options.timeout, options.input, options.output)
    stop = session.Stop()
    with session.Session.open(wish=wished(options)) as opened:
        before = [signal.signal(number, stopper(stop)) for number in (signal.SIGINT, signal.SIGTERM)]
        try:
            if options.json:
                result = opened.run_asked(source, asks, stop=stop)
            else:
                with Waiting(making(opened)) as waiting:
                    watcher = Terminal(waiting)
                    result = opened.run_asked(source, asks, watcher=watcher, stop=stop, queued=waiting.before)
        finally:
            for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
                signal.signal(number, handler)
    receipt = result.receipt
    if options.json:
        keys = SigningKeys()
        print(signed(session.with_output(result), keys).to_json(indent=2))
        if keys.problem is not None:
            complain(f"The receipt is not signed. {keys.problem.message}", keys.problem.advice)
    else:
        if result.error is not None:
            told = result.error.traceback
            sys.stderr.write(told if in_colour(sys.stderr) else without_colour(told))
        sys.stdout.flush()
        for notice in result.notices:
            print(notice, file=sys.stderr)
        print(render_short(receipt, colour=in_colour(sys.stderr)), file=sys.stderr)
    return exit_status(receipt)


def making(opened: session.Session) -> str:
    """What takes its time before a program starts. Where there is no engine for it, the receipt says so."""
    try:
        place = opened.engine().place
    except PyBoxError:
        return "Making a box"
    return "Making a box" if place.vm is None else f"Making a box in {place.name}"


def stopper(stop: session.Stop) -> Any:
    def handle(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    return handle


def read_program(name: str) -> bytes:
    try:
        if name == "-" and sys.stdin is None:
            raise SourceError("There is no standard input to read.", "Name a file with the program.")
        if name == "-":
            return read_bounded(sys.stdin.buffer, "standard input")
        with Path(name).open("rb") as file:
            return read_bounded(file, name)
    except OSError as error:
        raise SourceError(
            f"{name}: {error.strerror}.", "Name a file with the program, or - for standard input."
        ) from error


def read_bounded(file: BinaryIO, name: str) -> bytes:
    data = file.read(READ_MOST + 1)
    if len(data) > READ_MOST:
        raise SourceError(
            f"{name} has over {READ_MOST:,} bytes; the most a box takes is {STDLIB.source_bytes:,}.",
            "Make it smaller.",
        )
    return data


# The other commands


def doctor(options: argparse.Namespace) -> int:
    if options.engine:
        wished(options)  # what the environment names is among what is found
    findings = session.examine(KERNEL_NAME, lambda: wished(options))
    if options.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{MARKS[finding.state]} {finding.what}: {safe_text(finding.found)}")
            if finding.advice:
                print(f"    {safe_text(finding.advice)}")
        print(f"{in_short(findings)}.")
    return ExitStatus.PYBOX_FAILED if any(finding.state == "wrong" for finding in findings) else ExitStatus.OK


def cleanup(options: argparse.Namespace) -> int:
    found = session.clean_up(wished(options))
    if options.json:
        print(json.dumps(found._asdict(), indent=2))
    else:
        if found.removed or found.already_gone or found.unconfirmed:
            print(f"Removed {len(found.removed)}, already gone {len(found.already_gone)}.")
        else:
            print("Nothing was left over.")
        if here := len(found.unconfirmed) - len(found.elsewhere):
            print(f"Not confirmed gone: {here}. Try again in a minute.")
        for address, number in Counter(found.elsewhere).items():
            told = f"Not confirmed gone: {number} at another engine. Run `pybox-kernel cleanup --engine {address}`."
            print(safe_text(told))
    return ExitStatus.PYBOX_FAILED if found.unconfirmed else ExitStatus.OK


def place(options: argparse.Namespace) -> int:
    folders = install(user=options.user, prefix=options.prefix, sys_prefix=options.sys_prefix)
    for name, folder in zip(DISPLAY_NAMES.values(), folders, strict=True):
        print(f"Installed “{name}” in {folder}.")
    return ExitStatus.OK


if __name__ == "__main__":
    sys.exit(main())
