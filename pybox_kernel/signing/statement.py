"""What this computer's PyBox states of one cell that it ran, and the signature that makes it believable.

A receipt in a notebook's file is that file's author's claim. So the output that shows it carries a statement in its
metadata: of which program it is, what was shown above it, how the receipt itself looks, what was carried, and which
cell of which session it was. It is one line, of a few hundred bytes. What is signed are its bytes as they stand in the
file: nothing has to be written again in the same way to be checked.

Ed25519 and not a shared secret, since whoever can check an HMAC can also make one: a public key can be handed out. It
takes no random numbers to sign, and a signature has 64 bytes.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple, Protocol, Self

from pydantic import Field, StringConstraints, ValidationError

from pybox_kernel.receipt.carried import Model
from pybox_kernel.signing.shown_outputs import digest

__all__ = [
    "KEY",
    "MOST_OUTPUTS",
    "NO_RUN",
    "Claim",
    "Panel",
    "Ran",
    "Signer",
    "Statement",
    "bytes_of",
    "digest_of_look",
    "digest_of_panel",
    "digest_of_source",
    "in_base64",
    "short",
    "signed_bytes",
    "whole",
]

KEY: Final = "pybox"
"""In the metadata of the output that shows a receipt."""

FORM: Final = "1"
LONGEST: Final = 128 << 10
MOST_OUTPUTS: Final = 256
"""Under one cell; a run shows at most some 50."""

NOTHING: Final = "-"
NO_RUN: Final = "0" * 32
"""In the place of a run's id, where PyBox refused the cell: no box was asked for, and there is no receipt."""

SHORT: Final = 8

CLAIM: Final = re.compile(r"(?P<text>[\x20-\x7e]+) (?P<key>-|[0-9a-f]{32}) (?P<signature>-|[\w-]{86})", re.ASCII)
LINE: Final = re.compile(
    rf"{FORM} (?P<session>\S+) (?P<serial>[1-9]\d{{0,8}}) (?P<cell>0|[1-9]\d{{0,8}}) (?P<made_at>\S+) (?P<whole>\S+)"
    r" (?P<source>\S+) (?P<look>\S+) (?P<outputs>\S+) (?P<panel>\S+) (?P<error>\S+) (?P<rest>\[.*\])",
    re.ASCII,
)

Token = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Short = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}$")]
"""The beginning of a digest: enough to say what was changed, once the whole one says that something was."""
Digest = Annotated[str, StringConstraints(pattern=r"^[\w-]{43}$")]
Entry = Annotated[str, StringConstraints(pattern=r"^[a-z]{1,10}:[0-9a-f]{8}$")]
Number = Annotated[int, Field(ge=0, lt=1 << 31)]
Words = Annotated[str, StringConstraints(max_length=1000)]


class Panel(Model):
    """The widget that shows the receipt at first, and may stand in a file that was saved then."""

    model: Token
    value: Digest


class Ran(Model):
    """What a summary says of the run; the receipt says the same and more."""

    id: Token
    tone: Literal["ok", "warn", "stop", "bad"]
    verdict: Words
    time: Words
    memory: Words
    notes: Words

    @property
    def is_refusal(self) -> bool:
        return self.id == NO_RUN


