"""How it looks and what a screen reader is told, in the light and the dark theme."""

from __future__ import annotations

from typing import Any, Final

import pytest
from playwright.sync_api import Locator

from tests.browser.notebook import Notebook

LEAST_CONTRAST: Final = 4.5
"""Of WCAG 2.2, level AA, for text of ordinary size."""

pytestmark = pytest.mark.engine

CONTRASTS: Final = """root => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
    const rgba = colour => {
        canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = (front, back) => front.slice(0, 3).map((value, i) => value * front[3] + back[i] * (1 - front[3]));
    const luminance = colour => colour.map(value => value / 255)
        .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
        .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
    const chain = element => element ? [...chain(element.parentElement), element] : [];
    const contrast = element => {
        let ground = [255, 255, 255], behind = ground, opacity = 1;
        for (const one of chain(element)) {
            const style = getComputedStyle(one);
            if (style.opacity !== '1') { opacity *= Number(style.opacity); behind = ground; }
            ground = over(rgba(style.backgroundColor), ground);
        }
        const fade = colour => over([...colour, opacity], behind);
        const text = rgba(getComputedStyle(element).color);
        const [a, b] = [luminance(fade(over(text, ground))), luminance(fade(ground))].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
    };
    const own = element => [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    return [...root.querySelectorAll('*')].filter(element => own(element) && element.checkVisibility())
        .map(element => [element.innerText.slice(0, 60), contrast(element)]);
}"""
MARKS: Final = ("✓", "✗", "◷", "⚠", "■")


def poor(element: Locator) -> list[Any]:
    """The texts that cannot be read well. A mark alone is no text: the words beside it say the same."""
    return [
        (text, round(contrast, 2))
        for text, contrast in element.evaluate(CONTRASTS)
        if contrast < LEAST_CONTRAST and text not in MARKS
    ]


def set_theme(notebook: Notebook, theme: str) -> None:
    notebook.page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
    light = "true" if theme.endswith("Light") else "false"
    notebook.page.locator(f"body[data-jp-theme-light='{light}']").wait_for(state="attached")


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_receipts_and_the_panel_can_be_read(shared: Notebook, theme: str) -> None:
    set_theme(shared, theme)
    try:
        programs = ("print('hello')", "1/0", "while True: pass", "import os\nos._exit(0)")
        found = {}
        for source in programs:
            receipt = shared.receipt(shared.run(source))
            receipt.locator("summary").first.click()
            found[source] = poor(receipt)
        cell = shared.start("print('begun', flush=True)\nwhile True: pass")
        panel = cell.locator(".jupyter-widgets", has=shared.page.locator("progress")).first
        panel.wait_for()
        found["panel"] = poor(panel)
        shared.receipt(cell).wait_for()
        assert {name: texts for name, texts in found.items() if texts} == {}
    finally:
        set_theme(shared, "JupyterLab Light")


def test_names_and_roles_are_told_to_screen_readers(notebook: Notebook) -> None:
    notebook.launch()
    cell = notebook.start("print('begun', flush=True)\nimport time\ntime.sleep(1.5)")
    bar = cell.get_by_role("progressbar")
    bar.first.wait_for()
    cell.get_by_role("progressbar", name="Running in a sealed box").first.wait_for()
    assert cell.get_by_role("button", name="Stop", exact=False).first.is_enabled()
    fold = notebook.receipt(cell)
    fold.wait_for()
    notebook.wait_for_kernel("idle")
    session = notebook.page.context.new_cdp_session(notebook.page)
    told = [
        (node["role"]["value"], node.get("name", {}).get("value", ""), state(node))
        for node in session.send("Accessibility.getFullAXTree")["nodes"]
        if node.get("role", {}).get("value") == "DisclosureTriangle"
    ]
    assert len(told) == 1, told
    assert "Ended normally" in told[0][1]
    assert told[0][2] is False


def state(node: dict[str, Any]) -> object:
    return next((one["value"]["value"] for one in node["properties"] if one["name"] == "expanded"), None)


def test_what_a_program_shows_stands_in_a_frame_with_a_name(shared: Notebook) -> None:
    shown = "class Shown:\n    def _repr_html_(self):\n        return '<table><tr><td>7</td></tr></table>'\nShown()"
    cell = shared.run(shown)
    frame = cell.get_by_role("group", name="Shown by the program")
    frame.wait_for()
    assert "7" in frame.inner_text()
    assert poor(frame) == []
