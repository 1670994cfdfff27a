"""What ``name?`` shows: the signature and the documentation of a name, or that there is none."""

from __future__ import annotations

import builtins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def help_on(dotted: str, names: dict[str, Any]) -> str:
    """Looks the name up as the cell would at that point, without calling anything."""
    first, *rest = dotted.split(".")
    if first in names:
        found = names[first]
    elif hasattr(builtins, first):
        found = getattr(builtins, first)
    else:
        return "%s: there is no such name here." % dotted
    for attribute in rest:
        try:
            found = getattr(found, attribute)
        except Exception:
            return "%s: there is no such name here." % dotted
    return described(dotted, found)


def described(name: str, found: Any) -> str:
    import inspect

    lines = []
    if callable(found):
        try:
            lines.append("Signature: %s%s" % (name, inspect.signature(found)))
        except Exception:
            pass
    lines.append("Type:      %s" % type(found).__name__)
    if not callable(found) and not inspect.ismodule(found):
        from pybox_kernel.inside.shown import plain_text

        text = plain_text(found)[0]
        lines.append("Value:     %s" % (text if len(text) <= 200 else text[:199] + "…"))
    try:
        documentation = inspect.getdoc(found)
    except Exception:
        documentation = None
    lines.append("Docstring: " + (documentation if documentation else "<none>"))
    return "\n".join(lines)
