"""``python -m pybox_kernel -f CONNECTION_FILE`` starts the Jupyter kernel."""

from __future__ import annotations

import logging
import sys
from typing import Final

HERE: Final = ("127.", "localhost", "::1")


def main() -> None:
    # The working directory holds the notebook and what came with it: none of that is to be imported here. The
    # kernelspec says -P, which takes effect before this package is looked for; this is for those who start it by hand.
    if not sys.flags.safe_path:
        del sys.path[0]

    from ipykernel.kernelapp import IPKernelApp

    from pybox_kernel.kernel import PyBoxKernel

    logging.getLogger("IPKernelApp").addFilter(is_no_alarm_about_this_computer)
    logging.getLogger("Comm").addFilter(is_not_about_a_closed_panel)
    # No OutStream: what this process itself prints or logs is for the server's log, and never a cell's output.
    IPKernelApp.launch_instance(kernel_class=PyBoxKernel, outstream_class=None, ignore_cwd=True)


def is_no_alarm_about_this_computer(record: logging.LogRecord) -> bool:
    """A warning of ipykernel's, which stands in a night's log once for every notebook, says that all can be read on the
    way. It holds where the way leads to another computer."""
    from ipykernel.kernelapp import IPKernelApp

    about_the_way = str(record.msg).startswith("Kernel is running over TCP without encryption")
    return not (about_the_way and IPKernelApp.initialized() and IPKernelApp.instance().ip.startswith(HERE))


def is_not_about_a_closed_panel(record: logging.LogRecord) -> bool:
    """A page may have one more word for a panel that is gone by then, as it was replaced by its receipt."""
    return not str(record.msg).startswith("No such comm:")


if __name__ == "__main__":
    main()
