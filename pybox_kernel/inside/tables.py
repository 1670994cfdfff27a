"""Data frames as plain data, which the host draws. Only of libraries that are imported already."""

from __future__ import annotations

import math
import sys

from pybox_kernel.inside.events import as_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Table = dict[str, Any]

ROWS, ROWS_AT_EACH_END = 60, 5
COLUMNS, COLUMNS_AT_EACH_END = 20, 10
LEVELS = 8
LONGEST = 200
"""Characters of a cell."""
ONE_LINE = {9: "\\t", 10: "\\n", 13: "\\r"}
LARGEST = 256 * 1024
"""Bytes of JSON of a whole table."""


def table_of(value: object) -> Table | None:
    """The table that ``value`` is; None for what is no data frame, or cannot be read as one."""
    module = str(type(value).__module__).partition(".")[0]
    library = sys.modules.get(module)
    if module not in ("pandas", "polars") or library is None:
        return None
    try:
        table = None
        if isinstance(value, (library.DataFrame, library.Series)):
            table = of_pandas(value) if module == "pandas" else of_polars(value)
        elif module == "pandas" and is_styler(value):
            table = of_styler(value)
        return table if table is not None and len(as_json(table)) <= LARGEST else None
    except Exception:
        return None


def positions(length: int, most: int, each: int) -> tuple[list[int], int | None]:
    """Which of ``length`` things are shown, and before which of these the others were left out."""
    if length <= most:
        return list(range(length)), None
    return [*range(each), *range(length - each, length)], each


def cell(value: object, convert: Callable[[Any], str] = str) -> str:
    try:
        text = "NaN" if isinstance(value, float) and math.isnan(value) else str.__str__(convert(value))
    except Exception as error:
        text = "<%s: %s>" % (type(value).__name__, type(error).__name__)
    text = text.encode("utf-8", "backslashreplace").decode().translate(ONE_LINE)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def of_pandas(value: Any) -> Table | None:
    frame = value.to_frame() if value.ndim == 1 else value
    if value.ndim == 1 and value.name is None:
        frame = frame.set_axis([""], axis=1)
    rows, row_gap = positions(len(frame), ROWS, ROWS_AT_EACH_END)
    columns, column_gap = positions(len(frame.columns), COLUMNS, COLUMNS_AT_EACH_END)
    shown = frame.iloc[rows, columns]
    if max(frame.index.nlevels, frame.columns.nlevels) > LEVELS:
        return None
    cells = [pandas_column(shown, number) for number in range(len(columns))]
    headers = [index_level(shown.columns, level) for level in range(shown.columns.nlevels)]
    index = [index_level(shown.index, level) for level in range(shown.index.nlevels)]
    return {
        "columns": headers,
        "column_names": level_names(shown.columns) if any(level_names(shown.columns)) else [],
        "index_names": level_names(shown.index),
        "index": [list(level) for level in zip(*index, strict=True)],
        "rows": [[column[row] for column in cells] for row in range(len(rows))],
        "numeric": [is_numeric(dtype) for dtype in shown.dtypes],
        "dtypes": [cell(dtype) for dtype in shown.dtypes],
        "shape": list(frame.shape),
        "row_gap": row_gap,
        "column_gap": column_gap,
    }


def is_numeric(dtype: object) -> bool:
    return getattr(dtype, "kind", "O") in "iufc"


def pandas_column(frame: Any, number: int) -> list[str]:
    """As pandas itself writes the column; value by value where it cannot."""
    values = frame.iloc[:, number]
    try:
        from importlib import import_module

        format_array = import_module("pandas.io.formats.format").format_array
        texts = format_array(values._values, None, na_rep="NaN", leading_space=False)
        found = [cell(text.strip()) for text in texts]
        if len(found) == len(values):
            return found
    except Exception:
        pass
    return [cell(value) for value in values]


def level_names(index: Any) -> list[str]:
    return ["" if name is None else cell(name) for name in index.names]


def index_level(index: Any, level: int) -> list[str]:
    values = index.get_level_values(level)
    if getattr(values.dtype, "kind", "O") in "Mm":  # a day is a day, where pandas writes them so
        try:
            return [cell(text) for text in values.astype(str)]
        except Exception:
            pass
    return [cell(value) for value in values]


def is_styler(value: object) -> bool:
    kind = getattr(sys.modules.get("pandas.io.formats.style"), "Styler", None)
    return isinstance(kind, type) and isinstance(value, kind)


def of_styler(value: Any) -> Table | None:
    """The texts that it would show, without colours and the like; what it hides is not there. Of many rows or columns
    the first, as pandas trims them. From what pandas gives its own templates."""
    if value.concatenated:
        return None
    frame = value.data
    given = value._translate(False, False, max_rows=ROWS, max_cols=COLUMNS)
    headers = [[part for part in line if part["class"].startswith("col_heading")] for line in given["head"]]
    columns = [texts_of(line) for line in headers if line]
    lines = [line for line in given["body"] if not trimmed(line[0])]
    index = [[part for part in line if part["type"] == "th"] for line in lines]
    rows = [texts_of(part for part in line if part["type"] == "td") for line in lines]
    named = level_names(frame.columns) if not value.hide_column_names and not any(value.hide_columns_) else []
    names = [name if not value.hide_index_names else "" for name in level_names(frame.index)]
    if lines:
        names = [name for name, part in zip(names, index[0], strict=True) if part["is_visible"]]
    width = len(rows[0]) if rows else len(columns[0]) if columns else 0
    numbers = [number for number in range(len(frame.columns)) if number not in value.hidden_columns]
    height = len(frame) - len(set(value.hidden_rows))
    return {
        "columns": columns,
        "column_names": named if any(named) and len(named) == len(columns) else [],
        "index_names": names,
        "index": [texts_of(line) for line in index],
        "rows": rows,
        "numeric": [is_numeric(frame.dtypes.iloc[number]) for number in numbers[:width]],
        "dtypes": [],
        "shape": [height, len(numbers)],
        "row_gap": len(rows) if height > len(rows) else None,
        "column_gap": width if len(numbers) > width else None,
    }


def texts_of(line: Iterable[dict[str, Any]]) -> list[str]:
    return [cell(part["display_value"]) for part in line if part["is_visible"] and not trimmed(part)]


def trimmed(part: dict[str, Any]) -> bool:
    return "_trim" in part["class"]


def of_polars(value: Any) -> Table:
    frame = value.to_frame() if not hasattr(value, "columns") else value
    rows, row_gap = positions(frame.height, ROWS, ROWS_AT_EACH_END)
    columns, column_gap = positions(frame.width, COLUMNS, COLUMNS_AT_EACH_END)
    names = [frame.columns[number] for number in columns]
    dtypes = [frame.schema[name] for name in names]
    shown = frame.select(names)
    parts = [shown] if row_gap is None else [shown.head(row_gap), shown.tail(len(rows) - row_gap)]
    return {
        "columns": [[cell(name) for name in names]],
        "index_names": [],
        "index": [[] for _ in rows],
        "rows": [polars_cells(row) for part in parts for row in part.iter_rows()],
        "numeric": [bool(dtype.is_numeric()) for dtype in dtypes],
        "dtypes": [cell(dtype) for dtype in dtypes],
        "shape": [frame.height, frame.width],
        "row_gap": row_gap,
        "column_gap": column_gap,
    }


def polars_cells(row: Iterable[object]) -> list[str]:
    return ["null" if value is None else cell(value) for value in row]
