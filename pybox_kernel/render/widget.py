"""A receipt for the page: what a message carries, and a panel that lives while the kernel does.

The panel is one ``HTML`` widget, three models in all: everything a receipt does, folding included, HTML does alone.
A panel's models are lost when the notebook is reopened, so every bundle also carries the receipt as static HTML and
as text. These stay in the notebook's file; the JSON, as long as all the rest, is in the panel only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pybox_kernel.render.html import render_html
from pybox_kernel.render.text import render_short

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybox_kernel.receipt.model import Receipt

__all__ = ["VIEW", "bundle", "close", "panel", "panel_of", "with_panel"]

VIEW: Final = "application/vnd.jupyter.widget-view+json"


def panel(receipt: Receipt) -> Any:
    """An ``ipywidgets.HTML``. Needs a kernel with a comm manager; ``close`` it when it is done with."""
    return panel_of(render_html(receipt))


def panel_of(value: str, model_id: str | None = None) -> Any:
    """A panel of what ``render_html`` gave; under the same ``model_id`` as another that was closed, it takes its
    place on pages that ask for that one."""
    import ipywidgets

    return ipywidgets.HTML(value=value, model_id=model_id)


def close(shown: Any) -> None:
    """Closes a panel with the two models that it made for itself, which its own ``close`` leaves behind."""
    for model in (shown.layout, shown.style, shown):
        model.close()


def bundle(receipt: Receipt, *, in_mid_line: bool = False) -> dict[str, object]:
    """The data of a display message. The text is lines of its own, also in a terminal where the program's last line
    is still open."""
    return {
        "text/plain": ("\n" if in_mid_line else "") + render_short(receipt) + "\n",
        "text/html": render_html(receipt, with_json=False),
    }


def with_panel(data: Mapping[str, object], shown: Any) -> dict[str, object]:
    """The same, with the panel ``shown``."""
    return {**data, VIEW: shown._repr_mimebundle_()[VIEW]}
