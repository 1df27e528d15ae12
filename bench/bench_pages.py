"""Pages from disk in a browser: when the first of their content is painted, by the browser's own clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from assaymark.cli import main

CHROMIUM = Path("/usr/bin/chromium")
TIMES = 5
PAINTED = """() => new Promise(done => {
  const seen = () => performance.getEntriesByName('first-contentful-paint')[0];
  const look = () => seen() ? done(seen().startTime) : requestAnimationFrame(look);
  look();
})"""


@pytest.fixture
def pages(tmp_path: Path) -> dict[str, Path]:
    """Pages of the demo: the first, and the largest of the others."""
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    report = tmp_path / "demo" / "report"
    rest = [path for path in report.rglob("*.html") if path != report / "index.html"]
    return {"first page of the demo": report / "index.html", "largest page of the demo": max(rest, key=_size)}


def _size(path: Path) -> int:
    return path.stat().st_size


def test_first_paint(pages: dict[str, Path], note: Callable[..., None]) -> None:
    sync = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if not CHROMIUM.exists():
        pytest.skip(f"needs Chromium: {CHROMIUM} does not exist")
    found = {}
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        for name, path in pages.items():
            times = []
            for _ in range(TIMES):
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                page.goto(path.as_uri())
                times.append(float(page.evaluate(PAINTED)))
                page.close()
            found[name] = median(times) / 1000
            what = f"{name}, {_size(path) / 1000:,.0f} kB, opened from disk"
            note(what, f"first contentful paint, middle of {TIMES}", f"{found[name]:.2f} s", "< 1 s")
        browser.close()
    assert max(found.values()) < 1
