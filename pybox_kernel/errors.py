"""Every way PyBox can fail to do its part.

    PyBoxError                     PyBox could not do its part (exit status 125)
    ├── InputError                 what the user gave cannot be run (exit status 2)
    │   ├── SourceError            the program text
    │   └── OptionError            a limit or an option
    ├── SetupError                 an image is missing, changed, or could not be built
    ├── EngineError                the container engine
    │   ├── EngineMissing          nothing answers at its address
    │   ├── EngineDenied           it is there, and this user may not use it
    │   ├── EngineTimeout          it is there, and does not answer in time
    │   ├── EngineRefused          it answered, and said no
    │   │   ├── EngineNotFound     the object asked for does not exist
    │   │   └── EngineElsewhere    it is on another machine, to which nobody said yes
    │   └── VMMissing              a private virtual machine is required, and none runs
    ├── SealError                  a box differs from the policy: the program never started
    ├── BoxError                   a box broke its part of the protocol, or was lost
    │   └── BoxEnded               it ended while it waited for its program
    ├── TimeIsUp                   a graded notebook has had its time: the program never started (exit status 124)
    └── Stopped                    the person stopped the run before the program started (exit status 130)

A program's own failure is not an error of PyBox: it is a receipt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

__all__ = [
    "BoxEnded",
    "BoxError",
    "Difference",
    "EngineDenied",
    "EngineElsewhere",
    "EngineError",
    "EngineMissing",
    "EngineNotFound",
    "EngineRefused",
    "EngineTimeout",
    "ExitStatus",
    "InputError",
    "OptionError",
    "PyBoxError",
    "SealError",
    "SetupError",
    "SourceError",
    "Stopped",
    "TimeIsUp",
    "VMMissing",
]


class ExitStatus:
    """Exit statuses of the command line; 124 and 125 are those of GNU ``timeout`` and ``docker run``."""

    OK = 0
    PROGRAM_FAILED = 1
    USAGE = 2
    DEADLINE = 124
    PYBOX_FAILED = 125
    INTERRUPTED = 130


class Difference(NamedTuple):
    """One setting that is not as required. All three are plain text, ready to show."""

    setting: str
    wanted: str
    found: str


class PyBoxError(Exception):
    """What happened, and what to do next.

    ``message`` says what happened, to what, what was wanted and what was found.
    ``advice`` is the next step, in one sentence a person can act on.
    ``code`` is stable and stands in receipts as ``problem.code``.
    """

    code: ClassVar[str] = "pybox_failed"
    exit_status: ClassVar[int] = ExitStatus.PYBOX_FAILED

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.message} {self.advice}"


class InputError(PyBoxError):
    code = "input"
    exit_status = ExitStatus.USAGE


class SourceError(InputError):
    code = "source"


class OptionError(InputError):
    code = "option"


class SetupError(PyBoxError):
    code = "setup"


class EngineError(PyBoxError):
    code = "engine"


class EngineMissing(EngineError):
    code = "engine_missing"


class EngineDenied(EngineError):
    code = "engine_denied"


class EngineTimeout(EngineError):
    code = "engine_timeout"


class EngineRefused(EngineError):
    code = "engine_refused"


class EngineNotFound(EngineRefused):
    code = "engine_not_found"


class EngineElsewhere(EngineRefused):
    code = "engine_elsewhere"


class VMMissing(EngineError):
    code = "vm_missing"


class SealError(PyBoxError):
    """The box is not sealed as required. ``differences`` names each setting."""

    code = "not_sealed"

    def __init__(self, message: str, advice: str, differences: Sequence[Difference] = ()) -> None:
        super().__init__(message, advice)
        self.differences = tuple(differences)


class BoxError(PyBoxError):
    code = "box"


class BoxEnded(BoxError):
    """As where its engine was started anew: that says nothing of how it was sealed."""


class TimeIsUp(PyBoxError):
    code = "time_is_up"
    exit_status = ExitStatus.DEADLINE


class Stopped(PyBoxError):
    code = "stopped"
    exit_status = ExitStatus.INTERRUPTED
