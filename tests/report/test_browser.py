"""The pages in a real browser: silent, offline, working without and with script, and the same in every light."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import assay_runs as runs
import full_runs
import pytest

from assaymark.report import render_pages

pytestmark = pytest.mark.browser

CHROMIUM = Path("/usr/bin/chromium")
ARGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
RUNS = ("realistic", "large", "withheld", "hostile", "minimal", "full", "long", "hostile_full")
FIGURES = (
    "realistic/index.html", "large/index.html", "full/index.html", "full/claim-map.html", "long/index.html",
    "long/claim-map.html",
)  # fmt: skip


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
    """All pages of all runs as files."""
    root = tmp_path_factory.mktemp("pages")
    for name in RUNS:
        for path, page in render_pages(getattr(runs if hasattr(runs, name) else full_runs, name)()).items():
            target = root / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(page, encoding="utf-8")
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
@pytest.mark.parametrize("name", RUNS)
def test_a_page_is_silent_offline_and_fits(visit, name, width):
    page = visit(f"{name}/index.html", width)
    assert page.noise == []
    assert len(page.asked) == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("path", ["claim-map.html", "claims.html", "measurements.html", "ledger/page-001.html"])
def test_the_other_pages_fit_a_phone(visit, path):
    for name in ("realistic", "hostile", "full", "hostile_full"):
        page = visit(f"{name}/{path}", 390)
        assert page.noise == []
        assert len(page.asked) == 1
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("name", ["realistic", "large", "withheld", "full"])
def test_all_three_levels_start_on_the_first_screen(visit, name):
    tops = visit(f"{name}/index.html").evaluate(
        "[...document.querySelectorAll('.lv')].map(e => e.getBoundingClientRect().top)"
    )
    assert len(tops) == 3
    assert max(tops) < 900


def test_filters_and_search_show_what_they_count(visit):
    page = visit("realistic/index.html")
    visible = "[...document.querySelectorAll('#ledger-rows tbody tr')].filter(r => !r.hidden)"
    button = page.locator('[data-tools="ledger-rows"] button[data-f="contradicted"]')
    button.click()
    shown = page.evaluate(f"{visible}.length")
    assert button.get_attribute("aria-pressed") == "true"
    assert button.text_content() == f"Contradicted {shown}"
    assert page.evaluate(f"{visible}.every(r => r.dataset.k === 'contradicted')")
    assert page.locator('[data-tools="ledger-rows"] output').text_content() == f"{shown} of 100 shown"
    page.locator('[data-tools="ledger-rows"] button[data-f=""]').click()
    page.locator('[data-tools="ledger-rows"] input').fill("rec-00007")
    assert 0 < page.evaluate(f"{visible}.length") < 10
    assert page.noise == []


def test_cards_are_filtered_like_rows(visit):
    page = visit("full/claims.html")
    visible = "[...document.querySelectorAll('#claim-rows > li')].filter(r => !r.hidden)"
    button = page.locator('[data-tools="claim-rows"] button[data-f="headline"]')
    button.click()
    shown = page.evaluate(f"{visible}.length")
    assert 0 < shown < page.locator("#claim-rows > li").count()
    assert button.text_content() == f"Headline {shown}"
    assert page.evaluate(f"{visible}.every(r => r.dataset.k === 'headline')")
    assert page.noise == []


def test_without_script_all_rows_show_and_no_dead_button_does(visit):
    page = visit("realistic/index.html", java_script_enabled=False)
    assert page.locator("#ledger-rows tbody tr").count() == 100
    assert page.locator("#ledger-rows tbody tr").nth(99).is_visible()
    assert not page.locator(".tools").first.is_visible()
    assert not page.locator(".copy").first.is_visible()


def test_on_a_phone_the_long_table_is_folded_and_the_page_short(visit):
    folded = "document.querySelector('#ledger-rows').closest('details')"
    button = "details:has(#ledger-rows) > summary"
    for script in (True, False):
        page = visit("realistic/index.html", 390, java_script_enabled=script)
        assert not page.locator("#ledger-rows tbody tr").first.is_visible()
        page.locator(button).click()
        assert page.locator("#ledger-rows tbody tr").nth(99).is_visible()
    page = visit("large/index.html", 390)
    assert page.evaluate("document.documentElement.scrollHeight") < 20_000
    assert not page.evaluate(f"{folded}.open")
    assert not visit("realistic/index.html").locator(button).is_visible()


def test_no_label_of_a_figure_is_clipped(visit):
    script = """() => [...document.querySelectorAll('svg.fig, svg.strip')]
      .filter(fig => getComputedStyle(fig).display !== 'none')
      .flatMap(fig => [...fig.querySelectorAll('text')].map(t => [fig.getBoundingClientRect(), t]))
      .filter(([f, t]) => { const b = t.getBoundingClientRect(); return b.left < f.left - 1 || b.right > f.right + 1; })
      .map(([, t]) => t.textContent)"""
    for path in FIGURES:
        for width in (1440, 390):
            assert visit(path, width).evaluate(script) == []


def test_copy_puts_sentence_condition_and_plan_on_the_clipboard(visit):
    page = visit("realistic/index.html", permissions=["clipboard-read", "clipboard-write"])
    page.locator(".lv.qualified .copy").first.click()
    page.wait_for_function("document.querySelector('.lv.qualified .copy').textContent === 'Copied'")
    text = page.evaluate("navigator.clipboard.readText()")
    assert "ranks first" in text
    assert "The judges agree only weakly on this score." in text
    assert runs.PLAN in text


@pytest.mark.parametrize("name", ["hostile", "hostile_full"])
@pytest.mark.parametrize(
    "path", ["index.html", "claim-map.html", "claims.html", "measurements.html", "ledger/page-001.html"]
)
def test_no_script_from_a_record_runs(visit, path, name):
    page = visit(f"{name}/{path}")
    page.wait_for_timeout(100)
    assert "pwned" not in page.title().replace("document.title='pwned'", "")
    assert page.evaluate("document.scripts.length") == 1
    assert page.evaluate("document.images.length") == 0
    assert page.evaluate("document.querySelectorAll('[onerror],[onload]').length") == 0
    assert page.noise == []


def test_dark_mode_and_forced_colours_follow_the_reader(visit):
    light, dark = visit("realistic/index.html"), visit("realistic/index.html", color_scheme="dark")
    paint = "getComputedStyle(document.body).backgroundColor"
    assert light.evaluate(paint) == "rgb(255, 255, 255)"
    assert dark.evaluate(paint) == "rgb(17, 21, 26)"
    assert dark.noise == []
    forced = visit("realistic/index.html", forced_colors="active")
    assert forced.evaluate("getComputedStyle(document.querySelector('.no-claim .claims')).borderLeftStyle") == "dashed"


def test_one_width_of_each_figure_is_shown(visit):
    shown = (
        "[...document.querySelectorAll('svg.fig')]"
        ".filter(e => getComputedStyle(e).display !== 'none').map(e => e.classList[1])"
    )
    assert "narrow" not in visit("realistic/index.html").evaluate(shown)
    assert "wide" not in visit("realistic/index.html", 390).evaluate(shown)


def test_no_two_labels_of_a_figure_overlap(visit):
    script = """() => {
      const bad = [];
      for (const fig of document.querySelectorAll('svg.fig')) {
        if (getComputedStyle(fig).display === 'none') continue;
        const boxes = [...fig.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
        boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
          const over = Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 &&
                       Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 4;
          if (over) bad.push(fig.id + ': ' + a + ' / ' + b);
        }));
      }
      return bad;
    }"""
    for path in FIGURES:
        for width in (1440, 390):
            assert visit(path, width).evaluate(script) == []


def test_targets_are_large_enough_and_focus_is_visible(visit):
    page = visit("realistic/index.html", 390)
    heights = page.evaluate(
        "[...document.querySelectorAll('button, summary, input, nav a')].filter(e => e.offsetParent)"
        ".map(e => e.getBoundingClientRect().height)"
    )
    assert min(heights) >= 26
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0


def test_printing_opens_what_is_folded(visit):
    page = visit("realistic/index.html")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].every(d => d.open)")
