"""The README's Python does what stands behind it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import pybox_kernel

pytestmark = pytest.mark.engine

README = (Path(pybox_kernel.__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
RESULT = re.compile(r"^( *)(\S.*?)  # (.+)$", re.MULTILINE)


def literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return False
    return True


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_each_result_in_the_readme_is_what_comes(program: str, box_image: object) -> None:
    found = []

    def compared(line: re.Match[str]) -> str:
        indent, expression, result = line.groups()
        return f"{indent}compare(({expression}), ({result}))" if literal(result) else line[0]

    exec(RESULT.sub(compared, program), {"compare": lambda *pair: found.append(pair)})
    assert found
    assert [got for got, _ in found] == [wanted for _, wanted in found]
