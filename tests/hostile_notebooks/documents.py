"""Hostile documents: kernels and metadata that act, formats that are old, new or odd, and files that are no notebooks."""

# ruff: noqa: E501

from __future__ import annotations

import json

from tests.browser.hostile_making import LEAK, bite
from tests.hostile_notebooks.making import PYTHON, add, code, document, markdown

# Kernels and metadata -------------------------------------------------------------------------------------------------

for number, (tries, metadata) in enumerate(
    (
        (
            "python3 by its own name",
            {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        ),
        ("python3 in upper case", {"kernelspec": {"name": "PYTHON3", "display_name": "PyBox (sealed)"}}),
        (
            "a kernel by a path",
            {"kernelspec": {"name": "../../../tmp/evil", "display_name": "x", "argv": ["sh", "-c", "id"]}},
        ),
        ("a kernel that is none of a kind", {"kernelspec": ["python3"], "language_info": 1}),
        (
            "another language, and a page that draws it",
            {
                "kernelspec": {"name": "ir", "language": "R"},
                "language_info": {"name": "R", "codemirror_mode": f"{LEAK}/mode.js", "mimetype": "text/html"},
            },
        ),
        ("an old name of a kernel", {"kernel_info": {"name": "python3"}, "signature": "sha256:00", "orig_nbformat": 2}),
        (
            "a kernel of a cloud",
            {"kernelspec": {"name": "python3"}, "kernelInfo": {"name": "python3"}, "connectionUrl": f"{LEAK}/ws"},
        ),
    )
):
    add(f"kernel-{number}", tries, document(code(), metadata=metadata))
KNOWN = {
    "celltoolbar": "Slideshow", "toc": {"base_numbering": f"<img src={LEAK}/a.png>", "toc_window_display": True},
    "rise": {"autolaunch": True, "chalkboard": {"src": f"{LEAK}/b"}, "header": f"<script>{bite('rise')}</script>", "theme": f"{LEAK}/t"},
    "livereveal": {"autolaunch": True, "overlay": f"<img src={LEAK}/c.png>"}, "jupytext": {"formats": "ipynb,../../x//py:light"},
    "papermill": {"input_path": "/etc/passwd", "output_path": f"{LEAK}/d"}, "nbdime-conflicts": [1], "hide_input": True,
    "colab": {"provenance": [{"file_id": f"{LEAK}/e"}], "name": "<b>"}, "accelerator": "GPU", "gpuClass": "x",
    "vscode": {"interpreter": {"hash": "00"}, "languageId": "shellscript"}, "varInspector": {"types_to_exclude": [], "cols": {"lenName": bite("vars")}},
    "nbTranslate": {"displayLangs": ["*"], "sourceLang": f"{LEAK}/f"}, "latex_envs": {"eqLabelWithNumbers": f"<img src={LEAK}/g.png>"},
    "interpreter": {"hash": "x"}, "deepnote": {}, "deepnote_persisted_session": {}, "kaggle": {"accelerator": "x"}, "azdata": {},
    "hubmap": {}, "voila": {"template": "../../x"}, "jupyter-dashboards": {"version": 1}, "extensions": {"jupyter_dashboards": {}},
    "title": f"<img src={LEAK}/h.png>", "authors": [{"name": f"<script>{bite('author')}</script>"}], "execution": {"timeout": 0},
    "language_info": {"name": "python", "codemirror_mode": {"name": "../x", "version": 3}, "file_extension": ".sh", "nbconvert_exporter": "../x"},
    "mystnb": {"execution_mode": "force"}, "kernelspec": {"name": "python3", "env": {"LD_PRELOAD": "/tmp/x"}}, "widgets": {"state": {}},
}  # fmt: skip
add("metadata-notebook", "metadata of every known extension", document(code(), metadata=KNOWN))
CELL = {
    "trusted": True, "scrolled": "x", "collapsed": True, "editable": False, "deletable": False, "jupyter": {"source_hidden": True, "outputs_hidden": True},
    "tags": ["remove-input", "hide-cell", f"<img src={LEAK}/a.png>"], "slideshow": {"slide_type": "skip"}, "nbgrader": {"grade": True, "points": 1e999, "locked": True},
    "format": "text/html", "name": f"<script>{bite('cell')}</script>", "vscode": {"languageId": "shellscript"}, "colab": {"base_uri": LEAK}, "id": "x",
    "cellView": "form", "execution": {"iopub.execute_input": "x"}, "papermill": {"status": "completed"}, "pycharm": {"name": "#%%"}, "hide_input": True,
    "solution2": "hidden", "init_cell": True, "run_control": {"frozen": True}, "extensions": {"jupyter_dashboards": {}}, "is_executing": True,
}  # fmt: skip
add(
    "metadata-cells",
    "a cell's metadata of every known extension",
    document(code(metadata=CELL), markdown("x", metadata=CELL), {"cell_type": "raw", "metadata": CELL, "source": ""}),
)
add(
    "metadata-odd",
    "metadata that is none",
    document(
        code(metadata=[1]),
        markdown("x", metadata=None),
        code(metadata="x"),
        metadata={"": 1, "\u202e": {}, "\x1b]0;BITTEN\x07": 2, "a" * 5000: 3},
    ),
)
add("metadata-many", "100,000 settings", lambda: document(code(), metadata={str(n): {} for n in range(100_000)}))
add(
    "metadata-proto",
    "names that JavaScript knows",
    b'{"nbformat": 4, "nbformat_minor": 5, "__proto__": {"trusted": true}, "constructor": 1, "metadata": {"__proto__": {"kernelspec": {"name": "python3"}}}, "cells": [{"__proto__": {"cell_type": "code"}, "cell_type": "code", "metadata": {"__proto__": 1}, "source": "1", "outputs": []}]}',
)

# Formats --------------------------------------------------------------------------------------------------------------

OLD = [
    {"cell_type": "code", "input": ["1 + 1"], "prompt_number": 1, "language": "python", "collapsed": False,
     "outputs": [{"output_type": "pyout", "html": f"<script>{bite('v3')}</script>", "text": "2"}]},
    {"cell_type": "html", "source": f"<img src={LEAK}/v3.png>"},
    {"cell_type": "heading", "level": 2, "source": f"<img src={LEAK}/h.png>"},
    {"cell_type": "heading", "level": 10**9, "source": "x"},
    {"cell_type": "markdown", "source": f"![p]({LEAK}/m.png)"},
]  # fmt: skip
add(
    "format-3",
    "an old format",
    {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": "x", "kernelspec": {"name": "python3"}},
        "worksheets": [{"cells": OLD, "metadata": {}}],
    },
)
add(
    "format-2",
    "an older one",
    {"nbformat": 2, "metadata": {}, "worksheets": [{"cells": OLD}, {"cells": OLD}, {"cells": 1}, 1]},
)
add("format-1", "the oldest one", {"nbformat": 1, "cells": OLD}, "of which format")
add("format-5", "one that is not there yet", {**document(code()), "nbformat": 5}, "newer than")
add("format-huge", "a number without end", b'{"nbformat": ' + b"4" * 10_000 + b', "cells": []}', "no JSON")
add("format-true", "a truth for a number", {**document(code()), "nbformat": True}, "of which format")
add("format-text", "a text for a number", {**document(code()), "nbformat": "4"}, "of which format")
add("format-minor", "a minor number that no version has", {**document(code()), "nbformat_minor": 10**30})
add("format-minor-missing", "no minor number, nor metadata", {"nbformat": 4, "cells": [code()]})
add("format-sheets", "worksheets that are none", {"nbformat": 3, "worksheets": 5}, "no list of cells")
add("cells-missing", "no cells", {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}, "no list of cells")
add("cells-object", "cells that are no list", {**document(), "cells": {"0": code()}}, "no list of cells")
add(
    "cells-odd",
    "cells that are none",
    document(
        1,
        None,
        [],
        "x",
        {},
        {"cell_type": "x", "source": f"<img src={LEAK}/a.png>"},
        {"cell_type": ["code"], "source": "x"},
        {"cell_type": {}, "source": []},
        True,
    ),
)
add(
    "cells-ids",
    "ids that are the same, odd or missing",
    document(
        code(id="a"),
        code(id="a"),
        code(id="<script>"),
        code(id=5),
        {k: v for k, v in code().items() if k != "id"},
        code(id="x" * 10_000),
        markdown("x", id="../.."),
    ),
)
add("cells-many", "2,001 cells", lambda: document(*[code() for _ in range(2001)]), "cells; the most is")
add(
    "source-odd",
    "texts that are none",
    document(
        code([1, None, {"a": "b"}]), code(None), code({"x": 1}), code([["x"]]), markdown(7), markdown(True), code([])
    ),
)
add(
    "source-missing",
    "cells without text",
    document({"cell_type": "code"}, {"cell_type": "markdown"}, {"cell_type": "raw"}),
)
add("source-long", "a code cell of a megabyte", lambda: document(code("x = 1 # " + "y" * 1_000_000)))
add(
    "outputs-odd",
    "outputs that are none",
    document(
        code(outputs=[1, None, [], "x", {}, {"output_type": 5, "data": [1]}, {"output_type": {"a": 1}}]),
        code(outputs={"a": 1}),
        code(outputs="x"),
        code(outputs=None),
    ),
)
add(
    "outputs-huge",
    "100 MB of output",
    lambda: (
        json.dumps(document(code(outputs=({"output_type": "stream", "name": "stdout", "text": "@@@"},))))
        .encode()
        .replace(b"@@@", b"x" * (100 << 20))
    ),
)
add(
    "outputs-too-huge",
    "more than anything is read of",
    lambda: b'{"a": "' + b"x" * (129 << 20) + b'"}',
    "has over 128 MB",
)
add(
    "outputs-many",
    "a list of two million lists",
    lambda: (
        json.dumps(document(code())).encode().replace(b'"outputs": []', b'"outputs": [' + b"[]," * 2_000_000 + b"[]]")
    ),
    "far more parts",
)
add(
    "outputs-nan",
    "numbers that are none",
    json.dumps(
        document(
            code(
                outputs=(
                    {
                        "output_type": "display_data",
                        "data": {"application/json": [float("nan"), float("inf"), -float("inf")]},
                        "metadata": {},
                    },
                )
            )
        )
    ).encode(),
)
add(
    "deep",
    "lists in one another, without end",
    b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nested without end",
)
add(
    "deep-objects",
    "objects in one another, without end",
    b'{"nbformat": 4, "cells": [], "metadata": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
    "nested without end",
)
add(
    "keys-twice",
    "keys that are there twice",
    b'{"nbformat": 4, "nbformat_minor": 5, "cells": [], "metadata": {"kernelspec": {"name": "pybox-sealed"}, "kernelspec": {"name": "python3"}}, "cells": [{"cell_type": "raw", "cell_type": "markdown", "metadata": {}, "source": "x", "source": "<img src='
    + LEAK.encode()
    + b'/a.png>"}]}',
)
add(
    "mark",
    "a byte order mark",
    b"\xef\xbb\xbf" + json.dumps(document(code(), markdown(f"![p]({LEAK}/a.png)"))).encode(),
)
add(
    "surrogates",
    "half characters everywhere",
    b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {"\\ud800": "\\udfff"}, "cells": [{"cell_type": "code", "id": "\\ud800", "metadata": {}, "source": "x = \'\\ud800\'", "outputs": []}]}',
)