class Statement(Model):
    session: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
    """Of the kernel, or of the one run of a whole notebook."""
    serial: Number
    """The cells of a session are counted, whether they are shown or not."""
    cell: Number
    """Its number, as Jupyter shows it in brackets."""
    made_at: Annotated[str, StringConstraints(pattern=r"^[0-9TZ:.+-]{1,40}$")]
    whole: Digest
    """Of the whole cell, its magic too; of all that was shown; and of how the receipt looks: see ``whole``."""
    source: Short
    look: Short
    outputs: Annotated[tuple[Entry, ...], Field(max_length=MOST_OUTPUTS)]
    """What was shown above: of each output its kind, as ``shown_outputs`` has it."""
    panel: Panel | None = None
    error: Entry | None = None
    """What IPython shows below of an exception."""
    ran: Ran | None
    """Null for a word to PyBox, which runs nothing."""
    carried: Annotated[str, StringConstraints(max_length=12_000)] | None
    """The link of the chain of carried values: see ``carry.chain``."""

    @classmethod
    def of(cls, text: str) -> Self | None:
        """None for what is no statement of this form, to the letter."""
        found = LINE.fullmatch(text)
        if found is None:
            return None
        parts: dict[str, Any] = found.groupdict()
        try:
            carried, ran = read_rest(parts.pop("rest"))
            outputs, panel, error = parts["outputs"], parts["panel"], parts["error"]
            parts.update(
                serial=int(parts["serial"]),
                cell=int(parts["cell"]),
                outputs=tuple(outputs.split(",")) if outputs != NOTHING else (),
                panel=Panel(model=panel[:32], value=panel[33:]) if panel != NOTHING else None,
                error=error if error != NOTHING else None,
                ran=Ran(**dict(zip(Ran.model_fields, ran, strict=True))) if ran else None,
                carried=carried,
            )
            stated = cls(**parts)
        except (ValidationError, ValueError, RecursionError):
            return None
        return stated if stated.text() == text else None

    def text(self) -> str:
        """Printable ASCII, in one line."""
        rest = [self.carried, *(self.ran.model_dump().values() if self.ran is not None else ())]
        panel = f"{self.panel.model}:{self.panel.value}" if self.panel is not None else NOTHING
        first = (FORM, self.session, self.serial, self.cell, self.made_at, self.whole, self.source, self.look)
        then = (",".join(self.outputs) or NOTHING, panel, self.error or NOTHING)
        return " ".join(map(str, (*first, *then, json.dumps(rest, separators=(",", ":")))))


def read_rest(text: str) -> tuple[Any, Sequence[Any]]:
    carried, *ran = json.loads(text)
    return carried, ran


def whole(source: str, outputs: Sequence[str], shown: Mapping[str, str], error: str | None) -> str:
    """The digest of a cell's text, of the entries of what it shows above the receipt and below, and of the forms of the
    receipt."""
    above = digest("outputs", *map(str.encode, outputs))
    parts = (digest_of_source(source), above, digest_of_look(shown), error or "")
    return in_base64(bytes.fromhex(digest("cell", *map(str.encode, parts))))


def digest_of_source(source: str) -> str:
    return digest("source", source.encode("utf-8", "surrogatepass"))


def digest_of_look(shown: Mapping[str, str]) -> str:
    return digest(
        "look", *(part.encode("utf-8", "surrogatepass") for mime in sorted(shown) for part in (mime, shown[mime]))
    )


def digest_of_panel(value: str) -> str:
    return in_base64(bytes.fromhex(digest("panel", value.encode("utf-8", "surrogatepass"))))


def short(entry: str) -> str:
    """A digest, or the one behind the kind in an entry, in a few characters."""
    kind, space, found = entry.rpartition(" ")
    return f"{kind}{':' if space else ''}{found[:SHORT]}"


def in_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def bytes_of(signature: str) -> bytes | None:
    """None for one that is written in another way than ``in_base64`` does."""
    data = base64.urlsafe_b64decode(f"{signature}==")
    return data if in_base64(data) == signature else None


class Signer(Protocol):
    def sign(self, data: bytes) -> tuple[str, bytes] | None:
        """The fingerprint of the key and the signature; None where there is no key."""
        ...


class Claim(NamedTuple):
    """A statement in a file: until its signature was checked, the word of whoever wrote that file."""

    text: str
    key: str | None
    """The fingerprint of the key. Null, with ``signature``, where it was not signed."""
    signature: bytes | None

    @classmethod
    def of(cls, metadata: object) -> Self | None:
        """That of an output with these metadata; None where there is none that can be read."""
        said = metadata.get(KEY) if isinstance(metadata, Mapping) else None
        found = CLAIM.fullmatch(said) if isinstance(said, str) and len(said) <= LONGEST else None
        if found is None:
            return None
        text, key, signature = found["text"], found["key"], found["signature"]
        if NOTHING in (key, signature):
            return cls(text, None, None) if key == signature else None
        data = bytes_of(signature)
        return cls(text, key, data) if data is not None else None

    @classmethod
    def made(cls, statement: Statement, signer: Signer) -> Self:
        text = statement.text()
        return cls(text, *(signer.sign(signed_bytes("statement", text)) or (None, None)))

    def metadata(self) -> dict[str, str]:
        signature = in_base64(self.signature) if self.signature is not None else NOTHING
        return {KEY: f"{self.text} {self.key or NOTHING} {signature}"}


def signed_bytes(what: str, text: str) -> bytes:
    """What a signature is over: marked with what it is of, so that none of one thing fits another."""
    data = text.encode("ascii")
    return b"PyBox " + what.encode("ascii") + b" v1\0" + len(data).to_bytes(8) + data
