"""The pages of judges in a real browser: silent, offline, in every width and light, with labels that stay apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import judged_sheets as sheets
import pytest

pytestmark = pytest.mark.browser

CHROMIUM = Path("/usr/bin/chromium")
ARGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync")
PAGES = ("datasheet/quay-j", "datasheet/strand-j", "datasheet/still-j", "datasheets", "other/datasheet/gpt-log",
         "other/datasheet/empty-j", "other/datasheets")  # fmt: skip
APART = """() => {
  const bad = [];
  for (const fig of document.querySelectorAll('svg.fig')) {
    if (getComputedStyle(fig).display === 'none') continue;
    const f = fig.getBoundingClientRect();
    const boxes = [...fig.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    for (const [a, p] of boxes) if (p.left < f.left - 1 || p.right > f.right + 1) bad.push(fig.id + ': ' + a);
    boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
      const over = Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 &&
                   Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 4;
      if (over) bad.push(fig.id + ': ' + a + ' / ' + b);
    }));
  }
  return bad;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    if not CHROMIUM.exists():
        pytest.skip(f"needs Chromium: {CHROMIUM} does not exist")
    sync = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with sync.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(ARGS))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("datasheets")
    for path, text in sheets.pages().items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def visit(browser, folder):
    """Open a page and collect what it says on the console and asks of the network."""
    contexts = []

    def go(path: str, width: int = 1440, **more):
        context = browser.new_context(viewport={"width": width, "height": 900}, **more)
        contexts.append(context)
        page = context.new_page()
        page.noise, page.asked = [], []
        page.on("console", lambda message: page.noise.append(message.text))
        page.on("pageerror", lambda error: page.noise.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto((folder / path).as_uri())
        return page

    yield go
    for context in contexts:
        context.close()


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_silent_offline_fits_and_its_labels_stay_apart(visit, name, width):
    page = visit(f"{name}.html", width)
    assert page.noise == []
    assert len(page.asked) == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(APART) == []


def test_no_script_from_a_record_runs(visit, folder):
    (path,) = (folder / "other" / "datasheet").glob("style-*.html")
    page = visit(str(path.relative_to(folder)))
    page.wait_for_timeout(100)
    assert page.title().endswith("assaymark")
    assert page.evaluate("document.scripts.length") == 1
    assert page.evaluate("document.images.length") == 0
    assert page.noise == []


def test_filters_show_what_they_count(visit):
    page = visit("datasheet/quay-j.html")
    button = page.locator('[data-tools="every-rows"] button[data-f="ladder"]')
    button.click()
    shown = page.evaluate("[...document.querySelectorAll('#every-rows tbody tr')].filter(r => !r.hidden).length")
    assert button.text_content() == f"Ladder {shown}"


def test_the_summary_picture_draws_and_keeps_its_size(visit, folder):
    page = visit("datasheet/quay-j.html")
    found = page.evaluate(
        """async () => { const i = new Image(); i.src = 'quay-j.svg'; await i.decode().catch(() => 0);
        return [i.naturalWidth, i.naturalHeight]; }"""
    )
    assert found == [0, 0], "the policy of the page loads nothing, not even its own picture"
    text = (folder / "datasheet" / "quay-j.svg").read_text(encoding="utf-8")
    page.goto("about:blank")
    page.set_content(text)
    assert page.evaluate("document.querySelector('svg').getBoundingClientRect().width") >= 1120
    assert page.evaluate(APART) == []


def test_dark_mode_keeps_the_contrast_of_text_in_figures(visit):
    for scheme in ("light", "dark"):
        page = visit("datasheet/quay-j.html", color_scheme=scheme)
        ratios = page.evaluate(
            """() => {
          const lum = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
            .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
            return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
          const back = lum(getComputedStyle(document.body).backgroundColor);
          return [...document.querySelectorAll('svg.fig text')].map(t => lum(getComputedStyle(t).fill))
            .map(l => (Math.max(l, back) + 0.05) / (Math.min(l, back) + 0.05)); }"""
        )
        assert min(ratios) >= 4.5