# No notebooks ---------------------------------------------------------------------------------------------------------

add("empty", "nothing", b"", "is empty")
add("blank", "white space", b" \n\t ", "is empty")
add("cut-off", "a file that ends early", json.dumps(document(code())).encode()[:-20], "no JSON")
add("program", "a program", b"#!/usr/bin/env python3\nimport os\n", "no JSON")
add("page", "a page", f"<!doctype html><script>{bite('page')}</script>".encode(), "no JSON")
add("pickle", "a pickle", b"\x80\x04\x95\x1e\x00\x00\x00cos\nsystem\n(S'id'\ntR.", "no text in UTF-8")
add("utf-16", "another encoding", json.dumps(document(code())).encode("utf-16"), "no text in UTF-8")
add("latin", "an older encoding", '{"nbformat": 4, "name": "é"}'.encode("latin-1"), "no text in UTF-8")
add("list", "JSON of another kind", b"[1, 2, 3]", "JSON of another kind")
add("number", "a number", b"4", "JSON of another kind")
add("two", "two documents", json.dumps(document()).encode() * 2, "no JSON")
add("archive", "an archive by a notebook's name", b"PK\x03\x04\x14\x00\x00\x00\x08\x00\xff\xfe", "no text in UTF-8")
add("message", "a message that clears the screen", b'{"\x1b]0;BITTEN\x07\x1b[2J": \x1b[31m', "no JSON")
add(
    "unsealed-name",
    "a document that is as PyBox writes it",
    document(code(), metadata={**PYTHON, "pybox": {"run": "0.1.0"}}),
)
