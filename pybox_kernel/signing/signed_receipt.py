"""A receipt that stands alone, as JSON, signed: as `pybox-kernel run --json` prints it, with the output inside."""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

from pybox_kernel.receipt.model import Receipt
from pybox_kernel.signing.keys import KeyRing
from pybox_kernel.signing.receipt_check import without_doubles
from pybox_kernel.signing.statement import Signer, bytes_of, in_base64, signed_bytes

__all__ = ["ReceiptCheck", "check_receipt", "signed"]


class ReceiptCheck(NamedTuple):
    verdict: Literal["unchanged", "not made here", "no receipt"]
    why: str
    """Why it is not believed; empty for one that is."""
    earlier_key: bool = False

    @property
    def ok(self) -> bool:
        return self.verdict == "unchanged"


def signed(receipt: Receipt, signer: Signer) -> Receipt:
    """The same without a signature where there is no key."""
    made = signer.sign(bytes_to_sign(receipt))
    return receipt if made is None else receipt.model_copy(update={"signed": f"{made[0]} {in_base64(made[1])}"})


def check_receipt(data: bytes, ring: KeyRing) -> ReceiptCheck:
    """What there is to say of the bytes of a file. White space between its parts does not count."""
    try:
        receipt = Receipt.from_json(data)
        json.loads(data, object_pairs_hook=without_doubles)
    except (ValueError, RecursionError):  # a ValidationError is one
        return ReceiptCheck("no receipt", "it is not the receipt of a program")
    key, _, text = (receipt.signed or "").partition(" ")
    if not key:
        return ReceiptCheck("not made here", "it is not signed")
    if key not in ring.keys:
        return ReceiptCheck("not made here", "it is signed with a key that is not known here")
    signature = bytes_of(text)
    if signature is None or not ring.verify(key, signature, bytes_to_sign(receipt)):
        return ReceiptCheck("not made here", "its signature does not fit")
    return ReceiptCheck("unchanged", "", key != ring.current)


def bytes_to_sign(receipt: Receipt) -> bytes:
    return signed_bytes("receipt", receipt.model_copy(update={"signed": None}).to_json())
