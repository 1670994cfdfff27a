"""Makes pybox_kernel/source/stdlib_index.jsonl.gz: what completion and inspection know of the standard library.

    .venv/bin/python scripts/index_stdlib.py [FILE]

It imports every public module of the Python it runs on, so it is run by hand and never by the kernel. The file's first
line says which Python that was. ``pybox_kernel/source/stdlib_index.py`` reads the file, and says what its lines mean.
"""

from __future__ import annotations

import enum
import gzip
import importlib
import inspect
import json
import pkgutil
import re
import sys
import types
import warnings
from collections.abc import Iterable
from pathlib import Path

TARGET = Path(__file__).parent.parent / "pybox_kernel" / "source" / "stdlib_index.jsonl.gz"

LEFT_OUT = {
    *("antigravity", "this"),  # importing them does something
    *("idlelib", "lib2to3", "test", "tkinter", "turtle", "turtledemo"),  # no use in a box
    *("msvcrt", "nt", "ntpath", "nturl2path", "posix", "posixpath", "winreg", "winsound", "ossaudiodev"),
    *("distutils", "ensurepip", "venv", "pydoc_data", "sre_compile", "sre_constants", "sre_parse"),
}
LEFT_OUT_INSIDE = re.compile(r"\.(_|__main__|tests?\b)|^(encodings|ctypes\.macholib|curses\.has_key)\.|windows|\.win32")
WRITTEN_SIGNATURE = re.compile(
    r"(?:[ \t\n]*[A-Za-z_][\w.]*\([^\n]*\)(?:[ \t]*-+>[^\n]*(?:\n[ \t]+[^\n]*)*|:?[ \t]*(?=\n|$)))+"
)
PLAIN_DEFAULTS = (type(None), bool, int, float, str, bytes, tuple)
LONGEST_DEFAULT = 40
LONGEST_SIGNATURE = 200
LONGEST_DOC = 160

Member = list[str]
"""Kind, signature, first sentence of the docstring, target; empty ones at the end are left out."""


def module_names() -> list[str]:
    """The public modules that can be imported here, packages before what is in them."""
    names = ["builtins", "os.path"]
    for name in sorted(sys.stdlib_module_names):
        if not name.startswith("_") and name not in LEFT_OUT:
            names.append(name)
            names.extend(submodules(name))
    return sorted(dict.fromkeys(names))


def submodules(name: str) -> Iterable[str]:
    folder = getattr(imported(name), "__path__", ())
    for found in pkgutil.iter_modules(folder, name + "."):
        if not LEFT_OUT_INSIDE.search(found.name):
            yield found.name
            yield from submodules(found.name)


def imported(name: str) -> types.ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def first_sentence(value: object) -> str:
    """The first sentence of a docstring, without the signatures that many begin with."""
    doc = value.__doc__ if isinstance(value.__doc__, str) else ""
    written = WRITTEN_SIGNATURE.match(doc)
    for paragraph in re.split(r"\n\s*\n", doc[written.end() :] if written else doc):
        text = " ".join(paragraph.split())
        if text and not text.startswith(">>>"):
            return shortened(re.split(r"(?<=[\w)`][\w)`'][.])\s", text, maxsplit=1)[0], LONGEST_DOC)
    return ""


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


class Elsewhere:
    """A default that is not told: it may be an object's address, or say something of this computer."""

    def __repr__(self) -> str:
        return "..."


def told(parameter: inspect.Parameter) -> inspect.Parameter:
    default = parameter.default
    if default is parameter.empty or isinstance(default, type):
        return parameter
    text = repr(default)
    plain = (
        isinstance(default, PLAIN_DEFAULTS) and len(text) <= LONGEST_DEFAULT and "<" not in text and "'/" not in text
    )
    return parameter if plain else parameter.replace(default=Elsewhere())


def signature(value: object, name: str, bound: bool = True) -> str:
    """As ``inspect`` has it, else as the docstring begins; without the first parameter where that is the object."""
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, AttributeError):  # the last one of a default that cannot be looked up
        doc = value.__doc__ if isinstance(value.__doc__, str) else ""
        written = WRITTEN_SIGNATURE.match(doc)
        pattern = rf"^\s*(?:\w+\.)?{re.escape(name)}(\([^\n]*\))[ \t]*(?:-+>|:?$)"
        lines = re.findall(pattern, written[0], re.MULTILINE) if written else []
        return shortened("\n".join(lines[:4]), LONGEST_SIGNATURE)
    parameters = list(found.parameters.values())
    return shortened(
        str(found.replace(parameters=[*map(told, parameters if bound else parameters[1:])])), LONGEST_SIGNATURE
    )


