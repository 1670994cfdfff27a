"""What an agent may ask of ``run_python``: the ceilings that a person set, the schema that states them, and one call.

The schema is for the agent to read; a call is held against the same bounds here, whatever the client did with it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pybox_kernel.carry.groups import MOST_CARRIED
from pybox_kernel.errors import OptionError
from pybox_kernel.files.box_files import InputFile, amount, checked_inputs, fault
from pybox_kernel.policy import MIB, STDLIB, Policy, checked_deadline, checked_source, policy_for
from pybox_kernel.safe_display.text import safe_name

__all__ = ["MOST_SESSIONS", "MOST_SESSION_BYTES", "SESSION_NAME", "Call", "Ceilings", "checked_call", "input_schema"]

SESSION_NAME: Final = r"^[A-Za-z0-9_.-]{1,64}$"
MOST_SESSIONS: Final = 16
MOST_SESSION_BYTES: Final = 128 * MIB
"""Of what all sessions carry together."""
LONGEST_NAME: Final = 2048
"""Characters of a file's name: eight folders deep, each part as long as Linux has them."""


class Ceilings(NamedTuple):
    """What the person who starts the server allows. An agent may ask for less."""

    images: tuple[str, ...] = (STDLIB.image,)
    """The first is taken where none is named."""
    timeout: float = STDLIB.longest_deadline_seconds
    """Seconds of one call."""
    files: bool = False
    """Whether a call may carry files, and ask for some back."""
    carry: bool = False
    """Whether a call may leave values to later ones."""

    @classmethod
    def read(cls, images: str, timeout: str | None, *, files: bool, carry: bool) -> Ceilings:
        """From what the person wrote. Raises OptionError."""
        names = tuple(dict.fromkeys(name.strip() for name in images.split(",")))
        for name in names:
            policy_for(name)
        most = STDLIB.longest_deadline_seconds if timeout is None else checked_deadline(STDLIB, timeout)
        return cls(names, most, files, carry)

    def usual_timeout(self, policy: Policy) -> float:
        return min(policy.deadline_seconds, self.timeout)


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class FileAsked(Model):
    name: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]
    text: str | None = None
    base64: str | None = None


class Arguments(Model):
    """Of a call, as they came. Some clients write null for what an agent left out."""

    code: str
    image: str | None = None
    timeout: float | None = None
    files: Annotated[list[FileAsked], Field(max_length=STDLIB.files)] | None = None
    return_files: (
        Annotated[
            list[Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]],
            Field(max_length=STDLIB.files),
        ]
        | None
    ) = None
    session: Annotated[str, StringConstraints(pattern=SESSION_NAME)] | None = None


class Call(NamedTuple):
    """One that may be run: within the ceilings, and all of it checked."""

    code: str
    policy: Policy
    deadline_seconds: float
    files: tuple[InputFile, ...]
    return_files: tuple[str, ...]
    session: str | None

    @property
    def size(self) -> int:
        """Bytes that it holds until it is over."""
        return len(self.code) + sum(len(file.data) for file in self.files)


def checked_call(arguments: Mapping[str, Any] | None, ceilings: Ceilings) -> Call:
    """Raises InputError for what is no call, and for one that asks for more than the ceilings: it says which."""
    try:
        asked = Arguments.model_validate(arguments or {})
    except ValidationError as error:
        raise OptionError(f"These arguments cannot be taken: {in_words(error)}.", "See the tool's schema.") from None
    if asked.image is not None and asked.image not in ceilings.images:
        raise OptionError(
            f"The image {safe_name(asked.image, 40)!r} is not allowed: this server was started for "
            f"{listed(ceilings.images)} (--images).",
            "Use one of those, or ask the person who started it.",
        )
    policy = policy_for(asked.image or ceilings.images[0])
    if asked.timeout is not None and asked.timeout > ceilings.timeout:
        raise OptionError(
            f"A timeout of {asked.timeout:.12g} seconds is not allowed: the ceiling of this server is "
            f"{ceilings.timeout:g} seconds (--max-timeout).",
            "Ask for less, and do less at a time.",
        )
    wanted = ceilings.usual_timeout(policy) if asked.timeout is None else asked.timeout
    if (asked.files or asked.return_files) and not ceilings.files:
        raise OptionError(
            "Files are not allowed: this server was started without --files.",
            "Put the data into the code, and print what you need.",
        )
    if asked.session is not None and not ceilings.carry:
        raise OptionError(
            "Sessions are not allowed: this server was started without --carry.",
            "Let each call define what it needs.",
        )
    checked_source(policy, asked.code)
    for name in asked.return_files or ():
        if wrong := fault(policy, name):
            raise OptionError(
                f"The file {safe_name(name, 100)} cannot be asked for: its name {wrong}.", "Name another."
            )
    files = checked_inputs(policy, [InputFile(file.name, content(file)) for file in asked.files or ()])
    returned = tuple(dict.fromkeys(asked.return_files or ()))
    return Call(asked.code, policy, checked_deadline(policy, wanted), files, returned, asked.session)


