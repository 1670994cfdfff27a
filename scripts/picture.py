"""Draws docs/receipts.png: receipts of real runs, as a notebook shows them, light and dark. Needs Chromium.

.venv/bin/python scripts/picture.py
"""

from __future__ import annotations

import html
import subprocess
import sys
import tempfile
from pathlib import Path

from pybox_kernel.render.html import render_html
from pybox_kernel.safe_display.text import without_colour
from pybox_kernel.sessions.session import Session

CELLS = (
    "print(sum(range(10)))",
    "import os\nif os.fork() == 0:\n    hog = [bytearray(1 << 20) for _ in range(500)]\nos.wait()\nprint('all done!')",
    "print('row 1', flush=True)\nwhile True:\n    pass",
    "import socket\nsocket.create_connection(('192.0.2.1', 443), timeout=1)",
)
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; display: flex; font: 13px/1.5 system-ui, sans-serif }}
main {{ flex: 1; min-width: 0; padding: 18px 26px }}
pre {{ font: 12px/1.5 ui-monospace, monospace; margin: 0 0 6px; padding: 6px 10px; white-space: pre-wrap }}
.in {{ border: 1px solid #8884; border-radius: 4px; margin-top: 16px }}
.light {{ background: #fff; color: #1f2328 }}
.dark {{ background: #111; color: #e6edf3; --jp-ui-font-color1: #e6edf3; --jp-content-font-color1: #e6edf3 }}
</style><main class="light">{cells}</main><main class="dark">{cells}</main>"""


def main() -> None:
    target = Path(__file__).parent.parent / "docs" / "receipts.png"
    parts = []
    with Session.open() as session:
        for number, source in enumerate(CELLS):
            result = session.run(source)
            if result.receipt.observed.end.how == "not_started":
                sys.exit(f"A cell was not run: {result.receipt.problem}")
            shown = render_html(result.receipt)
            if number == 0:
                shown = shown.replace("<details", "<details open", 1)
            output = result.stdout + (without_colour(result.error.traceback) if result.error else "")
            parts.append(f'<pre class="in">{html.escape(source)}</pre><pre>{html.escape(output)}</pre>{shown}')
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        page.write_text(PAGE.format(cells="".join(parts)), encoding="utf-8")
        target.parent.mkdir(exist_ok=True)
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
        command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        command += [
            f"--user-data-dir={folder}/profile",
            "--window-size=1500,1230",
            "--hide-scrollbars",
            f"--screenshot={target}",
        ]
        subprocess.run([*command, page.as_uri()], check=True, stderr=subprocess.DEVNULL)
    sys.stdout.write(f"{target}\n")


if __name__ == "__main__":
    main()
