"""What a cell finds of earlier cells, and what it leaves to later ones. Standard library, and cloudpickle's one file.

In comes, as the part ``carry`` of the manifest (``parcels``), null where nothing is carried:

    {"keep": bool,            whether a cell that fails leaves what it had defined by then
     "limit": int,            bytes that all groups that it leaves may have together; 32 MiB where it is not there
     "cell": int or null,     the number of the cell, for tracebacks of its functions in later cells
     "groups": [{"names": [str, ...],     to bind from the group, which may have more; none for a quiet state
                 "kind": str or null,     the quiet state that it is, instead
                 "size": int}, ...]}

and a record ``g`` for each group. Out goes a manifest

    {"groups": [{"names": [str, ...],     of the values in it; none for a quiet state
                 "types": [str, ...],     the names of their types, one for each
                 "kind": str,             of a quiet state: random, folder, ... (only there)
                 "needs": [str, ...],     global names that its functions and classes may read; "*" for any
                 "files": [[str, str], ...],  of the folder, the files in it: path, and parcels.digest (only there)
                 "same": true,            it is, byte for byte, the group of these names or this kind that came in,
                                          and no record is sent for it (only there)
                 "size": int}, ...],      bytes of its record
     "lost": [{"name": str, "type": str, "why": str}, ...],        at most MOST_LOST
     "lost_more": int,                                             how many more there are (only where there are)
     "not_restored": [{"names": [str, ...], "kind": str (only for a quiet state), "why": str}, ...],
     "files_kept": [str, ...]}      files of the working folder that are as they came in from earlier cells

and a record ``g`` for each group that is not ``same``. All of it is the program's word. Only a cell that reached its
last statement leaves groups; with ``keep``, one that failed as well. A group comes back as bytes that only a box
reads; what it does there as it is read, it does as that cell's program, within its time and memory.
"""

from __future__ import annotations

import keyword
import pickle
import re
import sys
import warnings

from pybox_kernel.inside import carry_folder, carry_lines, carry_pickle, carry_quiet, cloudpickle, parcels  # type: ignore[attr-defined]
from pybox_kernel.inside.carry_sharing import Sharing
from pybox_kernel.inside.events import begin, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Namespace = dict[str, Any]

LIMIT = 32 << 20
MOST_NAMES = 8000
LONGEST_NAME = 255
MOST_LOST = 300
MOST_TRIED = 64
"""Names of a group that cannot be pickled, each of which is tried alone."""
TEXT = 300
LAST = ("warnings", "decimal", "random", "numpy", "numpy.random", "matplotlib", "pandas")
"""Quiet states that importing something may change."""

REASONS = (
    (r"generator|coroutine", "%s cannot be carried; a list of what it gives can"),
    (
        r"_io\.\w+|TextIOWrapper|Buffered\w+|\w*File\w*",
        "an open file cannot be carried: open it in the cell that uses it",
    ),
    (r"_thread\.\w*|threading\.\w+|Thread\w*", "locks and threads cannot be carried"),
    (r"socket\.?\w*|ssl\.\w+", "an open connection cannot be carried: make it in the cell that uses it"),
    (r"sqlite3\.\w+|\w*Connection|\w*Cursor", "an open database cannot be carried: open it in the cell that uses it"),
    (r"frame|traceback", "what is running cannot be carried"),
    (r"memoryview", "a view of memory cannot be carried; what it is a view of can"),
)


class Entry:
    """A group on its way out."""

    def __init__(self, names: list[str], types: list[str], kind: str | None, needs: set[str], parts: list[Any]) -> None:
        self.names, self.types, self.kind, self.needs, self.parts = names, types, kind, needs, parts
        self.size = sum(memoryview(part).nbytes for part in parts)

    def digest(self) -> bytes:
        return parcels.digest(self.parts)