def content(file: FileAsked) -> bytes:
    shown = safe_name(file.name, 100)
    if (file.text is None) == (file.base64 is None):
        raise OptionError(f"The file {shown} has not one content.", "Give it `text`, or `base64`.")
    try:
        if file.text is not None:
            return file.text.encode()
        return base64.b64decode(file.base64 or "", validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        raise OptionError(
            f"The content of the file {shown} is not what it says.", "Give text, or bytes in base64."
        ) from None


def in_words(error: ValidationError) -> str:
    """What is wrong with the first thing that is, and where: nothing of what was given stands in it but names."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return safe_name(f"{place}: {first['msg']}" if place else first["msg"], 200)


def listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def input_schema(ceilings: Ceilings) -> dict[str, Any]:
    """JSON Schema of the arguments, with every bound in it."""
    policy = policy_for(ceilings.images[0])
    properties: dict[str, Any] = {
        "code": {
            "type": "string",
            "maxLength": policy.source_bytes,
            "description": f"The Python program. At most {amount(policy.source_bytes)} as UTF-8. The value of a last "
            "line that is an expression comes back as `value`; `await` works at the top.",
        },
        "image": {
            "type": "string",
            "enum": list(ceilings.images),
            "default": ceilings.images[0],
            "description": "What the box has installed. "
            + " ".join(f"{name}: {holds(name)}." for name in ceilings.images),
        },
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": ceilings.timeout,
            "default": ceilings.usual_timeout(policy),
            "description": "Seconds after which the program is stopped.",
        },
    }
    if ceilings.files:
        properties |= file_properties(policy)
    if ceilings.carry:
        properties["session"] = {
            "type": "string",
            "pattern": SESSION_NAME,
            "description": "Calls of one session have what earlier ones of it defined (values, functions, imports, "
            "files of the working folder), if those ran to their end. "
            f"A session keeps at most {amount(MOST_CARRIED)}; {MOST_SESSIONS} sessions are kept, with at most "
            f"{amount(MOST_SESSION_BYTES)}: old ones are forgotten to make room, which the answer says. "
            "Without it, a call starts from nothing and leaves nothing.",
        }
    return {"type": "object", "properties": properties, "required": ["code"], "additionalProperties": False}


def file_properties(policy: Policy) -> dict[str, Any]:
    name = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}
    most = policy.file_bytes
    content = {
        "text": {"type": "string", "maxLength": most, "description": "Its content as text, written as UTF-8."},
        "base64": {"type": "string", "maxLength": (most + 2) // 3 * 4, "description": "Or its content in base64."},
    }
    return {
        "files": {
            "type": "array",
            "maxItems": policy.files,
            "items": {
                "type": "object",
                "properties": {"name": name, **content},
                "required": ["name"],
                "oneOf": [{"required": ["text"]}, {"required": ["base64"]}],
                "additionalProperties": False,
            },
            "description": f"Files put into the program's working folder: at most {policy.files}, of {amount(most)} "
            f"together. Names are relative, at most {policy.file_depth} folders deep.",
        },
        "return_files": {
            "type": "array",
            "maxItems": policy.files,
            "items": name,
            "description": "Names of files that the program makes or changes in its working folder, to be returned.",
        },
    }


def holds(image: str) -> str:
    if image == STDLIB.image:
        return "Python's standard library alone"
    return "numpy, pandas and matplotlib too" if image == "data" else "packages that this computer's user chose"
