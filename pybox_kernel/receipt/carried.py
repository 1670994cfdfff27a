"""What a receipt says of the values that were carried from one cell to the next."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from pybox_kernel.policy import Count

__all__ = [
    "LONGEST_NAME",
    "MOST_GROUPS",
    "MOST_NAMES_LISTED",
    "Carried",
    "CarriedGroup",
    "LostValue",
    "Model",
    "NotRestoredValue",
    "WhyMissing",
]

LONGEST_NAME: Final = 255
MOST_GROUPS: Final = 256
MOST_NAMES_LISTED: Final = 16

WhyMissing = Literal["off", "failed", "lost", "not_restored", "dropped", "undone", "kept_back", "history"]
"""Why a name that an earlier cell defined is not there: ``off`` it was defined while carry was off; ``failed`` its cell
failed; ``lost`` it could not be carried; ``not_restored`` it was carried and could not be made again; ``dropped`` a
person dropped it; ``kept_back`` it is carried, and the cell does not name it; ``history`` IPython has
it."""

Name = Annotated[str, StringConstraints(max_length=LONGEST_NAME)]
Token = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Names = Annotated[tuple[Name, ...], Field(max_length=MOST_NAMES_LISTED)]


class Model(BaseModel):
    """A part of a receipt: frozen, and with nothing in it that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CarriedGroup(Model):
    """Values that were carried together since they share objects, or a quiet state."""

    names: Names
    more_names: Count
    """How many more there are than are listed."""
    kind: str
    """Of a quiet state, what it is of; empty for values under names."""
    bytes: Count
    sha256: Sha256
    """Of the bytes as this computer has them."""
    run: Token
    """The id of the run that they came from, as on its receipt."""
    cell: Count | None


Groups = Annotated[tuple[CarriedGroup, ...], Field(max_length=MOST_GROUPS)]


class Carried(Model):
    """What went in with the cell, and what came out for later cells."""

    put_in: Groups
    put_in_more: Count
    """How many more groups there are than are listed."""
    kept_back: Count
    """Groups that the cell cannot reach: they did not go in, and are as they were."""
    kept_back_bytes: Count
    taken_out: Groups
    """Empty where nothing counts."""
    taken_out_more: Count
    why_nothing: str | None
    """Why nothing that the cell defined is carried; null where something may be."""


class LostValue(Model):
    """A value that could not be carried out."""

    name: str
    type: str
    why: str


class NotRestoredValue(Model):
    """A group that went in and could not be made into values again."""

    names: Names
    more_names: Count
    kind: str
    why: str