def packed(*parts: str) -> Member:
    member = list(parts)
    while not member[-1]:
        member.pop()
    return member


class Indexer:
    def __init__(self) -> None:
        self.modules: dict[str, types.ModuleType] = {}
        for name in module_names():
            module = imported(name)
            if module is not None:
                self.modules[name] = module
        self.names = {id(module): name for name, module in self.modules.items()}
        self.lines: dict[str, dict[str, object]] = {}
        self.classes: dict[str, type] = {}

    def made(self) -> dict[str, dict[str, object]]:
        for name, module in self.modules.items():
            members = {key: self.member(key, value) for key, value in self.public(name, module)}
            self.line(name).update(doc=first_sentence(module), members=members)
        for key, value in sorted(self.classes.items()):
            home, name = key.rsplit(".", 1)
            classes = self.line(home)["classes"]
            assert isinstance(classes, dict)
            classes[name] = self.of_class(name, value)
        return dict(sorted(self.lines.items()))

    def line(self, name: str) -> dict[str, object]:
        return self.lines.setdefault(name, {"doc": "", "members": {}, "classes": {}})

    def public(self, name: str, module: types.ModuleType) -> Iterable[tuple[str, object]]:
        listed = getattr(module, "__all__", None)
        for key in sorted(set(dir(module)) | set(listed or ())):
            if not key.isidentifier() or (key.startswith("_") and key not in (listed or ())):
                continue
            try:
                value = getattr(module, key)
            except AttributeError:
                continue
            if isinstance(value, types.ModuleType):
                if id(value) in self.names and (key in (listed or ()) or self.names[id(value)] == f"{name}.{key}"):
                    yield key, value
            elif listed is not None:
                if key in listed:
                    yield key, value
            elif getattr(value, "__module__", name) in (name, f"_{name}", None) or name in ("builtins", "sys"):
                yield key, value

    def member(self, key: str, value: object) -> Member:
        if isinstance(value, types.ModuleType):
            return packed("m", "", first_sentence(value), self.names[id(value)])
        if isinstance(value, type):
            return packed("c", "", "", self.known(value))
        if callable(value):
            return packed("f", signature(value, key), first_sentence(value))
        return packed("k", "", "", self.known(type(value)))

    def known(self, value: type) -> str:
        """The key of a class, which is listed from now on; empty for one that no module has under its name."""
        home = sys.modules.get(value.__module__)
        if home is None or not value.__qualname__.isidentifier() or getattr(home, value.__name__, None) is not value:
            return ""
        key = f"{self.names.get(id(home), value.__module__)}.{value.__name__}"
        if value.__module__.split(".")[0] not in sys.stdlib_module_names:
            return ""
        if key not in self.classes:
            self.classes[key] = value
            for base in value.__mro__[1:]:
                self.known(base)
        return key

    def of_class(self, name: str, value: type) -> dict[str, object]:
        bases = [self.known(base) for base in value.__mro__[1:] if base is not object]
        members: dict[str, Member] = {}
        named = value.__members__ if isinstance(value, enum.EnumMeta) else ()
        for key in sorted({*vars(value), *named}):
            if not key.startswith("_") and key.isidentifier():
                members[key] = self.of_class_member(value, key)
        return {
            "signature": "" if value is type else signature(value, name),
            "doc": "" if issubclass(value, enum.Enum) and not vars(value).get("__doc__") else first_sentence(value),
            "bases": [key for key in bases if key],
            "members": members,
        }

    def of_class_member(self, value: type, key: str) -> Member:
        raw = vars(value).get(key)
        if isinstance(raw, (staticmethod, classmethod, types.ClassMethodDescriptorType)):
            bound = getattr(value, key)
            return packed("f", signature(bound, key), first_sentence(bound))
        if inspect.isroutine(raw):
            return packed("f", signature(raw, key, bound=False), first_sentence(raw))
        if isinstance(raw, property) or inspect.isdatadescriptor(raw):
            return packed("p", "", first_sentence(raw))
        return packed("k")


def text_of(lines: dict[str, dict[str, object]]) -> str:
    python = ".".join(map(str, sys.version_info[:3]))
    parts = [json.dumps({"format": 1, "python": python, "made_by": "scripts/index_stdlib.py"})]
    for name, line in lines.items():
        parts.append(f"{name}\t{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}")
    return "\n".join(parts) + "\n"


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = text_of(Indexer().made())
    data = gzip.compress(text.encode(), 9, mtime=0)
    target.write_bytes(data)
    print(f"{target}: {text.count(chr(10)) - 1} modules, {len(text)} characters, {len(data)} bytes")


if __name__ == "__main__":
    main()
