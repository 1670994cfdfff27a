"""What stands on a page with outputs: under each cell, and round about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.browser.hostile import CORPUS

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["LAB", "NBCONVERT", "Layout", "Output", "assert_harmless", "surroundings", "survey"]


class Layout(NamedTuple):
    """How a page marks its cells and outputs, as selectors."""

    cell: str
    output: str


LAB: Final = Layout(".jp-Notebook .jp-CodeCell", ".jp-OutputArea-child")
NBCONVERT: Final = Layout(".jp-CodeCell", ".jp-OutputArea-output")


class Output(NamedTuple):
    text: str
    receipts: int
    """Folds with a receipt's look, those within others not counted."""
    framed: bool
    wrong: tuple[str, ...]
    """What no output of a program may have."""
    links: tuple[str, ...]


SURVEY: Final = r"""([cell, output]) => {
    const forbidden = 'script,style,link,meta,base,title,iframe,frame,frameset,object,embed,form,input,button,textarea,'
        + 'select,option,video,audio,source,track,picture,svg,math,dialog,template,canvas,mjx-container,[accesskey],'
        + '[autofocus],[contenteditable],[popover],[id],[name],[tabindex],[srcset],[background],[ping],[srcdoc]';
    const classes = /^(ansi-[a-z0-9-]+|pybox-shown|mathjax_ignore|tex2jax_ignore|jp-.*|lm-.*)$/;
    const styles = /position|url\(|transform|z-index|animation|filter|inset|top:|left:[^;]*px|margin[^:;]*:[^;]*-/i;
    const wrongIn = output => [...output.querySelectorAll('*')].flatMap(element => {
        const found = [], name = element.tagName.toLowerCase();
        if (element.matches(forbidden)) found.push(element.cloneNode(false).outerHTML.slice(0, 200));
        for (const {name: attribute, value} of element.attributes) {
            if (/^on/i.test(attribute)) found.push(`${name} ${attribute}`);
            if (/^data-command/i.test(attribute)) found.push(`${name} ${attribute}`);
            if (attribute === 'style' && styles.test(value)) found.push(`${name} style=${value}`);
            if (attribute === 'src' && !/^data:image\/(png|jpeg);base64,[A-Za-z0-9+\/=]+$/.test(value))
                found.push(`${name} src=${value.slice(0, 80)}`);
            if (attribute === 'href' && !/^(https?|file):/i.test(value)) found.push(`${name} href=${value}`);
        }
        if (['fixed', 'absolute', 'sticky'].includes(getComputedStyle(element).position)) found.push(`${name} placed`);
        return found;
    });
    const look = "details[style*='border-left']";
    return [...document.querySelectorAll(cell)].map(cell => [...cell.querySelectorAll(output)].map(output => ({
        text: output.innerText,
        receipts: [...output.querySelectorAll(look)].filter(fold => !fold.parentElement.closest(look)).length,
        framed: output.querySelector('figure') !== null,
        wrong: wrongIn(output),
        links: [...output.querySelectorAll('a[href]')].map(link => link.getAttribute('href')),
    })));
}"""


def survey(page: Page, layout: Layout) -> list[list[Output]]:
    """The outputs of each cell, in order."""
    found: list[list[dict[str, Any]]] = page.evaluate(SURVEY, list(layout))
    return [
        [Output(one["text"], one["receipts"], one["framed"], tuple(one["wrong"]), tuple(one["links"])) for one in cell]
        for cell in found
    ]


SURROUNDINGS: Final = """() => {
    const looked = ['body', '#main', '#jp-top-panel', '#jp-main-content-panel', '.jp-NotebookPanel-toolbar', 'main',
        '.jp-Cell:not(.jp-mod-active)', '.jp-Cell:not(.jp-mod-active) .jp-InputArea-prompt', '.jp-Notebook'];
    const kept = ['display', 'position', 'visibility', 'opacity', 'backgroundColor', 'fontSize', 'pointerEvents'];
    const look = selector => {
        const element = document.querySelector(selector);
        return element && kept.map(name => getComputedStyle(element)[name]);
    };
    const all = selector => [...document.querySelectorAll(selector)].map(element => element.outerHTML.slice(0, 300));
    const button = document.querySelector('.jp-NotebookPanel-toolbar button, .jp-NotebookPanel-toolbar jp-button');
    const at = button?.getBoundingClientRect();
    const top = at && document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2);
    return {
        place: location.href, base: document.baseURI,
        looks: Object.fromEntries(looked.map(name => [name, look(name)])),
        ids: looked.filter(name => name[0] === '#').map(name => document.querySelectorAll(name).length),
        head: all('base, meta[http-equiv], link[rel~=stylesheet], link[rel=prefetch], link[rel=preconnect]'),
        frames: window.length, dialogs: all('.jp-Dialog, dialog[open], [popover]'),
        covered: Boolean(button && top && !top.closest('.jp-NotebookPanel-toolbar')),
        focus: Boolean(document.activeElement?.closest('.jp-OutputArea')),
        bitten: window.__bitten ?? null,
    };
}"""


def surroundings(page: Page) -> dict[str, Any]:
    """What is there besides the outputs, as far as an output has no business to change it."""
    found: dict[str, Any] = page.evaluate(SURROUNDINGS)
    return found


def assert_harmless(outputs: list[list[Output]]) -> None:
    """Under each cell: nothing that acts, and one receipt, which is last and in no frame."""
    assert len(outputs) == len(CORPUS) + 1
    wrong = {}
    for hostile, shown in zip(CORPUS, outputs, strict=False):
        *programs, last = shown or [None]
        told = [thing for output in programs if output is not None for thing in output.wrong]
        told += ["a fold like a receipt"] * sum(output.receipts for output in programs if output is not None)
        if last is None or (last.receipts, last.framed) != (1, False):
            told.append("no receipt at the end")
        if told:
            wrong[hostile.name] = told
    assert wrong == {}, wrong