class Carry:
    """Of what came in with a cell: ``restore`` before it, ``leave`` after it."""

    def __init__(self, delivery: parcels.Delivery) -> None:
        self.manifest: dict[str, Any] = delivery.manifest["carry"]
        self.told: list[dict[str, Any]] = self.manifest["groups"]
        self.groups = delivery.groups
        self.digests = delivery.digests
        self.not_restored: list[dict[str, Any]] = []
        self.lost: list[dict[str, str]] = []
        self.lost_more = 0
        self.namespace: Namespace | None = None
        self.put_in = carry_folder.look()
        self.restored = carry_folder.Found()
        self.folder: dict[str, Any] = {}

    @property
    def keep(self) -> bool:
        """A cell that failed leaves what it had defined by then."""
        return self.manifest.get("keep") is True

    # In

    def restore(self, namespace: Namespace) -> None:
        """Into the new ``__main__``. Raises nothing: what could not be restored is told with what the cell leaves."""
        self.namespace = namespace
        carry_lines.begin(self.manifest.get("cell"))
        kinds = {told["kind"]: place for place, told in enumerate(self.told) if told.get("kind")}
        first = [place for kind, place in kinds.items() if kind not in LAST]
        last = [kinds[kind] for kind in LAST if kind in kinds]
        values = [place for place, told in enumerate(self.told) if not told.get("kind")]
        again = [place for place in [*first, *values] if self.failed(place, namespace) is not None]
        for place in [*again, *last]:  # of those one may have needed what came after it
            why = self.failed(place, namespace)
            if why is not None:
                told = self.told[place]
                kind = {"kind": told["kind"]} if told.get("kind") else {}
                self.not_restored.append({"names": told["names"], **kind, "why": begin(why, TEXT)})
        namespace["__builtins__"] = sys.modules["builtins"]

    def failed(self, place: int, namespace: Namespace) -> str | None:
        """Why a group could not be restored; None where it is."""
        told = self.told[place]
        kind = told.get("kind")
        try:
            if kind in carry_quiet.KINDS:
                carry_quiet.restore(kind, self.groups[place])
                return None
            if kind not in (None, "folder", "lines"):
                return "nobody here knows what it is"
            found = carry_pickle.load(self.groups[place])
            if kind == "folder":
                carry_folder.restore(found)
                self.restored = carry_folder.look()
            elif kind == "lines":
                carry_lines.restore(found)
            else:
                namespace.update({name: found[name] for name in told["names"]})
        except BaseException as error:
            return "%s: %s" % (type(error).__name__, text_of(error, most=TEXT))
        self.groups[place] = bytearray()  # what has no value in it any more is memory of the cell's
        return None

    # Out

    def leave(self, completed: bool) -> None:
        """Sends what there is now; where the cell failed, and is to leave nothing, only what is known of what came in;
        nothing where it never came to ``restore``. Raises nothing."""
        if self.namespace is not None:
            try:
                self.send(self.namespace if completed or self.keep else None)
            except BaseException:  # nothing came, then
                pass

    def send(self, namespace: Namespace | None) -> None:
        files = carry_folder.look()
        groups: list[dict[str, Any]] = []
        payloads: list[Any] = []
        if namespace is not None:
            self.pack(namespace, files, groups, payloads)
        manifest: dict[str, Any] = {"groups": groups, "lost": self.lost, "not_restored": self.not_restored}
        if self.lost_more:
            manifest["lost_more"] = self.lost_more
        kept = carry_folder.kept(files, self.restored)
        if kept:
            manifest["files_kept"] = kept
        parcels.send(b"k", manifest, payloads)

    def pack(
        self, namespace: Namespace, files: carry_folder.Found, groups: list[dict[str, Any]], payloads: list[Any]
    ) -> None:
        with warnings.catch_warnings():
            states = carry_quiet.changed()
            warnings.simplefilter("ignore")
            entries = self.quiet(states, files) + self.values(namespace)
            self.keep_within(entries)
            came = {
                (tuple(told["names"]), told.get("kind")): digest
                for told, digest in zip(self.told, self.digests, strict=True)
            }
            for entry in entries:
                told: dict[str, Any] = {"names": entry.names, "types": entry.types, "size": entry.size}
                if entry.kind:
                    told["kind"] = entry.kind
                if entry.needs:
                    told["needs"] = sorted(entry.needs)
                if entry.kind == "folder":
                    told["files"] = carry_folder.digests(self.folder)
                if came.get((tuple(entry.names), entry.kind)) == entry.digest():
                    told["same"] = True
                else:
                    payloads.append((parcels.GROUP, entry.parts))
                groups.append(told)

    def quiet(self, states: dict[str, Any], files: carry_folder.Found) -> list[Entry]:
        found = [Entry([], [], kind, set(), [payload]) for kind, payload in carry_quiet.to_come.items()]
        folder, lost = carry_folder.state(files, self.put_in)
        for path, what, why in lost:
            self.lose(path, what, why)
        states["folder"] = self.folder = folder
        for kind, state in states.items():
            if state:
                self.add(found, [], [], kind, set(), state, {})
        return found

    def values(self, namespace: Namespace) -> list[Entry]:
        items: list[tuple[str, Any]] = []
        for name, value in list(namespace.items()):
            if type(name) is not str or (name[:2] == name[-2:] == "__"):
                continue
            if not name.isidentifier() or keyword.iskeyword(name) or len(name) > LONGEST_NAME:
                self.lose(begin(name, LONGEST_NAME), type_of(value), "that is no name that code could use")
            elif len(items) >= MOST_NAMES:
                self.lose(name, type_of(value), "more than %d names are not carried" % MOST_NAMES)
            else:
                items.append((name, value))
        sharing = Sharing(namespace, cloudpickle._should_pickle_by_reference)
        found: list[Entry] = []
        for places, needs in sharing.groups([value for _, value in items]):
            names = [items[place][0] for place in places]
            types = [type_of(items[place][1]) for place in places]
            values = {carry_pickle.own_text(items[place][0]): items[place][1] for place in places}
            self.add(found, names, types, None, needs, values, sharing.owners)
        lines = carry_lines.state()
        if lines:
            self.add(found, [], [], "lines", set(), lines, {})
        return found

    def add(
        self,
        found: list[Entry],
        names: list[str],
        types: list[str],
        kind: str | None,
        needs: set[str],
        value: Any,
        shared: dict[int, int],
    ) -> None:
        """One more group. Where it cannot be pickled, each name that cannot is lost, and the others stay together."""
        written = self.dumped(value, shared)
        if not isinstance(written, str):
            found.append(Entry(names, types, kind, needs, written.payload()))
            return
        if kind is not None:
            self.lose(kind, "state", written)
            return
        good = {}
        for name, what in zip(names, types, strict=True):
            why = written
            if 1 < len(names) <= MOST_TRIED:
                alone = self.dumped({name: value[name]}, shared)
                if not isinstance(alone, str):
                    good[name] = value[name]
                    continue
                why = alone
            self.lose(name, what, why)
        if good:
            rest = self.dumped(good, shared)
            if isinstance(rest, str):
                for name, one in good.items():
                    self.lose(name, type_of(one), rest)
            else:
                found.append(Entry(list(good), [type_of(one) for one in good.values()], None, needs, rest.payload()))

    def dumped(self, value: Any, shared: dict[int, int]) -> carry_pickle.Written | str:
        """The pickle, or why there is none."""
        try:
            return carry_pickle.dump(value, self.limit, self.namespace or {}, shared)
        except BaseException as error:
            return why_lost(error)

    @property
    def limit(self) -> int:
        limit = self.manifest.get("limit", LIMIT)
        return limit if type(limit) is int else LIMIT

    def keep_within(self, entries: list[Entry]) -> None:
        """Takes off the largest until what is left may be carried."""
        while entries and sum(entry.size for entry in entries) > self.limit:
            entry = max(entries, key=lambda entry: entry.size)
            entries.remove(entry)
            why = "it has %.1f MB, and all that is carried may have %d MB" % (entry.size / (1 << 20), LIMIT >> 20)
            for name, what in zip(entry.names or [entry.kind or ""], entry.types or ["state"], strict=True):
                self.lose(name, what, why)

    def lose(self, name: str, what: str, why: str) -> None:
        if len(self.lost) < MOST_LOST:
            self.lost.append({"name": begin(name, TEXT), "type": what, "why": begin(why, TEXT)})
        else:
            self.lost_more += 1


def type_of(value: object) -> str:
    try:
        name = type(value).__name__
    except Exception:
        return "object"
    return begin(name, 100) if type(name) is str else "object"


def why_lost(error: BaseException) -> str:
    if isinstance(error, carry_pickle.TooLarge):
        return "it has more than the %d MB that may be carried in all" % (LIMIT >> 20)
    if isinstance(error, MemoryError):
        return "the box has not enough memory to carry it"
    if isinstance(error, RecursionError) or isinstance(error.__cause__, RecursionError):
        return "it is nested too deeply"
    text = text_of(error, most=TEXT)
    if isinstance(error, (TypeError, pickle.PicklingError)):
        named = re.search(r"cannot pickle '([\w.]+)'", text)
        if named is not None:
            for pattern, why in REASONS:
                if re.fullmatch(pattern, named[1]):
                    return why % ("a " + named[1]) if "%s" in why else why
            return "it holds a thing of the kind %s, which cannot be carried" % named[1]
    return "it does not let itself be carried (%s: %s)" % (type(error).__name__, text)
