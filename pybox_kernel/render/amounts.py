"""Amounts as a person says them. 1 MB is 1024 times 1024 bytes here, as for the limits."""

from __future__ import annotations

from pybox_kernel.policy import KIB, MIB
from pybox_kernel.safe_display.text import safe_name

__all__ = ["counted", "finished", "megabytes", "milliseconds", "plain", "seconds", "sentence", "size"]


def plain(number: float, decimals: int) -> str:
    """At most ``decimals`` decimals, without trailing zeros: 2, 0.5, 0.25."""
    return f"{number:.{decimals}f}".rstrip("0").rstrip(".") if decimals else f"{number:.0f}"


def megabytes(number: float) -> str:
    """Without the unit: 128, 8.5."""
    return plain(number / MIB, 0 if number >= 10 * MIB else 1)


def size(number: int) -> str:
    if number < KIB:
        return counted(number, "byte")
    if number < MIB:
        return f"{plain(number / KIB, 0 if number >= 10 * KIB else 1)} kB"
    if number < KIB * MIB:
        return f"{megabytes(number)} MB"
    return f"{megabytes(number / KIB)} GB"


def seconds(number: float) -> str:
    """Without the unit, as a measured time: 1.4, 0.03; never 0 for what took time."""
    return f"{number:.1f}" if number >= 0.095 else f"{max(number, 0.01 if number > 0 else 0.0):.2f}"


def milliseconds(number: float) -> str:
    if number >= 1000:
        return f"{number / 1000:.1f} s"
    return f"{number:.0f} ms" if number >= 9.95 else f"{number:.1f} ms"


def counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def finished(text: str, most: int = 300) -> str:
    """A text from a receipt as one safe line that ends like a sentence."""
    shown = safe_name(text, most).strip()
    return shown if shown.endswith((".", "!", "?", "…")) else f"{shown}."


def sentence(text: str, most: int = 300) -> str:
    """The same, beginning like one as well."""
    shown = finished(text, most)
    return shown[:1].upper() + shown[1:]
