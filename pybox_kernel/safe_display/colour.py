"""The colours that a terminal's text may have: ``ESC [ numbers m`` as changes of eight properties."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

__all__ = ["Change", "colour_changes"]

BOLD, FAINT, ITALIC, UNDERLINE, INVERSE, STRUCK, FRONT, BACK = range(8)
Change = tuple[int, str]
CODES: Final[dict[int, tuple[Change, ...]]] = {
    0: tuple((slot, "") for slot in range(8)),
    1: ((BOLD, "1"),), 2: ((FAINT, "2"),), 3: ((ITALIC, "3"),), 4: ((UNDERLINE, "4"),),
    7: ((INVERSE, "7"),), 9: ((STRUCK, "9"),), 22: ((BOLD, ""), (FAINT, "")), 23: ((ITALIC, ""),),
    24: ((UNDERLINE, ""),), 27: ((INVERSE, ""),), 29: ((STRUCK, ""),), 39: ((FRONT, ""),), 49: ((BACK, ""),),
    **{code: ((FRONT, str(code)),) for code in (*range(30, 38), *range(90, 98))},
    **{code: ((BACK, str(code)),) for code in (*range(40, 48), *range(100, 108))},
}  # fmt: skip
LONG_FORMS: Final = {5: 2, 2: 4}
"""After 38 or 48: how many numbers belong to it, this one included."""


@lru_cache(maxsize=256)
def colour_changes(parameters: str) -> tuple[Change, ...]:
    """What ``ESC [ parameters m`` changes. From a 38 or 48 that is not well-formed on, the list is void."""
    numbers = [int(part or "0") for part in parameters.split(";")]
    changes: list[Change] = []
    position = 0
    while position < len(numbers):
        code = numbers[position]
        position += 1
        if code in (38, 48):
            size = LONG_FORMS.get(numbers[position], 0) if position < len(numbers) else 0
            values = numbers[position : position + size]
            if not values or len(values) < size or max(values) > 255:
                break
            changes.append((FRONT if code == 38 else BACK, ";".join(map(str, (code, *values)))))
            position += size
        else:
            changes.extend(CODES.get(code, ()))
    return tuple(changes)
