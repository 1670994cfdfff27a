"""Hostile names, and things by a notebook's name that are none."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Final

from tests.hostile_notebooks.making import add, code, document, special

PLAIN: Final = document(code())
for number, name in enumerate(
    (
        "-x.ipynb",
        "--to.ipynb",
        "CON.ipynb",
        "nul .ipynb",
        ".hidden.ipynb",
        "...ipynb",
        " .ipynb",
        "a\nb.ipynb",
        "\x1b]0;BITTEN\x07\x1b[2J.ipynb",
        "\u202egnp.ipynb",
        "a%2e%2e%2fb?c#d&token=x.ipynb",
        "<img src=x: onerror=1>.ipynb",
        "'\"`$(id);|&.ipynb",
        "back\\..\\slash.ipynb",
        "UPPER.IPYNB",
        "upper.ipynb",
        "x" * 240 + ".ipynb",
        "é" * 120 + ".ipynb",
        "\U0001f4a9\u200d\ufe0f.ipynb",
        "नमस्ते.ipynb",
        "e\u0301.ipynb",
        "\u00e9.ipynb",
        "jupyter_server_config.py.ipynb",
        "what-was-removed.txt.ipynb",
        "-dir/ b/CON/x.ipynb",
        "a.ipynb.ipynb",
        "__init__.ipynb",
    )
):
    add(name, f"a name, number {number}", PLAIN)


def not_utf8(folder: Path) -> None:
    (Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe-bytes.ipynb"))).write_bytes(b"{}")


def listening(folder: Path) -> None:
    before = Path.cwd()
    os.chdir(folder)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("socket.ipynb")
    finally:
        os.chdir(before)


def linked_folder(folder: Path) -> None:
    (folder / "linked").symlink_to("/etc", target_is_directory=True)


special("file link", "a link to a file", lambda f: (f / "link.ipynb").symlink_to("/etc/passwd"), "is a link")
special("loop", "a link to itself", lambda f: (f / "loop.ipynb").symlink_to("loop.ipynb"), "is a link")
special("up", "a link to the folder above", lambda f: (f / "up").symlink_to(".."), "")
special("folder link", "a link to a folder", linked_folder, "")
special("pipe", "a pipe, which waits", lambda f: os.mkfifo(f / "pipe.ipynb"), "is a pipe")
special("socket", "a socket", listening, "is a socket")
special("folder", "a folder by a notebook's name", lambda f: (f / "folder.ipynb").mkdir(), "is a folder")
special("device", "a link to a device", lambda f: (f / "device.ipynb").symlink_to("/dev/zero"), "is a link")
special("bytes", "a name that is no text", not_utf8, "of which format")
special("archive", "an archive with who knows what", lambda f: (f / "more.zip").write_bytes(b"PK") and None, "")
special("configuration", "settings of Jupyter's", lambda f: (f / "jupyter_config.py").write_text("1/0") and None, "")
