"""What this computer's PyBox states of one cell that it ran, and the signature that makes it believable.

A receipt in a notebook's file is that file's author's claim. So the output that shows it carries a statement in its
metadata: of which program it is, what was shown above it, how the receipt itself looks, what was carried, and which
cell of which session it was. What is signed are the bytes of the statement as they stand in the file: nothing has to be
written again in the same way to be checked.

Ed25519 and not a shared secret, since whoever can check an HMAC can also make one: a public key can be handed out. It
takes no random numbers to sign, and a signature has 64 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, Protocol, Self

from pydantic import Field, StringConstraints, ValidationError

from pybox_kernel.carry_facts import Model

__all__ = ["KEY", "MOST_OUTPUTS", "Claim", "Panel", "Ran", "Signer", "Statement", "signed_bytes"]

KEY: Final = "pybox"
"""In the metadata of the output that shows a receipt."""

LONGEST_STATEMENT: Final = 128 << 10
MOST_OUTPUTS: Final = 256
"""Under one cell; a run shows at most some 50."""

FINGERPRINT: Final = re.compile(r"[0-9a-f]{32}")
SIGNATURE: Final = re.compile(r"[0-9a-f]{128}")

Token = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Entry = Annotated[str, StringConstraints(pattern=r"^[a-z]{1,10} [0-9a-f]{64}$")]
Number = Annotated[int, Field(ge=0, lt=1 << 31)]
Words = Annotated[str, StringConstraints(max_length=1000)]


class Panel(Model):
    """The widget that shows the receipt at first, and may stand in a file that was saved then."""

    model: Token
    value: Digest


class Ran(Model):
    """What a summary says of the run; the receipt says the same and more."""

    id: Token
    receipt: Digest
    """Of its JSON, which is not in the file."""
    tone: Literal["ok", "warn", "stop", "bad"]
    verdict: Words
    time: Words
    memory: Words
    notes: Words


class Statement(Model):
    form: Literal["pybox.statement/1"] = "pybox.statement/1"
    session: Token
    """Of the kernel, or of the one run of a whole notebook."""
    serial: Number
    """The cells of a session are counted, whether they are shown or not."""
    cell: Number
    """Its number, as Jupyter shows it in brackets."""
    made_at: Annotated[str, StringConstraints(pattern=r"^[0-9TZ:.+-]{1,40}$")]
    source: Digest
    """Of the whole cell, its magic too."""
    outputs: Annotated[tuple[Entry, ...], Field(max_length=MOST_OUTPUTS)]
    """What was shown above, as ``shown_outputs`` has it."""
    shown: Annotated[dict[Words, Digest], Field(max_length=8)]
    """The forms of the output that carries this."""
    panel: Panel | None = None
    error: Entry | None = None
    """What IPython shows below of an exception."""
    ran: Ran | None
    """Null for a word to PyBox, which runs nothing."""
    carried: Annotated[str, StringConstraints(max_length=12_000)] | None
    """The link of the chain of carried values: see ``carry_chain``."""

    @classmethod
    def of(cls, text: str) -> Self | None:
        """None for what is no statement of this version, to the letter."""
        try:
            return cls.model_validate_json(text, strict=True)
        except ValidationError:
            return None

    def text(self) -> str:
        return self.model_dump_json(ensure_ascii=True)


class Signer(Protocol):
    def sign(self, data: bytes) -> tuple[str, str] | None:
        """The fingerprint of the key and the signature; None where there is no key."""
        ...


class Claim(NamedTuple):
    """A statement in a file: until its signature was checked, the word of whoever wrote that file."""

    text: str
    key: str | None
    """The fingerprint of the key. Null, with ``signature``, where it was not signed."""
    signature: str | None

    @classmethod
    def of(cls, metadata: object) -> Self | None:
        """That of an output with these metadata; None where there is none that can be read."""
        found = metadata.get(KEY) if isinstance(metadata, Mapping) else None
        if not isinstance(found, Mapping) or set(found) != {"statement", "key", "signature"}:
            return None
        text, key, signature = found["statement"], found["key"], found["signature"]
        if not isinstance(text, str) or len(text) > LONGEST_STATEMENT or not text.isascii():
            return None
        if key is None and signature is None:
            return cls(text, None, None)
        if not isinstance(key, str) or not isinstance(signature, str):
            return None
        if FINGERPRINT.fullmatch(key) is None or SIGNATURE.fullmatch(signature) is None:
            return None
        return cls(text, key, signature)

    @classmethod
    def made(cls, statement: Statement, signer: Signer) -> Self:
        text = statement.text()
        return cls(text, *(signer.sign(signed_bytes("statement", text)) or (None, None)))

    def metadata(self) -> dict[str, Any]:
        return {KEY: {"statement": self.text, "key": self.key, "signature": self.signature}}


def signed_bytes(what: str, text: str) -> bytes:
    """What a signature is over: marked with what it is of, so that none of one thing fits another."""
    data = text.encode("ascii")
    return b"PyBox " + what.encode("ascii") + b" v1\0" + len(data).to_bytes(8) + data
