"""What the images offer beside the standard library: the built-in ``data`` and ``class``, and a person's own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from pybox_kernel.errors import OptionError
from pybox_kernel.images.package_locks import Lock, parse_lock
from pybox_kernel.images.recipes import Offer, Pin

__all__ = ["BUILT_IN", "built_in_offer", "in_words", "own_offer"]

BUILT_IN: Final = ("class", "data")
"""Images whose packages this version of PyBox has locked itself."""

PRELOADED: Final = {
    "numpy": ("numpy",),
    "pandas": ("pandas",),
    "polars": ("polars",),
    "matplotlib": ("matplotlib.pyplot",),
    "scipy": ("scipy.stats",),
    "scikit-learn": ("sklearn.linear_model",),
    "seaborn": ("seaborn",),
}
"""What takes long to import, by the package that has it."""
NAMED: Final = 6


@cache
def built_in_offer(name: str) -> Offer | None:
    """What this version of PyBox puts into its own image ``name``; None for any other."""
    if name not in BUILT_IN:
        return None
    return own_offer(parse_lock((Path(__file__).parent / "locks" / f"{name}.txt").read_bytes()))


def own_offer(lock: Lock, preload: tuple[str, ...] = ()) -> Offer:
    """An offer of what is locked. A box imports at its start what is known to take long, and the modules ``preload``.

    Raises OptionError for what is no name of a module.
    """
    names = {package.name for package in lock.packages}
    known = tuple(module for package, modules in PRELOADED.items() if package in names for module in modules)
    try:
        pins = tuple(Pin(name=name, version=version, hashes=hashes) for name, version, hashes in lock.packages)
    except ValidationError as error:
        raise OptionError("A version in the lock is longer than versions are.", "Lock another version.") from error
    try:
        return Offer(pins=pins, preload=(*known, *(name for name in preload if name not in known)))
    except ValidationError as error:
        raise OptionError(
            f"A module to be imported at the start is not named as Python names modules: {', '.join(preload)[:200]}.",
            "Give at most 40 names like pandas or matplotlib.pyplot.",
        ) from error


def in_words(offer: Offer) -> str:
    """How many packages there are and what some of them are, those that people ask for first."""
    known = list(PRELOADED)
    pins = sorted(offer.pins, key=lambda pin: known.index(pin.name) if pin.name in known else len(known))
    named = [f"{pin.name} {pin.version}" for pin in pins[:NAMED]]
    more = len(pins) - len(named)
    count = "1 Python package" if len(pins) == 1 else f"{len(pins)} Python packages"
    return f"{count}: {', '.join(named)}{f' and {more} more' if more else ''}"
