"""The steps of a build, as text: the engine runs them, and their hash is part of every recipe."""

from __future__ import annotations

import json
from typing import Final, Literal

from pybox_kernel.seal.spec import PROGRAMS, PYTHON

__all__ = [
    "BUILD_LABEL",
    "FINISH",
    "IMAGE_LABEL",
    "LOOK",
    "LOOK_BASE",
    "OFFER",
    "RECIPE_LABEL",
    "dockerfile",
]

IMAGE_LABEL: Final = "org.pybox.image"
RECIPE_LABEL: Final = "org.pybox.recipe"
BUILD_LABEL: Final = "org.pybox.build"
"""On everything that one build makes, so that a build which fails can find and remove all of it."""

OFFER: Final = "/usr/local/lib/pybox-offer"
"""Where an image has what it offers beside the standard library: the folder ``packages``, which Python looks into last;
``preload``, the modules that a box imports before it takes a program, a line each; ``matplotlib``, its list of fonts.
``inside.preload`` reads it."""

TRY: Final = """\
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        sys.exit("%s cannot be imported: %s: %s" % (name, type(error).__name__, str(error)[:200]))
"""

FINISH: Final = f"""\
import compileall, os, py_compile, shutil, signal, site, stat, subprocess, sys, sysconfig, tempfile

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

offer = {OFFER!r}
if os.path.isdir(offer):
    packages = os.path.join(offer, "packages")
    # Some packages carry files that no Python of today can read: these stay as they are.
    compileall.compile_dir(packages, quiet=2, force=True, workers=0, invalidation_mode=mode)
    place = site.getsitepackages()[0]
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(place, "pybox-offer.pth"), "w") as file:
        file.write(packages + "\\n")

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

# Only here does code of a package run: as nobody, so that it can change nothing of the image. It shows that what every
# box is to import can be imported, and leaves matplotlib's list of fonts, which takes seconds to make.
if os.path.isdir(offer):
    with open(os.path.join(offer, "preload")) as file:
        names = file.read().split()
    work = "/tmp/pybox-offer"
    os.mkdir(work, 0o700)
    os.chown(work, 65534, 65534)
    environment = {{"PATH": "/usr/bin:/bin", "HOME": work, "MPLCONFIGDIR": work, "MPLBACKEND": "agg"}}
    environment.update((name + "_NUM_THREADS", "1") for name in ("OPENBLAS", "OMP", "MKL", "NUMEXPR"))
    words = tempfile.TemporaryFile()  # no pipe: a process that it leaves running would hold that open
    tried = subprocess.run(
        [{PYTHON!r}, "-I", "-B", "-c", {TRY!r}, *names], cwd="/", env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=words, user=65534, group=65534, extra_groups=[], timeout=300,
    )
    # What it left running would go on beside what root does below. This is the first process of the container.
    if os.getpid() != 1:
        sys.exit("this step is not the first process of its container, so nobody knows what a package left running")
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass
    if tried.returncode:
        words.seek(max(0, words.seek(0, 2) - 4000))
        said = words.read().decode(errors="replace")
        sys.exit((said.strip().splitlines() or ["exit status %d" % tried.returncode])[-1])
    fonts = os.path.join(offer, "matplotlib")
    os.mkdir(fonts, 0o755)
    for name in sorted(os.listdir(work))[:100]:
        path = os.path.join(work, name)
        if name.startswith("fontlist-") and name.endswith(".json") and stat.S_ISREG(os.lstat(path).st_mode):
            with open(path, "rb") as file:
                content = file.read(4_000_000)
            with open(os.path.join(fonts, name), "wb") as file:
                file.write(content)
    for name in os.listdir("/tmp"):
        path = os.path.join("/tmp", name)
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)

for root, folders, files in os.walk({PROGRAMS!r}, topdown=False):
    for name in files:
        os.chmod(os.path.join(root, name), 0o444)
    os.chmod(root, 0o555)
"""
"""Runs once in the new image, by the image's own Python, as root and without network."""

LOOK: Final = f"""\
import hashlib, importlib.util, json, marshal, os, platform, stat

def read(path):
    with open(path, "rb") as file:
        return file.read()

def is_compiled_from(source, path):
    try:
        return marshal.loads(read(importlib.util.cache_from_source(path))[16:]) == compile(source, path, "exec")
    except (OSError, ValueError, EOFError, TypeError):
        return False

folder = {PROGRAMS!r}
paths = [os.path.join(root, name) for root, folders, files in os.walk(folder) for name in folders + files]
programs = {{}}
for path in [folder, *paths]:
    facts = os.lstat(path)
    if facts.st_uid or facts.st_mode & 0o222 or not (stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode)):
        programs[os.path.relpath(path, folder)] = "may be changed"
files = {{path for path in paths if os.path.isfile(path)}}
# Python runs what is compiled, without a look at the source.
for path in [path for path in files if path.endswith(".py")]:
    source = read(path)
    same = is_compiled_from(source, path)
    told = hashlib.sha256(source).hexdigest() if same else "otherwise compiled"
    programs.setdefault(os.path.relpath(path, folder), told)
    files -= {{path, importlib.util.cache_from_source(path)}}
programs.update((os.path.relpath(path, folder), "one too many") for path in files)
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
"""Runs in a container of the finished image and says what is in it, as one line of JSON: of the in-box programs the
hashes, or what is wrong with them."""


LOOK_BASE: Final = """\
import json, os, platform, sys
try:
    libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
except (ValueError, OSError):
    libc = ""
print(json.dumps({"python": list(sys.version_info[:2]), "machine": platform.machine(), "libc": libc}))
"""
"""Runs in a container of a base, and says for what Python packages have to be made."""


def dockerfile(kind: Literal["debian", "registry"], base_id: str, build: str, *, offers: bool = False) -> str:
    """The instructions of one build, on the base whose id is given.

    Of a registry's image only the files are taken, nothing of its configuration: no environment, volume, user
    or trigger of its maker's reaches a box.
    """
    label = f"LABEL {BUILD_LABEL}={build}"
    start = [f"FROM {base_id}", label] if kind == "debian" else ["FROM scratch", label, f"COPY --from={base_id} / /"]
    run = json.dumps(["python3", "-I", "-B", "-c", FINISH])
    copies = [f"COPY pybox/ {PROGRAMS}/", *([f"COPY offer/ {OFFER}/"] if offers else [])]
    return "\n".join([*start, *copies, f"RUN {run}", "WORKDIR /box", ""])
