"""The values that were put in, made again for the program, and those asked of it, sent at its end. Standard library
only."""

from __future__ import annotations

import sys

from pybox_kernel.inside import parcels, value_form, value_reader, value_writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

WHY = 300
"""Characters of a reason."""


def prepare() -> None:
    """Imports what reads and writes values, while no time limit runs, and while there are descriptors to do it with."""
    for library in value_form.LIBRARIES:
        if library in sys.modules:
            value_form.module_for(library)


def restore(manifest: Sequence[dict[str, Any]], payloads: Sequence[bytearray], namespace: dict[str, Any]) -> None:
    """Binds each value to its name. Raises ImportError where the box has not what makes one."""
    for told, data in zip(manifest, payloads, strict=True):
        for library in told["libraries"]:
            __import__(library)
        namespace[told["name"]] = value_reader.unpack(bytes(data))


def send(wanted: Sequence[str], namespace: dict[str, Any]) -> None:
    """Sends what ``wanted`` names, and the reason for each that cannot be sent. Raises OSError where the pipe is
    gone."""
    room = value_form.LARGEST
    values, payloads, missing = [], [], []
    for name in wanted:
        try:
            if name not in namespace:
                missing.append({"name": name, "why": "is not there: the cell did not define it"})
                continue
            data = value_writer.pack(namespace[name], room)
        except value_form.TooLarge as error:
            why = "%s: all values together may have %d MB" % (error.why, value_form.LARGEST >> 20)
            missing.append({"name": name, "why": why})
        except value_form.Cannot as error:
            where = "" if not error.place else "holds what cannot be brought back: %s%s " % (name, error.place)
            missing.append({"name": name, "why": (where + error.why)[:WHY]})
        except BaseException as error:
            missing.append({"name": name, "why": "could not be read: %s" % type(error).__name__[:WHY]})
        else:
            room -= len(data)
            values.append({"name": name})
            payloads.append((parcels.VALUE, [data]))
    parcels.send(b"w", {"values": values, "missing": missing}, payloads)
