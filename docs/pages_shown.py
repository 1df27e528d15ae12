"""Each kind of page as a picture, with its height and words beside what it may have, for docs/pages.md.

python docs/pages_shown.py          makes all anew; needs Chromium and Playwright (extra: test)
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from demo_shown import DOCS, SCORES, fill

from assaymark.cli import main

CHROMIUM = Path("/usr/bin/chromium")
PICTURES = DOCS / "assets" / "pages"
SMALL = 150_000
"""Bytes of a picture, at most."""

KINDS = {
    "study": ("demo/report/index.html", 4_500, 8_500, 1_100),
    "check": ("checked/report/index.html", 3_500, 6_500, 900),
    "season": ("site/index.html", 3_000, 6_000, 750),
    "agent of a season": ("site/agents/trend.html", 2_600, 4_800, 650),
    "portbench": ("bench/report/index.html", 3_000, 6_000, 750),
    "judge": ("demo/report/datasheets.html", None, None, None),
    "call": ("demo/report/calls/page-001.html", None, None, None),
}
"""An example of each kind of page, with its maximum height at 1440 and at 390 pixels, and its maximum of words."""


def run(*words: str) -> None:
    """A command that has to succeed."""
    with redirect_stdout(StringIO()) as said:
        if main(list(words)) != 0:
            sys.exit(f"assaymark {' '.join(words)} failed: {said.getvalue()}")


def make_pages() -> None:
    """Every run that a page is of, in the folder at hand."""
    run("demo", "--quiet", "--out", "demo")
    run("check", str(SCORES), "--out", "checked", "--quiet")
    for part in ("qa", "pipeline"):
        run("bench", part, "--out", "bench", "--quiet")
    plan = re.search(r"```toml title=\"season.toml\"\n(.*?)```", (DOCS / "how-to/run-a-season.md").read_text(), re.S)
    assert plan is not None
    Path("season.toml").write_text(plan[1])
    for words in (("init", "season.toml", "--out", "spring"), ("run", "spring"), ("judge", "spring")):
        run("season", *words)
    run("season", "publish", "spring", "--out", "site")


def rows(page: Any) -> Iterator[str]:
    """A row of the table for each kind of page."""
    for kind, (path, *most) in KINDS.items():
        found = []
        for width in (390, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(Path(path).resolve().as_uri())
            found.insert(0, page.evaluate("document.documentElement.scrollHeight"))
        picture = PICTURES / f"{kind.replace(' ', '-')}.png"
        page.screenshot(path=picture)
        if picture.stat().st_size > SMALL:
            sys.exit(f"{picture} is larger than {SMALL:,} bytes")
        found.append(page.evaluate(
            "[...document.querySelectorAll('select, .log')].forEach(e => e.remove()) ||"
            " document.querySelector('main').innerText.split(/\\s+/).length"
        ))  # fmt: skip
        cells = [f"{one:,} of {limit:,}" if limit else "" for one, limit in zip(found, most, strict=True)]
        yield f"| {kind} | ![A page: {kind}](assets/pages/{picture.name}) | {' | '.join(cells)} |"


def show_pages() -> None:
    """Make the runs, take the pictures, and write the table."""
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, chdir(scratch), sync_playwright() as playwright:
        make_pages()
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page(device_scale_factor=0.5)
        table = "\n".join(
            ("| page | at 1440 | height at 1440 | at 390 | words |", "|---|---|---:|---:|---:|", *rows(page))
        )
        browser.close()
    fill(DOCS / "pages.md", "kinds", f"\n{table}\n")


if __name__ == "__main__":
    show_pages()
