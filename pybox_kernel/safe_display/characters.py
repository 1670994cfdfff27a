"""Characters that are invisible, or that change what stands around them: which they are, and how they are shown."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["CONDITIONAL", "ESCAPED", "ESCAPED_IN_NAMES", "STACK", "escape", "without_unwanted"]

STACK: Final = 8
"""So many marks may stand on one letter."""


def escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# Controls, line separators, interlinear marks, surrogates, and what Unicode calls default-ignorable
# (DerivedCoreProperties.txt) except the few characters that JOINERS and SELECTORS below decide on.
HIDDEN: Final = (
    (0x0, 0x8), (0xB, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160),
    (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200B), (0x200E, 0x200F), (0x2028, 0x202E),
    (0x2060, 0x206F), (0x3164, 0x3164), (0xD800, 0xDFFF), (0xFE00, 0xFE0D), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
JOINERS: Final = "\u200c\u200d"
SELECTORS: Final = "\ufe0e\ufe0f"
ESCAPED: Final = {code: escape(code) for first, last in HIDDEN for code in range(first, last + 1)}
ESCAPED_IN_NAMES: Final = ESCAPED | {ord(c): escape(ord(c)) for c in JOINERS + SELECTORS}
ESCAPED_IN_NAMES.update({9: "\\t", 10: "\\n", 13: "\\r"})

MARKS: Final = (
    "\u0300-\u034e\u0350-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f"
)
JOINING: Final = "\u0620-\u08ff\u0900-\u0dff"  # Arabic and Indic scripts
PICTURES: Final = "\u203c-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
TWO_FORMS: Final = f"#*0-9\xa9\xae{PICTURES}"
CONDITIONAL: Final = re.compile(f"[{JOINERS}{SELECTORS}{MARKS}]")
UNWANTED: Final = re.compile(
    f"(?<![{JOINING}{PICTURES}])(?<![{TWO_FORMS}]\ufe0f)\u200d|(?<![{JOINING}])\u200c"
    f"|(?<![{TWO_FORMS}])[{SELECTORS}]|(?<=[{MARKS}]{{{STACK}}})[{MARKS}]"
)


def without_unwanted(text: str, start: int) -> str:
    """``text`` from ``start`` on, where what is not wanted after the characters before it is escaped."""
    parts = []
    for found in UNWANTED.finditer(text, start):
        parts += [text[start : found.start()], escape(ord(found[0]))]
        start = found.end()
    return "".join([*parts, text[start:]])
