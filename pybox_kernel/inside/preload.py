"""Imports what the image offers, before the box says that it is ready: a program's time limit is for the program.

What cannot be imported is left for the program to find. Standard library only.
"""

from __future__ import annotations

import os
import sys

OFFER = "/usr/local/lib/pybox-offer"
"""As ``images.steps`` has it."""


def import_offered(offer: str = OFFER) -> None:
    try:
        with open(os.path.join(offer, "preload")) as file:
            names = file.read().split()
    except OSError:
        return
    lay_out_fonts(os.path.join(offer, "matplotlib"))
    # Words of a package here are not the program's, and come before anyone could read them.
    silent, streams = os.open("/dev/null", os.O_WRONLY), [os.dup(1), os.dup(2)]
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    try:
        for name in names:
            try:
                __import__(name)
            except BaseException:
                pass
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        for number, stream in enumerate(streams, start=1):
            os.dup2(stream, number)
            os.close(stream)
        os.close(silent)


def lay_out_fonts(fonts: str) -> None:
    """matplotlib wants a folder that it can write to, and looks there for the list of fonts."""
    folder = os.environ.get("MPLCONFIGDIR")
    if not folder:
        return
    try:
        os.mkdir(folder, 0o700)
        for name in os.listdir(fonts):
            os.symlink(os.path.join(fonts, name), os.path.join(folder, name))
    except OSError:
        pass
