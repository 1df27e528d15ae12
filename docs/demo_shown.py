"""What the demo shows: the picture of its page for the README, and its screen for the first page of the documentation.

python docs/demo_shown.py          makes both anew; the picture needs Chromium and Playwright (extra: test)
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from assaymark.cli import main
from assaymark.workflow.publish import report
from assaymark.workflow.run_folder import RunFolder

DOCS = Path(__file__).resolve().parent
PICTURE = DOCS / "assets" / "verdicts-{}.png"
CHROMIUM = Path("/usr/bin/chromium")
WIDE, HIGH = 1240, 950


def show_demo() -> None:
    """Run the demo and write what it shows."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "demo"
        if main(["demo", "--quiet", "--out", str(folder)]) != 0:
            sys.exit("the demo failed")
        text = screen(folder)
        if CHROMIUM.exists():
            take_pictures(folder / "report" / "index.html")
        else:
            sys.stderr.write(f"no picture: {CHROMIUM} does not exist\n")
    path = DOCS / "index.md"
    block = f"<!-- screen -->\n```text\n{screen_head(text)}\n```\n<!-- /screen -->"
    path.write_text(re.sub(r"<!-- screen -->.*?<!-- /screen -->", lambda _: block, path.read_text(), flags=re.S))


def screen(folder: Path) -> str:
    """What the terminal shows for a finished run, 80 columns, no colour."""
    out = io.StringIO()
    console = Console(file=out, width=80, highlight=False, color_system=None)
    console.print(report(RunFolder(folder)).summary)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def screen_head(text: str) -> str:
    """The screen down to who is ahead."""
    return text.split("\nDo planted texts")[0].rstrip()


def take_pictures(page: Path) -> None:
    """The first screen of a page, light and dark, as wide as a reader's window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            opened = browser.new_page(color_scheme=scheme, viewport={"width": WIDE, "height": HIGH})
            opened.goto(page.resolve().as_uri())
            opened.screenshot(path=str(PICTURE).format(scheme))
            opened.close()
        browser.close()


if __name__ == "__main__":
    show_demo()
