"""``python -m pybox_kernel -f CONNECTION_FILE`` starts the Jupyter kernel."""

from __future__ import annotations

import sys


def main() -> None:
    # The working directory holds the notebook and what came with it: none of that is to be imported here. The
    # kernelspec says -P, which takes effect before this package is looked for; this is for those who start it by hand.
    if not sys.flags.safe_path:
        del sys.path[0]

    from ipykernel.kernelapp import IPKernelApp

    from pybox_kernel.kernel import PyBoxKernel

    # No OutStream: what this process itself prints or logs is for the server's log, and never a cell's output.
    IPKernelApp.launch_instance(kernel_class=PyBoxKernel, outstream_class=None, ignore_cwd=True)


if __name__ == "__main__":
    main()
