"""Carried groups, as tests make them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pybox_kernel.carry.groups import Group, Sent
from pybox_kernel.wire.parcels import Parcel

RUN = "5" * 32


def group(
    *names: str, data: bytes = b"x", kind: str = "", needs: tuple[str, ...] = (), run: str = RUN, cell: int | None = 1
) -> Group:
    types = tuple("int" for _ in names)
    return Group(names, types, kind, needs, data, hashlib.sha256(data).hexdigest(), run, cell)


def sent(*groups: Group, left: tuple[Group, ...] = (), cell: int | None = 2) -> Sent:
    return Sent("on", groups, left, {}, cell)


def told(*groups: Group, **more: Any) -> Parcel:
    """What a box says of these, and they themselves."""
    manifest = {
        "groups": [
            {
                "names": it.names,
                "types": it.types,
                "kind": it.kind or None,
                "needs": it.needs,
                "size": len(it.data),
            }
            for it in groups
        ],
        "lost": [],
        "not_restored": [],
        **more,
    }
    return Parcel(json.dumps(manifest).encode(), tuple(it.data for it in groups))
