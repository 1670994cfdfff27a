"""The steps of a build, as text: the engine runs them, and their hash is part of every recipe."""

from __future__ import annotations

import json
from typing import Final, Literal

from pybox_kernel.seal import PROGRAMS, PYTHON

__all__ = [
    "BUILD_LABEL",
    "FINISH",
    "IMAGE_LABEL",
    "LOOK",
    "RECIPE_LABEL",
    "dockerfile",
]

IMAGE_LABEL: Final = "org.pybox.image"
RECIPE_LABEL: Final = "org.pybox.recipe"
BUILD_LABEL: Final = "org.pybox.build"
"""On everything that one build makes, so that a build which fails can find and remove all of it."""

FINISH: Final = f"""\
import compileall, os, py_compile, stat, subprocess, sys, sysconfig

if sys.version_info < (3, 11):
    sys.exit("the Python of this base is " + sys.version.split()[0] + "; PyBox needs 3.11 or newer")
os.makedirs(os.path.dirname({PYTHON!r}), exist_ok=True)
if os.path.lexists({PYTHON!r}):
    os.unlink({PYTHON!r})
os.symlink(os.path.realpath(sys.executable), {PYTHON!r})

# A box cannot write: what is not compiled here would be compiled in every run. Unchecked: nothing can change.
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
for folder in (sysconfig.get_path("stdlib"), {PROGRAMS!r}):
    done = compileall.compile_dir(folder, quiet=1, force=True, workers=0, invalidation_mode=mode)
if not done:
    sys.exit("an in-box program could not be compiled")

if not os.path.exists("/etc/ld.so.cache") and os.path.exists("/sbin/ldconfig"):
    subprocess.run(["/sbin/ldconfig"], check=True)
for folder, mode in (("/box", 0o755), ("/tmp", 0o1777)):
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, mode)

for root, folders, files in os.walk("/"):
    if root == "/":
        folders[:] = set(folders) - {{"dev", "proc", "sys"}}
    for path in (os.path.join(root, name) for name in folders + files):
        mode = os.lstat(path).st_mode
        if not stat.S_ISLNK(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
            os.chmod(path, stat.S_IMODE(mode) & ~(stat.S_ISUID | stat.S_ISGID))

for root, folders, files in os.walk({PROGRAMS!r}, topdown=False):
    for name in files:
        os.chmod(os.path.join(root, name), 0o444)
    os.chmod(root, 0o555)
"""
"""Runs once in the new image, by the image's own Python, as root and without network."""

LOOK: Final = f"""\
import hashlib, json, os, platform

programs = {{}}
for name in os.listdir({PROGRAMS!r}):
    if name.endswith(".py"):
        with open(os.path.join({PROGRAMS!r}, name), "rb") as file:
            programs[name] = hashlib.sha256(file.read()).hexdigest()
packages = []
if os.path.exists("/var/lib/dpkg/status"):
    with open("/var/lib/dpkg/status", encoding="utf-8", errors="replace") as file:
        for stanza in file.read().split("\\n\\n"):
            lines = [line for line in stanza.splitlines() if ": " in line and line[0] != " "]
            fields = dict(line.split(": ", 1) for line in lines)
            if fields.get("Status") == "install ok installed":
                packages.append({{"name": fields["Package"], "version": fields["Version"]}})
found = {{"python": platform.python_version(), "machine": platform.machine()}}
print(json.dumps({{**found, "programs": programs, "packages": packages}}))
"""
"""Runs in a container of the finished image and says what is in it, as one line of JSON."""


def dockerfile(kind: Literal["debian", "registry"], base_id: str, build: str) -> str:
    """The instructions of one build, on the base whose id is given.

    Of a registry's image only the files are taken, nothing of its configuration: no environment, volume, user
    or trigger of its maker's reaches a box.
    """
    label = f"LABEL {BUILD_LABEL}={build}"
    start = [f"FROM {base_id}", label] if kind == "debian" else ["FROM scratch", label, f"COPY --from={base_id} / /"]
    run = json.dumps(["python3", "-I", "-B", "-c", FINISH])
    return "\n".join([*start, f"COPY pybox/ {PROGRAMS}/", f"RUN {run}", "WORKDIR /box", ""])
