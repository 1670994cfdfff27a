"""What can be said of the container engine at a shell."""

from __future__ import annotations

import argparse

from pybox_kernel.sessions.session import Wish, wish_of

__all__ = ["add_engine_options", "wished"]


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        default="",
        metavar="WHICH",
        help="the container engine: local, vm (the private virtual machine), or an address like unix:///PATH",
    )
    parser.add_argument("--require-vm", action="store_true", help="run nothing but in the private virtual machine")
    parser.add_argument("--another-machine", action="store_true", help="yes to an --engine that is on another machine")


def wished(options: argparse.Namespace) -> Wish:
    """Raises OptionError."""
    return wish_of(options.engine, require_vm=options.require_vm, another_machine=options.another_machine)
