"""Whether a widget in a notebook's file is the panel that a receipt was shown as, and shows nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pybox_kernel.signing.statement import Panel, digest_of_panel

__all__ = ["is_as_it_was"]

CONTROLS: Final = "@jupyter-widgets/controls"
NOT_SEEN: Final = frozenset(
    {
        "_model_module_version",
        "_view_count",
        "_view_module_version",
        "description_allow_html",
        "layout",
        "placeholder",
        "style",
        "value",
    }
)
OF_THE_PANEL: Final = {"_model_module": CONTROLS, "_model_name": "HTMLModel", "_view_module": CONTROLS}
OF_THE_PANEL["_view_name"] = "HTMLView"
PREFIX: Final = "IPY_MODEL_"


def is_as_it_was(panel: Panel, view: object, states: Mapping[str, Any]) -> bool:
    """``view`` is what the output has of a widget; ``states`` those of the file. A widget without a state is drawn from
    nothing in the file."""
    if not isinstance(view, dict) or set(view) - {"model_id", "version_major", "version_minor"}:
        return False
    if view.get("model_id") != panel.model:
        return False
    if panel.model not in states:
        return True
    found = state_of(states[panel.model], "HTMLModel", CONTROLS)
    if found is None or not isinstance(found.get("value"), str):
        return False
    if digest_of_panel(found["value"]) != panel.value:
        return False
    for name, value in found.items():
        wanted = OF_THE_PANEL.get(name)
        if name not in NOT_SEEN and value != wanted and not is_nothing(value):
            return False
    return all(is_plain(found.get(part), states) for part in ("layout", "style"))


def is_plain(reference: object, states: Mapping[str, Any]) -> bool:
    """A model that changes nothing of the look."""
    if reference is None:
        return True
    if not isinstance(reference, str) or not reference.startswith(PREFIX):
        return False
    model = states.get(reference.removeprefix(PREFIX))
    if model is None:
        return True
    state = model.get("state") if isinstance(model, dict) else None
    return isinstance(state, dict) and all(name.startswith("_") or is_nothing(value) for name, value in state.items())


def state_of(model: object, name: str, module: str) -> Mapping[str, Any] | None:
    if not isinstance(model, dict) or (model.get("model_name"), model.get("model_module")) != (name, module):
        return None
    state = model.get("state")
    return state if isinstance(state, dict) and "buffers" not in model else None


def is_nothing(value: object) -> bool:
    return value is None or value in ("", []) or value is False
