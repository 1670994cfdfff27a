"""Puts the kernelspecs where a Jupyter finds them: the wheel does so for its own environment, this for any other."""

from __future__ import annotations

import json
import shutil
import sys
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from jupyter_client.kernelspec import KernelSpecManager

from pybox_kernel.errors import OptionError, SetupError

__all__ = [
    "DATA_KERNEL_NAME",
    "DISPLAY_NAMES",
    "KERNEL_NAME",
    "display_name",
    "install",
    "kernel_name",
    "put_kernel_of",
]

KERNEL_NAME = "pybox-sealed"
DATA_KERNEL_NAME = "pybox-sealed-data"
DISPLAY_NAMES = {KERNEL_NAME: "PyBox (sealed)", DATA_KERNEL_NAME: "PyBox (sealed, data)"}
"""What Jupyter's launcher shows for each kernel."""


def kernel_name(image: str) -> str:
    """Of the kernel whose boxes are made from ``image``."""
    return KERNEL_NAME if image == "stdlib" else f"{KERNEL_NAME}-{image}"


def display_name(kernel: str) -> str:
    """What Jupyter's launcher shows for the kernel with this name."""
    return DISPLAY_NAMES.get(kernel, f"PyBox (sealed, {kernel.removeprefix(KERNEL_NAME).lstrip('-')})")


def install(*, user: bool = False, prefix: str | None = None, sys_prefix: bool = False) -> tuple[Path, ...]:
    """Installs the kernels and returns the folder of each, in the order of DISPLAY_NAMES. What is there is replaced.

    Exactly one place is to be named: the user's own Jupyter folder, ``prefix``, or this environment. The kernel is
    started with the Python that runs this, whatever environment the Jupyter that starts it belongs to.
    Raises OptionError for none or several places, SetupError where the place cannot be written.
    """
    if [user, prefix is not None, sys_prefix].count(True) != 1:
        raise OptionError(
            "The kernel can be installed in one place at a time.",
            "Name exactly one of --user, --sys-prefix and --prefix DIR.",
        )
    place = None if user else str(Path(prefix).expanduser().absolute()) if prefix is not None else sys.prefix
    with TemporaryDirectory(prefix="pybox-kernelspec-") as folder:
        for name in DISPLAY_NAMES:
            shutil.copytree(_own_kernelspec(name), Path(folder, name))
            _start_with_this_python(Path(folder, name, "kernel.json"))
        specs, put = KernelSpecManager(), []
        try:
            for name in DISPLAY_NAMES:
                put.append(specs.install_kernel_spec(str(Path(folder, name)), name, user=user, prefix=place))
            return tuple(Path(found) for found in put)
        except OSError as error:
            raise SetupError(
                f"The kernel could not be installed: {error.filename or place}: {error.strerror or error}.",
                "Name a folder you may write to, or use --user.",
            ) from error


def put_kernel_of(image: str, folder: Path) -> None:
    """Puts the kernel for an ``image`` of a person's own beside those in ``folder``, where ``install`` put these."""
    name = kernel_name(image)
    shutil.copytree(folder / DATA_KERNEL_NAME, folder / name)
    path = folder / name / "kernel.json"
    spec = json.loads(path.read_text(encoding="utf-8"))
    spec["argv"][-1] = f"--PyBoxKernel.image={image}"
    spec["display_name"] = display_name(name)
    path.write_text(json.dumps(spec, indent=2) + "\n", encoding="utf-8")


def _own_kernelspec(name: str) -> Path:
    """The folder with a kernelspec: beside the package in a checkout, else where its wheel put it."""
    checkout = Path(__file__).parent.parent / "kernelspec" / name
    if (checkout / "kernel.json").is_file():
        return checkout
    try:
        files = metadata.files("pybox-kernel") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.parts[-2:] == (name, "kernel.json"):
            return Path(str(file.locate())).resolve().parent
    raise SetupError(
        "The files of the kernelspec are not where this installation should have them.",
        "Install PyBox again: pip install --force-reinstall pybox-kernel.",
    )


def _start_with_this_python(kernel_json: Path) -> None:
    spec = json.loads(kernel_json.read_text(encoding="utf-8"))
    spec["argv"][0] = sys.executable
    kernel_json.write_text(json.dumps(spec, indent=2) + "\n", encoding="utf-8")
