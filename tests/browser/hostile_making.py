"""What the corpus of hostile outputs is made with, and the list that it is put into."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["BITTEN", "CORPUS", "LEAK", "Hostile", "add", "bite", "html", "kind", "shown", "text"]

LEAK: Final = "http://leak.invalid"
BITTEN: Final = "BITTEN"


class Hostile(NamedTuple):
    name: str
    tries: str
    source: str


CORPUS: Final[list[Hostile]] = []


def add(name: str, tries: str, source: str) -> None:
    CORPUS.append(Hostile(name, tries, source))


def bite(name: str) -> str:
    """Script, without a double quote or a line's end, that marks the page as bitten."""
    mark = f"top.__bitten=(top.__bitten||'')+' {name}'"
    return f"{mark};top.console.log('{BITTEN} {name}');top.document.title='{BITTEN}'"


def shown(data: dict[str, object], metadata: dict[str, object] | None = None) -> str:
    """A program that displays a bundle of its own making."""
    answer = repr(data) if metadata is None else f"({data!r}, {metadata!r})"
    return (
        "class Shown:\n"
        "    def __repr__(self):\n"
        "        return 'shown as text'\n"
        "    def _repr_mimebundle_(self, include=None, exclude=None):\n"
        f"        return {answer}\n"
        "display(Shown())"
    )


def html(name: str, tries: str, body: str) -> None:
    add(f"html-{name}", tries, f"class Shown:\n    def _repr_html_(self):\n        return {body!r}\ndisplay(Shown())")


def kind(name: str, tries: str, mime: str, data: object) -> None:
    add(f"mime-{name}", tries, shown({"text/plain": "shown as text", mime: data}))


def text(name: str, tries: str, body: str) -> None:
    add(f"text-{name}", tries, f"print({body!r})")
