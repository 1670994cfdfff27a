"""Hostile text, escape sequences and errors, for a page and a terminal; receipts and messages of the box's own, forged."""

# Payloads, each on a line of its own as long as it is.
# ruff: noqa: E501
# fmt: off

from __future__ import annotations

from typing import Final

from tests.browser.hostile_making import LEAK, add, bite, html, kind, text
from tests.browser.hostile_pages import JAVASCRIPT

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
