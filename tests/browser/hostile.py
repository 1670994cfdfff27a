"""A corpus of hostile outputs: programs whose output tries to act on the reader, in a page or a terminal.

A payload that gets its way calls ``bite`` with its name, asks for something below ``LEAK``, moves what stands outside
its own output, or passes for a receipt. The programs use nothing but what an ordinary notebook has (``display`` and
``_repr_*_`` methods), so that the same corpus can be run without PyBox to see that its payloads do work.
"""

from __future__ import annotations

from tests.browser import hostile_pages, hostile_texts  # noqa: F401  # each puts its payloads into the corpus
from tests.browser.hostile_making import BITTEN, CORPUS, LEAK, Hostile

__all__ = ["BITTEN", "CORPUS", "LEAK", "Hostile"]
